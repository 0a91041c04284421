"""Many writes at once: all of them or nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError, VersionConflict
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import format_json_error
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.lookup import VersionedRecord, require_published, require_version
from lexarium.store.transaction import Transaction

MAX_PROBLEMS = 1_000
"""How many mistakes are told one by one; past that they are only counted."""

_REQUIRED: dict[str, dict[str, type]] = {
    "create": {"collection": str, "record": dict},
    "update": {"id": str, "change": dict},
    "retire": {"id": str},
    "relate": {"id": str, "relation": str, "target": str},
    "unrelate": {"id": str, "relation": str, "target": str},
}
_OPTIONAL: dict[str, dict[str, type]] = {
    "create": {"as": str},
    "update": {"version": int},
    "retire": {"version": int, "replaced_by": str},
    "relate": {"version": int},
    "unrelate": {"version": int},
}
_TYPE_NAMES = {str: "text", int: "a whole number", dict: "an object"}
_ALIAS_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ID_FIELDS = ("id", "target", "replaced_by")
"""The fields of a line that name a record."""
_CLASS_FIELDS = {
    name
    for collection in COLLECTIONS.values()
    for name, id_field in collection.id_fields.items()
    if id_field.collection
}
"""The fields of a draft that name a record."""


def run_batch(transaction: Transaction, caller: Caller, lines: Iterable[tuple[int, bytes]]) -> list[VersionedRecord]:
    """Do every line, a JSON object with its number.

    Raises `Invalid` with the mistakes of all lines; then the transaction must be undone. A `version` may be left out:
    the record is then changed as it is found. `$x` stands for the record that an earlier line has made `as` x.
    """
    caller.require(Permission.PUBLISH)
    batch = _Batch(RecordWriter(transaction, caller))
    for number, line in lines:
        batch.apply_line(number, line)
    return batch.finish()


class _UnresolvedAlias(Exception):
    """A line names a record that an earlier line should have made, and could not."""


class _Batch:
    """The lines that have been done, and the mistakes in them."""

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._saved: list[VersionedRecord] = []
        # New records are saved together: a statement for each would take most of the time.
        self._new_records: list[Record] = []
        self._ids_by_alias: dict[str, str | None] = {}
        """The ids of the records that lines have made, by what they call them; None where one could not be made."""
        self._problems: list[FieldProblem] = []
        self._problem_count = 0

    def apply_line(self, number: int, line: bytes) -> None:
        """Do a line, or note what is wrong with it."""
        parsed: dict[str, Any] = {}
        try:
            parsed = _parse_line(line)
            _validate_line(parsed)
            self._execute(self._resolve_aliases(parsed))
        except _UnresolvedAlias:
            pass  # What is wrong is told of the line that should have made it.
        except InvalidInput as error:
            for problem in error.problems:
                self._add_problem(number, problem.field, f": {problem.field}" if problem.field else "", problem.detail)
        except LexariumError as error:
            self._add_problem(number, "version" if isinstance(error, VersionConflict) else "", ":", str(error))
        else:
            return
        if isinstance(parsed.get("as"), str):
            self._ids_by_alias.setdefault(parsed["as"], None)

    def finish(self) -> list[VersionedRecord]:
        """What was written, line by line. Raises `Invalid` where there were mistakes."""
        if self._problem_count:
            count = "1 mistake" if self._problem_count == 1 else f"{self._problem_count:,} mistakes"
            suffix = f", of which the first {MAX_PROBLEMS:,} are told" if self._problem_count > MAX_PROBLEMS else ""
            raise InvalidInput(f"Nothing was done: {count}{suffix}.", self._problems)
        self._save_new_records()
        return self._saved

    def _add_problem(self, number: int, field: str, subject: str, detail: str) -> None:
        self._problem_count += 1
        if self._problem_count <= MAX_PROBLEMS:
            location = f"{number}/{field}" if field else str(number)
            self._problems.append(FieldProblem(location, detail, f"Line {number}{subject}"))

    def _execute(self, line: Mapping[str, Any]) -> None:
        if line["op"] == "create":
            self._create(line)
            return
        self._save_new_records()
        current = self._writer.get_record(line["id"])
        require_published(current.record)
        if "version" in line:
            require_version(current.change, line["version"])
        self._saved.append(_OPERATIONS[line["op"]](self._writer, current, line))

    def _create(self, line: Mapping[str, Any]) -> None:
        alias = line.get("as")
        if alias in self._ids_by_alias:
            raise InvalidInput("", [FieldProblem("as", f"is {alias}, which an earlier line calls its record.")])
        with _prefix_problems("record"):
            record = self._writer.prepare_record(COLLECTIONS[line["collection"]], line["record"])
        self._new_records.append(record)
        if alias is not None:
            self._ids_by_alias[alias] = record.id

    def _save_new_records(self) -> None:
        self._saved += self._writer.create_records(self._new_records)
        self._new_records = []

    def _resolve_aliases(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line with ids in place of what earlier lines call their records, which are there from now on."""
        problems: list[FieldProblem] = []

        def resolve(location: str, value: Any) -> Any:
            if not isinstance(value, str) or not value.startswith("$"):
                return value
            if value[1:] not in self._ids_by_alias:
                problems.append(
                    FieldProblem(location, f"is {value}, but no earlier line has made a record as {value[1:]}.")
                )
                return value
            record_id = self._ids_by_alias[value[1:]]
            if record_id is None:
                raise _UnresolvedAlias
            self._save_new_records()
            return record_id

        resolved = {name: resolve(name, value) if name in _ID_FIELDS else value for name, value in line.items()}
        for part in ("record", "change"):
            if part in line:
                resolved[part] = _resolve_draft(line[part], part, resolve)
        if problems:
            raise InvalidInput("", problems)
        return resolved


