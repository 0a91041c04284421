"""The feed: every change, in order, once; and live."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium.domain.changes import Change
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, Problem
from lexarium.service.looking import changes_since
from lexarium.service.views import change_view
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import StoreOf
from lexarium.web.v1.schemas import answered, live

router = APIRouter(tags=["changes"])

_LARGEST = 2**53
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
    since: Annotated[int | None, Query(ge=0, le=_LARGEST, description="The last `seq` you have.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    collection: Annotated[str | None, Query(max_length=100)] = None,
    last_event_id: Annotated[str | None, Header(description="Where a live stream resumes.")] = None,
) -> Response:
    """A live stream without `since` or `Last-Event-ID` begins with the next change."""
    if collection is not None and collection not in COLLECTIONS:
        raise Invalid(
            "There is no such collection.", [Problem("collection", f"should be one of {', '.join(COLLECTIONS)}.")]
        )
    wanted = [] if collection is None else [collection]
    if "text/event-stream" in request.headers.get("accept", ""):
        start = since
        if last_event_id is not None and last_event_id.isdecimal() and last_event_id.isascii():
            start = min(int(last_event_id), _LARGEST)
        if start is None:
            start = database.position().revision
        headers = {"cache-control": "no-store", "access-control-allow-origin": "*", "x-accel-buffering": "no"}
        return StreamingResponse(_live(database, start, wanted), media_type="text/event-stream", headers=headers)
    found = await run_in_threadpool(_read, database, since or 0, limit, wanted)
    last = found[-1].seq if found else since or 0
    return answers.read({"items": [change_view(change) for change in found], "next": last})


def _read(database: Database, since: int, limit: int, collections: list[str]) -> list[Change]:
    with database.read() as snapshot:
        return changes_since(snapshot, since, limit, collections)


def _read_to(database: Database, since: int, collections: list[str]) -> tuple[list[Change], int]:
    """Some changes, and the seq up to which there are no others."""
    with database.read() as snapshot:
        found = changes_since(snapshot, since, _AT_ONCE, collections)
        return found, found[-1].seq if len(found) == _AT_ONCE else read_position(snapshot).revision


async def _live(database: Database, since: int, collections: list[str]) -> AsyncIterator[bytes]:
    """Each change as an event. What a slow reader has not taken is not read: nothing piles up here."""
    yield b"retry: 1000\n\n"
    silent = 0.0
    while True:
        if database.position().revision > since:
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
