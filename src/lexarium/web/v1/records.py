"""The records of each collection: list, create, read, replace, patch, retire."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editing import draft_of, merge_patch
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.proposals import Proposal
from lexarium.domain.stamps import milliseconds_of
from lexarium.domain.text import name_key
from lexarium.service import looking, proposals
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, checked, refuse_stale
from lexarium.service.once import Outcome, once
from lexarium.service.views import proposal_view, record_view
from lexarium.store.transaction import Transaction
from lexarium.store.versions import Listing
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AskOf, BodyOf, CallerOf, StoreOf, VersionOf
from lexarium.web.v1.schemas import GONE, PROPOSED, UNCHANGED, answered, body_of, draft_name, title

Release = Annotated[str | None, Query(max_length=100, description="Read a release instead of the present.")]
AsOf = Annotated[int | None, Query(ge=0, le=2**53, description="Read an earlier revision instead of the present.")]
_LARGEST_PAGE = 1_000

Sort = Literal["name", "id", "updated", "-name", "-id", "-updated"]


def routers() -> list[APIRouter]:
    """A router a collection."""
    return [_router(collection) for collection in COLLECTIONS.values()]


def _router(collection: Collection) -> APIRouter:
    router = APIRouter(prefix=f"/{collection.name}", tags=[collection.name])
    record, draft = title(collection.name), draft_name(collection.name)

    @router.get(
        "", summary=f"List {collection.name} records", responses=answered(f"{record}Page", 404, headers=("Link",))
    )
    def list_records(
        request: Request,
        database: StoreOf,
        limit: Annotated[int, Query(ge=1, le=_LARGEST_PAGE)] = 100,
        cursor: Annotated[str | None, Query(max_length=5_000, description="`next` of the page before.")] = None,
        sort: Sort = "name",
        fields: Annotated[str | None, Query(max_length=1_000, description="Only these, separated by commas.")] = None,
        name: Annotated[str | None, Query(max_length=1_000, description="With this name, ignoring case.")] = None,
        ids: Annotated[str | None, Query(max_length=100_000, description="Only these, separated by commas.")] = None,
        class_: Annotated[str | None, Query(alias="class", max_length=100)] = None,
        user: Annotated[str | None, Query(max_length=100)] = None,
        state: Annotated[State, Query(description="published, retired or merged.")] = State.PUBLISHED,
        flagged: bool | None = None,
        updated_since: Annotated[str | None, Query(max_length=40, description="A date and time, UTC.")] = None,
        release: Release = None,
        as_of: AsOf = None,
    ) -> Response:
        wanted = tuple(part for part in (ids or "").split(",") if part)
        if len(wanted) > _LARGEST_PAGE:
            raise Invalid("Too many ids.", [Problem("ids", f"should have at most {_LARGEST_PAGE}.")])
        for parameter, value in (("name", name), ("ids", ids), ("class", class_), ("user", user)):
            if value is not None and "\x00" in value:
                raise Invalid("This cannot be looked for.", [Problem(parameter, "holds the character U+0000.")])
        with database.read() as snapshot:
            listing = Listing(
                collection=collection.name,
                revision=looking.revision_of(snapshot, release, as_of),
                sort=sort.removeprefix("-"),
                descending=sort.startswith("-"),
                state=state,
                ids=wanted,
                name_key=None if name is None else name_key(name),
                class_id=class_,
                owner=user,
                flagged=flagged,
                updated_since=_moment(updated_since),
            )
            page = looking.page(snapshot, listing, cursor, limit)
        items = [_chosen(record_view(change), fields) for change in page.items]
        headers = {}
        if page.next:
            there = request.url.include_query_params(cursor=page.next)
            headers["link"] = f'<{there.path}?{there.query}>; rel="next"'
        return answers.read({"items": items, "next": page.next, "total": page.total}, **headers)

    @router.post(
        "",
        summary=f"Create a {collection.name}",
        status_code=201,
        responses=answered(record, status=201, headers=("ETag", "Location")) | PROPOSED,
        openapi_extra=body_of(draft),
    )
    async def create_record(database: StoreOf, caller: CallerOf, body: BodyOf, ask: AskOf) -> Response:
        def work(transaction: Transaction) -> Outcome:
            if not caller.may(Deed.PUBLISH):
                return proposed(proposals.propose_record(transaction, caller, collection, body))
            saved = Desk(transaction, caller).create(collection, body)
            return published(saved, 201)

        return await answers.written(database, once(caller, ask, work))

    @router.get(
        "/{id}",
        summary=f"Read a {collection.name}",
        responses=answered(record, *GONE, headers=("ETag",)) | UNCHANGED,
    )
    def read_record(
        database: StoreOf,
        id: str,
        release: Release = None,
        as_of: AsOf = None,
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        with database.read() as snapshot:
            change = looking.record(snapshot, id, looking.revision_of(snapshot, release, as_of), collection)
        return answers.record(change, if_none_match)

    @router.put(
        "/{id}",
        summary=f"Replace a {collection.name}",
        responses=answered(record, *GONE, headers=("ETag",)) | PROPOSED,
        openapi_extra=body_of(draft),
    )
    async def replace_record(
        database: StoreOf, caller: CallerOf, id: str, version: VersionOf, body: BodyOf
    ) -> Response:
        return await _change(database, caller, collection, id, version, lambda _: body)

    @router.patch(
        "/{id}",
        summary=f"Change fields of a {collection.name}",
        responses=answered(record, *GONE, headers=("ETag",)) | PROPOSED,
        openapi_extra=body_of(draft, patch=True),
    )
    async def patch_record(database: StoreOf, caller: CallerOf, id: str, version: VersionOf, body: BodyOf) -> Response:
        return await _change(database, caller, collection, id, version, lambda before: merge_patch(before, body), body)

    @router.delete(
        "/{id}", summary=f"Retire a {collection.name}", responses=answered(record, 403, *GONE, headers=("ETag",))
    )
    async def retire_record(
        database: StoreOf,
        caller: CallerOf,
        id: str,
        version: VersionOf,
        replaced_by: Annotated[str | None, Query(max_length=100, description="The record to use instead.")] = None,
    ) -> Response:
        def work(transaction: Transaction) -> Outcome:
            return published(Desk(transaction, caller).retire(collection, id, version, replaced_by))

        return await answers.written(database, work)

    return router


async def _change(
    database: StoreOf,
    caller: Caller,
    collection: Collection,
    identifier: str,
    version: int,
    draft: Callable[[dict[str, Any]], Mapping[str, Any]],
    patch: Mapping[str, Any] | None = None,
) -> Response:
    def work(transaction: Transaction) -> Outcome:
        if caller.may(Deed.PUBLISH):
            desk = Desk(transaction, caller)
            given = draft(draft_of(desk.current(collection, identifier, version).whole()))
            return published(desk.replace(collection, identifier, given, version))
        before = looking.record(transaction.connection, identifier, transaction.revision, collection)
        refuse_stale(before, version)
        given = _as_patch(transaction, before.whole(), draft({})) if patch is None else patch
        return proposed(proposals.propose_edit(transaction, caller, collection, identifier, given))

    return await answers.written(database, work)


def _as_patch(transaction: Transaction, before: Whole, given: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that puts a whole draft in place of what a record has."""
    draft = checked(transaction, before.collection, given, before)
    none_left = dict.fromkeys(before.relations)
    return {**draft, "relations": {**none_left, **draft["relations"]}}


def published(saved: Saved, status: int = 200) -> Outcome:
    """The answer to a write that is published."""
    change = saved.change
    location = answers.address(change.collection, change.record) if status == 201 else None
    return Outcome(status, record_view(change), location, answers.etag_of(change.version))


def proposed(proposal: Proposal) -> Outcome:
    """The answer to a write that waits for a curator."""
    return Outcome(202, proposal_view(proposal), f"{answers.PATH}/proposals/{proposal.id}")


def _chosen(view: dict[str, Any], fields: str | None) -> dict[str, Any]:
    if fields is None:
        return view
    names = [name.strip() for name in fields.split(",")]
    unknown = [name for name in names if name not in view]
    if unknown:
        raise Invalid(
            "Not every field is known.", [Problem("fields", f"names {', '.join(unknown)}, which there is not.")]
        )
    return {name: view[name] for name in names}


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    moment = milliseconds_of(text)
    if moment is None:
        raise Invalid("That is no date and time.", [Problem("updated_since", "should be like 2026-01-31T12:00:00.")])
    return moment
