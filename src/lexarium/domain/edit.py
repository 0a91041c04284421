"""Create and edit records; compute diffs and merge patches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lexarium.domain.defaults import assign_defaults
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import get_local_id, mint_id, qualify_id
from lexarium.domain.labels import Alias, format_aliases, parse_aliases
from lexarium.domain.minting import mint
from lexarium.domain.record import Record, build_relations
from lexarium.domain.record_texts import apply_texts
from lexarium.domain.schema.collections import ALIAS_FIELDS, RELATION_TYPES, Collection, Fields
from lexarium.domain.statement import dump_statements
from lexarium.domain.timestamps import format_timestamp
from lexarium.domain.vocabulary import VOCABULARIES

# Fields that change only because others do.
DERIVED_FIELDS = ALIAS_FIELDS | {"last_updated", "def_id", "def_id_user", "def_event_stamp"}
# More levels than any draft has; validation refuses what is deeper.
_MAX_PATCH_DEPTH = 10


def to_draft(record: Record) -> dict[str, Any]:
    """Return the editable part of a record in the v1 shape."""
    collection = record.collection
    draft = {name: record.fields[name] for name in collection.editable_fields if name != collection.alias_field}
    return {
        **draft,
        "aliases": [alias.model_dump() for alias in record.aliases],
        "sources": list(record.sources),
        "relations": list_local_targets(record),
    }


def list_local_targets(record: Record) -> dict[str, list[str]]:
    """Return the targets of the relations of a record by relation type, as ids in its vocabulary."""
    return {name: [get_local_id(target) for target in targets] for name, targets in record.relation_targets.items()}


def nest_fields(collection: Collection, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft in the v1 shape, which has the fields that are no core fields under `fields`."""
    names = collection.fields.keys() - collection.core_fields
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
        raise InvalidInput(
            f"This is not a valid {collection.local_name}.", [FieldProblem("fields", "should be an object.")]
        )
    others = collection.editable_fields.keys() - collection.core_fields
    problems = [FieldProblem(name, "belongs under `fields`.") for name in core if name in others]
    if problems:
        raise InvalidInput(f"This is not a valid {collection.local_name}.", problems)
    # Names that do not belong there keep their place, with which validation refuses them.
    return {**core, **{name if name in others else f"fields/{name}": value for name, value in fields.items()}}


def create_record(
    collection: Collection, draft: Mapping[str, Any], author: str, definition_author: str, at: int
) -> Record:
    """Create a record from a validated draft, in the v1 or v-alpha shape."""
    fields = {name: draft[name] for name in collection.editable_fields if name in draft}
    record_id = qualify_id(collection.vocabulary, draft.get("id") or _mint_id(collection))
    record = Record(collection, record_id).state_fields(fields)
    authors = {"id_user": author, "def_id_user": definition_author}
    record = record.assign_fields({name: value for name, value in authors.items() if name in collection.fields})
    return apply_texts(_apply_lists(assign_defaults(record, at), draft), draft)


def _mint_id(collection: Collection) -> str:
    """Return a new id by the rule of the vocabulary, else a random one with the prefix of the class."""
    rule = VOCABULARIES[collection.vocabulary].minting_rule
    if rule is not None:
        return mint(rule).id
    return mint_id(collection.id_prefixes[0] if collection.id_prefixes else collection.local_name)


def apply_draft(record: Record, draft: Mapping[str, Any], definition_author: str, at: int) -> Record:
    """Return a record with a validated draft applied; the same object if nothing changes.

    A changed definition gets a new author.
    """
    fields = {name: draft[name] for name in record.collection.editable_fields if name in draft}
    edited = apply_texts(_apply_lists(record.state_fields(fields), draft), draft)
    return record if edited == record else _update_metadata(record, edited, definition_author, at)


def _apply_lists(record: Record, draft: Mapping[str, Any]) -> Record:
    if "aliases" not in draft:
        return record
    aliases = tuple(Alias.model_construct(**alias) for alias in draft["aliases"])
    if aliases != record.aliases:
        record = replace_aliases(record, aliases)
    targets = {
        name: [qualify_target(record.collection, name, target) for target in targets]
        for name, targets in draft["relations"].items()
    }
    return record.with_sources(draft["sources"]).with_relations(build_relations(record.id, targets))


def qualify_target(collection: Collection, type_name: str, target: str) -> str:
    """Return the target of a relation of a record of this collection as it is stored, given its id there."""
    if RELATION_TYPES[type_name].is_mapping:
        return target
    return qualify_id(collection.vocabulary, get_local_id(target))


def replace_aliases(record: Record, aliases: tuple[Alias, ...], alias: str | None = None) -> Record:
    """Return a record with other aliases, and with `alias` as its v-alpha text unless that is None."""
    field = record.collection.alias_field
    if field is None:
        return record.with_aliases(aliases)
    record = record.state_fields({field: format_aliases(aliases) if alias is None else alias})
    # Aliases that the text fully represents are not stored twice.
    is_represented = parse_aliases(record.fields[field]) == aliases
    return record.with_aliases(() if is_represented else aliases)


def _update_metadata(before: Record, after: Record, definition_author: str, at: int) -> Record:
    values: Fields = {}
    if "last_updated" in after.fields:
        values["last_updated"] = at
    if "def_id" in after.fields and after.definition != before.definition:
        values |= {"def_id": mint_id("def"), "def_id_user": definition_author, "def_event_stamp": format_timestamp(at)}
    return after.assign_fields(values)


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


def rebase_draft(base: Mapping[str, Any], edited: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the changes between two drafts to a third one."""
    return {name: current[name] if value == base[name] else value for name, value in edited.items()}


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
    return {
        **record.fields,
        **to_draft(record),
        "statements": dump_statements(record.other_statements),
        "state": record.state,
        "replaced_by": None if record.replaced_by is None else get_local_id(record.replaced_by),
    }
