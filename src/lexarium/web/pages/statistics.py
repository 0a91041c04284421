"""Statistics: how the catalogue grew, what is in it by class and contributor, and what it lacks."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import NotFound
from lexarium.domain.relations import HIERARCHIES
from lexarium.service.classes import Class
from lexarium.service.recent import people
from lexarium.service.statistics import GAPS, Figures
from lexarium.store import log
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.surveys import Surveyed
from lexarium.web.pages.chart import Chart, chart
from lexarium.web.pages.rows import rows
from lexarium.web.pages.site import Page, Site

_WAYS = ("collection", "class", "contributor")
_MOST_SERIES = 12
_CONTRIBUTORS = 15
_SHOWN = 100
_OTHERS = "others"


def statistics(site: Site, request: Request) -> Response:
    """The figures, drawn."""
    by = request.query_params.get("by", "")
    by = by if by in _WAYS else _WAYS[0]
    with site.database.read() as snapshot:
        figures = site.statistics.figures(read_position(snapshot))
        told: dict[str, Any] = {"figures": figures, "by": by, "ways": _WAYS, "gaps": GAPS}
        if figures is not None:
            told |= _told(site, snapshot, figures, by)
    return site.render(request, "statistics.html", told)


def gap(site: Site, request: Request) -> Response:
    """The records that lack something, some at a time."""
    kind = request.path_params["kind"]
    if kind not in GAPS:
        raise NotFound(f"There is no such list; there are {', '.join(GAPS)}.")
    given, collection = request.query_params.get("offset", ""), request.query_params.get("collection")
    offset = int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else 0
    with site.database.read() as snapshot:
        figures = site.statistics.figures(read_position(snapshot))
        listed = Surveyed((), 0) if figures is None else figures.gaps[kind]
        if kind == "apart" and figures is not None:
            listed = figures.apart.get(collection or "", listed)
        ids = listed.ids
        changes = log.latest(snapshot, ids[offset : offset + _SHOWN])
        # In the order of the list; what has been retired since the figures were made is left out.
        shown = [changes[each] for each in ids[offset : offset + _SHOWN] if each in changes]
        found = [row for row in rows(snapshot, shown, site.classes.at(snapshot)) if row.whole.state == State.PUBLISHED]
    told = {
        "kind": kind,
        "title": GAPS[kind],
        "gaps": GAPS,
        "figures": figures,
        "rows": found,
        "listed": len(ids),
        "total": listed.total,
        "collection": collection if collection in HIERARCHIES else None,
        "next": offset + _SHOWN if offset + _SHOWN < len(ids) else None,
        "previous": max(0, offset - _SHOWN) if offset else None,
    }
    return site.render(request, "gap.html", told)


def _told(site: Site, snapshot: Snapshot, figures: Figures, by: str) -> dict[str, Any]:
    classes = site.classes.at(snapshot)
    owners = sorted(figures.contributors, key=lambda each: -_sum(figures.contributors[each]))
    names = people(snapshot, owners[:_CONTRIBUTORS])
    sized = sorted(figures.classes, key=lambda each: -_sum(figures.classes[each]))
    largest = {
        "collection": [name for name in COLLECTIONS if figures.counts.get(name)],
        "class": [each for each in sized if each][:_MOST_SERIES],
        "contributor": owners[:_MOST_SERIES],
    }[by]
    grown = {key: counts for key, counts in figures.growth[by].items() if key}
    drawn = chart(grown, largest, _OTHERS)
    return {
        "chart": drawn,
        "legend": [] if drawn is None else _legend(drawn, by, classes, names),
        "classes": [
            (classes.get(each), each, figures.classes[each], _sum(figures.classes[each])) for each in sized[:50]
        ],
        "contributors": [
            (names[each], figures.contributors[each], _sum(figures.contributors[each]))
            for each in owners[:_CONTRIBUTORS]
        ],
        "contributor_count": len(owners),
        "counts": {name: figures.counts.get(name, 0) for name in COLLECTIONS},
    }


def _legend(drawn: Chart, by: str, classes: Mapping[str, Class], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each area of the chart is called, and its colour."""
    found = []
    for place, series in enumerate(drawn.series):
        each = classes.get(series.key) if by == "class" else None
        called = {
            "collection": series.key.replace("_", " "),
            "class": each.name if each else series.key,
            "contributor": names.get(series.key, series.key),
        }[by]
        shade = None if series.key == _OTHERS else each.shade if each else place
        found.append({"name": called, "shade": shade, "total": series.total, "path": series.path})
    return found


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


PAGES = (Page("/statistics", statistics), Page("/statistics/gaps/{kind}", gap))
