"""Many writes in one request: NDJSON in, a result a line out."""

import hashlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.service.batches import run_batch
from lexarium.service.desk import Saved
from lexarium.service.once import Outcome, once
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Work
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem
from lexarium.web.v1.requests import CuratorOf, LimitsOf, StoreOf
from lexarium.web.v1.schemas import answered, body_of
from lexarium.web.writes import asked

router = APIRouter(tags=["batch"])

_NDJSON = "application/x-ndjson"


class Lines(Response):
    """Results, one a line."""

    media_type = _NDJSON


@router.post(
    "/batch",
    summary="Many writes, all or nothing: one JSON object a line",
    response_class=Lines,
    responses=answered("BatchResults", 400, 408, 409, 413, 415, kind=_NDJSON),
    openapi_extra=body_of("Batch", kind=_NDJSON),
)
async def batch(
    request: Request,
    database: StoreOf,
    limits: LimitsOf,
    caller: CuratorOf,
    idempotency_key: Annotated[
        str | None, Header(description="Done once, however often it is sent, for a day.")
    ] = None,
) -> Response:
    """Do many writes.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; each but create may have a `version`.
    Where a create has `"as": "x"`, lines after it may name its record as `$x`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_NDJSON, "application/ndjson"):
        raise HttpProblem(415, f"The body must be {_NDJSON}.")
    digest = hashlib.sha256()
    given = [line async for line in _lines(request, limits, digest)]
    lines = [(number, line) for number, line in enumerate(given, 1) if line.strip()]

    def work(transaction: Transaction) -> Outcome:
        return Outcome(200, [_result(saved) for saved in run_batch(transaction, caller, lines)])

    ask = asked(request, idempotency_key, digest.digest())
    async with limits.batches:
        outcome = await run_in_threadpool(_done, database, once(caller, ask, work))
    return Lines(b"".join(orjson.dumps(result) + b"\n" for result in outcome.content))


def _result(saved: Saved) -> dict[str, Any]:
    result = {"id": saved.whole.id, "version": saved.version, "state": saved.whole.state}
    return {**result, "warnings": saved.warnings} if saved.warnings else result


def _done(database: Database, work: Work[Outcome]) -> Outcome:
    """The result of much work, which has a transaction of its own."""
    with database.write() as transaction:
        return work(transaction)


async def _lines(request: Request, limits: Limits, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    """The lines of a batch as they come; the digest learns of all that was read."""
    too_many = HttpProblem(413, f"A batch must have at most {limits.batch_lines:,} lines.")
    begun: list[bytes] = []
    number = 0
    async for piece in limits.pieces(request, limits.batch_bytes):
        digest.update(piece)
        number += piece.count(b"\n")
        if number > limits.batch_lines:
            raise too_many
        *ended, rest = piece.split(b"\n")
        for end in ended:
            # Joined once, however many pieces a line comes in.
            yield b"".join([*begun, end])
            begun = []
        begun.append(rest)
    last = b"".join(begun)
    if last.strip() and number == limits.batch_lines:
        raise too_many
    yield last
