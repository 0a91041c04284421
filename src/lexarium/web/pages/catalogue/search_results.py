"""Search results with filters."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from starlette.responses import Response

from lexarium.domain.identifiers import get_local_id, has_prefix
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.text.languages import format_tag
from lexarium.domain.vocabulary import get_default_vocabulary
from lexarium.search.ranking import TextSpan
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.search.record_search import (
    MAX_DEPTH,
    MAX_DOWNLOADED,
    RecordHit,
    RecordSearch,
    SearchQuery,
    SearchResult,
)
from lexarium.services.vocabularies.access import ReadScope, list_collections
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.template_filters import propose_path

_PAGE_SIZE = 20
_MAX_CLASSES = 15


def show_results(page: Page) -> Response:
    """Show a page of results, best first."""
    params, scope = page.query, page.scope
    text = params.get("q", "").strip()
    local_name, class_param = params.get("collection"), params.get("class", "")
    collections = list_collections(scope, [local_name]) if local_name else ()
    with page.read() as snapshot:
        classes = page.site.class_cache.get(snapshot)
        counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    classes = {class_id: item for class_id, item in classes.items() if scope.includes(class_id)}
    chosen_class = _find_class(classes, class_param)
    is_id = has_prefix(class_param, CONCEPT_CLASS.id_prefixes)
    # Records may name an unknown class too.
    class_id = get_local_id(chosen_class.id) if chosen_class else class_param if is_id else None
    offset = get_int(params, "offset", 5) or 0
    state = params.get("state", "all" if params.get("gone") else "")
    states = {"all": tuple(RecordState), **{item.value: (item,) for item in RecordState}}
    language = params.get("language", "").lower()
    context: dict[str, Any] = {
        "q": text,
        "rows": [],
        "result": None,
        "state": state if state in states else "",
        "all_states": ",".join(RecordState),
        "language": language,
        "collection": local_name if collections else None,
        "collection_label": COLLECTIONS[collections[0]].plural if collections else "",
        "auxiliary": _group_names(
            name for name in scope.collections if COLLECTIONS[name].is_auxiliary and counts[name, RecordState.PUBLISHED]
        ),
        "searched": _group_names(scope.searched_collections),
        "unknown_collection": None if collections else local_name,
        "slugs": scope.slugs if scope.is_chosen else (),
        "missing_path": _get_missing_path(scope, collections, text),
        "class_id": class_id,
        "unknown_class": class_param if chosen_class is None else None,
        "offset": offset,
    }
    if text:
        query = SearchQuery(
            text, limit=_PAGE_SIZE, offset=min(offset, MAX_DEPTH - _PAGE_SIZE), class_ref=class_id, scope=scope
        )
        query = replace(
            query,
            states=states.get(state, (RecordState.PUBLISHED,)),
            collections=collections or _limit_collections(scope),
            label_languages=(language,) if language else (),
        )
        result, facets = _search_with_facets(page.site.record_search, query, _limit_collections(scope))
        with page.read() as snapshot:
            changes = find_latest_changes(snapshot, [hit.id for hit in result.hits])
            hits = [hit for hit in result.hits if hit.id in changes and scope.includes(hit.id)]
            items = build_list_items(snapshot, [changes[hit.id] for hit in hits], classes, page.languages)
        collection_counts = {name: count for name, count in facets["collection"].items() if name in COLLECTIONS}
        class_counts = _sum_by(facets["class"], get_local_id)
        context |= {
            "result": result,
            "facets": {
                "vocabulary": _sum_by(collection_counts, lambda name: COLLECTIONS[name].vocabulary),
                "collection": _sum_by(collection_counts, lambda name: COLLECTIONS[name].local_name),
                "language": facets["language"],
                "state": facets["state"],
            },
            "language_names": {tag: format_tag(tag) for tag in (*facets["language"], language) if tag},
            # Those of one id in several vocabularies together.
            "class_facets": dict(islice(class_counts.items(), _MAX_CLASSES)),
            "class_names": {get_local_id(item.id): item.name for item in classes.values()},
            "max_downloaded": MAX_DOWNLOADED,
            "collection_labels": {COLLECTIONS[name].local_name: COLLECTIONS[name].plural for name in scope.collections},
            "classes": classes,
            "class": chosen_class,
            "rows": [(hit, item, list(_split_highlights(hit))) for hit, item in zip(hits, items, strict=True)],
            "next": offset + _PAGE_SIZE if offset + _PAGE_SIZE < min(result.total, MAX_DEPTH) else None,
            "previous": max(0, offset - _PAGE_SIZE) if offset else None,
        }
    return page.render("search_results.html", context)


def _find_class(classes: Mapping[str, ColoredClass], class_ref: str) -> ColoredClass | None:
    """Return the class with an id in its vocabulary, else with a name."""
    by_id = (item for item in classes.values() if get_local_id(item.id) == class_ref)
    by_name = (item for item in classes.values() if item.name.casefold() == class_ref.casefold())
    return next(chain(by_id, by_name), None)


def _get_missing_path(scope: ReadScope, collections: Sequence[str], text: str) -> str:
    """Return the path of the form for a record of which nothing was found."""
    default = sorted(scope.slugs, key=lambda slug: slug != get_default_vocabulary().slug)
    main = [name for slug in default for name in COLLECTIONS.list_names(slug) if not COLLECTIONS[name].is_auxiliary]
    return propose_path((*collections, *main)[0], name=text) if collections or main else "/propose"


def _limit_collections(scope: ReadScope) -> tuple[str, ...]:
    """Return the collections to search by default; none, which means all, if the scope has all vocabularies."""
    return () if set(COLLECTIONS) == set(scope.collections) else scope.searched_collections


def _group_names(names: Iterable[str]) -> dict[str, str]:
    """Return the nouns for several records, by the name of a collection in its vocabulary."""
    return {COLLECTIONS[name].local_name: COLLECTIONS[name].plural for name in names}


def _sum_by(counts: Mapping[str, int], get_key: Callable[[str], str]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for name, count in counts.items():
        sums[get_key(name)] += count
    return dict(sums)


def _search_with_facets(
    record_search: RecordSearch, query: SearchQuery, all_collections: tuple[str, ...]
) -> tuple[SearchResult, dict[str, dict[str, int]]]:
    """Return the result and, for each filter, the number of hits with each other value of it."""
    result, first_page = record_search.search(query), replace(query, offset=0)
    alternatives = {
        "collection": replace(first_page, collections=all_collections),
        "class": replace(first_page, class_ref=None),
        "language": replace(first_page, label_languages=()),
        "state": replace(first_page, states=tuple(RecordState)),
    }
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
