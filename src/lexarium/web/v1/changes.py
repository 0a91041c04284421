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

from lexarium.domain.change import Change
from lexarium.domain.errors import Conflict, DatabaseDamaged, Unauthenticated
from lexarium.services.records.queries import list_changes, list_changes_newest
from lexarium.services.serializers import serialize_change
from lexarium.store.database import Database
from lexarium.store.position import read_position
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.streaming import EventStream, EventStreams
from lexarium.web.request_models import validate_collection
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import GateOf, StoreOf, StreamsOf
from lexarium.web.v1.schemas import answered, live

router = APIRouter(tags=["changes"])

_LARGEST = 2**53
_DIGITS = len(str(_LARGEST))
_LOOK_SECONDS = 0.1
_HEARTBEAT_SECONDS = 15.0
_AT_ONCE = 100
_BETWEEN = "-"
"""What stands between the seq and the epoch in the id of an event."""


@router.get(
    "/changes",
    summary="The changes after one, in order; with `Accept: text/event-stream` live",
    responses=live(answered("Changes", 409)),
)
async def changes(
    request: Request,
    database: StoreOf,
    streams: StreamsOf,
    gate: GateOf,
    since: Annotated[int | None, Query(ge=0, le=_LARGEST, description="The last `seq` you have.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    collection: Annotated[str | None, Query(max_length=100), AfterValidator(validate_collection)] = None,
    last_event_id: Annotated[str | None, Header(description="Where a live stream resumes.")] = None,
) -> Response:
    """Without `since`, JSON begins with the first change of all; a live stream with the next that is made.

    A live stream resumes after `Last-Event-ID`, whatever `since` says: the `id` of an event, or a `seq`. It ends by
    itself now and then: its client is to come back after the second that `retry` tells. Where the catalogue has lost
    changes since, or was restored, that is refused with 409: what the client holds may not be there any more.
    """
    wanted = [] if collection is None else [collection]
    if "text/event-stream" not in request.headers.get("accept", ""):
        found = await run_in_threadpool(list_changes_newest, database, since or 0, limit, wanted)
        last = found[-1].seq if found else since or 0
        return answers.read({"items": [serialize_change(change) for change in found], "next": last})
    start, epoch = (since, None) if last_event_id is None else _place_of(last_event_id)
    if start is None:
        start = database.get_position().revision
    else:
        await run_in_threadpool(_refuse_lost, database, epoch)
        await run_in_threadpool(list_changes_newest, database, start, 1, wanted)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if getattr(request.state, "head", False):
        return Response(media_type="text/event-stream", headers=headers)
    streams.require_capacity()
    events = _live(database, streams, lambda: gate.require_reader(request), start, wanted)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _place_of(last_event_id: str) -> tuple[int, str | None]:
    """The seq of an event's id, and the epoch where it tells that."""
    seq, _, epoch = last_event_id.partition(_BETWEEN)
    if not (seq.isascii() and seq.isdecimal() and len(seq) < _DIGITS):
        raise HTTPProblem(400, "Last-Event-ID must be the id of an event of this stream, or its seq: a whole number.")
    return int(seq), epoch or None


def _refuse_lost(database: Database, epoch: str | None) -> None:
    """Raise `Conflict` where an event was told of in another epoch."""
    if epoch is None:
        return
    with database.read(from_primary=True) as snapshot:
        present = read_position(snapshot)
    if present.epoch != epoch:
        raise Conflict(
            "The catalogue has lost changes since, or was restored: some that you were told of may not be there. "
            "Read it anew, and follow from its present revision on.",
            revision=present.revision,
        )


def _read_to(database: Database, epoch: str, since: int, collections: list[str]) -> tuple[list[Change], int] | None:
    """Some changes, and the seq up to which there are no others; None where it is another epoch."""
    with database.read() as snapshot:
        present = read_position(snapshot)
        if present.epoch != epoch:
            return None
        found = list_changes(snapshot, since, _AT_ONCE, collections)
        return found, found[-1].seq if len(found) == _AT_ONCE else present.revision


Check = Callable[[], Awaitable[None]]
"""Raises `Unauthenticated` where whoever has a stream may no longer read."""


async def _live(
    database: Database, streams: EventStreams, check: Check, since: int, collections: list[str]
) -> AsyncIterator[bytes]:
    """Each change as an event, for as long as a stream may last."""
    with streams.open_stream() as stream, suppress(Unauthenticated, DatabaseDamaged):
        yield b"retry: 1000\n\n"
        async for event in _events(database, stream, check, since, collections):
            yield event


async def _events(
    database: Database, stream: EventStream, check: Check, since: int, collections: list[str]
) -> AsyncIterator[bytes]:
    """What a slow reader has not taken is not read: nothing piles up here.

    They end where another epoch begins: what is numbered on from there is something else.
    """
    silent = 0.0
    epoch = database.get_position().epoch
    while stream.is_alive and database.get_position().epoch == epoch:
        await check()  # in every round: a token may end while nothing changes
        if database.get_position().revision > since:
            read = await run_in_threadpool(_read_to, database, epoch, since, collections)
            if read is None:
                return
            found, since = read
            for change in found:
                name = f"{change.seq}{_BETWEEN}{epoch}".encode()
                yield b"id: %b\nevent: change\ndata: %b\n\n" % (name, orjson.dumps(serialize_change(change)))
            if found:
                silent = 0.0
                continue
        if silent >= _HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            silent = 0.0
        await asyncio.sleep(_LOOK_SECONDS)
        silent += _LOOK_SECONDS
