"""Create and edit records; compute diffs and merge patches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import find_target_problem, get_local_id, mint_id
from lexarium.domain.labels import Alias, build_alias, format_aliases, parse_aliases
from lexarium.domain.record import Record, Relation, build_relations
from lexarium.domain.record_texts import apply_texts, list_draft_texts
from lexarium.domain.schema.collections import ALIAS_FIELDS, RELATION_TYPES, Collection, Fields
from lexarium.domain.schema.predicates import MAPPING_QUALIFIERS
from lexarium.domain.statement import Node, Reference, Statement, Text, Value, dump_statements, normalize
from lexarium.domain.text.timestamps import format_timestamp

# What v-alpha says of the definition of a record.
DEFINITION_METADATA = frozenset({"def_id", "def_id_user", "def_event_stamp"})
# Fields that change only because others do.
DERIVED_FIELDS = ALIAS_FIELDS | DEFINITION_METADATA | {"last_updated"}
# More levels than any draft has; validation refuses what is deeper.
_MAX_PATCH_DEPTH = 10
_QUALIFIER_TYPES = {"confidence": "xsd:double", "date": "xsd:date"}


def to_draft(record: Record) -> dict[str, Any]:
    """Return the editable part of a record in the v1 shape."""
    collection = record.collection
    draft = {name: record.fields[name] for name in collection.editable_fields if name != collection.alias_field}
    return {
        **draft,
        "aliases": [alias.dump() for alias in record.aliases],
        "sources": list(record.sources),
        "relations": _to_draft_relations(record),
        **{key: [text.dump() for text in texts] for key, texts in list_draft_texts(record).items()},
    }


def _to_draft_relations(record: Record) -> dict[str, list[Any]]:
    """Return the targets by relation type. Mappings with qualifiers are objects."""
    qualified = {mapping.relation: mapping.qualifiers for mapping in list_mappings(record) if mapping.qualifiers}
    targets: dict[str, list[Any]] = record.relation_targets
    for relation, qualifiers in qualified.items():
        entries = targets[relation.relation]
        entries[entries.index(relation.target)] = {"target": relation.target, **qualifiers}
    return targets


class QualifiedMapping(NamedTuple):
    """Mapping with its justification, confidence, author and date, of those that it has."""

    relation: Relation
    qualifiers: dict[str, Any]


def list_mappings(record: Record) -> list[QualifiedMapping]:
    """Return the relations of a record to other vocabularies, sorted, with their qualifiers."""
    names = {relation.relation for relation in record.relations}
    mapping_names = {name for name in names if RELATION_TYPES[name].is_mapping}
    if not mapping_names:
        return []
    mappings = sorted(relation for relation in record.relations if relation.relation in mapping_names)
    qualifiers: dict[tuple[str, Value], dict[str, Any]] = {}
    for statement in record.own_statements:
        if statement.qualifiers:
            qualifiers.setdefault(statement[:2], _parse_qualifiers(statement))
    predicates = record.collection.relation_predicates
    return [
        QualifiedMapping(
            item, qualifiers.get((predicates.get(item.relation, item.relation), Reference(item.target)), {})
        )
        for item in mappings
    ]


def _parse_qualifiers(statement: Statement) -> dict[str, Any]:
    values = {predicate: value[0] for predicate, value, _ in statement.qualifiers if not isinstance(value, Node)}
    found = {key: values[predicate] for key, predicate in MAPPING_QUALIFIERS.items() if predicate in values}
    try:
        return {key: float(value) if key == "confidence" else value for key, value in found.items()}
    except ValueError:
        return {key: value for key, value in found.items() if key != "confidence"}


def nest_fields(collection: Collection, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft in the v1 shape, which has the fields that are no core fields under `fields`."""
    names = collection.further_fields
    if names.isdisjoint(draft):
        return dict(draft)
    others = {name: value for name, value in draft.items() if name in names}
    core = {name: value for name, value in draft.items() if name not in names}
    return {**core, "fields": others} if others else core


