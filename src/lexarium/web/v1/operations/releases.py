"""Create and read releases."""

from typing import Any

from pydantic import Field

from lexarium.client import models
from lexarium.domain.release import Release
from lexarium.domain.timestamps import format_timestamp
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns
from lexarium.web.v1.request_models import NewReleaseRequest
from lexarium.web.v1.responses import V1_PATH


class ByName(Parameters):
    """The name of a release."""

    name: str = Field(description="Its name.")


def list_releases(context: RequestContext, snapshot: Snapshot) -> dict[str, Any]:
    """Every release, the newest first"""
    return {"items": [_to_dict(release) for release in releases.list_releases(snapshot)]}


def create_release(context: RequestContext, body: NewReleaseRequest, transaction: Transaction) -> WriteResponse:
    """Name the present state"""
    release = releases.create_release(transaction, context.caller, body.name, body.note)
    return WriteResponse(201, _to_dict(release), f"{V1_PATH}/releases/{release.name}")


def read_release(context: RequestContext, path: ByName, snapshot: Snapshot) -> models.Release:
    """A release"""
    return _to_dict(releases.get_release(snapshot, path.name))


def _to_dict(release: Release) -> models.Release:
    return {
        "name": release.name,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": format_timestamp(release.created_at),
    }


# fmt: off
OPERATIONS = (
    Operation("GET", "/releases", list_releases, returns(models.Releases)),
    Operation("POST", "/releases", create_release, returns(models.Release, "Location", status=201), name="name_state",
              permission=Permission.PUBLISH),
    Operation("GET", "/releases/{name}", read_release, returns(models.Release)),
)
# fmt: on
