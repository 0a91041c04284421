"""Answers that are kept so that a request sent twice is done once."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import idempotency_table
from lexarium.store.transaction import Transaction

RETENTION_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class SavedResponse:
    """What was asked under a key, as a hash, and what was answered."""

    request_hash: str
    response: bytes


def find(connection: Connection, account_id: str, key: str, *, at: int) -> SavedResponse | None:
    """What an account asked under a key within the last day."""
    condition = (
        (idempotency_table.c.account == account_id)
        & (idempotency_table.c.key == key)
        & (idempotency_table.c.made > at - RETENTION_MS)
    )
    row = connection.execute(
        select(idempotency_table.c.request, idempotency_table.c.answer).where(condition)
    ).one_or_none()
    return None if row is None else SavedResponse(row.request, row.answer)


def list_all(connection: Connection) -> list[tuple[str, str, bytes]]:
    """Whose it is, the key and the answer, of all that is kept."""
    rows = connection.execute(select(idempotency_table.c.account, idempotency_table.c.key, idempotency_table.c.answer))
    return [(row.account, row.key, row.answer) for row in rows]


def delete_response(transaction: Transaction, account_id: str, key: str) -> None:
    """Let go of one."""
    condition = (idempotency_table.c.account == account_id) & (idempotency_table.c.key == key)
    transaction.connection.execute(delete(idempotency_table).where(condition))


def save(transaction: Transaction, account_id: str, key: str, saved: SavedResponse, *, at: int) -> None:
    """Keep an answer under a key, and let go of those that are older than a day."""
    transaction.connection.execute(delete(idempotency_table).where(idempotency_table.c.made <= at - RETENTION_MS))
    values = {"account": account_id, "key": key, "request": saved.request_hash, "answer": saved.response, "made": at}
    transaction.connection.execute(insert(idempotency_table).values(values))
