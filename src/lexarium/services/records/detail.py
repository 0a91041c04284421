"""Everything a record page shows, and a readable history."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.editing.edit import DERIVED_FIELDS, FieldDiff, diff_records, get_target
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id, split_id
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record
from lexarium.domain.record_texts import RecordText, choose_text, list_language_texts, list_languages
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, RELATION_TYPES
from lexarium.domain.text.diff import DiffSegment, diff_words
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.hierarchy import Hierarchy, load_hierarchy
from lexarium.services.records.mentions import Mentions, WantedMentions, load_mentions, translate_names
from lexarium.services.records.relation_groups import (
    RelationGroup,
    add_details,
    build_groups,
    list_past_neighbors,
    load_neighbors,
)
from lexarium.services.records.statement_view import (
    OtherClass,
    ShownStatements,
    ShownValue,
    StatementView,
    list_other_classes,
    list_user_ids,
)
from lexarium.services.vocabularies.access import ReadScope
from lexarium.store import change_log, records, revisions
from lexarium.store.position import Snapshot
from lexarium.store.queries import hierarchy_queries
from lexarium.store.queries.page_queries import RecordMention

# Versions of a record that its page lists.
VERSIONS_SHOWN = 5
# Fields whose values are ids of records: those of v-alpha, and one that every record has.
REFERENCE_FIELDS = frozenset({"replaced_by"}.union(*(item.class_fields for item in MAIN_COLLECTIONS.values())))


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
    name: RecordText
    definition: RecordText
    # All languages of the record.
    languages: Sequence[str]
    # Names and definitions in the others.
    other_texts: Sequence[RecordText]
    # Declared fields that have no place of their own on the page.
    fields: Sequence[ShownStatements]
    relation_groups: Sequence[RelationGroup]
    hierarchy: Hierarchy
    # The last versions.
    history: Sequence[HistoryEntry]
    # Other records of the same name.
    namesakes: Sequence[RecordMention]
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


def load_detail(  # noqa: PLR0913 (a record, its versions and its reader)
    snapshot: Snapshot,
    record: Record,
    versions: Sequence[Change],
    scope: ReadScope,
    wanted: Sequence[str] = (),
    *,
    is_past: bool = False,
) -> RecordDetail:
    """Load what the page of a record shows, for a reader who may read a scope and wants languages.

    `versions` are the last ones of the record, the newest first. Of a past version, only the relations that it states
    itself are loaded.
    """
    change = versions[0]
    name = choose_text(record, "name", wanted)
    totals = {} if is_past else hierarchy_queries.count_relations(snapshot, record.id)
    type_names = [type_name for type_name, _ in totals] or [item.relation for item in record.relations]
    diffs = [] if is_past else _diff_versions(record, versions, VERSIONS_SHOWN)
    wanted_mentions = WantedMentions(
        type_names, _list_account_ids(versions), _list_diff_ids(chain.from_iterable(diffs)), record.fields["name"]
    )
    mentions = load_mentions(snapshot, record, scope, wanted_mentions)
    neighbors = list_past_neighbors(record, mentions.names) if is_past else load_neighbors(snapshot, record.id, totals)
    groups = build_groups(record, neighbors, totals, mentions.labels, mentions.elsewhere)
    hierarchy = Hierarchy()
    if not is_past:
        groups = add_details(snapshot, record.id, groups)
        hierarchy = load_hierarchy(snapshot, record, name.text or record.local_id)
    translated = translate_names(snapshot, _iter_shown_ids(groups, hierarchy, mentions), wanted)
    vocabulary, names, elsewhere = record.collection.vocabulary, mentions.names, mentions.elsewhere
    if translated:
        names = {item: translated.get(qualify_id(vocabulary, item), name) for item, name in names.items()}
        elsewhere = {
            target: replace(item, text=translated.get(item.record_id or "", item.text))
            for target, item in elsewhere.items()
        }
    view = StatementView(record, names, mentions.user_names, elsewhere, mentions.labels)
    definition = choose_text(record, record.collection.definition_field or "", wanted)
    user_ids = list_user_ids(record)
    return RecordDetail(
        change=change,
        record=record,
        name=name,
        definition=definition,
        languages=list_languages(record),
        other_texts=[text for text in list_language_texts(record) if text not in (name, definition)],
        fields=view.list_fields(),
        history=[] if is_past else _build_history(versions, diffs, mentions.user_names, mentions.names),
        relation_groups=[group.translate(translated) for group in groups],
        hierarchy=hierarchy.translate(translated),
        namesakes=mentions.namesakes,
        mappings=view.list_mappings(),
        other_statements=view.list_other_statements(),
        other_classes=list_other_classes(record),
        user_names=mentions.user_names,
        user_record_ids={item: qualify_id(vocabulary, item) for item in user_ids if item in mentions.names},
        replacement_name=mentions.names.get(get_local_id(record.replaced_by)) if record.replaced_by else None,
    )


def _iter_shown_ids(groups: Sequence[RelationGroup], hierarchy: Hierarchy, mentions: Mentions) -> Iterator[str]:
    yield from hierarchy.iter_ids()
    yield from filter(None, (item.record_id for item in mentions.elsewhere.values()))
    for group in groups:
        for item in group.items:
            yield item.id
            yield from (other.id for others in item.relations.values() for other in others)


def list_metadata(snapshot: Snapshot, slug: str) -> list[ShownStatements]:
    """Return what the head record of a vocabulary says besides what every vocabulary has: translations, and others."""
    record_id = qualify_id("", slug)
    change = change_log.find_latest(snapshot, [record_id]).get(record_id)
    if change is None:
        return []
    record = change.to_record()
    translations: dict[str, list[ShownValue]] = {}
    for text in list_language_texts(record):
        if text.text not in (record.fields["name"], record.definition):
            label = "title" if text.field == "name" else text.field
            translations.setdefault(label, []).append(ShownValue(text.text, text.lang))
    shown = [ShownStatements(label, values) for label, values in translations.items()]
    return [*shown, *StatementView(record, {}, {}).list_other_statements()]


def list_history(snapshot: Snapshot, record_id: str, newest_version: int, limit: int) -> list[HistoryEntry]:
    """Return up to `limit` versions of a record from one down, the newest first."""
    changes = revisions.list_versions(snapshot, record_id, newest_version, limit + 1)
    diffs = _diff_versions(changes[0].to_record(), changes, limit) if changes else []
    names = _load_names(snapshot, chain.from_iterable(diffs), split_id(record_id)[0])
    return _build_history(changes, diffs, get_account_names(snapshot, _list_account_ids(changes)), names)


def _diff_versions(newest: Record, changes: Sequence[Change], limit: int) -> list[list[FieldDiff]]:
    """Return the differences of the first versions from the one before each. One more than `limit` is given, if any."""
    versions = chain([newest], (change.to_record() for change in changes[1:]))
    diffs = [diff_records(previous, record) for record, previous in pairwise(versions)]
    return diffs if len(changes) > limit else [*diffs, []]  # the first version


def _build_history(
    changes: Sequence[Change],
    diffs: Sequence[Sequence[FieldDiff]],
    account_names: Mapping[str, str],
    names: Mapping[str, str],
) -> list[HistoryEntry]:
    origins = [change.parse_origin() for change in changes]
    return [
        HistoryEntry(
            change,
            account_names[change.actor],
            account_names[origin.by] if origin else None,
            _build_word_diffs(field_diffs, names),
        )
        for change, origin, field_diffs in zip(changes, origins, diffs, strict=False)
    ]


def _list_account_ids(changes: Iterable[Change]) -> list[str]:
    """Return the accounts that made or proposed changes."""
    changes = list(changes)
    origins = [change.parse_origin() for change in changes]
    return list(dict.fromkeys([*(change.actor for change in changes), *(origin.by for origin in origins if origin)]))


def build_word_diffs(
    snapshot: Snapshot, diffs: Sequence[FieldDiff], vocabulary: str = MAIN_VOCABULARY
) -> list[FieldWordDiff]:
    """Return the word diffs of fields of a record of a vocabulary, with names in place of record ids."""
    return _build_word_diffs(diffs, _load_names(snapshot, diffs, vocabulary))


def build_record_diffs(
    snapshot: Snapshot, diffs: Sequence[Sequence[FieldDiff]], vocabulary: str
) -> list[list[FieldWordDiff]]:
    """Return the same for several records of a vocabulary."""
    names = _load_names(snapshot, chain.from_iterable(diffs), vocabulary)
    return [_build_word_diffs(record_diffs, names) for record_diffs in diffs]


def _build_word_diffs(diffs: Iterable[FieldDiff], names: Mapping[str, str]) -> list[FieldWordDiff]:
    return [_build_word_diff(diff, names) for diff in diffs if diff.field not in DERIVED_FIELDS]


def _load_names(snapshot: Snapshot, diffs: Iterable[FieldDiff], vocabulary: str) -> dict[str, str]:
    """Return the names of the records that diffs mention, by id in the vocabulary."""
    record_ids = [qualify_id(vocabulary, local_id) for local_id in _list_diff_ids(diffs)]
    return {get_local_id(record_id): name for record_id, name in records.find_names(snapshot, record_ids).items()}


def _list_diff_ids(diffs: Iterable[FieldDiff]) -> list[str]:
    """Return the ids in their vocabulary of the records that diffs mention."""
    local_ids: set[str] = set()
    for diff in diffs:
        for value in filter(None, (diff.before, diff.after)):
            if diff.field == "relations":
                local_ids.update(get_target(target) for targets in value.values() for target in targets)
            elif diff.field in REFERENCE_FIELDS:
                local_ids.add(get_local_id(value))
    return sorted(local_ids)


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
    if field in ("names", "definitions", "notes"):
        return [f"{item['text']} ({', '.join(filter(None, [item.get('type'), item['lang']]))})" for item in value or ()]
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value in (None, "") else [names.get(local_id := get_local_id(str(value))) or local_id]
