"""Run many writes in one transaction (NDJSON)."""

import hashlib
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Literal

import orjson
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lexarium.client.models import BatchResult
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.batch import run_batch
from lexarium.services.curation.name_warnings import BatchNames, WriteWarning
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.vocabularies.access import get_scope_or_default
from lexarium.store.transaction import Transaction
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type
from lexarium.web.http.write_requests import build_idempotency_request
from lexarium.web.request_models import Summary
from lexarium.web.v1.operation import (
    Body,
    Operation,
    Parameters,
    RequestContext,
    Success,
)
from lexarium.web.v1.operations.records import serialize_warnings

_NDJSON = "application/x-ndjson"


class BatchLine(BaseModel, defer_build=True):
    """One line of a batch. Which fields it has depends on `op`."""

    op: Literal["create", "update", "retire", "relate", "unrelate"]
    vocabulary: str | None = Field(None, description="Slug of its vocabulary (default: that of the batch).")
    collection: str | None = Field(None, description="create: collection of the record.")
    as_: str | None = Field(None, alias="as", description="create: name for later lines, referenced as `$name`.")
    record: dict[str, Any] | None = Field(None, description="create: draft of the record.")
    id: str | None = Field(None, description="All except create: ID of the record.")
    version: int | None = Field(None, description="Version to change (default: the current one).")
    change: dict[str, Any] | None = Field(None, description="update: merge patch of the draft.")
    replaced_by: str | None = Field(None, description="retire: ID of the replacement.")
    relation: str | None = Field(None, description="relate, unrelate: name of the relation.")
    target: str | None = Field(None, description="relate, unrelate: target of the relation.")


class _BatchParameters(Parameters):
    vocabulary: str | None = Field(
        None, max_length=50, description="Vocabulary of lines without one (default: the default vocabulary)."
    )
    summary: Summary = ""


async def run_batch_request(context: RequestContext, query: _BatchParameters) -> Response:
    """Apply a batch of writes (JSON Lines, all or nothing)

    Each line is a JSON object.

    Lines: `{"op": "create", "collection", "record"}`, `{"op": "update", "id", "change"}`, `{"op": "retire", "id"}`,
    `{"op": "relate", "id", "relation", "target"}`, `{"op": "unrelate", …}`; all except create may have a `version`.
    If a create has `"as": "x"`, later lines can refer to its record as `$x`. Any line may have a `vocabulary`.
    `warnings` of a line list identical and similar names of the vocabulary: those of other lines and, for the first
    1,000 names of the batch, those of existing records.
    """
    request, caller, limits = context.request, context.caller, context.site.limits
    if get_media_type(request) not in (_NDJSON, "application/ndjson"):
        raise HTTPProblem(415, f"Request body must be {_NDJSON}.")
    scope = context.get_scope()
    [slug] = get_scope_or_default(caller, (query.vocabulary,) if query.vocabulary else ()).slugs
    digest = hashlib.sha256()
    all_lines = [line async for line in _iter_lines(request, limits, digest)]
    lines = [(number, line) for number, line in enumerate(all_lines, 1) if line.strip()]

    def write(names: BatchNames, transaction: Transaction) -> WriteResponse:
        written = run_batch(transaction, caller, lines, scope, slug, query.summary)
        warnings = names.list_warnings([saved.record for saved in written])
        return WriteResponse(200, [_to_result(saved, warnings.get(index, ())) for index, saved in enumerate(written)])

    def run() -> WriteResponse:
        names = BatchNames([line for _, line in lines], scope, slug)
        names.compare(context.site.database, context.site.record_search)
        # A long write has a transaction of its own, and does not wait in the queue of writes.
        with context.site.database.write() as transaction:
            return make_idempotent(caller.account.id, key, partial(write, names))(transaction)

    key = build_idempotency_request(request, request.headers.get("idempotency-key"), digest.digest())
    async with limits.batch_semaphore:
        response = await run_in_threadpool(run)
    return Response(b"".join(orjson.dumps(result) + b"\n" for result in response.content), media_type=_NDJSON)


def _to_result(saved: VersionedRecord, warnings: Iterable[WriteWarning]) -> dict[str, Any]:
    result: BatchResult = {
        "id": saved.record.local_id,
        "vocabulary": saved.record.collection.vocabulary,
        "version": saved.version,
        "state": saved.record.state.value,
    }
    return {**result, **serialize_warnings(saved.warnings, warnings)}


async def _iter_lines(request: Request, limits: Limits, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    """Yield the lines of the body as they arrive, and add all bytes to the digest."""
    too_many = HTTPProblem(413, f"Batch exceeds {limits.batch_lines:,} lines.")
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
