"""What every write asks of the service, without keeping a thread waiting."""

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lexarium.service.access import Caller, Callers
from lexarium.service.once import Ask
from lexarium.store.database import Database
from lexarium.store.writer import Result, Work
from lexarium.web.problems import HttpProblem

_LONGEST_KEY = 200


async def caller_of(request: Request, callers: Callers) -> Caller:
    """Who sends a request. Raises `Unauthenticated` where it does not say, or says wrongly."""
    return await caller_by(request.headers.get("authorization"), callers)


async def caller_by(authorization: str | None, callers: Callers) -> Caller:
    """The caller that an `Authorization` header names."""
    caller = callers.remembered(authorization)
    return await run_in_threadpool(callers.identify, authorization) if caller is None else caller


def asked(request: Request, key: str | None, *body: bytes) -> Ask:
    """A request as its `Idempotency-Key` knows it."""
    if key is not None and not 0 < len(key) <= _LONGEST_KEY:
        raise HttpProblem(400, f"An Idempotency-Key must have from 1 to {_LONGEST_KEY} characters.")
    address = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    return Ask.of(key, f"{request.method} ".encode(), address, b"\n", *body)


async def done(database: Database, work: Work[Result]) -> Result:
    """The result of a piece of work, once it is committed."""
    return await asyncio.wrap_future(database.submit(work))
