"""Everything a record page shows, and a readable history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.editing.edit import DERIVED_FIELDS, FieldDiff, diff_records, get_target
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id, split_id
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, RELATION_TYPES
from lexarium.domain.statement import Reference
from lexarium.domain.text.diff import DiffSegment, diff_words
from lexarium.domain.translations import LanguageText, choose_text, list_language_texts, list_languages
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.statement_view import (
    OtherClass,
    ShownStatements,
    ShownValue,
    StatementView,
    find_predicate_link,
    list_other_classes,
    list_reference_ids,
    list_user_ids,
)
from lexarium.services.vocabularies.access import ReadScope, find_record_ids
from lexarium.store import change_log, hierarchy_queries, records, revisions, vocabularies
from lexarium.store.hierarchy_queries import RecordName
from lexarium.store.position import Snapshot

MAX_RELATED = 200  # records listed per relation type and direction
# Fields whose values are ids of records: those of v-alpha, and one that every record has.
REFERENCE_FIELDS = frozenset({"replaced_by"}.union(*(item.class_fields for item in MAIN_COLLECTIONS.values())))


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
    # Targets that the vocabulary does not have: records of others, or links.
    elsewhere: Sequence[ShownValue] = ()


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
    # In the language that suits the reader best.
    name: LanguageText
    definition: LanguageText
    # All languages of the record.
    languages: Sequence[str]
    # Names and definitions in the others.
    other_texts: Sequence[LanguageText]
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
    # Records of those among them that have a page.
    user_record_ids: Mapping[str, str]
    replacement_name: str | None


def load_detail(snapshot: Snapshot, change: Change, scope: ReadScope, wanted: Sequence[str] = ()) -> RecordDetail:
    """Load everything about a record except its history, for a reader who may read a scope and wants languages."""
    record = change.to_record()
    vocabulary, replaced_by = record.collection.vocabulary, record.replaced_by
    user_ids = list_user_ids(record)
    own_ids = [qualify_id(vocabulary, local_id) for local_id in (*user_ids, *list_reference_ids(record))]
    found = records.find_names(snapshot, [*own_ids, *filter(None, [replaced_by])])
    names = {get_local_id(record_id): name for record_id, name in found.items()}
    user_names = get_account_names(snapshot, [*user_ids, change.actor])
    user_names |= {item: names[item] for item in user_ids if names.get(item) and user_names[item] == item}
    elsewhere = find_elsewhere(snapshot, record, scope, wanted)
    view = StatementView(record, names, user_names, elsewhere)
    name = choose_text(record, "name", wanted)
    definition = choose_text(record, record.collection.definition_field or "", wanted)
    groups = _load_relation_groups(snapshot, record, elsewhere)
    related_ids = [item.id for group in groups for item in group.items]
    return RecordDetail(
        change=change,
        record=record,
        name=name,
        definition=definition,
        languages=list_languages(record),
        other_texts=[text for text in list_language_texts(record) if text not in (name, definition)],
        fields=view.list_fields(),
        relation_groups=_translate_groups(groups, translate_names(snapshot, related_ids, wanted)),
        mappings=view.list_mappings(),
        other_statements=view.list_other_statements(),
        other_classes=list_other_classes(record),
        user_names=user_names,
        user_record_ids={item: qualify_id(vocabulary, item) for item in user_ids if item in names},
        replacement_name=found.get(replaced_by or ""),
    )


def find_elsewhere(
    snapshot: Snapshot, record: Record, scope: ReadScope, wanted: Sequence[str]
) -> dict[str, ShownValue]:
    """Return the records of other vocabularies that references of a record mean, by reference."""
    targets = sorted({item.value.target for item in record.statements if isinstance(item.value, Reference)})
    own_ids = {qualify_id(record.collection.vocabulary, target): target for target in targets}
    own = {own_ids[record_id] for record_id in records.find_existing_ids(snapshot, list(own_ids))}
    ids = find_record_ids(snapshot, [target for target in targets if target not in own], scope)
    ids = {target: record_id for target, record_id in ids.items() if record_id != record.id}
    names = records.find_names(snapshot, sorted(set(ids.values())))
    names |= translate_names(snapshot, list(names), wanted)
    return {
        target: ShownValue(
            names[record_id] or get_local_id(record_id),
            record_id=record_id,
            vocabulary=_name_other_vocabulary(record, record_id),
        )
        for target, record_id in ids.items()
        if record_id in names
    }


def _name_other_vocabulary(record: Record, record_id: str) -> str:
    slug = split_id(record_id)[0]
    return "" if slug == record.collection.vocabulary else VOCABULARIES[slug].title


def translate_names(snapshot: Snapshot, record_ids: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the names of those of these records that have one in a language that their reader wants more."""
    translated: dict[str, str] = {}
    remaining = list(dict.fromkeys(record_ids))
    for tag in _list_ranges(wanted):
        remaining = [item for item in remaining if VOCABULARIES[split_id(item)[0]].language != tag]
        found = vocabularies.find_translated_names(snapshot, remaining, tag) if remaining else {}
        translated |= found
        remaining = [item for item in remaining if item not in found]
    return translated


