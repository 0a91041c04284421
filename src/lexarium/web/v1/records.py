"""The records of each collection: list, create, read, replace, patch, retire."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator
from starlette.responses import Response
from starlette.routing import Route

from lexarium.domain.edit import to_draft
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.timestamps import parse_timestamp
from lexarium.services.curation import submissions
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records import queries
from lexarium.services.records.lookup import VersionedRecord, get_published
from lexarium.services.serializers import list_record_fields, serialize_proposal, serialize_record
from lexarium.store.revisions import ListQuery
from lexarium.store.transaction import Transaction
from lexarium.web.http.write_requests import build_idempotency_request
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import (
    AskOf,
    BodyOf,
    CallerOf,
    MatchOf,
    StoreOf,
    identified,
    json_body,
    refuse_parameters,
)
from lexarium.web.v1.schemas import CLOSED, GONE, PROPOSED, answered, body_of, draft_name, title

Release = Annotated[str | None, Query(max_length=100, description="Read a release instead of the present.")]
AsOf = Annotated[int | None, Query(ge=0, le=2**53, description="Read an earlier revision instead of the present.")]
Sort = Literal["name", "id", "updated", "-name", "-id", "-updated"]
_LARGEST_PAGE = 1_000


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds the character U+0000, which no record has.")
    return text


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _few(ids: str) -> str:
    if len(_listed(ids)) > _LARGEST_PAGE:
        raise ValueError(f"should have at most {_LARGEST_PAGE}.")
    return ids


def _moment(text: str) -> str:
    if parse_timestamp(text) is None:
        raise ValueError("should be like 2026-01-31T12:00:00.")
    return text


def _fields_of(collection: Collection) -> Callable[[str], str]:
    known = list_record_fields(collection)

    def check(text: str) -> str:
        named = _listed(text)
        unknown = [name for name in named if name not in known]
        if unknown or not named:
            wrong = f"names {', '.join(unknown)}, which there is not" if unknown else "should name at least one"
            raise ValueError(f"{wrong}; there are {', '.join(known)}.")
        return text

    return check


Limit = Annotated[int, Query(ge=1, le=_LARGEST_PAGE)]
Cursor = Annotated[str | None, Query(max_length=1_000, description="`next` of the page before.")]
Name = Annotated[
    str | None, Query(max_length=10_000, description="With this name, ignoring case."), AfterValidator(_storable)
]
Ids = Annotated[
    str | None,
    Query(max_length=100_000, description="Only these, separated by commas."),
    AfterValidator(_storable),
    AfterValidator(_few),
]
Text = Annotated[str | None, Query(max_length=100), AfterValidator(_storable)]
ClassOf = Annotated[str | None, Query(alias="class", max_length=100), AfterValidator(_storable)]
StateOf = Annotated[RecordState, Query(description="published, retired or merged.")]
Since = Annotated[str | None, Query(max_length=40, description="A date and time, UTC."), AfterValidator(_moment)]
ReplacedBy = Annotated[str | None, Query(max_length=100, description="The record to use instead.")]


@cache
def routers() -> list[APIRouter]:
    """A router a collection, and one for any record whatever its collection."""
    return [_any_router(), *(_router(collection) for collection in COLLECTIONS.values())]


def swift_routes() -> list[Route]:
    """Creating records without FastAPI's help. What is wrong is left to the application around to tell."""
    return [_swift_route(collection) for collection in COLLECTIONS.values()]


def _swift_route(collection: Collection) -> Route:
    create_record = _creator(collection)

    async def create(request: Request) -> Response:
        parts = request.app.state
        refuse_parameters(request)
        caller = await identified(request, parts.limits)
        body = await json_body(request, parts.limits)
        ask = build_idempotency_request(
            request, request.headers.get("idempotency-key"), await parts.limits.read_body(request)
        )
        answer: Response = await create_record(parts.database, caller, body, ask)
        return answer

    return Route(f"{answers.PATH}/{collection.name}", create, methods=["POST"])


def _any_router() -> APIRouter:
    router = APIRouter(prefix="/records", tags=["service"])
    summary = "Any record, whatever its collection"
    responses = answered("AnyRecord", *GONE)
    router.get("/{id}", name="any_record", summary=summary, responses=responses)(_reader(None))
    return router


def _router(collection: Collection) -> APIRouter:
    name, draft = collection.name, draft_name(collection.name)
    router = APIRouter(prefix=f"/{name}", tags=[name])
    record = title(name)
    made = answered(record, status=201, headers=("ETag", "Location")) | PROPOSED
    changed = answered(record, *CLOSED, headers=("ETag",)) | PROPOSED
    listed, read = answered(f"{record}Page", 404, headers=("Link",)), answered(record, *GONE)
    retired = answered(record, 403, *CLOSED, headers=("ETag",))
    router.get("", summary=f"List {name} records", responses=listed)(_lister(collection))
    router.post("", summary=f"Create a {name}", status_code=201, responses=made, openapi_extra=body_of(draft))(
        _creator(collection)
    )
    router.get("/{id}", summary=f"Read a {name}", responses=read)(_reader(collection))
    router.put("/{id}", summary=f"Replace a {name}", responses=changed, openapi_extra=body_of(draft))(
        _replacer(collection)
    )
    router.patch(
        "/{id}", summary=f"Change fields of a {name}", responses=changed, openapi_extra=body_of(draft, patch=True)
    )(_patcher(collection))
    router.delete("/{id}", summary=f"Retire a {name}", responses=retired)(_retirer(collection))
    return router


