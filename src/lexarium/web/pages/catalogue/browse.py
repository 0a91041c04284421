"""Browse collections by name, class and hierarchy."""

from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import get_local_id, qualify_id, split_id
from lexarium.domain.record import RecordState
from lexarium.domain.record_texts import choose_text
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.services.records import browse, queries
from lexarium.services.records.browse import BrowseFilter, TreeItem
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.lookup import find_names, get_latest_change
from lexarium.services.records.statistics import CatalogueStatistics
from lexarium.services.search.record_search import SearchQuery
from lexarium.store.position import Snapshot
from lexarium.web.pages.collection_counts import VocabularySummary, summarize
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.template_filters import browse_path

_PAGE_SIZE = 100
_MAX_INITIALS = 60
_MAX_FILTERED = 100
# Fields whose matches count when a tree is filtered.
_NAME_FIELDS = ("id", "name", "alias")


def show_collections(page: Page) -> Response:
    """Show the ways into each vocabulary: collections, classes, groups and languages, with their sizes."""
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        statistics = page.site.statistics_cache.get(position)
        classes = page.site.class_cache.get(snapshot).values()
    statistics = None if statistics is None else statistics.select(page.scope.collections)
    summaries = summarize(counts, page.site.sort_vocabularies(page.scope.slugs))
    context: dict[str, Any] = {
        "summaries": summaries,
        "hierarchies": COLLECTIONS.hierarchies if statistics is None else statistics.list_hierarchies(),
        "statistics": statistics,
    }
    if len(summaries) != 1:
        return page.render("browse.html", context)
    [slug] = page.scope.slugs
    classified = [name for name in COLLECTIONS.list_names(slug) if COLLECTIONS[name].class_fields]
    context |= {
        "classified": classified,
        "classes": []
        if statistics is None
        else [(item, statistics.classes.get(item.id, {})) for item in _sort_classes(classes, slug)],
        "groups": {} if statistics is None else {name: groups for name, groups in statistics.groups.items() if groups},
        "languages": [] if statistics is None else _list_coverage(statistics, summaries[0]),
        "chosen_vocabulary": slug,
    }
    return page.render("browse_vocabulary.html", context)


@dataclass(frozen=True)
class LanguageCoverage:
    """Records of a collection with a name and with a definition in a language."""

    collection: str
    language: str
    names: int
    definitions: int
    total: int
    is_default: bool


def _list_coverage(statistics: CatalogueStatistics, summary: VocabularySummary) -> list[LanguageCoverage]:
    """Return the coverage of each main collection that has names in several languages."""
    names, definitions = statistics.languages["name"], statistics.languages["definition"]
    default = summary.vocabulary.language
    coverage = []
    for collection, total in summary.main_counts.items():
        languages = sorted(
            (language for language, counts in names.items() if counts.get(collection)),
            key=lambda language: (language != default, -names[language][collection], language),
        )
        coverage += [
            LanguageCoverage(
                collection,
                language,
                names[language][collection],
                definitions.get(language, {}).get(collection, 0),
                total,
                language == default,
            )
            for language in languages
            if len(languages) > 1
        ]
    return coverage


def _sort_classes(classes: Iterable[ColoredClass], slug: str) -> list[ColoredClass]:
    """Return the classes of a vocabulary by name."""
    own = [item for item in classes if split_id(item.id)[0] == slug]
    return sorted(own, key=lambda item: item.name.casefold())


