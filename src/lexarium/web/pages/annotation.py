"""Annotating: a text in, its terms marked in place and counted."""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.collections import SEARCHED
from lexarium.search.annotator import Annotator, Mention, Term
from lexarium.service.annotating import Annotating
from lexarium.service.classes import Class
from lexarium.service.properties import entities
from lexarium.service.views import annotation_views
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.problems import HttpProblem

_READY_SECONDS = 10
_MOST = 20_000
"""How many mentions a page marks."""
_COLUMNS = ("start", "end", "text", "id", "name", "collection")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula begins so."""


@dataclass(frozen=True)
class Counted:
    """A term, and how often it was mentioned."""

    term: Term
    count: int
    class_: Class | None


def form(site: Site, request: Request) -> Response:
    """A place for a text."""
    return site.render(request, "annotate.html", {"text": "", "pieces": None, "collections_asked": SEARCHED})


async def annotate(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """The text with its terms, as a page or to keep."""
    names = await _current(site.annotating)
    async with site.limits.heavy.turn():
        return await run_in_threadpool(_answer, site, request, names, fields)


def _answer(site: Site, request: Request, names: Annotator, fields: Mapping[str, Any]) -> Response:
    text = str(fields.get("text", "")).replace("\r\n", "\n")
    found = list(islice((mention for some in names.mentions([text], SEARCHED) for mention in some), _MOST))
    kind = fields.get("format")
    if kind == "csv":
        return _kept(_csv(found), "text/csv", "terms.csv")
    if kind == "json":
        return _kept(orjson.dumps({"annotations": list(annotation_views(found))}), "application/json", "terms.json")
    terms = {term.id: term for mention in found for term in mention.terms}
    with site.database.read() as snapshot:
        known = entities(snapshot, list(terms), related=False)
        classes = site.classes.at(snapshot)
    sorted_into = {each: classes.get(entity.whole.fields.get("id_concept_class", "")) for each, entity in known.items()}
    counts = Counter(term.id for mention in found for term in mention.terms)
    counted = [Counted(terms[each], count, sorted_into.get(each)) for each, count in counts.most_common()]
    told = {
        "text": text,
        "pieces": list(_pieces(text, found)),
        "counted": counted,
        "mentions": len(found),
        "classes": sorted_into,
        "truncated": len(found) == _MOST,
        "collections_asked": SEARCHED,
    }
    return site.render(request, "annotate.html", told)


def _pieces(text: str, found: Sequence[Mention]) -> Iterator[tuple[str, Mention | None]]:
    """The text in parts, each with what it mentions."""
    at = 0
    for mention in found:
        if mention.start > at:
            yield text[at : mention.start], None
        yield text[mention.start : mention.end], mention
        at = mention.end
    if at < len(text):
        yield text[at:], None


def _csv(found: Sequence[Mention]) -> bytes:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(_COLUMNS)
    for view in annotation_views(found):
        writer.writerow(_harmless(view[name]) for name in _COLUMNS)
    return table.getvalue().encode(errors="replace")


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _kept(body: bytes, kind: str, name: str) -> Response:
    return Response(body, 200, {"content-disposition": f'attachment; filename="{name}"'}, media_type=kind)


async def _current(annotating: Annotating) -> Annotator:
    """The names as of now. Waits for them without a thread, and not for long."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            return await asyncio.wrap_future(annotating.current())
    except TimeoutError:
        detail = "The names of the catalogue are still being read, as after every start. Try again in a little while."
        raise HttpProblem(503, detail, {"Retry-After": str(_READY_SECONDS)}) from None


PAGES = (Page("/annotate", form), Form("/annotate", annotate))