def _resolve_draft(draft: Mapping[str, Any], part: str, resolve: Callable[[str, Any], Any]) -> dict[str, Any]:
    """A draft, or a patch of one, with what `resolve` makes of the records that it names."""
    resolved = {
        name: resolve(f"{part}/{name}", value) if name in _CLASS_FIELDS else value for name, value in draft.items()
    }
    relations = draft.get("relations")
    if isinstance(relations, dict):
        resolved["relations"] = {
            name: [resolve(f"{part}/relations/{name}/{index}", target) for index, target in enumerate(targets)]
            if isinstance(targets, list)
            else targets
            for name, targets in relations.items()
        }
    return resolved


@contextmanager
def _prefix_problems(part: str) -> Iterator[None]:
    """What is wrong with a draft is told as of a part of the line."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            "", [replace(problem, field=f"{part}/{problem.field}") for problem in error.problems]
        ) from None


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("", [FieldProblem("", format_json_error(line, error))]) from None
    if not isinstance(parsed, dict):
        raise InvalidInput("", [FieldProblem("", "is not a JSON object.")])
    return parsed


def _validate_line(line: Mapping[str, Any]) -> None:
    op = line.get("op")
    if not isinstance(op, str) or op not in _REQUIRED:
        raise InvalidInput("", [FieldProblem("op", f"should be one of {', '.join(_REQUIRED)}.")])
    allowed = {"op": str, **_REQUIRED[op], **_OPTIONAL[op]}
    problems = [FieldProblem(name, "is required.") for name in _REQUIRED[op] if name not in line]
    problems += [FieldProblem(name, f"is not a field of {op}.") for name in line if name not in allowed]
    problems += [
        FieldProblem(name, f"should be {_TYPE_NAMES[expected_type]}.")
        for name, expected_type in allowed.items()
        if name in line and type(line[name]) is not expected_type
    ]
    invalid_fields = {problem.field for problem in problems}
    if op == "create" and "collection" not in invalid_fields and line["collection"] not in COLLECTIONS:
        problems.append(FieldProblem("collection", f"should be one of {', '.join(COLLECTIONS)}."))
    if "as" in line and "as" not in invalid_fields and not _ALIAS_PATTERN.fullmatch(line["as"]):
        problems.append(FieldProblem("as", "should have from 1 to 100 letters, digits, - and _."))
    if problems:
        raise InvalidInput("", problems)


def _update(writer: RecordWriter, current: VersionedRecord, line: Mapping[str, Any]) -> VersionedRecord:
    with _prefix_problems("change"):
        return writer.patch(current, line["change"])


_OPERATIONS: dict[str, Callable[[RecordWriter, VersionedRecord, Mapping[str, Any]], VersionedRecord]] = {
    "update": _update,
    "retire": lambda writer, current, line: writer.retire(current, line.get("replaced_by")),
    "relate": lambda writer, current, line: writer.add_relation(current, line["relation"], line["target"]),
    "unrelate": lambda writer, current, line: writer.remove_relation(current, line["relation"], line["target"]),
}
