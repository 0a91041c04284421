"""Statistics and lists of quality issues."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.records.statistics import OUTDATED, OUTDATED_LABEL, QUALITY_ISSUES, CatalogueStatistics
from lexarium.services.vocabularies.access import list_collections
from lexarium.store.position import Snapshot
from lexarium.web.pages.charts.area_chart import build_chart
from lexarium.web.pages.collection_counts import split_counts
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.pages.record_list import build_list_items
from lexarium.web.template_filters import to_singular

_GROUPINGS = ("collection", "class", "contributor")
_MAX_SERIES = 12
_MAX_CLASSES = 50
_MAX_CONTRIBUTORS = 15
_PAGE_SIZE = 100
_OTHERS = "others"


def show_statistics(page: Page) -> Response:
    """Show growth, quality issues, and records by class and contributor."""
    grouping = page.query.get("by", "")
    grouping = grouping if grouping in _GROUPINGS else _GROUPINGS[0]
    with page.read() as snapshot:
        statistics = _load_statistics(page, snapshot)
        context: dict[str, Any] = {
            "statistics": statistics,
            "by": grouping,
            "groupings": _GROUPINGS,
            "slugs": page.scope.slugs if page.scope.is_chosen else (),
        }
        if statistics is not None:
            context |= _build_context(page, snapshot, statistics, grouping)
    return page.render("statistics.html", context)


def show_issue(page: Page) -> Response:
    """Show a page of the records with one quality issue."""
    issue = page.request.path_params["kind"]
    if issue not in (*QUALITY_ISSUES, OUTDATED):
        raise NotFound(f"List not found; available: {', '.join(QUALITY_ISSUES)}.")
    collection, offset = _get_collection_name(page), get_int(page.query, "offset") or 0
    with page.read() as snapshot:
        statistics = _load_statistics(page, snapshot)
        ids, total = ((), 0) if statistics is None else statistics.get_issue(issue, collection)
        page_ids, end = ids[offset : offset + _PAGE_SIZE], offset + _PAGE_SIZE
        changes = find_latest_changes(snapshot, page_ids)
        shown_changes = [changes[record_id] for record_id in page_ids if record_id in changes]
        items = build_list_items(snapshot, shown_changes, page.site.class_cache.get(snapshot), page.languages)
    context = {
        "issue": issue,
        "issues": _list_issues(statistics),
        "slugs": page.scope.slugs if page.scope.is_chosen else (),
        "statistics": statistics,
        # Records may have been retired since the statistics were computed.
        "rows": [item for item in items if item.record.state == RecordState.PUBLISHED],
        "listed": len(ids),
        "total": total,
        "collection": collection if collection in COLLECTIONS.hierarchies else None,
        "next": end if end < len(ids) else None,
        "previous": max(0, offset - _PAGE_SIZE) if offset else None,
    }
    return page.render("quality_issue.html", context)


def _load_statistics(page: Page, snapshot: Snapshot) -> CatalogueStatistics | None:
    """Return the statistics of the vocabularies that a page is about."""
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    return None if statistics is None else statistics.select(page.scope.collections)


def _list_issues(statistics: CatalogueStatistics | None) -> dict[str, str]:
    """Return the labels of quality issues. Translations are listed only where there are outdated ones."""
    has_outdated = statistics is not None and statistics.issues[OUTDATED].total
    return {**QUALITY_ISSUES, OUTDATED: OUTDATED_LABEL} if has_outdated else QUALITY_ISSUES


def _get_collection_name(page: Page) -> str | None:
    name = page.query.get("collection")
    return next(iter(list_collections(page.scope, [name])), None) if name else None


def _build_context(page: Page, snapshot: Snapshot, statistics: CatalogueStatistics, grouping: str) -> dict[str, Any]:
    classes = page.site.class_cache.get(snapshot)
    contributor_totals, class_totals = _sum_counts(statistics.contributors), _sum_counts(statistics.classes)
    owner_ids, class_ids = list(contributor_totals), list(class_totals)
    names = get_account_names(snapshot, owner_ids[:_MAX_CONTRIBUTORS])
    shown_keys = {
        "collection": _sort_collections(statistics.counts)[:_MAX_SERIES],
        "class": [class_id for class_id in class_ids if class_id][:_MAX_SERIES],
        "contributor": owner_ids[:_MAX_SERIES],
    }[grouping]
    growth = {key: counts for key, counts in statistics.growth[grouping].items() if key}
    area_chart = build_chart(growth, shown_keys, _OTHERS)
    labels = {
        "collection": {name: _label_collection(page, name) for name in page.scope.collections},
        "class": {class_id: item.name for class_id, item in classes.items()},
        "contributor": names,
    }[grouping]
    colors = {class_id: item.color_index for class_id, item in classes.items()} if grouping == "class" else {}
    legend = [
        (series, labels.get(series.key, series.key), None if series.key == _OTHERS else colors.get(series.key, index))
        for index, series in enumerate(area_chart.series if area_chart else ())
    ]
    return {
        "chart": area_chart,
        "legend": legend,
        "classes": [(classes.get(class_id), class_id, class_totals[class_id]) for class_id in class_ids[:_MAX_CLASSES]],
        "contributors": [(names[owner_id], contributor_totals[owner_id]) for owner_id in owner_ids[:_MAX_CONTRIBUTORS]],
        "contributor_count": len(owner_ids),
        "issues": _list_issues(statistics),
        "translations": [
            table
            for vocabulary in page.site.sort_vocabularies(page.scope.slugs)
            if (table := _build_translation_table(vocabulary, statistics)).languages
        ],
        **split_counts(statistics.counts, page.scope.collections),
    }


def _label_collection(page: Page, name: str) -> str:
    has_several = len(page.scope.slugs) > 1
    return f"{to_singular(name)} ({COLLECTIONS[name].vocabulary})" if has_several else to_singular(name)


@dataclass(frozen=True)
class TranslationCounts:
    """Translated texts of a vocabulary: counts by language, the default one first."""

    vocabulary: Vocabulary
    total: int
    # Language, records with a name, with a definition, and with an outdated text in it.
    languages: list[tuple[str, int, int, int]]


def _build_translation_table(vocabulary: Vocabulary, statistics: CatalogueStatistics) -> TranslationCounts:
    names = [name for name in COLLECTIONS.list_names(vocabulary.slug) if not COLLECTIONS[name].is_auxiliary]

    def count(role: str, language: str) -> int:
        counts = statistics.languages[role].get(language, {})
        return sum(counts.get(name, 0) for name in names)

    languages = {language for role in ("name", "definition") for language in statistics.languages[role]}
    rows = [
        (language, count("name", language), count("definition", language), count(OUTDATED, language))
        for language in languages
    ]
    shown = sorted((row for row in rows if any(row[1:])), key=lambda row: (row[0] != vocabulary.language, row[0]))
    total = sum(statistics.counts.get(name, 0) for name in names)
    return TranslationCounts(vocabulary, total, shown if {row[0] for row in shown} - {vocabulary.language} else [])


def _sort_collections(counts: Mapping[str, int]) -> list[str]:
    """Return the collections that have records, main ones first, then the largest."""
    names = [name for name in COLLECTIONS if counts.get(name)]
    return sorted(names, key=lambda name: (COLLECTIONS[name].is_auxiliary, -counts[name]))


def _sum_counts(counts_by_key: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the total of each key, largest first."""
    totals = {key: sum(counts.values()) for key, counts in counts_by_key.items()}
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


ROUTES = (PageRoute("/statistics", show_statistics), PageRoute("/statistics/gaps/{kind}", show_issue))
