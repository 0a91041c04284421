"""Editing a record: what of it is writable, how a change is applied, and what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.defaults import fill_defaults
from lexarium.domain.identifiers import mint_id
from lexarium.domain.labels import Alias, format_aliases, parse_aliases
from lexarium.domain.record import Record, build_relations
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.timestamps import format_timestamp

DERIVED_FIELDS = frozenset({"alias", "last_updated", "def_id", "def_id_user", "def_event_stamp"})
"""Fields that change only because others do."""
_MAX_PATCH_DEPTH = 10
"""Levels of a patch: no draft has so many, and whoever checks it refuses one that has."""


def to_draft(record: Record) -> dict[str, Any]:
    """All that is writable of a record, as v1 has it."""
    draft = {name: record.fields[name] for name in record.collection.editable_fields if name != "alias"}
    return {
        **draft,
        "aliases": [alias.model_dump() for alias in record.aliases],
        "sources": list(record.sources),
        "relations": record.relation_targets,
    }


def create_record(
    collection: Collection, draft: Mapping[str, Any], author: str, definition_author: str, at: int
) -> Record:
    """A new record, of one person, with a definition of perhaps another. `draft` is checked, of v1 or of v-alpha."""
    record_id = mint_id(collection.id_prefixes[0])
    fields = {name: draft[name] for name in collection.editable_fields if name in draft}
    fields |= {"id": record_id, "id_user": author, "def_id_user": definition_author}
    record = Record(collection, fill_defaults(collection, fields, at))
    return _apply_lists(record, draft)


def apply_draft(record: Record, draft: Mapping[str, Any], definition_author: str, at: int) -> Record:
    """The record with a whole checked draft in place of what it had; itself where nothing differs.

    A definition that is new is `definer`'s.
    """
    fields = {name: draft[name] for name in record.collection.editable_fields if name in draft}
    edited = _apply_lists(replace(record, fields={**record.fields, **fields}), draft)
    if edited == record:
        return record
    return replace(edited, fields=_update_metadata(record.fields, edited.fields, definition_author, at))


def _apply_lists(record: Record, draft: Mapping[str, Any]) -> Record:
    if "aliases" not in draft:
        return record
    aliases = tuple(Alias.model_construct(**alias) for alias in draft["aliases"])
    if aliases != record.aliases:
        record = replace_aliases(record, aliases)
    return replace(record, sources=tuple(draft["sources"]), relations=build_relations(record.id, draft["relations"]))


def replace_aliases(record: Record, aliases: tuple[Alias, ...], alias: str | None = None) -> Record:
    """The record with these other names, and with `alias` as given, or made of them."""
    fields = record.fields
    if "alias" in fields:
        fields = {**fields, "alias": format_aliases(aliases) if alias is None else alias}
    # A list that v-alpha can say whole needs no second keeping.
    return replace(
        record, fields=fields, stored_aliases=None if parse_aliases(fields.get("alias", "")) == aliases else aliases
    )


def _update_metadata(before: Fields, after: Fields, definition_author: str, at: int) -> Fields:
    """The fields with the marks of an edit: a new definition is someone's, at a time, under an id of its own."""
    fields = dict(after)
    if "last_updated" in after:
        fields["last_updated"] = at
    if "def_id" in after and after["definition_text"] != before["definition_text"]:
        fields |= {"def_id": mint_id("def"), "def_id_user": definition_author, "def_event_stamp": format_timestamp(at)}
    return fields


def apply_merge_patch(target: Any, patch: Any, max_depth: int = _MAX_PATCH_DEPTH) -> Any:
    """A JSON merge patch applied (RFC 7396)."""
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
    """The merge patch that makes one draft the other, with nothing in it that they have alike."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if value != old:
            patch[name] = create_merge_patch(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return patch


def rebase_draft(base: Mapping[str, Any], edited: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """A draft that was made of one state of a record, on top of another: what it leaves alone is as it is now."""
    return {name: current[name] if value == base[name] else value for name, value in edited.items()}


@dataclass(frozen=True)
class FieldDiff:
    """One field that two versions do not have alike."""

    field: str
    before: Any
    after: Any


def diff_records(before: Record, after: Record) -> list[FieldDiff]:
    """Field by field, what differs between two versions."""
    old, new = _flatten(before), _flatten(after)
    return [FieldDiff(name, old.get(name), new.get(name)) for name in new if old.get(name) != new.get(name)]


def list_changed_fields(before: Record, after: Record) -> list[str]:
    """The fields in which two versions differ; those that only follow others where there are no others."""
    names = [diff.field for diff in diff_records(before, after)]
    return [name for name in names if name not in DERIVED_FIELDS] or names


def diff_drafts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldDiff]:
    """Field by field, what differs between two drafts."""
    return [FieldDiff(name, before.get(name), value) for name, value in after.items() if before.get(name) != value]


def _flatten(record: Record) -> dict[str, Any]:
    return {**record.fields, **to_draft(record), "state": record.state, "replaced_by": record.replaced_by}
