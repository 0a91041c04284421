"""Create and read releases."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.release import Release, ReleaseFile
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.formats.registry import EXPORT_FORMATS, Format
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import releases
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.release_files import send_release_file
from lexarium.web.request_models import PlainText
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns
from lexarium.web.v1.operations.export import EXPORT_RESPONSES
from lexarium.web.v1.responses import V1_PATH


class ByName(Parameters):
    """The name of a release."""

    name: str = Field(description="Name of the release.")


class FilePath(ByName):
    """The name of a release, and a format."""

    format: str = Field(description=f"One of {', '.join(EXPORT_FORMATS)}.")


class NewReleaseRequest(BaseModel, defer_build=True):
    """A release of the current state."""

    name: Annotated[str, AfterValidator(releases.validate_release_name)] = Field(
        description="Name to cite it by.", json_schema_extra={"pattern": f"^{releases.NAME_PATTERN.pattern}$"}
    )
    note: PlainText = Field("", max_length=5_000, description="Release notes.")


def list_releases(context: RequestContext, snapshot: Snapshot) -> dict[str, Any]:
    """List releases"""
    found = releases.list_releases(snapshot, context.vocabulary.slug)
    return {"items": [_to_dict(release, releases.list_files(snapshot, release)) for release in found]}


def create_release(context: RequestContext, body: NewReleaseRequest, transaction: Transaction) -> WriteResponse:
    """Create a release"""
    release = releases.create_release(transaction, context.caller, body.name, body.note, context.vocabulary.slug)
    return WriteResponse(201, _to_dict(release, {}), f"{context.request.url.path}/{release.local_name}")


def read_release(context: RequestContext, path: ByName, snapshot: Snapshot) -> models.Release:
    """Get a release"""
    release = releases.get_release(snapshot, path.name, context.vocabulary.slug)
    return _to_dict(release, releases.list_files(snapshot, release))


async def read_file(context: RequestContext, path: FilePath) -> Response:
    """Download a release

    The file is rendered and stored on the first request, which takes a while. Its bytes never change after that.
    """
    return await send_release_file(context.site, context.request, context.vocabulary.slug, path.name, path.format)


def _to_dict(release: Release, files: Mapping[str, ReleaseFile]) -> models.Release:
    return {
        "name": release.local_name,
        "vocabulary": release.vocabulary,
        "revision": release.revision,
        "note": release.note,
        "by": release.author,
        "at": format_timestamp(release.created_at),
        "files": [_to_file_dict(release, item, files.get(name)) for name, item in EXPORT_FORMATS.items()],
    }


def _to_file_dict(release: Release, format: Format, file: ReleaseFile | None) -> models.ReleaseFile:
    return {
        "format": format.name,
        "media_type": format.media_type if file is None else file.media_type,
        "url": f"{V1_PATH}/vocabularies/{release.vocabulary}/releases/{release.local_name}/files/{format.name}",
        "size": None if file is None else file.size,
        "sha256": None if file is None else file.sha256,
        "rendered": None if file is None else format_timestamp(file.created_at),
    }


_CREATED = returns(models.Release, "Location", status=201)
_operation = partial(Operation, has_vocabulary=True)
OPERATIONS = (
    _operation("GET", "/releases", list_releases, returns(models.Releases)),
    _operation("POST", "/releases", create_release, _CREATED, name="name_state", permission=Permission.PUBLISH),
    _operation("GET", "/releases/{name}", read_release, returns(models.Release)),
    _operation("GET", "/releases/{name}/files/{format}", read_file, EXPORT_RESPONSES, name="read_release_file"),
)
