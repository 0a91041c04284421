"""The classes of a catalogue, each with the place by which it is coloured."""

from collections.abc import Mapping
from dataclasses import dataclass

from lexarium.domain.schema.collections import CONCEPT_CLASS
from lexarium.store import hierarchy_queries, records
from lexarium.store.position import Position, Snapshot, read_position

COLOR_COUNT = 24
"""How many colours there are; past that they begin again."""


@dataclass(frozen=True)
class ColoredClass:
    """A class that records are sorted into."""

    id: str
    name: str
    color_index: int


class ClassCache:
    """The classes as they stand, read anew only when the catalogue has moved. For any thread."""

    def __init__(self) -> None:
        self._cached: tuple[Position, Mapping[str, ColoredClass]] | None = None

    def get(self, snapshot: Snapshot) -> Mapping[str, ColoredClass]:
        """The published classes by id, the first that came first. A class keeps its colour whatever comes after it."""
        position = read_position(snapshot)
        cached = self._cached
        if cached is None or cached[0] != position:
            class_ids = hierarchy_queries.list_ids_by_creation(snapshot, CONCEPT_CLASS.name)
            names = records.find_names(snapshot, class_ids)
            classes = {
                class_id: ColoredClass(class_id, names[class_id], index % COLOR_COUNT)
                for index, class_id in enumerate(class_ids)
                if class_id in names
            }
            self._cached = cached = position, classes
        return cached[1]
