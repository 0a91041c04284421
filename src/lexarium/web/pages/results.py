"""Search results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.identifiers import has_prefix
from lexarium.search.ranking import Span
from lexarium.service.classes import Class
from lexarium.service.finding import DEEPEST, Asked, Found, Hit
from lexarium.store import log
from lexarium.web.pages.rows import Row, rows
from lexarium.web.pages.site import Page, Site

_SHOWN = 20
_EVERY_STATE = tuple(State)


@dataclass(frozen=True)
class Result:
    """A hit, and the record that was hit."""

    hit: Hit
    row: Row
    pieces: Sequence[tuple[str, bool]]
    """What matched, in parts: each with whether it was asked for."""


def search(site: Site, request: Request) -> Response:
    """What was found, best first."""
    given = request.query_params
    text = given.get("q", "").strip()
    collection, class_given = given.get("collection"), given.get("class", "")
    with site.database.read() as snapshot:
        classes = site.classes.at(snapshot)
    class_id = _class(classes, class_given)
    offset = int(given["offset"]) if given.get("offset", "").isdecimal() and len(given["offset"]) < 6 else 0
    told: dict[str, Any] = {"q": text, "results": [], "found": None, "gone": bool(given.get("gone"))}
    told |= {"collection": collection if collection in COLLECTIONS else None, "class_id": class_id, "offset": offset}
    told["unknown"] = collection if collection not in COLLECTIONS else None
    told["unknown_class"] = class_given if class_id not in classes else None
    if text:
        asked = Asked(text, limit=_SHOWN, offset=min(offset, DEEPEST - _SHOWN), class_=class_id)
        asked = replace(asked, states=_EVERY_STATE) if told["gone"] else asked
        asked = replace(asked, collections=(told["collection"],)) if told["collection"] else asked
        found, facets = _found(site, asked)
        with site.database.read() as snapshot:
            changes = log.latest(snapshot, [hit.id for hit in found.hits])
            hits = [hit for hit in found.hits if hit.id in changes]
            shown = rows(snapshot, [changes[hit.id] for hit in hits], classes)
        told |= {
            "found": found,
            "facets": facets,
            "classes": classes,
            "class": classes.get(class_id or ""),
            "results": [Result(hit, row, list(_pieces(hit))) for hit, row in zip(hits, shown, strict=True)],
            "next": offset + _SHOWN if offset + _SHOWN < min(found.total, DEEPEST) else None,
            "previous": max(0, offset - _SHOWN) if offset else None,
        }
    return site.render(request, "results.html", told)


def _class(classes: Mapping[str, Class], given: str) -> str | None:
    """The class of this id or name; also one that is not there, by its id: records may name it."""
    named = (each.id for each in classes.values() if each.name.casefold() == given.casefold())
    return next(named, given if has_prefix(given, CONCEPT_CLASS.prefixes) else None)


def _found(site: Site, wanted: Asked) -> tuple[Found, dict[str, dict[str, int]]]:
    """What was found; and, for each filter, how much there would be with another value of it."""
    found, whole = site.finder.search(wanted), replace(wanted, offset=0)
    others = {"collection": replace(whole, collections=()), "class": replace(whole, class_=None)}
    narrowed = {name: other for name, other in others.items() if other != whole}
    counted = dict(zip(narrowed, site.finder.facets([*narrowed.values()]), strict=True))
    return found, {name: counted.get(name, found.facets).get(name, {}) for name in others}


def _pieces(hit: Hit) -> Iterator[tuple[str, bool]]:
    at = 0
    for start, end in sorted(Span(*span) for span in hit.highlight):
        if start > at:
            yield hit.text[at:start], False
        yield hit.text[max(start, at) : end], True
        at = max(at, end)
    yield hit.text[at:], False


PAGES = (Page("/search", search),)
