"""Operations on the records of a collection: list and edit them, read their versions and relations."""

from collections.abc import Container, Mapping
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.editing.edit import flatten_fields, nest_fields, to_draft
from lexarium.domain.identifiers import qualify_id, split_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ListQuery, Record, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.timestamps import parse_timestamp
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.proposals import ProposalWriter
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import VersionedRecord, get_published, get_record
from lexarium.services.serializers import (
    list_record_fields,
    serialize_difference,
    serialize_proposal,
    serialize_record,
    serialize_version,
)
from lexarium.services.vocabularies.access import get_unqualified_vocabulary
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.languages import describe_languages
from lexarium.web.v1.operation import (
    ById,
    LangParam,
    Operation,
    Parameters,
    RequestContext,
    json_body,
    returns,
    split_commas,
)
from lexarium.web.v1.responses import V1_PATH, json_response

READ_ERRORS = (410, 308)
"""Statuses if the record to read is retired or merged."""
WRITE_ERRORS = (409, 410)
"""Statuses if the record to change is retired or merged, or in conflict."""
_MAX_PAGE = 1_000
ReleaseParam = Annotated[str | None, Field(max_length=100, description="Read a release instead of the present.")]
_VersionNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
AsOfParam = Annotated[int | None, Field(ge=0, le=2**53, description="Read an earlier revision instead of the present.")]


def _reject_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds the character U+0000, which no record has.")
    return text


def _limit_ids(ids: str) -> str:
    if len(split_commas([ids])) > _MAX_PAGE:
        raise ValueError(f"should have at most {_MAX_PAGE}.")
    return ids


def _validate_timestamp(text: str) -> str:
    if parse_timestamp(text) is None:
        raise ValueError("should be like 2026-01-31T12:00:00.")
    return text


def _validate_fields(text: str, info: ValidationInfo[Collection]) -> str:
    known, names = list_record_fields(info.context), split_commas([text])
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"names {', '.join(unknown)}, which there is not" if unknown else "should name at least one"
        raise ValueError(f"{wrong}; there are {', '.join(known)}.")
    return text


_Text = Annotated[str | None, AfterValidator(_reject_nul)]
_Ids = Annotated[_Text, AfterValidator(_limit_ids)]
_FieldNames = Annotated[str | None, AfterValidator(_validate_fields)]
_Timestamp = Annotated[str | None, AfterValidator(_validate_timestamp)]


class _ListParameters(Parameters):
    limit: int = Field(100, ge=1, le=_MAX_PAGE, description="How many at most.")
    cursor: str | None = Field(None, max_length=1_000, description="`next` of the page before.")
    sort: Literal["name", "id", "updated", "-name", "-id", "-updated"] = Field(
        "name", description="The order; with `-` the other way round."
    )
    fields_: _FieldNames = Field(None, alias="fields", max_length=1_000, description="Only these, separated by commas.")
    name: _Text = Field(None, max_length=10_000, description="With this name, ignoring case.")
    ids: _Ids = Field(None, max_length=100_000, description="Only these, separated by commas.")
    class_: _Text = Field(None, alias="class", max_length=100, description="Only of the class with this id, `ctp_…`.")
    user: _Text = Field(None, max_length=100, description="Only those that the user with this id, `usr_…`, owns.")
    state: RecordState = Field(RecordState.PUBLISHED, description="published, retired or merged.")
    flagged: bool | None = Field(
        None, description="Only those that wait for a curator's look, or only those that do not."
    )
    lang: LangParam = None
    updated_since: _Timestamp = Field(None, max_length=40, description="A date and time, UTC.")
    release: ReleaseParam = None
    as_of: AsOfParam = None


class ReadParameters(ById):
    """Parameters of one record."""

    lang: LangParam = None
    release: ReleaseParam = None
    as_of: AsOfParam = None


class _RetireParameters(ById):
    replaced_by: str | None = Field(None, max_length=100, description="The record to use instead.")


class _VersionParameters(ById):
    version: _VersionNumber = Field(description="The number of the version.")


class _DiffParameters(ById):
    """Two versions of a record."""

    from_: _VersionNumber = Field(alias="from", description="The earlier version.")
    to: _VersionNumber = Field(description="The later version.")


