"""Concept classes with a stable colour index, cached per position."""

from collections.abc import Mapping
from dataclasses import dataclass

from lexarium.domain.schema.collections import CONCEPT_CLASS
from lexarium.store import hierarchy_queries, records
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position, Snapshot

COLOR_COUNT = 24  # later classes reuse the colours


@dataclass(frozen=True)
class ColoredClass:
    """A concept class and the index of its colour."""

    id: str
    name: str
    color_index: int


class ClassCache:
    """Cache of the concept classes at one position; safe to use from any thread."""

    def __init__(self) -> None:
        self._cached: tuple[Position, Mapping[str, ColoredClass]] | None = None

    def get(self, snapshot: Snapshot) -> Mapping[str, ColoredClass]:
        """Return the published classes by id, the oldest first, so that a class keeps its colour."""
        position = read_position(snapshot)
        cached = self._cached
        if cached is None or cached[0] != position:
            class_ids = hierarchy_queries.list_ids_by_creation(snapshot, CONCEPT_CLASS.name)
            names = records.find_names(snapshot, class_ids)
            classes = {
                class_id: ColoredClass(class_id, names[class_id] or class_id, index % COLOR_COUNT)
                for index, class_id in enumerate(class_ids)
                if class_id in names
            }
            self._cached = cached = position, classes
        return cached[1]
