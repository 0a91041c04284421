"""Read the change feed, as JSON or as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium.client.models import Changes
from lexarium.domain.change import Change, ChangeFilter
from lexarium.domain.errors import Conflict, DatabaseDamaged, InvalidInput, NotFound, Unauthenticated
from lexarium.domain.schema.collections import VOCABULARY
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.serializers import serialize_change
from lexarium.services.vocabularies.access import find_collection, list_collections
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.web.http.callers import find_reader
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.v1.operation import (
    JSON,
    VOCABULARIES_TEXT,
    NamesParam,
    Operation,
    Parameters,
    RequestContext,
    Success,
)

_MAX_SEQ = 2**53
_POLL_SECONDS = 0.1
_HEARTBEAT_SECONDS = 15.0
_BATCH = 100
_EVENT_STREAM = "text/event-stream"
# The caller may no longer read, or what they have named is no longer there.
_END_OF_STREAM = (Unauthenticated, NotFound, InvalidInput, DatabaseDamaged)


class _ChangeParameters(Parameters):
    since: int | None = Field(None, ge=0, le=_MAX_SEQ, description="Return changes after this `seq`.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")
    collection: str | None = Field(
        None,
        max_length=100,
        description="Filter by collection name; `vocabulary` for changes of vocabularies themselves.",
    )
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)


async def list_changes(context: RequestContext, query: _ChangeParameters) -> Response | dict[str, Any]:
    """List changes, or stream them with `Accept: text/event-stream`

    Includes changes of the metadata, rules and schemas of vocabularies: their `collection` is `vocabulary`,
    and their `id` is the slug.

    Without `since`, a JSON response starts at the first change and a live stream at the next one.

    A live stream resumes after `Last-Event-ID` (the `id` of an event, or a `seq`), which takes precedence over `since`.
    The server closes streams from time to time; clients reconnect after the delay in `retry`. If the catalogue was
    restored or lost changes, the response is 409: changes that the client has may no longer exist.
    """
    request, database = context.request, context.site.database
    since, shown = query.since or 0, _choose_changes(context, query)
    presentation = context.presentation
    if _EVENT_STREAM not in request.headers.get("accept", ""):
        found = await run_in_threadpool(queries.list_changes_newest, database, since, query.limit, shown)
        last = found[-1].seq if found else since
        return {"items": [serialize_change(change, presentation) for change in found], "next": last}
    event_id = request.headers.get("last-event-id")
    start, epoch = (query.since, None) if event_id is None else _parse_event_id(event_id)
    if start is None:
        start = database.get_position().revision
    else:
        if epoch is not None:
            await run_in_threadpool(_require_same_epoch, database, epoch)
        await run_in_threadpool(queries.list_changes_newest, database, start, 1, shown)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type=_EVENT_STREAM, headers=headers)
    context.event_streams.require_capacity()
    return StreamingResponse(_stream_events(context, start, query), media_type=_EVENT_STREAM, headers=headers)


def _choose_changes(context: RequestContext, query: _ChangeParameters) -> ChangeFilter:
    """Return which changes a request asks for, of those that its caller may read."""
    scope = context.get_scope(query.vocabulary)
    if query.collection is None:
        return scope.changes
    names = list_collections(scope, [query.collection])
    if query.collection == VOCABULARY.local_name:
        return scope.changes._replace(collections=names)
    if not names:
        find_collection(scope, query.collection)  # which names those that there are
    return ChangeFilter(names)


def _parse_event_id(text: str) -> tuple[int, str | None]:
    """Return the seq and the epoch in the id of an event, `seq-epoch`, or a seq alone and None."""
    seq, _, epoch = text.partition("-")
    if not (seq.isascii() and seq.isdecimal() and len(seq) < len(str(_MAX_SEQ))):
        raise HTTPProblem(400, "Last-Event-ID must be the ID of an event of this stream or its seq (an integer).")
    return int(seq), epoch or None


def _require_same_epoch(database: Database, epoch: str) -> None:
    """Raise Conflict unless this is the current epoch."""
    with database.read(from_primary=True) as snapshot:
        position = get_position(snapshot)
    if position.epoch != epoch:
        raise Conflict(
            "The catalogue was restored or lost changes. Read it again and follow from the current revision.",
            revision=position.revision,
        )


def _read_batch(snapshot: Snapshot, epoch: str, since: int, shown: ChangeFilter) -> tuple[list[Change], int] | None:
    """Return a batch of changes and the seq up to which it is complete, or None if the epoch has changed."""
    position = get_position(snapshot)
    if position.epoch != epoch:
        return None
    changes = queries.list_changes(snapshot, since, _BATCH, shown)
    return changes, changes[-1].seq if len(changes) == _BATCH else position.revision


async def _stream_events(context: RequestContext, since: int, query: _ChangeParameters) -> AsyncIterator[bytes]:
    """Yield each change as an event, until the stream has lasted its maximum time or the client may no longer read.

    Changes are read only when the client takes them. The stream ends when the epoch changes, because numbers then
    mean other changes.
    """
    idle_seconds = 0.0
    database = context.site.database
    presentation = context.presentation
    with context.event_streams.open_stream() as is_alive, suppress(*_END_OF_STREAM):
        yield b"retry: 1000\n\n"
        epoch = database.get_position().epoch
        while is_alive() and database.get_position().epoch == epoch:
            # In every round: a token may expire while nothing changes.
            await context.gate.require_reader(context.request)
            context.reader = await find_reader(context.request, context.site.authenticator)
            if database.get_position().revision > since:
                shown = _choose_changes(context, query)
                batch = await run_in_threadpool(database.run_read, _read_batch, epoch, since, shown)
                if batch is None:
                    return
                changes, since = batch
                for change in changes:
                    content = serialize_change(change, presentation)
                    event_id = f"{change.seq}-{epoch}".encode()
                    yield b"id: %b\nevent: change\ndata: %b\n\n" % (event_id, orjson.dumps(content))
                if changes:
                    idle_seconds = 0.0
                    continue
            if idle_seconds >= _HEARTBEAT_SECONDS:
                yield b": still here\n\n"
                idle_seconds = 0.0
            await asyncio.sleep(_POLL_SECONDS)
            idle_seconds += _POLL_SECONDS


_FEED = {200: Success({JSON: Changes, _EVENT_STREAM: "Events"})}
OPERATIONS = (
    Operation("GET", "/changes", list_changes, _FEED, name="changes", headers=("Last-Event-Id",), errors=(409,)),
)
