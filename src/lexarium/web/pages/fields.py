"""What was typed into a form, and what is wrong with it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Conflict, Forbidden, Invalid, NotFound
from lexarium.web.pages.wording import plural

KINDS = [(name, plural(name)) for name in COLLECTIONS]
"""The collections to choose from, and what they are called."""
ROLES = [(role.value, role.value) for role in Role]
"""The roles to choose from, the least first."""

Typed = Mapping[str, Any]
"""The fields of a form: all text, unless a program has sent them as JSON."""


def text(fields: Typed, name: str) -> str:
    """What was typed into a field; nothing where it is not there."""
    value = fields.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def given(fields: Typed, *names: str) -> dict[str, str]:
    """Those of these fields into which something was typed."""
    return {name: text(fields, name) for name in names if text(fields, name)}


def ticked(fields: Typed, name: str, choices: Iterable[str]) -> list[str]:
    """Which of several boxes are ticked."""
    return [each for each in choices if text(fields, f"{name}-{each}")]


def mistakes(work: Callable[[], Any], field: str = "") -> dict[str, str]:
    """Do a piece of work, and tell what is wrong with what was typed, field by field; nothing where it is done.

    What is wrong with no field of its own stands at `field`.
    """
    try:
        work()
    except Invalid as error:
        found: dict[str, str] = {}
        for problem in error.problems:
            place = problem.field.split("/")[0]
            found[place] = " ".join(filter(None, [found.get(place), _sentence(problem.detail)]))
        return found or {field: str(error)}
    except (Conflict, Forbidden, NotFound) as error:
        return {field: str(error)}
    return {}


def _sentence(detail: str) -> str:
    return detail[:1].upper() + detail[1:]
