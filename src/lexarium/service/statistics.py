"""Figures of the whole catalogue: how it grew, who and what is in it, and what is missing."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import orjson

from lexarium.domain.changes import Change, State
from lexarium.domain.collections import COLLECTIONS, DEFINITIONS
from lexarium.domain.hierarchy import cycles
from lexarium.domain.placeholders import is_placeholder
from lexarium.domain.relations import HIERARCHIES
from lexarium.store import edges, surveys, versions
from lexarium.store.backend import Position, Snapshot, read_position
from lexarium.store.database import Database
from lexarium.store.surveys import Logged, Surveyed

_AT_ONCE = 200
"""How many changes are read at a time: the work of two milliseconds, after which other threads have their turn."""
_REST_SECONDS = 0.001
_SMALL = 20_000
"""A catalogue with so many changes is small: its figures are a matter of milliseconds, and worth waiting for."""
_PATIENCE_SECONDS = 2.0
"""How long a page of a small catalogue waits for figures that are not there yet."""
_MOST_LISTED = 10_000
"""How many records a survey lists; all are counted."""
_SURVEY_REST = 20
"""How many times as long as a survey took passes before the next, unless the catalogue is small."""
_MONTH = len("2026-01")

GAPS = {
    "undefined": "No definition",
    "placeholder": "A placeholder for a definition",
    "repeated": "A name that another record has too",
    "apart": "Nowhere in the hierarchy",
}
"""What may be missing of a record, and what it is called."""

Growth = Mapping[str, Mapping[str, int]]
"""How many records came in each month (`2026-01`), by whatever they are sorted by."""


@dataclass(frozen=True)
class Figures:
    """The figures at a position. Only published records count."""

    position: Position
    counts: Mapping[str, int]
    """By collection."""
    classes: Mapping[str, Mapping[str, int]]
    """By class, then by collection; records without a class stand under nothing."""
    contributors: Mapping[str, Mapping[str, int]]
    """By owner, then by collection."""
    growth: Mapping[str, Growth]
    """By `collection`, `class` or `contributor`."""
    gaps: Mapping[str, Surveyed]
    """By the names of `GAPS`; those that wait longest first, or by name."""
    tops: Mapping[str, Surveyed]
    """The tops of each collection's hierarchy."""
    apart: Mapping[str, Surveyed]
    """What stands nowhere in it, by collection."""
    circles: Mapping[str, tuple[str, ...]]
    """What goes round in circles in it, as an import may bring them, by collection: no top leads there."""
    surveyed: Position
    """The position that these and the gaps are of: perhaps an earlier one, since they take longer."""

    def hold_at(self, position: Position) -> bool:
        """Whether they are of a position, or a later one."""
        return position.epoch == self.position.epoch and position.revision <= min(
            self.position.revision, self.surveyed.revision
        )


@dataclass
class _Ledger:
    """The figures in the making: each change takes away what its record was, and adds what it has become."""

    counts: Counter[str] = field(default_factory=Counter)
    classes: Counter[tuple[str, str]] = field(default_factory=Counter)
    contributors: Counter[tuple[str, str]] = field(default_factory=Counter)
    growth: dict[str, Counter[tuple[str, str]]] = field(
        default_factory=lambda: {name: Counter() for name in ("collection", "class", "contributor")}
    )
    undefined: dict[str, None] = field(default_factory=dict)
    placeholder: dict[str, None] = field(default_factory=dict)

    def change(self, made: Logged, before: Logged | Change | None) -> None:
        if before is not None:
            self._count(before, -1)
            self.undefined.pop(made.record, None)
            self.placeholder.pop(made.record, None)
        fields = self._count(made, 1)
        definition = next((fields[name] for name in DEFINITIONS if name in fields), None)
        if definition is not None and not definition.strip():
            self.undefined[made.record] = None
        elif definition is not None and is_placeholder(definition):
            self.placeholder[made.record] = None

    def _count(self, change: Logged | Change, by: int) -> dict[str, Any]:
        """Count a record as a change left it; returns its fields, none where it does not count."""
        document = orjson.loads(change.document)
        if document["state"] != State.PUBLISHED:
            return {}
        fields: dict[str, Any] = document["record"]
        collection, owner = change.collection, fields.get("id_user")
        self.counts[collection] += by
        sorted_by = {"collection": collection}
        if "id_concept_class" in fields:
            sorted_by["class"] = fields["id_concept_class"]
            self.classes[fields["id_concept_class"], collection] += by
        if owner is not None:
            sorted_by["contributor"] = owner
            self.contributors[owner, collection] += by
        month = fields.get("event_stamp", "")[:_MONTH]
        if month:
            for name, key in sorted_by.items():
                self.growth[name][key, month] += by
        return fields


@dataclass(frozen=True)
class _Survey:
    """What is asked of the database at once, and not followed change by change."""

    position: Position
    gaps: Mapping[str, Surveyed]
    tops: Mapping[str, Surveyed]
    apart: Mapping[str, Surveyed]
    circles: Mapping[str, tuple[str, ...]]


