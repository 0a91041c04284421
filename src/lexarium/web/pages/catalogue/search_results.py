"""Search results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.search.ranking import TextSpan
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.search.record_search import MAX_DEPTH, RecordHit, SearchQuery, SearchResult
from lexarium.store import change_log
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.record_list import RecordListItem, build_list_items
from lexarium.web.pages.site import Site

_PAGE_SIZE = 20
_ALL_STATES = tuple(RecordState)


@dataclass(frozen=True)
class ResultRow:
    """A hit, and the record that was hit."""

    hit: RecordHit
    item: RecordListItem
    segments: Sequence[tuple[str, bool]]
    """What matched, in parts: each with whether it was asked for."""


def show_results(site: Site, request: Request) -> Response:
    """What was found, best first."""
    params = request.query_params
    text = params.get("q", "").strip()
    collection, class_param = params.get("collection"), params.get("class", "")
    with site.database.read() as snapshot:
        classes = site.class_cache.get(snapshot)
    class_id = _resolve_class_id(classes, class_param)
    offset = int(params["offset"]) if params.get("offset", "").isdecimal() and len(params["offset"]) < 6 else 0
    context: dict[str, Any] = {"q": text, "results": [], "found": None, "gone": bool(params.get("gone"))}
    context |= {"collection": collection if collection in COLLECTIONS else None, "class_id": class_id, "offset": offset}
    context["unknown"] = collection if collection not in COLLECTIONS else None
    context["unknown_class"] = class_param if class_id not in classes else None
    if text:
        query = SearchQuery(text, limit=_PAGE_SIZE, offset=min(offset, MAX_DEPTH - _PAGE_SIZE), class_ref=class_id)
        query = replace(query, states=_ALL_STATES) if context["gone"] else query
        query = replace(query, collections=(context["collection"],)) if context["collection"] else query
        result, facets = _search_with_facets(site, query)
        with site.database.read() as snapshot:
            changes = change_log.find_latest(snapshot, [hit.id for hit in result.hits])
            hits = [hit for hit in result.hits if hit.id in changes]
            items = build_list_items(snapshot, [changes[hit.id] for hit in hits], classes)
        context |= {
            "found": result,
            "facets": facets,
            "classes": classes,
            "class": classes.get(class_id or ""),
            "results": [
                ResultRow(hit, item, list(_split_highlights(hit))) for hit, item in zip(hits, items, strict=True)
            ],
            "next": offset + _PAGE_SIZE if offset + _PAGE_SIZE < min(result.total, MAX_DEPTH) else None,
            "previous": max(0, offset - _PAGE_SIZE) if offset else None,
        }
    return site.render(request, "results.html", context)


def _resolve_class_id(classes: Mapping[str, ColoredClass], class_ref: str) -> str | None:
    """The class of this id or name; also one that is not there, by its id: records may name it."""
    matching_ids = (
        concept_class.id for concept_class in classes.values() if concept_class.name.casefold() == class_ref.casefold()
    )
    return next(matching_ids, class_ref if has_prefix(class_ref, CONCEPT_CLASS.id_prefixes) else None)


def _search_with_facets(site: Site, query: SearchQuery) -> tuple[SearchResult, dict[str, dict[str, int]]]:
    """What was found; and, for each filter, how much there would be with another value of it."""
    result, first_page = site.record_search.search(query), replace(query, offset=0)
    alternatives = {"collection": replace(first_page, collections=()), "class": replace(first_page, class_ref=None)}
    narrowed = {name: alternative for name, alternative in alternatives.items() if alternative != first_page}
    facets_by_filter = dict(zip(narrowed, site.record_search.count_facets([*narrowed.values()]), strict=True))
    return result, {name: facets_by_filter.get(name, result.facets).get(name, {}) for name in alternatives}


def _split_highlights(hit: RecordHit) -> Iterator[tuple[str, bool]]:
    position = 0
    for start, end in sorted(TextSpan(*span) for span in hit.highlight):
        if start > position:
            yield hit.text[position:start], False
        yield hit.text[max(start, position) : end], True
        position = max(position, end)
    yield hit.text[position:], False


ROUTES = (PageRoute("/search", show_results),)
