"""Create and read releases."""

from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from lexarium.client import models
from lexarium.domain.release import Release
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.request_models import PlainText
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns


class ByName(Parameters):
    """The name of a release."""

    name: str = Field(description="Its name.")


class NewReleaseRequest(BaseModel, defer_build=True):
    """A name for the present state."""

    name: Annotated[str, AfterValidator(releases.validate_release_name)] = Field(
        description="What it is cited by.", json_schema_extra={"pattern": f"^{releases.NAME_PATTERN.pattern}$"}
    )
    note: PlainText = Field("", max_length=5_000, description="What there is to say of it.")


def list_releases(context: RequestContext, snapshot: Snapshot) -> dict[str, Any]:
    """Every release, the newest first"""
    return {"items": [_to_dict(release) for release in releases.list_releases(snapshot, context.vocabulary.slug)]}


def create_release(context: RequestContext, body: NewReleaseRequest, transaction: Transaction) -> WriteResponse:
    """Name the present state"""
    release = releases.create_release(transaction, context.caller, body.name, body.note, context.vocabulary.slug)
    return WriteResponse(201, _to_dict(release), f"{context.request.url.path}/{release.local_name}")


def read_release(context: RequestContext, path: ByName, snapshot: Snapshot) -> models.Release:
    """A release"""
    return _to_dict(releases.get_release(snapshot, path.name, context.vocabulary.slug))


def _to_dict(release: Release) -> models.Release:
    return {
        "name": release.local_name,
        "vocabulary": release.vocabulary,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": format_timestamp(release.created_at),
    }


_CREATED = returns(models.Release, "Location", status=201)
_operation = partial(Operation, has_vocabulary=True)
OPERATIONS = (
    _operation("GET", "/releases", list_releases, returns(models.Releases)),
    _operation("POST", "/releases", create_release, _CREATED, name="name_state", permission=Permission.PUBLISH),
    _operation("GET", "/releases/{name}", read_release, returns(models.Release)),
)
