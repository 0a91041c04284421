"""Browsing: the collections, each by name and by class, and their hierarchies."""

import string
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import NotFound
from lexarium.domain.relations import HIERARCHIES
from lexarium.service import browsing, looking
from lexarium.service.browsing import Wanted
from lexarium.store.backend import Snapshot, read_position
from lexarium.web.pages.rows import rows
from lexarium.web.pages.site import Page, Site
from lexarium.web.pages.wording import with_query

_SHOWN = 100
_LETTERS = (*string.ascii_lowercase,)


def overview(site: Site, request: Request) -> Response:
    """The collections and the classes."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counted = site.database.tallies.at(snapshot, position.revision)
        figures = site.statistics.figures(position)
        classes = site.classes.at(snapshot)
    sized = [] if figures is None else [(each, figures.classes.get(each.id, {})) for each in classes.values()]
    told = {
        "counts": {name: counted[name, State.PUBLISHED] for name in COLLECTIONS},
        "hierarchies": HIERARCHIES,
        "letters": _LETTERS,
        "classes": sorted(sized, key=lambda each: each[0].name.casefold()),
    }
    return site.render(request, "overview.html", told)


def collection(site: Site, request: Request) -> Response:
    """A collection by name, all of it or some."""
    kind, given = _collection(request), request.query_params
    state = next((each for each in State if each == given.get("state")), State.PUBLISHED)
    wanted = Wanted(
        kind.name,
        start=given.get("from", ""),
        after=given.get("after") or None,
        class_id=(given.get("class") or None) if _has(kind, "id_concept_class") else None,
        flagged=bool(given.get("flagged")) and _has(kind, "flag_for_curator"),
        state=state,
    )
    with site.database.read() as snapshot:
        classes = site.classes.at(snapshot)
        found = browsing.shelf(snapshot, wanted, _SHOWN)
        told = {
            "collection": kind,
            "wanted": wanted,
            "rows": rows(snapshot, found.items, classes),
            "total": _total(site, snapshot, wanted),
            "classes": sorted(classes.values(), key=lambda each: each.name.casefold()),
            "class": classes.get(wanted.class_id or ""),
            "classed": _has(kind, "id_concept_class"),
            "flaggable": _has(kind, "flag_for_curator"),
            "states": list(State),
            "letters": _LETTERS,
            "hierarchical": kind.name in HIERARCHIES,
            "next": found.last and with_query(request.url.path, **{**_kept(wanted), "after": found.last}),
            "kept": _kept(wanted),
        }
    return site.render(request, "collection.html", told)


def tree(site: Site, request: Request) -> Response:
    """A hierarchy from the top, or from a record down."""
    kind, at = _hierarchy(request), request.query_params.get("at")
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        told: dict[str, Any] = {"collection": kind, "at": None, "figures": None, "circling": []}
        if at:
            found = looking.record(snapshot, at, position.revision, kind)
            told["at"] = found.whole()
            told["way"] = browsing.way_up(snapshot, kind.name, at)
            told["branches"] = browsing.level(snapshot, kind.name, at)
        else:
            figures = site.statistics.figures(position)
            told["figures"] = figures
            told["branches"] = [] if figures is None else browsing.top(snapshot, kind.name, figures.tops[kind.name].ids)
            told["circling"] = [] if figures is None else browsing.top(snapshot, kind.name, figures.circles[kind.name])
    return site.render(request, "tree.html", told)


def level(site: Site, request: Request) -> Response:
    """What is below a record, as a piece of a page: for a tree that opens in place."""
    kind = _hierarchy(request)
    with site.database.read() as snapshot:
        found = browsing.level(snapshot, kind.name, request.path_params["id"])
    return site.render(request, "_branches.html", {"collection": kind, "branches": found})


def _collection(request: Request) -> Collection:
    name = request.path_params["collection"]
    if name not in COLLECTIONS:
        raise NotFound(f"There is no collection {name!r}; there are {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


def _hierarchy(request: Request) -> Collection:
    kind = _collection(request)
    if kind.name not in HIERARCHIES:
        raise NotFound(f"The collection {kind.name} has no hierarchy; there is one of {', '.join(HIERARCHIES)}.")
    return kind


def _has(kind: Collection, field: str) -> bool:
    return field in kind.fields


def _total(site: Site, snapshot: Snapshot, wanted: Wanted) -> int | None:
    """How many there are, where that is known without counting."""
    position = read_position(snapshot)
    if wanted.flagged:
        return None
    if wanted.class_id is None:
        return site.database.tallies.at(snapshot, position.revision)[wanted.collection, wanted.state]
    figures = site.statistics.figures(position) if wanted.state == State.PUBLISHED else None
    return None if figures is None else figures.classes.get(wanted.class_id, {}).get(wanted.collection, 0)


def _kept(wanted: Wanted) -> dict[str, object]:
    """The filters, as parameters of another address of the same list."""
    return {
        "class_": wanted.class_id,
        "flagged": "1" if wanted.flagged else None,
        "state": None if wanted.state == State.PUBLISHED else wanted.state.value,
    }


PAGES = (
    Page("/browse", overview),
    Page("/browse/{collection}", collection),
    Page("/browse/{collection}/tree", tree),
    Page("/browse/{collection}/tree/{id}", level),
)
