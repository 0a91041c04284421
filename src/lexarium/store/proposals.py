"""Queries for proposals."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, insert, literal_column, select, tuple_, update

from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.store.records import count_rows
from lexarium.store.schema import proposal_table
from lexarium.store.transaction import Transaction

_proposal = proposal_table.c
# A literal as in the partial indexes: the planner does not match a parameter against them.
_IS_OPEN = _proposal.state == literal_column(f"'{ProposalState.OPEN}'")


def add(transaction: Transaction, proposal: Proposal) -> None:
    """Add a proposal."""
    transaction.execute(insert(proposal_table).values(asdict(proposal)))


def sum_open(connection: Connection, author: str) -> tuple[int, int]:
    """Return the number of open proposals of an author, and the total bytes of their changes."""
    size = func.coalesce(func.sum(func.length(_proposal.change)), 0)
    row = connection.execute(select(func.count(), size).where(_IS_OPEN, _proposal.author == author)).one()
    return row[0], int(row[1])


def find(connection: Connection, proposal_id: str) -> Proposal | None:
    """Return the proposal with an id, or None."""
    row = connection.execute(select(proposal_table).where(_proposal.id == proposal_id)).one_or_none()
    return None if row is None else _to_proposal(row)


def list_page(
    connection: Connection, proposal_filter: ProposalFilter, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """Return the next proposals that match a filter, in its order; `after` is the time and id of the last one."""
    query = select(proposal_table).limit(limit)
    if proposal_filter.state is not None:
        is_open = proposal_filter.state == ProposalState.OPEN
        query = query.where(_IS_OPEN if is_open else _proposal.state == proposal_filter.state)
    for name in ("collection", "author", "record"):
        if (value := getattr(proposal_filter, name)) is not None:
            query = query.where(_proposal[name] == value)
    if proposal_filter.collections is not None:
        query = query.where(_proposal.collection.in_(proposal_filter.collections))
    if proposal_filter.reader is not None:
        is_curated = _proposal.collection.in_(proposal_filter.curated)
        query = query.where((_proposal.author == proposal_filter.reader) | is_curated)
    newest_first = proposal_filter.newest_first
    if after is not None:
        sort_key = tuple_(_proposal.made, _proposal.id)
        query = query.where(sort_key < after if newest_first else sort_key > after)
    order = [column.desc() if newest_first else column for column in (_proposal.made, _proposal.id)]
    return [_to_proposal(row) for row in connection.execute(query.order_by(*order))]


def list_decided(connection: Connection, author: str, since: int, limit: int) -> Sequence[Proposal]:
    """Return the proposals of an author that others have decided after a time, the latest first."""
    query = select(proposal_table).where(_proposal.author == author, _proposal.decided > since)
    query = query.where(_proposal.decider != author).order_by(_proposal.decided.desc(), _proposal.id.desc())
    return [_to_proposal(row) for row in connection.execute(query.limit(limit))]


def count_in_state(
    connection: Connection, state: ProposalState, limit: int | None = None, collections: Sequence[str] | None = None
) -> int:
    """Return the number of proposals in a state, in these collections or all, counted up to a limit."""
    query = select(_proposal.id).where(_proposal.state == state).limit(limit)
    if collections is not None:
        query = query.where(_proposal.collection.in_(collections))
    return count_rows(connection, query.subquery())


def list_open_authors(connection: Connection, collections: Sequence[str], limit: int) -> Sequence[str]:
    """Return the authors of open proposals in these collections by id."""
    # One indexed lookup per author, instead of reading all of their proposals.
    authors: list[str] = []
    while len(authors) < limit:
        query = select(_proposal.author).where(_IS_OPEN, _proposal.author > (authors[-1] if authors else ""))
        query = query.where(_proposal.collection.in_(collections))
        author = connection.scalar(query.order_by(_proposal.author).limit(1))
        if author is None:
            break
        authors.append(author)
    return authors


def save_decision(transaction: Transaction, proposal: Proposal) -> None:
    """Save the state and decision of a proposal, and its record."""
    values = {name: getattr(proposal, name) for name in ("state", "decider", "decided", "reason", "record", "amended")}
    transaction.execute(update(proposal_table).where(_proposal.id == proposal.id).values(values))


def _to_proposal(row: Any) -> Proposal:
    return Proposal(**{**row._mapping, "state": ProposalState(row.state)})
