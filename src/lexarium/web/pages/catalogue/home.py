"""Home page with class treemap and recent changes, homes of single vocabularies, and the user guide."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.numbers import format_count
from lexarium.services.records import activity
from lexarium.services.records.activity import ActivityEntry
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.detail import list_metadata
from lexarium.services.records.statistics import CatalogueStatistics
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.store.position import Snapshot
from lexarium.web.pages.charts.treemap import Rectangle, layout_treemap
from lexarium.web.pages.collection_counts import summarize
from lexarium.web.pages.filters import browse_path
from lexarium.web.pages.page import Page, PageRoute

_RECENT_SHOWN = 8
_MAX_TILES = 40
_WIDE_SIZE, _NARROW_SIZE = (960, 300), (340, 400)
_MARGIN = 1.5
_NO_BOX = Rectangle(0, 0, 0, 0)
_MIN_LABEL_WIDTH, _MIN_LABEL_HEIGHT = 52, 26


@dataclass(frozen=True)
class TreemapTile:
    """One class in the treemap."""

    name: str
    url: str
    description: str
    color_index: int | None
    count: int
    box: Rectangle = _NO_BOX

    @property
    def has_label(self) -> bool:
        return self.box.width >= _MIN_LABEL_WIDTH and self.box.height >= _MIN_LABEL_HEIGHT


def show_home(page: Page) -> Response:
    """Show the home page: that of a vocabulary if only one is chosen, or if there is only one."""
    scope = page.scope
    if len(scope.slugs) == 1:
        return _show_vocabulary(page, "vocabulary_home.html" if scope.is_chosen else "home.html")
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        context = {
            "summaries": summarize(counts, page.site.list_described(scope.slugs)),
            "changes": _list_recent(snapshot, page),
        }
    return page.render("home_several.html", context)


def show_vocabulary(page: Page) -> Response:
    """Show the home of one vocabulary."""
    page.scope = get_read_scope(page.site.get_caller(page.request), [page.request.path_params["slug"]])
    return _show_vocabulary(page, "vocabulary_home.html")


def list_vocabularies(page: Page) -> Response:
    """Show the vocabularies that the visitor may read."""
    with page.read() as snapshot:
        counts = page.site.database.counts.count_at(snapshot, get_position(snapshot).revision)
        context = {"summaries": summarize(counts, page.site.list_described(page.scope.slugs))}
    return page.render("vocabularies.html", context)


def _show_vocabulary(page: Page, template: str) -> Response:
    [slug] = page.scope.slugs
    [described] = page.site.list_described([slug])
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        statistics = page.site.statistics_cache.get(position)
        statistics = None if statistics is None else statistics.select(page.scope.collections)
        classes = page.site.class_cache.get(snapshot)
        [summary] = summarize(counts, [described])
        context = {
            "described": described,
            "summary": summary,
            "main_counts": summary.main_counts,
            "auxiliary_counts": summary.auxiliary_counts,
            "maps": [] if statistics is None else build_treemaps(statistics, classes),
            "counting": statistics is None,
            "changes": _list_recent(snapshot, page),
            "metadata": list_metadata(snapshot, slug),
            "chosen_vocabulary": slug,
            "permission_slug": slug,
        }
    return page.render(template, context)


def _list_recent(snapshot: Snapshot, page: Page) -> list[ActivityEntry]:
    revision = get_position(snapshot).revision
    return activity.list_activity(snapshot, revision, _RECENT_SHOWN, collections=page.scope.collections)


def build_treemaps(statistics: CatalogueStatistics, classes: Mapping[str, ColoredClass]) -> list[dict[str, Any]]:
    """Return treemaps of the classes for wide and narrow screens, or none if no record has a class."""
    # A tile links to the list of the largest collection, so it counts only that one.
    sizes = {class_id: max(statistics.classes.get(class_id, {}).values(), default=0) for class_id in classes}
    largest = sorted((class_id for class_id in sizes if sizes[class_id]), key=lambda class_id: -sizes[class_id])
    if not largest:
        return []
    shown_ids, other_ids = largest[:_MAX_TILES], largest[_MAX_TILES:]
    tiles = [_build_tile(classes[class_id], statistics.classes[class_id]) for class_id in shown_ids]
    if other_ids:
        count = sum(sizes[class_id] for class_id in other_ids)
        name = format_count(len(other_ids), "other class", "other classes")
        url = browse_path(classes[other_ids[0]].collection)
        tiles.append(TreemapTile(name, url, format_count(count, "term"), None, count))
        tiles.sort(key=lambda tile: -tile.count)
    return [
        {"kind": layout, "width": width, "height": height, "tiles": _position_tiles(tiles, width, height)}
        for layout, (width, height) in (("wide", _WIDE_SIZE), ("narrow", _NARROW_SIZE))
    ]


def _build_tile(concept_class: ColoredClass, counts: Mapping[str, int]) -> TreemapTile:
    main_collection = max(counts, key=lambda name: counts[name])
    description = ", ".join(format_count(count, COLLECTIONS[name].label) for name, count in counts.items())
    url = browse_path(main_collection, class_=get_local_id(concept_class.id))
    return TreemapTile(concept_class.name, url, description, concept_class.color_index, counts[main_collection])


def _position_tiles(tiles: list[TreemapTile], width: int, height: int) -> list[TreemapTile]:
    boxes = layout_treemap([tile.count for tile in tiles], width, height)
    return [replace(tile, box=_shrink(box)) for tile, box in zip(tiles, boxes, strict=True)]


def _shrink(box: Rectangle) -> Rectangle:
    width, height = max(box.width - 2 * _MARGIN, 1), max(box.height - 2 * _MARGIN, 1)
    return Rectangle(round(box.x + _MARGIN, 1), round(box.y + _MARGIN, 1), round(width, 1), round(height, 1))


ROUTES = (
    PageRoute("/", show_home),
    PageRoute("/vocabularies", list_vocabularies),
    PageRoute("/vocabularies/{slug}", show_vocabulary),
    PageRoute("/guide", lambda page: page.render("guide.html", {})),
)
