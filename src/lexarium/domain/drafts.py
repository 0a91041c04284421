"""What people write, held to the rules: every problem is found at once."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from lexarium.domain.aliases import DEFAULT_LANGUAGE, Alias, join, texts
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.lengths import Lengths, lengths
from lexarium.domain.records import Fields, Written
from lexarium.domain.text import check_direction, plain

# What a JSON number of every client and an integer column of every engine can hold.
_LARGEST_INTEGER = 2**53 - 1
_MANY = 1_000


def checked_valpha(collection: Collection, given: Mapping[str, Any], *, text: bool = False) -> Fields:
    """The writable fields of a new record as v-alpha has them, or `Invalid` with every problem.

    Fields that are the server's own are passed over; unknown ones are refused. `text` says that the values come
    from a form, where an integer is written as text.
    """
    model = valpha_model(collection.name)
    theirs = {
        name: value for name, value in given.items() if name in model.model_fields or name not in collection.fields
    }
    try:
        draft = model.model_validate_strings(theirs) if text else model.model_validate(theirs)
    except ValidationError as error:
        raise _invalid(collection, error) from None
    return draft.model_dump()


def checked(collection: Collection, given: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> Fields:
    """All that is writable of a record as v1 has it, or `Invalid` with every problem.

    What is left out gets its default. Fields that are as `kept` says are not held to the rules: an old record may
    break them.
    """
    kept = kept or {}
    # Of one type too: to Python, true is 1.
    unchanged = {
        name: value
        for name, value in given.items()
        if name in kept and type(value) is type(kept[name]) and value == kept[name]
    }
    model = draft_model(collection.name)
    stand_ins = {name: model.model_fields[name].get_default(call_default_factory=True) for name in unchanged}
    if "name" in stand_ins:
        stand_ins["name"] = "x"
    try:
        draft = model.model_validate({**given, **stand_ins})
    except ValidationError as error:
        raise _invalid(collection, error) from None
    return {**draft.model_dump(), **unchanged}


def valpha_model(name: str) -> type[BaseModel]:
    """What v-alpha takes of a new record of this collection."""
    return _valpha_model(name, lengths())


def draft_model(name: str) -> type[BaseModel]:
    """What v1 takes of a record of this collection: `aliases` for `alias`, and what v-alpha does not show."""
    return _draft_model(name, lengths())


@cache
def _valpha_model(name: str, longest: Lengths) -> type[BaseModel]:
    return _model(f"{name}_valpha", _written(COLLECTIONS[name]))


@cache
def _draft_model(name: str, longest: Lengths) -> type[BaseModel]:
    fields = _written(COLLECTIONS[name])
    fields.pop("alias", None)
    alias = _alias_model(longest)
    fields["aliases"] = (
        Annotated[
            list[alias],  # type: ignore[valid-type]
            AfterValidator(partial(_joinable, COLLECTIONS[name].written.get("alias"))),
        ],
        Field(default_factory=list, max_length=_MANY, description="Other names, with their language and scope."),
    )
    fields["sources"] = (
        list[Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(plain)]],
        Field(default_factory=list, max_length=_MANY, description="Where the definition comes from."),
    )
    fields["relations"] = (
        dict[str, list[Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(plain)]]],
        Field(default_factory=dict, description="The targets of its relations, by relation."),
    )
    return _model(f"{name}_draft", fields)


@cache
def _alias_model(longest: Lengths) -> type[Alias]:
    info = Alias.model_fields["text"]
    text: Any = (
        Annotated[str, AfterValidator(plain), AfterValidator(check_direction)],
        Field(min_length=1, max_length=longest.name, description=info.description),
    )
    return create_model(Alias.__name__, __base__=Alias, __doc__=Alias.__doc__, text=text)


def _written(collection: Collection) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, mark in collection.written.items():
        info = collection.fields[name]
        if info.annotation is int:
            rule: Any = Annotated[int, AfterValidator(_safe_integer)]
        else:
            rule = Annotated[str, StringConstraints(max_length=mark.limit), AfterValidator(plain)]
        if name == "name":
            rule = Annotated[rule, AfterValidator(_not_blank), AfterValidator(check_direction)]
        elif name == "alias":
            rule = Annotated[rule, AfterValidator(_check_alias)]
        fields[name] = (rule, Field(... if info.is_required() else info.default, description=info.description))
    return fields


def _model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    title = "".join(part.capitalize() for part in name.split("_"))
    return create_model(title, __config__=ConfigDict(strict=True, extra="forbid"), **fields)


def _joinable(alias: Written | None, aliases: list[Alias]) -> list[Alias]:
    """The names themselves; raises `ValueError` where v-alpha's field, if there is one, cannot hold them."""
    if alias is not None and alias.limit is not None and len(join(aliases)) > alias.limit:
        those = f"those in {DEFAULT_LANGUAGE} come to {len(join(aliases)):,} when joined for `alias`"
        raise ValueError(f"should have at most {alias.limit:,} characters in all; {those}.")
    return aliases


def _check_alias(alias: str) -> str:
    """Return the joined names; raise `ValueError` where `check_direction` would for one of them."""
    for name in texts(alias):
        check_direction(name)
    return alias


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty.")
    return text


def _safe_integer(number: int) -> int:
    if abs(number) > _LARGEST_INTEGER:
        raise ValueError(f"must be between {-_LARGEST_INTEGER} and {_LARGEST_INTEGER}.")
    return number


def _invalid(collection: Collection, error: ValidationError) -> Invalid:
    return Invalid(f"This is not a valid {collection.name}.", problems_of(error))


def problems_of(error: ValidationError) -> list[Problem]:
    """What pydantic found, each as a field (with `/` between the parts of its place) and a sentence about it."""
    return [
        Problem("/".join(str(part) for part in item["loc"]), sentence(item)) for item in error.errors(include_url=False)
    ]


_SENTENCES = {
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


def sentence(item: Mapping[str, Any]) -> str:
    """What pydantic says of one error as a sentence of ours that follows the name of a field."""
    told = _SENTENCES.get(item["type"])
    if told is not None:
        return told.format(**item.get("ctx", {})).replace("at least 1 characters", "at least one character")
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"is not right: {message}."
