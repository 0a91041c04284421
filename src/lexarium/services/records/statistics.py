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

from lexarium.domain.change import Change
from lexarium.domain.hierarchy import find_cycles
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, DEFINITION_FIELDS
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION
from lexarium.domain.text.placeholders import is_placeholder
from lexarium.store import hierarchy_queries, relations, revisions
from lexarium.store.database import Database
from lexarium.store.hierarchy_queries import IdSample, LoggedDocument
from lexarium.store.position import Position, Snapshot, read_position

_BATCH_SIZE = 200
"""How many changes are read at a time: the work of two milliseconds, after which other threads have their turn."""
_PAUSE_SECONDS = 0.001
_SMALL_REVISION = 20_000
"""A catalogue with so many changes is small: its figures are a matter of milliseconds, and worth waiting for."""
_WAIT_SECONDS = 2.0
"""How long a page of a small catalogue waits for figures that are not there yet."""
_MAX_LISTED = 10_000
"""How many records a survey lists; all are counted."""
_REFRESH_DELAY_FACTOR = 20
"""How many times as long as a survey took passes before the next, unless the catalogue is small."""
_MONTH_CHARS = len("2026-01")

QUALITY_ISSUES = {
    "undefined": "No definition",
    "placeholder": "A placeholder for a definition",
    "repeated": "A name that another record has too",
    "apart": "Nowhere in the hierarchy",
}
"""What may be missing of a record, and what it is called."""

MonthlyCounts = Mapping[str, Mapping[str, int]]
"""How many records came in each month (`2026-01`), by whatever they are sorted by."""


@dataclass(frozen=True)
class CatalogueStatistics:
    """The figures at a position. Only published records count."""

    position: Position
    counts: Mapping[str, int]
    """By collection."""
    classes: Mapping[str, Mapping[str, int]]
    """By class, then by collection; records without a class stand under nothing."""
    contributors: Mapping[str, Mapping[str, int]]
    """By owner, then by collection."""
    growth: Mapping[str, MonthlyCounts]
    """By `collection`, `class` or `contributor`."""
    issues: Mapping[str, IdSample]
    """By the names of `GAPS`; those that wait longest first, or by name."""
    root_ids: Mapping[str, IdSample]
    """The tops of each collection's hierarchy."""
    orphans: Mapping[str, IdSample]
    """What stands nowhere in it, by collection."""
    cycle_members: Mapping[str, tuple[str, ...]]
    """What goes round in circles in it, as an import may bring them, by collection: no top leads there."""
    hierarchy_position: Position
    """The position that these and the gaps are of: perhaps an earlier one, since they take longer."""

    def is_current_at(self, position: Position) -> bool:
        """Whether they are of a position, or a later one."""
        return position.epoch == self.position.epoch and position.revision <= min(
            self.position.revision, self.hierarchy_position.revision
        )


@dataclass
class _RunningCounts:
    """The figures in the making: each change takes away what its record was, and adds what it has become."""

    counts: Counter[str] = field(default_factory=Counter)
    classes: Counter[tuple[str, str]] = field(default_factory=Counter)
    contributors: Counter[tuple[str, str]] = field(default_factory=Counter)
    growth: dict[str, Counter[tuple[str, str]]] = field(
        default_factory=lambda: {name: Counter() for name in ("collection", "class", "contributor")}
    )
    undefined: dict[str, None] = field(default_factory=dict)
    placeholder: dict[str, None] = field(default_factory=dict)

    def apply(self, change: LoggedDocument, previous: LoggedDocument | Change | None) -> None:
        if previous is not None:
            self._count(previous, -1)
            self.undefined.pop(change.record_id, None)
            self.placeholder.pop(change.record_id, None)
        fields = self._count(change, 1)
        definition = next((fields[name] for name in DEFINITION_FIELDS if name in fields), None)
        if definition is not None and not definition.strip():
            self.undefined[change.record_id] = None
        elif definition is not None and is_placeholder(definition):
            self.placeholder[change.record_id] = None

    def _count(self, change: LoggedDocument | Change, delta: int) -> dict[str, Any]:
        """Count a record as a change left it; returns its fields, none where it does not count."""
        document = orjson.loads(change.document)
        if document["state"] != RecordState.PUBLISHED:
            return {}
        fields: dict[str, Any] = document["record"]
        collection, owner = change.collection, fields.get("id_user")
        self.counts[collection] += delta
        group_keys = {"collection": collection}
        if "id_concept_class" in fields:
            group_keys["class"] = fields["id_concept_class"]
            self.classes[fields["id_concept_class"], collection] += delta
        if owner is not None:
            group_keys["contributor"] = owner
            self.contributors[owner, collection] += delta
        month = fields.get("event_stamp", "")[:_MONTH_CHARS]
        if month:
            for name, key in group_keys.items():
                self.growth[name][key, month] += delta
        return fields


@dataclass(frozen=True)
class _HierarchyCounts:
    """What is asked of the database at once, and not followed change by change."""

    position: Position
    issues: Mapping[str, IdSample]
    root_ids: Mapping[str, IdSample]
    orphans: Mapping[str, IdSample]
    cycle_members: Mapping[str, tuple[str, ...]]


