"""Answers that are kept so that a request sent twice is done once."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import idempotency
from lexarium.store.transaction import Transaction

KEPT_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Kept:
    """What was asked under a key, as a hash, and what was answered."""

    request: str
    answer: bytes


def find(connection: Connection, account: str, key: str, *, at: int) -> Kept | None:
    """What an account asked under a key within the last day."""
    this = (idempotency.c.account == account) & (idempotency.c.key == key) & (idempotency.c.made > at - KEPT_MS)
    row = connection.execute(select(idempotency.c.request, idempotency.c.answer).where(this)).one_or_none()
    return None if row is None else Kept(row.request, row.answer)


def every(connection: Connection) -> list[tuple[str, str, bytes]]:
    """Whose it is, the key and the answer, of all that is kept."""
    rows = connection.execute(select(idempotency.c.account, idempotency.c.key, idempotency.c.answer))
    return [(row.account, row.key, row.answer) for row in rows]


def drop(transaction: Transaction, account: str, key: str) -> None:
    """Let go of one."""
    this = (idempotency.c.account == account) & (idempotency.c.key == key)
    transaction.connection.execute(delete(idempotency).where(this))


def keep(transaction: Transaction, account: str, key: str, kept: Kept, *, at: int) -> None:
    """Keep an answer under a key, and let go of those that are older than a day."""
    transaction.connection.execute(delete(idempotency).where(idempotency.c.made <= at - KEPT_MS))
    values = {"account": account, "key": key, "request": kept.request, "answer": kept.answer, "made": at}
    transaction.connection.execute(insert(idempotency).values(values))
