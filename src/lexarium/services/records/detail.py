"""Everything a record page shows, and a readable history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.edit import DERIVED_FIELDS, FieldDiff, diff_records
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.domain.text.diff import DiffSegment, diff_words
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.lookup import list_mappings
from lexarium.store import hierarchy_queries, records, revisions
from lexarium.store.hierarchy_queries import RecordName
from lexarium.store.position import Snapshot

MAX_RELATED = 200  # records listed per relation type and direction


@dataclass(frozen=True)
class RelationGroup:
    """Records related to one by relations of one type, in one direction or, if symmetric, in both."""

    label: str
    hierarchical: bool
    is_outgoing: bool
    items: Sequence[RecordName]
    total: int


@dataclass(frozen=True)
class FieldWordDiff:
    """Word diff of one field, and of a conflicting change by others, if there is one."""

    field: str
    segments: Sequence[DiffSegment]
    conflicting_segments: Sequence[DiffSegment] | None = None


@dataclass(frozen=True)
class HistoryEntry:
    """A version of a record with its differences from the version before."""

    change: Change
    actor: str
    proposer: str | None
    field_diffs: Sequence[FieldWordDiff]


@dataclass(frozen=True)
class RecordDetail:
    """Everything the page of a record shows except its history; the record may be in any state."""

    change: Change
    record: Record
    definition: str
    relation_groups: Sequence[RelationGroup]
    mappings: Sequence[tuple[str, str]]  # label of the relation type, target in another vocabulary
    account_names: Mapping[str, str]
    replacement_name: str | None


def load_detail(snapshot: Snapshot, change: Change) -> RecordDetail:
    """Load everything about a record except its history."""
    record = change.to_record()
    replaced_by = record.replaced_by
    account_ids = {record.fields[name] for name in ("id_user", "def_id_user") if name in record.fields}
    return RecordDetail(
        change=change,
        record=record,
        definition=record.definition,
        relation_groups=_load_relation_groups(snapshot, record),
        mappings=[(RELATION_TYPES[mapping.relation].label, mapping.target) for mapping in list_mappings(record)],
        account_names=get_account_names(snapshot, account_ids | {change.actor}),
        replacement_name=records.find_names(snapshot, [replaced_by]).get(replaced_by) if replaced_by else None,
    )


def list_history(snapshot: Snapshot, record_id: str, newest_version: int, limit: int) -> list[HistoryEntry]:
    """Return up to `limit` versions of a record from one down, the newest first."""
    changes = revisions.list_versions(snapshot, record_id, newest_version, limit + 1)
    diffs = [diff_records(previous, record) for record, previous in pairwise(change.to_record() for change in changes)]
    if len(changes) <= limit:
        diffs.append([])  # the first version
    del changes[limit:]
    names = _load_names(snapshot, chain.from_iterable(diffs))
    origins = [change.parse_origin() for change in changes]
    account_ids = {change.actor for change in changes} | {origin.by for origin in origins if origin}
    account_names = get_account_names(snapshot, account_ids)
    return [
        HistoryEntry(
            change,
            account_names[change.actor],
            account_names[origin.by] if origin else None,
            _build_word_diffs(field_diffs, names),
        )
        for change, origin, field_diffs in zip(changes, origins, diffs, strict=False)
    ]


def build_word_diffs(snapshot: Snapshot, diffs: Sequence[FieldDiff]) -> list[FieldWordDiff]:
    """Return the word diffs of fields, with names in place of record ids."""
    return _build_word_diffs(diffs, _load_names(snapshot, diffs))


def _build_word_diffs(diffs: Iterable[FieldDiff], names: Mapping[str, str]) -> list[FieldWordDiff]:
    return [_build_word_diff(diff, names) for diff in diffs if diff.field not in DERIVED_FIELDS]


def _load_relation_groups(snapshot: Snapshot, record: Record) -> list[RelationGroup]:
    groups: dict[tuple[str, str], RelationGroup] = {}
    for type_name, outward in _sort_kinds(hierarchy_queries.list_relation_kinds(snapshot, record.id)):
        relation_type = RELATION_TYPES[type_name]
        label = relation_type.label if outward else relation_type.inverse_label
        items, total = hierarchy_queries.find_neighbors(
            snapshot, record.id, type_name, outward=outward, limit=MAX_RELATED
        )
        is_symmetric = (type_name, label) in groups
        if is_symmetric:
            others = groups[type_name, label].items
            items = sorted({*others, *items}, key=lambda item: (item.name.casefold(), item.id))
            total = len(items)
        groups[type_name, label] = RelationGroup(
            label, relation_type.is_hierarchical, outward or is_symmetric, items, total
        )
    return [group for group in groups.values() if group.items]


def _sort_kinds(kinds: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Sort names of relation types, each with its direction: in the order of the schema, outgoing ones first."""
    order = {name: place for place, name in enumerate(RELATION_TYPES)}
    return sorted(kinds, key=lambda kind: (order.get(kind[0], len(order)), kind[0], not kind[1]))


def _load_names(snapshot: Snapshot, diffs: Iterable[FieldDiff]) -> dict[str, str]:
    record_ids: set[str] = set()
    for diff in diffs:
        for value in filter(None, (diff.before, diff.after)):
            if diff.field == "relations":
                record_ids.update(chain.from_iterable(value.values()))
            elif diff.field in ("id_concept_class", "replaced_by"):
                record_ids.add(value)
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
