"""Validate drafts; report all problems at once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, format_aliases, split_alias_texts
from lexarium.domain.record_texts import TEXT_ROLES, get_note_types, get_translated_fields
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields
from lexarium.domain.schema.model import Slot
from lexarium.domain.statement import MAX_DEPTH, MAX_STATEMENTS, Statement, measure_statements
from lexarium.domain.text.characters import reject_control_chars, reject_direction_controls
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.text.limits import InputLimits, get_input_limits

# Fits into a JSON number of every client and an integer column of every engine.
_MAX_INTEGER = 2**53 - 1
_MAX_ITEMS = 1_000
# A record of the log, as JSON.
_MAX_RECORD_BYTES = 1 << 20
# Of collections, which change with schemas.
_MAX_MODELS = 1_000
# Problems that may suggest a field: a body may have 70,000 unknown names, and each is compared in 0.1 ms.
_MAX_SUGGESTIONS = 20
# Without them, an id is minted and texts in other languages stay.
OPTIONAL_KEYS = frozenset({"id", *TEXT_ROLES})
_NOTE_KEYS = ("notes", "notations")
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
        raise _to_invalid_input(collection, model, error) from None
    return draft.model_dump()


def validate_draft(
    collection: Collection, draft: Mapping[str, Any], current: Mapping[str, Any] | None = None
) -> Fields:
    """Validate a draft in the v1 shape; return it with defaults or raise InvalidInput.

    Fields that are unchanged from `current` are not checked: an old record may break the rules.
    """
    current = current or {}
    draft, problems = _fold_default_texts(collection, draft, current)
    draft = _fold_note_fields(collection, draft, current)
    texts = {key: draft[key] for key in get_translated_fields(collection) if key in draft}
    draft = {name: value for name, value in draft.items() if name not in texts}
    draft, mappings, mapping_problems = _split_mappings(draft, current)
    problems += mapping_problems
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
    known = _find_known_texts(draft, current)
    try:
        validated = model.model_validate({**_mask_texts(collection, draft, known), **placeholders})
    except ValidationError as error:
        problems += _to_invalid_input(collection, model, error).problems
    if problems:
        raise InvalidInput(f"Invalid {collection.label}.", problems)
    checked: Fields = {**validated.model_dump(), **unchanged, **texts}
    checked = {name: value for name, value in checked.items() if value is not None or name not in OPTIONAL_KEYS}
    for (name, index), mapping in mappings.items():
        checked["relations"][name][index] = mapping
    for (key, index), text in known.items():
        checked[key][index] = text
    return checked


def _fold_note_fields(collection: Collection, draft: Mapping[str, Any], current: Mapping[str, Any]) -> Fields:
    """Return a draft in which notes that are fields, as v1 shows them, are there as fields alone."""
    folded, notes = dict(draft), draft.get("notes")
    if isinstance(notes, list):
        fields = list(collection.editable_fields)
        own = [note for note in notes if isinstance(note, dict) and note.get("type") in fields]
        folded["notes"] = [note for note in notes if note not in own]
        values = {note["type"]: note.get("text") for note in own}
        folded |= {name: value for name, value in values.items() if draft.get(name) == current.get(name)}
    return folded


def _find_known_texts(draft: Mapping[str, Any], current: Mapping[str, Any]) -> dict[tuple[str, int], Any]:
    """Return the notes and notations of a draft that the record has already, by key and place."""
    lists = {key: draft[key] for key in _NOTE_KEYS if isinstance(draft.get(key), list) and current.get(key)}
    return {(key, place): item for key in lists for place, item in enumerate(lists[key]) if item in current[key]}


def _mask_texts(collection: Collection, draft: Fields, known: Mapping[tuple[str, int], Any]) -> Fields:
    """Return a draft with valid notes and notations in place of known ones, which are not checked."""
    valid = {"notes": {"type": next(iter(get_note_types(collection))), "text": "x"}, "notations": "x"}
    lists = {key: list(draft[key]) for key, _ in known}
    for key, place in known:
        lists[key][place] = valid[key]
    return {**draft, **lists}


def _fold_default_texts(
    collection: Collection, draft: Mapping[str, Any], current: Mapping[str, Any]
) -> tuple[Fields, list[FieldProblem]]:
    """Return a draft with checked translations, and with those in the default language as fields; and the problems."""
    folded, problems = dict(draft), []
    for key, field in get_translated_fields(collection).items():
        if key not in draft:
            continue
        known = current.get(key, [])
        if draft[key] == known:
            continue
        texts, found = _check_texts(collection, field, draft[key], known)
        problems += [replace(problem, field=f"{key}/{problem.field}".rstrip("/")) for problem in found]
        own = [text["text"] for text in texts if text["lang"] == collection.language]
        folded[key] = [text for text in texts if text["lang"] != collection.language]
        given, former = draft.get(field), current.get(field)
        if own and given in (None, former):
            folded[field] = own[0]
        elif own and own[0] not in (given, former):
            problems.append(FieldProblem(key, f"differs from `{field}` in {collection.language}."))
    return folded, problems


def _check_texts(
    collection: Collection, field: str, texts: Any, known: Sequence[Mapping[str, str]]
) -> tuple[list[dict[str, str]], list[FieldProblem]]:
    """Return texts with canonical language tags, and their problems. Known ones are not checked."""
    if not isinstance(texts, list):
        return [], [FieldProblem("", "must be a list.")]
    if len(texts) > _MAX_ITEMS:
        return [], [FieldProblem("", f"must have at most {_MAX_ITEMS:,} entries.")]
    model = _build_text_model(collection.get_max_length(field) or 0, collection.language, is_name=field == "name")
    checked: list[dict[str, str]] = []
    problems: list[FieldProblem] = []
    for index, text in enumerate(texts):
        if text in known:
            checked.append(text)
            continue
        try:
            checked.append(model.model_validate(text).model_dump(exclude_none=True))
        except ValidationError as error:
            problems += [replace(item, field=f"{index}/{item.field}".rstrip("/")) for item in to_field_problems(error)]
    for language in dict.fromkeys(text["lang"] for text in checked):
        own = [text for text in checked if text["lang"] == language]
        # Files may have several, of which people edit the first.
        known_count = sum(text["lang"] == language for text in known)
        if len(own) > max(1, known_count):
            problems.append(FieldProblem("", f"has more than one text in {language}."))
    return checked, problems


@lru_cache(maxsize=50)
def _build_text_model(max_length: int, language: str, *, is_name: bool) -> type[BaseModel]:
    text: Any = Annotated[
        str,
        StringConstraints(min_length=1, max_length=max_length),
        AfterValidator(reject_control_chars),
        AfterValidator(_check_not_blank),
    ]
    if is_name:
        text = Annotated[text, AfterValidator(reject_direction_controls)]
    source: Any = Annotated[str, StringConstraints(max_length=max_length), AfterValidator(reject_control_chars)] | None
    lang: Any = Annotated[str, AfterValidator(_canonicalize_tag)]
    return _create_model("translated_text", {"text": (text, ...), "lang": (lang, language), "source": (source, None)})


def _canonicalize_tag(tag: str) -> str:
    if find_tag_problem(tag):
        raise ValueError("must be a language tag, such as en or pt-BR.")
    return format_tag(tag)


class _Mapping(BaseModel):
    """Mapping with qualifiers in the relations of a draft."""

    model_config = ConfigDict(strict=True, extra="forbid")

    target: Any
    justification: _ListItem | None = None
    confidence: float | None = Field(None, ge=0, le=1)
    author: _ListItem | None = None
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None


def _split_mappings(
    draft: Fields, current: Mapping[str, Any]
) -> tuple[Fields, dict[tuple[str, int], dict[str, Any]], list[FieldProblem]]:
    """Return a draft with targets for the objects in its relations, those by place, and their problems."""
    entries_by_type = draft.get("relations")
    mappings: dict[tuple[str, int], dict[str, Any]] = {}
    problems: list[FieldProblem] = []
    if not isinstance(entries_by_type, dict) or entries_by_type == current.get("relations"):
        return draft, mappings, problems
    relations: dict[str, Any] = {}
    for name, entries in entries_by_type.items():
        if not isinstance(entries, list):
            relations[name] = entries
            continue
        relations[name] = [entry["target"] if is_object(entry) else entry for entry in entries]
        for index, entry in enumerate(entries):
            if not is_object(entry):
                continue
            location = f"relations/{name}/{index}"
            if entry in current.get("relations", {}).get(name, ()):
                mappings[name, index] = entry
                continue
            if len(entry) > 1 and not RELATION_TYPES[name].is_mapping:
                problems.append(
                    FieldProblem(location, "is not a mapping, so it cannot have a justification or similar fields.")
                )
                continue
            try:
                mappings[name, index] = _Mapping.model_validate(entry).model_dump(exclude_none=True)
            except ValidationError as error:
                problems += [replace(item, field=f"{location}/{item.field}") for item in to_field_problems(error)]
    return {**draft, "relations": relations}, mappings, problems


def is_object(entry: Any) -> bool:
    """Return whether an entry of the relations of a draft is an object with a target."""
    return isinstance(entry, dict) and "target" in entry


def find_size_problem(statements: Sequence[Statement], document: bytes) -> str | None:
    """Return why statements are too large for one record, given their JSON, or None."""
    if len(document) > _MAX_RECORD_BYTES:
        return f"has {len(document):,} bytes; a record can have at most {_MAX_RECORD_BYTES:,}"
    count, depth = measure_statements(statements)
    if count > MAX_STATEMENTS:
        return f"has {count:,} statements; a record can have at most {MAX_STATEMENTS:,}"
    return f"is nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else None


def build_valpha_model(name: str) -> type[BaseModel]:
    """Return the pydantic model of a new record in the v-alpha shape."""
    return _build_valpha_model(COLLECTIONS[name], get_input_limits())


def build_draft_model(name: str) -> type[BaseModel]:
    """Return the pydantic model of a draft in the v1 shape."""
    return _build_draft_model(COLLECTIONS[name], get_input_limits())


@lru_cache(maxsize=_MAX_MODELS)
def _build_valpha_model(collection: Collection, limits: InputLimits) -> type[BaseModel]:
    fields = _build_field_definitions(collection)
    valpha_fields = {name: fields[name] for name in fields if name in collection.valpha_field_names}
    return _create_model(f"{collection.local_name}_valpha", valpha_fields)


@lru_cache(maxsize=_MAX_MODELS)
def _build_draft_model(collection: Collection, limits: InputLimits) -> type[BaseModel]:
    fields = _build_field_definitions(collection)
    fields.pop(collection.alias_field or "", None)
    alias = _build_alias_model(limits)
    fields["aliases"] = (
        Annotated[
            list[alias],  # type: ignore[valid-type]
            AfterValidator(partial(_check_joined_length, collection)),
        ],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Other names, with their language and scope."),
    )
    fields["sources"] = (
        list[_ListItem],
        Field(default_factory=list, max_length=_MAX_ITEMS, description="Source of the definition."),
    )
    fields["relations"] = (
        dict[str, list[_ListItem]],
        Field(default_factory=dict, description="Targets of its relations, by relation."),
    )
    if collection.vocabulary != MAIN_VOCABULARY:
        # New ids are checked against the rule of the vocabulary, before drafts.
        fields["id"] = (str | None, Field(None, min_length=1, description="Default: a new ID."))
    fields |= _build_text_lists(collection, limits)
    return _create_model(f"{collection.local_name}_draft", fields)


def _build_text_lists(collection: Collection, limits: InputLimits) -> dict[str, Any]:
    """Return the fields that hold texts in all languages. Without them the texts stay."""
    tag = Annotated[str, AfterValidator(_check_tag)]
    text = Annotated[str, AfterValidator(reject_control_chars), AfterValidator(_check_not_blank)]
    note_types = tuple(get_note_types(collection))

    def build_list(name: str, description: str, max_length: int, check: Any, **parts: Any) -> tuple[Any, Any]:
        languages = {"lang": (tag, Field(collection.language, description="Language, as a BCP 47 tag."))}
        texts = {"text": (text, Field(max_length=max_length, description="Text."))}
        model = _create_model(f"{name}_text", {**parts, **texts, **languages})
        rule = Annotated[list[model], AfterValidator(check)]  # type: ignore[valid-type]
        return (rule | None, Field(None, max_length=_MAX_ITEMS, description=description))

    type_rule = (Literal[*note_types], Field(description="Note type declared for the class."))
    lists = {
        "names": build_list("name", "Names, one in each language.", limits.name, _check_languages),
        "definitions": build_list(
            "definition", "Definitions, one in each language.", limits.definition, _check_languages
        ),
        "notes": build_list("note", "Notes of any kind, in any languages.", limits.definition, list, type=type_rule),
        "notations": (list[text] | None, Field(None, max_length=_MAX_ITEMS, description="Codes in other systems.")),
    }
    return lists if collection.definition_field else {key: lists[key] for key in lists if key != "definitions"}


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
        detail = f"those in {DEFAULT_LANGUAGE} have {length:,} when joined for `alias`"
        raise ValueError(f"must have at most {max_length:,} characters in total; {detail}.")
    return aliases


def _check_slot(slot: Slot, text: str) -> str:
    """Return the text; raise ValueError if it is neither empty nor one that the slot allows."""
    values = [value.text for value in slot.enum_values]
    if text and values and text not in values:
        raise ValueError(f"must be one of {', '.join(values)}.")
    if text and slot.pattern and not re.fullmatch(slot.pattern, text):
        raise ValueError(f"must match {slot.pattern}.")
    return text


def _check_alias(alias: str) -> str:
    for name in split_alias_texts(alias):
        reject_direction_controls(name)
    return alias


def _check_languages(texts: list[Any]) -> list[Any]:
    """Return the texts; raise ValueError if there is none, or two are in one language."""
    tags = [text.lang.lower() for text in texts]
    repeated = next((tag for tag in tags if tags.count(tag) > 1), None)
    if repeated is not None:
        raise ValueError(f"must have at most one in each language, but has {tags.count(repeated)} in {repeated}.")
    return texts


def _check_tag(tag: str) -> str:
    problem = find_tag_problem(tag)
    if problem:
        raise ValueError(f"is invalid: {problem}")
    return format_tag(tag)


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty.")
    return text


def _check_integer_range(number: int | None) -> int | None:
    if number is not None and abs(number) > _MAX_INTEGER:
        raise ValueError(f"must be between {-_MAX_INTEGER} and {_MAX_INTEGER}.")
    return number


def _to_invalid_input(collection: Collection, model: type[BaseModel], error: ValidationError) -> InvalidInput:
    others = collection.editable_fields.keys() - collection.core_fields
    problems: list[FieldProblem] = []
    for item, problem in zip(error.errors(include_url=False), to_field_problems(error), strict=True):
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            name = problem.field.removeprefix("fields/")
            near = _find_near_field(collection, name, model.model_fields) if len(problems) < _MAX_SUGGESTIONS else None
            place = f"fields/{near}" if near in others else near
            problems.append(replace(problem, detail=f"{problem.detail} Did you mean {place}?") if near else problem)
        else:
            problems.append(replace(problem, field=f"fields/{problem.field}") if problem.field in others else problem)
    return InvalidInput(f"Invalid {collection.label}.", problems)


def _find_near_field(collection: Collection, name: str, known: Iterable[str]) -> str | None:
    """Return the field that an unknown name probably means: the definition, or one that is spelled alike."""
    if name in {"description", *(item.definition_field for item in COLLECTIONS.values())}:
        return collection.definition_field
    return next(iter(get_close_matches(name, known, 1)), None)


def to_field_problems(error: ValidationError) -> list[FieldProblem]:
    """Convert the errors of pydantic. Parts of a nested field are joined by `/`."""
    return [
        FieldProblem("/".join(str(part) for part in item["loc"]), format_error(item))
        for item in error.errors(include_url=False)
    ]


# Messages that follow the name of a field, by pydantic error type.
_ERROR_MESSAGES = {
    "missing": "is required.",
    "extra_forbidden": "is not an editable field.",
    "string_type": "must be text.",
    "int_type": "must be a whole number.",
    "int_parsing": "must be a whole number.",
    "int_from_float": "must be a whole number.",
    "bool_type": "must be true or false.",
    "bool_parsing": "must be true or false.",
    "list_type": "must be a list.",
    "dict_type": "must be an object.",
    "model_type": "must be an object.",
    "model_attributes_type": "must be an object.",
    "string_too_short": "must have at least {min_length:,} characters.",
    "string_too_long": "must have at most {max_length:,} characters.",
    "too_long": "must have at most {max_length:,} entries.",
    "greater_than_equal": "must be at least {ge:,}.",
    "less_than_equal": "must be at most {le:,}.",
    "literal_error": "must be one of {expected}.",
    "enum": "must be one of {expected}.",
}


def format_error(item: Mapping[str, Any]) -> str:
    """Return the message of one pydantic error, to follow the name of a field."""
    template = _ERROR_MESSAGES.get(item["type"])
    if template is not None:
        return template.format(**item.get("ctx", {})).replace("at least 1 characters", "at least one character")
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"is invalid: {message}."
