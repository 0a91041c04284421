"""Many writes at once: all of them or nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lexarium.domain.changes import Whole
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, LexariumError, Problem
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved
from lexarium.store.transaction import Transaction

_FIELDS: dict[str, dict[str, type]] = {
    "create": {"collection": str, "record": dict},
    "update": {"id": str, "version": int, "change": dict},
    "retire": {"id": str, "version": int},
    "relate": {"id": str, "version": int, "relation": str, "target": str},
    "unrelate": {"id": str, "version": int, "relation": str, "target": str},
}
_OPTIONAL: dict[str, dict[str, type]] = {"retire": {"replaced_by": str}}


def run_batch(transaction: Transaction, caller: Caller, lines: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Saved]:
    """Do every line, which comes with its number.

    Raises `Invalid` with the problems of every line; then the transaction must be undone. A `version` may be left
    out: the record is then changed as it is found.
    """
    caller.require(Deed.PUBLISH)
    problems = [problem for number, line in lines for problem in _malformed(number, line)]
    _refuse(problems)
    saved: list[Saved] = []
    new: list[Whole] = []
    desk = Desk(transaction, caller)
    for number, line in lines:
        try:
            if line["op"] == "create":
                # New records are saved together: a statement for each would take most of the time.
                new.append(desk.draft_new(COLLECTIONS[line["collection"]], line["record"]))
                continue
            saved += desk.save_new(new)
            new = []
            saved.append(_DEEDS[line["op"]](desk, line))
        except Invalid as error:
            problems += [Problem(f"{number}/{each.field}", each.detail) for each in error.problems]
        except LexariumError as error:
            problems.append(Problem(str(number), str(error)))
    _refuse(problems)
    saved += desk.save_new(new)
    return saved


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise Invalid("Nothing was done: some lines are not right.", problems)


def _malformed(number: int, line: Mapping[str, Any]) -> list[Problem]:
    op = line.get("op")
    if not isinstance(op, str) or op not in _FIELDS:
        return [Problem(f"{number}/op", f"should be one of {', '.join(_FIELDS)}.")]
    required = {name: kind for name, kind in _FIELDS[op].items() if name != "version"}
    known = {"op": str, **_FIELDS[op], **_OPTIONAL.get(op, {})}
    problems = [Problem(f"{number}/{name}", "is required.") for name in required if name not in line]
    problems += [Problem(f"{number}/{name}", f"is not a field of {op}.") for name in line if name not in known]
    problems += [
        Problem(f"{number}/{name}", "has a wrong type.")
        for name, kind in known.items()
        if name in line and type(line[name]) is not kind
    ]
    if not problems and op == "create" and line["collection"] not in COLLECTIONS:
        problems.append(Problem(f"{number}/collection", f"should be one of {', '.join(COLLECTIONS)}."))
    return problems


def _target(desk: Desk, line: Mapping[str, Any]) -> tuple[Any, str, int]:
    """The collection, id and version of the record that a line is about."""
    found = desk.any(line["id"])
    return COLLECTIONS[found.collection], found.record, line.get("version", found.version)


_DEEDS: dict[str, Callable[[Desk, Mapping[str, Any]], Saved]] = {
    "update": lambda desk, line: desk.patch(*_patch(desk, line)),
    "retire": lambda desk, line: desk.retire(*_target(desk, line), line.get("replaced_by")),
    "relate": lambda desk, line: desk.relate(*_target(desk, line), line["relation"], line["target"]),
    "unrelate": lambda desk, line: desk.unrelate(*_target(desk, line), line["relation"], line["target"]),
}


def _patch(desk: Desk, line: Mapping[str, Any]) -> tuple[Any, str, Mapping[str, Any], int]:
    collection, identifier, version = _target(desk, line)
    return collection, identifier, line["change"], version
