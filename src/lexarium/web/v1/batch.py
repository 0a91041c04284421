"""Many writes in one request: NDJSON in, a result a line out."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from lexarium.domain.errors import Invalid, Problem
from lexarium.service.batches import run_batch
from lexarium.web.problems import HttpProblem
from lexarium.web.v1.requests import CuratorOf, StoreOf
from lexarium.web.v1.schemas import answered, body_of

router = APIRouter(tags=["batch"])

_LINES = 50_000
_BYTES = 64 << 20
_NDJSON = "application/x-ndjson"


class Lines(Response):
    """Results, one a line."""

    media_type = _NDJSON


@router.post(
    "/batch",
    summary="Many writes, all or nothing: one JSON object a line",
    response_class=Lines,
    responses=answered("BatchResults", 400, 413, 415, kind=_NDJSON),
    openapi_extra=body_of("Batch", kind=_NDJSON),
)
async def batch(request: Request, database: StoreOf, caller: CuratorOf) -> Response:
    """Do many writes.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; each but create may have a `version`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_NDJSON, "application/ndjson"):
        raise HttpProblem(415, f"The body must be {_NDJSON}.")
    lines = await _parsed(request)
    saved = await run_in_threadpool(run_batch, database, caller, lines)
    results = [
        orjson.dumps({"id": each.whole.id, "version": each.version, "state": each.whole.state}) for each in saved
    ]
    return Lines(b"".join(result + b"\n" for result in results))


async def _parsed(request: Request) -> list[tuple[int, dict[str, Any]]]:
    lines: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    number = 0
    async for number, line in _lines(request):
        if not line.strip():
            continue
        try:
            given = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(str(number), f"is not JSON: {error}."))
            continue
        if isinstance(given, dict):
            lines.append((number, given))
        else:
            problems.append(Problem(str(number), "is not a JSON object."))
    if problems:
        raise Invalid("Nothing was done: some lines are not right.", problems)
    return lines


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
