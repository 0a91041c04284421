"""The first page: a search box, what the catalogue holds, its classes as a map, what has changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.service import recent
from lexarium.service.classes import Class
from lexarium.service.statistics import Figures
from lexarium.store.backend import read_position
from lexarium.web.pages.site import Page, Site
from lexarium.web.pages.treemap import Box, squarified
from lexarium.web.pages.wording import several, with_query

_RECENT = 8
_MOST_TILES = 40
_WIDE, _NARROW = (960, 300), (340, 400)
_MARGIN = 1.5
_LEAST_WIDTH, _LEAST_HEIGHT = 52, 26
"""A tile smaller than this has no room for words."""


@dataclass(frozen=True)
class Tile:
    """A class on the map."""

    name: str
    address: str
    told: str
    shade: int | None
    count: int
    box: Box

    @property
    def roomy(self) -> bool:
        """Whether words fit in it."""
        return self.box.width >= _LEAST_WIDTH and self.box.height >= _LEAST_HEIGHT


def home(site: Site, request: Request) -> Response:
    """What the catalogue holds, and where to go on."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counted = site.database.tallies.at(snapshot, position.revision)
        figures = site.statistics.figures(position)
        classes = site.classes.at(snapshot)
        told = {
            "counts": {name: counted[name, State.PUBLISHED] for name in COLLECTIONS},
            "maps": [] if figures is None else maps(figures, classes),
            "counting": figures is None,
            "changes": recent.changes(snapshot, position.revision, _RECENT),
        }
    return site.render(request, "home.html", told)


def maps(figures: Figures, classes: Mapping[str, Class]) -> list[dict[str, Any]]:
    """The classes as a map, for a wide screen and for a narrow one; none where no record has a class."""
    # As many as the list has that a tile leads to.
    sizes = {each: max(figures.classes.get(each, {}).values(), default=0) for each in classes}
    largest = sorted((each for each in sizes if sizes[each]), key=lambda each: -sizes[each])
    if not largest:
        return []
    shown, others = largest[:_MOST_TILES], largest[_MOST_TILES:]
    tiles = [_tile(classes[each], figures.classes[each]) for each in shown]
    if others:
        count = sum(sizes[each] for each in others)
        name = several(len(others), "other class", "other classes")
        tiles.append(Tile(name, f"/browse/{CONCEPT_CLASS.name}", several(count, "term"), None, count, Box(0, 0, 0, 0)))
        tiles.sort(key=lambda tile: -tile.count)
    return [
        {"kind": kind, "width": width, "height": height, "tiles": _placed(tiles, width, height)}
        for kind, (width, height) in (("wide", _WIDE), ("narrow", _NARROW))
    ]


def _tile(each: Class, counts: Mapping[str, int]) -> Tile:
    main = max(counts, key=lambda name: counts[name])
    told = ", ".join(several(count, name) for name, count in counts.items())
    address = with_query(f"/browse/{main}", class_=each.id)
    return Tile(each.name, address, told, each.shade, counts[main], Box(0, 0, 0, 0))


def _placed(tiles: list[Tile], width: int, height: int) -> list[Tile]:
    boxes = squarified([tile.count for tile in tiles], width, height)
    return [
        Tile(
            tile.name,
            tile.address,
            tile.told,
            tile.shade,
            tile.count,
            Box(
                round(box.x + _MARGIN, 1),
                round(box.y + _MARGIN, 1),
                round(max(box.width - 2 * _MARGIN, 1), 1),
                round(max(box.height - 2 * _MARGIN, 1), 1),
            ),
        )
        for tile, box in zip(tiles, boxes, strict=True)
    ]


PAGES = (Page("/", home),)
