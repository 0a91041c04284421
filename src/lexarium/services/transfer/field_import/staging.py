"""Validate parsed records and add them to the import stage."""

from collections.abc import Iterator
from typing import Any

import orjson

from lexarium.domain import labels
from lexarium.domain.identifiers import MAX_ID_BYTES, find_target_problem, is_id_too_long, qualify_id
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.rendering import get_filter_columns
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields
from lexarium.domain.statement import pack_statements
from lexarium.domain.text.characters import find_direction_control, find_unstorable_char, name_key
from lexarium.domain.text.numbers import format_count
from lexarium.formats.foreign_ids import build_name_reference
from lexarium.formats.parsed import ParsedRecord, WarningCounter
from lexarium.services.transfer.field_import import history
from lexarium.services.transfer.field_import.matching import may_be_foreign_id
from lexarium.services.transfer.import_report import ProblemList, WarningList
from lexarium.store.imports.history_stage import StagedVersion
from lexarium.store.imports.stage import NO_FILTER_COLUMNS, ImportStage

_NUL = b"\\u0000"


class RecordStager:
    """Validate and stage parsed records; collect problems and warnings."""

    def __init__(self, stage: ImportStage, problems: ProblemList, warnings: WarningList) -> None:
        self._stage = stage
        self._problems = problems
        self._warnings = warnings
        self._source = 0
        self.staged_count = 0
        self._counted_warnings = WarningCounter()
        # Locations of each of them.
        self._counted_locations: dict[str, list[str]] = {}

    def set_source(self, source: str) -> None:
        """Set the source of the records that follow."""
        self._source = self._stage.add_source(source)

    def report_counted_warnings(self) -> None:
        """Report the warnings that are counted over all files. Nothing is staged afterwards."""
        for message in self._counted_warnings:
            location, *others = self._counted_locations[message]
            more = f" and {format_count(len(others), 'other file')}" if others else ""
            self._warnings.add(
                location + more,
                self._counted_warnings.format_message(message),
                is_loss=self._counted_warnings.is_loss(message),
            )

    def stage(self, parsed: ParsedRecord) -> None:
        """Stage a record, or report its problems."""
        problems, fields = parsed.problems, parsed.fields
        key, data, extras = "", b"", b""
        filter_columns = NO_FILTER_COLUMNS
        version: StagedVersion | None = None
        if parsed.collection and not problems:
            collection = COLLECTIONS[parsed.collection]
            if parsed.version is not None and (parsed.plain_record or parsed.record):
                # Its statements are checked already.
                _retire_without_target(parsed)
                version = history.build_version(self._source, parsed, parsed.version)
                data = version.document
            else:
                is_complete = _is_complete(parsed, collection)
                if not is_complete:
                    self._drop_unknown_fields(parsed, collection)
                _retire_without_target(parsed)
                data = _to_json(fields, problems)
                extras = _extras_to_json(parsed, problems)
                if is_complete and not extras:
                    filter_columns = fields["name"], *get_filter_columns(collection, fields)
            key = version.id if version else _build_key(parsed, collection)
            _validate_key(fields.get("id"), parsed.foreign_id, key, problems)
            # ASCII without character references cannot hold such characters: most records are checked no further.
            if b"&#" in data or not data.isascii() or not extras.isascii():
                _warn_direction_controls(parsed)
        if problems or parsed.warnings or parsed.counted_warnings:
            self._report_issues(parsed)
        self.staged_count += key != ""
        if not key or problems:
            return
        if parsed.version is not None:
            self._stage.history.add(version or history.build_version(self._source, parsed, parsed.version))
        else:
            self._stage.add_record(key, parsed.collection, self._source, parsed.line, data, extras, filter_columns)
            self._stage_foreign_ids(key, parsed)
            if parsed.relations or parsed.complete_relations:
                self._stage_relations(key, parsed)

    def _report_issues(self, parsed: ParsedRecord) -> None:
        location = self._stage.format_location(self._source, parsed.line)
        column = f", column {parsed.column}" if parsed.column else ""
        for problem in parsed.problems:
            self._problems.add(location + column, problem)
        for warning in parsed.warnings:
            self._warnings.add(location, warning.message, is_loss=warning.is_loss)
        if parsed.counted_warnings:
            self._counted_warnings.update(parsed.counted_warnings)
            for message in parsed.counted_warnings:
                self._counted_locations.setdefault(message, []).append(location)

    def _drop_unknown_fields(self, parsed: ParsedRecord, collection: Collection) -> None:
        for name in [name for name in parsed.fields if name not in collection.field_types]:
            del parsed.fields[name]
            parsed.warn(f"{name} is not a field of {parsed.collection}; it was skipped", is_loss=True)

    def _stage_foreign_ids(self, key: str, parsed: ParsedRecord) -> None:
        if "id" not in parsed.fields:
            label = None if parsed.foreign_id else name_key(parsed.fields["name"])
            self._stage.add_foreign_id(key, parsed.collection, label)
        if parsed.replaced_by is not None and _is_unresolved(parsed, parsed.replaced_by):
            self._stage.add_reference(parsed.replaced_by)

    def _stage_relations(self, key: str, parsed: ParsedRecord) -> None:
        resolved: list[Relation] = []
        has_id = "id" in parsed.fields
        for relation in parsed.relations:
            is_external = RELATION_TYPES[relation.relation].is_mapping
            if is_external and (reason := find_target_problem(relation.target)):
                location = self._stage.format_location(self._source, parsed.line)
                message = f"{relation.relation} to {relation.target!r} was skipped: it {reason}"
                self._warnings.add(location, message, is_loss=True)
                continue
            endpoints = (relation.source,) if is_external else (relation.source, relation.target)
            if has_id and (parsed.targets_are_ids or not any(map(may_be_foreign_id, endpoints))):
                resolved.append(relation)
                continue
            for endpoint in endpoints:
                if endpoint == key or _is_unresolved(parsed, endpoint):
                    self._stage.add_reference(endpoint)
            self._stage.add_unresolved_relation(relation, self._source, parsed.line, by_hand=parsed.is_manual)
        self._stage.add_relations(key, resolved, parsed.complete_relations)


