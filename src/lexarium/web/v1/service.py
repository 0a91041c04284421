"""The service itself."""

from fastapi import APIRouter
from starlette.responses import Response

from lexarium import __version__
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.store.position import read_position
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import LimitsOf, StoreOf
from lexarium.web.v1.schemas import answered

router = APIRouter(tags=["service"])


@router.get("", summary="What the service holds, and where to go on", responses=answered("Service"))
def service(database: StoreOf, limits: LimitsOf) -> Response:
    with database.read() as snapshot:
        position = read_position(snapshot)
        counts = database.counts.count_at(snapshot, position.revision)
    return answers.read(
        {
            "service": "lexarium",
            "version": __version__,
            "revision": position.revision,
            "counts": {name: counts[name, RecordState.PUBLISHED] for name in COLLECTIONS},
            "limits": {
                "body_bytes": limits.body_bytes,
                "body_seconds": limits.body_seconds,
                "batch_bytes": limits.batch_bytes,
                "batch_lines": limits.batch_lines,
                **{
                    f"{name}.{field}": mark.max_length
                    for name, collection in COLLECTIONS.items()
                    for field, mark in collection.editable_fields.items()
                    if mark.max_length
                },
            },
            "links": {
                **{name: f"{answers.PATH}/{name}" for name in COLLECTIONS},
                **{
                    name: f"{answers.PATH}/{name}"
                    for name in ("search", "suggest", "annotate", "changes", "releases", "proposals", "export")
                },
                "reconcile": "/reconcile",
                "openapi": "/openapi.json",
                "docs": "/docs",
            },
        }
    )
