"""What codecs read, checked and put where it waits."""

from collections.abc import Iterator
from typing import Any

import orjson

from lexarium.domain import labels
from lexarium.domain.identifiers import MAX_ID_BYTES, find_target_problem, is_id_too_long
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.rendering import get_filter_columns
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.fields import Fields
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.domain.text.characters import find_direction_control, find_unstorable_char, name_key
from lexarium.formats.foreign_ids import build_name_reference
from lexarium.formats.parsed import ParsedRecord
from lexarium.services.transfer import import_history
from lexarium.services.transfer.import_matching import may_be_foreign_id
from lexarium.services.transfer.import_report import ProblemList
from lexarium.store.imports.stage import NO_FILTER_COLUMNS, ImportStage

_NUL = b"\\u0000"


class RecordStager:
    """Takes records, whichever codec made them, and notes what is wrong or odd."""

    def __init__(self, stage: ImportStage, problems: ProblemList, warnings: ProblemList) -> None:
        self._stage = stage
        self._problems = problems
        self._warnings = warnings
        self._source = 0
        self.staged_count = 0
        """How many records have been put there."""

    def set_source(self, source: str) -> None:
        """From now on records come from there."""
        self._source = self._stage.add_source(source)

    def stage(self, parsed: ParsedRecord) -> None:
        """Put a record where it waits; one that has problems is only told of."""
        problems, fields = parsed.problems, parsed.fields
        key, data, extras = "", b"", b""
        filter_columns = NO_FILTER_COLUMNS
        if parsed.collection and not problems:
            is_complete = tuple(fields) == COLLECTIONS[parsed.collection].field_names
            if not is_complete:
                self._drop_unknown_fields(parsed)
            _retire_without_target(parsed)
            name = fields.get("name")
            key = (
                fields.get("id") or parsed.foreign_id or (build_name_reference(parsed.collection, name) if name else "")
            )
            data = _to_json(fields, problems)
            extras = _extras_to_json(parsed, problems)
            if is_complete and not extras:
                filter_columns = fields["name"], *get_filter_columns(fields)
            _validate_key(fields.get("id"), parsed.foreign_id, key, problems)
            # Most records cannot contain such characters, neither as they are nor as `&#8238;`.
            if b"&#" in data or not data.isascii() or not extras.isascii():
                _warn_direction_controls(parsed)
        if problems or parsed.warnings:
            self._report_issues(parsed)
        self.staged_count += key != ""
        if key and not problems and parsed.version is not None:
            import_history.stage_version(self._stage, self._source, parsed, parsed.version)
        elif key and not problems:
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
            self._warnings.add(location, warning)

    def _drop_unknown_fields(self, parsed: ParsedRecord) -> None:
        known_fields = COLLECTIONS[parsed.collection].field_types
        for name in [name for name in parsed.fields if name not in known_fields]:
            del parsed.fields[name]
            parsed.warnings.append(f"{name} is not a field of {parsed.collection}; it was left out")

    def _stage_foreign_ids(self, key: str, parsed: ParsedRecord) -> None:
        if "id" not in parsed.fields:
            label = None if parsed.foreign_id else name_key(parsed.fields["name"])
            self._stage.add_foreign_id(key, parsed.collection, label)
        if parsed.replaced_by is not None and _is_unresolved(parsed, parsed.replaced_by):
            self._stage.add_reference(parsed.replaced_by)

    def _stage_relations(self, key: str, parsed: ParsedRecord) -> None:
        resolved: list[Relation] = []
        # Where nothing but ids is told, no end can be anything else.
        ids_only = parsed.targets_are_ids and "id" in parsed.fields
        for relation in parsed.relations:
            if ids_only and RELATION_TYPES[relation.relation].target_collection is not None:
                resolved.append(relation)
                continue
            is_external = RELATION_TYPES[relation.relation].target_collection is None
            if is_external and (reason := find_target_problem(relation.target)):
                location = self._stage.format_location(self._source, parsed.line)
                self._warnings.add(location, f"{relation.relation} to {relation.target!r} was left out: it {reason}")
                continue
            foreign_ids = [
                endpoint
                for endpoint in (relation.source, *(() if is_external else (relation.target,)))
                if _is_unresolved(parsed, endpoint) or endpoint == key
            ]
            if "id" in parsed.fields and not any(_is_unresolved(parsed, foreign_id) for foreign_id in foreign_ids):
                resolved.append(relation)
                continue
            for foreign_id in foreign_ids:
                self._stage.add_reference(foreign_id)
            self._stage.add_unresolved_relation(relation, self._source, parsed.line, by_hand=parsed.is_manual)
        self._stage.add_relations(key, resolved, parsed.complete_relations)


