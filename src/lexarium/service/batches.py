"""Many writes at once: all of them or nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.changes import Whole
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, LexariumError, Problem, Stale
from lexarium.domain.text import not_json
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, refuse_gone, refuse_stale
from lexarium.store.transaction import Transaction

MOST_TOLD = 1_000
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
_TYPES = {str: "text", int: "a whole number", dict: "an object"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_IDENTIFIERS = ("id", "target", "replaced_by")
"""The fields of a line that name a record."""
_CLASSES = {
    name for each in COLLECTIONS.values() for name, refers in each.references.items() if refers.collection
}  # fmt: skip
"""The fields of a draft that name a record."""


def run_batch(transaction: Transaction, caller: Caller, lines: Iterable[tuple[int, bytes]]) -> list[Saved]:
    """Do every line, a JSON object with its number.

    Raises `Invalid` with the mistakes of all lines; then the transaction must be undone. A `version` may be left out:
    the record is then changed as it is found. `$x` stands for the record that an earlier line has made `as` x.
    """
    caller.require(Deed.PUBLISH)
    batch = _Batch(Desk(transaction, caller))
    for number, line in lines:
        batch.take(number, line)
    return batch.done()


class _Unmade(Exception):
    """A line names a record that an earlier line should have made, and could not."""


class _Batch:
    """The lines that have been done, and the mistakes in them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._saved: list[Saved] = []
        # New records are saved together: a statement for each would take most of the time.
        self._new: list[Whole] = []
        self._made: dict[str, str | None] = {}
        """The ids of the records that lines have made, by what they call them; None where one could not be made."""
        self._problems: list[Problem] = []
        self._mistakes = 0

    def take(self, number: int, line: bytes) -> None:
        """Do a line, or note what is wrong with it."""
        given: dict[str, Any] = {}
        try:
            given = _read(line)
            _refuse_malformed(given)
            self._do(self._resolved(given))
        except _Unmade:
            pass  # What is wrong is told of the line that should have made it.
        except Invalid as error:
            for each in error.problems:
                self._note(number, each.field, f": {each.field}" if each.field else "", each.detail)
        except LexariumError as error:
            self._note(number, "version" if isinstance(error, Stale) else "", ":", str(error))
        else:
            return
        if isinstance(given.get("as"), str):
            self._made.setdefault(given["as"], None)

    def done(self) -> list[Saved]:
        """What was written, line by line. Raises `Invalid` where there were mistakes."""
        if self._mistakes:
            count = "1 mistake" if self._mistakes == 1 else f"{self._mistakes:,} mistakes"
            rest = f", of which the first {MOST_TOLD:,} are told" if self._mistakes > MOST_TOLD else ""
            raise Invalid(f"Nothing was done: {count}{rest}.", self._problems)
        self._save_new()
        return self._saved

    def _note(self, number: int, field: str, subject: str, detail: str) -> None:
        self._mistakes += 1
        if self._mistakes <= MOST_TOLD:
            place = f"{number}/{field}" if field else str(number)
            self._problems.append(Problem(place, detail, f"Line {number}{subject}"))

    def _do(self, line: Mapping[str, Any]) -> None:
        if line["op"] == "create":
            self._create(line)
            return
        self._save_new()
        before = self._desk.any(line["id"])
        refuse_gone(before.whole)
        if "version" in line:
            refuse_stale(before.change, line["version"])
        self._saved.append(_DEEDS[line["op"]](self._desk, before, line))

    def _create(self, line: Mapping[str, Any]) -> None:
        name = line.get("as")
        if name in self._made:
            raise Invalid("", [Problem("as", f"is {name}, which an earlier line calls its record.")])
        with _within("record"):
            new = self._desk.draft_new(COLLECTIONS[line["collection"]], line["record"])
        self._new.append(new)
        if name is not None:
            self._made[name] = new.id

    def _save_new(self) -> None:
        self._saved += self._desk.save_new(self._new)
        self._new = []

    def _resolved(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line with ids in place of what earlier lines call their records, which are there from now on."""
        problems: list[Problem] = []

        def resolve(place: str, value: Any) -> Any:
            if not isinstance(value, str) or not value.startswith("$"):
                return value
            if value[1:] not in self._made:
                problems.append(Problem(place, f"is {value}, but no earlier line has made a record as {value[1:]}."))
                return value
            identifier = self._made[value[1:]]
            if identifier is None:
                raise _Unmade
            self._save_new()
            return identifier

        resolved = {name: resolve(name, value) if name in _IDENTIFIERS else value for name, value in line.items()}
        for part in ("record", "change"):
            if part in line:
                resolved[part] = _named_anew(line[part], part, resolve)
        if problems:
            raise Invalid("", problems)
        return resolved


def _named_anew(draft: Mapping[str, Any], part: str, resolve: Callable[[str, Any], Any]) -> dict[str, Any]:
    """A draft, or a patch of one, with what `resolve` makes of the records that it names."""
    named = {name: resolve(f"{part}/{name}", value) if name in _CLASSES else value for name, value in draft.items()}
    relations = draft.get("relations")
    if isinstance(relations, dict):
        named["relations"] = {
            name: [resolve(f"{part}/relations/{name}/{place}", target) for place, target in enumerate(targets)]
            if isinstance(targets, list)
            else targets
            for name, targets in relations.items()
        }
    return named


@contextmanager
def _within(part: str) -> Iterator[None]:
    """What is wrong with a draft is told as of a part of the line."""
    try:
        yield
    except Invalid as error:
        raise Invalid("", [replace(each, field=f"{part}/{each.field}") for each in error.problems]) from None


def _read(line: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Invalid("", [Problem("", not_json(line, error))]) from None
    if not isinstance(given, dict):
        raise Invalid("", [Problem("", "is not a JSON object.")])
    return given


def _refuse_malformed(line: Mapping[str, Any]) -> None:
    op = line.get("op")
    if not isinstance(op, str) or op not in _REQUIRED:
        raise Invalid("", [Problem("op", f"should be one of {', '.join(_REQUIRED)}.")])
    known = {"op": str, **_REQUIRED[op], **_OPTIONAL[op]}
    problems = [Problem(name, "is required.") for name in _REQUIRED[op] if name not in line]
    problems += [Problem(name, f"is not a field of {op}.") for name in line if name not in known]
    problems += [
        Problem(name, f"should be {_TYPES[kind]}.")
        for name, kind in known.items()
        if name in line and type(line[name]) is not kind
    ]
    wrong = {problem.field for problem in problems}
    if op == "create" and "collection" not in wrong and line["collection"] not in COLLECTIONS:
        problems.append(Problem("collection", f"should be one of {', '.join(COLLECTIONS)}."))
    if "as" in line and "as" not in wrong and not _NAME.fullmatch(line["as"]):
        problems.append(Problem("as", "should have from 1 to 100 letters, digits, - and _."))
    if problems:
        raise Invalid("", problems)


def _update(desk: Desk, before: Saved, line: Mapping[str, Any]) -> Saved:
    with _within("change"):
        return desk.patch(before, line["change"])


_DEEDS: dict[str, Callable[[Desk, Saved, Mapping[str, Any]], Saved]] = {
    "update": _update,
    "retire": lambda desk, before, line: desk.retire(before, line.get("replaced_by")),
    "relate": lambda desk, before, line: desk.relate(before, line["relation"], line["target"]),
    "unrelate": lambda desk, before, line: desk.unrelate(before, line["relation"], line["target"]),
}
