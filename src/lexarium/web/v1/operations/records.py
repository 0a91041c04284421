"""List, create, read, replace, patch and retire records."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, ValidationInfo
from starlette.responses import Response

from lexarium.client.models import Proposal as ProposalDict
from lexarium.client.models import Record, RecordPage
from lexarium.domain.edit import to_draft
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ListQuery, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.timestamps import parse_timestamp
from lexarium.services.curation import submissions
from lexarium.services.records import queries
from lexarium.services.records.lookup import VersionedRecord, get_published
from lexarium.services.serializers import list_record_fields, serialize_proposal, serialize_record
from lexarium.store.transaction import Transaction
from lexarium.web.http.write_response import WriteResponse
from lexarium.web.v1.operation import (
    READ_ERRORS,
    WRITE_ERRORS,
    ById,
    Operation,
    Parameters,
    RecordDraft,
    RequestContext,
    WriteOperation,
    raw_body,
    returns,
    split_commas,
)
from lexarium.web.v1.responses import V1_PATH, json_response, record_path, record_response, version_etag

_MAX_PAGE = 1_000
ReleaseParam = Annotated[str | None, Field(max_length=100, description="Read a release instead of the present.")]
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


class ListParameters(Parameters):
    """Parameters of a list of records."""

    limit: int = Field(100, ge=1, le=_MAX_PAGE, description="How many at most.")
    cursor: str | None = Field(None, max_length=1_000, description="`next` of the page before.")
    sort: Literal["name", "id", "updated", "-name", "-id", "-updated"] = Field(
        "name", description="The order; with `-` the other way round."
    )
    fields_: Annotated[str | None, AfterValidator(_validate_fields)] = Field(
        None, alias="fields", max_length=1_000, description="Only these, separated by commas."
    )
    name: Annotated[str | None, AfterValidator(_reject_nul)] = Field(
        None, max_length=10_000, description="With this name, ignoring case."
    )
    ids: Annotated[str | None, AfterValidator(_reject_nul), AfterValidator(_limit_ids)] = Field(
        None, max_length=100_000, description="Only these, separated by commas."
    )
    class_: Annotated[str | None, AfterValidator(_reject_nul)] = Field(
        None, alias="class", max_length=100, description="Only of the class with this id, `ctp_…`."
    )
    user: Annotated[str | None, AfterValidator(_reject_nul)] = Field(
        None, max_length=100, description="Only those that the user with this id, `usr_…`, owns."
    )
    state: RecordState = Field(RecordState.PUBLISHED, description="published, retired or merged.")
    flagged: bool | None = Field(
        None, description="Only those that wait for a curator's look, or only those that do not."
    )
    updated_since: Annotated[str | None, AfterValidator(_validate_timestamp)] = Field(
        None, max_length=40, description="A date and time, UTC."
    )
    release: ReleaseParam = None
    as_of: AsOfParam = None


class ReadParameters(ById):
    """Parameters of one record."""

    release: ReleaseParam = None
    as_of: AsOfParam = None


class RetireParameters(ById):
    """Parameters of retiring a record."""

    replaced_by: str | None = Field(None, max_length=100, description="The record to use instead.")


def list_records(context: RequestContext, query: ListParameters) -> Response:
    database = context.services.database
    with database.read() as snapshot:
        listing = ListQuery(
            collection=context.collection.name,
            revision=queries.resolve_revision(snapshot, query.release, query.as_of),
            sort=query.sort.removeprefix("-"),
            descending=query.sort.startswith("-"),
            state=query.state,
            ids=None if query.ids is None else tuple(split_commas([query.ids])),
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
    items = [serialize_record(change) for change in page.items]
    if query.fields_ is not None:
        names = split_commas([query.fields_])
        items = [{name: item[name] for name in names} for item in items]
    headers = {}
    if page.next_cursor:
        url = context.request.url.include_query_params(cursor=page.next_cursor)
        headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    return json_response({"items": items, "next": page.next_cursor, "total": page.total}, **headers)


def read_record(context: RequestContext, query: ReadParameters) -> Response:
    return _read(context, query, context.collection)


def read_any_record(context: RequestContext, query: ReadParameters) -> Response:
    return _read(context, query, None)


def _read(context: RequestContext, query: ReadParameters, collection: Collection | None) -> Response:
    database = context.services.database
    if query.release is None and query.as_of is None:
        return record_response(queries.get_current_record(database, query.id, collection))
    with database.read() as snapshot:
        revision = queries.resolve_revision(snapshot, query.release, query.as_of)
        return record_response(queries.get_record_at(snapshot, query.id, revision, collection))


def create_record(
    context: RequestContext, _: Parameters, draft: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    return to_write_response(
        submissions.open_writer(transaction, context.caller).create(context.collection, draft), 201
    )


def replace_record(
    context: RequestContext, path: ById, draft: dict[str, Any], transaction: Transaction
) -> WriteResponse:
    before = _find_matching(context, path.id, transaction)
    writer = submissions.open_writer(transaction, context.caller)
    return to_write_response(writer.update(before, _drop_unchanged_system_fields(before, draft)))


def patch_record(context: RequestContext, path: ById, patch: dict[str, Any], transaction: Transaction) -> WriteResponse:
    before = _find_matching(context, path.id, transaction)
    writer = submissions.open_writer(transaction, context.caller)
    return to_write_response(writer.patch(before, _drop_unchanged_system_fields(before, patch)))


def retire_record(context: RequestContext, query: RetireParameters, transaction: Transaction) -> WriteResponse:
    before = _find_matching(context, query.id, transaction)
    return to_write_response(submissions.open_writer(transaction, context.caller).retire(before, query.replaced_by))


def _find_matching(context: RequestContext, identifier: str, transaction: Transaction) -> VersionedRecord:
    """Return the record, at a version that `If-Match` names."""
    return context.if_match.require(get_published(transaction.flush(), context.collection, identifier))


def _drop_unchanged_system_fields(before: VersionedRecord, given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the server's own fields where they are as the record has them: it may be sent back as it was read."""
    view, draft = serialize_record(before.change, before.record), to_draft(before.record)
    return {
        name: value
        for name, value in given.items()
        # Compared as JSON, where true is not 1.
        if name in draft or name not in view or orjson.dumps(value) != orjson.dumps(view[name])
    }