class _HierarchyParameters(ById):
    relation: str | None = Field(None, max_length=100, description="Only along this hierarchy; else along all.")


class _RelationParameters(ById):
    """A relation to remove."""

    relation: str = Field(max_length=100, description="The name of the relation.")
    target: str = Field(max_length=2_000, description="What it points to.")


class RevertRequest(BaseModel, defer_build=True):
    """Version to revert to."""

    version: _VersionNumber = Field(description="The version to go back to.")


class MergeRequest(BaseModel, defer_build=True):
    """Target of a merge."""

    into: str = Field(description="The id of the survivor.")


class RelateRequest(BaseModel, defer_build=True):
    """A relation to add."""

    relation: str = Field(min_length=1, description="One that the collection has, or the name of a mapping.")
    target: str = Field(min_length=1, description="The id of a record; of a mapping, an IRI or a CURIE.")


def list_records(context: RequestContext, query: _ListParameters) -> Response:
    """List the records of a collection"""
    database, qualify = context.site.database, partial(qualify_id, context.vocabulary.slug)
    with database.read() as snapshot:
        listing = ListQuery(
            collection=context.collection.name,
            revision=queries.resolve_revision(snapshot, query.release, query.as_of, context.vocabulary.slug),
            sort=query.sort.removeprefix("-"),
            descending=query.sort.startswith("-"),
            state=query.state,
            ids=None if query.ids is None else tuple(map(qualify, split_commas([query.ids]))),
            name_key=None if query.name is None else name_key(query.name),
            class_id=query.class_,
            owner=query.user,
            flagged=query.flagged,
            updated_since=None if query.updated_since is None else parse_timestamp(query.updated_since),
        )
        is_current = query.release is None and query.as_of is None
        page = queries.list_records(
            snapshot, database.counts, listing, query.cursor, query.limit, is_current=is_current
        )
    presentation = context.translated
    items = [serialize_record(change, presentation=presentation) for change in page.items]
    headers = describe_languages(context.request, items)
    if query.fields_ is not None:
        names = split_commas([query.fields_])
        items = [{name: item[name] for name in names} for item in items]
    if page.next_cursor:
        url = context.request.url.include_query_params(cursor=page.next_cursor)
        headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    return json_response({"items": items, "next": page.next_cursor, "total": page.total}, **headers)


def read_record(context: RequestContext, query: ReadParameters) -> Response:
    """Read a record of a collection"""
    return respond_with_record(context, query, context.qualify(query.id))


def respond_with_record(context: RequestContext, query: ReadParameters, record_id: str) -> Response:
    """Return a record in the language and at the revision that a query asks for."""
    database, collection = context.site.database, context.path_collection
    if query.release is None and query.as_of is None:
        change = queries.get_current_record(database, record_id, collection)
    else:
        with database.read() as snapshot:
            revision = queries.resolve_revision(snapshot, query.release, query.as_of, split_id(record_id)[0])
            change = queries.get_record_at(snapshot, record_id, revision, collection)
    content = serialize_record(change, presentation=context.translated)
    headers = describe_languages(context.request, [content])
    suffix = f"-{headers['content-language']}" if "content-language" in headers else ""
    return json_response(content, etag=f'"{change.version}{suffix}"', **headers)


def create_record(context: RequestContext, draft: dict[str, Any], transaction: Transaction) -> WriteResponse:
    """Create a record"""
    writer = _open_writer(context, transaction)
    created = writer.create(context.collection, flatten_fields(context.collection, draft))
    return to_write_response(context, created, 201)


def _open_writer(context: RequestContext, transaction: Transaction) -> RecordWriter | ProposalWriter:
    return submissions.open_writer(transaction, context.caller, context.vocabulary.slug)


