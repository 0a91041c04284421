"""Statistics and lists of quality issues."""

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
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.records.statistics import QUALITY_ISSUES, CatalogueStatistics
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.charts.area_chart import AreaChart, build_chart
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.pages.site import Site

_GROUPINGS = ("collection", "class", "contributor")
_MAX_SERIES = 12
_MAX_CLASSES = 50
_MAX_CONTRIBUTORS = 15
_PAGE_SIZE = 100
_OTHERS = "others"


def show_statistics(site: Site, request: Request) -> Response:
    """Show growth, quality issues, and records by class and contributor."""
    grouping = request.query_params.get("by", "")
    grouping = grouping if grouping in _GROUPINGS else _GROUPINGS[0]
    with site.database.read() as snapshot:
        statistics = site.statistics_cache.get(read_position(snapshot))
        context: dict[str, Any] = {
            "statistics": statistics,
            "by": grouping,
            "groupings": _GROUPINGS,
            "quality_issues": QUALITY_ISSUES,
        }
        if statistics is not None:
            context |= _build_context(site, snapshot, statistics, grouping)
    return site.render(request, "statistics.html", context)


def show_issue(site: Site, request: Request) -> Response:
    """Show a page of the records with one quality issue."""
    issue = request.path_params["kind"]
    if issue not in QUALITY_ISSUES:
        raise NotFound(f"There is no such list; there are {', '.join(QUALITY_ISSUES)}.")
    collection, offset = request.query_params.get("collection"), get_int(request.query_params, "offset") or 0
    with site.database.read() as snapshot:
        statistics = site.statistics_cache.get(read_position(snapshot))
        ids, total = ((), 0) if statistics is None else statistics.get_issue(issue, collection)
        page_ids, end = ids[offset : offset + _PAGE_SIZE], offset + _PAGE_SIZE
        changes = find_latest_changes(snapshot, page_ids)
        shown_changes = [changes[record_id] for record_id in page_ids if record_id in changes]
        items = build_list_items(snapshot, shown_changes, site.class_cache.get(snapshot))
    context = {
        "issue": issue,
        "title": QUALITY_ISSUES[issue],
        "quality_issues": QUALITY_ISSUES,
        "statistics": statistics,
        # Records may have been retired since the statistics were computed.
        "rows": [item for item in items if item.record.state == RecordState.PUBLISHED],
        "listed": len(ids),
        "total": total,
        "collection": collection if collection in HIERARCHICAL_TYPES_BY_COLLECTION else None,
        "next": end if end < len(ids) else None,
        "previous": max(0, offset - _PAGE_SIZE) if offset else None,
    }
    return site.render(request, "quality_issue.html", context)


def _build_context(site: Site, snapshot: Snapshot, statistics: CatalogueStatistics, grouping: str) -> dict[str, Any]:
    classes = site.class_cache.get(snapshot)
    contributor_totals, class_totals = _sum_counts(statistics.contributors), _sum_counts(statistics.classes)
    owner_ids, class_ids = list(contributor_totals), list(class_totals)
    names = get_account_names(snapshot, owner_ids[:_MAX_CONTRIBUTORS])
    shown_keys = {
        "collection": [name for name in COLLECTIONS if statistics.counts.get(name)],
        "class": [class_id for class_id in class_ids if class_id][:_MAX_SERIES],
        "contributor": owner_ids[:_MAX_SERIES],
    }[grouping]
    growth = {key: counts for key, counts in statistics.growth[grouping].items() if key}
    area_chart = build_chart(growth, shown_keys, _OTHERS)
    return {
        "chart": area_chart,
        "legend": [] if area_chart is None else _build_legend(area_chart, grouping, classes, names),
        "classes": [(classes.get(class_id), class_id, class_totals[class_id]) for class_id in class_ids[:_MAX_CLASSES]],
        "contributors": [(names[owner_id], contributor_totals[owner_id]) for owner_id in owner_ids[:_MAX_CONTRIBUTORS]],
        "contributor_count": len(owner_ids),
        "counts": {name: statistics.counts.get(name, 0) for name in COLLECTIONS},
    }


def _build_legend(
    area_chart: AreaChart, grouping: str, classes: Mapping[str, ColoredClass], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return name, colour and outline of each area of the chart."""
    entries = []
    for index, series in enumerate(area_chart.series):
        concept_class = classes.get(series.key) if grouping == "class" else None
        label = {
            "collection": series.key.replace("_", " "),
            "class": concept_class.name if concept_class else series.key,
            "contributor": names.get(series.key, series.key),
        }[grouping]
        color_index = None if series.key == _OTHERS else concept_class.color_index if concept_class else index
        entries.append({"name": label, "color_index": color_index, "total": series.total, "path": series.path})
    return entries


def _sum_counts(counts_by_key: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the total of each key, largest first."""
    totals = {key: sum(counts.values()) for key, counts in counts_by_key.items()}
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


ROUTES = (PageRoute("/statistics", show_statistics), PageRoute("/statistics/gaps/{kind}", show_issue))