def show_collection(page: Page) -> Response:
    """Show a page of a collection by name, filtered by class, group, language, state and flag."""
    collection = page.collection
    filters = _parse_filter(page, collection)
    filter_params: dict[str, object] = {
        "class_": filters.class_id and get_local_id(filters.class_id),
        "group": filters.group_id and get_local_id(filters.group_id),
        "language": filters.language if filters.has_language else None,
        "without": None if filters.has_language else filters.language,
        "flagged": "1" if filters.flagged else None,
        "state": None if filters.state == RecordState.PUBLISHED else filters.state.value,
    }
    with page.read() as snapshot:
        classes = page.site.class_cache.get(snapshot)
        statistics = page.site.statistics_cache.get(get_position(snapshot))
        listed = browse.list_page(snapshot, filters, _PAGE_SIZE)
        context = {
            "collection": collection,
            "filters": filters,
            "rows": build_list_items(snapshot, listed.items, classes, page.languages),
            "total": _get_total(page, snapshot, filters),
            "classes": page.site.list_classes(snapshot, next(iter(collection.class_fields.values()), "")),
            "class": classes.get(filters.class_id or ""),
            "group_name": find_names(snapshot, [filters.group_id]).get(filters.group_id) if filters.group_id else None,
            "groups": [] if statistics is None else statistics.groups.get(collection.name, []),
            "initials": _list_initials(statistics, collection),
            "has_classes": collection.class_field is not None,
            "has_tree": _has_tree(page, snapshot, collection),
            "flaggable": "flag_for_curator" in collection.fields,
            "next": listed.last_id
            and browse_path(collection.name, **filter_params, after=get_local_id(listed.last_id)),
            "filter_params": filter_params,
            "permission_slug": collection.vocabulary,
            "chosen_vocabulary": collection.vocabulary,
        }
    return page.render("collection.html", context)


def _parse_filter(page: Page, collection: Collection) -> BrowseFilter:
    params = page.query
    language, without = (params.get(name) for name in ("language", "without"))
    tag = language or without
    return BrowseFilter(
        collection.name,
        start=params.get("from", ""),
        after=_qualify(collection, params.get("after")),
        class_id=_qualify(collection, params.get("class")) if collection.class_field is not None else None,
        flagged=bool(params.get("flagged")) and "flag_for_curator" in collection.fields,
        group_id=_qualify(collection, params.get("group")) if collection.grouping_types else None,
        language=format_tag(tag) if tag and find_tag_problem(tag) is None else None,
        has_language=bool(language),
        state=next((state for state in RecordState if state == params.get("state")), RecordState.PUBLISHED),
    )


def _list_initials(statistics: CatalogueStatistics | None, collection: Collection) -> list[str]:
    """Return the letters that names begin with, or those of English while they are not known."""
    if statistics is None:
        return list(ascii_lowercase)
    initials = statistics.initials.get(collection.name, {})
    return sorted(initial for initial, count in initials.items() if count > 0 and initial.isalpha())[:_MAX_INITIALS]


def _qualify(collection: Collection, local_id: str | None) -> str | None:
    """Return the record of the same vocabulary that a parameter names, if any; raise NotFound if it cannot be one."""
    if not local_id:
        return None
    if get_local_id(local_id) != local_id:
        raise NotFound(f"Record {local_id!r} not found.")
    return qualify_id(collection.vocabulary, local_id)


def _has_tree(page: Page, snapshot: Snapshot, collection: Collection) -> bool:
    if collection.name not in COLLECTIONS.hierarchies:
        return False
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    return statistics is None or collection.name in statistics.list_hierarchies()


def show_tree(page: Page) -> Response:
    """Show the roots of a hierarchy, the children of one record, the whole, or the part with records of a name."""
    collection = _get_hierarchical_collection(page)
    record_id = _qualify(collection, page.query.get("at"))
    words = page.query.get("q", "").strip()
    context: dict[str, Any] = {
        "collection": collection,
        "root": None,
        "statistics": None,
        "items": [],
        "cycle_members": [],
        "words": words,
        "is_expanded": False,
        "max_expanded": browse.MAX_EXPANDED,
        "permission_slug": collection.vocabulary,
        "chosen_vocabulary": collection.vocabulary,
    }
    with page.read() as snapshot:
        position = get_position(snapshot)
        statistics = page.site.statistics_cache.get(position)
        if words:
            context |= {"items": _filter_tree(page, snapshot, collection, words), "statistics": statistics}
        elif record_id:
            found = queries.get_record_at(snapshot, record_id, position.revision, collection)
            context |= {
                "root": found.record,
                "path_to_root": browse.find_path_to_root(snapshot, collection.name, record_id),
                "items": browse.to_items(browse.list_children(snapshot, collection.name, record_id, page.languages)),
            }
        elif statistics is not None:
            context |= _load_roots(page, snapshot, statistics, collection)
    return page.render("tree.html", context)