Handler = Callable[..., Any]


def _lister(collection: Collection) -> Handler:
    Fields = Annotated[  # noqa: N806
        str | None,
        Query(max_length=1_000, description="Only these, separated by commas."),
        AfterValidator(_fields_of(collection)),
    ]

    def list_records(
        request: Request,
        database: StoreOf,
        limit: Limit = 100,
        cursor: Cursor = None,
        sort: Sort = "name",
        fields: Fields = None,
        name: Name = None,
        ids: Ids = None,
        class_: ClassOf = None,
        user: Text = None,
        state: StateOf = RecordState.PUBLISHED,
        flagged: bool | None = None,
        updated_since: Since = None,
        release: Release = None,
        as_of: AsOf = None,
    ) -> Response:
        with database.read() as snapshot:
            listing = ListQuery(
                collection=collection.name,
                revision=queries.resolve_revision(snapshot, release, as_of),
                sort=sort.removeprefix("-"),
                descending=sort.startswith("-"),
                state=state,
                ids=None if ids is None else tuple(_listed(ids)),
                name_key=None if name is None else name_key(name),
                class_id=class_,
                owner=user,
                flagged=flagged,
                updated_since=None if updated_since is None else parse_timestamp(updated_since),
            )
            of_the_present = release is None and as_of is None
            page = queries.list_records(snapshot, database.counts, listing, cursor, limit, is_current=of_the_present)
        return _paged(request, page, fields)

    return list_records


def _paged(request: Request, page: queries.RecordPage, fields: str | None) -> Response:
    names = None if fields is None else _listed(fields)
    views = [serialize_record(change) for change in page.items]
    items = views if names is None else [{name: view[name] for name in names} for view in views]
    headers = {}
    if page.next_cursor:
        there = request.url.include_query_params(cursor=page.next_cursor)
        headers["link"] = f'<{there.path}?{there.query}>; rel="next"'
    return answers.read({"items": items, "next": page.next_cursor, "total": page.total}, **headers)


def _reader(collection: Collection | None) -> Handler:
    def read_record(database: StoreOf, id: str, release: Release = None, as_of: AsOf = None) -> Response:
        if release is None and as_of is None:
            return answers.record(queries.get_current_record(database, id, collection))
        with database.read() as snapshot:
            change = queries.get_record_at(snapshot, id, queries.resolve_revision(snapshot, release, as_of), collection)
        return answers.record(change)

    return read_record


def _creator(collection: Collection) -> Handler:
    async def create_record(database: StoreOf, caller: CallerOf, body: BodyOf, ask: AskOf) -> Response:
        def work(transaction: Transaction) -> WriteResponse:
            return told(submissions.submit_record(transaction, caller, collection, body), 201)

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    return create_record


def _replacer(collection: Collection) -> Handler:
    async def replace_record(
        database: StoreOf, caller: CallerOf, id: str, match: MatchOf, body: BodyOf, ask: AskOf
    ) -> Response:
        def work(transaction: Transaction) -> WriteResponse:
            before = match.agreed(get_published(transaction.connection, collection, id))
            return told(submissions.submit_update(transaction, caller, before, _writable(before, body)))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    return replace_record


def _patcher(collection: Collection) -> Handler:
    async def patch_record(
        database: StoreOf, caller: CallerOf, id: str, match: MatchOf, body: BodyOf, ask: AskOf
    ) -> Response:
        def work(transaction: Transaction) -> WriteResponse:
            before = match.agreed(get_published(transaction.connection, collection, id))
            return told(submissions.submit_patch(transaction, caller, before, _writable(before, body)))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    return patch_record


def _retirer(collection: Collection) -> Handler:
    async def retire_record(
        database: StoreOf, caller: CallerOf, id: str, match: MatchOf, ask: AskOf, replaced_by: ReplacedBy = None
    ) -> Response:
        def work(transaction: Transaction) -> WriteResponse:
            before = match.agreed(get_published(transaction.connection, collection, id))
            return told(submissions.submit_retirement(transaction, caller, before, replaced_by))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    return retire_record


def _writable(before: VersionedRecord, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given without the server's own fields, where they are as the record has them.

    A record that was read and is sent back has them all.
    """
    view, draft = serialize_record(before.change, before.record), to_draft(before.record)
    return {
        name: value
        for name, value in given.items()
        # As JSON, where true is not 1.
        if name in draft or name not in view or orjson.dumps(value) != orjson.dumps(view[name])
    }


def told(made: VersionedRecord | Proposal, status: int = 200) -> WriteResponse:
    """The answer to a write, published or waiting for a curator."""
    return proposed(made) if isinstance(made, Proposal) else published(made, status)


def published(saved: VersionedRecord, status: int = 200) -> WriteResponse:
    """The answer to a write that is published; with warnings, where there are any."""
    change = saved.change
    warnings = {"warnings": saved.warnings} if saved.warnings else {}
    location = answers.address(change.collection, change.record_id) if status == 201 else None
    return WriteResponse(
        status, {**serialize_record(change, saved.record), **warnings}, location, answers.etag_of(change.version)
    )


def proposed(proposal: Proposal) -> WriteResponse:
    """The answer to a write that waits for a curator."""
    return WriteResponse(202, serialize_proposal(proposal), f"{answers.PATH}/proposals/{proposal.id}")
