"""Describe the service; read any record by its identifier alone."""

from starlette.responses import Response

from lexarium import __version__
from lexarium.client.models import Record, Service
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.records.catalogue_state import get_position
from lexarium.store.position import Snapshot
from lexarium.web.v1.operation import Operation, RequestContext, returns
from lexarium.web.v1.operations.records import READ_ERRORS, ReadParameters, read_record
from lexarium.web.v1.responses import V1_PATH

_LINKED = ("search", "suggest", "annotate", "changes", "releases", "proposals", "export")


def get_service(context: RequestContext, snapshot: Snapshot) -> Service:
    """What the service holds, and where to go on"""
    limits = context.site.limits
    position = get_position(snapshot)
    counts = context.site.database.counts.count_at(snapshot, position.revision)
    return {
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
                f"{name}.{field}": max_length
                for name, collection in COLLECTIONS.items()
                for field in collection.editable_fields
                if (max_length := collection.get_max_length(field))
            },
        },
        "links": {
            **{name: f"{V1_PATH}/{name}" for name in (*COLLECTIONS, *_LINKED)},
            "reconcile": "/reconcile",
            "openapi": "/openapi.json",
            "docs": "/docs",
        },
    }


def read_any_record(context: RequestContext, query: ReadParameters) -> Response:
    """Any record, whatever its collection"""
    return read_record(context, query)


OPERATIONS = (
    Operation("GET", "/records/{id}", read_any_record, returns(Record), name="any_record", errors=READ_ERRORS),
    Operation("GET", "", get_service, returns(Service), name="service"),
)
