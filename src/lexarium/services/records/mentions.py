"""Names of the records and people that a page mentions, in the languages of its reader."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id, split_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.domain.statement import Reference
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.records.activity import name_accounts
from lexarium.services.records.statement_view import ShownValue, list_user_ids
from lexarium.services.vocabularies.access import ReadScope, list_candidates, match_records
from lexarium.store import vocabularies
from lexarium.store.position import Snapshot
from lexarium.store.queries import page_queries
from lexarium.store.queries.page_queries import RecordMention


@dataclass(frozen=True)
class Mentions:
    """What a page mentions of a record."""

    # Names of published records of the same vocabulary, by id there.
    names: Mapping[str, str]
    # Records of other vocabularies, by the reference that means them.
    elsewhere: Mapping[str, ShownValue]
    # By name of the relation type or predicate.
    labels: Mapping[str, str]
    # By id: of accounts, and of records that describe users.
    user_names: Mapping[str, str]
    # Other published records of the same name.
    namesakes: Sequence[RecordMention]


@dataclass(frozen=True)
class WantedMentions:
    """What a page mentions besides what its record refers to."""

    type_names: Sequence[str] = ()
    account_ids: Sequence[str] = ()
    # Ids of records in the vocabulary of the record.
    local_ids: Sequence[str] = ()
    # Name by which other records are found.
    name: str = ""


def load_mentions(snapshot: Snapshot, record: Record, scope: ReadScope, wanted: WantedMentions) -> Mentions:
    """Look up all that a record refers to, labels of relation types, accounts and other records of a name."""
    vocabulary = record.collection.vocabulary
    targets = sorted({item.value.target for item in record.statements if isinstance(item.value, Reference)})
    user_ids = list_user_ids(record)
    undeclared = _list_undeclared(record, wanted.type_names)
    own_ids = [qualify_id(vocabulary, item) for item in (*targets, *user_ids, *undeclared, *wanted.local_ids)]
    candidates, spellings = list_candidates(targets, scope)
    mentions = page_queries.find_mentions(
        snapshot,
        list(dict.fromkeys([*own_ids, *candidates, *filter(None, [record.replaced_by])])),
        list(dict.fromkeys([*spellings, *undeclared])),
        list(dict.fromkeys([*user_ids, *wanted.account_ids])),
        wanted.name,
        list(dict.fromkeys([*scope.searched_collections, record.collection.name])),
    )
    by_id = {item.id: item for item in mentions if item.kind == "id"}
    alternatives: dict[str, list[RecordMention]] = {}
    for item in sorted((item for item in mentions if item.kind == "alternative"), key=lambda item: item.id):
        alternatives.setdefault(item.key, []).append(item)
    names = {
        get_local_id(item.id): item.name
        for item in by_id.values()
        if item.is_published and split_id(item.id)[0] == vocabulary
    }
    foreign = [target for target in targets if qualify_id(vocabulary, target) not in by_id]
    accounts = {item.id: item.name for item in mentions if item.kind == "account"}
    user_names = name_accounts([*user_ids, *wanted.account_ids], accounts)
    user_names |= {item: names[item] for item in user_ids if names.get(item) and item not in accounts}
    return Mentions(
        names,
        _find_elsewhere(record, foreign, by_id, alternatives, scope),
        _label_types([*wanted.type_names, *undeclared], vocabulary, names, alternatives),
        user_names,
        [item for item in mentions if item.kind == "name" and item.id != record.id],
    )


def _list_undeclared(record: Record, type_names: Iterable[str]) -> list[str]:
    """Return the relation types and predicates that no slot declares."""
    declared = record.collection.schema_class.slots_by_predicate
    predicates = (item.predicate for item in record.statements if item.predicate not in declared)
    return [name for name in dict.fromkeys((*type_names, *predicates)) if name not in RELATION_TYPES]


def _find_elsewhere(
    record: Record,
    targets: Sequence[str],
    by_id: Mapping[str, RecordMention],
    alternatives: Mapping[str, Sequence[RecordMention]],
    scope: ReadScope,
) -> dict[str, ShownValue]:
    ids_by_alternative = {name: [item.id for item in group] for name, group in alternatives.items()}
    found = match_records(targets, by_id, ids_by_alternative, scope)
    known = {item.id: item for group in alternatives.values() for item in group} | dict(by_id)
    return {
        target: ShownValue(
            known[record_id].name or get_local_id(record_id),
            record_id=record_id,
            vocabulary=_name_other_vocabulary(record, record_id),
        )
        for target, record_id in found.items()
        if record_id != record.id and known[record_id].is_published
    }


def _name_other_vocabulary(record: Record, record_id: str) -> str:
    slug = split_id(record_id)[0]
    return "" if slug == record.collection.vocabulary else VOCABULARIES[slug].title


def _label_types(
    type_names: Sequence[str],
    vocabulary: str,
    names: Mapping[str, str],
    alternatives: Mapping[str, Sequence[RecordMention]],
) -> dict[str, str]:
    """Return the labels of relation types and predicates, as `find_relation_labels` does."""
    labels = {}
    for name in type_names:
        found: list[str] = []
        if vocabulary != MAIN_VOCABULARY and name not in RELATION_TYPES:
            others = [
                item.name
                for item in alternatives.get(name, ())
                if split_id(item.id)[0] == vocabulary and item.is_published
            ]
            found = [label for label in (names.get(name, ""), *others) if label]
        labels[name] = found[0] if found else RELATION_TYPES[name].label
    return labels


def translate_names(snapshot: Snapshot, record_ids: Iterable[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the names of those of these records that have one in a language that their reader wants more."""
    if not wanted:
        return {}
    ranges = _list_ranges(wanted)
    tags = {
        slug: ranges[: ranges.index(item.language)] if item.language in ranges else ranges
        for slug, item in VOCABULARIES.items()
    }
    ids = [record_id for record_id in dict.fromkeys(record_ids) if tags[split_id(record_id)[0]]]
    labels = vocabularies.find_translated_names(snapshot, ids, ranges) if ids else {}
    translated = {}
    for record_id, names in labels.items():
        name = next((names[tag] for tag in tags[split_id(record_id)[0]] if tag in names), None)
        if name is not None:
            translated[record_id] = name
    return translated


def _list_ranges(wanted: Sequence[str]) -> list[str]:
    """Return languages, each followed by less specific ones: `en-GB`, `en`."""
    ranges = [tag.split("-") for tag in wanted if tag != "*"]
    return list(dict.fromkeys("-".join(parts[:end]) for parts in ranges for end in range(len(parts), 0, -1)))
