"""Catalogue statistics, kept up to date from the change log."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from lexarium.domain.cache_tags import CATALOGUE_TAG
from lexarium.domain.change import Change
from lexarium.domain.hierarchy import find_cycles
from lexarium.domain.identifiers import split_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.record_texts import list_language_texts
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, VOCABULARY, Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.placeholders import is_placeholder
from lexarium.services.daemon_executor import DaemonExecutor
from lexarium.store import records, relations, revisions
from lexarium.store.database import Database
from lexarium.store.dependencies import add_cache_tags, forbid_caching
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position, Snapshot
from lexarium.store.queries import hierarchy_queries
from lexarium.store.queries.hierarchy_queries import IdSample, RecordGroup

# Two milliseconds of work; then other threads get a turn.
_BATCH_SIZE = 200
_PAUSE_SECONDS = 0.001
# Up to this revision statistics take milliseconds, and a page waits for them.
_SMALL_REVISION = 20_000
_WAIT_SECONDS = 2.0
# Records listed per hierarchy query; all are counted.
_MAX_LISTED = 10_000
# Pause between hierarchy queries of a large catalogue, as a multiple of their duration.
_REFRESH_DELAY_FACTOR = 20
_MONTH_CHARS = len("2026-01")

_NO_IDS = IdSample((), 0)

QUALITY_ISSUES = {
    "undefined": "No definition",
    "placeholder": "Placeholder definition",
    "repeated": "Duplicate name",
    "apart": "Not in the hierarchy",
}

# Shown only where there are translations.
OUTDATED = "outdated"
OUTDATED_LABEL = "Outdated translation"

# New records by group, then by month (`2026-01`).
MonthlyCounts = Mapping[str, Mapping[str, int]]
ValueT = TypeVar("ValueT")
KeyT = TypeVar("KeyT")


@dataclass(frozen=True, kw_only=True)
class HierarchyStatistics:
    """Results of queries that are repeated as a whole, not kept up to date by changes.

    They take longer, so their position may be an earlier one. Samples are by collection, except those of issues.
    """

    hierarchy_position: Position
    issues: Mapping[str, IdSample]  # by keys of QUALITY_ISSUES, and OUTDATED
    root_ids: Mapping[str, IdSample]
    orphans: Mapping[str, IdSample]
    groups: Mapping[str, Sequence[RecordGroup]]
    # Imports may bring cycles, which no root leads to.
    cycle_members: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class CatalogueStatistics(HierarchyStatistics):
    """Statistics of the published records at a position."""

    position: Position
    counts: Mapping[str, int]  # by collection
    classes: Mapping[str, Mapping[str, int]]  # by class ("" for none), then by collection
    contributors: Mapping[str, Mapping[str, int]]  # by owner, then by collection
    # By "name", "definition" and "outdated", then by language, then by collection.
    languages: Mapping[str, Mapping[str, Mapping[str, int]]]
    # First characters of names, by collection.
    initials: Mapping[str, Mapping[str, int]]
    # New records by "collection", "class" or "contributor", and collection.
    growth_by_collection: Mapping[str, Mapping[tuple[str, str], Mapping[str, int]]]
    _selections: dict[tuple[str, ...], "CatalogueStatistics"] = field(default_factory=dict, compare=False)

    @property
    def growth(self) -> Mapping[str, MonthlyCounts]:
        """New records by "collection", "class" or "contributor"."""
        growth: dict[str, dict[str, Counter[str]]] = {}
        for group, counts in self.growth_by_collection.items():
            totals: dict[str, Counter[str]] = growth.setdefault(group, {})
            for (key, _), months in counts.items():
                totals.setdefault(key, Counter()).update(months)
        return growth

    def select(self, collections: Sequence[str]) -> "CatalogueStatistics":
        """Return the statistics of some collections: those of the vocabularies that a page is about."""
        key = tuple(collections)
        if key not in self._selections:
            self._selections[key] = self._select(frozenset(collections))
        return self._selections[key]

    def _select(self, collections: frozenset[str]) -> "CatalogueStatistics":
        slugs = {COLLECTIONS[name].vocabulary for name in collections if name in COLLECTIONS}

        def is_selected(name: str) -> bool:
            return name in collections

        orphans = _filter_keys(self.orphans, is_selected)
        issues = {name: _select_ids(sample, slugs) for name, sample in self.issues.items() if name != "apart"} | {
            "apart": _join_samples(orphans)
        }
        return replace(
            self,
            issues=issues,
            root_ids=_filter_keys(self.root_ids, is_selected),
            orphans=orphans,
            groups=_filter_keys(self.groups, is_selected),
            cycle_members=_filter_keys(self.cycle_members, is_selected),
            initials=_filter_keys(self.initials, is_selected),
            counts=_filter_keys(self.counts, is_selected),
            classes=_filter_inner(self.classes, is_selected),
            contributors=_filter_inner(self.contributors, is_selected),
            languages={name: _filter_inner(counts, is_selected) for name, counts in self.languages.items()},
            growth_by_collection={
                group: {key: months for key, months in counts.items() if is_selected(key[1])}
                for group, counts in self.growth_by_collection.items()
            },
            _selections={},
        )

    def is_current_at(self, position: Position) -> bool:
        """Return True if the statistics are of a position or a later one."""
        is_same_catalogue = (position.epoch, position.vocabularies) == (self.position.epoch, self.position.vocabularies)
        return is_same_catalogue and position.revision <= min(self.position.revision, self.hierarchy_position.revision)

    def list_hierarchies(self) -> list[str]:
        """Return the collections that have records at the top of a hierarchy."""
        return [name for name, sample in self.root_ids.items() if sample.total or self.cycle_members[name]]

    def get_issue(self, issue: str, collection: str | None) -> IdSample:
        """Return the records with a quality issue; for "apart", those of a collection if it has a hierarchy."""
        sample = self.issues[issue]
        return self.orphans.get(collection or "", sample) if issue == "apart" else sample


class _RunningCounts:
    """Running counts: each change subtracts the previous version of its record and adds the new one."""

    def __init__(self) -> None:
        groups = ("collection", "class", "contributor")
        self.totals: dict[str, Counter[tuple[str, str]]] = {group: Counter() for group in groups}
        self.growth: dict[str, Counter[tuple[tuple[str, str], str]]] = {group: Counter() for group in groups}
        # By "name", "definition" and "outdated", then by language and collection.
        self.languages: dict[str, Counter[tuple[str, str]]] = {
            name: Counter() for name in ("name", "definition", OUTDATED)
        }
        self.initials: Counter[tuple[str, str]] = Counter()
        # Ids as keys of dicts, which keep the order of changes.
        self.text_issues: dict[str, dict[str, None]] = {"undefined": {}, "placeholder": {}, OUTDATED: {}}

    def apply(self, change: Change, previous: Change | None) -> None:
        if previous is not None:
            self._count(previous, -1)
            for record_ids in self.text_issues.values():
                record_ids.pop(change.record_id, None)
        record = self._count(change, 1)
        if record is None:
            return
        if any(text.is_outdated for text in list_language_texts(record)):
            self.text_issues[OUTDATED][change.record_id] = None
        if not _is_checked(record.collection) or not record.collection.definition_field:
            return
        if not record.definition.strip():
            self.text_issues["undefined"][change.record_id] = None
        elif is_placeholder(record.definition):
            self.text_issues["placeholder"][change.record_id] = None

    def _count(self, change: Change, delta: int) -> Record | None:
        """Count a version of a record; return it, or None if it is not published."""
        record = change.to_record()
        if record.state != RecordState.PUBLISHED:
            return None
        fields = record.fields
        month = fields.get("event_stamp", "")[:_MONTH_CHARS]
        for group, key in (
            ("collection", change.collection),
            ("class", record.class_id if record.collection.class_field else None),
            ("contributor", fields.get("id_user") or None),
        ):
            if key is not None:
                self.totals[group][key, change.collection] += delta
                if month:
                    self.growth[group][(key, change.collection), month] += delta
        if initial := name_key(fields["name"])[:1]:
            self.initials[change.collection, initial] += delta
        for text in list_language_texts(record):
            role = "name" if text.field == "name" else "definition"
            for name in (role, OUTDATED) if text.is_outdated else (role,):
                self.languages[name][text.lang, change.collection] += delta
        return record


class StatisticsCache:
    """Keeps statistics up to date in a background thread, which starts on first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running_counts = _RunningCounts()
        self._position = Position("", 0, 0, 0)
        self._hierarchy: HierarchyStatistics | None = None
        self._refresh_due = 0.0
        self._statistics: CatalogueStatistics | None = None
        self._executor = DaemonExecutor("lexarium-statistics", self._catch_up)

    def get(self, position: Position) -> CatalogueStatistics | None:
        """Return the statistics at a position if the catalogue is small, else the latest ones, or None."""
        add_cache_tags([CATALOGUE_TAG])
        cached = self._statistics
        if cached is not None and cached.is_current_at(position):
            return cached
        future = self._executor.submit()
        if position.revision <= _SMALL_REVISION:
            with suppress(TimeoutError):
                future.result(_WAIT_SECONDS)
        statistics = self._statistics
        if statistics is None or not statistics.is_current_at(position):
            forbid_caching()
        return statistics

    def _catch_up(self) -> None:
        current = self._database.run_read(read_position)
        if self._statistics is not None and self._statistics.is_current_at(current):
            return
        is_same_catalogue = (self._position.epoch, self._position.vocabularies) == (current.epoch, current.vocabularies)
        if not is_same_catalogue:
            self._running_counts, self._hierarchy = _RunningCounts(), None
            self._position = current._replace(revision=0)
        has_changed = self._position.revision < current.revision
        while self._position.revision < current.revision:
            self._apply_changes(current.revision)
            time.sleep(_PAUSE_SECONDS)
        if self._hierarchy is None or time.monotonic() >= self._refresh_due:
            self._hierarchy = self._load_hierarchy()
            has_changed = True
        if has_changed:
            self._statistics = self._build(self._hierarchy)

    def _apply_changes(self, revision: int) -> None:
        with self._database.read() as snapshot:
            limit = min(_BATCH_SIZE, revision - self._position.revision)
            changes = revisions.list_since(snapshot, self._position.revision, limit)
            # Changes may have been deleted with their vocabulary: later ones wait.
            changes = [change for change in changes if change.seq <= revision]
            previous = _load_previous(snapshot, changes)
        for change in changes:
            self._running_counts.apply(change, previous.get(change.record_id))
            previous[change.record_id] = change
        self._position = self._position._replace(revision=changes[-1].seq if len(changes) == limit else revision)

    def _load_hierarchy(self) -> HierarchyStatistics:
        started_at = time.monotonic()
        orphans = dict.fromkeys(COLLECTIONS.hierarchies, _NO_IDS)
        root_ids = dict.fromkeys(COLLECTIONS.hierarchies, _NO_IDS)
        with self._database.read() as snapshot:
            checked = [name for name, collection in COLLECTIONS.items() if _is_checked(collection)]
            duplicates = hierarchy_queries.find_duplicate_names(snapshot, checked, _MAX_LISTED)
            duplicate_ids = tuple(duplicate.id for duplicate in duplicates)
            cycle_members = _find_cycle_members(snapshot)
            for name, relation_types in COLLECTIONS.hierarchies.items():
                if not self._running_counts.totals["collection"][name, name]:
                    continue
                arguments = snapshot, name, relation_types, COLLECTIONS[name].top_types, _MAX_LISTED
                root_ids[name] = hierarchy_queries.find_roots(*arguments)
                if _has_expected_hierarchy(name, relation_types[0]) or root_ids[name].total or cycle_members[name]:
                    orphans[name] = hierarchy_queries.find_orphans(*arguments)
            position = read_position(snapshot)
            groups = {name: _find_groups(snapshot, item) for name, item in COLLECTIONS.items() if item.grouping_types}
        issues = {"repeated": IdSample(duplicate_ids, len(duplicate_ids)), "apart": _join_samples(orphans)}
        now = time.monotonic()
        is_small = position.revision <= _SMALL_REVISION
        self._refresh_due = now if is_small else now + _REFRESH_DELAY_FACTOR * (now - started_at)
        return HierarchyStatistics(
            hierarchy_position=position,
            issues=issues,
            root_ids=root_ids,
            orphans=orphans,
            groups=groups,
            cycle_members=cycle_members,
        )

    def _build(self, hierarchy: HierarchyStatistics) -> CatalogueStatistics:
        counts = self._running_counts
        text_issues = {
            name: IdSample(tuple(record_ids), len(record_ids)) for name, record_ids in counts.text_issues.items()
        }
        return CatalogueStatistics(
            **vars(replace(hierarchy, issues={**text_issues, **hierarchy.issues})),
            position=self._position,
            counts={collection: count for (collection, _), count in counts.totals["collection"].items()},
            classes=_to_nested(counts.totals["class"]),
            contributors=_to_nested(counts.totals["contributor"]),
            languages={name: _to_nested(counter) for name, counter in counts.languages.items()},
            initials=_to_nested(counts.initials),
            growth_by_collection={group: _to_nested(counter) for group, counter in counts.growth.items()},
        )


