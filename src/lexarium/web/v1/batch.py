"""Many writes in one request: NDJSON in, a result a line out."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from lexarium.service.batches import run_batch
from lexarium.service.desk import Saved
from lexarium.web.problems import HttpProblem
from lexarium.web.v1.requests import CuratorOf, StoreOf

router = APIRouter(tags=["batch"])

_LINES = 50_000
_BYTES = 64 << 20
_NDJSON = "application/x-ndjson"
_BODY = {"requestBody": {"required": True, "content": {_NDJSON: {"schema": {"type": "string"}}}}}


class Lines(Response):
    """Results, one a line."""

    media_type = _NDJSON


@router.post(
    "/batch",
    summary="Many writes, all or nothing: one JSON object a line",
    response_class=Lines,
    openapi_extra=_BODY,
)
async def batch(request: Request, database: StoreOf, caller: CuratorOf) -> Response:
    """Do many writes.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; each but create may have a `version`.
    Where a create has `"as": "x"`, lines after it may name its record as `$x`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_NDJSON, "application/ndjson"):
        raise HttpProblem(415, f"The body must be {_NDJSON}.")
    lines = [(number, line) async for number, line in _lines(request) if line.strip()]
    saved = await run_in_threadpool(run_batch, database, caller, lines)
    return Lines(b"".join(orjson.dumps(_result(each)) + b"\n" for each in saved))


def _result(saved: Saved) -> dict[str, Any]:
    result = {"id": saved.whole.id, "version": saved.version, "state": saved.whole.state}
    return {**result, "warnings": saved.warnings} if saved.warnings else result


async def _lines(request: Request) -> AsyncIterator[tuple[int, bytes]]:
    rest = b""
    number = size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                number += 1
                yield number, line
            if size > _BYTES or number > _LINES:
                raise HttpProblem(413, f"A batch must have at most {_LINES:,} lines and {_BYTES:,} bytes.")
    except ClientDisconnect:
        raise HttpProblem(400, "The body ended too early.") from None
    if rest:
        yield number + 1, rest
