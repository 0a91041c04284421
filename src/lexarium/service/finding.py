"""Finding records: what is asked, what is found, and the use case that finds it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lexarium.domain.changes import State
from lexarium.search.tiers import EXACT, Tier

SEARCHED = ("concept", "task", "disorder")
"""Where a search looks that names no collection."""
LONGEST_QUERY = 10_000
"""How many characters a query may have."""


@dataclass(frozen=True)
class Asked:
    """What is looked for, and where."""

    text: str
    """Any text: words, `"phrases"`, an identifier or a CURIE."""
    collections: tuple[str, ...] = SEARCHED
    class_id: str | None = None
    states: tuple[State, ...] = (State.PUBLISHED,)
    limit: int = 10
    offset: int = 0
    explain: bool = False


class Span(NamedTuple):
    """A part of a text: from `start`, up to and without `end`, in code points."""

    start: int
    end: int


@dataclass(frozen=True)
class Hit:
    """A record that was found, and why."""

    id: str
    name: str
    collection: str
    state: State
    replaced_by: str | None
    """The record that stands in for one that is retired or merged."""
    score: float
    """From 1 for an exact match towards 0. It falls from hit to hit."""
    tier: Tier
    field: str
    """What matched: `id`, `name`, `alias` or `definition`."""
    text: str
    """The text that matched, as it is written: which alias, or the part of the definition."""
    highlight: tuple[Span, ...]
    """The parts of `text` that were asked for."""
    explanation: str | None = None
    """How the score came about, where that was asked."""

    @property
    def exact(self) -> bool:
        """Whether the whole of what was asked is the record's identifier, name or alias, folded."""
        return self.tier in EXACT


@dataclass(frozen=True)
class Found:
    """What a search found."""

    hits: list[Hit]
    total: int
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many hits there are in each `collection`, `class` and `state`."""
    did_you_mean: str | None = None
    """A name or alias close to what was asked, where no name or alias is it."""
    exact: int = 0
    """How many records have what was asked as their identifier, name or alias: more than one are ambiguous."""


@dataclass(frozen=True)
class Suggestion:
    """A completion of what someone types."""

    id: str
    name: str
    collection: str
    text: str
    """The name or alias that completes it."""


class Finder:
    """Finds records of one catalogue."""

    def search(self, asked: Asked) -> Found:
        """The hits, best first. Raises `Invalid` for a query that is too long."""
        raise NotImplementedError

    def search_many(self, asked: Sequence[Asked]) -> list[Found]:
        """The same for many queries, all of one state of the index."""
        raise NotImplementedError

    def suggest(self, prefix: str, collections: Sequence[str] = (), limit: int = 10) -> list[Suggestion]:
        """The few best completions of what someone types, over the names and aliases of these collections, or all."""
        raise NotImplementedError
