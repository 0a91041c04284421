"""Releases: states of the catalogue that have a name."""

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.responses import Response

from lexarium.domain.drafts import problems_of
from lexarium.domain.errors import Conflict, Invalid, NotFound
from lexarium.domain.stamps import now, text_of
from lexarium.domain.text import unstorable
from lexarium.service.once import Outcome
from lexarium.store import releases
from lexarium.store.releases import Release
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import BodyOf, CuratorOf, StoreOf
from lexarium.web.v1.schemas import NewRelease, answered, body_of

router = APIRouter(prefix="/releases", tags=["releases"])


@router.get("", summary="Every release, the newest first", responses=answered("Releases"))
def list_releases(database: StoreOf) -> Response:
    with database.read() as snapshot:
        return answers.read({"items": [_view(each) for each in releases.all_releases(snapshot)]})


@router.post(
    "",
    summary="Name the present state",
    status_code=201,
    responses=answered("Release", 409, status=201, headers=("Location",)),
    openapi_extra=body_of("NewRelease"),
)
async def name_state(database: StoreOf, caller: CuratorOf, body: BodyOf) -> Response:
    try:
        given = NewRelease.model_validate(body, strict=True, extra="forbid")
    except ValidationError as error:
        raise Invalid("This is not a valid release.", problems_of(error)) from None

    def work(transaction: Transaction) -> Outcome:
        if releases.find(transaction.connection, given.name):
            raise Conflict(f"There is a release {given.name!r} already.")
        release = Release(given.name, transaction.revision, given.note, caller.account.id, now())
        releases.add(transaction, release)
        return Outcome(201, _view(release), f"{answers.PATH}/releases/{release.name}")

    return await answers.written(database, work)


@router.get("/{name}", summary="A release", responses=answered("Release", 404))
def read_release(database: StoreOf, name: str) -> Response:
    with database.read() as snapshot:
        found = None if unstorable(name) else releases.find(snapshot, name)
    if found is None:
        raise NotFound(f"There is no release {name!r}.")
    return answers.read(_view(found))


def _view(release: Release) -> dict[str, object]:
    return {
        "name": release.name,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": text_of(release.made),
    }
