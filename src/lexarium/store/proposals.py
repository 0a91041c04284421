"""Queries for proposals."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, literal_column, select, tuple_, update

from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.store.schema import proposal_table
from lexarium.store.transaction import Transaction

_proposal = proposal_table.c
# A literal as in the partial indexes: the planner does not match a parameter against them.
_IS_OPEN = _proposal.state == literal_column(f"'{ProposalState.OPEN}'")

# Creation time and id of the last proposal of a page.
_PageKey = tuple[int, str]


def add(transaction: Transaction, proposal: Proposal) -> None:
    """Add a proposal."""
    transaction.connection.execute(insert(proposal_table).values(asdict(proposal)))


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
    connection: Connection, state: ProposalState | None, author: str | None, after: _PageKey | None, limit: int
) -> Sequence[Proposal]:
    """Return the next proposals, the oldest first; optionally only in a state or by an author."""
    return _list(connection, _match(state=state, author=author), after, limit)


def count_in_state(connection: Connection, state: ProposalState, limit: int | None = None) -> int:
    """Return the number of proposals in a state, counted up to a limit."""
    matching = select(_proposal.id).where(_proposal.state == state).limit(limit).subquery()
    return connection.scalar(select(func.count()).select_from(matching)) or 0


def list_open(
    connection: Connection, proposal_filter: ProposalFilter, after: _PageKey | None, limit: int
) -> Sequence[Proposal]:
    """Return the next open proposals that match a filter, in its order."""
    conditions = [_IS_OPEN, *_match(collection=proposal_filter.collection, author=proposal_filter.author)]
    return _list(connection, conditions, after, limit, newest_first=proposal_filter.newest_first)


def list_by_author(connection: Connection, author: str, before: _PageKey | None, limit: int) -> Sequence[Proposal]:
    """Return the next proposals of an author, the newest first."""
    return _list(connection, _match(author=author), before, limit, newest_first=True)


def list_open_for_record(connection: Connection, record_id: str, author: str | None, limit: int) -> Sequence[Proposal]:
    """Return the open proposals about a record, the oldest first; optionally only those by an author."""
    return _list(connection, [_IS_OPEN, *_match(record=record_id, author=author)], None, limit)


def list_open_authors(connection: Connection, limit: int) -> Sequence[str]:
    """Return the authors of open proposals by id."""
    # One indexed lookup per author, instead of reading all of their proposals.
    authors: list[str] = []
    while len(authors) < limit:
        query = select(_proposal.author).where(_IS_OPEN, _proposal.author > (authors[-1] if authors else ""))
        author = connection.scalar(query.order_by(_proposal.author).limit(1))
        if author is None:
            break
        authors.append(author)
    return authors


def save_decision(transaction: Transaction, proposal: Proposal) -> None:
    """Save the state and decision of a proposal, and its record."""
    values = {name: getattr(proposal, name) for name in ("state", "decider", "decided", "reason", "record")}
    transaction.connection.execute(update(proposal_table).where(_proposal.id == proposal.id).values(values))


def _match(**values: str | None) -> list[ColumnElement[bool]]:
    return [_proposal[name] == value for name, value in values.items() if value is not None]


def _list(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    after: _PageKey | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> list[Proposal]:
    query = select(proposal_table).where(*conditions).limit(limit)
    if after is not None:
        sort_key = tuple_(_proposal.made, _proposal.id)
        query = query.where(sort_key < after if newest_first else sort_key > after)
    order = [column.desc() if newest_first else column for column in (_proposal.made, _proposal.id)]
    return [_to_proposal(row) for row in connection.execute(query.order_by(*order))]


def _to_proposal(row: Any) -> Proposal:
    return Proposal(**{**row._mapping, "state": ProposalState(row.state)})
