"""Treemaps of classes with the top-level terms of each, or of top-level terms alone."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.numbers import format_count
from lexarium.services.records.browse import TreeItem
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.statistics import CatalogueStatistics
from lexarium.web.pages.charts.treemap import Rectangle, layout_treemap
from lexarium.web.template_filters import browse_path, escape_text, format_number, link_record, record_path

_MAX_TILES = 40
MAX_TERM_TILES = 10
# Children that a term without any counts as having.
_LEAF_WEIGHT = 0.25
_WIDE_SIZE, _NARROW_SIZE = (960, 340), (340, 460)
_MARGIN = 1.5
# Between these a browser may break a line.
_WORDS = re.compile(r"[^\s/-]+[/-]?")
_NO_BOX = Rectangle(0, 0, 0, 0)
# Sizes of text in the units of the map, as the style sheet has them, with room to spare.
_MIN_LABEL_WIDTH, _MIN_LABEL_HEIGHT = 52, 28
_LABEL_LINE, _LABEL_CHAR, _TERM_LINE, _TERM_CHAR, _PADDING = 20, 8.7, 24, 7.6, 18


@dataclass(frozen=True)
class TreemapTile:
    """A class or a term in the treemap."""

    name: str
    url: str
    description: str
    color_index: int | None
    count: int
    # Ids and names of top-level terms.
    terms: Sequence[tuple[str, str]] = ()
    has_more_terms: bool = False
    box: Rectangle = _NO_BOX

    @property
    def has_label(self) -> bool:
        word_width = max(map(len, _WORDS.findall(self.name)), default=0) * _LABEL_CHAR + _PADDING
        return self.box.width >= max(_MIN_LABEL_WIDTH, word_width) and self.box.height >= _MIN_LABEL_HEIGHT

    @property
    def label_height(self) -> float:
        """Height of the name, or of the whole tile if it shows no terms."""
        if not self.terms:
            return self.box.height
        chars = max((self.box.width - _PADDING) / _LABEL_CHAR, 1)
        return _PADDING / 2 + _LABEL_LINE * math.ceil((len(self.name) + len(str(self.count)) + 1) / chars)

    def place(self, box: Rectangle) -> "TreemapTile":
        """Return the tile at its place, with as many terms as fit there."""
        placed = replace(self, box=box)
        free = (box.height - placed.label_height - _PADDING / 2) // _TERM_LINE if placed.has_label else 0
        free_chars = free * max((box.width - _PADDING) / _TERM_CHAR - 8, 0)
        shown: list[tuple[str, str]] = []
        for term in self.terms:
            free_chars -= len(term[1]) + 2
            if free_chars < 0:
                break
            shown.append(term)
        return replace(placed, terms=shown, has_more_terms=len(shown) < len(self.terms))


def build_class_maps(
    statistics: CatalogueStatistics,
    classes: Mapping[str, ColoredClass],
    top_terms: Mapping[str, Sequence[TreeItem]],
) -> list[dict[str, Any]]:
    """Return treemaps of the classes for wide and narrow screens, or none if no record has a class."""
    # A tile links to the list of the largest collection, so it counts only that one.
    sizes = {class_id: max(statistics.classes.get(class_id, {}).values(), default=0) for class_id in classes}
    largest = sorted((class_id for class_id in sizes if sizes[class_id]), key=lambda class_id: -sizes[class_id])
    if not largest:
        return []
    shown_ids, other_ids = largest[:_MAX_TILES], largest[_MAX_TILES:]
    tiles = [
        _build_class_tile(classes[class_id], statistics.classes[class_id], top_terms.get(class_id, ()))
        for class_id in shown_ids
    ]
    if other_ids:
        count = sum(sizes[class_id] for class_id in other_ids)
        name = format_count(len(other_ids), "other class", "other classes")
        url = browse_path(classes[other_ids[0]].collection)
        tiles.append(TreemapTile(name, url, format_count(count, "term"), None, count))
        tiles.sort(key=lambda tile: -tile.count)
    return _lay_out(tiles)


def build_term_maps(items: Sequence[TreeItem]) -> list[dict[str, Any]]:
    """Return treemaps of top-level terms (at most MAX_TERM_TILES) by their children, or none if none has any."""
    if not any(item.node.child_count for item in items):
        return []
    return _lay_out(
        [
            TreemapTile(
                _get_name(item),
                record_path(item.node.id),
                format_count(item.node.child_count, "child", "children"),
                None,
                item.node.child_count,
                [(child.node.id, _get_name(child)) for child in item.children],
            )
            for item in items
        ],
        lambda tile: math.sqrt(tile.count or _LEAF_WEIGHT),
    )


def _get_name(item: TreeItem) -> str:
    return item.node.name or get_local_id(item.node.id)


def _build_class_tile(
    concept_class: ColoredClass, counts: Mapping[str, int], top_terms: Sequence[TreeItem]
) -> TreemapTile:
    main_collection = max(counts, key=lambda name: counts[name])
    description = ", ".join(format_count(count, COLLECTIONS[name].label) for name, count in counts.items())
    url = browse_path(main_collection, class_=get_local_id(concept_class.id))
    terms = [(item.node.id, _get_name(item)) for item in top_terms]
    return TreemapTile(concept_class.name, url, description, concept_class.color_index, counts[main_collection], terms)


def _lay_out(
    tiles: Sequence[TreemapTile], weigh: Callable[[TreemapTile], float] = lambda tile: tile.count
) -> list[dict[str, Any]]:
    if not tiles:
        return []
    maps = []
    for layout, (width, height) in (("wide", _WIDE_SIZE), ("narrow", _NARROW_SIZE)):
        boxes = layout_treemap([weigh(tile) for tile in tiles], width, height)
        placed = [tile.place(_shrink(box)) for tile, box in zip(tiles, boxes, strict=True)]
        maps.append({"kind": layout, "width": width, "height": height, "tiles": _format_tiles(placed)})
    return maps


def _format_tiles(tiles: Iterable[TreemapTile]) -> Markup:
    """Return the tiles of a treemap as SVG. A template takes several times as long."""
    return Markup("".join(map(_format_tile, tiles)))  # noqa: S704 (escaped)


def _format_tile(tile: TreemapTile) -> str:
    box, label_height, name = tile.box, tile.label_height, escape_text(tile.name)
    css_class = "tile" if tile.color_index is None else f"tile hue-{tile.color_index}"
    title = f"{name}: {escape_text(tile.description)}"
    label = terms = ""
    if tile.has_label:
        count = f" <span>{format_number(tile.count)}</span>" if tile.count else ""
        label = (
            f'        <foreignObject x="{box.x}" y="{box.y}" width="{box.width}" height="{label_height}">'
            f'<div class="words">{name}{count}</div></foreignObject>\n'
        )
    if tile.terms:
        links = ", ".join([link_record(*term) for term in tile.terms])
        terms = (
            f'      <foreignObject x="{box.x}" y="{box.y + label_height}" width="{box.width}"'
            f' height="{box.height - label_height}"><p class="terms">{links}{" …" if tile.has_more_terms else ""}</p>'
            "</foreignObject>\n"
        )
    return (
        f'    <g class="{css_class}">\n      <a href="{escape_text(tile.url)}" aria-label="{title}">\n'
        f"        <title>{title}</title>\n"
        f'        <rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="4"/>\n'
        f"{label}      </a>\n{terms}    </g>\n"
    )


def _shrink(box: Rectangle) -> Rectangle:
    width, height = max(box.width - 2 * _MARGIN, 1), max(box.height - 2 * _MARGIN, 1)
    return Rectangle(round(box.x + _MARGIN, 1), round(box.y + _MARGIN, 1), round(width, 1), round(height, 1))