def _list_ranges(wanted: Sequence[str]) -> list[str]:
    """Return languages, each followed by less specific ones: `en-GB`, `en`."""
    ranges = [tag.split("-") for tag in wanted if tag != "*"]
    return list(dict.fromkeys("-".join(parts[:end]) for parts in ranges for end in range(len(parts), 0, -1)))


def _translate_groups(groups: Sequence[RelationGroup], names: Mapping[str, str]) -> Sequence[RelationGroup]:
    if not names:
        return groups
    return [
        replace(group, items=[item._replace(name=names.get(item.id, item.name)) for item in group.items])
        for group in groups
    ]


def list_metadata(snapshot: Snapshot, slug: str) -> list[ShownStatements]:
    """Return what the head record of a vocabulary says besides what every vocabulary has: translations, and others."""
    record_id = qualify_id("", slug)
    change = change_log.find_latest(snapshot, [record_id]).get(record_id)
    if change is None:
        return []
    record = change.to_record()
    texts = [
        text for text in list_language_texts(record) if text.text not in (record.fields["name"], record.definition)
    ]
    translations = [
        ShownStatements("title" if text.field == "name" else text.field, [ShownValue(text.text, text.lang)])
        for text in texts
    ]
    return [*translations, *StatementView(record, {}, {}).list_other_statements()]


def list_history(snapshot: Snapshot, record_id: str, newest_version: int, limit: int) -> list[HistoryEntry]:
    """Return up to `limit` versions of a record from one down, the newest first."""
    changes = revisions.list_versions(snapshot, record_id, newest_version, limit + 1)
    diffs = [diff_records(previous, record) for record, previous in pairwise(change.to_record() for change in changes)]
    if len(changes) <= limit:
        diffs.append([])  # the first version
    del changes[limit:]
    names = _load_names(snapshot, chain.from_iterable(diffs), split_id(record_id)[0])
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


def build_word_diffs(
    snapshot: Snapshot, diffs: Sequence[FieldDiff], vocabulary: str = MAIN_VOCABULARY
) -> list[FieldWordDiff]:
    """Return the word diffs of fields of a record of a vocabulary, with names in place of record ids."""
    return _build_word_diffs(diffs, _load_names(snapshot, diffs, vocabulary))


def _build_word_diffs(diffs: Iterable[FieldDiff], names: Mapping[str, str]) -> list[FieldWordDiff]:
    return [_build_word_diff(diff, names) for diff in diffs if diff.field not in DERIVED_FIELDS]


def _load_relation_groups(
    snapshot: Snapshot, record: Record, elsewhere: Mapping[str, ShownValue]
) -> list[RelationGroup]:
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
            _list_elsewhere(record, type_name, elsewhere) if outward else (),
        )
    return [group for group in groups.values() if group.items or group.elsewhere]


def _list_elsewhere(record: Record, type_name: str, elsewhere: Mapping[str, ShownValue]) -> list[ShownValue]:
    """Return the targets of relations of a type that are records of other vocabularies."""
    # Mappings have a place of their own, and so have relations that no slot declares.
    if RELATION_TYPES[type_name].is_mapping or type_name not in RELATION_TYPES:
        return []
    targets = [get_local_id(item.target) for item in sorted(record.relations) if item.relation == type_name]
    return [elsewhere[target] for target in targets if target in elsewhere]


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
    collections = [{item.name for item in vocabulary.collections} for vocabulary in VOCABULARIES.values()]

    def get_order(name: str) -> tuple[bool, bool, int, str]:
        relation_type = RELATION_TYPES[name]
        is_common = any(names and names <= relation_type.targets.keys() for names in collections)
        return not relation_type.is_hierarchical, is_common, places.get(name, len(places)), name

    return sorted(set(names), key=get_order)


def _load_names(snapshot: Snapshot, diffs: Iterable[FieldDiff], vocabulary: str) -> dict[str, str]:
    """Return the names of the records that diffs mention, by id in the vocabulary."""
    local_ids: set[str] = set()
    for diff in diffs:
        for value in filter(None, (diff.before, diff.after)):
            if diff.field == "relations":
                local_ids.update(get_target(target) for targets in value.values() for target in targets)
            elif diff.field in REFERENCE_FIELDS:
                local_ids.add(get_local_id(value))
    found = records.find_names(snapshot, [qualify_id(vocabulary, local_id) for local_id in sorted(local_ids)])
    return {get_local_id(record_id): name for record_id, name in found.items()}


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
            for target in map(get_target, targets)
        ]
    if field == "aliases":
        return [_format_alias(item) for item in value or ()]
    if field in ("names", "definitions"):
        return [f"{item['text']} ({item['lang']})" for item in value or ()]
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value in (None, "") else [names.get(local_id := get_local_id(str(value))) or local_id]
