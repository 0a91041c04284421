"""List and compare versions of a record; revert it; merge it into another."""

from typing import Annotated, Any

from pydantic import Field

from lexarium.client.models import Diff, History, Record
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import get_record
from lexarium.services.serializers import serialize_difference, serialize_record, serialize_version
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.v1.operation import WRITE_ERRORS, ById, Operation, RequestContext, returns
from lexarium.web.v1.operations.records import CHANGED, to_published_response
from lexarium.web.v1.request_models import MergeRequest, RevertRequest

VersionParam = Annotated[int, Field(ge=1, le=2**31 - 1)]


class VersionParameters(ById):
    """A version of a record."""

    version: VersionParam = Field(description="The number of the version.")


class DiffParameters(ById):
    """Two versions of a record."""

    from_: VersionParam = Field(alias="from", description="The earlier version.")
    to: VersionParam = Field(description="The later version.")


def list_versions(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    versions = queries.list_versions(snapshot, context.collection, path.id, get_position(snapshot).revision)
    return {"items": [serialize_version(change) for change in versions]}


def read_version(context: RequestContext, path: VersionParameters, snapshot: Snapshot) -> dict[str, Any]:
    return serialize_record(queries.get_version(snapshot, context.collection, path.id, path.version))


def compare_versions(context: RequestContext, query: DiffParameters, snapshot: Snapshot) -> dict[str, Any]:
    differences = queries.diff_versions(snapshot, context.collection, query.id, query.from_, query.to)
    items = [serialize_difference(difference) for difference in differences]
    return {"from": query.from_, "to": query.to, "items": items}


def revert(context: RequestContext, path: ById, body: RevertRequest, transaction: Transaction) -> WriteResponse:
    past = queries.get_version(transaction.connection, context.collection, path.id, body.version)
    current = context.require_expected(get_record(transaction.connection, path.id))
    return to_published_response(RecordWriter(transaction, context.caller).revert(past, current.version))


def merge(context: RequestContext, path: ById, body: MergeRequest, transaction: Transaction) -> WriteResponse:
    before = context.find_expected(path.id, transaction)
    return to_published_response(RecordWriter(transaction, context.caller).merge(before, body.into))


# fmt: off
OPERATIONS = (
    Operation("GET", "/{collection}/{id}/history", "history", "Every version, the newest first",
              list_versions, returns(History), errors=(404,)),
    Operation("GET", "/{collection}/{id}/history/{version}", "one_version", "One version",
              read_version, returns(Record), errors=(404,)),
    Operation("GET", "/{collection}/{id}/diff", "diff", "What differs between two versions, field by field",
              compare_versions, returns(Diff), errors=(404,)),
    Operation("POST", "/{collection}/{id}/revert", "revert", "Make it what it was at a version, as a new version",
              revert, CHANGED, permission=Permission.PUBLISH, if_match=True, errors=(404,)),
    Operation("POST", "/{collection}/{id}/merge", "merge", "Merge it into another; answers the survivor",
              merge, CHANGED, permission=Permission.PUBLISH, if_match=True, errors=WRITE_ERRORS),
)
# fmt: on
