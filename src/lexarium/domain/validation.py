"""What people write, held to the rules: every problem is found at once."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, format_aliases, split_alias_texts
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.fields import Editable, Fields
from lexarium.domain.text.characters import reject_control_chars, reject_direction_controls
from lexarium.domain.text.limits import TextLimits, get_text_limits

# What a JSON number of every client and an integer column of every engine can hold.
_MAX_INTEGER = 2**53 - 1
_MAX_ITEMS = 1_000


def validate_valpha_draft(collection: Collection, values: Mapping[str, Any], *, from_form: bool = False) -> Fields:
    """The writable fields of a new record as v-alpha has them, or `Invalid` with every problem.

    Fields that are the server's own are passed over; unknown ones are refused. `text` says that the values come
    from a form, where an integer is written as text.
    """
    model = build_valpha_model(collection.name)
    client_values = {
        name: value for name, value in values.items() if name in model.model_fields or name not in collection.fields
    }
    try:
        draft = model.model_validate_strings(client_values) if from_form else model.model_validate(client_values)
    except ValidationError as error:
        raise _to_invalid_input(collection, error) from None
    return draft.model_dump()


def validate_draft(
    collection: Collection, draft: Mapping[str, Any], current: Mapping[str, Any] | None = None
) -> Fields:
    """All that is writable of a record as v1 has it, or `Invalid` with every problem.

    What is left out gets its default. Fields that are as `kept` says are not held to the rules: an old record may
    break them.
    """
    current = current or {}
    # Of one type too: to Python, true is 1.
    unchanged = {
        name: value
        for name, value in draft.items()
        if name in current and type(value) is type(current[name]) and value == current[name]
    }
    model = build_draft_model(collection.name)
    placeholders = {name: model.model_fields[name].get_default(call_default_factory=True) for name in unchanged}
    if "name" in placeholders:
        placeholders["name"] = "x"
    try:
        validated = model.model_validate({**draft, **placeholders})
    except ValidationError as error:
        raise _to_invalid_input(collection, error) from None
    return {**validated.model_dump(), **unchanged}


def build_valpha_model(name: str) -> type[BaseModel]:
    """What v-alpha takes of a new record of this collection."""
    return _build_valpha_model(name, get_text_limits())


def build_draft_model(name: str) -> type[BaseModel]:
    """What v1 takes of a record of this collection: `aliases` for `alias`, and what v-alpha does not show."""
    return _build_draft_model(name, get_text_limits())


@cache
def _build_valpha_model(name: str, limits: TextLimits) -> type[BaseModel]:
    return _create_model(f"{name}_valpha", _editable_definitions(COLLECTIONS[name]))


@cache
def _build_draft_model(name: str, limits: TextLimits) -> type[BaseModel]:
    fields = _editable_definitions(COLLECTIONS[name])
    fields.pop("alias", None)
    alias = _build_alias_model(limits)
    fields["aliases"] = (
        Annotated[
            list[alias],  # type: ignore[valid-type]
            AfterValidator(partial(_check_joined_length, COLLECTIONS[name].editable_fields.get("alias"))),
        ],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Other names, with their language and scope."),
    )
    fields["sources"] = (
        list[Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(reject_control_chars)]],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Where the definition comes from."),
    )
    fields["relations"] = (
        dict[
            str,
            list[
                Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(reject_control_chars)]
            ],
        ],
        Field(default_factory=dict, description="The targets of its relations, by relation."),
    )
    return _create_model(f"{name}_draft", fields)


@cache
def _build_alias_model(limits: TextLimits) -> type[Alias]:
    info = Alias.model_fields["text"]
    text: Any = (
        Annotated[str, AfterValidator(reject_control_chars), AfterValidator(reject_direction_controls)],
        Field(min_length=1, max_length=limits.name, description=info.description),
    )
    return create_model(Alias.__name__, __base__=Alias, __doc__=Alias.__doc__, text=text)


def _editable_definitions(collection: Collection) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, editable in collection.editable_fields.items():
        info = collection.fields[name]
        if info.annotation is int:
            rule: Any = Annotated[int, AfterValidator(_check_integer_range)]
        else:
            rule = Annotated[
                str, StringConstraints(max_length=editable.max_length), AfterValidator(reject_control_chars)
            ]
        if name == "name":
            rule = Annotated[rule, AfterValidator(_check_not_blank), AfterValidator(reject_direction_controls)]
        elif name == "alias":
            rule = Annotated[rule, AfterValidator(_check_alias)]
        fields[name] = (rule, Field(... if info.is_required() else info.default, description=info.description))
    return fields


def _create_model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    title = "".join(part.capitalize() for part in name.split("_"))
    return create_model(title, __config__=ConfigDict(strict=True, extra="forbid"), **fields)


def _check_joined_length(alias_field: Editable | None, aliases: list[Alias]) -> list[Alias]:
    """The names themselves; raises `ValueError` where v-alpha's field, if there is one, cannot hold them."""
    if (
        alias_field is not None
        and alias_field.max_length is not None
        and len(format_aliases(aliases)) > alias_field.max_length
    ):
        detail = f"those in {DEFAULT_LANGUAGE} come to {len(format_aliases(aliases)):,} when joined for `alias`"
        raise ValueError(f"should have at most {alias_field.max_length:,} characters in all; {detail}.")
    return aliases


def _check_alias(alias: str) -> str:
    """Return the joined names; raise `ValueError` where `check_direction` would for one of them."""
    for name in split_alias_texts(alias):
        reject_direction_controls(name)
    return alias


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty.")
    return text


def _check_integer_range(number: int) -> int:
    if abs(number) > _MAX_INTEGER:
        raise ValueError(f"must be between {-_MAX_INTEGER} and {_MAX_INTEGER}.")
    return number


def _to_invalid_input(collection: Collection, error: ValidationError) -> InvalidInput:
    return InvalidInput(f"This is not a valid {collection.name}.", to_field_problems(error))


def to_field_problems(error: ValidationError) -> list[FieldProblem]:
    """What pydantic found, each as a field (with `/` between the parts of its place) and a sentence about it."""
    return [
        FieldProblem("/".join(str(part) for part in item["loc"]), format_error(item))
        for item in error.errors(include_url=False)
    ]


_ERROR_MESSAGES = {
    "missing": "is required.",
    "extra_forbidden": "is not a field that can be written here.",
    "string_type": "should be text.",
    "int_type": "should be a whole number.",
    "int_parsing": "should be a whole number.",
    "int_from_float": "should be a whole number.",
    "bool_type": "should be true or false.",
    "bool_parsing": "should be true or false.",
    "list_type": "should be a list.",
    "dict_type": "should be an object.",
    "model_type": "should be an object.",
    "model_attributes_type": "should be an object.",
    "string_too_short": "must have at least {min_length:,} characters.",
    "string_too_long": "must have at most {max_length:,} characters.",
    "too_long": "must have at most {max_length:,} entries.",
    "greater_than_equal": "must be at least {ge:,}.",
    "less_than_equal": "must be at most {le:,}.",
    "literal_error": "should be one of {expected}.",
    "enum": "should be one of {expected}.",
}
"""Pydantic's kinds of errors as sentences that follow the name of a field."""


def format_error(item: Mapping[str, Any]) -> str:
    """What pydantic says of one error as a sentence of ours that follows the name of a field."""
    template = _ERROR_MESSAGES.get(item["type"])
    if template is not None:
        return template.format(**item.get("ctx", {})).replace("at least 1 characters", "at least one character")
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"is not right: {message}."
