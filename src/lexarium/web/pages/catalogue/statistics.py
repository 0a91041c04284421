"""Statistics: how the catalogue grew, what is in it by class and contributor, and what it lacks."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.statistics import QUALITY_ISSUES, CatalogueStatistics
from lexarium.store import change_log
from lexarium.store.hierarchy_queries import IdSample
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.charts.area_chart import AreaChart, build_chart
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.pages.site import Site

_GROUPINGS = ("collection", "class", "contributor")
_MAX_SERIES = 12
_MAX_CONTRIBUTORS = 15
_PAGE_SIZE = 100
_OTHERS = "others"


def show_statistics(site: Site, request: Request) -> Response:
    """The figures, drawn."""
    grouping = request.query_params.get("by", "")
    grouping = grouping if grouping in _GROUPINGS else _GROUPINGS[0]
    with site.database.read() as snapshot:
        statistics = site.statistics_cache.get(read_position(snapshot))
        context: dict[str, Any] = {"figures": statistics, "by": grouping, "ways": _GROUPINGS, "gaps": QUALITY_ISSUES}
        if statistics is not None:
            context |= _build_context(site, snapshot, statistics, grouping)
    return site.render(request, "statistics.html", context)


def show_issue(site: Site, request: Request) -> Response:
    """The records that lack something, some at a time."""
    issue = request.path_params["kind"]
    if issue not in QUALITY_ISSUES:
        raise NotFound(f"There is no such list; there are {', '.join(QUALITY_ISSUES)}.")
    offset_param, collection = request.query_params.get("offset", ""), request.query_params.get("collection")
    offset = int(offset_param) if offset_param.isascii() and offset_param.isdecimal() and len(offset_param) < 10 else 0
    with site.database.read() as snapshot:
        statistics = site.statistics_cache.get(read_position(snapshot))
        sample = IdSample((), 0) if statistics is None else statistics.issues[issue]
        if issue == "apart" and statistics is not None:
            sample = statistics.orphans.get(collection or "", sample)
        ids = sample.ids
        changes = change_log.find_latest(snapshot, ids[offset : offset + _PAGE_SIZE])
        # In the order of the list; what has been retired since the figures were made is left out.
        shown_changes = [changes[record_id] for record_id in ids[offset : offset + _PAGE_SIZE] if record_id in changes]
        items = [
            item
            for item in build_list_items(snapshot, shown_changes, site.class_cache.get(snapshot))
            if item.record.state == RecordState.PUBLISHED
        ]
    context = {
        "kind": issue,
        "title": QUALITY_ISSUES[issue],
        "gaps": QUALITY_ISSUES,
        "figures": statistics,
        "rows": items,
        "listed": len(ids),
        "total": sample.total,
        "collection": collection if collection in HIERARCHICAL_TYPES_BY_COLLECTION else None,
        "next": offset + _PAGE_SIZE if offset + _PAGE_SIZE < len(ids) else None,
        "previous": max(0, offset - _PAGE_SIZE) if offset else None,
    }
    return site.render(request, "gap.html", context)


def _build_context(site: Site, snapshot: Snapshot, statistics: CatalogueStatistics, grouping: str) -> dict[str, Any]:
    classes = site.class_cache.get(snapshot)
    owner_ids = sorted(statistics.contributors, key=lambda group_id: -_sum_counts(statistics.contributors[group_id]))
    names = get_account_names(snapshot, owner_ids[:_MAX_CONTRIBUTORS])
    class_ids = sorted(statistics.classes, key=lambda group_id: -_sum_counts(statistics.classes[group_id]))
    shown_keys = {
        "collection": [name for name in COLLECTIONS if statistics.counts.get(name)],
        "class": [group_id for group_id in class_ids if group_id][:_MAX_SERIES],
        "contributor": owner_ids[:_MAX_SERIES],
    }[grouping]
    growth = {key: counts for key, counts in statistics.growth[grouping].items() if key}
    area_chart = build_chart(growth, shown_keys, _OTHERS)
    return {
        "chart": area_chart,
        "legend": [] if area_chart is None else _build_legend(area_chart, grouping, classes, names),
        "classes": [
            (classes.get(group_id), group_id, statistics.classes[group_id], _sum_counts(statistics.classes[group_id]))
            for group_id in class_ids[:50]
        ],
        "contributors": [
            (names[group_id], statistics.contributors[group_id], _sum_counts(statistics.contributors[group_id]))
            for group_id in owner_ids[:_MAX_CONTRIBUTORS]
        ],
        "contributor_count": len(owner_ids),
        "counts": {name: statistics.counts.get(name, 0) for name in COLLECTIONS},
    }


def _build_legend(
    area_chart: AreaChart, grouping: str, classes: Mapping[str, ColoredClass], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What each area of the chart is called, and its colour."""
    entries = []
    for index, series in enumerate(area_chart.series):
        concept_class = classes.get(series.key) if grouping == "class" else None
        label = {
            "collection": series.key.replace("_", " "),
            "class": concept_class.name if concept_class else series.key,
            "contributor": names.get(series.key, series.key),
        }[grouping]
        color_index = None if series.key == _OTHERS else concept_class.color_index if concept_class else index
        entries.append({"name": label, "shade": color_index, "total": series.total, "path": series.path})
    return entries


def _sum_counts(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


ROUTES = (PageRoute("/statistics", show_statistics), PageRoute("/statistics/gaps/{kind}", show_issue))
