"""A newer edition of what was imported before: what of it is taken, and what people made of a record since stays.

Three are compared, field by field: what the last import told, what the record is, and what this import tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lexarium.domain.defaults import fill_defaults
from lexarium.domain.edit import FieldDiff, replace_aliases
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, parse_aliases
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields

ConflictPreference = Literal["theirs", "ours"]
"""Whose value stands where a file and people have changed the same: the file's, or ours. Either way without remark."""

RecordValues = dict[str, Any]
"""Field by field what a record is, or was told to be, in a form that JSON can say: also aliases, sources and state."""


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """What an import tells of a record. What is None, or no field, it does not tell."""

    collection: Collection
    fields: Fields
    aliases: tuple[Alias, ...] | None = None
    sources: tuple[str, ...] | None = None
    state: RecordState | None = None
    replaced_by: str | None = None

    def to_values(self) -> RecordValues:
        """It, field by field."""
        values = {name: value for name, value in self.fields.items() if name != "id"}
        if self.aliases is not None:
            values["aliases"] = _normalize_aliases(self.aliases)
        if self.sources is not None:
            values["sources"] = list(self.sources)
        if self.state is not None:
            values["state"] = [self.state, self.replaced_by]
        return values


@dataclass(slots=True)
class ImportMergeResult:
    """What becomes of a record that an import tells of."""

    record: Record
    conflicts: list[FieldDiff] = field(default_factory=list)
    """What both sides have changed, ours and theirs."""
    unapplied: RecordValues = field(default_factory=dict)
    """What imports have told, now or before, where the record is something else."""


def create_imported_record(imported: ImportedRecord, at: int) -> Record:
    """A record that was not there before."""
    record = Record(imported.collection, fill_defaults(imported.collection, imported.fields, at))
    has_no_extras = imported.aliases is None and imported.sources is None and imported.state is None
    return record if has_no_extras else _apply_extras(record, imported, imported.to_values())


def to_values(record: Record) -> RecordValues:
    """A record, field by field."""
    values = {name: value for name, value in record.fields.items() if name != "id"}
    return values | {
        "aliases": _normalize_aliases(record.aliases),
        "sources": list(record.sources),
        "state": [record.state, record.replaced_by],
    }


def build_empty_base(record: Record) -> Record:
    """What imports told of a record that people made, and none ever told of: nothing but its id."""
    return Record(record.collection, fill_defaults(record.collection, {"id": record.id, "def_id": ""}, 0))


def merge_import(
    current: Record,
    base: Mapping[str, Any] | None,
    imported: ImportedRecord,
    prefer: ConflictPreference | None,
    at: int,
) -> ImportMergeResult:
    """The record as it shall be. `base` is what imports told before; None: nobody has changed it since."""
    current_values, imported_values = to_values(current), imported.to_values()
    accepted = {name: value for name, value in imported_values.items() if current_values[name] != value}
    conflicts = []
    if base is not None:
        for name in [name for name in accepted if base.get(name, current_values[name]) != current_values[name]]:
            both_changed = base[name] != imported_values[name]
            if (
                both_changed
                and prefer is None
                and (name in current.collection.editable_fields or name not in current.fields)
            ):
                conflicts.append(FieldDiff(name, current_values[name], imported_values[name]))
            if not both_changed or prefer != "theirs":
                del accepted[name]
    record = _apply_values(current, imported, accepted, at)
    if base is None:
        return ImportMergeResult(record)
    merged_values = to_values(record)
    # The two say the same: of the one that was not told, nothing is known.
    redundant = {"alias"} if "aliases" in imported_values else {"aliases"} if "alias" in imported_values else set()
    # What is a conflict stays one, with the same base, until someone says whose value stands.
    resolved = {
        name: value for name, value in imported_values.items() if name not in {conflict.field for conflict in conflicts}
    }
    unapplied = {name: value for name, value in {**base, **resolved}.items() if merged_values.get(name) != value}
    return ImportMergeResult(
        record, conflicts, {name: value for name, value in unapplied.items() if name not in redundant}
    )


def _apply_values(current: Record, imported: ImportedRecord, accepted: RecordValues, at: int) -> Record:
    current_fields = current.fields
    if "definition_text" in accepted:
        # It is another definition: whose it is and since when is as told, or new.
        current_fields = {name: value for name, value in current_fields.items() if not name.startswith("def_")}
        accepted |= {name: value for name, value in imported.fields.items() if name.startswith("def_")}
    elif imported.fields.get("definition_text", current_fields.get("definition_text")) != current_fields.get(
        "definition_text"
    ):
        accepted = {name: value for name, value in accepted.items() if not name.startswith("def_")}
    if not accepted:
        return current
    if "last_updated" not in accepted and current_fields.get("last_updated") != imported.fields.get("last_updated"):
        accepted = {**accepted, "last_updated": at}
    fields = fill_defaults(
        current.collection, current_fields | {name: accepted[name] for name in accepted if name in current.fields}, at
    )
    return _apply_extras(replace(current, fields=fields), imported, accepted)


def _apply_extras(record: Record, imported: ImportedRecord, accepted: RecordValues) -> Record:
    if "aliases" in accepted and imported.aliases is not None:
        record = replace_aliases(record, imported.aliases, imported.fields.get("alias"))
    elif "alias" in accepted and record.stored_aliases is not None:
        record = replace_aliases(
            record, _update_alias_texts(record.stored_aliases, accepted["alias"]), accepted["alias"]
        )
    if "sources" in accepted and imported.sources is not None:
        record = replace(record, sources=imported.sources)
    if "state" in accepted and imported.state is not None:
        record = replace(record, state=imported.state, replaced_by=imported.replaced_by)
    return record


def _update_alias_texts(aliases: tuple[Alias, ...], alias_text: str) -> tuple[Alias, ...]:
    """The names of a new `alias`, each as it was known before, and those that an `alias` cannot say."""
    aliases_by_text = {alias.text: alias for alias in aliases if alias.lang == DEFAULT_LANGUAGE}
    others = tuple(alias for alias in aliases if alias.lang != DEFAULT_LANGUAGE)
    return tuple(aliases_by_text.get(alias.text, alias) for alias in parse_aliases(alias_text)) + others


def _normalize_aliases(aliases: tuple[Alias, ...]) -> list[list[str]]:
    """Other names in an order of their own: in which they come says nothing."""
    return sorted([alias.text, alias.lang, alias.scope] for alias in aliases)