def to_write_response(result: VersionedRecord | Proposal, status: int = 200) -> WriteResponse:
    """Return the response of a write that is published, or waits for a curator."""
    return to_proposed_response(result) if isinstance(result, Proposal) else to_published_response(result, status)


def to_published_response(saved: VersionedRecord, status: int = 200) -> WriteResponse:
    """Return the response of a write that is published, with warnings if there are any."""
    change = saved.change
    warnings = {"warnings": saved.warnings} if saved.warnings else {}
    location = record_path(change.collection, change.record_id) if status == 201 else None
    return WriteResponse(
        status, {**serialize_record(change, saved.record), **warnings}, location, version_etag(change.version)
    )


def to_proposed_response(proposal: Proposal) -> WriteResponse:
    """Return the response of a write that waits for a curator."""
    return WriteResponse(202, serialize_proposal(proposal), f"{V1_PATH}/proposals/{proposal.id}")


PROPOSED = returns(ProposalDict, "Location", status=202)
CHANGED = returns(Record, "ETag")

# fmt: off
OPERATIONS = (
    Operation("GET", "/{collection}", "list_records", "List {collection} records",
              list_records, returns(RecordPage, "Link"), ListParameters, errors=(404,)),
    WriteOperation("POST", "/{collection}", "create_record", "Create a {collection}",
                   create_record, returns(Record, "ETag", "Location", status=201) | PROPOSED,
                   body=raw_body(RecordDraft)),
    Operation("GET", "/{collection}/{id}", "read_record", "Read a {collection}",
              read_record, returns(Record), ReadParameters, errors=READ_ERRORS),
    WriteOperation("PUT", "/{collection}/{id}", "replace_record", "Replace a {collection}",
                   replace_record, CHANGED | PROPOSED, ById, if_match=True, body=raw_body(RecordDraft),
                   errors=WRITE_ERRORS),
    WriteOperation("PATCH", "/{collection}/{id}", "patch_record", "Change fields of a {collection}",
                   patch_record, CHANGED | PROPOSED, ById, if_match=True, body=raw_body(RecordDraft, patch=True),
                   errors=WRITE_ERRORS),
    WriteOperation("DELETE", "/{collection}/{id}", "retire_record", "Retire a {collection}",
                   retire_record, CHANGED | PROPOSED, RetireParameters, if_match=True, errors=(403, *WRITE_ERRORS)),
)
# fmt: on