def _find_groups(snapshot: Snapshot, collection: Collection) -> list[RecordGroup]:
    """Return the groups that records of a collection belong to, by the collection of the groups."""
    types_by_collection: dict[str, list[str]] = {}
    for type_name in collection.grouping_types:
        for group_collection in RELATION_TYPES[type_name].targets[collection.name][:1]:
            types_by_collection.setdefault(group_collection, []).append(type_name)
    return [
        group
        for group_collection, type_names in types_by_collection.items()
        for group in hierarchy_queries.find_groups(snapshot, collection.name, type_names, group_collection)
    ]


def _find_cycle_members(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return the published records on cycles, by collection."""
    cycles = find_cycles(relations.iter_inner_relations(snapshot, RELATION_TYPES.hierarchical))
    # A record may be on several cycles.
    record_ids = list(dict.fromkeys(chain.from_iterable(cycles)))
    found = records.find_collections_and_names(snapshot, record_ids)
    return {
        name: tuple(record_id for record_id in record_ids if record_id in found and found[record_id][0] == name)
        for name in COLLECTIONS.hierarchies
    }


def _load_previous(snapshot: Snapshot, changes: list[Change]) -> dict[str, Change]:
    """Return the versions of records before the first of these changes."""
    first_versions = {change.record_id: change.version for change in reversed(changes)}
    version_keys = [(record_id, version - 1) for record_id, version in first_versions.items() if version > 1]
    return revisions.find_versions(snapshot, version_keys)


def _is_checked(collection: Collection) -> bool:
    """Return whether gaps of a collection are listed: of main ones, and of those that v-alpha shows."""
    return collection is not VOCABULARY and (not collection.is_auxiliary or bool(collection.valpha_field_names))


def _has_expected_hierarchy(collection: str, type_name: str) -> bool:
    """Return whether records of a collection belong into a hierarchy: v-alpha shows it."""
    lists = COLLECTIONS[collection].relation_lists.values()
    return any((type_name, "source") in item.paths for item in lists)


def _join_samples(samples: Mapping[str, IdSample]) -> IdSample:
    ids = tuple(chain.from_iterable(sample.ids for sample in samples.values()))
    return IdSample(ids, sum(sample.total for sample in samples.values()))


def _select_ids(sample: IdSample, slugs: set[str]) -> IdSample:
    ids = tuple(record_id for record_id in sample.ids if split_id(record_id)[0] in slugs)
    return IdSample(ids, len(ids))


def _filter_keys(values: Mapping[str, ValueT], is_selected: Callable[[str], bool]) -> dict[str, ValueT]:
    return {key: value for key, value in values.items() if is_selected(key)}


def _filter_inner(
    counts: Mapping[str, Mapping[str, int]], is_selected: Callable[[str], bool]
) -> dict[str, Mapping[str, int]]:
    filtered = {key: _filter_keys(inner, is_selected) for key, inner in counts.items()}
    return {key: inner for key, inner in filtered.items() if inner}


def _to_nested(counter: Counter[tuple[KeyT, str]]) -> dict[KeyT, dict[str, int]]:
    nested: dict[KeyT, dict[str, int]] = {}
    for (key, subkey), count in counter.items():
        if count:
            nested.setdefault(key, {})[subkey] = count
    return nested
