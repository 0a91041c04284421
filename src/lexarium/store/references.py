"""Whether what stands beside the records and their log makes sense: it names what is there, and says what is known."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Row, Select, Table, select

from lexarium.domain.accounts import Origin, Role
from lexarium.domain.changes import Action
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.proposals import Decision
from lexarium.store.records import STREAMED
from lexarium.store.schema import (
    account,
    change,
    delivery,
    idempotency,
    proposal,
    record,
    release,
    token,
    upstream,
    webhook,
)


class Odd(NamedTuple):
    """A row that makes no sense: of which table and key, and why."""

    table: str
    key: str
    why: str


# Engines hold some of these themselves, unless they were told not to, or the file was altered behind their back.
_NAMED: tuple[tuple[Column[Any], Column[Any]], ...] = (
    (token.c.account, account.c.id),
    (proposal.c.author, account.c.id),
    (proposal.c.decider, account.c.id),
    (proposal.c.record, record.c.id),
    (release.c.author, account.c.id),
    (idempotency.c.account, account.c.id),
    (delivery.c.webhook, webhook.c.id),
    (upstream.c.record, record.c.id),
)
"""What names something, and where that must be."""

_KNOWN: tuple[tuple[Column[Any], Collection[str]], ...] = (
    (account.c.role, list(Role)),
    (token.c.role, list(Role)),
    (token.c.origin, list(Origin)),
    (proposal.c.state, list(Decision)),
    (proposal.c.collection, list(COLLECTIONS)),
)
"""What is one of some words."""

_WORDS: tuple[tuple[Column[Any], Collection[str]], ...] = (
    (webhook.c.collections, list(COLLECTIONS)),
    (webhook.c.actions, list(Action)),
)
"""What is some of them, with spaces between."""

_PLACES = (release.c.revision, webhook.c.seq, delivery.c.seq)
"""What is a place in the log."""

_DOCUMENTS = (proposal.c.change, idempotency.c.answer, upstream.c.untaken)
"""What is a JSON object."""


def odd(connection: Connection, revision: int) -> Iterator[Odd]:
    """Every row that names what is not there, or says what cannot be."""
    for column, there in _NAMED:
        lost = there.is_(None) & column.is_not(None)
        query = _rows_of(column).outerjoin(there.table, there == column).where(lost)
        yield from _odd(connection, column, query, "{value!r} is not there")
    for column, words in _KNOWN:
        query = _rows_of(column).where(column.not_in(words))
        yield from _odd(connection, column, query, "{value!r} is none that there is")
    for column in _PLACES:
        query = _rows_of(column).where((column > revision) | (column < 0))
        yield from _odd(connection, column, query, "{value} is not in the log")
    yield from _baseless(connection)
    yield from _undecided(connection)
    yield from _wordless(connection)
    yield from _unreadable(connection)


def _baseless(connection: Connection) -> Iterator[Odd]:
    """The proposals to change a version that the log does not have."""
    base = (change.c.record == proposal.c.record) & (change.c.version == proposal.c.base_version)
    query = _rows_of(proposal.c.base_version).outerjoin(change, base)
    query = query.where(proposal.c.base_version.is_not(None), change.c.seq.is_(None))
    yield from _odd(connection, proposal.c.base_version, query, "{value} is no version of its record")


def _undecided(connection: Connection) -> Iterator[Odd]:
    """The proposals of which it is not told who decided them, or that are open and decided."""
    query = _rows_of(proposal.c.state).where((proposal.c.state == Decision.OPEN) == proposal.c.decider.is_not(None))
    yield from _odd(connection, proposal.c.state, query, "{value!r} does not go with its decider")


def _wordless(connection: Connection) -> Iterator[Odd]:
    for column, words in _WORDS:
        for row in connection.execute(_rows_of(column)):
            unknown = set(row.value.split()) - set(words)
            yield from (Odd(column.table.name, _key(row), f"{column.name} has {each!r}") for each in sorted(unknown))


def _unreadable(connection: Connection) -> Iterator[Odd]:
    for column in _DOCUMENTS:
        for row in connection.execute(_rows_of(column), execution_options=STREAMED):
            try:
                readable = isinstance(orjson.loads(row.value), dict)
            except ValueError:
                readable = False
            if not readable:
                yield Odd(column.table.name, _key(row), f"{column.name} cannot be read")


def _rows_of(column: Column[Any]) -> Select[Any]:
    """A column of all rows, with their keys."""
    table = column.table
    assert isinstance(table, Table)
    return select(column.label("value"), *table.primary_key.columns).order_by(*table.primary_key.columns)


def _odd(connection: Connection, column: Column[Any], query: Select[Any], why: str) -> Iterator[Odd]:
    for row in connection.execute(query):
        yield Odd(column.table.name, _key(row), f"{column.name} {why.format(value=row.value)}")


def _key(row: Row[Any]) -> str:
    return " ".join(map(str, row[1:]))
