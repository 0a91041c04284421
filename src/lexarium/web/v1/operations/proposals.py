"""Create, list and decide proposals."""

from typing import Any

from pydantic import Field

from lexarium.client import models
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.proposal import ProposalState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records.lookup import get_published
from lexarium.services.serializers import serialize_proposal
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.request_models import Reject
from lexarium.web.v1.operation import WRITE_ERRORS, ById, Operation, Parameters, RequestContext, json_body, returns
from lexarium.web.v1.operations.records import CHANGED, PROPOSED, to_write_response
from lexarium.web.v1.request_models import AcceptRequest, ProposeRequest


class ProposalParameters(Parameters):
    """Parameters of a list of proposals."""

    state: ProposalState | None = Field(None, description="Only those that stand so.")
    limit: int = Field(100, ge=1, le=1_000, description="How many at most.")
    after: str | None = Field(None, max_length=100, description="`next` of the page before.")


def list_proposals(context: RequestContext, query: ProposalParameters, snapshot: Snapshot) -> dict[str, Any]:
    """The proposals: a curator's all, a contributor's own, the oldest first"""
    found = proposals.list_proposals(snapshot, context.caller, query.state, _parse_cursor(query.after), query.limit + 1)
    items = found[: query.limit]
    next_page = f"{items[-1].made}-{items[-1].id}" if len(found) > query.limit else None
    return {"items": [serialize_proposal(proposal) for proposal in items], "next": next_page}


def _parse_cursor(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    made, _, identifier = text.partition("-")
    if not (made.isdecimal() and made.isascii() and identifier and len(made) < 19) or find_unstorable_char(identifier):
        raise InvalidInput(
            "The page cannot be found.", [FieldProblem("after", "is not one that this service gave out.")]
        )
    return int(made), identifier


def propose(context: RequestContext, body: ProposeRequest, transaction: Transaction) -> WriteResponse:
    """Propose a new record, or a change of one

    Also a curator may, to let others decide.
    """
    collection, writer = COLLECTIONS[body.collection], proposals.ProposalWriter(transaction, context.caller)
    if body.record is None:
        return to_write_response(writer.create(collection, body.change))
    before = get_published(transaction.flush(), collection, body.record)
    return to_write_response(writer.patch_or_retire(before, body.change))


def read_proposal(context: RequestContext, path: ById, snapshot: Snapshot) -> dict[str, Any]:
    """A proposal, and where the record has moved on under it"""
    proposal = proposals.get_visible_proposal(snapshot, context.caller, path.id)
    return {**serialize_proposal(proposal), **proposals.get_proposal_status(snapshot, proposal)}


def accept(context: RequestContext, path: ById, body: AcceptRequest, transaction: Transaction) -> WriteResponse:
    """Make it so, with `change` on top of it"""
    return to_write_response(proposals.accept_proposal(transaction, context.caller, path.id, body.change))


def reject(context: RequestContext, path: ById, body: Reject, transaction: Transaction) -> WriteResponse:
    """Turn it down, with a reason"""
    rejected = proposals.reject_proposal(transaction, context.caller, path.id, body.reason)
    return WriteResponse(200, serialize_proposal(rejected))


def withdraw(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Take one's own proposal back"""
    return WriteResponse(200, serialize_proposal(proposals.withdraw_proposal(transaction, context.caller, path.id)))


# fmt: off
OPERATIONS = (
    Operation("GET", "/proposals", list_proposals, returns(models.ProposalPage), needs_token=True),
    Operation("POST", "/proposals", propose, PROPOSED, errors=(404, *WRITE_ERRORS)),
    Operation("GET", "/proposals/{id}", read_proposal, returns(models.ProposalDetail), needs_token=True),
    Operation("POST", "/proposals/{id}/accept", accept, CHANGED, permission=Permission.PUBLISH,
              body=json_body(AcceptRequest, required=False), errors=WRITE_ERRORS),
    Operation("POST", "/proposals/{id}/reject", reject, returns(models.Proposal), permission=Permission.PUBLISH),
    Operation("POST", "/proposals/{id}/withdraw", withdraw, returns(models.Proposal), errors=(403,)),
)
# fmt: on
