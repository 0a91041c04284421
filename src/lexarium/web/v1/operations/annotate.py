"""Find terms in a text."""

import codecs
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from tempfile import SpooledTemporaryFile

import orjson
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from lexarium.client.models import Annotations
from lexarium.search.annotator import Mention
from lexarium.services.serializers import iter_annotations
from lexarium.services.vocabularies.access import resolve_collections
from lexarium.web.annotator import get_annotator
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type, parse_json_object
from lexarium.web.http.streaming import stream_chunks
from lexarium.web.request_models import parse_model
from lexarium.web.v1.operation import (
    INVALID_BODY,
    JSON,
    VOCABULARIES_TEXT,
    Body,
    NamesParam,
    Operation,
    Parameters,
    RequestContext,
    returns,
)
from lexarium.web.v1.operations.search import DEFAULT_COLLECTIONS_TEXT, CollectionsParam

MAX_TEXT_BYTES = 10 << 20
_MAX_BYTES_IN_MEMORY = 1 << 20
_CHUNK_BYTES = 1 << 16
_MAX_ANNOTATIONS = 1_000_000
_RENDERED_AT_ONCE = 5_000
_TEXT = "text/plain"


class _AnnotateParameters(Parameters):
    collection: CollectionsParam = Field(
        (), description=f"Collections of terms to find, comma-separated or repeated; {DEFAULT_COLLECTIONS_TEXT}"
    )
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)


class TextRequest(BaseModel, defer_build=True):
    """A text to find terms in."""

    text: str


async def annotate(context: RequestContext, query: _AnnotateParameters) -> Response:
    """Annotate a text

    Find mentions of names and aliases in `text/plain` (UTF-8, up to 10 MiB) or in `{"text": …}`.

    Mentions are the leftmost and longest matches of whole words, ignoring case, accents and plural. An ambiguous
    mention is listed once per record. `start` and `end` count code points. The response ends after a million mentions;
    `truncated` is then true.
    """
    limits = context.site.limits
    text = await _read_text(context.request, limits)
    annotator = await get_annotator(context.site.annotator_cache)
    # Only now: reading a long text takes a while.
    scope = context.get_scope(query.vocabulary)
    collections = resolve_collections(scope, query.collection) or scope.searched_collections
    chunks = render_annotations(annotator.find_mentions(text, frozenset(collections)))
    headers = {"access-control-allow-origin": "*", "cache-control": "no-store"}
    return await stream_chunks(chunks, limits, JSON, headers)


async def _read_text(request: Request, limits: Limits) -> Iterable[str]:
    length = request.headers.get("content-length", "")
    limits.texts.reserve(request, min(int(length), MAX_TEXT_BYTES) if length.isdecimal() else 0)
    if get_media_type(request) == _TEXT:
        return await _spool_text(request, limits)
    if get_media_type(request) != JSON:
        raise HTTPProblem(415, f"Request body must be {_TEXT} or {JSON}.")
    data = parse_json_object(await limits.read_body(request))
    return [parse_model(TextRequest, data, INVALID_BODY, strict=True).text]


async def _spool_text(request: Request, limits: Limits) -> Iterator[str]:
    """Return the text of a body after reading all of it: some clients read no response before they have sent all.

    A long text is spooled to a file, so that memory does not grow with the number of clients.
    """
    charset = request.headers.get("content-type", "").lower().partition("charset=")[2].strip(' "').partition(";")[0]
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise HTTPProblem(415, f"Text must be UTF-8, not {charset[:50]!r}.")
    decoder = codecs.getincrementaldecoder("utf-8")()
    decoded_bytes = 0
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY))
        try:
            async for chunk in limits.iter_body(request, MAX_TEXT_BYTES, max_in_memory=_MAX_BYTES_IN_MEMORY):
                decoder.decode(chunk)
                file.write(chunk)
                limits.texts.reserve(request, file.tell())
                # The bytes of an incomplete character wait for the next chunk.
                decoded_bytes = file.tell() - len(decoder.getstate()[0])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            position = decoded_bytes + error.start
            raise HTTPProblem(400, f"Text is not valid UTF-8 at byte {position}.") from None
        stack.pop_all()  # `_decode_file` closes it
    return _decode_file(file)


def _decode_file(file: "SpooledTemporaryFile[bytes]") -> Iterator[str]:
    with file:
        file.seek(0)
        yield from codecs.iterdecode(iter(lambda: file.read(_CHUNK_BYTES), b""), "utf-8")


def render_annotations(mentions_by_chunk: Iterator[list[Mention]]) -> Iterator[bytes]:
    """Yield the response in chunks, each of some milliseconds of work; a chunk without mentions is empty."""
    remaining = _MAX_ANNOTATIONS
    before = b'{"annotations":['
    for mentions in mentions_by_chunk:
        annotations = iter_annotations(mentions)
        while batch := list(islice(annotations, min(_RENDERED_AT_ONCE, remaining))):
            yield before + orjson.dumps(batch)[1:-1]
            before = b","
            remaining -= len(batch)
        if not remaining:
            yield b'],"truncated":true}'
            return
        if not mentions:
            yield b""
    yield (b"" if before == b"," else before) + b'],"truncated":false}'


OPERATIONS = (
    Operation("POST", "/annotate", annotate, returns(Annotations), body=Body({_TEXT: "PlainText", JSON: TextRequest})),
)
