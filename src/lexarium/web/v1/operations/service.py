"""Describe the service; read any record by its ID alone."""

from pydantic import Field
from starlette.responses import Response

from lexarium import __version__
from lexarium.client.models import Record, Service
from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import RecordState
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import find_latest_changes, find_versions
from lexarium.services.vocabularies.access import AmbiguousId, get_unqualified_vocabulary
from lexarium.store.position import Snapshot
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.v1.operation import (
    VOCABULARIES_TEXT,
    NamesParam,
    Operation,
    RequestContext,
    returns,
)
from lexarium.web.v1.operations.records import READ_ERRORS, ReadParameters, build_record_url, respond_with_record
from lexarium.web.v1.operations.vocabularies import list_readable
from lexarium.web.v1.responses import V1_PATH

_LINKED = ("vocabularies", "search", "suggest", "annotate", "changes", "releases", "proposals", "export")


class _AnyRecordParameters(ReadParameters):
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)


def get_service(context: RequestContext, snapshot: Snapshot) -> Service:
    """Get service information"""
    limits, scope = context.site.limits, context.get_scope()
    shown = {
        item.local_name: item for item in get_unqualified_vocabulary().collections if item.name in scope.collections
    }
    position = get_position(snapshot)
    counts = context.site.database.counts.count_at(snapshot, position.revision)
    return {
        "service": "lexarium",
        "version": __version__,
        "revision": position.revision,
        "counts": {name: counts[item.name, RecordState.PUBLISHED] for name, item in shown.items()},
        "vocabularies": [
            {"slug": item.slug, "title": item.title, "url": f"{V1_PATH}/vocabularies/{item.slug}"}
            for item in list_readable(context)
        ],
        "limits": {
            "body_bytes": limits.body_bytes,
            "body_seconds": limits.body_seconds,
            "batch_bytes": limits.batch_bytes,
            "batch_lines": limits.batch_lines,
            **{
                f"{name}.{field}": max_length
                for name, collection in shown.items()
                for field in collection.editable_fields
                if (max_length := collection.get_max_length(field))
            },
        },
        "links": {
            **{name: f"{V1_PATH}/{name}" for name in (*shown, *_LINKED)},
            "reconcile": "/reconcile",
            "openapi": "/openapi.json",
            "docs": "/docs",
        },
    }


def read_any_record(context: RequestContext, query: _AnyRecordParameters) -> Response:
    """Get a record by ID

    Searches all vocabularies. If several have a record with this ID and none defines its prefix, they are listed.
    """
    scope = context.get_scope(query.vocabulary)
    with context.site.database.read() as snapshot:
        try:
            _, record_id, versions = find_versions(snapshot, query.id, scope, 1)
        except AmbiguousId as error:
            raise build_choice(snapshot, error) from None
    if not versions or get_local_id(record_id) != query.id:
        raise NotFound(f"Record {query.id!r} not found.")  # which redirects to its id
    return respond_with_record(context, query, record_id, versions[0])


def build_choice(snapshot: Snapshot, error: AmbiguousId) -> HTTPProblem:
    """Return a problem that lists the records with this ID."""
    changes = find_latest_changes(snapshot, error.record_ids)
    records = [changes[record_id].to_record() for record_id in error.record_ids]
    candidates = [
        {
            "id": record.local_id,
            "vocabulary": record.collection.vocabulary,
            "name": record.fields["name"],
            "url": build_record_url(record),
        }
        for record in records
    ]
    return HTTPProblem(300, str(error), {"cache-control": "no-cache"}, candidates=candidates)


OPERATIONS = (
    Operation("GET", "/records/{id}", read_any_record, returns(Record), name="any_record", errors=READ_ERRORS),
    Operation("GET", "", get_service, returns(Service), name="service"),
)
