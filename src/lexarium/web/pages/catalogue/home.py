"""Home page with vocabularies, map and recent changes, homes of single vocabularies, and the user guide."""

from typing import Any

from starlette.responses import Response

from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.records import activity, browse
from lexarium.services.records.activity import WriteEntry
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.detail import list_metadata
from lexarium.services.records.releases import find_versions, list_releases, name_version
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.store.position import Snapshot
from lexarium.web.pages.charts.class_map import MAX_TERM_TILES, build_class_maps, build_term_maps
from lexarium.web.pages.collection_counts import VocabularySummary, summarize
from lexarium.web.pages.page import Page, PageRoute

_RECENT_SHOWN = 8


def show_home(page: Page) -> Response:
    """Show the home page: that of a vocabulary if only one is chosen, or if there is only one."""
    scope = page.scope
    if len(scope.slugs) == 1:
        return _show_vocabulary(page, has_metadata=scope.is_chosen)
    with page.read() as snapshot:
        context = {**_list_vocabularies(page, snapshot), "writes": _list_recent(snapshot, page)}
    return page.render("home_several.html", context)


def show_vocabulary(page: Page) -> Response:
    """Show the home of one vocabulary."""
    page.scope = get_read_scope(page.site.get_caller(page.request), [page.request.path_params["slug"]])
    return _show_vocabulary(page, has_metadata=True)


def list_vocabularies(page: Page) -> Response:
    """Show the vocabularies that the visitor may read."""
    with page.read() as snapshot:
        context = _list_vocabularies(page, snapshot)
    return page.render("vocabularies.html", context)


def _list_vocabularies(page: Page, snapshot: Snapshot) -> dict[str, Any]:
    described = page.site.sort_vocabularies(page.scope.slugs)
    counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
    return {"summaries": summarize(counts, described), "versions": find_versions(snapshot, described)}


def _show_vocabulary(page: Page, *, has_metadata: bool) -> Response:
    [slug] = page.scope.slugs
    described = VOCABULARIES[slug]
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        [summary] = summarize(counts, [described])
        releases = list_releases(snapshot, slug)
        context = {
            "described": described,
            "base": described.base if described.has_base else page.site.get_base(page.request),
            "version": name_version(described, releases),
            "summary": summary,
            "main_counts": summary.main_counts,
            "auxiliary_counts": summary.auxiliary_counts,
            "is_empty": not any(summary.main_counts.values()),
            **_build_map(page, snapshot, summary),
            "writes": _list_recent(snapshot, page),
            "releases": releases,
            "chosen_vocabulary": slug,
            "permission_slug": slug,
        }
        if has_metadata:
            context["metadata"] = list_metadata(snapshot, slug)
    return page.render("vocabulary_home.html" if has_metadata else "home.html", context)


def _build_map(page: Page, snapshot: Snapshot, summary: VocabularySummary) -> dict[str, Any]:
    """Return the map of a vocabulary: of its classes if it has any, else of its top-level terms."""
    statistics = page.site.statistics_cache.get(get_position(snapshot))
    if statistics is None:
        return {"maps": [], "counting": True, "map_heading": "Contents by size"}
    statistics = statistics.select(page.scope.collections)
    classes = page.site.class_cache.get(snapshot)
    collection = next((name for name in summary.main_counts if name in statistics.list_hierarchies()), None)
    top_terms = []
    if collection is not None:
        root_ids = statistics.root_ids[collection].ids
        top_terms = browse.list_top_terms(snapshot, collection, root_ids, page.languages)
    maps = build_class_maps(statistics, classes, browse.group_by_class(snapshot, top_terms))
    if maps:
        heading = "Classes and their top-level terms"
        return {"maps": maps, "counting": False, "map_heading": heading, "map_collection": collection}
    if collection is not None:
        top_terms = browse.add_children(snapshot, collection, top_terms[:MAX_TERM_TILES], page.languages)
    maps = build_term_maps(top_terms)
    return {"maps": maps, "counting": False, "map_heading": "Top-level terms", "map_collection": collection}


def _list_recent(snapshot: Snapshot, page: Page) -> list[WriteEntry]:
    return activity.list_writes(snapshot, page.scope.changes, get_position(snapshot).revision, _RECENT_SHOWN)


ROUTES = (
    PageRoute("/", show_home),
    PageRoute("/vocabularies", list_vocabularies),
    PageRoute("/vocabularies/{slug}", show_vocabulary),
    PageRoute("/guide", lambda page: page.render("guide.html", {})),
)
