"""Releases: states of the catalogue that have a name."""

from fastapi import APIRouter
from starlette.responses import Response

from lexarium.domain.release import Release
from lexarium.domain.timestamps import format_timestamp
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records import releases
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AskOf, BodyOf, CuratorOf, StoreOf, read_as
from lexarium.web.v1.schemas import NewRelease, answered, body_of

router = APIRouter(prefix="/releases", tags=["releases"])


@router.get("", summary="Every release, the newest first", responses=answered("Releases"))
def list_releases(database: StoreOf) -> Response:
    with database.read() as snapshot:
        return answers.read({"items": [_view(each) for each in releases.list_releases(snapshot)]})


@router.post(
    "",
    summary="Name the present state",
    status_code=201,
    responses=answered("Release", status=201, headers=("Location",)),
    openapi_extra=body_of("NewRelease"),
)
async def name_state(database: StoreOf, caller: CuratorOf, body: BodyOf, ask: AskOf) -> Response:
    given = read_as(NewRelease, body)

    def work(transaction: Transaction) -> WriteResponse:
        release = releases.create_release(transaction, caller, given.name, given.note)
        return WriteResponse(201, _view(release), f"{answers.PATH}/releases/{release.name}")

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.get("/{name}", summary="A release", responses=answered("Release", 404))
def read_release(database: StoreOf, name: str) -> Response:
    with database.read() as snapshot:
        return answers.read(_view(releases.get_release(snapshot, name)))


def _view(release: Release) -> dict[str, object]:
    return {
        "name": release.name,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": format_timestamp(release.created_at),
    }
