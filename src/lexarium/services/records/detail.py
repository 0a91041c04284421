"""All that there is to tell people of one record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.edit import DERIVED_FIELDS, FieldDiff, diff_records
from lexarium.domain.errors import NotFound
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.diff import DiffSegment, diff_words
from lexarium.services.records.activity import get_account_names, list_earlier_versions
from lexarium.store import change_log, hierarchy_queries, records
from lexarium.store.hierarchy_queries import Neighbor
from lexarium.store.position import Snapshot

MAX_RELATED = 200
"""How many records at the other ends of one kind of relation are told."""


@dataclass(frozen=True)
class RelationGroup:
    """The records at the other ends of a record's relations of one kind, in one direction."""

    label: str
    """What the relation is called, said of the record."""
    hierarchical: bool
    is_outgoing: bool
    items: Sequence[Neighbor]
    total: int


@dataclass(frozen=True)
class FieldWordDiff:
    """What a change did to one field, in words that stayed, came and went."""

    field: str
    segments: Sequence[DiffSegment]


@dataclass(frozen=True)
class HistoryEntry:
    """One version of a record, and how it came from the one before."""

    change: Change
    actor: str
    proposer: str | None
    """Who proposed it, where a curator accepted it."""
    field_diffs: Sequence[FieldWordDiff]


@dataclass(frozen=True)
class RecordDetail:
    """A record as it is now, in whatever state."""

    change: Change
    record: Record
    definition: str
    relation_groups: Sequence[RelationGroup]
    mappings: Sequence[tuple[str, str]]
    """What each is called, and what it points to in another vocabulary."""
    account_names: Mapping[str, str]
    """What those are called whom the record names, by id."""
    replacement_name: str | None
    """The name of what stands in for it, where it is gone."""


def get_latest_change(snapshot: Snapshot, record_id: str) -> Change:
    """The last change of a record, in whatever state. Raises `NotFound` where there is none."""
    change = None if find_unstorable_char(record_id) else change_log.find_latest(snapshot, [record_id]).get(record_id)
    if change is None:
        raise NotFound(f"There is no record with the id {record_id!r}.")
    return change


def load_detail(snapshot: Snapshot, change: Change) -> RecordDetail:
    """All about a record but its history."""
    record = change.to_record()
    account_ids = {record.fields[name] for name in ("id_user", "def_id_user") if name in record.fields}
    return RecordDetail(
        change=change,
        record=record,
        definition=record.definition,
        relation_groups=_load_relation_groups(snapshot, record),
        mappings=[
            (RELATION_TYPES[relation.relation].label, relation.target)
            for relation in sorted(record.relations)
            if RELATION_TYPES[relation.relation].target_collection is None
        ],
        account_names=get_account_names(snapshot, account_ids | {change.actor}),
        replacement_name=records.find_names(snapshot, [record.replaced_by]).get(record.replaced_by)
        if record.replaced_by
        else None,
    )


def list_history(snapshot: Snapshot, record_id: str, newest_version: int, limit: int) -> list[HistoryEntry]:
    """The versions of a record from one down, at most so many, each with what it changed."""
    changes = list_earlier_versions(snapshot, record_id, newest_version, limit + 1)
    pairs = [(change, previous) for change, previous in zip(changes, [*changes[1:], None], strict=True)][:limit]
    diffs_by_change = [
        (change, [] if previous is None else diff_records(previous.to_record(), change.to_record()))
        for change, previous in pairs
    ]
    names = _load_names(snapshot, (item for _, diffs in diffs_by_change for item in diffs))
    origins = {change.seq: change.parse_origin() for change, _ in diffs_by_change}
    account_names = get_account_names(
        snapshot, {change.actor for change, _ in pairs} | {item.by for item in origins.values() if item}
    )
    return [
        HistoryEntry(
            change,
            account_names[change.actor],
            account_names[origin.by] if (origin := origins[change.seq]) else None,
            [_build_word_diff(item, names) for item in diffs if item.field not in DERIVED_FIELDS],
        )
        for change, diffs in diffs_by_change
    ]