class Statistics:
    """Keeps the figures of a process's catalogue, by a thread of its own. None is read before the first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ledger = _Ledger()
        self._position = Position("", 0, 0, 0)
        self._figures: Figures | None = None
        self._surveyed = _Survey(self._position, {}, {}, {}, {})
        self._survey_due = 0.0
        self._asked: SimpleQueue[Future[None]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def figures(self, position: Position) -> Figures | None:
        """The figures, of this position where the catalogue is small, else those that there are; None: none yet."""
        known = self._figures
        if known is not None and known.hold_at(position):
            return known
        asked = self._ask()
        if position.revision <= _SMALL:
            with suppress(TimeoutError):
                asked.result(_PATIENCE_SECONDS)
        return self._figures

    def _ask(self) -> Future[None]:
        asked: Future[None] = Future()
        self._asked.put(asked)
        with self._starting:
            if self._thread is None:
                # A daemon: a process that ends does not wait for figures.
                self._thread = threading.Thread(target=self._serve, name="lexarium-statistics", daemon=True)
                self._thread.start()
        return asked

    def _serve(self) -> None:
        while True:
            waiting = [self._asked.get()]
            while not self._asked.empty():
                waiting.append(self._asked.get())
            try:
                self._catch_up()
            except Exception as error:
                for asked in waiting:
                    asked.set_exception(error)
            else:
                for asked in waiting:
                    asked.set_result(None)

    def _catch_up(self) -> None:
        with self._database.read() as snapshot:
            now = read_position(snapshot)
        if self._figures is not None and self._figures.hold_at(now):
            return
        if self._position.epoch != now.epoch:
            self._ledger, self._position, self._survey_due = _Ledger(), now._replace(revision=0), 0.0
        moved, due = self._position.revision < now.revision, time.monotonic() >= self._survey_due
        while self._position.revision < now.revision:
            self._follow(now.revision)
            time.sleep(_REST_SECONDS)
        if due:
            self._survey()
        if moved or due:
            self._figures = self._told()

    def _follow(self, revision: int) -> None:
        """Go a little further, in a transaction of its own."""
        with self._database.read() as snapshot:
            made = surveys.logged(snapshot, self._position.revision, revision, _AT_ONCE)
            earlier = _earlier(snapshot, made)
        for change in made:
            self._ledger.change(change, earlier.get(change.record))
            # Of several changes of one record, each is what was before the next.
            earlier[change.record] = change
        self._position = self._position._replace(revision=made[-1].seq)

    def _survey(self) -> None:
        started = time.monotonic()
        with self._database.read() as snapshot:
            hierarchies = HIERARCHIES.items()
            repeated = [each for name in COLLECTIONS for each in surveys.repeated(snapshot, name, _MOST_LISTED)]
            apart = {name: surveys.apart(snapshot, name, relations, _MOST_LISTED) for name, relations in hierarchies}
            tops = {name: surveys.tops(snapshot, name, relations, _MOST_LISTED) for name, relations in hierarchies}
            circles = {name: _on(cycles(edges.inner(snapshot, relations))) for name, relations in hierarchies}
            position = read_position(snapshot)
        gaps = {
            "repeated": Surveyed(tuple(each.id for each in repeated), len(repeated)),
            "apart": Surveyed(
                tuple(each for some in apart.values() for each in some.ids), sum(some.total for some in apart.values())
            ),
        }
        self._surveyed = _Survey(position, gaps, tops, apart, circles)
        now = time.monotonic()
        self._survey_due = now if position.revision <= _SMALL else now + _SURVEY_REST * (now - started)

    def _told(self) -> Figures:
        ledger = self._ledger
        waiting = {
            name: Surveyed(tuple(found), len(found))
            for name, found in (("undefined", ledger.undefined), ("placeholder", ledger.placeholder))
        }
        return Figures(
            position=self._position,
            counts=dict(ledger.counts),
            classes=_nested(ledger.classes),
            contributors=_nested(ledger.contributors),
            growth={name: _nested(counted) for name, counted in ledger.growth.items()},
            gaps={**waiting, **self._surveyed.gaps},
            tops=self._surveyed.tops,
            apart=self._surveyed.apart,
            circles=self._surveyed.circles,
            surveyed=self._surveyed.position,
        )


def _on(circles: list[list[str]]) -> tuple[str, ...]:
    """The records on these circles, each once."""
    return tuple(dict.fromkeys(each for circle in circles for each in circle))


def _earlier(snapshot: Snapshot, made: list[Logged]) -> dict[str, Logged | Change]:
    """What each of these records was before the first of these changes; those that were not are left out."""
    first: dict[str, int] = {}
    for change in made:
        first.setdefault(change.record, change.version)
    wanted = [(name, version - 1) for name, version in first.items() if version > 1]
    return dict(versions.find_versions(snapshot, wanted))


def _nested(counted: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (key, other), count in counted.items():
        if count:
            found.setdefault(key, {})[other] = count
    return found
