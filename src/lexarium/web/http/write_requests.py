"""What every write asks of the service, without keeping a thread waiting."""

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller
from lexarium.services.idempotency import IdempotencyRequest
from lexarium.store.database import Database
from lexarium.store.write_queue import Result, WriteTask
from lexarium.web.http.problems import HTTPProblem

_MAX_KEY_CHARS = 200


async def authenticate_request(request: Request, authenticator: Authenticator) -> Caller:
    """Who sends a request. Raises `Unauthenticated` where it does not say, or says wrongly."""
    return await authenticate_header(request.headers.get("authorization"), authenticator)


async def authenticate_header(authorization: str | None, authenticator: Authenticator) -> Caller:
    """The caller that an `Authorization` header names."""
    caller = authenticator.get_cached(authorization)
    return await run_in_threadpool(authenticator.authenticate, authorization) if caller is None else caller


def build_idempotency_request(request: Request, key: str | None, *body: bytes) -> IdempotencyRequest:
    """A request as its `Idempotency-Key` knows it."""
    if key is not None and not 0 < len(key) <= _MAX_KEY_CHARS:
        raise HTTPProblem(400, f"An Idempotency-Key must have from 1 to {_MAX_KEY_CHARS} characters.")
    url = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    return IdempotencyRequest.from_parts(key, f"{request.method} ".encode(), url, b"\n", *body)


async def await_write(database: Database, task: WriteTask[Result]) -> Result:
    """The result of a piece of work, once it is committed."""
    return await asyncio.wrap_future(database.submit_write(task))
