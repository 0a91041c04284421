"""Validate drafts; report all problems at once."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, format_aliases, split_alias_texts
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, Collection, Fields
from lexarium.domain.schema.model import Slot
from lexarium.domain.statement import Node
from lexarium.domain.text.characters import reject_control_chars, reject_direction_controls
from lexarium.domain.text.limits import InputLimits, get_input_limits

# Fits into a JSON number of every client and an integer column of every engine.
_MAX_INTEGER = 2**53 - 1
_MAX_ITEMS = 1_000
_ListItem = Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(reject_control_chars)]


def validate_valpha_draft(collection: Collection, values: Mapping[str, Any], *, from_form: bool = False) -> Fields:
    """Validate a new record in the v-alpha shape; return its editable fields or raise InvalidInput.

    Fields that the server sets are ignored, unknown ones are refused. Values from a form may be integers as text.
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
    """Validate a draft in the v1 shape; return it with defaults or raise InvalidInput.

    Fields that are unchanged from `current` are not checked: an old record may break the rules.
    """
    current = current or {}
    # The types too, since True equals 1.
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
    """Return the pydantic model of a new record in the v-alpha shape."""
    return _build_valpha_model(name, get_input_limits())


def build_draft_model(name: str) -> type[BaseModel]:
    """Return the pydantic model of a draft in the v1 shape."""
    return _build_draft_model(name, get_input_limits())


@cache
def _build_valpha_model(name: str, limits: InputLimits) -> type[BaseModel]:
    fields = _build_field_definitions(COLLECTIONS[name])
    valpha_names = COLLECTIONS[name].valpha_field_names
    return _create_model(f"{name}_valpha", {field: fields[field] for field in fields if field in valpha_names})


@cache
def _build_draft_model(name: str, limits: InputLimits) -> type[BaseModel]:
    fields = _build_field_definitions(COLLECTIONS[name])
    fields.pop(COLLECTIONS[name].alias_field or "", None)
    alias = _build_alias_model(limits)
    fields["aliases"] = (
        Annotated[
            list[alias],  # type: ignore[valid-type]
            AfterValidator(partial(_check_joined_length, COLLECTIONS[name])),
        ],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Other names, with their language and scope."),
    )
    fields["sources"] = (
        list[_ListItem],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Where the definition comes from."),
    )
    fields["relations"] = (
        dict[str, list[_ListItem]],
        Field(default_factory=dict, description="The targets of its relations, by relation."),
    )
    return _create_model(f"{name}_draft", fields)


@cache
def _build_alias_model(limits: InputLimits) -> type[Alias]:
    info = Alias.model_fields["text"]
    text: Any = (
        Annotated[str, AfterValidator(reject_control_chars), AfterValidator(reject_direction_controls)],
        Field(min_length=1, max_length=limits.name, description=info.description),
    )
    return create_model(Alias.__name__, __base__=Alias, __doc__=Alias.__doc__, text=text)


def _build_field_definitions(collection: Collection) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, slot in collection.editable_fields.items():
        default = collection.field_defaults[name]
        if collection.field_types[name] is int:
            rule: Any = Annotated[int if default is not None else int | None, AfterValidator(_check_integer_range)]
        else:
            limit = StringConstraints(max_length=collection.get_max_length(name))
            rule = Annotated[str, limit, AfterValidator(reject_control_chars)]
            if slot.enum_values or slot.pattern:
                rule = Annotated[rule, AfterValidator(partial(_check_slot, slot))]
        if name == "name":
            rule = Annotated[rule, AfterValidator(_check_not_blank), AfterValidator(reject_direction_controls)]
        elif name == collection.alias_field:
            rule = Annotated[rule, AfterValidator(_check_alias)]
        fields[name] = (rule, Field(... if name == "name" else default, description=slot.description))
    return fields


def _create_model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    title = "".join(part.capitalize() for part in name.split("_"))
    return create_model(title, __config__=ConfigDict(strict=True, extra="forbid"), **fields)


def _check_joined_length(collection: Collection, aliases: list[Alias]) -> list[Alias]:
    """Return the aliases; raise ValueError if they are too long for the v-alpha field when joined."""
    max_length = None if collection.alias_field is None else collection.get_max_length(collection.alias_field)
    length = len(format_aliases(aliases))
    if max_length is not None and length > max_length:
        detail = f"those in {DEFAULT_LANGUAGE} come to {length:,} when joined for `alias`"
        raise ValueError(f"should have at most {max_length:,} characters in all; {detail}.")
    return aliases


def _check_slot(slot: Slot, text: str) -> str:
    """Return the text; raise ValueError if it is neither empty nor one that the slot allows."""
    values = [value.text for value in slot.enum_values]
    if text and values and text not in values:
        raise ValueError(f"should be one of {', '.join(values)}.")
    if text and slot.pattern and not re.fullmatch(slot.pattern, text):
        raise ValueError(f"should match {slot.pattern}.")
    return text


def find_slot_problems(record: Record) -> list[FieldProblem]:
    """Return the values of a record that its slots do not allow, and the required slots that have none."""
    texts: dict[str, list[str]] = {}
    for predicate, value, _ in record.own_statements:
        texts.setdefault(predicate, []).append("" if isinstance(value, Node) else value[0])
    problems = []
    for slot in record.collection.schema_class.slots.values():
        values = texts.get(slot.predicate, [])
        if slot.required and not slot.identifier and not values and not record.fields.get(slot.name):
            problems.append(FieldProblem(slot.name, _ERROR_MESSAGES["missing"]))
        for text in values:
            try:
                _check_slot(slot, text)
                if slot.range == "integer":
                    int(text)
            except ValueError as error:
                is_number = slot.range == "integer" and not slot.pattern
                detail = _ERROR_MESSAGES["int_type"] if is_number else str(error)
                problems.append(FieldProblem(slot.name, f"{text[:100]!r} {detail}"))
    return problems


def _check_alias(alias: str) -> str:
    for name in split_alias_texts(alias):
        reject_direction_controls(name)
    return alias


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty.")
    return text


def _check_integer_range(number: int | None) -> int | None:
    if number is not None and abs(number) > _MAX_INTEGER:
        raise ValueError(f"must be between {-_MAX_INTEGER} and {_MAX_INTEGER}.")
    return number


def _to_invalid_input(collection: Collection, error: ValidationError) -> InvalidInput:
    others = collection.editable_fields.keys() - collection.core_fields
    problems = [
        replace(problem, field=f"fields/{problem.field}") if problem.field in others else problem
        for problem in to_field_problems(error)
    ]
    return InvalidInput(f"This is not a valid {collection.name}.", problems)


def to_field_problems(error: ValidationError) -> list[FieldProblem]:
    """Convert the errors of pydantic. Parts of a nested field are joined by `/`."""
    return [
        FieldProblem("/".join(str(part) for part in item["loc"]), format_error(item))
        for item in error.errors(include_url=False)
    ]


# Messages that follow the name of a field, by pydantic error type.
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


def format_error(item: Mapping[str, Any]) -> str:
    """Return the message of one pydantic error, to follow the name of a field."""
    template = _ERROR_MESSAGES.get(item["type"])
    if template is not None:
        return template.format(**item.get("ctx", {})).replace("at least 1 characters", "at least one character")
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"is not right: {message}."
