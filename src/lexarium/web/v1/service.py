"""The service itself, and any record by its identifier alone."""

from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from lexarium import __version__
from lexarium.domain.collections import COLLECTIONS
from lexarium.service import looking
from lexarium.service.reading import reading
from lexarium.web.v1 import answers
from lexarium.web.v1.records import AsOf, Release
from lexarium.web.v1.requests import LimitsOf, StoreOf
from lexarium.web.v1.schemas import GONE, UNCHANGED, answered

router = APIRouter(tags=["service"])


@router.get("", summary="What the service holds, and where to go on", responses=answered("Service"))
def service(database: StoreOf, limits: LimitsOf) -> Response:
    with reading(database) as now:
        counts = now.counts()
    return answers.read(
        {
            "service": "lexarium",
            "version": __version__,
            "revision": now.position.revision,
            "counts": {name: counts.get(name, 0) for name in COLLECTIONS},
            "limits": {
                "body_bytes": limits.body_bytes,
                **{
                    f"{name}.{field}": mark.limit
                    for name, collection in COLLECTIONS.items()
                    for field, mark in collection.written.items()
                    if mark.limit
                },
            },
            "links": {
                **{name: f"{answers.PATH}/{name}" for name in COLLECTIONS},
                **{name: f"{answers.PATH}/{name}" for name in ("changes", "releases", "proposals")},
                "openapi": "/openapi.json",
                "docs": "/docs",
            },
        }
    )


@router.get(
    "/records/{id}",
    summary="Any record, whatever its collection",
    responses=answered("AnyRecord", *GONE, headers=("ETag",)) | UNCHANGED,
)
def any_record(
    database: StoreOf,
    id: str,
    release: Release = None,
    as_of: AsOf = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    with database.read() as snapshot:
        change = looking.record(snapshot, id, looking.revision_of(snapshot, release, as_of))
    return answers.record(change, if_none_match)