def flatten_fields(collection: Collection, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft of the v1 shape, or a patch of one, with the fields under `fields` beside the others.

    Raise InvalidInput for fields that are not where they belong.
    """
    fields = draft.get("fields") or {}
    core = {name: value for name, value in draft.items() if name != "fields"}
    if not isinstance(fields, dict):
        raise InvalidInput(f"Invalid {collection.local_name}.", [FieldProblem("fields", "must be an object.")])
    others = collection.editable_fields.keys() - collection.core_fields
    problems = [FieldProblem(name, "belongs under `fields`.") for name in core if name in others]
    if problems:
        raise InvalidInput(f"Invalid {collection.local_name}.", problems)
    # Names that do not belong there keep their place, with which validation refuses them.
    return {**core, **{name if name in others else f"fields/{name}": value for name, value in fields.items()}}


def fill_record(empty: Record, draft: Mapping[str, Any], author: str, definition_author: str, at: int) -> Record:
    """Return a new record with a validated draft, in the v1 or v-alpha shape."""
    collection = empty.collection
    fields = {name: draft[name] for name in collection.editable_fields if name in draft}
    record = empty.state_fields(fields)
    authors = {"id_user": author, "def_id_user": definition_author}
    record = record.assign_fields({name: value for name, value in authors.items() if name in collection.fields})
    return _apply_lists(assign_defaults(record, at), draft)


def apply_draft(record: Record, draft: Mapping[str, Any], definition_author: str, at: int) -> Record:
    """Return a record with a validated draft applied; the same object if nothing changes.

    A changed definition gets a new author.
    """
    fields = {name: draft[name] for name in record.collection.editable_fields if name in draft}
    edited = _apply_lists(record.state_fields(fields), draft)
    return record if edited == record else _update_metadata(record, edited, definition_author, at)


def _apply_lists(record: Record, draft: Mapping[str, Any]) -> Record:
    record = apply_texts(record, draft)
    if "aliases" not in draft:
        return record
    aliases = tuple(build_alias(**alias) for alias in draft["aliases"])
    if aliases != record.aliases:
        record = replace_aliases(record, aliases)
    return _apply_relations(record.with_sources(draft["sources"]), draft["relations"])


def get_target(entry: str | Mapping[str, Any]) -> str:
    """Return the target of an entry of the relations of a draft, which may be an object with qualifiers."""
    return entry if isinstance(entry, str) else str(entry["target"])


def _apply_relations(record: Record, entries_by_type: Mapping[str, Sequence[str | Mapping[str, Any]]]) -> Record:
    """Return the record with these relations. An entry that is a target keeps the qualifiers that there are."""
    targets = {name: list(map(get_target, entries)) for name, entries in entries_by_type.items()}
    record = record.with_relations(build_relations(record.id, targets))
    predicates = record.collection.relation_predicates
    qualifiers: dict[tuple[str, Value], list[Statement]] = {
        (predicates.get(name, name), Reference(entry["target"])): _to_qualifiers(entry)
        for name, entries in entries_by_type.items()
        for entry in entries
        if not isinstance(entry, str)
    }
    if not qualifiers:
        return record
    return replace(
        record, statements=normalize(_replace_qualifiers(item, qualifiers.get(item[:2])) for item in record.statements)
    )


def _replace_qualifiers(statement: Statement, qualifiers: Sequence[Statement] | None) -> Statement:
    if qualifiers is None:
        return statement
    others = (item for item in statement.qualifiers if item.predicate not in MAPPING_QUALIFIERS.values())
    return statement._replace(qualifiers=(*others, *qualifiers))


def _to_qualifiers(entry: Mapping[str, Any]) -> list[Statement]:
    statements = []
    for key, predicate in MAPPING_QUALIFIERS.items():
        if entry.get(key) is not None:
            text = str(entry[key])
            is_id = key not in _QUALIFIER_TYPES and find_target_problem(text) is None
            value = Reference(text) if is_id else Text(text, "", _QUALIFIER_TYPES.get(key, ""))
            statements.append(Statement(predicate, value))
    return statements


def replace_aliases(record: Record, aliases: tuple[Alias, ...], alias: str | None = None) -> Record:
    """Return a record with other aliases, and with `alias` as its v-alpha text unless that is None."""
    field = record.collection.alias_field
    if field is None:
        return record.with_aliases(aliases)
    record = record.state_fields({field: format_aliases(aliases) if alias is None else alias})
    # Aliases that the text fully represents are not stored twice.
    is_represented = parse_aliases(record.fields[field]) == aliases and not record.has_qualified_aliases
    return record.with_aliases(() if is_represented else aliases)


def _update_metadata(before: Record, after: Record, definition_author: str, at: int) -> Record:
    values: Fields = {}
    if "last_updated" in after.fields:
        values["last_updated"] = at
    if "def_id" in after.fields and after.definition != before.definition:
        values |= {"def_id": mint_id("def"), "def_id_user": definition_author, "def_event_stamp": format_timestamp(at)}
    return after.assign_fields(values) if values else after


def apply_merge_patch(target: Any, patch: Any, max_depth: int = _MAX_PATCH_DEPTH) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict) or max_depth == 0:
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = apply_merge_patch(merged.get(name), value, max_depth - 1)
    return merged


def create_merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest merge patch from one draft to another."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if value != old:
            patch[name] = create_merge_patch(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return patch


@dataclass(frozen=True)
class FieldDiff:
    """One field that two versions do not have alike."""

    field: str
    before: Any
    after: Any


def diff_records(before: Record, after: Record) -> list[FieldDiff]:
    """Return the fields that differ between two versions."""
    old, new = _flatten(before), _flatten(after)
    return [FieldDiff(name, old.get(name), new.get(name)) for name in new if old.get(name) != new.get(name)]


def list_changed_fields(before: Record, after: Record) -> list[str]:
    """Return the names of the fields that differ, without derived ones unless there are no others."""
    names = [diff.field for diff in diff_records(before, after)]
    return [name for name in names if name not in DERIVED_FIELDS] or names


def diff_drafts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldDiff]:
    """Return the fields that differ between two drafts."""
    return [FieldDiff(name, before.get(name), value) for name, value in after.items() if before.get(name) != value]


def _flatten(record: Record) -> dict[str, Any]:
    groups = list_draft_texts(record).values()
    shown = {text.statement for texts in groups for text in texts if text.is_complete}
    return {
        **record.fields,
        **to_draft(record),
        "statements": dump_statements(item for item in record.other_statements if item not in shown),
        "state": record.state,
        "replaced_by": None if record.replaced_by is None else get_local_id(record.replaced_by),
    }
