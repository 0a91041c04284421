"""Proposals in the store."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, insert, literal_column, select, tuple_, update

from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.store.schema import proposal_table
from lexarium.store.transaction import Transaction

# Spelt out, as the indexes of what is open have it: of a parameter a plan made beforehand does not know that.
_IS_OPEN = proposal_table.c.state == literal_column(f"'{ProposalState.OPEN}'")


def add(transaction: Transaction, proposal: Proposal) -> None:
    """Keep a new proposal."""
    transaction.connection.execute(insert(proposal_table).values(asdict(proposal)))


def sum_open(connection: Connection, author: str) -> tuple[int, int]:
    """Return how many open proposals someone has, and how many bytes their changes hold together."""
    size = func.coalesce(func.sum(func.length(proposal_table.c.change)), 0)
    row = connection.execute(select(func.count(), size).where(_IS_OPEN, proposal_table.c.author == author)).one()
    return row[0], int(row[1])


def find(connection: Connection, proposal_id: str) -> Proposal | None:
    """The proposal of this id, or None."""
    row = connection.execute(select(proposal_table).where(proposal_table.c.id == proposal_id)).one_or_none()
    return None if row is None else _to_proposal(row)


def list_page(
    connection: Connection, state: ProposalState | None, author: str | None, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next proposals, the oldest first; `after` is when the last of the page before was made, and its id."""
    query = select(proposal_table).order_by(proposal_table.c.made, proposal_table.c.id).limit(limit)
    if state is not None:
        query = query.where(proposal_table.c.state == state)
    if author is not None:
        query = query.where(proposal_table.c.author == author)
    if after is not None:
        query = query.where(tuple_(proposal_table.c.made, proposal_table.c.id) > after)
    return [_to_proposal(row) for row in connection.execute(query)]


def count_in_state(connection: Connection, state: ProposalState, limit: int | None = None) -> int:
    """How many stand so, counted no further than to `most`."""
    matching = select(proposal_table.c.id).where(proposal_table.c.state == state).limit(limit).subquery()
    return connection.scalar(select(func.count()).select_from(matching)) or 0


def list_open(
    connection: Connection, proposal_filter: ProposalFilter, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next open proposals of a queue; `after` is when the last of the page before was made, and its id."""
    sort_key = tuple_(proposal_table.c.made, proposal_table.c.id)
    query = select(proposal_table).where(_IS_OPEN).limit(limit)
    order = (
        (proposal_table.c.made.desc(), proposal_table.c.id.desc())
        if proposal_filter.newest_first
        else (proposal_table.c.made, proposal_table.c.id)
    )
    if proposal_filter.collection is not None:
        query = query.where(proposal_table.c.collection == proposal_filter.collection)
    if proposal_filter.author is not None:
        query = query.where(proposal_table.c.author == proposal_filter.author)
    if after is not None:
        query = query.where(sort_key < after if proposal_filter.newest_first else sort_key > after)
    return [_to_proposal(row) for row in connection.execute(query.order_by(*order))]


def list_by_author(
    connection: Connection, author: str, before: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The proposals of someone, the newest first; `before` is when the last of the page before was made, and its id."""
    query = select(proposal_table).where(proposal_table.c.author == author).limit(limit)
    if before is not None:
        query = query.where(tuple_(proposal_table.c.made, proposal_table.c.id) < before)
    return [
        _to_proposal(row)
        for row in connection.execute(query.order_by(proposal_table.c.made.desc(), proposal_table.c.id.desc()))
    ]


def list_open_for_record(connection: Connection, record_id: str, author: str | None, limit: int) -> Sequence[Proposal]:
    """The open proposals about a record, perhaps only someone's, the oldest first, at most so many."""
    query = select(proposal_table).where(_IS_OPEN, proposal_table.c.record == record_id).limit(limit)
    if author is not None:
        query = query.where(proposal_table.c.author == author)
    return [_to_proposal(row) for row in connection.execute(query.order_by(proposal_table.c.made, proposal_table.c.id))]


def list_open_authors(connection: Connection, limit: int) -> Sequence[str]:
    """Who has made proposals that are open, at most so many."""
    # Each is looked for after the one before, so that of all that someone has made one is read.
    authors: list[str] = []
    while len(authors) < limit:
        query = select(proposal_table.c.author).where(
            _IS_OPEN, proposal_table.c.author > (authors[-1] if authors else "")
        )
        author = connection.scalar(query.order_by(proposal_table.c.author).limit(1))
        if author is None:
            break
        authors.append(author)
    return authors


def save_decision(transaction: Transaction, proposal: Proposal) -> None:
    """Write what became of a proposal."""
    values = {
        "state": proposal.state,
        "decider": proposal.decider,
        "decided": proposal.decided,
        "reason": proposal.reason,
        "record": proposal.record,
    }
    transaction.connection.execute(update(proposal_table).where(proposal_table.c.id == proposal.id).values(values))


def _to_proposal(row: Any) -> Proposal:
    return Proposal(
        id=row.id,
        collection=row.collection,
        change=row.change,
        author=row.author,
        made=row.made,
        record=row.record,
        base_version=row.base_version,
        state=ProposalState(row.state),
        decider=row.decider,
        decided=row.decided,
        reason=row.reason,
    )
