"""Browsing: the collections, each by name and by class, and their hierarchies."""

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
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.pages.site import Site

_PAGE_SIZE = 100
_LETTERS = (*string.ascii_lowercase,)


def show_collections(site: Site, request: Request) -> Response:
    """The collections and the classes."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counts = site.database.counts.count_at(snapshot, position.revision)
        statistics = site.statistics_cache.get(position)
        classes = site.class_cache.get(snapshot)
    class_sizes = (
        [] if statistics is None else [(item, statistics.classes.get(item.id, {})) for item in classes.values()]
    )
    context = {
        "counts": {name: counts[name, RecordState.PUBLISHED] for name in COLLECTIONS},
        "hierarchies": HIERARCHICAL_TYPES_BY_COLLECTION,
        "letters": _LETTERS,
        "classes": sorted(class_sizes, key=lambda item: item[0].name.casefold()),
    }
    return site.render(request, "overview.html", context)


def show_collection(site: Site, request: Request) -> Response:
    """A collection by name, all of it or some."""
    collection, params = _get_collection(request), request.query_params
    state = next((item for item in RecordState if item == params.get("state")), RecordState.PUBLISHED)
    filters = BrowseFilter(
        collection.name,
        start=params.get("from", ""),
        after=params.get("after") or None,
        class_id=(params.get("class") or None) if _has_field(collection, "id_concept_class") else None,
        flagged=bool(params.get("flagged")) and _has_field(collection, "flag_for_curator"),
        state=state,
    )
    with site.database.read() as snapshot:
        classes = site.class_cache.get(snapshot)
        page = browse.list_page(snapshot, filters, _PAGE_SIZE)
        context = {
            "collection": collection,
            "wanted": filters,
            "rows": build_list_items(snapshot, page.items, classes),
            "total": _get_total(site, snapshot, filters),
            "classes": sorted(classes.values(), key=lambda item: item.name.casefold()),
            "class": classes.get(filters.class_id or ""),
            "classed": _has_field(collection, "id_concept_class"),
            "flaggable": _has_field(collection, "flag_for_curator"),
            "states": list(RecordState),
            "letters": _LETTERS,
            "hierarchical": collection.name in HIERARCHICAL_TYPES_BY_COLLECTION,
            "next": page.last_id
            and add_query(request.url.path, **{**_to_query_params(filters), "after": page.last_id}),
            "kept": _to_query_params(filters),
        }
    return site.render(request, "collection.html", context)


def show_tree(site: Site, request: Request) -> Response:
    """A hierarchy from the top, or from a record down."""
    collection, record_id = _get_hierarchical_collection(request), request.query_params.get("at")
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        context: dict[str, Any] = {"collection": collection, "at": None, "figures": None, "circling": []}
        if record_id:
            change = queries.get_record_at(snapshot, record_id, position.revision, collection)
            context["at"] = change.to_record()
            context["way"] = browse.find_path_to_root(snapshot, collection.name, record_id)
            context["branches"] = browse.list_children(snapshot, collection.name, record_id)
        else:
            statistics = site.statistics_cache.get(position)
            context["figures"] = statistics
            context["branches"] = (
                []
                if statistics is None
                else browse.list_roots(snapshot, collection.name, statistics.root_ids[collection.name].ids)
            )
            context["circling"] = (
                []
                if statistics is None
                else browse.list_roots(snapshot, collection.name, statistics.cycle_members[collection.name])
            )
    return site.render(request, "tree.html", context)


def show_children(site: Site, request: Request) -> Response:
    """What is below a record, as a piece of a page: for a tree that opens in place."""
    collection = _get_hierarchical_collection(request)
    with site.database.read() as snapshot:
        children = browse.list_children(snapshot, collection.name, request.path_params["id"])
    return site.render(request, "_branches.html", {"collection": collection, "branches": children})


def _get_collection(request: Request) -> Collection:
    name = request.path_params["collection"]
    if name not in COLLECTIONS:
        raise NotFound(f"There is no collection {name!r}; there are {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


def _get_hierarchical_collection(request: Request) -> Collection:
    collection = _get_collection(request)
    if collection.name not in HIERARCHICAL_TYPES_BY_COLLECTION:
        raise NotFound(
            f"The collection {collection.name} has no hierarchy; there is one of"
            f" {', '.join(HIERARCHICAL_TYPES_BY_COLLECTION)}."
        )
    return collection


def _has_field(collection: Collection, field: str) -> bool:
    return field in collection.fields


def _get_total(site: Site, snapshot: Snapshot, filters: BrowseFilter) -> int | None:
    """How many there are, where that is known without counting."""
    position = read_position(snapshot)
    if filters.flagged:
        return None
    if filters.class_id is None:
        return site.database.counts.count_at(snapshot, position.revision)[filters.collection, filters.state]
    statistics = site.statistics_cache.get(position) if filters.state == RecordState.PUBLISHED else None
    return None if statistics is None else statistics.classes.get(filters.class_id, {}).get(filters.collection, 0)


def _to_query_params(filters: BrowseFilter) -> dict[str, object]:
    """The filters, as parameters of another address of the same list."""
    return {
        "class_": filters.class_id,
        "flagged": "1" if filters.flagged else None,
        "state": None if filters.state == RecordState.PUBLISHED else filters.state.value,
    }


ROUTES = (
    PageRoute("/browse", show_collections),
    PageRoute("/browse/{collection}", show_collection),
    PageRoute("/browse/{collection}/tree", show_tree),
    PageRoute("/browse/{collection}/tree/{id}", show_children),
)
