"""Export the catalogue, or a collection of it, in any format."""

import hashlib
from typing import Annotated

from pydantic import AfterValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lexarium import __version__
from lexarium.domain import rendering
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.registry import EXPORT_FORMATS, FORMATS, Format
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.queries import resolve_revision
from lexarium.services.transfer import export as exports
from lexarium.services.vocabularies.access import find_collection, get_scope_or_default, list_collections
from lexarium.store.position import Position, Snapshot
from lexarium.web.http.conditional import find_not_modified, read_conditional_headers
from lexarium.web.http.encodings import choose_encoding, encode_chunks, encoding_headers
from lexarium.web.http.negotiation import choose_format
from lexarium.web.http.streaming import stream_chunks
from lexarium.web.release_files import VARY, build_file_name, send_release_file
from lexarium.web.v1.operation import (
    NamesParam,
    Operation,
    Parameters,
    RequestContext,
    Success,
)
from lexarium.web.v1.operations.records import AsOfParam, ReleaseParam

# By the media types that `Accept` may name; of two formats of one type, the first.
_BY_MEDIA_TYPE = {item.media_type: item for item in reversed(EXPORT_FORMATS.values())}
_MEDIA_TYPES = {item.name: media_type for media_type, item in reversed(_BY_MEDIA_TYPE.items())}


def _validate_format(name: str) -> str:
    if name not in EXPORT_FORMATS:
        only = f"is {name}, which can only be imported; it " if name in FORMATS else ""
        raise ValueError(f"{only}must be one of {', '.join(EXPORT_FORMATS)}.")
    return name


def schema_name(format: Format) -> str:
    """Return the name of the schema of an export in this format."""
    return f"{format.name.title().replace('-', '')}Export"


class ExportParameters(Parameters):
    """Parameters of an export."""

    format: Annotated[str | None, AfterValidator(_validate_format)] = Field(
        None,
        max_length=100,
        description=f"One of {', '.join(EXPORT_FORMATS)}; default: from `Accept`, else the first.",
        json_schema_extra={"enum": list(EXPORT_FORMATS)},
    )
    vocabulary: NamesParam = Field(
        (), description="Vocabularies, comma-separated or repeated (default: the default vocabulary)."
    )
    collection: str | None = Field(None, max_length=100, description="Collection to export (default: all).")
    release: ReleaseParam = None
    as_of: AsOfParam = None


async def export(context: RequestContext, query: ExportParameters) -> Response:
    """Export the catalogue

    Streams one consistent state. `v-alpha` contains published records, other formats all records.

    The export of a whole vocabulary at a release is the file `releases/{name}/files/{format}`.
    """
    request, database, limits = context.request, context.site.database, context.site.limits
    chosen_format = EXPORT_FORMATS[query.format or choose_format(request, _MEDIA_TYPES, VARY)]
    scope = get_scope_or_default(context.reader, query.vocabulary)
    about = scope.vocabularies[0]
    names = scope.collections if query.collection is None else list_collections(scope, [query.collection])
    if not names:
        find_collection(scope, query.collection or "")  # which names those that there are
    if query.release is not None and query.collection is None and len(scope.slugs) == 1:
        return await send_release_file(context.site, request, about.slug, query.release, chosen_format.name)
    position = await run_in_threadpool(database.run_read, _find_position, query.release, query.as_of, about.slug)
    encoding = choose_encoding(read_conditional_headers(request.scope)[0])
    address = context.site.get_base(request)
    fingerprint = repr((about, address, chosen_format.name, names, __version__, rendering.RENDERING_VERSION))
    digest = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    etag = f'"{position.epoch}-{position.revision}-{digest}-{encoding}"'
    headers = {"etag": etag, "cache-control": "no-cache", **VARY}
    if not_modified := find_not_modified(request.scope, headers):
        return not_modified
    name = build_file_name(about.title, query.collection, query.release or f"r{position.revision}", chosen_format)
    headers["content-disposition"] = f'attachment; filename="{name}"'
    headers |= {name.decode(): value.decode() for name, value in encoding_headers(encoding)}
    if request.method == "HEAD":
        return StreamingResponse(iter(()), headers=headers, media_type=chosen_format.media_type)
    collections = [COLLECTIONS[name] for name in names]
    document = await run_in_threadpool(
        exports.export_records,
        database,
        about,
        chosen_format,
        collections,
        as_of=position.revision,
        address=address,
    )
    return await stream_chunks(encode_chunks(encoding, document), limits, chosen_format.media_type, headers)


def _find_position(snapshot: Snapshot, release: str | None, as_of: int | None, vocabulary: str) -> Position:
    return get_position(snapshot)._replace(revision=resolve_revision(snapshot, release, as_of, vocabulary))


_DOCUMENTS = {media_type: schema_name(item) for media_type, item in _BY_MEDIA_TYPE.items()}
EXPORT_RESPONSES = {200: Success(_DOCUMENTS, ("ETag", "Content-Disposition"))}
OPERATIONS = (Operation("GET", "/export", export, EXPORT_RESPONSES, errors=(404, 406)),)