def _retire_without_target(parsed: ParsedRecord) -> None:
    """A record that is merged into nothing, or itself, is only retired."""
    if parsed.state is None or parsed.state != RecordState.MERGED:
        return
    if parsed.replaced_by in (None, parsed.fields.get("id"), parsed.foreign_id):
        parsed.state, parsed.replaced_by = RecordState.RETIRED, None
        parsed.warnings.append("it is told as merged, but into no other record; it is retired")


def _is_unresolved(parsed: ParsedRecord, foreign_id: str) -> bool:
    """Whether what a record names another by may be no id of ours."""
    return may_be_foreign_id(foreign_id) and not parsed.targets_are_ids


def _validate_key(record_id: str | None, foreign_id: str, key: str, problems: list[str]) -> None:
    if not key:
        problems.append("it has neither an id nor a name")
    elif record_id is not None:
        if is_id_too_long(record_id):
            problems.append(f"its id has more than {MAX_ID_BYTES} bytes")
    elif foreign_id and (reason := find_target_problem(foreign_id)):
        problems.append(f"what the file calls it, {foreign_id!r}, {reason}")


def _warn_direction_controls(parsed: ParsedRecord) -> None:
    """Warn of names that people could not have written because of a bidirectional control character."""
    fields = parsed.fields
    names = {
        "name": [fields.get("name", "")],
        "alias": labels.split_alias_texts(fields.get("alias", "")),
        "aliases": [alias.text for alias in parsed.aliases or ()],
    }
    for field, values in names.items():
        if char := find_direction_control("".join(values)):
            record = fields.get("id") or parsed.foreign_id or ascii(fields["name"])
            parsed.warnings.append(f"{field} of {record} contains the bidirectional control character {char}")


def _to_json(values: Fields, problems: list[str]) -> bytes:
    try:
        data = orjson.dumps(values)
    except TypeError:
        data = _NUL
    # The one sign is found sooner than all six, and few have it.
    if b"\\" in data and _NUL in data:
        # It may also be the text \\u0000 itself.
        for name, value in values.items():
            char = find_unstorable_char("".join(_iter_texts(value)))
            if char:
                problems.append(
                    f"{name} of {values.get('id', 'the record')} holds the character {char}, which cannot be stored"
                )
    return data


def _iter_texts(value: Any) -> Iterator[str]:
    """All text within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(item)


def _extras_to_json(parsed: ParsedRecord, problems: list[str]) -> bytes:
    """What is told besides fields, as JSON; empty where nothing is."""
    if parsed.aliases is None and parsed.sources is None and parsed.state is None:
        return b""
    extras: dict[str, Any] = {}
    if parsed.aliases is not None:
        extras["aliases"] = [{"text": alias.text, "lang": alias.lang, "scope": alias.scope} for alias in parsed.aliases]
    if parsed.sources is not None:
        extras["sources"] = parsed.sources
    if parsed.state is not None:
        extras |= {"state": parsed.state, "replaced_by": parsed.replaced_by}
        extras["loosely"] = parsed.replaced_by is not None and _is_unresolved(parsed, parsed.replaced_by)
    return _to_json(extras, problems)
