"""The feed: every change, in order, once; and live."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query, Request
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium.domain.changes import Change
from lexarium.domain.errors import Unauthenticated
from lexarium.service.looking import changes_since
from lexarium.service.views import change_view
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.web.asked import known_collection
from lexarium.web.problems import HttpProblem
from lexarium.web.streams import Stream, Streams
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import GateOf, StoreOf, StreamsOf
from lexarium.web.v1.schemas import answered, live

router = APIRouter(tags=["changes"])

_LARGEST = 2**53
_DIGITS = len(str(_LARGEST))
_LOOK_SECONDS = 0.1
_HEARTBEAT_SECONDS = 15.0
_AT_ONCE = 100


@router.get(
    "/changes",
    summary="The changes after one, in order; with `Accept: text/event-stream` live",
    responses=live(answered("Changes")),
)
async def changes(
    request: Request,
    database: StoreOf,
    streams: StreamsOf,
    gate: GateOf,
    since: Annotated[int | None, Query(ge=0, le=_LARGEST, description="The last `seq` you have.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    collection: Annotated[str | None, Query(max_length=100), AfterValidator(known_collection)] = None,
    last_event_id: Annotated[str | None, Header(description="Where a live stream resumes.")] = None,
) -> Response:
    """Without `since`, JSON begins with the first change of all; a live stream with the next that is made.

    A live stream resumes after `Last-Event-ID`, whatever `since` says. It ends by itself now and then: its client is
    to come back after the second that `retry` tells.
    """
    wanted = [] if collection is None else [collection]
    if "text/event-stream" not in request.headers.get("accept", ""):
        found = await run_in_threadpool(_read, database, since or 0, limit, wanted)
        last = found[-1].seq if found else since or 0
        return answers.read({"items": [change_view(change) for change in found], "next": last})
    start = since if last_event_id is None else _seq_of(last_event_id)
    if start is None:
        start = database.position().revision
    else:
        await run_in_threadpool(_read, database, start, 1, wanted)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if getattr(request.state, "head", False):
        return Response(media_type="text/event-stream", headers=headers)
    streams.refuse_more()
    events = _live(database, streams, lambda: gate.check(request), start, wanted)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _seq_of(last_event_id: str) -> int:
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) < _DIGITS):
        raise HttpProblem(400, "Last-Event-ID must be the id of an event of this stream: a whole number.")
    return int(last_event_id)


def _read(database: Database, since: int, limit: int, collections: list[str]) -> list[Change]:
    with database.read() as snapshot:
        return changes_since(snapshot, since, limit, collections)


def _read_to(database: Database, since: int, collections: list[str]) -> tuple[list[Change], int]:
    """Some changes, and the seq up to which there are no others."""
    with database.read() as snapshot:
        found = changes_since(snapshot, since, _AT_ONCE, collections)
        return found, found[-1].seq if len(found) == _AT_ONCE else read_position(snapshot).revision


Check = Callable[[], Awaitable[None]]
"""Raises `Unauthenticated` where whoever has a stream may no longer read."""


async def _live(
    database: Database, streams: Streams, check: Check, since: int, collections: list[str]
) -> AsyncIterator[bytes]:
    """Each change as an event, for as long as a stream may last."""
    with streams.opened() as stream, suppress(Unauthenticated):
        yield b"retry: 1000\n\n"
        async for event in _events(database, stream, check, since, collections):
            yield event


async def _events(
    database: Database, stream: Stream, check: Check, since: int, collections: list[str]
) -> AsyncIterator[bytes]:
    """What a slow reader has not taken is not read: nothing piles up here.

    They end where another epoch begins: what is numbered on from there is something else.
    """
    silent = 0.0
    epoch = database.position().epoch
    while stream.goes_on and database.position().epoch == epoch:
        if database.position().revision > since:
            await check()
            found, since = await run_in_threadpool(_read_to, database, since, collections)
            for change in found:
                yield b"id: %d\nevent: change\ndata: %b\n\n" % (change.seq, orjson.dumps(change_view(change)))
            if found:
                silent = 0.0
                continue
        if silent >= _HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            silent = 0.0
        await asyncio.sleep(_LOOK_SECONDS)
        silent += _LOOK_SECONDS
