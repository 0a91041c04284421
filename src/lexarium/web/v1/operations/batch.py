"""Run many writes in one transaction (NDJSON)."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Literal

import orjson
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lexarium.client.models import BatchResult
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.batch import run_batch
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.vocabularies.access import get_unqualified_vocabulary
from lexarium.store.transaction import Transaction
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type
from lexarium.web.http.write_requests import build_idempotency_request
from lexarium.web.v1.operation import (
    Body,
    Operation,
    Parameters,
    RequestContext,
    Success,
)

_NDJSON = "application/x-ndjson"


class BatchLine(BaseModel, defer_build=True):
    """One line of a batch. Which fields it has depends on `op`."""

    op: Literal["create", "update", "retire", "relate", "unrelate"]
    vocabulary: str | None = Field(None, description="The slug of its vocabulary; left out: that of the batch.")
    collection: str | None = Field(None, description="create: where.")
    as_: str | None = Field(None, alias="as", description="create: what later lines call it, with a `$` before.")
    record: dict[str, Any] | None = Field(None, description="create: the draft.")
    id: str | None = Field(None, description="All but create: the record.")
    version: int | None = Field(None, description="The version that is to be changed; left out: whichever it has.")
    change: dict[str, Any] | None = Field(None, description="update: a merge patch of the draft.")
    replaced_by: str | None = Field(None, description="retire: the record to use instead.")
    relation: str | None = Field(None, description="relate, unrelate: the relation.")
    target: str | None = Field(None, description="relate, unrelate: what it points to.")


class _BatchParameters(Parameters):
    vocabulary: str | None = Field(
        None, max_length=50, description="The vocabulary of lines that name none; left out: the default one."
    )


async def run_batch_request(context: RequestContext, query: _BatchParameters) -> Response:
    """Many writes, all or nothing: one JSON object a line

    Do many writes.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; each but create may have a `version`.
    Where a create has `"as": "x"`, lines after it may name its record as `$x`. Each may name a `vocabulary`.
    """
    request, caller, limits = context.request, context.caller, context.site.limits
    if get_media_type(request) not in (_NDJSON, "application/ndjson"):
        raise HTTPProblem(415, f"The body must be {_NDJSON}.")
    scope, slug = context.get_scope(), query.vocabulary or get_unqualified_vocabulary().slug
    context.get_scope((slug,))
    digest = hashlib.sha256()
    all_lines = [line async for line in _iter_lines(request, limits, digest)]
    lines = [(number, line) for number, line in enumerate(all_lines, 1) if line.strip()]

    def write(transaction: Transaction) -> WriteResponse:
        return WriteResponse(200, [_to_result(saved) for saved in run_batch(transaction, caller, lines, scope, slug)])

    def run() -> WriteResponse:
        # A long write has a transaction of its own, and does not wait in the queue of writes.
        with context.site.database.write() as transaction:
            return make_idempotent(caller.account.id, key, write)(transaction)

    key = build_idempotency_request(request, request.headers.get("idempotency-key"), digest.digest())
    async with limits.batch_semaphore:
        response = await run_in_threadpool(run)
    return Response(b"".join(orjson.dumps(result) + b"\n" for result in response.content), media_type=_NDJSON)


def _to_result(saved: VersionedRecord) -> BatchResult:
    result: BatchResult = {
        "id": saved.record.local_id,
        "vocabulary": saved.record.collection.vocabulary,
        "version": saved.version,
        "state": saved.record.state.value,
    }
    return {**result, "warnings": list(saved.warnings)} if saved.warnings else result


async def _iter_lines(request: Request, limits: Limits, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    """Yield the lines of the body as they arrive, and add all bytes to the digest."""
    too_many = HTTPProblem(413, f"A batch must have at most {limits.batch_lines:,} lines.")
    partial_line: list[bytes] = []
    count = 0
    async for chunk in limits.iter_body(request, limits.batch_bytes):
        digest.update(chunk)
        count += chunk.count(b"\n")
        if count > limits.batch_lines:
            raise too_many
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            # Joined once, however many chunks a line spans.
            yield b"".join([*partial_line, end])
            partial_line = []
        partial_line.append(rest)
    last = b"".join(partial_line)
    if last.strip() and count == limits.batch_lines:
        raise too_many
    yield last


# fmt: off
OPERATIONS = (
    Operation("POST", "/batch", run_batch_request, {200: Success({_NDJSON: "BatchResults"})}, name="batch",
              body=Body({_NDJSON: "Batch"}), permission=Permission.PUBLISH, headers=("Idempotency-Key",),
              errors=(409,)),
)
# fmt: on
