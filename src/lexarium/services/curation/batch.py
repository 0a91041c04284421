"""Apply a batch of JSON lines, all or nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.editing.edit import flatten_fields
from lexarium.domain.editing.validation import is_object
from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError, NotFound, VersionConflict
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.text.characters import find_control_char, format_json_error
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.lookup import VersionedRecord, get_published
from lexarium.services.vocabularies.access import ReadScope, find_collection
from lexarium.store.transaction import Transaction

MAX_PROBLEMS = 1_000  # listed; the others are counted

# Required and optional fields of each operation.
_FIELDS: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "create": ({"collection": str, "record": dict}, {"as": str, "vocabulary": str}),
    "update": ({"id": str, "change": dict}, {"version": int, "vocabulary": str}),
    "retire": ({"id": str}, {"version": int, "vocabulary": str, "replaced_by": str}),
    "relate": ({"id": str, "relation": str, "target": str}, {"version": int, "vocabulary": str}),
    "unrelate": ({"id": str, "relation": str, "target": str}, {"version": int, "vocabulary": str}),
}
_TYPE_NAMES = {str: "text", int: "a whole number", dict: "an object"}
_ALIAS_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,100}")
# Fields of a line, and of a draft, that refer to a record.
_ID_FIELDS = ("id", "target", "replaced_by")
_CLASS_FIELDS = {name for collection in MAIN_COLLECTIONS.values() for name in collection.class_fields}


def run_batch(  # noqa: PLR0913, PLR0917 (a request)
    transaction: Transaction,
    caller: Caller,
    lines: Iterable[tuple[int, bytes]],
    scope: ReadScope,
    vocabulary: str,
    summary: str = "",
) -> list[VersionedRecord]:
    """Apply numbered lines, each a JSON object; return the written records.

    Raise InvalidInput with the problems of all lines; the transaction must then be rolled back. Without a `version` the
    current one is changed. `$x` refers to the record that an earlier line created with `"as": "x"`. Lines that name no
    vocabulary of the scope are about the one given.
    """
    batch = _Batch(transaction, RecordWriter(transaction, caller, summary=summary), scope, vocabulary)
    for number, line in lines:
        batch.apply_line(number, line)
    return batch.finish()


class _UnresolvedAlias(Exception):
    """A line refers to a record that an earlier line failed to create."""


class _Batch:
    def __init__(self, transaction: Transaction, writer: RecordWriter, scope: ReadScope, vocabulary: str) -> None:
        self._transaction = transaction
        self._scope = scope
        self._vocabulary = vocabulary
        self._writer = writer
        self._saved: list[VersionedRecord] = []
        # New records are saved together: one statement for each would take most of the time.
        self._new_records: list[Record] = []
        # None if the record could not be created.
        self._ids_by_alias: dict[str, str | None] = {}
        self._problems: list[FieldProblem] = []
        self._problem_count = 0

    def apply_line(self, number: int, line: bytes) -> None:
        """Apply a line, or add its problems."""
        parsed: dict[str, Any] = {}
        try:
            parsed = _parse_line(line)
            _validate_line(parsed)
            self._execute(self._resolve_aliases(parsed), self._find_vocabulary(parsed))
        except _UnresolvedAlias:
            pass  # The line that should have created the record has the problem.
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
        """Return the written records, line by line; raise InvalidInput if there are problems."""
        if self._problem_count:
            count = "1 problem" if self._problem_count == 1 else f"{self._problem_count:,} problems"
            suffix = f" (first {MAX_PROBLEMS:,} shown)" if self._problem_count > MAX_PROBLEMS else ""
            raise InvalidInput(f"Batch rejected: {count}{suffix}.", self._problems)
        self._save_new_records()
        return self._saved

    def _add_problem(self, number: int, field: str, subject: str, detail: str) -> None:
        self._problem_count += 1
        if self._problem_count <= MAX_PROBLEMS:
            location = f"{number}/{field}" if field else str(number)
            self._problems.append(FieldProblem(location, detail, f"Line {number}{subject}"))

    def _find_vocabulary(self, line: Mapping[str, Any]) -> str:
        slug: str = line.get("vocabulary", self._vocabulary)
        if slug not in self._scope.slugs:
            problem = FieldProblem("vocabulary", f"must be one of {', '.join(self._scope.slugs)}.")
            raise InvalidInput("", [problem])
        return slug

    def _execute(self, line: Mapping[str, Any], vocabulary: str) -> None:
        if line["op"] == "create":
            self._create(line, vocabulary)
            return
        self._save_new_records()
        if find_control_char(line["id"]):
            raise NotFound(f"Record {line['id']!r} not found.")
        record_id = qualify_id(vocabulary, line["id"])
        current = get_published(self._transaction.flush(), None, record_id, line.get("version"))
        self._saved.append(_OPERATIONS[line["op"]](self._writer, current, line))

    def _create(self, line: Mapping[str, Any], vocabulary: str) -> None:
        alias = line.get("as")
        if alias in self._ids_by_alias:
            raise InvalidInput("", [FieldProblem("as", f"is {alias}, which an earlier line already uses.")])
        collection = find_collection(ReadScope((vocabulary,), is_chosen=True), line["collection"])
        if "id" in line["record"]:
            self._save_new_records()  # so that an id that one of them has is seen as taken
        with _prefix_problems("record"):
            record = self._writer.prepare_record(collection, flatten_fields(collection, line["record"]))
        self._new_records.append(record)
        if "id" in line["record"]:
            self._save_new_records()
        if alias is not None:
            self._ids_by_alias[alias] = record.local_id

    def _save_new_records(self) -> None:
        self._saved += self._writer.create_records(self._new_records)
        self._new_records = []

    def _resolve_aliases(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the aliases in a line by ids, and save the records so that they can be referred to."""
        problems: list[FieldProblem] = []

        def resolve(location: str, value: Any) -> Any:
            if not isinstance(value, str) or not value.startswith("$"):
                return value
            if value[1:] not in self._ids_by_alias:
                detail = f"is {value}, but no earlier line created a record as {value[1:]}."
                problems.append(FieldProblem(location, detail))
                return value
            record_id = self._ids_by_alias[value[1:]]
            if record_id is None:
                raise _UnresolvedAlias
            self._save_new_records()
            return record_id

        resolved = {name: resolve(name, value) if name in _ID_FIELDS else value for name, value in line.items()}
        for part in ("record", "change"):
            if part in line:
                resolved[part] = self._resolve_draft(line[part], part, resolve)
        if problems:
            raise InvalidInput("", problems)
        return resolved

    def _resolve_draft(self, draft: Mapping[str, Any], part: str, resolve: Callable[[str, Any], Any]) -> dict[str, Any]:
        """Resolve the aliases in a draft or a patch of one."""
        resolved = {
            name: resolve(f"{part}/{name}", value) if name in _CLASS_FIELDS else value for name, value in draft.items()
        }

        def resolve_target(location: str, entry: Any) -> Any:
            # One with qualifiers.
            if is_object(entry):
                return {**entry, "target": resolve(f"{location}/target", entry["target"])}
            return resolve(location, entry)

        relations = draft.get("relations")
        if isinstance(relations, dict):
            resolved["relations"] = {
                name: [
                    resolve_target(f"{part}/relations/{name}/{index}", target) for index, target in enumerate(targets)
                ]
                if isinstance(targets, list)
                else targets
                for name, targets in relations.items()
            }
        return resolved


