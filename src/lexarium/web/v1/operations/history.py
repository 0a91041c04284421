"""List and compare versions of a record; revert it; merge it into another."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from lexarium.client.models import Diff, History, Record
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import queries
from lexarium.services.records.lookup import get_published, get_record
from lexarium.services.serializers import serialize_difference, serialize_record, serialize_version
from lexarium.store.position import Snapshot, read_position
from lexarium.store.transaction import Transaction
from lexarium.web.http.write_response import WriteResponse
from lexarium.web.v1.operation import (
    WRITE_ERRORS,
    ById,
    ReadOperation,
    RequestContext,
    WriteOperation,
    json_body,
    returns,
)
from lexarium.web.v1.operations.records import CHANGED, to_published_response
from lexarium.web.v1.request_models import MergeRequest, RevertRequest
from lexarium.web.v1.responses import json_response

VersionParam = Annotated[int, Field(ge=1, le=2**31 - 1)]


class VersionParameters(ById):
    """A version of a record."""

    version: VersionParam = Field(description="The number of the version.")


class DiffParameters(ById):
    """Two versions of a record."""

    from_: VersionParam = Field(alias="from", description="The earlier version.")
    to: VersionParam = Field(description="The later version.")


def list_versions(context: RequestContext, path: ById, snapshot: Snapshot) -> Response:
    versions = queries.list_versions(snapshot, context.collection, path.id, read_position(snapshot).revision)
    return json_response({"items": [serialize_version(change) for change in versions]})


def read_version(context: RequestContext, path: VersionParameters, snapshot: Snapshot) -> Response:
    return json_response(serialize_record(queries.get_version(snapshot, context.collection, path.id, path.version)))


def compare_versions(context: RequestContext, query: DiffParameters, snapshot: Snapshot) -> Response:
    differences = queries.diff_versions(snapshot, context.collection, query.id, query.from_, query.to)
    items = [serialize_difference(difference) for difference in differences]
    return json_response({"from": query.from_, "to": query.to, "items": items})


def revert(context: RequestContext, path: ById, body: RevertRequest, transaction: Transaction) -> WriteResponse:
    past = queries.get_version(transaction.flush(), context.collection, path.id, body.version)
    current = context.if_match.require(get_record(transaction.flush(), path.id))
    return to_published_response(RecordWriter(transaction, context.caller).revert(past, current.version))


def merge(context: RequestContext, path: ById, body: MergeRequest, transaction: Transaction) -> WriteResponse:
    before = context.if_match.require(get_published(transaction.flush(), context.collection, path.id))
    return to_published_response(RecordWriter(transaction, context.caller).merge(before, body.into))


# fmt: off
OPERATIONS = (
    ReadOperation("GET", "/{collection}/{id}/history", "history", "Every version, the newest first",
                  list_versions, returns(History), ById, errors=(404,)),
    ReadOperation("GET", "/{collection}/{id}/history/{version}", "one_version", "One version",
                  read_version, returns(Record), VersionParameters, errors=(404,)),
    ReadOperation("GET", "/{collection}/{id}/diff", "diff", "What differs between two versions, field by field",
                  compare_versions, returns(Diff), DiffParameters, errors=(404,)),
    WriteOperation("POST", "/{collection}/{id}/revert", "revert", "Make it what it was at a version, as a new version",
                   revert, CHANGED, ById, permission=Permission.PUBLISH, if_match=True, body=json_body(RevertRequest),
                   errors=(404,)),
    WriteOperation("POST", "/{collection}/{id}/merge", "merge", "Merge it into another; answers the survivor",
                   merge, CHANGED, ById, permission=Permission.PUBLISH, if_match=True, body=json_body(MergeRequest),
                   errors=WRITE_ERRORS),
)
# fmt: on
