"""The classes of a catalogue, each with the place by which it is coloured."""

from collections.abc import Mapping
from dataclasses import dataclass

from lexarium.domain.collections import CONCEPT_CLASS
from lexarium.store import records, surveys
from lexarium.store.backend import Position, Snapshot, read_position

SHADES = 24
"""How many colours there are; past that they begin again."""


@dataclass(frozen=True)
class Class:
    """A class that records are sorted into."""

    id: str
    name: str
    shade: int


class Classes:
    """The classes as they stand, read anew only when the catalogue has moved. For any thread."""

    def __init__(self) -> None:
        self._known: tuple[Position, Mapping[str, Class]] | None = None

    def at(self, snapshot: Snapshot) -> Mapping[str, Class]:
        """The published classes by id, the first that came first. A class keeps its colour whatever comes after it."""
        position = read_position(snapshot)
        known = self._known
        if known is None or known[0] != position:
            ids = surveys.first_ids(snapshot, CONCEPT_CLASS.name)
            names = records.names(snapshot, ids)
            found = {each: Class(each, names[each], place % SHADES) for place, each in enumerate(ids) if each in names}
            self._known = known = position, found
        return known[1]
