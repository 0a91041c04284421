"""Everything a record page shows, and a readable history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.edit import DERIVED_FIELDS, FieldDiff, diff_records
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES
from lexarium.domain.text.diff import DiffSegment, diff_words
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.statement_view import (
    OtherClass,
    ShownStatements,
    StatementView,
    find_predicate_link,
    list_other_classes,
    list_reference_ids,
    list_user_ids,
)
from lexarium.store import hierarchy_queries, records, revisions
from lexarium.store.hierarchy_queries import RecordName
from lexarium.store.position import Snapshot

MAX_RELATED = 200  # records listed per relation type and direction
# Fields whose values are ids of records.
REFERENCE_FIELDS = frozenset({"replaced_by"}.union(*(item.class_fields for item in COLLECTIONS.values())))


@dataclass(frozen=True)
class RelationGroup:
    """Records related to one by relations of one type, in one direction or, if symmetric, in both."""

    label: str
    hierarchical: bool
    is_outgoing: bool
    items: Sequence[RecordName]
    total: int
    description: str = ""
    # Address of a predicate that no slot declares.
    link: str | None = None


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
    # Declared fields that have no place of their own on the page.
    fields: Sequence[ShownStatements]
    relation_groups: Sequence[RelationGroup]
    # Targets in other vocabularies, by label of the relation type.
    mappings: Sequence[ShownStatements]
    # Statements that no slot declares.
    other_statements: Sequence[ShownStatements]
    other_classes: Sequence[OtherClass]
    # By id: of accounts, and of records that describe users.
    user_names: Mapping[str, str]
    # Ids among those that have a page.
    user_record_ids: frozenset[str]
    replacement_name: str | None


def load_detail(snapshot: Snapshot, change: Change) -> RecordDetail:
    """Load everything about a record except its history."""
    record = change.to_record()
    replaced_by = record.replaced_by
    user_ids = list_user_ids(record)
    names = records.find_names(snapshot, [*user_ids, *list_reference_ids(record), *filter(None, [replaced_by])])
    user_names = get_account_names(snapshot, [*user_ids, change.actor])
    user_names |= {item: names[item] for item in user_ids if names.get(item) and user_names[item] == item}
    view = StatementView(record, names, user_names)
    return RecordDetail(
        change=change,
        record=record,
        definition=record.definition,
        fields=view.list_fields(),
        relation_groups=_load_relation_groups(snapshot, record),
        mappings=view.list_mappings(),
        other_statements=view.list_other_statements(),
        other_classes=list_other_classes(record),
        user_names=user_names,
        user_record_ids=frozenset(names),
        replacement_name=names.get(replaced_by or ""),
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
        label = relation_type.label if outward else relation_type.inverse_label or f"{relation_type.label} of"
        items, total = hierarchy_queries.find_neighbors(
            snapshot, record.id, type_name, outward=outward, limit=MAX_RELATED
        )
        is_symmetric = (type_name, label) in groups
        if is_symmetric:
            others = groups[type_name, label].items
            items = sorted({*others, *items}, key=lambda item: (item.name.casefold(), item.id))
            total = len(items)
        groups[type_name, label] = RelationGroup(
            label,
            relation_type.is_hierarchical,
            outward or is_symmetric,
            items,
            total,
            _describe_relation(record, type_name) if outward else "",
            None if type_name in RELATION_TYPES else find_predicate_link(type_name),
        )
    return [group for group in groups.values() if group.items]


def _describe_relation(record: Record, type_name: str) -> str:
    slots = record.collection.schema_class.slots_by_predicate
    slot = slots.get(record.collection.relation_predicates.get(type_name, ""))
    return slot.description if slot else ""


def _sort_kinds(kinds: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Sort names of relation types, each with its direction: as `sort_relation_types` has them, outgoing ones first."""
    by_direction = sorted(kinds, key=lambda kind: not kind[1])
    order = {name: place for place, name in enumerate(sort_relation_types(name for name, _ in by_direction))}
    return sorted(by_direction, key=lambda kind: order[kind[0]])


def sort_relation_types(names: Iterable[str]) -> list[str]:
    """Sort relation types: hierarchies, then in order of the schema, then those of all collections, then others."""
    places = {name: place for place, name in enumerate(RELATION_TYPES)}

    def get_order(name: str) -> tuple[bool, bool, int, str]:
        relation_type = RELATION_TYPES[name]
        is_common = len(relation_type.targets) == len(COLLECTIONS)
        return not relation_type.is_hierarchical, is_common, places.get(name, len(places)), name

    return sorted(set(names), key=get_order)


def _load_names(snapshot: Snapshot, diffs: Iterable[FieldDiff]) -> dict[str, str]:
    record_ids: set[str] = set()
    for diff in diffs:
        for value in filter(None, (diff.before, diff.after)):
            if diff.field == "relations":
                record_ids.update(chain.from_iterable(value.values()))
            elif diff.field in REFERENCE_FIELDS:
                record_ids.add(value)
    return records.find_names(snapshot, sorted(record_ids))


def _build_word_diff(diff: FieldDiff, names: Mapping[str, str]) -> FieldWordDiff:
    before, after = diff.before, diff.after
    if isinstance(before, str) and isinstance(after, str) and diff.field not in (*REFERENCE_FIELDS, "state"):
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
            f"{RELATION_TYPES[name].label} {names.get(target) or target}"
            for name, targets in (value or {}).items()
            for target in targets
        ]
    if field == "aliases":
        return [_format_alias(item) for item in value or ()]
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value in (None, "") else [names.get(value) or str(value)]
