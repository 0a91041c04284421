"""What every write asks of the service, without keeping a thread waiting."""

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lexarium.service.access import Caller, Callers
from lexarium.store.database import Database
from lexarium.store.writer import Result, Work


async def caller_of(request: Request, callers: Callers) -> Caller:
    """Who sends a request. Raises `Unauthenticated` where it does not say, or says wrongly."""
    authorization = request.headers.get("authorization")
    caller = callers.remembered(authorization)
    return await run_in_threadpool(callers.identify, authorization) if caller is None else caller


async def done(database: Database, work: Work[Result]) -> Result:
    """The result of a piece of work, once it is committed."""
    return await asyncio.wrap_future(database.submit(work))