class StatisticsCache:
    """Keeps the figures of a process's catalogue, by a thread of its own. None is read before the first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running_counts = _RunningCounts()
        self._position = Position("", 0, 0, 0)
        self._statistics: CatalogueStatistics | None = None
        self._hierarchy = _HierarchyCounts(self._position, {}, {}, {}, {})
        self._refresh_due = 0.0
        self._requests: SimpleQueue[Future[None]] = SimpleQueue()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def get(self, position: Position) -> CatalogueStatistics | None:
        """The figures, of this position where the catalogue is small, else those that there are; None: none yet."""
        cached = self._statistics
        if cached is not None and cached.is_current_at(position):
            return cached
        future = self._request_update()
        if position.revision <= _SMALL_REVISION:
            with suppress(TimeoutError):
                future.result(_WAIT_SECONDS)
        return self._statistics

    def _request_update(self) -> Future[None]:
        future: Future[None] = Future()
        self._requests.put(future)
        with self._start_lock:
            if self._thread is None:
                # A daemon: a process that ends does not wait for figures.
                self._thread = threading.Thread(target=self._run, name="lexarium-statistics", daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            futures = [self._requests.get()]
            while not self._requests.empty():
                futures.append(self._requests.get())
            try:
                self._catch_up()
            except Exception as error:
                for future in futures:
                    future.set_exception(error)
            else:
                for future in futures:
                    future.set_result(None)

    def _catch_up(self) -> None:
        with self._database.read() as snapshot:
            current = read_position(snapshot)
        if self._statistics is not None and self._statistics.is_current_at(current):
            return
        if self._position.epoch != current.epoch:
            self._running_counts, self._position, self._refresh_due = (
                _RunningCounts(),
                current._replace(revision=0),
                0.0,
            )
        has_changed, is_due = self._position.revision < current.revision, time.monotonic() >= self._refresh_due
        while self._position.revision < current.revision:
            self._apply_changes(current.revision)
            time.sleep(_PAUSE_SECONDS)
        if is_due:
            self._refresh_hierarchy()
        if has_changed or is_due:
            self._statistics = self._build()

    def _apply_changes(self, revision: int) -> None:
        """Go a little further, in a transaction of its own."""
        with self._database.read() as snapshot:
            changes = hierarchy_queries.list_documents_since(snapshot, self._position.revision, revision, _BATCH_SIZE)
            previous = _load_previous(snapshot, changes)
        for change in changes:
            self._running_counts.apply(change, previous.get(change.record_id))
            # Of several changes of one record, each is what was before the next.
            previous[change.record_id] = change
        self._position = self._position._replace(revision=changes[-1].seq)

    def _refresh_hierarchy(self) -> None:
        started_at = time.monotonic()
        with self._database.read() as snapshot:
            hierarchies = HIERARCHICAL_TYPES_BY_COLLECTION.items()
            duplicates = [
                item
                for name in COLLECTIONS
                for item in hierarchy_queries.find_duplicate_names(snapshot, name, _MAX_LISTED)
            ]
            orphans = {
                name: hierarchy_queries.find_orphans(snapshot, name, relation_types, _MAX_LISTED)
                for name, relation_types in hierarchies
            }
            root_ids = {
                name: hierarchy_queries.find_roots(snapshot, name, relation_types, _MAX_LISTED)
                for name, relation_types in hierarchies
            }
            cycle_members = {
                name: _flatten(find_cycles(relations.iter_inner_relations(snapshot, relation_types)))
                for name, relation_types in hierarchies
            }
            position = read_position(snapshot)
        issues = {
            "repeated": IdSample(tuple(item.id for item in duplicates), len(duplicates)),
            "apart": IdSample(
                tuple(item for group in orphans.values() for item in group.ids),
                sum(group.total for group in orphans.values()),
            ),
        }
        self._hierarchy = _HierarchyCounts(position, issues, root_ids, orphans, cycle_members)
        now = time.monotonic()
        self._refresh_due = (
            now if position.revision <= _SMALL_REVISION else now + _REFRESH_DELAY_FACTOR * (now - started_at)
        )

    def _build(self) -> CatalogueStatistics:
        running_counts = self._running_counts
        definition_issues = {
            name: IdSample(tuple(record_ids), len(record_ids))
            for name, record_ids in (
                ("undefined", running_counts.undefined),
                ("placeholder", running_counts.placeholder),
            )
        }
        return CatalogueStatistics(
            position=self._position,
            counts=dict(running_counts.counts),
            classes=_to_nested(running_counts.classes),
            contributors=_to_nested(running_counts.contributors),
            growth={name: _to_nested(counter) for name, counter in running_counts.growth.items()},
            issues={**definition_issues, **self._hierarchy.issues},
            root_ids=self._hierarchy.root_ids,
            orphans=self._hierarchy.orphans,
            cycle_members=self._hierarchy.cycle_members,
            hierarchy_position=self._hierarchy.position,
        )


def _flatten(cycle_list: list[list[str]]) -> tuple[str, ...]:
    """The records on these circles, each once."""
    return tuple(dict.fromkeys(record_id for cycle in cycle_list for record_id in cycle))


def _load_previous(snapshot: Snapshot, changes: list[LoggedDocument]) -> dict[str, LoggedDocument | Change]:
    """What each of these records was before the first of these changes; those that were not are left out."""
    first_versions: dict[str, int] = {}
    for change in changes:
        first_versions.setdefault(change.record_id, change.version)
    version_keys = [(record_id, version - 1) for record_id, version in first_versions.items() if version > 1]
    return dict(revisions.find_versions(snapshot, version_keys))


def _to_nested(counter: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (key, subkey), count in counter.items():
        if count:
            nested.setdefault(key, {})[subkey] = count
    return nested
