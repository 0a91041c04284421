"""Operations on the records of a collection: list and edit them, read their versions and relations."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.change import Change
from lexarium.domain.editing.edit import flatten_fields, nest_fields, to_draft
from lexarium.domain.editing.validation import OPTIONAL_KEYS
from lexarium.domain.identifiers import qualify_id, split_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ListQuery, Record, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.timestamps import parse_timestamp
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.name_warnings import WriteWarning, find_name_warnings
from lexarium.services.curation.proposals import ProposalWriter
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse
from lexarium.services.record_serializer import get_shown_languages, list_record_fields, serialize_record
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import (
    VersionedRecord,
    get_change,
    get_published,
    get_record,
    require_published,
)
from lexarium.services.serializers import serialize_difference, serialize_proposal, serialize_version
from lexarium.services.vocabularies.access import get_unqualified_vocabulary
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.languages import describe_languages
from lexarium.web.request_models import Summary
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

READ_ERRORS = (410, 308, 300)
"""Statuses if the record to read is retired or merged, or if several have its id besides their own."""
WRITE_ERRORS = (409, 410)
"""Statuses if the record to change is retired or merged, or in conflict."""
_MAX_PAGE = 1_000
ReleaseParam = Annotated[str | None, Field(max_length=100, description="Release to read (default: current).")]
_VersionNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
AsOfParam = Annotated[int | None, Field(ge=0, le=2**53, description="Revision to read (default: current).")]


def _reject_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("contains the character U+0000, which is not allowed.")
    return text


def _limit_ids(ids: str) -> str:
    if len(split_commas([ids])) > _MAX_PAGE:
        raise ValueError(f"must have at most {_MAX_PAGE}.")
    return ids


def _validate_timestamp(text: str) -> str:
    if parse_timestamp(text) is None:
        raise ValueError("must be like 2026-01-31T12:00:00.")
    return text


def _validate_fields(text: str, info: ValidationInfo[Collection]) -> str:
    known, names = list_record_fields(info.context), split_commas([text])
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"has unknown names ({', '.join(unknown)})" if unknown else "must have at least one"
        raise ValueError(f"{wrong}; valid: {', '.join(known)}.")
    return text


_Text = Annotated[str | None, AfterValidator(_reject_nul)]
_Ids = Annotated[_Text, AfterValidator(_limit_ids)]
_FieldNames = Annotated[str | None, AfterValidator(_validate_fields)]
_Timestamp = Annotated[str | None, AfterValidator(_validate_timestamp)]


class _ListParameters(Parameters):
    limit: int = Field(100, ge=1, le=_MAX_PAGE, description="Maximum number of results.")
    cursor: str | None = Field(None, max_length=1_000, description="`next` of the previous page.")
    sort: Literal["name", "id", "updated", "-name", "-id", "-updated"] = Field(
        "name", description="Sort field; prefix `-` for descending."
    )
    fields_: _FieldNames = Field(None, alias="fields", max_length=1_000, description="Only these, separated by commas.")
    name: _Text = Field(None, max_length=10_000, description="Filter by name, ignoring case.")
    ids: _Ids = Field(None, max_length=100_000, description="Only these, separated by commas.")
    class_: _Text = Field(None, alias="class", max_length=100, description="Filter by class ID, `ctp_…`.")
    user: _Text = Field(None, max_length=100, description="Filter by ID of the owner, `usr_…`.")
    state: RecordState = Field(RecordState.PUBLISHED, description="Filter by state: published, retired or merged.")
    flagged: bool | None = Field(None, description="Filter by curator flag.")
    lang: LangParam = None
    updated_since: _Timestamp = Field(None, max_length=40, description="A date and time, UTC.")
    release: ReleaseParam = None
    as_of: AsOfParam = None


class ReadParameters(ById):
    """Parameters of one record."""

    lang: LangParam = None
    release: ReleaseParam = None
    as_of: AsOfParam = None


class _CreateParameters(Parameters):
    summary: Summary = ""


class _WriteParameters(ById):
    summary: Summary = ""


class _RetireParameters(_WriteParameters):
    replaced_by: str | None = Field(None, max_length=100, description="ID of the replacement.")


class _VersionParameters(ById):
    version: _VersionNumber = Field(description="Version number.")


class _DiffParameters(ById):
    """Two versions of a record."""

    from_: _VersionNumber = Field(alias="from", description="Earlier version.")
    to: _VersionNumber = Field(description="Later version.")


class _HierarchyParameters(ById):
    relation: str | None = Field(None, max_length=100, description="Hierarchy to follow (default: all).")


class _RelationParameters(_WriteParameters):
    """A relation to remove."""

    relation: str = Field(max_length=100, description="Name of the relation.")
    target: str = Field(max_length=2_000, description="Target of the relation.")


class RevertRequest(BaseModel, defer_build=True):
    """Version to revert to."""

    version: _VersionNumber = Field(description="Version to revert to.")


class MergeRequest(BaseModel, defer_build=True):
    """Target of a merge."""

    into: str = Field(description="ID of the target record.")


class RelateRequest(BaseModel, defer_build=True):
    """A relation to add."""

    relation: str = Field(min_length=1, description="Relation of the collection, or name of a mapping.")
    target: str = Field(min_length=1, description="ID of a record; for a mapping, an IRI or a CURIE.")


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
            class_id=None if query.class_ is None else qualify(query.class_),
            owner=query.user,
            flagged=query.flagged,
            updated_since=None if query.updated_since is None else parse_timestamp(query.updated_since),
        )
        is_current = query.release is None and query.as_of is None
        page = queries.list_records(
            snapshot, database.counts, listing, query.cursor, query.limit, is_current=is_current
        )
    presentation = context.translated
    items = [serialize_record(change, presentation) for change in page.items]
    headers = describe_languages(context.request, presentation.languages, items)
    if query.fields_ is not None:
        names = split_commas([query.fields_])
        items = [{name: item[name] for name in names} for item in items]
    if page.next_cursor:
        url = context.request.url.include_query_params(cursor=page.next_cursor)
        headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    return json_response({"items": items, "next": page.next_cursor, "total": page.total}, **headers)


def read_record(context: RequestContext, query: ReadParameters) -> Response:
    """Get a record of a collection"""
    return respond_with_record(context, query, context.qualify(query.id))


def respond_with_record(
    context: RequestContext, query: ReadParameters, record_id: str, current: Change | None = None
) -> Response:
    """Return a record in the language and at the revision that a query asks for; pass its last change if it is read."""
    database, collection = context.site.database, context.path_collection
    if query.release is None and query.as_of is None:
        change = get_change(lambda: current or queries.find_current_change(database, record_id), record_id, collection)
    else:
        with database.read() as snapshot:
            revision = queries.resolve_revision(snapshot, query.release, query.as_of, split_id(record_id)[0])
            change = queries.get_record_at(snapshot, record_id, revision, collection).change
    presentation = context.translated
    content = serialize_record(change, presentation)
    if content["state"] != RecordState.PUBLISHED:
        require_published(change.to_record())
    headers = describe_languages(context.request, presentation.languages, [content])
    # Names and definitions may be in two languages.
    languages = get_shown_languages(content) if "content-language" in headers else ()
    return json_response(content, etag=f'"{"-".join([str(change.version), *languages])}"', **headers)


def _find_warnings(context: RequestContext, _: _CreateParameters, draft: dict[str, Any]) -> list[WriteWarning]:
    return find_name_warnings(context.site.record_search, context.collection, draft)


def _find_change_warnings(context: RequestContext, path: _WriteParameters, draft: dict[str, Any]) -> list[WriteWarning]:
    record_id = context.qualify(path.id)
    current = queries.get_current_record(context.site.database, record_id, context.path_collection).record
    return find_name_warnings(context.site.record_search, current.collection, draft, current)


def serialize_warnings(about_state: Iterable[str], others: Iterable[WriteWarning]) -> dict[str, Any]:
    """Return the warnings of a write as a part of its response, if there are any: those about its state first."""
    warnings = [asdict(item) for item in (*(WriteWarning("state", text) for text in about_state), *others)]
    return {"warnings": warnings} if warnings else {}


def create_record(
    context: RequestContext, query: _CreateParameters, draft: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    """Create a record"""
    writer = _open_writer(context, transaction, query.summary)
    created = writer.create(context.collection, flatten_fields(context.collection, draft))
    return to_write_response(context, created, 201)


def _open_writer(context: RequestContext, transaction: Transaction, summary: str) -> RecordWriter | ProposalWriter:
    return submissions.open_writer(transaction, context.caller, context.vocabulary.slug, summary)


def replace_record(
    context: RequestContext, path: _WriteParameters, draft: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    """Replace a record"""
    before, writer = context.find_expected(path.id, transaction), _open_writer(context, transaction, path.summary)
    # Without them the further fields stay: clients of before there were any do not send them.
    collection = before.record.collection
    kept = {} if "fields" in draft else nest_fields(collection, to_draft(before.record)).get("fields", {})
    return to_write_response(
        context, writer.update(before, {**kept, **_drop_unchanged_system_fields(context, before, draft)})
    )


def patch_record(
    context: RequestContext, path: _WriteParameters, patch: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    """Update fields of a record"""
    before, writer = context.find_expected(path.id, transaction), _open_writer(context, transaction, path.summary)
    return to_write_response(context, writer.patch(before, _drop_unchanged_system_fields(context, before, patch)))


def retire_record(context: RequestContext, query: _RetireParameters, transaction: Transaction) -> WriteResponse:
    """Retire a record"""
    before, writer = context.find_expected(query.id, transaction), _open_writer(context, transaction, query.summary)
    return to_write_response(context, writer.retire(before, query.replaced_by))


def _drop_unchanged_system_fields(
    context: RequestContext, before: VersionedRecord, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Drop unchanged read-only fields, so that a client may send a record back as it was read."""
    collection, draft = before.record.collection, to_draft(before.record)
    core_names = {
        "fields",
        *(name for name in draft if name in collection.core_fields or name not in collection.fields),
    } - OPTIONAL_KEYS
    if given.keys() <= core_names - {"fields", "names", "definitions"}:
        return flatten_fields(collection, given)
    view = serialize_record(before.change, context.presentation)
    given = _restore_shown_texts(collection, given, view)
    given = {name: value for name, value in given.items() if name != "warnings"}  # of the write before

    def drop_unchanged(values: Mapping[str, Any], seen: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
        return {
            name: value
            for name, value in values.items()
            # Compared as JSON, where true is not 1.
            if name in names or name not in seen or orjson.dumps(value) != orjson.dumps(seen[name])
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
    """List versions"""
    versions = queries.list_versions(
        snapshot, context.path_collection, context.qualify(path.id), get_position(snapshot).revision
    )
    return {"items": [serialize_version(change) for change in versions]}


def read_version(context: RequestContext, path: _VersionParameters, snapshot: Snapshot) -> dict[str, Any]:
    """Get a version"""
    change = queries.get_version(snapshot, context.path_collection, context.qualify(path.id), path.version)
    return serialize_record(change, context.presentation)


def compare_versions(context: RequestContext, query: _DiffParameters, snapshot: Snapshot) -> dict[str, Any]:
    """Compare two versions"""
    record_id = context.qualify(query.id)
    differences = queries.diff_versions(snapshot, context.path_collection, record_id, query.from_, query.to)
    items = [serialize_difference(difference) for difference in differences]
    return {"from": query.from_, "to": query.to, "items": items}


def revert(
    context: RequestContext, path: _WriteParameters, body: RevertRequest, transaction: Transaction
) -> WriteResponse:
    """Revert to a version"""
    record_id = context.qualify(path.id)
    past = queries.get_version(transaction.flush(), context.path_collection, record_id, body.version)
    current = context.require_expected(get_record(transaction.flush(), record_id))
    writer = RecordWriter(transaction, context.caller, summary=path.summary)
    return to_write_response(context, writer.revert(past, current.version))


def merge(
    context: RequestContext, path: _WriteParameters, body: MergeRequest, transaction: Transaction
) -> WriteResponse:
    """Merge into another record"""
    before = context.find_expected(path.id, transaction)
    writer = RecordWriter(transaction, context.caller, summary=path.summary)
    return to_write_response(context, writer.merge(before, body.into))


def list_relations(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """List relations"""
    return {
        "items": queries.list_related(
            snapshot, get_published(snapshot, context.path_collection, context.qualify(path.id)).change
        )
    }


def list_ancestors(context: RequestContext, query: _HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    """List ancestors"""
    record = get_published(snapshot, context.path_collection, context.qualify(query.id))
    return queries.list_hierarchy(snapshot, record.change, query.relation, upward=True)


def list_descendants(context: RequestContext, query: _HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    """List descendants"""
    record = get_published(snapshot, context.path_collection, context.qualify(query.id))
    return queries.list_hierarchy(snapshot, record.change, query.relation, upward=False)


def add_relation(
    context: RequestContext, path: _WriteParameters, body: RelateRequest, transaction: Transaction
) -> WriteResponse:
    """Add a relation"""
    before = context.find_expected(path.id, transaction)
    writer = RecordWriter(transaction, context.caller, summary=path.summary)
    return to_write_response(context, writer.add_relation(before, body.relation, body.target))


def remove_relation(context: RequestContext, query: _RelationParameters, transaction: Transaction) -> WriteResponse:
    """Remove a relation"""
    before = context.find_expected(query.id, transaction)
    writer = RecordWriter(transaction, context.caller, summary=query.summary)
    return to_write_response(context, writer.remove_relation(before, query.relation, query.target))


def to_write_response(context: RequestContext, result: VersionedRecord | Proposal, status: int = 200) -> WriteResponse:
    """Return the response to a write: the published record with any warnings, or the proposal."""
    warnings = serialize_warnings(() if isinstance(result, Proposal) else result.warnings, context.warnings)
    if isinstance(result, Proposal):
        return WriteResponse(202, {**serialize_proposal(result), **warnings}, f"{V1_PATH}/proposals/{result.id}")
    change = result.change
    location = build_record_url(result.record) if status == 201 else None
    content = {**serialize_record(change, context.presentation), **warnings}
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
_change = partial(_propose, find_warnings=_find_change_warnings)
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
        find_warnings=_find_warnings,
        permission=Permission.PROPOSE,
        has_vocabulary=True,
    ),
    _read("/{collection}/{id}", read_record, returns(models.Record)),
    _change("PUT", "/{collection}/{id}", replace_record, CHANGED | PROPOSED, body=_DRAFT),
    _change("PATCH", "/{collection}/{id}", patch_record, CHANGED | PROPOSED, body=_PATCH),
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
