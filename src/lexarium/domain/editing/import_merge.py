"""Three-way merge of a newer edition of an import.

For each field, it compares the last imported value (base), the current value and the newly imported value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.editing.edit import FieldDiff, replace_aliases
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, parse_aliases
from lexarium.domain.record import Record, RecordState, build_record
from lexarium.domain.schema.collections import COLLECTIONS, Collection, Fields

# Side whose value wins a conflict.
ConflictPreference = Literal["theirs", "ours"]

# Fields of a record, with aliases, sources and state, as JSON values.
RecordValues = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """Record in an import. None, or a missing field, means that the import does not mention it."""

    collection: Collection
    fields: Fields
    aliases: tuple[Alias, ...] | None = None
    sources: tuple[str, ...] | None = None
    state: RecordState | None = None
    replaced_by: str | None = None
    # Fields as a member of further classes, by collection.
    further_fields: Mapping[str, Fields] = field(default_factory=dict)
    # The whole record, if the import states it so.
    record: Record | None = None

    def to_values(self) -> RecordValues:
        """Return the values to compare."""
        values = {name: value for name, value in self.fields.items() if name != "id"}
        if self.aliases is not None:
            values["aliases"] = _normalize_aliases(self.aliases)
        if self.sources is not None:
            values["sources"] = list(self.sources)
        if self.state is not None:
            values["state"] = [self.state, self.replaced_by]
        return values


def keep_stated(
    imported: ImportedRecord, current: Record, stated: Record, *, keeps_values: bool = False
) -> ImportedRecord:
    """Return an imported record with what else is stated about the current one, and what it still has.

    Aliases and sources stay. A single value stays where the import has none, or always with `keeps_values`.
    """

    def choose(name: str, value: Any) -> Any:
        known = stated.fields.get(name)
        return known if known and known == current.fields.get(name) and (keeps_values or not value) else value

    fields = {name: value if name == "id" else choose(name, value) for name, value in imported.fields.items()}
    aliases, sources = imported.aliases, imported.sources
    kept = [alias for alias in stated.aliases if alias in current.aliases]
    alias_text = imported.fields.get(current.collection.alias_field or "")
    if aliases is None and alias_text is not None and kept:
        others = (alias for alias in current.stored_aliases if alias.lang != current.collection.language)
        aliases = (*parse_aliases(alias_text), *others)
        del fields[str(current.collection.alias_field)]
    if aliases is not None:
        aliases = tuple(dict.fromkeys((*aliases, *kept)))
    if sources is not None:
        sources = tuple(dict.fromkeys((*sources, *(item for item in stated.sources if item in current.sources))))
    return replace(imported, fields=fields, aliases=aliases, sources=sources)


@dataclass(slots=True)
class ImportMergeResult:
    """Result of merging an import into a record."""

    record: Record
    # Fields that both sides have changed.
    conflicts: list[FieldDiff] = field(default_factory=list)
    # Imported values, of this or earlier imports, that differ from the record's.
    unapplied: RecordValues = field(default_factory=dict)


def create_imported_record(imported: ImportedRecord, at: int) -> Record:
    """Create a record from an import."""
    record = assign_defaults(_adopt_statements(build_record(imported.collection, imported.fields), imported), at)
    has_no_extras = imported.aliases is None and imported.sources is None and imported.state is None
    if not has_no_extras:
        # Aliases and sources have qualifiers too.
        record = _adopt_statements(_apply_extras(record, imported, imported.to_values()), imported)
    return _apply_further_fields(record, imported)


def to_values(record: Record) -> RecordValues:
    """Return the values of a record to compare."""
    extras = record.aliases, record.sources, record.state, record.replaced_by
    return ImportedRecord(record.collection, record.fields, *extras).to_values()


def merge_import(
    current: Record,
    base: Mapping[str, Any] | None,
    imported: ImportedRecord,
    prefer: ConflictPreference | None,
    at: int,
) -> ImportMergeResult:
    """Merge an import into a record.

    `base` has the values of earlier imports, or is None if the record was not edited since.
    """
    current_values, imported_values = to_values(current), imported.to_values()
    accepted = {
        name: value
        for name, value in imported_values.items()
        if current_values[name] != value and not current.has_text(name, value)
    }
    conflicts = []
    if base is not None:
        for name in [name for name in accepted if base.get(name, current_values[name]) != current_values[name]]:
            both_changed = base[name] != imported_values[name]
            is_editable = name in current.collection.editable_fields or name not in current.fields
            if both_changed and prefer is None and is_editable:
                conflicts.append(FieldDiff(name, current_values[name], imported_values[name]))
            if not both_changed or prefer != "theirs":
                del accepted[name]
    record = _adopt_statements(_apply_values(current, imported, accepted, at), imported)
    record = _apply_further_fields(record, imported)
    if base is None:
        return ImportMergeResult(record)
    merged_values = to_values(record)
    # Both represent the same aliases, so only the one that was imported is compared.
    alias_field = current.collection.alias_field or ""
    redundant = (
        {alias_field} if "aliases" in imported_values else {"aliases"} if alias_field in imported_values else set()
    )
    # A conflict keeps its base until it is resolved.
    ignored = {conflict.field for conflict in conflicts}
    latest = {**base, **{name: value for name, value in imported_values.items() if name not in ignored}}
    unapplied = {
        name: value for name, value in latest.items() if merged_values.get(name) != value and name not in redundant
    }
    return ImportMergeResult(record, conflicts, unapplied)


def _apply_values(current: Record, imported: ImportedRecord, accepted: RecordValues, at: int) -> Record:
    record = current
    if "definition_text" in accepted:
        # A new definition gets the imported author and time, or new ones.
        record = record.drop_fields([name for name in record.fields if name.startswith("def_")])
        accepted |= {name: value for name, value in imported.fields.items() if name.startswith("def_")}
    elif imported.fields.get("definition_text", definition := record.fields.get("definition_text")) != definition:
        accepted = {name: value for name, value in accepted.items() if not name.startswith("def_")}
    if not accepted:
        return current
    record = record.state_fields({name: value for name, value in accepted.items() if name in current.fields})
    is_same_time = current.fields.get("last_updated") == imported.fields.get("last_updated")
    if "last_updated" not in accepted and not is_same_time:
        record = record.assign_fields({"last_updated": at})
    return _apply_extras(assign_defaults(record, at), imported, accepted)


def _apply_extras(record: Record, imported: ImportedRecord, accepted: RecordValues) -> Record:
    field = record.collection.alias_field or ""
    if "aliases" in accepted and imported.aliases is not None:
        record = replace_aliases(record, imported.aliases, imported.fields.get(field))
    elif field in accepted and record.stored_aliases:
        aliases = _update_alias_texts(record.stored_aliases, accepted[field])
        record = replace_aliases(record, aliases, accepted[field])
    if "sources" in accepted and imported.sources is not None:
        record = record.with_sources(imported.sources)
    if "state" in accepted and imported.state is not None:
        record = replace(record, state=imported.state, replaced_by=imported.replaced_by)
    return record


def _adopt_statements(record: Record, imported: ImportedRecord) -> Record:
    """Add what fields, aliases, sources and relations do not show. Nothing that the record has is removed."""
    if imported.record is None:
        return record
    return record.adopt_qualifiers(imported.record).add_statements(imported.record.other_statements)


def _apply_further_fields(record: Record, imported: ImportedRecord) -> Record:
    """Apply the values of further classes. Nobody edits them, so they need no merging."""
    for name, fields in imported.further_fields.items():
        record = record.with_class(COLLECTIONS[name], fields)
    return record


def _update_alias_texts(aliases: tuple[Alias, ...], alias_text: str) -> tuple[Alias, ...]:
    """Return the aliases of a new alias text, with known language and scope, and those in other languages."""
    aliases_by_text = {alias.text: alias for alias in aliases if alias.lang == DEFAULT_LANGUAGE}
    others = tuple(alias for alias in aliases if alias.lang != DEFAULT_LANGUAGE)
    return tuple(aliases_by_text.get(alias.text, alias) for alias in parse_aliases(alias_text)) + others


def _normalize_aliases(aliases: tuple[Alias, ...]) -> list[list[str]]:
    """Return aliases as sorted lists, since their order has no meaning."""
    return sorted([alias.text, alias.lang, alias.scope] for alias in aliases)