@contextmanager
def _prefix_problems(part: str) -> Iterator[None]:
    """Prefix the fields of problems with the part of the line that holds the draft."""
    try:
        yield
    except InvalidInput as error:
        problems = [replace(problem, field=f"{part}/{problem.field}") for problem in error.problems]
        raise InvalidInput("", problems) from None


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
    if not isinstance(op, str) or op not in _FIELDS:
        raise InvalidInput("", [FieldProblem("op", f"must be one of {', '.join(_FIELDS)}.")])
    required, optional = _FIELDS[op]
    allowed = {"op": str, **required, **optional}
    problems = [FieldProblem(name, "is required.") for name in required if name not in line]
    problems += [FieldProblem(name, f"is not a field of {op}.") for name in line if name not in allowed]
    problems += [
        FieldProblem(name, f"must be {_TYPE_NAMES[expected_type]}.")
        for name, expected_type in allowed.items()
        if name in line and type(line[name]) is not expected_type
    ]
    invalid_fields = {problem.field for problem in problems}
    if "as" in line and "as" not in invalid_fields and not _ALIAS_PATTERN.fullmatch(line["as"]):
        problems.append(FieldProblem("as", "must have 1 to 100 letters, digits, - and _."))
    if problems:
        raise InvalidInput("", problems)


def _update(writer: RecordWriter, current: VersionedRecord, line: Mapping[str, Any]) -> VersionedRecord:
    with _prefix_problems("change"):
        return writer.patch(current, flatten_fields(current.record.collection, line["change"]))


_OPERATIONS: dict[str, Callable[[RecordWriter, VersionedRecord, Mapping[str, Any]], VersionedRecord]] = {
    "update": _update,
    "retire": lambda writer, current, line: writer.retire(current, line.get("replaced_by")),
    "relate": lambda writer, current, line: writer.add_relation(current, line["relation"], line["target"]),
    "unrelate": lambda writer, current, line: writer.remove_relation(current, line["relation"], line["target"]),
}
