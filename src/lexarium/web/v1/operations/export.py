"""Export the catalogue, or a collection of it, in any format."""

import hashlib
import re
from typing import Annotated

from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium import __version__
from lexarium.domain import rendering
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.queries import resolve_revision
from lexarium.services.transfer import export as exports
from lexarium.services.vocabularies.access import find_collection, get_unqualified_vocabulary, list_collections
from lexarium.store.position import Position, Snapshot
from lexarium.web.http.conditional import find_not_modified, read_conditional_headers
from lexarium.web.http.encodings import choose_encoding, encode_chunks, encoding_headers
from lexarium.web.http.negotiation import choose_format
from lexarium.web.http.streaming import stream_chunks
from lexarium.web.v1.operation import (
    Operation,
    Parameters,
    RequestContext,
    Success,
    VocabulariesParam,
)
from lexarium.web.v1.operations.records import AsOfParam, ReleaseParam

EXPORT_FORMATS = {name: item for name, item in FORMATS.items() if item.can_write}
_MEDIA_TYPES = {name: item.media_type for name, item in EXPORT_FORMATS.items()}
_VARY = {"vary": "Accept, Accept-Encoding"}


def _validate_format(name: str) -> str:
    if name not in EXPORT_FORMATS:
        only = f"is {name}, which can only be imported; it " if name in FORMATS else ""
        raise ValueError(f"{only}should be one of {', '.join(EXPORT_FORMATS)}.")
    return name


def schema_name(format: Format) -> str:
    """Return the name of the schema of an export in this format."""
    return f"{format.name.title().replace('-', '')}Export"


class ExportParameters(Parameters):
    """Parameters of an export."""

    format: Annotated[str | None, AfterValidator(_validate_format)] = Field(
        None,
        max_length=100,
        description=f"One of {', '.join(EXPORT_FORMATS)}; left out: as `Accept` says, else the first.",
        json_schema_extra={"enum": list(EXPORT_FORMATS)},
    )
    vocabulary: VocabulariesParam = Field(
        (), description="These, separated by commas or given each; left out: the default one."
    )
    collection: str | None = Field(None, max_length=100, description="Only this; left out: all.")
    release: ReleaseParam = None
    as_of: AsOfParam = None


async def export(context: RequestContext, query: ExportParameters) -> Response:
    """The catalogue as a document in any format

    Streamed, all of one state, however long it takes. `v-alpha` holds published records, the others all of them.
    """
    request, database, limits = context.request, context.site.database, context.site.limits
    chosen_format = EXPORT_FORMATS[query.format or choose_format(request, _MEDIA_TYPES, "The catalogue", _VARY)]
    scope = context.get_scope(query.vocabulary or (get_unqualified_vocabulary().slug,))
    first = scope.vocabularies[0]
    about = first
    names = scope.collections if query.collection is None else list_collections(scope, [query.collection])
    if not names:
        find_collection(scope, query.collection or "")  # which names those that there are
    position = await run_in_threadpool(database.run_read, _find_position, query.release, query.as_of, first.slug)
    encoding = choose_encoding(read_conditional_headers(request.scope)[0])
    fingerprint = repr((about, chosen_format.name, names, __version__, rendering.RENDERING_VERSION))
    digest = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    etag = f'"{position.epoch}-{position.revision}-{digest}-{encoding}"'
    headers = {"etag": etag, "cache-control": "no-cache", **_VARY}
    if not_modified := find_not_modified(request.scope, headers):
        return not_modified
    name = _build_file_name(about.title, query.collection, query.release or f"r{position.revision}", chosen_format)
    headers["content-disposition"] = f'attachment; filename="{name}"'
    headers |= {name.decode(): value.decode() for name, value in encoding_headers(encoding)}
    if request.method == "HEAD":
        return StreamingResponse(iter(()), headers=headers, media_type=chosen_format.media_type)
    collections = [COLLECTIONS[name] for name in names]
    document = await run_in_threadpool(
        exports.export_records, database, about, chosen_format, collections, as_of=position.revision
    )
    return await stream_chunks(encode_chunks(encoding, document), limits, chosen_format.media_type, headers)


def _find_position(snapshot: Snapshot, release: str | None, as_of: int | None, vocabulary: str) -> Position:
    return get_position(snapshot)._replace(revision=resolve_revision(snapshot, release, as_of, vocabulary))


def _build_file_name(title: str, collection: str | None, state: str, format: Format) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "catalogue"
    return "-".join([words, *([collection] if collection else []), state]) + format.extensions[0]


_DOCUMENTS = {item.media_type: schema_name(item) for item in EXPORT_FORMATS.values()}
OPERATIONS = (
    Operation("GET", "/export", export, {200: Success(_DOCUMENTS, ("ETag", "Content-Disposition"))}, errors=(404, 406)),
)
