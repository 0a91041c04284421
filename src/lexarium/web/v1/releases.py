"""Releases: states of the catalogue that have a name."""

from fastapi import APIRouter
from starlette.responses import Response

from lexarium.domain.stamps import text_of
from lexarium.service import releases
from lexarium.service.once import Outcome, once
from lexarium.store.releases import Release
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AskOf, BodyOf, CuratorOf, StoreOf, read_as
from lexarium.web.v1.schemas import NewRelease, answered, body_of

router = APIRouter(prefix="/releases", tags=["releases"])


@router.get("", summary="Every release, the newest first", responses=answered("Releases"))
def list_releases(database: StoreOf) -> Response:
    with database.read() as snapshot:
        return answers.read({"items": [_view(each) for each in releases.newest_first(snapshot)]})


@router.post(
    "",
    summary="Name the present state",
    status_code=201,
    responses=answered("Release", status=201, headers=("Location",)),
    openapi_extra=body_of("NewRelease"),
)
async def name_state(database: StoreOf, caller: CuratorOf, body: BodyOf, ask: AskOf) -> Response:
    given = read_as(NewRelease, body)

    def work(transaction: Transaction) -> Outcome:
        release = releases.name_present(transaction, caller, given.name, given.note)
        return Outcome(201, _view(release), f"{answers.PATH}/releases/{release.name}")

    return await answers.written(database, once(caller, ask, work))


@router.get("/{name}", summary="A release", responses=answered("Release", 404))
def read_release(database: StoreOf, name: str) -> Response:
    with database.read() as snapshot:
        return answers.read(_view(releases.find(snapshot, name)))


def _view(release: Release) -> dict[str, object]:
    return {
        "name": release.name,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": text_of(release.made),
    }
