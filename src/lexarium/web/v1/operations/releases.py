"""Create and read releases."""

from pydantic import Field
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.release import Release
from lexarium.domain.timestamps import format_timestamp
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.v1.operation import Parameters, ReadOperation, RequestContext, WriteOperation, json_body, returns
from lexarium.web.v1.request_models import NewReleaseRequest
from lexarium.web.v1.responses import V1_PATH, json_response


class ByName(Parameters):
    """The name of a release."""

    name: str = Field(description="Its name.")


def list_releases(context: RequestContext, _: Parameters, snapshot: Snapshot) -> Response:
    return json_response({"items": [_to_dict(release) for release in releases.list_releases(snapshot)]})


def create_release(
    context: RequestContext, _: Parameters, body: NewReleaseRequest, transaction: Transaction
) -> WriteResponse:
    release = releases.create_release(transaction, context.caller, body.name, body.note)
    return WriteResponse(201, _to_dict(release), f"{V1_PATH}/releases/{release.name}")


def read_release(context: RequestContext, path: ByName, snapshot: Snapshot) -> Response:
    return json_response(_to_dict(releases.get_release(snapshot, path.name)))


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
    ReadOperation("GET", "/releases", "list_releases", "Every release, the newest first",
                  list_releases, returns(models.Releases)),
    WriteOperation("POST", "/releases", "name_state", "Name the present state",
                   create_release, returns(models.Release, "Location", status=201), permission=Permission.PUBLISH,
                   body=json_body(NewReleaseRequest)),
    ReadOperation("GET", "/releases/{name}", "read_release", "A release",
                  read_release, returns(models.Release), ByName, errors=(404,)),
)
# fmt: on
