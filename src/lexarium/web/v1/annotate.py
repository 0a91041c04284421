"""Terms in a text: a body in, every mention out."""

import asyncio
import codecs
from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS, DEFAULT_SEARCH_COLLECTIONS
from lexarium.search.annotator import Annotator, Mention
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.serializers import iter_annotations
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.streaming import iter_chunks, read_first_chunk
from lexarium.web.v1.requests import AnnotatingOf, LimitsOf, json_body, kind_of, read_as
from lexarium.web.v1.schemas import Text, answered, reference

router = APIRouter(tags=["annotate"])

TEXT_BYTES = 10 << 20
_READY_SECONDS = 10
_IN_MEMORY = 1 << 20
_PIECE = 1 << 16
_MOST = 1_000_000
"""How many annotations an answer has at most."""
_AT_ONCE = 5_000
"""How many annotations are rendered at a time."""
_TEXT = "text/plain"
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {_TEXT: {"schema": reference("PlainText")}, "application/json": {"schema": reference("Text")}},
    }
}


@router.post(
    "/annotate",
    summary="Every mention of a term's name or alias in a text",
    openapi_extra=_BODY,
    responses=answered("Annotations", 400, 408, 413, 415),
)
async def annotate(
    request: Request,
    annotating: AnnotatingOf,
    limits: LimitsOf,
    collection: Annotated[
        list[str] | None,
        Query(
            description=(
                f"Whose terms, separated by commas or given each; left out: {', '.join(DEFAULT_SEARCH_COLLECTIONS)}."
            )
        ),
    ] = None,
) -> Response:
    """Find terms in `text/plain` (UTF-8, up to 10 MiB) or in `{"text": …}`.

    Mentions are leftmost-longest, on the boundaries of words, whatever their case, accents and number. An ambiguous
    one is listed once for each record. `start` and `end` count code points. `truncated` says that the answer ends after
    a million, where there may be more.
    """
    collections = DEFAULT_SEARCH_COLLECTIONS if collection is None else tuple(",".join(collection).split(","))
    if not set(collections) <= set(COLLECTIONS):
        raise InvalidInput(
            "There is no such collection.", [FieldProblem("collection", f"should be among {', '.join(COLLECTIONS)}.")]
        )
    text = await _text(request, limits)
    names = await _current(annotating)
    answer = rendered(names.find_mentions(text, collections))
    beginning = await read_first_chunk(answer, limits)
    headers = {"access-control-allow-origin": "*", "cache-control": "no-store"}
    return StreamingResponse(iter_chunks(beginning, answer, limits), media_type="application/json", headers=headers)


async def _current(annotating: AnnotatorCache) -> Annotator:
    """The names that are looked for, as of now. Waits for them without a thread, and not for long."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            return await asyncio.wrap_future(annotating.get_current())
    except TimeoutError:
        detail = "The names of the catalogue are still being read, as after every start. Try again."
        raise HTTPProblem(503, detail, {"Retry-After": str(_READY_SECONDS)}) from None


async def _text(request: Request, limits: Limits) -> Iterable[str]:
    if kind_of(request) == _TEXT:
        return await _received(request, limits)
    if kind_of(request) != "application/json":
        raise HTTPProblem(415, f"The body must be {_TEXT} or application/json.")
    return [read_as(Text, await json_body(request, limits)).text]


async def _received(request: Request, limits: Limits) -> Iterator[str]:
    """The text of a body, which is read to its end first: a client that only sends, and does not listen, goes on.

    Past a size it waits in a file, so that memory does not depend on how many send.
    """
    charset = request.headers.get("content-type", "").lower().partition("charset=")[2].strip(' "').partition(";")[0]
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise HTTPProblem(415, f"The text must be UTF-8, not {charset[:50]!r}.")
    file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed when it has been read)
    decoder = codecs.getincrementaldecoder("utf-8")()
    unread = 0
    try:
        async for piece in limits.iter_body(request, TEXT_BYTES, max_in_memory=_IN_MEMORY):
            decoder.decode(piece)
            file.write(piece)
            # The bytes of a character that is not whole yet wait for the next piece.
            unread = file.tell() - len(decoder.getstate()[0])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        file.close()
        raise HTTPProblem(400, f"The text is not UTF-8: byte {unread + error.start} does not belong there.") from None
    except HTTPProblem:
        file.close()
        raise
    return _decoded(file)


def _decoded(file: "SpooledTemporaryFile[bytes]") -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with file:
        file.seek(0)
        while piece := file.read(_PIECE):
            yield decoder.decode(piece)


def rendered(found: Iterator[list[Mention]]) -> Iterator[bytes]:
    """The answer in pieces, each the work of some milliseconds; those of text that mentions nothing are empty."""
    left = _MOST
    before = b'{"annotations":['
    for mentions in found:
        annotations = iter_annotations(mentions)
        while some := list(islice(annotations, min(_AT_ONCE, left))):
            yield before + orjson.dumps(some)[1:-1]
            before = b","
            left -= len(some)
        if not left:
            yield b'],"truncated":true}'
            return
        if not mentions:
            yield b""
    yield (b"" if before == b"," else before) + b'],"truncated":false}'
