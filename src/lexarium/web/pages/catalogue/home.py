"""Home page with class treemap and recent changes, and the user guide."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.text.numbers import format_count
from lexarium.services.records import activity
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.statistics import CatalogueStatistics
from lexarium.web.pages.charts.treemap import Rectangle, layout_treemap
from lexarium.web.pages.collection_counts import split_counts
from lexarium.web.pages.filters import add_query
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
    """Show the home page."""
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = page.site.database.counts.count_at(snapshot, position.revision)
        statistics = page.site.statistics_cache.get(position)
        classes = page.site.class_cache.get(snapshot)
        context = {
            **split_counts({name: counts[name, RecordState.PUBLISHED] for name in COLLECTIONS}),
            "maps": [] if statistics is None else build_treemaps(statistics, classes),
            "counting": statistics is None,
            "changes": activity.list_activity(snapshot, position.revision, _RECENT_SHOWN),
        }
    return page.render("home.html", context)


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
        tiles.append(TreemapTile(name, f"/browse/{CONCEPT_CLASS.name}", format_count(count, "term"), None, count))
        tiles.sort(key=lambda tile: -tile.count)
    return [
        {"kind": layout, "width": width, "height": height, "tiles": _position_tiles(tiles, width, height)}
        for layout, (width, height) in (("wide", _WIDE_SIZE), ("narrow", _NARROW_SIZE))
    ]


def _build_tile(concept_class: ColoredClass, counts: Mapping[str, int]) -> TreemapTile:
    main_collection = max(counts, key=lambda name: counts[name])
    description = ", ".join(format_count(count, COLLECTIONS[name].label) for name, count in counts.items())
    url = add_query(f"/browse/{main_collection}", class_=concept_class.id)
    return TreemapTile(concept_class.name, url, description, concept_class.color_index, counts[main_collection])


def _position_tiles(tiles: list[TreemapTile], width: int, height: int) -> list[TreemapTile]:
    boxes = layout_treemap([tile.count for tile in tiles], width, height)
    return [replace(tile, box=_shrink(box)) for tile, box in zip(tiles, boxes, strict=True)]


def _shrink(box: Rectangle) -> Rectangle:
    width, height = max(box.width - 2 * _MARGIN, 1), max(box.height - 2 * _MARGIN, 1)
    return Rectangle(round(box.x + _MARGIN, 1), round(box.y + _MARGIN, 1), round(width, 1), round(height, 1))


ROUTES = (PageRoute("/", show_home), PageRoute("/guide", lambda page: page.render("guide.html", {})))
