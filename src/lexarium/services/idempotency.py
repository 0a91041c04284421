"""Doing a write once, however often it is asked for under one key."""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import orjson

from lexarium.domain.errors import Conflict
from lexarium.domain.timestamps import now_ms
from lexarium.store import idempotency
from lexarium.store.idempotency import SavedResponse
from lexarium.store.transaction import Transaction
from lexarium.store.write_queue import WriteTask


@dataclass(frozen=True)
class WriteResponse:
    """What a write answers; kept as it is, so that it can be answered again."""

    status: int
    content: Any
    location: str | None = None
    etag: str | None = None


@dataclass(frozen=True)
class IdempotencyRequest:
    """A request as its key knows it."""

    key: str | None
    """What the client calls it; None: it may be done again."""
    digest: str
    """Of all that makes it what it is: method, path and body."""

    @classmethod
    def from_parts(cls, key: str | None, *parts: bytes) -> Self:
        """A request from its key, if it has one, and from all that makes it what it is."""
        digest = hashlib.sha256()
        for part in parts if key is not None else ():
            digest.update(part)
        return cls(key, digest.hexdigest())


def make_idempotent(
    account_id: str, request: IdempotencyRequest, task: WriteTask[WriteResponse]
) -> WriteTask[WriteResponse]:
    """The same work, unless this caller has had it done under this key: then it answers as then.

    The answer is kept in the write's own transaction. Raises `Conflict` where the key was used for another request.
    """
    if request.key is None:
        return task
    key = request.key

    def idempotent_task(transaction: Transaction) -> WriteResponse:
        stored = idempotency.find(transaction.connection, account_id, key, at=now_ms())
        if stored is not None:
            if stored.request_hash != request.digest:
                raise Conflict("This Idempotency-Key was used for another request. Use a new one.")
            return WriteResponse(**orjson.loads(stored.response))
        response = task(transaction)
        body = orjson.dumps(response)
        idempotency.save(transaction, account_id, key, SavedResponse(request.digest, body), at=now_ms())
        return response

    return idempotent_task


def delete_account_responses(transaction: Transaction, account_id: str) -> None:
    """Let go of the answers that tell of an account, which hold its name."""
    for owner_id, key, body in idempotency.list_all(transaction.connection):
        if account_id.encode() in body:
            content = orjson.loads(body)["content"]
            if isinstance(content, dict) and content.get("id") == account_id:
                idempotency.delete_response(transaction, owner_id, key)
