"""Many writes in one request: NDJSON in, a result a line out."""

import hashlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.services.curation.batch import run_batch
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from lexarium.store.write_queue import WriteTask
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.write_requests import build_idempotency_request
from lexarium.web.v1.requests import CuratorOf, LimitsOf, StoreOf
from lexarium.web.v1.schemas import answered, body_of

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
        str | None, Header(description="Done make_idempotent, however often it is sent, for a day.")
    ] = None,
) -> Response:
    """Do many writes.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; each but create may have a `version`.
    Where a create has `"as": "x"`, lines after it may name its record as `$x`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_NDJSON, "application/ndjson"):
        raise HTTPProblem(415, f"The body must be {_NDJSON}.")
    digest = hashlib.sha256()
    given = [line async for line in _lines(request, limits, digest)]
    lines = [(number, line) for number, line in enumerate(given, 1) if line.strip()]

    def work(transaction: Transaction) -> WriteResponse:
        return WriteResponse(200, [_result(saved) for saved in run_batch(transaction, caller, lines)])

    ask = build_idempotency_request(request, idempotency_key, digest.digest())
    async with limits.batch_semaphore:
        outcome = await run_in_threadpool(_done, database, make_idempotent(caller.account.id, ask, work))
    return Lines(b"".join(orjson.dumps(result) + b"\n" for result in outcome.content))


def _result(saved: VersionedRecord) -> dict[str, Any]:
    result = {"id": saved.record.id, "version": saved.version, "state": saved.record.state}
    return {**result, "warnings": saved.warnings} if saved.warnings else result


def _done(database: Database, work: WriteTask[WriteResponse]) -> WriteResponse:
    """The result of much work, which has a transaction of its own."""
    with database.write() as transaction:
        return work(transaction)


async def _lines(request: Request, limits: Limits, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    """The lines of a batch as they come; the digest learns of all that was read."""
    too_many = HTTPProblem(413, f"A batch must have at most {limits.batch_lines:,} lines.")
    begun: list[bytes] = []
    number = 0
    async for piece in limits.iter_body(request, limits.batch_bytes):
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
