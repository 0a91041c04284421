"""Proposals in the store."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, insert, literal_column, select, tuple_, update

from lexarium.domain.proposals import Decision, Proposal, Queue
from lexarium.store.schema import proposal
from lexarium.store.transaction import Transaction

# Spelt out, as the indexes of what is open have it: of a parameter a plan made beforehand does not know that.
_OPEN = proposal.c.state == literal_column(f"'{Decision.OPEN}'")


def add(transaction: Transaction, new: Proposal) -> None:
    """Keep a new proposal."""
    transaction.connection.execute(insert(proposal).values(asdict(new)))


def sum_open(connection: Connection, author: str) -> tuple[int, int]:
    """Return how many open proposals someone has, and how many bytes their changes hold together."""
    size = func.coalesce(func.sum(func.length(proposal.c.change)), 0)
    row = connection.execute(select(func.count(), size).where(_OPEN, proposal.c.author == author)).one()
    return row[0], int(row[1])


def find(connection: Connection, identifier: str) -> Proposal | None:
    """The proposal of this id, or None."""
    row = connection.execute(select(proposal).where(proposal.c.id == identifier)).one_or_none()
    return None if row is None else _proposal(row)


def page(
    connection: Connection, state: Decision | None, author: str | None, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next proposals, the oldest first; `after` is when the last of the page before was made, and its id."""
    query = select(proposal).order_by(proposal.c.made, proposal.c.id).limit(limit)
    if state is not None:
        query = query.where(proposal.c.state == state)
    if author is not None:
        query = query.where(proposal.c.author == author)
    if after is not None:
        query = query.where(tuple_(proposal.c.made, proposal.c.id) > after)
    return [_proposal(row) for row in connection.execute(query)]


def count(connection: Connection, state: Decision, most: int | None = None) -> int:
    """How many stand so, counted no further than to `most`."""
    found = select(proposal.c.id).where(proposal.c.state == state).limit(most).subquery()
    return connection.scalar(select(func.count()).select_from(found)) or 0


def waiting(connection: Connection, queue: Queue, after: tuple[int, str] | None, limit: int) -> Sequence[Proposal]:
    """The next open proposals of a queue; `after` is when the last of the page before was made, and its id."""
    place = tuple_(proposal.c.made, proposal.c.id)
    query = select(proposal).where(_OPEN).limit(limit)
    order = (proposal.c.made.desc(), proposal.c.id.desc()) if queue.newest else (proposal.c.made, proposal.c.id)
    if queue.collection is not None:
        query = query.where(proposal.c.collection == queue.collection)
    if queue.author is not None:
        query = query.where(proposal.c.author == queue.author)
    if after is not None:
        query = query.where(place < after if queue.newest else place > after)
    return [_proposal(row) for row in connection.execute(query.order_by(*order))]


def made_by(connection: Connection, author: str, before: tuple[int, str] | None, limit: int) -> Sequence[Proposal]:
    """The proposals of someone, the newest first; `before` is when the last of the page before was made, and its id."""
    query = select(proposal).where(proposal.c.author == author).limit(limit)
    if before is not None:
        query = query.where(tuple_(proposal.c.made, proposal.c.id) < before)
    return [_proposal(row) for row in connection.execute(query.order_by(proposal.c.made.desc(), proposal.c.id.desc()))]


def about(connection: Connection, record: str, author: str | None, limit: int) -> Sequence[Proposal]:
    """The open proposals about a record, perhaps only someone's, the oldest first, at most so many."""
    query = select(proposal).where(_OPEN, proposal.c.record == record).limit(limit)
    if author is not None:
        query = query.where(proposal.c.author == author)
    return [_proposal(row) for row in connection.execute(query.order_by(proposal.c.made, proposal.c.id))]


def authors(connection: Connection, limit: int) -> Sequence[str]:
    """Who has made proposals that are open, at most so many."""
    # Each is looked for after the one before, so that of all that someone has made one is read.
    found: list[str] = []
    while len(found) < limit:
        query = select(proposal.c.author).where(_OPEN, proposal.c.author > (found[-1] if found else ""))
        following = connection.scalar(query.order_by(proposal.c.author).limit(1))
        if following is None:
            break
        found.append(following)
    return found


def decide(transaction: Transaction, decided: Proposal) -> None:
    """Write what became of a proposal."""
    values = {
        "state": decided.state,
        "decider": decided.decider,
        "decided": decided.decided,
        "reason": decided.reason,
        "record": decided.record,
    }
    transaction.connection.execute(update(proposal).where(proposal.c.id == decided.id).values(values))


def _proposal(row: Any) -> Proposal:
    return Proposal(
        id=row.id,
        collection=row.collection,
        change=row.change,
        author=row.author,
        made=row.made,
        record=row.record,
        base_version=row.base_version,
        state=Decision(row.state),
        decider=row.decider,
        decided=row.decided,
        reason=row.reason,
    )
