"""Responses of writes, stored so that a repeated request gets the same one."""

from dataclasses import dataclass
from typing import Any

import orjson

from lexarium.services import idempotency
from lexarium.services.idempotency import IdempotencyRequest
from lexarium.store.write_queue import WriteTask


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
    """Return a task that runs once per account and key, and then returns the stored response."""
    return idempotency.make_idempotent(account_id, request, task, lambda body: WriteResponse(**orjson.loads(body)))
