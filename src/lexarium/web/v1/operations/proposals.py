"""Create, list and decide proposals."""

from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from lexarium.client import models
from lexarium.domain.editing.edit import flatten_fields
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.proposal import ProposalState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records.lookup import get_published
from lexarium.services.serializers import serialize_proposal
from lexarium.services.vocabularies.access import find_collection, get_unqualified_vocabulary
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.form_fields import parse_page_key, split_page
from lexarium.web.request_models import CollectionName, Reject
from lexarium.web.v1.operation import (
    VOCABULARIES_TEXT,
    ById,
    Operation,
    Parameters,
    RequestContext,
    VocabulariesParam,
    json_body,
    qualify_client_id,
    returns,
)
from lexarium.web.v1.operations.records import CHANGED, PROPOSED, WRITE_ERRORS, to_write_response


class _ProposalParameters(Parameters):
    state: ProposalState | None = Field(None, description="Only those that stand so.")
    limit: int = Field(100, ge=1, le=1_000, description="How many at most.")
    vocabulary: VocabulariesParam = Field((), description=VOCABULARIES_TEXT)
    after: str | None = Field(None, max_length=100, description="`next` of the page before.")


class ProposeRequest(BaseModel, defer_build=True):
    """A proposed change."""

    vocabulary: str | None = Field(None, description="The slug of a vocabulary; left out: the default one.")
    collection: CollectionName = Field(description="The name of a collection.")
    record: str | None = Field(None, description="The record to change; left out, a new one is proposed.")
    change: dict[str, Any] = Field(
        description='A whole draft; of a record a merge patch of its draft, or `{"state": "retired"}`.'
    )


class AcceptRequest(BaseModel, defer_build=True):
    """Amendments to an accepted proposal."""

    change: dict[str, Any] | None = Field(
        None, description="A merge patch on top of what is proposed; it settles the fields in conflict that it names."
    )


def list_proposals(context: RequestContext, query: _ProposalParameters, snapshot: Snapshot) -> dict[str, Any]:
    """The proposals: a curator's all, a contributor's own, the oldest first"""
    after = parse_page_key(query.after or "")
    if query.after is not None and not (after and after[1]):
        problem = FieldProblem("after", "is not one that this service gave out.")
        raise InvalidInput("The page cannot be found.", [problem])
    scope = context.get_scope(query.vocabulary)
    found = proposals.list_proposals(snapshot, context.caller, scope, query.state, after, query.limit + 1)
    items, last = split_page(found, query.limit)
    next_page = f"{last.made}-{last.id}" if last else None
    return {"items": [serialize_proposal(proposal) for proposal in items], "next": next_page}


def propose(context: RequestContext, body: ProposeRequest, transaction: Transaction) -> WriteResponse:
    """Propose a new record, or a change of one

    Also a curator may, to let others decide.
    """
    slug = body.vocabulary or get_unqualified_vocabulary().slug
    collection = find_collection(context.get_scope((slug,)), body.collection)
    writer = proposals.ProposalWriter(transaction, context.caller)
    change = flatten_fields(collection, body.change)
    if body.record is None:
        return to_write_response(context, writer.create(collection, change))
    before = get_published(transaction.flush(), collection, qualify_client_id(slug, body.record))
    return to_write_response(context, writer.patch_or_retire(before, change))


def read_proposal(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """A proposal, and where the record has moved on under it"""
    proposal = proposals.get_visible_proposal(snapshot, context.caller, path.id)
    return {**serialize_proposal(proposal), **proposals.get_proposal_status(snapshot, proposal)}


def accept(context: RequestContext, path: ById, body: AcceptRequest, transaction: Transaction) -> WriteResponse:
    """Make it so, with `change` on top of it"""
    proposal = proposals.get_visible_proposal(transaction.flush(), context.caller, path.id)
    change = flatten_fields(COLLECTIONS[proposal.collection], body.change or {})
    return to_write_response(context, proposals.accept_proposal(transaction, context.caller, path.id, change))


def reject(context: RequestContext, path: ById, body: Reject, transaction: Transaction) -> WriteResponse:
    """Turn it down, with a reason"""
    rejected = proposals.reject_proposal(transaction, context.caller, path.id, body.reason)
    return WriteResponse(200, serialize_proposal(rejected))


def withdraw(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Take one's own proposal back"""
    return WriteResponse(200, serialize_proposal(proposals.withdraw_proposal(transaction, context.caller, path.id)))


_AMENDMENT = json_body(AcceptRequest, required=False)
_propose = partial(Operation, "POST", permission=Permission.PROPOSE)
_publish = partial(Operation, "POST", permission=Permission.PUBLISH)
OPERATIONS = (
    Operation("GET", "/proposals", list_proposals, returns(models.ProposalPage), needs_token=True),
    _propose("/proposals", propose, PROPOSED, errors=(404, *WRITE_ERRORS)),
    Operation("GET", "/proposals/{id}", read_proposal, returns(models.ProposalDetail), needs_token=True),
    _publish("/proposals/{id}/accept", accept, CHANGED, body=_AMENDMENT, errors=WRITE_ERRORS),
    _publish("/proposals/{id}/reject", reject, returns(models.Proposal)),
    _propose("/proposals/{id}/withdraw", withdraw, returns(models.Proposal)),
)
