"""The whole catalogue, or a collection of it, in any format, streamed."""

import hashlib
import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium import __version__
from lexarium.domain import rendering
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records.queries import resolve_revision
from lexarium.services.transfer import export as exports
from lexarium.store.database import Database
from lexarium.store.position import Position, read_position
from lexarium.web.http.conditional import etag_matches, read_conditional_headers
from lexarium.web.http.encodings import choose_encoding, encode_chunks, encoding_headers
from lexarium.web.http.negotiation import choose_media_type
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.streaming import iter_chunks, read_first_chunk
from lexarium.web.request_models import validate_collection
from lexarium.web.v1.records import AsOf, Release
from lexarium.web.v1.requests import LimitsOf, SettingsOf, StoreOf
from lexarium.web.v1.schemas import Answers, answered, document_name, reference

router = APIRouter(tags=["export"])

_WRITTEN = {name: each for name, each in FORMATS.items() if each.can_write}
_BY_TYPE = {each.media_type: each for each in _WRITTEN.values()}
_UNNAMEABLE = re.compile(r"[^a-z0-9]+")


def _known_format(name: str) -> str:
    if name not in _WRITTEN:
        only = f"is {name}, which can only be imported; it " if name in FORMATS else ""
        raise ValueError(f"{only}should be one of {', '.join(_WRITTEN)}.")
    return name


def _documents() -> Answers:
    success, *errors = answered(None, 404, 406, headers=("ETag", "Content-Disposition")).items()
    content = {kind: {"schema": reference(document_name(each))} for kind, each in _BY_TYPE.items()}
    return {success[0]: {**success[1], "content": content}, **dict(errors)}


@router.get("/export", summary="The catalogue as a document in any format", responses=_documents())
async def export(
    request: Request,
    database: StoreOf,
    settings: SettingsOf,
    limits: LimitsOf,
    format: Annotated[
        str | None,
        Query(
            max_length=100,
            description=f"One of {', '.join(_WRITTEN)}; left out: as `Accept` says, else the first.",
            json_schema_extra={"enum": list(_WRITTEN)},
        ),
        AfterValidator(_known_format),
    ] = None,
    collection: Annotated[
        str | None,
        Query(max_length=100, description="Only this; left out: all.", json_schema_extra={"enum": list(COLLECTIONS)}),
        AfterValidator(validate_collection),
    ] = None,
    release: Release = None,
    as_of: AsOf = None,
) -> Response:
    """Streamed, all of one state, however long it takes. `v-alpha` holds published records, the others all of them."""
    wanted = _WRITTEN[format] if format else _accepted(request)
    about = settings.vocabulary
    position = await run_in_threadpool(_position, database, release, as_of)
    accepted, if_none_match, _ = read_conditional_headers(request.scope)
    encoding = choose_encoding(accepted)
    made = repr((about, wanted.name, collection, __version__, rendering.RENDERING_VERSION))
    digest = hashlib.sha256(made.encode()).hexdigest()[:16]
    etag = f'"{position.epoch}-{position.revision}-{digest}-{encoding}"'
    headers = {"etag": etag, "cache-control": "no-cache", "vary": "Accept, Accept-Encoding"}
    if if_none_match is not None and etag_matches(etag.encode(), if_none_match):
        return Response(status_code=304, headers=headers)
    name = _file_name(about.title, collection, release or f"r{position.revision}", wanted)
    headers["content-disposition"] = f'attachment; filename="{name}"'
    headers |= {name.decode(): value.decode() for name, value in encoding_headers(encoding)}
    if getattr(request.state, "head", False):
        return StreamingResponse(iter(()), headers=headers, media_type=wanted.media_type)
    of = list(COLLECTIONS.values()) if collection is None else [COLLECTIONS[collection]]
    document = await run_in_threadpool(exports.export_records, database, about, wanted, of, as_of=position.revision)
    body: Iterator[bytes] = encode_chunks(encoding, document)
    beginning = await read_first_chunk(body, limits)
    return StreamingResponse(iter_chunks(beginning, body, limits), headers=headers, media_type=wanted.media_type)


def _accepted(request: Request) -> Format:
    kind = choose_media_type(",".join(request.headers.getlist("accept")), list(_BY_TYPE))
    if kind is None:
        told = ", ".join(f"{each.name} ({kind})" for kind, each in _BY_TYPE.items())
        raise HTTPProblem(406, f"The catalogue can be had as {told}.", {"vary": "Accept, Accept-Encoding"})
    return _BY_TYPE[kind]


def _position(database: Database, release: str | None, as_of: int | None) -> Position:
    with database.read() as snapshot:
        return read_position(snapshot)._replace(revision=resolve_revision(snapshot, release, as_of))


def _file_name(title: str, collection: str | None, state: str, format: Format) -> str:
    words = _UNNAMEABLE.sub("-", title.lower()).strip("-") or "catalogue"
    return "-".join([words, *([collection] if collection else []), state]) + format.extensions[0]