def replace_record(
    context: RequestContext, path: ById, draft: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    """Replace a record"""
    before, writer = context.find_expected(path.id, transaction), _open_writer(context, transaction)
    # Without them the further fields stay: clients of before there were any do not send them.
    collection = before.record.collection
    kept = {} if "fields" in draft else nest_fields(collection, to_draft(before.record)).get("fields", {})
    return to_write_response(
        context, writer.update(before, {**kept, **_drop_unchanged_system_fields(context, before, draft)})
    )


def patch_record(context: RequestContext, path: ById, patch: dict[str, Any], transaction: Transaction) -> WriteResponse:
    """Change fields of a record"""
    before, writer = context.find_expected(path.id, transaction), _open_writer(context, transaction)
    return to_write_response(context, writer.patch(before, _drop_unchanged_system_fields(context, before, patch)))


def retire_record(context: RequestContext, query: _RetireParameters, transaction: Transaction) -> WriteResponse:
    """Retire a record"""
    before, writer = context.find_expected(query.id, transaction), _open_writer(context, transaction)
    return to_write_response(context, writer.retire(before, query.replaced_by))


def _drop_unchanged_system_fields(
    context: RequestContext, before: VersionedRecord, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Drop what is the server's own and unchanged: a client may send a record back as it was read."""
    view, draft = serialize_record(before.change, before.record, context.presentation), to_draft(before.record)
    collection = before.record.collection
    given = _restore_shown_texts(collection, given, view)

    def drop_unchanged(values: Mapping[str, Any], seen: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
        return {
            name: value
            for name, value in values.items()
            # Compared as JSON, where true is not 1.
            if name in names or name not in seen or orjson.dumps(value) != orjson.dumps(seen[name])
        }

    core_names = {
        "fields",
        *(name for name in draft if name in collection.core_fields or name not in collection.fields),
    }
    changed = drop_unchanged(given, view, core_names)
    if isinstance(given.get("fields"), dict):
        changed["fields"] = drop_unchanged(given["fields"], view.get("fields", {}), draft.keys() - core_names)
    return flatten_fields(collection, changed)


def _restore_shown_texts(
    collection: Collection, given: Mapping[str, Any], view: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a record that was read in another language, and is sent back, with the default name and definition."""
    restored = dict(given)
    fields = (("names", "name"), ("definitions", collection.definition_field or ""), ("definitions", "definition"))
    for key, field in fields:
        is_unchanged = field in given and field in view and given.get(key) == view[key]
        if is_unchanged and given[field] in [text["text"] for text in view[key]]:
            restored[field] = view[field]
    return restored


def list_versions(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """Every version, the newest first"""
    versions = queries.list_versions(
        snapshot, context.path_collection, context.qualify(path.id), get_position(snapshot).revision
    )
    return {"items": [serialize_version(change) for change in versions]}


def read_version(context: RequestContext, path: _VersionParameters, snapshot: Snapshot) -> dict[str, Any]:
    """One version"""
    change = queries.get_version(snapshot, context.path_collection, context.qualify(path.id), path.version)
    return serialize_record(change, presentation=context.presentation)


def compare_versions(context: RequestContext, query: _DiffParameters, snapshot: Snapshot) -> dict[str, Any]:
    """What differs between two versions, field by field"""
    record_id = context.qualify(query.id)
    differences = queries.diff_versions(snapshot, context.path_collection, record_id, query.from_, query.to)
    items = [serialize_difference(difference) for difference in differences]
    return {"from": query.from_, "to": query.to, "items": items}


def revert(context: RequestContext, path: ById, body: RevertRequest, transaction: Transaction) -> WriteResponse:
    """Make it what it was at a version, as a new version"""
    record_id = context.qualify(path.id)
    past = queries.get_version(transaction.flush(), context.path_collection, record_id, body.version)
    current = context.require_expected(get_record(transaction.flush(), record_id))
    return to_write_response(context, RecordWriter(transaction, context.caller).revert(past, current.version))


def merge(context: RequestContext, path: ById, body: MergeRequest, transaction: Transaction) -> WriteResponse:
    """Merge it into another; answers the survivor"""
    before = context.find_expected(path.id, transaction)
    return to_write_response(context, RecordWriter(transaction, context.caller).merge(before, body.into))


def list_relations(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """Its relations, in both directions, with names"""
    return {
        "items": queries.list_related(
            snapshot, get_published(snapshot, context.path_collection, context.qualify(path.id)).change
        )
    }


def list_ancestors(context: RequestContext, query: _HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    """What is above it, the nearest first"""
    record = get_published(snapshot, context.path_collection, context.qualify(query.id))
    return queries.list_hierarchy(snapshot, record.change, query.relation, upward=True)


def list_descendants(context: RequestContext, query: _HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    """What is below it, the nearest first"""
    record = get_published(snapshot, context.path_collection, context.qualify(query.id))
    return queries.list_hierarchy(snapshot, record.change, query.relation, upward=False)


def add_relation(context: RequestContext, path: ById, body: RelateRequest, transaction: Transaction) -> WriteResponse:
    """Add a relation"""
    before, writer = context.find_expected(path.id, transaction), RecordWriter(transaction, context.caller)
    return to_write_response(context, writer.add_relation(before, body.relation, body.target))


def remove_relation(context: RequestContext, query: _RelationParameters, transaction: Transaction) -> WriteResponse:
    """Take a relation away"""
    before, writer = context.find_expected(query.id, transaction), RecordWriter(transaction, context.caller)
    return to_write_response(context, writer.remove_relation(before, query.relation, query.target))


def to_write_response(context: RequestContext, result: VersionedRecord | Proposal, status: int = 200) -> WriteResponse:
    """Return the response to a write: the published record with any warnings, or the proposal."""
    if isinstance(result, Proposal):
        return WriteResponse(202, serialize_proposal(result), f"{V1_PATH}/proposals/{result.id}")
    change = result.change
    warnings = {"warnings": result.warnings} if result.warnings else {}
    location = build_record_url(result.record) if status == 201 else None
    content = {**serialize_record(change, result.record, context.presentation), **warnings}
    return WriteResponse(status, content, location, f'"{change.version}"')


def build_record_url(record: Record) -> str:
    """Return the path of a record: below its collection in the default vocabulary, else below its vocabulary."""
    collection, local_id = record.collection, quote(record.local_id, safe="")
    if collection.vocabulary == get_unqualified_vocabulary().slug:
        return f"{V1_PATH}/{collection.local_name}/{local_id}"
    return f"{V1_PATH}/vocabularies/{collection.vocabulary}/records/{local_id}"


CREATED = returns(models.Record, "ETag", "Location", status=201)
CHANGED = returns(models.Record, "ETag")
PROPOSED = returns(models.Proposal, "Location", status=202)
_DRAFT, _PATCH = json_body("RecordDraft"), json_body("RecordPatch", patch=True)
_get = partial(Operation, "GET", has_vocabulary=True)
_read = partial(_get, errors=READ_ERRORS)
_edit = partial(Operation, if_match=True, errors=WRITE_ERRORS, has_vocabulary=True)
_propose = partial(_edit, permission=Permission.PROPOSE)
_publish = partial(_edit, permission=Permission.PUBLISH)

OPERATIONS = (
    _get("/{collection}", list_records, returns(models.RecordPage, "Link")),
    Operation(
        "POST",
        "/{collection}",
        create_record,
        CREATED | PROPOSED,
        body=_DRAFT,
        errors=(409,),
        permission=Permission.PROPOSE,
        has_vocabulary=True,
    ),
    _read("/{collection}/{id}", read_record, returns(models.Record)),
    _propose("PUT", "/{collection}/{id}", replace_record, CHANGED | PROPOSED, body=_DRAFT),
    _propose("PATCH", "/{collection}/{id}", patch_record, CHANGED | PROPOSED, body=_PATCH),
    _propose("DELETE", "/{collection}/{id}", retire_record, CHANGED | PROPOSED),
    _get("/{collection}/{id}/history", list_versions, returns(models.History), name="history"),
    _get("/{collection}/{id}/history/{version}", read_version, returns(models.Record), name="one_version"),
    _get("/{collection}/{id}/diff", compare_versions, returns(models.Diff), name="diff"),
    _publish("POST", "/{collection}/{id}/revert", revert, CHANGED, errors=()),
    _publish("POST", "/{collection}/{id}/merge", merge, CHANGED),
    _read("/{collection}/{id}/relations", list_relations, returns(models.Relations), name="relations"),
    _publish("PUT", "/{collection}/{id}/relations", add_relation, CHANGED, name="relate"),
    _publish("DELETE", "/{collection}/{id}/relations", remove_relation, CHANGED, name="unrelate"),
    _read("/{collection}/{id}/ancestors", list_ancestors, returns(models.Hierarchy), name="ancestors"),
    _read("/{collection}/{id}/descendants", list_descendants, returns(models.Hierarchy), name="descendants"),
)
