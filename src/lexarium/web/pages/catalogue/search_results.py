"""Search results with filters."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.search.ranking import TextSpan
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.search.record_search import MAX_DEPTH, RecordHit, RecordSearch, SearchQuery, SearchResult
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.record_list import build_list_items

_PAGE_SIZE = 20


def show_results(page: Page) -> Response:
    """Show a page of results, best first."""
    params = page.query
    text = params.get("q", "").strip()
    collection, class_param = params.get("collection"), params.get("class", "")
    with page.read() as snapshot:
        classes = page.site.class_cache.get(snapshot)
        counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    class_id = _resolve_class_id(classes, class_param)
    offset, include_unpublished = get_int(params, "offset", 5) or 0, bool(params.get("gone"))
    context: dict[str, Any] = {
        "q": text,
        "rows": [],
        "result": None,
        "include_unpublished": include_unpublished,
        "collection": collection if collection in COLLECTIONS else None,
        "auxiliary": [
            name for name, item in COLLECTIONS.items() if item.is_auxiliary and counts[name, RecordState.PUBLISHED]
        ],
        "searched": COLLECTIONS.searched,
        "unknown_collection": collection if collection not in COLLECTIONS else None,
        "class_id": class_id,
        "unknown_class": class_param if class_id not in classes else None,
        "offset": offset,
    }
    if text:
        query = SearchQuery(text, limit=_PAGE_SIZE, offset=min(offset, MAX_DEPTH - _PAGE_SIZE), class_ref=class_id)
        query = replace(query, states=tuple(RecordState)) if include_unpublished else query
        query = replace(query, collections=(context["collection"],)) if context["collection"] else query
        result, facets = _search_with_facets(page.site.record_search, query)
        with page.read() as snapshot:
            changes = find_latest_changes(snapshot, [hit.id for hit in result.hits])
            hits = [hit for hit in result.hits if hit.id in changes]
            items = build_list_items(snapshot, [changes[hit.id] for hit in hits], classes)
        context |= {
            "result": result,
            "facets": facets,
            "classes": classes,
            "class": classes.get(class_id or ""),
            "rows": [(hit, item, list(_split_highlights(hit))) for hit, item in zip(hits, items, strict=True)],
            "next": offset + _PAGE_SIZE if offset + _PAGE_SIZE < min(result.total, MAX_DEPTH) else None,
            "previous": max(0, offset - _PAGE_SIZE) if offset else None,
        }
    return page.render("search_results.html", context)


def _resolve_class_id(classes: Mapping[str, ColoredClass], class_ref: str) -> str | None:
    """Return the id of a class given by id or name, also that of an unknown class: records may name it."""
    matching_ids = (item.id for item in classes.values() if item.name.casefold() == class_ref.casefold())
    return next(matching_ids, class_ref if has_prefix(class_ref, CONCEPT_CLASS.id_prefixes) else None)


def _search_with_facets(
    record_search: RecordSearch, query: SearchQuery
) -> tuple[SearchResult, dict[str, dict[str, int]]]:
    """Return the result and, for each filter, the number of hits with each other value of it."""
    result, first_page = record_search.search(query), replace(query, offset=0)
    alternatives = {"collection": replace(first_page, collections=()), "class": replace(first_page, class_ref=None)}
    narrowed = {name: alternative for name, alternative in alternatives.items() if alternative != first_page}
    facets_by_filter = dict(zip(narrowed, record_search.count_facets([*narrowed.values()]), strict=True))
    return result, {name: facets_by_filter.get(name, result.facets).get(name, {}) for name in alternatives}


def _split_highlights(hit: RecordHit) -> Iterator[tuple[str, bool]]:
    """Split the text of a hit into segments, each with whether it matched."""
    position = 0
    for start, end in sorted(TextSpan(*span) for span in hit.highlight):
        if start > position:
            yield hit.text[position:start], False
        yield hit.text[max(start, position) : end], True
        position = max(position, end)
    yield hit.text[position:], False


ROUTES = (PageRoute("/search", show_results),)
