"""Queries for saved responses, so that a repeated request is done once."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import idempotency_table
from lexarium.store.transaction import Transaction

RETENTION_MS = 24 * 60 * 60 * 1000
_saved = idempotency_table.c


@dataclass(frozen=True)
class SavedResponse:
    """Response to a request, with the hash of that request."""

    request_hash: str
    response: bytes


def find(connection: Connection, account_id: str, key: str, *, at: int) -> SavedResponse | None:
    """Return the response saved under an account's key within the retention time, or None."""
    query = select(_saved.request, _saved.answer).where(_saved.account == account_id, _saved.key == key)
    row = connection.execute(query.where(_saved.made > at - RETENTION_MS)).one_or_none()
    return None if row is None else SavedResponse(row.request, row.answer)


def list_all(connection: Connection) -> list[tuple[str, str, bytes]]:
    """Return the account id, key and response of all saved responses."""
    return [tuple(row) for row in connection.execute(select(_saved.account, _saved.key, _saved.answer))]


def delete_response(transaction: Transaction, account_id: str, key: str) -> None:
    """Delete the response saved under an account's key."""
    transaction.execute(delete(idempotency_table).where(_saved.account == account_id, _saved.key == key))


def save(transaction: Transaction, account_id: str, key: str, saved: SavedResponse, *, at: int) -> None:
    """Save a response under an account's key, and delete those past the retention time."""
    transaction.execute(delete(idempotency_table).where(_saved.made <= at - RETENTION_MS))
    values = {"account": account_id, "key": key, "request": saved.request_hash, "answer": saved.response, "made": at}
    transaction.execute(insert(idempotency_table).values(values))
