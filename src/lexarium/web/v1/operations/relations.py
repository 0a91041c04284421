"""Read and edit the relations of a record; list its ancestors and descendants."""

from pydantic import Field
from starlette.responses import Response

from lexarium.client.models import Hierarchy, Relations
from lexarium.domain.change import Change
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import queries
from lexarium.services.records.lookup import get_published
from lexarium.store.position import Snapshot, read_position
from lexarium.store.transaction import Transaction
from lexarium.web.http.write_response import WriteResponse
from lexarium.web.v1.operation import (
    READ_ERRORS,
    WRITE_ERRORS,
    ById,
    ReadOperation,
    RequestContext,
    WriteOperation,
    json_body,
    returns,
)
from lexarium.web.v1.operations.records import CHANGED, to_published_response
from lexarium.web.v1.request_models import RelateRequest
from lexarium.web.v1.responses import json_response


class HierarchyParameters(ById):
    """Parameters of ancestors and descendants."""

    relation: str | None = Field(None, max_length=100, description="Only along this hierarchy; else along all.")


class RelationParameters(ById):
    """A relation to remove."""

    relation: str = Field(max_length=100, description="The name of the relation.")
    target: str = Field(max_length=2_000, description="What it points to.")


def list_relations(context: RequestContext, path: ById, snapshot: Snapshot) -> Response:
    return json_response({"items": queries.list_related(snapshot, _find_record(context, path.id, snapshot))})


def list_ancestors(context: RequestContext, query: HierarchyParameters, snapshot: Snapshot) -> Response:
    record = _find_record(context, query.id, snapshot)
    return json_response(queries.list_hierarchy(snapshot, record, query.relation, upward=True))


def list_descendants(context: RequestContext, query: HierarchyParameters, snapshot: Snapshot) -> Response:
    record = _find_record(context, query.id, snapshot)
    return json_response(queries.list_hierarchy(snapshot, record, query.relation, upward=False))


def _find_record(context: RequestContext, identifier: str, snapshot: Snapshot) -> Change:
    return queries.get_record_at(snapshot, identifier, read_position(snapshot).revision, context.collection)


def add_relation(context: RequestContext, path: ById, body: RelateRequest, transaction: Transaction) -> WriteResponse:
    before = context.if_match.require(get_published(transaction.flush(), context.collection, path.id))
    return to_published_response(
        RecordWriter(transaction, context.caller).add_relation(before, body.relation, body.target)
    )


def remove_relation(context: RequestContext, query: RelationParameters, transaction: Transaction) -> WriteResponse:
    before = context.if_match.require(get_published(transaction.flush(), context.collection, query.id))
    writer = RecordWriter(transaction, context.caller)
    return to_published_response(writer.remove_relation(before, query.relation, query.target))


# fmt: off
OPERATIONS = (
    ReadOperation("GET", "/{collection}/{id}/relations", "relations", "Its relations, in both directions, with names",
                  list_relations, returns(Relations), ById, errors=READ_ERRORS),
    WriteOperation("PUT", "/{collection}/{id}/relations", "relate", "Add a relation",
                   add_relation, CHANGED, ById, permission=Permission.PUBLISH, if_match=True,
                   body=json_body(RelateRequest), errors=WRITE_ERRORS),
    WriteOperation("DELETE", "/{collection}/{id}/relations", "unrelate", "Take a relation away",
                   remove_relation, CHANGED, RelationParameters, permission=Permission.PUBLISH, if_match=True,
                   errors=WRITE_ERRORS),
    ReadOperation("GET", "/{collection}/{id}/ancestors", "ancestors", "What is above it, the nearest first",
                  list_ancestors, returns(Hierarchy), HierarchyParameters, errors=READ_ERRORS),
    ReadOperation("GET", "/{collection}/{id}/descendants", "descendants", "What is below it, the nearest first",
                  list_descendants, returns(Hierarchy), HierarchyParameters, errors=READ_ERRORS),
)
# fmt: on
