"""What a record was: every version, what changed between two, and the way back."""

from functools import cache
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records import queries
from lexarium.services.serializers import serialize_difference, serialize_record, serialize_version
from lexarium.store.position import read_position
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.records import published
from lexarium.web.v1.requests import AskOf, BodyOf, CuratorOf, MatchOf, StoreOf, read_as
from lexarium.web.v1.schemas import CLOSED, Merge, Revert, answered, body_of, title

_LAST = 2**31 - 1
Version = Annotated[int, Query(ge=1, le=_LAST)]


@cache
def routers() -> list[APIRouter]:
    """A router a collection."""
    return [_router(collection) for collection in COLLECTIONS.values()]


def _router(collection: Collection) -> APIRouter:
    router = APIRouter(prefix=f"/{collection.name}/{{id}}", tags=[collection.name])
    record = title(collection.name)

    @router.get("/history", summary="Every version, the newest first", responses=answered("History", 404))
    def history(database: StoreOf, id: str) -> Response:
        with database.read() as snapshot:
            found = queries.list_versions(snapshot, collection, id, read_position(snapshot).revision)
        return answers.read({"items": [serialize_version(change) for change in found]})

    @router.get("/history/{version}", summary="One version", responses=answered(record, 404))
    def one_version(database: StoreOf, id: str, version: Annotated[int, Path(ge=1, le=_LAST)]) -> Response:
        with database.read() as snapshot:
            return answers.read(serialize_record(queries.get_version(snapshot, collection, id, version)))

    @router.get("/diff", summary="What differs between two versions, field by field", responses=answered("Diff", 404))
    def diff(database: StoreOf, id: str, from_: Annotated[Version, Query(alias="from")], to: Version) -> Response:
        with database.read() as snapshot:
            found = queries.diff_versions(snapshot, collection, id, from_, to)
        return answers.read({"from": from_, "to": to, "items": [serialize_difference(each) for each in found]})

    @router.post(
        "/revert",
        summary="Make it what it was at a version, as a new version",
        responses=answered(record, 404, headers=("ETag",)),
        openapi_extra=body_of("Revert"),
    )
    async def revert(
        database: StoreOf, caller: CuratorOf, id: str, match: MatchOf, body: BodyOf, ask: AskOf
    ) -> Response:
        to = read_as(Revert, body).version

        def work(transaction: Transaction) -> WriteResponse:
            desk = RecordWriter(transaction, caller)
            past = queries.get_version(transaction.connection, collection, id, to)
            return published(desk.revert(past, match.agreed(desk.get_record(id)).version))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    @router.post(
        "/merge",
        summary="Merge it into another; answers the survivor",
        responses=answered(record, *CLOSED, headers=("ETag",)),
        openapi_extra=body_of("Merge"),
    )
    async def merge(
        database: StoreOf, caller: CuratorOf, id: str, match: MatchOf, body: BodyOf, ask: AskOf
    ) -> Response:
        into = read_as(Merge, body).into

        def work(transaction: Transaction) -> WriteResponse:
            desk = RecordWriter(transaction, caller)
            return published(desk.merge(match.agreed(desk.get_published(collection, id)), into))

        return await answers.written(database, make_idempotent(caller.account.id, ask, work))

    return router
