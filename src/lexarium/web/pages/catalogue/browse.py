"""Browse collections by name, class and hierarchy."""

from collections.abc import Iterable
from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import get_local_id, qualify_id, split_id
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.services.records import browse, queries
from lexarium.services.records.browse import BrowseFilter
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.store.position import Snapshot
from lexarium.web.pages.collection_counts import summarize
from lexarium.web.pages.filters import browse_path
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.record_list import build_list_items

_PAGE_SIZE = 100


def show_collections(page: Page) -> Response:
    """Show all collections and classes with their sizes, of each vocabulary."""
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        statistics = page.site.statistics_cache.get(position)
        classes = page.site.class_cache.get(snapshot).values()
    statistics = None if statistics is None else statistics.select(page.scope.collections)
    context = {
        "summaries": summarize(counts, page.site.list_described(page.scope.slugs)),
        "hierarchies": COLLECTIONS.hierarchies if statistics is None else statistics.list_hierarchies(),
        "classified": {
            slug: [name for name in COLLECTIONS.list_names(slug) if COLLECTIONS[name].class_fields]
            for slug in page.scope.slugs
        },
        "classes": {
            slug: [(item, statistics.classes.get(item.id, {})) for item in _sort_classes(classes, slug)]
            for slug in page.scope.slugs
        }
        if statistics
        else {},
    }
    return page.render("browse.html", context)


def _sort_classes(classes: Iterable[ColoredClass], slug: str) -> list[ColoredClass]:
    """Return the classes of a vocabulary by name."""
    own = [item for item in classes if split_id(item.id)[0] == slug]
    return sorted(own, key=lambda item: item.name.casefold())


def show_collection(page: Page) -> Response:
    """Show a page of a collection by name, filtered by class, state and flag."""
    collection, params = page.collection, page.query
    has_classes, has_flags = "id_concept_class" in collection.fields, "flag_for_curator" in collection.fields
    filters = BrowseFilter(
        collection.name,
        start=params.get("from", ""),
        after=_qualify(collection, params.get("after")),
        class_id=_qualify(collection, params.get("class")) if has_classes else None,
        flagged=bool(params.get("flagged")) and has_flags,
        state=next((state for state in RecordState if state == params.get("state")), RecordState.PUBLISHED),
    )
    filter_params: dict[str, object] = {
        "class_": filters.class_id and get_local_id(filters.class_id),
        "flagged": "1" if filters.flagged else None,
        "state": None if filters.state == RecordState.PUBLISHED else filters.state.value,
    }
    with page.read() as snapshot:
        classes = page.site.class_cache.get(snapshot)
        listed = browse.list_page(snapshot, filters, _PAGE_SIZE)
        context = {
            "collection": collection,
            "filters": filters,
            "rows": build_list_items(snapshot, listed.items, classes, page.languages),
            "total": _get_total(page, snapshot, filters),
            "classes": page.site.list_classes(snapshot, next(iter(collection.class_fields.values()), "")),
            "class": classes.get(filters.class_id or ""),
            "has_classes": has_classes,
            "has_tree": _has_tree(page, snapshot, collection),
            "flaggable": has_flags,
            "next": listed.last_id
            and browse_path(collection.name, **filter_params, after=get_local_id(listed.last_id)),
            "filter_params": filter_params,
            "permission_slug": collection.vocabulary,
        }
    return page.render("collection.html", context)


def _qualify(collection: Collection, local_id: str | None) -> str | None:
    """Return the record of the same vocabulary that a parameter names, if any; raise NotFound if it cannot be one."""
    if not local_id:
        return None
    if get_local_id(local_id) != local_id:
        raise NotFound(f"There is no record with the id {local_id!r}.")
    return qualify_id(collection.vocabulary, local_id)


def _has_tree(page: Page, snapshot: Snapshot, collection: Collection) -> bool:
    if collection.name not in COLLECTIONS.hierarchies:
        return False
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    return statistics is None or collection.name in statistics.list_hierarchies()


def show_tree(page: Page) -> Response:
    """Show the roots of a hierarchy, or the children of one record."""
    collection = _get_hierarchical_collection(page)
    record_id = _qualify(collection, page.query.get("at"))
    context: dict[str, Any] = {
        "collection": collection,
        "root": None,
        "statistics": None,
        "children": [],
        "cycle_members": [],
        "permission_slug": collection.vocabulary,
    }
    with page.read() as snapshot:
        position = get_position(snapshot)
        if record_id:
            change = queries.get_record_at(snapshot, record_id, position.revision, collection)
            context |= {
                "root": change.to_record(),
                "path_to_root": browse.find_path_to_root(snapshot, collection.name, record_id),
                "children": browse.list_children(snapshot, collection.name, record_id, page.languages),
            }
        elif (statistics := page.site.statistics_cache.get(position)) is not None:
            root_ids, cycle_ids = statistics.root_ids[collection.name].ids, statistics.cycle_members[collection.name]
            context |= {
                "statistics": statistics,
                "children": browse.list_roots(snapshot, collection.name, root_ids, page.languages),
                "cycle_members": browse.list_roots(snapshot, collection.name, cycle_ids, page.languages),
            }
    return page.render("tree.html", context)


def show_children(page: Page) -> Response:
    """Return the children of a record as an HTML fragment, for a tree that opens in place."""
    collection = _get_hierarchical_collection(page)
    record_id = _qualify(collection, page.id) or ""
    with page.read() as snapshot:
        children = browse.list_children(snapshot, collection.name, record_id, page.languages)
    return page.render("_tree_level.html", {"collection": collection, "children": children})


def _get_hierarchical_collection(page: Page) -> Collection:
    collection = page.collection
    if collection.name not in COLLECTIONS.hierarchies:
        known = [COLLECTIONS[name].local_name for name in COLLECTIONS.list_names(collection.vocabulary)]
        hierarchical = [name for name in known if qualify_name(collection.vocabulary, name) in COLLECTIONS.hierarchies]
        detail = f"there is one of {', '.join(hierarchical)}" if hierarchical else "no other has one either"
        raise NotFound(f"The collection {collection.local_name} has no hierarchy; {detail}.")
    return collection


def _get_total(page: Page, snapshot: Snapshot, filters: BrowseFilter) -> int | None:
    """Return the number of matching records if it is known without counting."""
    position = get_position(snapshot)
    if filters.flagged:
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
)
