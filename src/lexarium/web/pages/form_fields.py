"""Read form fields and request parameters, and map errors to the fields they concern."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.account import Role
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, LexariumError, NotFound, PermissionDenied
from lexarium.domain.identifiers import get_local_id, qualify_id, split_id
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.request_models import EditSummary, parse_model

ROLE_CHOICES = [(role.value, role.value) for role in Role]

# Errors in what the user entered: the form is shown again with them.
FORM_ERRORS = (InvalidInput, Conflict, PermissionDenied, NotFound)

# All values are text, unless a program has sent them as JSON.
FormValues = Mapping[str, Any]


def get_text(fields: FormValues, name: str) -> str:
    """Return the text of a field, or an empty string."""
    value = fields.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def qualify_sibling(record_id: str, local_id: str) -> str:
    """Return the record of the same vocabulary that a form names by its id there, or an empty text."""
    is_id = local_id and get_local_id(local_id) == local_id
    return qualify_id(split_id(record_id)[0], local_id) if is_id else ""


def get_int(fields: FormValues, name: str, max_digits: int = 9) -> int | None:
    """Return the number in a field, or None."""
    return _parse_int(get_text(fields, name).strip(), max_digits)


def _parse_int(text: str, max_digits: int) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= max_digits else None


def get_required_version(fields: FormValues, name: str = "version") -> int:
    """Return the record version that a form was opened at; raise a 400 if the form has none."""
    version = get_int(fields, name)
    if not version:
        raise HTTPProblem(400, f"The form has no version ({name}). Reload the page.")
    return version


def get_summary(fields: FormValues) -> str:
    """Return the summary of an edit; raise InvalidInput."""
    return parse_model(EditSummary, {"summary": get_text(fields, "summary").strip()}, "Invalid summary.").summary


def get_filled(fields: FormValues, *names: str) -> dict[str, str]:
    """Return the fields that are not empty."""
    return {name: get_text(fields, name) for name in names if get_text(fields, name)}


def get_checked(fields: FormValues, name: str) -> list[str]:
    """Return the choices whose checkbox is ticked."""
    return [field.removeprefix(f"{name}-") for field in fields if field.startswith(f"{name}-")]


def to_field_errors(error: LexariumError, default_field: str = "") -> dict[str, str]:
    """Return the messages of an error by field; an error without field problems belongs to `default_field`."""
    errors: dict[str, str] = {}
    for problem in error.problems if isinstance(error, InvalidInput) else ():
        field_name = problem.field.removeprefix("fields/").split("/")[0]
        errors[field_name] = " ".join(filter(None, [errors.get(field_name), _format_problem(problem)]))
    return errors or {default_field: str(error)}


def _format_problem(problem: FieldProblem) -> str:
    _, *path = problem.field.removeprefix("fields/").split("/")
    if not path or not path[0].isdecimal():
        return problem.detail[:1].upper() + problem.detail[1:]
    part = "".join(f", its {key}," for key in path[1:] if key != "text")
    return f"Line {int(path[0]) + 1}{part} {problem.detail}"
