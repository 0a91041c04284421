"""Doing a write once, however often it is asked for under one key."""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import orjson

from lexarium.domain.errors import Conflict
from lexarium.domain.stamps import now
from lexarium.service.access import Caller
from lexarium.store import idempotency
from lexarium.store.idempotency import Kept
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Work


@dataclass(frozen=True)
class Outcome:
    """What a write answers; kept as it is, so that it can be answered again."""

    status: int
    content: Any
    location: str | None = None
    etag: str | None = None


@dataclass(frozen=True)
class Ask:
    """A request as its key knows it."""

    key: str | None
    """What the client calls it; None: it may be done again."""
    digest: str
    """Of all that makes it what it is: method, path and body."""

    @classmethod
    def of(cls, key: str | None, *what: bytes) -> Self:
        """A request from its key, if it has one, and from all that makes it what it is."""
        digest = hashlib.sha256()
        for piece in what if key is not None else ():
            digest.update(piece)
        return cls(key, digest.hexdigest())


def once(caller: Caller, ask: Ask, work: Work[Outcome]) -> Work[Outcome]:
    """The same work, unless this caller has had it done under this key: then it answers as then.

    The answer is kept in the write's own transaction. Raises `Conflict` where the key was used for another request.
    """
    if ask.key is None:
        return work
    key, account = ask.key, caller.account.id

    def kept_work(transaction: Transaction) -> Outcome:
        kept = idempotency.find(transaction.connection, account, key, at=now())
        if kept is not None:
            if kept.request != ask.digest:
                raise Conflict("This Idempotency-Key was used for another request. Use a new one.")
            return Outcome(**orjson.loads(kept.answer))
        outcome = work(transaction)
        answer = orjson.dumps(outcome)
        idempotency.keep(transaction, account, key, Kept(ask.digest, answer), at=now())
        return outcome

    return kept_work


def forget(transaction: Transaction, account_id: str) -> None:
    """Let go of the answers that tell of an account, which hold its name."""
    for account, key, answer in idempotency.every(transaction.connection):
        if account_id.encode() in answer:
            content = orjson.loads(answer)["content"]
            if isinstance(content, dict) and content.get("id") == account_id:
                idempotency.drop(transaction, account, key)
