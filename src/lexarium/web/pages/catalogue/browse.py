"""Browse collections by name, class and hierarchy."""

import string
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION
from lexarium.services.records import browse, queries
from lexarium.services.records.browse import BrowseFilter
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import get_collection
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.pages.site import Site

_PAGE_SIZE = 100


def show_collections(site: Site, request: Request) -> Response:
    """Show all collections and classes with their sizes."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counts = site.database.counts.count_at(snapshot, position.revision)
        statistics = site.statistics_cache.get(position)
        classes = site.list_classes(snapshot)
    context = {
        "counts": {name: counts[name, RecordState.PUBLISHED] for name in COLLECTIONS},
        "hierarchies": HIERARCHICAL_TYPES_BY_COLLECTION,
        "classes": [] if statistics is None else [(item, statistics.classes.get(item.id, {})) for item in classes],
    }
    return site.render(request, "browse.html", context)


def show_collection(site: Site, request: Request) -> Response:
    """Show a page of a collection by name, filtered by class, state and flag."""
    collection, params = get_collection(request), request.query_params
    has_classes, has_flags = "id_concept_class" in collection.fields, "flag_for_curator" in collection.fields
    filters = BrowseFilter(
        collection.name,
        start=params.get("from", ""),
        after=params.get("after") or None,
        class_id=(params.get("class") or None) if has_classes else None,
        flagged=bool(params.get("flagged")) and has_flags,
        state=next((state for state in RecordState if state == params.get("state")), RecordState.PUBLISHED),
    )
    filter_params: dict[str, object] = {
        "class_": filters.class_id,
        "flagged": "1" if filters.flagged else None,
        "state": None if filters.state == RecordState.PUBLISHED else filters.state.value,
    }
    with site.database.read() as snapshot:
        classes = site.class_cache.get(snapshot)
        page = browse.list_page(snapshot, filters, _PAGE_SIZE)
        context = {
            "collection": collection,
            "filters": filters,
            "rows": build_list_items(snapshot, page.items, classes),
            "total": _get_total(site, snapshot, filters),
            "classes": site.list_classes(snapshot),
            "class": classes.get(filters.class_id or ""),
            "has_classes": has_classes,
            "flaggable": has_flags,
            "states": list(RecordState),
            "letters": string.ascii_lowercase,
            "hierarchical": collection.name in HIERARCHICAL_TYPES_BY_COLLECTION,
            "next": page.last_id and add_query(request.url.path, **filter_params, after=page.last_id),
            "filter_params": filter_params,
        }
    return site.render(request, "collection.html", context)


def show_tree(site: Site, request: Request) -> Response:
    """Show the roots of a hierarchy, or the children of one record."""
    collection, record_id = _get_hierarchical_collection(request), request.query_params.get("at")
    context: dict[str, Any] = {
        "collection": collection,
        "root": None,
        "statistics": None,
        "children": [],
        "cycle_members": [],
    }
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        if record_id:
            change = queries.get_record_at(snapshot, record_id, position.revision, collection)
            context |= {
                "root": change.to_record(),
                "path_to_root": browse.find_path_to_root(snapshot, collection.name, record_id),
                "children": browse.list_children(snapshot, collection.name, record_id),
            }
        elif (statistics := site.statistics_cache.get(position)) is not None:
            root_ids, cycle_ids = statistics.root_ids[collection.name].ids, statistics.cycle_members[collection.name]
            context |= {
                "statistics": statistics,
                "children": browse.list_roots(snapshot, collection.name, root_ids),
                "cycle_members": browse.list_roots(snapshot, collection.name, cycle_ids),
            }
    return site.render(request, "tree.html", context)


def show_children(site: Site, request: Request) -> Response:
    """Return the children of a record as an HTML fragment, for a tree that opens in place."""
    collection = _get_hierarchical_collection(request)
    with site.database.read() as snapshot:
        children = browse.list_children(snapshot, collection.name, request.path_params["id"])
    return site.render(request, "_tree_level.html", {"collection": collection, "children": children})


def _get_hierarchical_collection(request: Request) -> Collection:
    collection = get_collection(request)
    if collection.name not in HIERARCHICAL_TYPES_BY_COLLECTION:
        raise NotFound(
            f"The collection {collection.name} has no hierarchy; there is one of"
            f" {', '.join(HIERARCHICAL_TYPES_BY_COLLECTION)}."
        )
    return collection


def _get_total(site: Site, snapshot: Snapshot, filters: BrowseFilter) -> int | None:
    """Return the number of matching records if it is known without counting."""
    position = read_position(snapshot)
    if filters.flagged:
        return None
    if filters.class_id is None:
        return site.database.counts.count_at(snapshot, position.revision)[filters.collection, filters.state]
    statistics = site.statistics_cache.get(position) if filters.state == RecordState.PUBLISHED else None
    return None if statistics is None else statistics.classes.get(filters.class_id, {}).get(filters.collection, 0)


ROUTES = (
    PageRoute("/browse", show_collections),
    PageRoute("/browse/{collection}", show_collection),
    PageRoute("/browse/{collection}/tree", show_tree),
    PageRoute("/browse/{collection}/tree/{id}", show_children),
)
