"""Create, list and decide proposals."""

from functools import partial
from typing import Any

import orjson
from pydantic import BaseModel, Field

from lexarium.client import models
from lexarium.domain.editing.edit import flatten_fields
from lexarium.domain.proposal import ProposalState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals
from lexarium.services.curation.name_warnings import WriteWarning, find_name_warnings
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records.lookup import get_published
from lexarium.services.records.queries import get_current_record
from lexarium.services.serializers import serialize_proposal
from lexarium.services.vocabularies.access import find_collection, get_scope_or_default
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.paging import parse_cursor, split_page
from lexarium.web.request_models import Accept, CollectionName, Reject, Summary
from lexarium.web.v1.operation import (
    VOCABULARIES_TEXT,
    ById,
    NamesParam,
    Operation,
    Parameters,
    RequestContext,
    json_body,
    qualify_client_id,
    returns,
)
from lexarium.web.v1.operations.records import CHANGED, PROPOSED, WRITE_ERRORS, to_write_response


class _ProposalParameters(Parameters):
    state: ProposalState | None = Field(None, description="Filter by state.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)
    after: str | None = Field(None, max_length=100, description="`next` of the previous page.")


class ProposeRequest(BaseModel, defer_build=True):
    """A proposed change."""

    vocabulary: str | None = Field(None, description="Slug of a vocabulary (default: the default vocabulary).")
    collection: CollectionName = Field(description="Name of a collection.")
    record: str | None = Field(None, description="ID of the record to change (default: propose a new one).")
    change: dict[str, Any] = Field(
        description='Draft of a new record; for an existing one, a merge patch of its draft or `{"state": "retired"}`.'
    )
    summary: Summary = ""


class AcceptRequest(Accept, defer_build=True):
    """Amendments to an accepted proposal, and the reason."""

    change: dict[str, Any] | None = Field(
        None, description="Merge patch applied to the proposal; resolves the conflicts it names."
    )


def list_proposals(context: RequestContext, query: _ProposalParameters, snapshot: Snapshot) -> dict[str, Any]:
    """List proposals"""
    after = parse_cursor("after", query.after)
    scope = context.get_scope(query.vocabulary)
    found = proposals.list_proposals(snapshot, context.caller, scope, query.state, after, query.limit + 1)
    items, last = split_page(found, query.limit)
    next_page = f"{last.made}-{last.id}" if last else None
    return {"items": [serialize_proposal(proposal) for proposal in items], "next": next_page}


def _find_warnings(context: RequestContext, body: ProposeRequest) -> list[WriteWarning]:
    scope = get_scope_or_default(context.caller, (body.vocabulary,) if body.vocabulary else ())
    collection = find_collection(scope, body.collection)
    context.caller.require(Permission.PROPOSE, collection.vocabulary)
    current = None
    if body.record is not None:
        record_id = qualify_client_id(collection.vocabulary, body.record)
        current = get_current_record(context.site.database, record_id, collection).record
    return find_name_warnings(context.site.record_search, collection, body.change, current)


def propose(context: RequestContext, body: ProposeRequest, transaction: Transaction) -> WriteResponse:
    """Create a proposal

    Proposes a new record or a change of one. Curators can do this too, to let others decide.
    """
    scope = get_scope_or_default(context.caller, (body.vocabulary,) if body.vocabulary else ())
    collection = find_collection(scope, body.collection)
    writer = proposals.ProposalWriter(transaction, context.caller, body.summary)
    change = flatten_fields(collection, body.change)
    if body.record is None:
        return to_write_response(context, writer.create(collection, change))
    before = get_published(transaction.flush(), collection, qualify_client_id(collection.vocabulary, body.record))
    return to_write_response(context, writer.patch_or_retire(before, change))


def read_proposal(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """Get a proposal with its conflicts"""
    proposal = proposals.get_visible_proposal(snapshot, context.caller, path.id)
    return {**serialize_proposal(proposal), **proposals.get_proposal_status(snapshot, proposal)}


def _find_accepted_warnings(context: RequestContext, path: ById, body: AcceptRequest) -> list[WriteWarning]:
    database = context.site.database
    proposal = database.run_read(proposals.get_visible_proposal, context.caller, path.id)
    collection = COLLECTIONS[proposal.collection]
    current = None if proposal.record is None else get_current_record(database, proposal.record).record
    change = {**orjson.loads(proposal.change), **(body.change or {})}
    return find_name_warnings(context.site.record_search, collection, change, current)


def accept(context: RequestContext, path: ById, body: AcceptRequest, transaction: Transaction) -> WriteResponse:
    """Accept a proposal"""
    proposal = proposals.get_visible_proposal(transaction.flush(), context.caller, path.id)
    change = flatten_fields(COLLECTIONS[proposal.collection], body.change or {})
    accepted = proposals.accept_proposal(transaction, context.caller, path.id, change, body.reason)
    return to_write_response(context, accepted)


def reject(context: RequestContext, path: ById, body: Reject, transaction: Transaction) -> WriteResponse:
    """Reject a proposal"""
    rejected = proposals.reject_proposal(transaction, context.caller, path.id, body.reason)
    return WriteResponse(200, serialize_proposal(rejected))


def withdraw(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Withdraw a proposal"""
    return WriteResponse(200, serialize_proposal(proposals.withdraw_proposal(transaction, context.caller, path.id)))


_AMENDMENT = json_body(AcceptRequest, required=False)
_propose = partial(Operation, "POST", permission=Permission.PROPOSE)
_publish = partial(Operation, "POST", permission=Permission.PUBLISH)
OPERATIONS = (
    Operation("GET", "/proposals", list_proposals, returns(models.ProposalPage), needs_token=True),
    _propose("/proposals", propose, PROPOSED, errors=(404, *WRITE_ERRORS), find_warnings=_find_warnings),
    Operation("GET", "/proposals/{id}", read_proposal, returns(models.ProposalDetail), needs_token=True),
    _publish(
        "/proposals/{id}/accept",
        accept,
        CHANGED,
        body=_AMENDMENT,
        errors=WRITE_ERRORS,
        find_warnings=_find_accepted_warnings,
    ),
    _publish("/proposals/{id}/reject", reject, returns(models.Proposal)),
    _propose("/proposals/{id}/withdraw", withdraw, returns(models.Proposal)),
)