def build_word_diffs(snapshot: Snapshot, diffs: Sequence[FieldDiff]) -> list[FieldWordDiff]:
    """What differs, in words that stayed, came and went."""
    names = _load_names(snapshot, diffs)
    return [_build_word_diff(diff, names) for diff in diffs if diff.field not in DERIVED_FIELDS]


def _load_relation_groups(snapshot: Snapshot, record: Record) -> list[RelationGroup]:
    groups: list[RelationGroup] = []
    for relation_type in RELATION_TYPES.values():
        sides = [
            (is_outgoing, label)
            for is_outgoing, collection_name, label in (
                (True, relation_type.source_collection, relation_type.label),
                (False, relation_type.target_collection, relation_type.inverse_label),
            )
            if collection_name == record.collection.name and relation_type.target_collection is not None
        ]
        for is_outgoing, label in sides:
            related, total = hierarchy_queries.find_neighbors(
                snapshot, record.id, relation_type.name, outward=is_outgoing, limit=MAX_RELATED
            )
            groups.append(RelationGroup(label, relation_type.is_hierarchical, is_outgoing, related, total))
    return [group for group in _merge_same_label(groups) if group.items]


def _merge_same_label(groups: Iterable[RelationGroup]) -> list[RelationGroup]:
    """What is called alike in both directions as one."""
    merged: dict[str, RelationGroup] = {}
    for group in groups:
        existing = merged.get(group.label)
        if existing is None:
            merged[group.label] = group
        else:
            items = sorted(
                {*existing.items, *group.items}, key=lambda neighbour: (neighbour.name.casefold(), neighbour.id)
            )
            merged[group.label] = RelationGroup(group.label, group.hierarchical, True, items, len(items))
    return list(merged.values())


def _load_names(snapshot: Snapshot, diffs: Iterable[FieldDiff]) -> dict[str, str]:
    """The names of the records that differences speak of."""
    record_ids: set[str] = set()
    for diff in diffs:
        if diff.field == "relations":
            record_ids.update(
                target_id
                for value in (diff.before, diff.after)
                for targets in (value or {}).values()
                for target_id in targets
            )
        elif diff.field in ("id_concept_class", "replaced_by"):
            record_ids.update(value for value in (diff.before, diff.after) if value)
    return records.find_names(snapshot, sorted(record_ids))


def _build_word_diff(diff: FieldDiff, names: Mapping[str, str]) -> FieldWordDiff:
    before, after = diff.before, diff.after
    if isinstance(before, str) and isinstance(after, str) and diff.field not in ("id_concept_class", "state"):
        return FieldWordDiff(diff.field, diff_words(before, after))
    old_texts, new_texts = (_format_value(diff.field, value, names) for value in (before, after))
    segments = [DiffSegment(text, "same" if text in new_texts else "removed") for text in old_texts]
    return FieldWordDiff(
        diff.field, [*segments, *(DiffSegment(text, "added") for text in new_texts if text not in old_texts)]
    )


def _format_alias(alias: Mapping[str, str]) -> str:
    qualifiers = [
        alias[name] for name, default in (("lang", DEFAULT_LANGUAGE), ("scope", "exact")) if alias[name] != default
    ]
    return f"{alias['text']} ({', '.join(qualifiers)})" if qualifiers else alias["text"]


def _format_value(field: str, value: Any, names: Mapping[str, str]) -> list[str]:
    """A value as one or more short texts."""
    if field == "relations":
        return [
            f"{RELATION_TYPES[name].label} {names.get(target, target)}"
            for name, targets in (value or {}).items()
            for target in targets
        ]
    if field == "aliases":
        return [_format_alias(item) for item in value or ()]
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value in (None, "") else [names.get(value, str(value))]