def _build_key(parsed: ParsedRecord, collection: Collection) -> str:
    """Return the id of a record, its foreign id, or a reference by its name; empty if it has none of them."""
    fields = parsed.fields
    if fields.get("id"):
        return qualify_id(collection.vocabulary, fields["id"])
    if parsed.foreign_id or not fields.get("name"):
        return parsed.foreign_id
    return build_name_reference(parsed.collection, fields["name"])


def _is_complete(parsed: ParsedRecord, collection: Collection) -> bool:
    """Return whether a record has all fields of v-alpha in order, and no others."""
    names = collection.valpha_field_names
    return bool(names) and tuple(parsed.fields) == names and parsed.is_typed


def _retire_without_target(parsed: ParsedRecord) -> None:
    """Retire a record that is merged into nothing or itself."""
    if parsed.state == RecordState.MERGED and parsed.replaced_by in (None, parsed.fields.get("id"), parsed.foreign_id):
        parsed.state, parsed.replaced_by = RecordState.RETIRED, None
        parsed.warn("it is marked as merged, but not into another record; it is retired")


def _is_unresolved(parsed: ParsedRecord, foreign_id: str) -> bool:
    return may_be_foreign_id(foreign_id) and not parsed.targets_are_ids


def _validate_key(record_id: str | None, foreign_id: str, key: str, problems: list[str]) -> None:
    if not key:
        problems.append("it has neither an id nor a name")
    elif record_id is not None:
        if is_id_too_long(record_id):
            problems.append(f"its id has more than {MAX_ID_BYTES} bytes")
        if "\x1f" in record_id:
            problems.append("its id contains the character U+001F, which is not allowed")
    elif foreign_id and (reason := find_target_problem(foreign_id)):
        problems.append(f"what the file calls it, {foreign_id!r}, {reason}")


def _warn_direction_controls(parsed: ParsedRecord) -> None:
    """Warn of labels with bidirectional control characters, which forms do not accept."""
    fields = parsed.fields
    names = {
        "name": [fields.get("name", "")],
        "alias": labels.split_alias_texts(fields.get("alias", "")),
        "aliases": [alias.text for alias in parsed.aliases or (parsed.record.stored_aliases if parsed.record else ())],
    }
    for field, values in names.items():
        if char := find_direction_control("".join(values)):
            record = fields.get("id") or parsed.foreign_id or ascii(fields["name"])
            parsed.warn(f"{field} of {record} contains the bidirectional control character {char}")


def _to_json(values: Fields, problems: list[str]) -> bytes:
    try:
        data = orjson.dumps(values)
    except TypeError:
        data = _NUL
    # A search for one byte is faster, and few records have it.
    if b"\\" in data and _NUL in data:
        record = values.get("id", "the record")
        for name, value in values.items():
            # The match may also be an escaped backslash before u0000.
            if char := find_unstorable_char("".join(_iter_texts(value))):
                problems.append(f"{name} of {record} contains the character {char}, which cannot be stored")
    return data


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(item)


def _extras_to_json(parsed: ParsedRecord, problems: list[str]) -> bytes:
    """Return aliases, sources, state and statements as JSON; nothing if the file has none."""
    extras: dict[str, Any] = {}
    if parsed.aliases is not None:
        extras["aliases"] = [{"text": alias.text, "lang": alias.lang, "scope": alias.scope} for alias in parsed.aliases]
    if parsed.sources is not None:
        extras["sources"] = parsed.sources
    if parsed.state is not None:
        extras |= {"state": parsed.state, "replaced_by": parsed.replaced_by}
        extras["loosely"] = parsed.replaced_by is not None and _is_unresolved(parsed, parsed.replaced_by)
    if parsed.record is not None:
        extras["statements"] = pack_statements(parsed.record.statements)
    return _to_json(extras, problems) if extras else b""
