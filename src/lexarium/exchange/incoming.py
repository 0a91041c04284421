"""What every codec is told, and what it makes of its input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias
from lexarium.domain.changes import Action, Proposed, State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import LexariumError
from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge, Side
from lexarium.exchange.formats import Format


class Malformed(LexariumError):
    """The input does not follow its format; where it is raised, nothing after this place can be read."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column

    def incoming(self) -> "Incoming":
        """The same as one mistake among others, where what comes after it can be read."""
        return Incoming(self.line, column=self.column, problems=[self.reason])


def no_collection(line: int) -> Malformed:
    """Nothing tells what the records are."""
    what = "nothing tells which collection the records belong to: name it with --collection, or in the file's name"
    return Malformed(f"{what}, as in {next(iter(COLLECTIONS))}.json", line, 1)


@dataclass(frozen=True)
class Reading:
    """How a file is to be read."""

    format: Format
    about: About = field(default_factory=About)
    collection: Collection | None = None
    """What its records are, whatever they say."""
    fallback: Collection | None = None
    """What they are where they do not say."""
    map: Mapping[str, str] = field(default_factory=dict)
    """What a column or predicate of the file means that the codec does not know: the name of a field or relation."""


class Version(NamedTuple):
    """A version of a record, and how it came to be."""

    number: int
    write: int
    """Versions with the same number were made by one write."""
    at: int
    actor: str
    action: Action
    proposed: Proposed | None


@dataclass(slots=True)
class Incoming:
    """A record as a file gives it: only what the file holds of it, checked for its types."""

    line: int
    """0: what it says is of the file as a whole."""
    collection: str = ""
    foreign: str = ""
    """What the file calls the record where that is no id of ours: an IRI or a CURIE. `fields` has no id then."""
    fields: Fields = field(default_factory=dict)
    aliases: tuple[Alias, ...] | None = None
    """None: not told, or told by the field `alias`."""
    sources: tuple[str, ...] | None = None
    """None: not told."""
    state: State | None = None
    """None: not told."""
    replaced_by: str | None = None
    """An id, or what the file calls that record."""
    edges: list[Edge] = field(default_factory=list)
    """Ends are ids, or what the file calls those records."""
    told: list[tuple[str, Side]] = field(default_factory=list)
    """Relations, and the end at which the record stands in them, of which `edges` holds all there are."""
    by_hand: bool = False
    """Whether people may have misspelt what `edges` name: where one is not known, `told` does not hold of its kind."""
    only_ids: bool = False
    """Whether `edges` and `replaced_by` name records by nothing but ids, whatever these look like."""
    version: Version | None = None
    """Where the file tells history: which version this is. Then each comes by itself, whole, the oldest first."""
    problems: list[str] = field(default_factory=list)
    """Why it cannot be taken."""
    warnings: list[str] = field(default_factory=list)
    """What is odd about it, though it is taken."""
    column: int = 0
    """Where on the line its problems are; 0: anywhere."""
