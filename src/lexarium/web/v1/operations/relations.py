"""Read and edit the relations of a record; list its ancestors and descendants."""

from typing import Any

from pydantic import Field

from lexarium.client.models import Hierarchy, Relations
from lexarium.domain.change import Change
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.v1.operation import READ_ERRORS, WRITE_ERRORS, ById, Operation, RequestContext, returns
from lexarium.web.v1.operations.records import CHANGED, to_published_response
from lexarium.web.v1.request_models import RelateRequest


class HierarchyParameters(ById):
    """Parameters of ancestors and descendants."""

    relation: str | None = Field(None, max_length=100, description="Only along this hierarchy; else along all.")


class RelationParameters(ById):
    """A relation to remove."""

    relation: str = Field(max_length=100, description="The name of the relation.")
    target: str = Field(max_length=2_000, description="What it points to.")


def list_relations(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    return {"items": queries.list_related(snapshot, _find_record(context, path.id, snapshot))}


def list_ancestors(context: RequestContext, query: HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    record = _find_record(context, query.id, snapshot)
    return queries.list_hierarchy(snapshot, record, query.relation, upward=True)


def list_descendants(context: RequestContext, query: HierarchyParameters, snapshot: Snapshot) -> dict[str, Any]:
    record = _find_record(context, query.id, snapshot)
    return queries.list_hierarchy(snapshot, record, query.relation, upward=False)


def _find_record(context: RequestContext, identifier: str, snapshot: Snapshot) -> Change:
    return queries.get_record_at(snapshot, identifier, get_position(snapshot).revision, context.collection)


def add_relation(context: RequestContext, path: ById, body: RelateRequest, transaction: Transaction) -> WriteResponse:
    before, writer = context.find_expected(path.id, transaction), RecordWriter(transaction, context.caller)
    return to_published_response(writer.add_relation(before, body.relation, body.target))


def remove_relation(context: RequestContext, query: RelationParameters, transaction: Transaction) -> WriteResponse:
    before, writer = context.find_expected(query.id, transaction), RecordWriter(transaction, context.caller)
    return to_published_response(writer.remove_relation(before, query.relation, query.target))


# fmt: off
OPERATIONS = (
    Operation("GET", "/{collection}/{id}/relations", "relations", "Its relations, in both directions, with names",
              list_relations, returns(Relations), errors=READ_ERRORS),
    Operation("PUT", "/{collection}/{id}/relations", "relate", "Add a relation",
              add_relation, CHANGED, permission=Permission.PUBLISH, if_match=True, errors=WRITE_ERRORS),
    Operation("DELETE", "/{collection}/{id}/relations", "unrelate", "Take a relation away",
              remove_relation, CHANGED, permission=Permission.PUBLISH, if_match=True, errors=WRITE_ERRORS),
    Operation("GET", "/{collection}/{id}/ancestors", "ancestors", "What is above it, the nearest first",
              list_ancestors, returns(Hierarchy), errors=READ_ERRORS),
    Operation("GET", "/{collection}/{id}/descendants", "descendants", "What is below it, the nearest first",
              list_descendants, returns(Hierarchy), errors=READ_ERRORS),
)
# fmt: on
