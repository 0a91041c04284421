"""Run a write once per Idempotency-Key; return the stored response when it is sent again."""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import orjson

from lexarium.domain.errors import Conflict
from lexarium.domain.text.timestamps import now_ms
from lexarium.store import idempotency
from lexarium.store.idempotency import SavedResponse
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.store.write_queue import WriteTask


@dataclass(frozen=True)
class IdempotencyRequest:
    """Key and digest of a request; without a key it may be repeated."""

    key: str | None
    digest: str

    @classmethod
    def from_parts(cls, key: str | None, *parts: bytes) -> Self:
        """Return the request with a key and the digest of its method, path and body."""
        digest = hashlib.sha256()
        for part in parts if key is not None else ():
            digest.update(part)
        return cls(key, digest.hexdigest())


@dataclass(frozen=True)
class WriteResponse:
    """Response of a write. Stored as JSON: do not rename the fields."""

    status: int
    content: Any
    location: str | None = None
    etag: str | None = None


def make_idempotent(
    account_id: str, request: IdempotencyRequest, task: WriteTask[WriteResponse]
) -> WriteTask[WriteResponse]:
    """Return a task that runs once per account and key; later runs return the stored response.

    It is stored in the transaction of the write. The task raises Conflict if the key was used for another request.
    """
    if request.key is None:
        return task
    key = request.key

    def idempotent_task(transaction: Transaction) -> WriteResponse:
        stored = idempotency.find(transaction.flush(), account_id, key, at=now_ms())
        if stored is not None:
            if stored.request_hash != request.digest:
                raise Conflict("Idempotency-Key was already used for another request; use a new one.")
            return WriteResponse(**orjson.loads(stored.response))
        result = task(transaction)
        saved = SavedResponse(request.digest, orjson.dumps(result))
        idempotency.save(transaction, account_id, key, saved, at=now_ms())
        return result

    return idempotent_task


def is_repeated(snapshot: Snapshot, account_id: str, request: IdempotencyRequest) -> bool:
    """Return whether a request was done before, and would only have its response returned."""
    return request.key is not None and idempotency.find(snapshot, account_id, request.key, at=now_ms()) is not None


def delete_account_responses(transaction: Transaction, account_id: str) -> None:
    """Delete the stored responses about an account, which hold its name."""
    for owner_id, key, body in idempotency.list_all(transaction.flush()):
        if account_id.encode() in body:
            content = WriteResponse(**orjson.loads(body)).content
            if isinstance(content, dict) and content.get("id") == account_id:
                idempotency.delete_response(transaction, owner_id, key)