def _load_roots(
    page: Page, snapshot: Snapshot, statistics: CatalogueStatistics, collection: Collection
) -> dict[str, Any]:
    root_ids, cycle_ids = statistics.root_ids[collection.name].ids, statistics.cycle_members[collection.name]
    roots = browse.list_roots(snapshot, collection.name, root_ids, page.languages)
    expanded = None
    if page.query.get("expand"):
        expanded = browse.expand_tree(snapshot, collection.name, roots, page.languages)
    return {
        "statistics": statistics,
        "items": browse.to_items(roots) if expanded is None else expanded,
        "is_expanded": expanded is not None,
        "cycle_members": browse.to_items(browse.list_roots(snapshot, collection.name, cycle_ids, page.languages)),
    }


def _filter_tree(page: Page, snapshot: Snapshot, collection: Collection, words: str) -> list[TreeItem]:
    query = SearchQuery(
        words, (collection.name,), limit=_MAX_FILTERED, scope=page.scope, languages=tuple(page.languages)
    )
    hits = page.site.record_search.search(query).hits
    record_ids = [hit.id for hit in hits if hit.field in _NAME_FIELDS]
    return browse.filter_tree(snapshot, collection.name, record_ids, page.languages) if record_ids else []


def show_children(page: Page) -> Response:
    """Return the children of a record as an HTML fragment, for a tree that opens in place."""
    collection = _get_hierarchical_collection(page)
    record_id = _qualify(collection, page.id) or ""
    with page.read() as snapshot:
        children = browse.list_children(snapshot, collection.name, record_id, page.languages)
    return page.render("_tree_level.html", {"collection": collection, "items": browse.to_items(children)})


def show_summary(page: Page) -> Response:
    """Return a short description of a record as an HTML fragment, for the pane beside a tree."""
    collection = page.collection
    record_id = _qualify(collection, page.id) or ""
    with page.read() as snapshot:
        record = get_latest_change(snapshot, record_id).to_record()
        context = {
            "record": record,
            "name": choose_text(record, "name", page.languages),
            "definition": choose_text(record, collection.definition_field or "", page.languages),
            "class": page.site.class_cache.get(snapshot).get(record.class_id),
            "parents": browse.list_parents(snapshot, collection.name, record_id, page.languages),
        }
    return page.render("_record_summary.html", context)


def _get_hierarchical_collection(page: Page) -> Collection:
    collection = page.collection
    if collection.name not in COLLECTIONS.hierarchies:
        known = [COLLECTIONS[name].local_name for name in COLLECTIONS.list_names(collection.vocabulary)]
        hierarchical = [name for name in known if qualify_name(collection.vocabulary, name) in COLLECTIONS.hierarchies]
        detail = f"available for {', '.join(hierarchical)}" if hierarchical else "no other collection has one"
        raise NotFound(f"The collection {collection.local_name} has no hierarchy; {detail}.")
    return collection


def _get_total(page: Page, snapshot: Snapshot, filters: BrowseFilter) -> int | None:
    """Return the number of matching records if it is known without counting."""
    position = get_position(snapshot)
    if filters.flagged or filters.group_id or filters.language:
        return None
    if filters.class_id is None:
        return page.site.database.counts.count_at(snapshot, position.revision)[filters.collection, filters.state]
    statistics = page.site.statistics_cache.get(position) if filters.state == RecordState.PUBLISHED else None
    return None if statistics is None else statistics.classes.get(filters.class_id, {}).get(filters.collection, 0)


ROUTES = (
    PageRoute("/browse", show_collections),
    PageRoute("/browse/{collection}", show_collection),
    PageRoute("/browse/{collection}/tree", show_tree),
    PageRoute("/browse/{collection}/tree/{id:path}", show_children),
    PageRoute("/browse/{collection}/summary/{id:path}", show_summary),
)
