"""What was typed into a form, and what is wrong with it."""

from collections.abc import Iterable, Mapping
from typing import Any

from lexarium.domain.account import Role
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, LexariumError, NotFound, PermissionDenied
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.pages.filters import to_plural

COLLECTION_CHOICES = [(name, to_plural(name)) for name in COLLECTIONS]
"""The collections to choose from, and what they are called."""
ROLE_CHOICES = [(role.value, role.value) for role in Role]
"""The roles to choose from, the least first."""

FORM_ERRORS = (InvalidInput, Conflict, PermissionDenied, NotFound)
"""What tells that something is wrong with what was typed: the form is shown again, with that."""

FormValues = Mapping[str, Any]
"""The fields of a form: all text, unless a program has sent them as JSON."""


def get_text(fields: FormValues, name: str) -> str:
    """What was typed into a field; nothing where it is not there."""
    value = fields.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def get_int(fields: FormValues, name: str) -> int | None:
    """The number in a field; None where there is none."""
    value = get_text(fields, name).strip()
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else None


def get_required_version(fields: FormValues, name: str = "version") -> int:
    """Read the version of a record that a form was opened at. Raises a 400 where the form does not say it."""
    version = get_int(fields, name)
    if not version:
        raise HTTPProblem(400, f"The form does not say which version it changes ({name}). Open the page again.")
    return version


def parse_page_key(value: str) -> tuple[int, str] | None:
    """Where a page of a list begins, as an address tells it: a moment and an identifier; None where it does not."""
    timestamp, _, item_id = value.partition("-")
    is_valid = (
        timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 16 and not find_unstorable_char(item_id)
    )
    return (int(timestamp), item_id) if is_valid else None


def get_filled(fields: FormValues, *names: str) -> dict[str, str]:
    """Those of these fields into which something was typed."""
    return {name: get_text(fields, name) for name in names if get_text(fields, name)}


def get_checked(fields: FormValues, name: str, choices: Iterable[str]) -> list[str]:
    """Which of several boxes are ticked."""
    return [choice for choice in choices if get_text(fields, f"{name}-{choice}")]


def to_field_errors(error: LexariumError, default_field: str = "") -> dict[str, str]:
    """What an error tells of what was typed, field by field; what is of no field of its own stands at `field`."""
    errors: dict[str, str] = {}
    for problem in error.problems if isinstance(error, InvalidInput) else ():
        field_name = problem.field.split("/")[0]
        errors[field_name] = " ".join(filter(None, [errors.get(field_name), _format_problem(problem)]))
    return errors or {default_field: str(error)}


def _format_problem(problem: FieldProblem) -> str:
    """What is wrong with a field; with which line of it, where it holds several."""
    _, *path = problem.field.split("/")
    if not path or not path[0].isdecimal():
        return problem.detail[:1].upper() + problem.detail[1:]
    part = "".join(f", its {key}," for key in path[1:] if key != "text")
    return f"Line {int(path[0]) + 1}{part} {problem.detail}"
