"""Classes that records are sorted into, with a stable colour index, cached per position."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.cache_tags import collection_tag
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.store import records
from lexarium.store.dependencies import depend_on
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position, Snapshot
from lexarium.store.queries import hierarchy_queries

COLOR_COUNT = 24  # later classes reuse the colours


@dataclass(frozen=True)
class ColoredClass:
    """A class and the index of its colour."""

    id: str
    collection: str
    name: str
    color_index: int


class ClassCache:
    """Cache of the classes of all vocabularies at one position; safe to use from any thread."""

    def __init__(self) -> None:
        self._cached: tuple[Position, Mapping[str, ColoredClass]] | None = None

    def get(self, snapshot: Snapshot) -> Mapping[str, ColoredClass]:
        """Return the published classes by id, the oldest first, so that a class keeps its colour."""
        collections = [name for name, item in COLLECTIONS.items() if item.is_class_collection]
        with depend_on(map(collection_tag, collections)):
            return self._load(snapshot, collections)

    def _load(self, snapshot: Snapshot, collections: Iterable[str]) -> Mapping[str, ColoredClass]:
        position = read_position(snapshot)
        cached = self._cached
        if cached is None or cached[0] != position:
            classes = {item.id: item for name in collections for item in _load_classes(snapshot, name)}
            self._cached = cached = position, classes
        return cached[1]


def _load_classes(snapshot: Snapshot, collection: str) -> list[ColoredClass]:
    class_ids = hierarchy_queries.list_ids_by_creation(snapshot, collection)
    names = records.find_names(snapshot, class_ids)
    return [
        ColoredClass(class_id, collection, names[class_id] or get_local_id(class_id), index % COLOR_COUNT)
        for index, class_id in enumerate(class_ids)
        if class_id in names
    ]
