"""What was typed into a form, and what is wrong with it."""

from collections.abc import Iterable, Mapping
from typing import Any

from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Conflict, Forbidden, Invalid, LexariumError, NotFound, Problem
from lexarium.domain.text import unstorable
from lexarium.web.pages.wording import plural
from lexarium.web.problems import HttpProblem

KINDS = [(name, plural(name)) for name in COLLECTIONS]
"""The collections to choose from, and what they are called."""
ROLES = [(role.value, role.value) for role in Role]
"""The roles to choose from, the least first."""

MISTAKES = (Invalid, Conflict, Forbidden, NotFound)
"""What tells that something is wrong with what was typed: the form is shown again, with that."""

Typed = Mapping[str, Any]
"""The fields of a form: all text, unless a program has sent them as JSON."""


def text(fields: Typed, name: str) -> str:
    """What was typed into a field; nothing where it is not there."""
    value = fields.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def whole_number(fields: Typed, name: str) -> int | None:
    """The number in a field; None where there is none."""
    typed = text(fields, name).strip()
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 10 else None


def required_version(fields: Typed, name: str = "version") -> int:
    """Read the version of a record that a form was opened at. Raises a 400 where the form does not say it."""
    version = whole_number(fields, name)
    if not version:
        raise HttpProblem(400, f"The form does not say which version it changes ({name}). Open the page again.")
    return version


def place(told: str) -> tuple[int, str] | None:
    """Where a page of a list begins, as an address tells it: a moment and an identifier; None where it does not."""
    made, _, identifier = told.partition("-")
    known_form = made.isascii() and made.isdecimal() and len(made) < 16 and not unstorable(identifier)
    return (int(made), identifier) if known_form else None


def given(fields: Typed, *names: str) -> dict[str, str]:
    """Those of these fields into which something was typed."""
    return {name: text(fields, name) for name in names if text(fields, name)}


def ticked(fields: Typed, name: str, choices: Iterable[str]) -> list[str]:
    """Which of several boxes are ticked."""
    return [each for each in choices if text(fields, f"{name}-{each}")]


def mistakes_of(error: LexariumError, field: str = "") -> dict[str, str]:
    """What an error tells of what was typed, field by field; what is of no field of its own stands at `field`."""
    found: dict[str, str] = {}
    for problem in error.problems if isinstance(error, Invalid) else ():
        place = problem.field.split("/")[0]
        found[place] = " ".join(filter(None, [found.get(place), _sentence(problem)]))
    return found or {field: str(error)}


def _sentence(problem: Problem) -> str:
    """What is wrong with a field; with which line of it, where it holds several."""
    _, *within = problem.field.split("/")
    if not within or not within[0].isdecimal():
        return problem.detail[:1].upper() + problem.detail[1:]
    part = "".join(f", its {each}," for each in within[1:] if each != "text")
    return f"Line {int(within[0]) + 1}{part} {problem.detail}"
