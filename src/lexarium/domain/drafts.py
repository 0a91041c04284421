"""What people write, held to the rules: every problem is found at once."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError, create_model

from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.records import Fields
from lexarium.domain.text import forbidden

# What a JSON number of every client and an integer column of every engine can hold.
_LARGEST_INTEGER = 2**53 - 1


def checked(collection: Collection, given: Mapping[str, Any], *, text: bool = False) -> Fields:
    """The writable fields of a new record, or `Invalid` with every problem.

    Fields that are the server's own are passed over; unknown ones are refused. `text` says that the values come
    from a form, where an integer is written as text.
    """
    theirs = {
        name: value for name, value in given.items() if name in collection.written or name not in collection.fields
    }
    model = _model(collection.name)
    try:
        draft = model.model_validate_strings(theirs) if text else model.model_validate(theirs)
    except ValidationError as error:
        problems = [Problem(str(item["loc"][0]), _sentence(item["type"], item["msg"])) for item in error.errors()]
        raise Invalid(f"This is not a valid {collection.name}.", problems) from None
    return draft.model_dump()


@cache
def _model(name_of_collection: str) -> type[BaseModel]:
    collection = COLLECTIONS[name_of_collection]
    fields: dict[str, Any] = {}
    for name, mark in collection.written.items():
        info = collection.fields[name]
        if info.annotation is int:
            rule: Any = Annotated[int, AfterValidator(_safe_integer)]
        else:
            rule = Annotated[str, StringConstraints(max_length=mark.limit), AfterValidator(_plain)]
        if name == "name":
            rule = Annotated[rule, AfterValidator(_not_blank)]
        fields[name] = (rule, ... if info.is_required() else info.default)
    return create_model(
        f"{collection.record.__name__}Draft", __config__=ConfigDict(strict=True, extra="forbid"), **fields
    )


def _plain(text: str) -> str:
    char = forbidden(text)
    if char:
        raise ValueError(
            f"holds the character {char}, which is not allowed: of control characters, only tab and line breaks are."
        )
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty.")
    return text


def _safe_integer(number: int) -> int:
    if abs(number) > _LARGEST_INTEGER:
        raise ValueError(f"must be between {-_LARGEST_INTEGER} and {_LARGEST_INTEGER}.")
    return number


def _sentence(kind: str, message: str) -> str:
    """Pydantic's message as a sentence of ours that follows the name of a field."""
    if kind == "missing":
        return "is required."
    if kind == "extra_forbidden":
        return "is not a field that can be written here."
    message = message.removeprefix("Value error, ")
    for start in ("String should", "Input should"):
        if message.startswith(start):
            return "should" + message.removeprefix(start) + "."
    return message
