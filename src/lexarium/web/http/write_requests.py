"""Steps of every write: make it idempotent, and await the commit without occupying a thread."""

import asyncio

from starlette.requests import Request

from lexarium.services.idempotency import IdempotencyRequest
from lexarium.store.database import Database
from lexarium.store.write_queue import Result, WriteTask
from lexarium.web.http.problems import HTTPProblem

_MAX_KEY_CHARS = 200


def build_idempotency_request(request: Request, key: str | None, *body: bytes) -> IdempotencyRequest:
    """Return what an `Idempotency-Key` is bound to; raise a 400 where the key is invalid."""
    if key is not None and not 0 < len(key) <= _MAX_KEY_CHARS:
        raise HTTPProblem(400, f"Idempotency-Key must have 1 to {_MAX_KEY_CHARS} characters.")
    url = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    return IdempotencyRequest.from_parts(key, f"{request.method} ".encode(), url, b"\n", *body)


async def await_write(database: Database, task: WriteTask[Result]) -> Result:
    """Return the result of a write task once it is committed."""
    return await asyncio.wrap_future(database.submit_write(task))
