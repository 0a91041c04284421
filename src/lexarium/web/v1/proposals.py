"""Proposals: made, seen, accepted, rejected, withdrawn."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.proposal import Proposal, ProposalState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.curation import proposals
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import get_published
from lexarium.services.serializers import serialize_proposal
from lexarium.store.transaction import Transaction
from lexarium.web.request_models import Reject
from lexarium.web.v1 import answers
from lexarium.web.v1.records import proposed, published
from lexarium.web.v1.requests import AskOf, BodyIfAnyOf, BodyOf, CallerOf, CuratorOf, StoreOf, read_as
from lexarium.web.v1.schemas import CLOSED, Accept, Propose, answered, body_of

router = APIRouter(prefix="/proposals", tags=["proposals"])


@router.get(
    "",
    summary="The proposals: a curator's all, a contributor's own, the oldest first",
    responses=answered("ProposalPage"),
)
def list_proposals(
    database: StoreOf,
    caller: CallerOf,
    state: Annotated[ProposalState | None, Query(description="Only those that stand so.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
) -> Response:
    with database.read() as snapshot:
        found = proposals.list_proposals(snapshot, caller, state, _place(after), limit + 1)
    more = len(found) > limit
    items = found[:limit]
    next_page = f"{items[-1].made}-{items[-1].id}" if more else None
    return answers.read({"items": [serialize_proposal(each) for each in items], "next": next_page})


@router.post(
    "",
    summary="Propose a new record, or a change of one",
    status_code=202,
    responses=answered("Proposal", *CLOSED, status=202, headers=("Location",)),
    openapi_extra=body_of("Propose"),
)
async def propose(database: StoreOf, caller: CallerOf, body: BodyOf, ask: AskOf) -> Response:
    """Also a curator may, to let others decide."""
    given = read_as(Propose, body)

    def work(transaction: Transaction) -> WriteResponse:
        collection = COLLECTIONS[given.collection]
        if given.record is None:
            return proposed(proposals.propose_record(transaction, caller, collection, given.change))
        before = get_published(transaction.connection, collection, given.record)
        return proposed(proposals.propose_patch(transaction, caller, before, given.change))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.get(
    "/{id}",
    summary="A proposal, and where the record has moved on under it",
    responses=answered("ProposalInFull", 404),
)
def read_proposal(database: StoreOf, caller: CallerOf, id: str) -> Response:
    with database.read() as snapshot:
        found = proposals.get_visible_proposal(snapshot, caller, id)
        return answers.read({**serialize_proposal(found), **proposals.get_proposal_status(snapshot, found)})


@router.post(
    "/{id}/accept",
    summary="Make it so, with `change` on top of it",
    responses=answered("AnyRecord", *CLOSED, headers=("ETag",)),
    openapi_extra=body_of("Accept", required=False),
)
async def accept(database: StoreOf, caller: CuratorOf, id: str, body: BodyIfAnyOf, ask: AskOf) -> Response:
    change = read_as(Accept, body).change

    def work(transaction: Transaction) -> WriteResponse:
        return published(proposals.accept_proposal(transaction, caller, id, change))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.post(
    "/{id}/reject",
    summary="Turn it down, with a reason",
    responses=answered("Proposal", 404),
    openapi_extra=body_of("Reject"),
)
async def reject(database: StoreOf, caller: CuratorOf, id: str, body: BodyOf, ask: AskOf) -> Response:
    reason = read_as(Reject, body).reason

    def work(transaction: Transaction) -> WriteResponse:
        return _told(proposals.reject_proposal(transaction, caller, id, reason))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.post("/{id}/withdraw", summary="Take one's own proposal back", responses=answered("Proposal", 403, 404))
async def withdraw(database: StoreOf, caller: CallerOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> WriteResponse:
        return _told(proposals.withdraw_proposal(transaction, caller, id))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


def _told(proposal: Proposal) -> WriteResponse:
    return WriteResponse(200, serialize_proposal(proposal))


def _place(after: str | None) -> tuple[int, str] | None:
    if after is None:
        return None
    made, _, identifier = after.partition("-")
    if not (made.isdecimal() and made.isascii() and identifier and len(made) < 19) or find_unstorable_char(identifier):
        raise InvalidInput(
            "The page cannot be found.", [FieldProblem("after", "is not one that this service gave out.")]
        )
    return int(made), identifier
