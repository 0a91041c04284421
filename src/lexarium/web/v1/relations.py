"""How a record relates to others: both directions, and what is above and below it."""

from functools import cache
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records import queries
from lexarium.store.position import read_position
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.records import published
from lexarium.web.v1.requests import AskOf, BodyOf, CuratorOf, MatchOf, StoreOf, read_as
from lexarium.web.v1.schemas import CLOSED, GONE, Relate, answered, body_of, title

Relation = Annotated[str | None, Query(max_length=100, description="Only along this hierarchy; else along all.")]


@cache
def routers() -> list[APIRouter]:
    """A router a collection."""
    return [_router(collection) for collection in COLLECTIONS.values()]


def _router(collection: Collection) -> APIRouter:
    router = APIRouter(prefix=f"/{collection.name}/{{id}}", tags=[collection.name])
    record = title(collection.name)

    @router.get(
        "/relations", summary="Its relations, in both directions, with names", responses=answered("Relations", *GONE)
    )
    def relations(database: StoreOf, id: str) -> Response:
        with database.read() as snapshot:
            change = queries.get_record_at(snapshot, id, read_position(snapshot).revision, collection)
            return answers.read({"items": queries.list_related(snapshot, change)})

    @router.put(
        "/relations",
        summary="Add a relation",
        responses=answered(record, *CLOSED, headers=("ETag",)),
        openapi_extra=body_of("Relate"),
    )
    async def relate(
        database: StoreOf, caller: CuratorOf, id: str, match: MatchOf, body: BodyOf, ask: AskOf
    ) -> Response:
        given = read_as(Relate, body)

        def work(transaction: Transaction) -> WriteResponse:
            desk = RecordWriter(transaction, caller)
            before = match.agreed(desk.get_published(collection, id))
            return published(desk.add_relation(before, given.relation, given.target))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    @router.delete("/relations", summary="Take a relation away", responses=answered(record, *CLOSED, headers=("ETag",)))
    async def unrelate(
        database: StoreOf,
        caller: CuratorOf,
        id: str,
        match: MatchOf,
        ask: AskOf,
        relation: Annotated[str, Query(max_length=100)],
        target: Annotated[str, Query(max_length=2_000)],
    ) -> Response:
        def work(transaction: Transaction) -> WriteResponse:
            desk = RecordWriter(transaction, caller)
            before = match.agreed(desk.get_published(collection, id))
            return published(desk.remove_relation(before, relation, target))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    @router.get("/ancestors", summary="What is above it, the nearest first", responses=answered("Reached", *GONE))
    def ancestors(database: StoreOf, id: str, relation: Relation = None) -> Response:
        return _reached(database, id, relation, upward=True)

    @router.get("/descendants", summary="What is below it, the nearest first", responses=answered("Reached", *GONE))
    def descendants(database: StoreOf, id: str, relation: Relation = None) -> Response:
        return _reached(database, id, relation, upward=False)

    def _reached(database: StoreOf, identifier: str, relation: str | None, *, upward: bool) -> Response:
        with database.read() as snapshot:
            change = queries.get_record_at(snapshot, identifier, read_position(snapshot).revision, collection)
            return answers.read(queries.list_hierarchy(snapshot, change, relation, upward=upward))

    return router
