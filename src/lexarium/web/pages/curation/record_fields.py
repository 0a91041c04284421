"""Fields of the form of a record, in all languages, and their conversion to a draft and back.

A field in another language than the default one has its tag at the end: `name-fr`, `aliases-fr`. Notes of a type have a
field in each language: `notes.scope_note`, `notes.scope_note-fr`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lexarium.domain.editing.validation import OPTIONAL_KEYS, build_draft_model
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.record_texts import get_translated_fields
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.web.pages.curation import draft_fields
from lexarium.web.pages.form_fields import FormValues, get_text
from lexarium.web.template_filters import capitalize_first, field_label

# Has pages of its own.
_RELATIONS = "relations"
# Lists whose entries are in several fields.
_LIST_KEYS = ("aliases", "names", "definitions", "notes", "notations")
# Field with a language to add.
_NEW_LANGUAGE = "new_language"
_PARAGRAPHS = "An empty line starts a new paragraph."


@dataclass(frozen=True)
class FormField:
    """Field of a form; `kind` is `line`, `number`, `long`, `note`, `lines`, `choice` or `class`.

    A field may hold those entries of a list of a draft that have something in common, such as a language.
    """

    name: str
    kind: str
    label: str
    hint: str = ""
    max_length: int | None = None
    # Values and their texts, of a choice.
    choices: Sequence[tuple[str, str]] = ()
    # Key of the list, if it is a field of entries of one.
    key: str = ""
    # What the entries have in common.
    entry: Mapping[str, str] = field(default_factory=dict)
    # Language of a text that is not in the default one.
    lang: str = ""


def list_languages(collection: Collection, drafts: Iterable[Mapping[str, Any]], fields: FormValues) -> list[str]:
    """Return the languages of a form besides the default one: of the vocabulary, of drafts, and those that are sent."""
    entries = [item for draft in drafts for key in _LIST_KEYS for item in draft.get(key) or () if key != "notations"]
    sent = (name.partition("-") for name in fields)
    bases = ("aliases", *get_translated_fields(collection).values())
    tags = {tag for base, _, tag in sent if base in bases or base.startswith("notes.")}
    tags |= {item["lang"] for item in entries if "lang" in item}
    new_tag = format_tag(get_text(fields, _NEW_LANGUAGE).strip())
    ordered = dict.fromkeys((*VOCABULARIES[collection.vocabulary].languages, *sorted(tags), new_tag))
    return [tag for tag in ordered if tag != collection.language and find_tag_problem(tag) is None]


def list_form_fields(collection: Collection) -> list[FormField]:
    """Return the fields in the default language and those without one, the most important first."""
    names = [name for name in build_draft_model(collection.name).model_fields if name not in OPTIONAL_KEYS]
    form_fields = [build_form_field(collection, name) for name in names if name != _RELATIONS]
    form_fields += _list_note_fields(collection, "")
    if _has_notations(collection):
        form_fields.append(build_form_field(collection, "notations"))
    return sorted(form_fields, key=lambda item: _get_form_order(collection, item))


def _has_notations(collection: Collection) -> bool:
    slots = collection.schema_class.slots_by_role.get(SlotRole.NOTATION, ())
    return any(slot.name not in collection.fields for slot in slots)


def _get_form_order(collection: Collection, form_field: FormField) -> tuple[int, int]:
    """Return the key to sort fields by: names, definition, core fields, others of the class, those of all classes."""
    name = form_field.name
    if name == "notations" or "type" in form_field.entry:
        return 4, int(name != "notations")
    if name not in collection.fields:
        is_important = collection.alias_field or collection.definition_field or not collection.is_auxiliary
        return ({"aliases": 1, "sources": 3}[name] if is_important else 7), 0
    place = list(collection.schema_class.slots).index(collection.fields[name].name)
    if collection.fields[name].role is SlotRole.NAME:
        return 0, place
    if name == collection.definition_field:
        return 2, place
    if name in collection.core_fields:
        return 4, place
    siblings = [COLLECTIONS[other] for other in COLLECTIONS.list_names(collection.vocabulary)]
    is_common = len(siblings) > 1 and all(name in other.fields for other in siblings)
    return (6 if is_common else 5), place


def build_form_field(collection: Collection, name: str) -> FormField:
    """Return the form field for one field of a draft."""
    label = capitalize_first(field_label(name, collection.name))
    if name in draft_fields.LIST_FIELD_HINTS:
        key, entry = (name, {"lang": collection.language}) if name == "aliases" else ("", {})
        return FormField(name, "lines", label, draft_fields.LIST_FIELD_HINTS[name], key=key, entry=entry)
    if name in collection.class_fields:
        return FormField(name, "class", label)
    slot, max_length = collection.fields[name], collection.get_max_length(name)
    hint = "" if name == "name" else slot.description
    if slot.enum_values:
        return FormField(name, "choice", label, hint, choices=[(value.text, value.text) for value in slot.enum_values])
    if slot.role in (SlotRole.DEFINITION, SlotRole.NOTE):
        hint = f"{hint} {_PARAGRAPHS}".lstrip()
        return FormField(name, "long" if slot.role is SlotRole.DEFINITION else "note", label, hint, max_length)
    kind = "number" if collection.field_types[name] is int else "line"
    return FormField(name, kind, label, hint, max_length)


def list_language_fields(collection: Collection, lang: str) -> list[FormField]:
    """Return the fields in another language than the default one."""
    aliases = FormField(
        f"aliases-{lang}", "lines", "Aliases", draft_fields.SCOPE_HINT, key="aliases", entry={"lang": lang}, lang=lang
    )
    texts = [
        FormField(
            f"{name}-{lang}",
            "line" if name == "name" else "long",
            capitalize_first(field_label(name, collection.name)),
            max_length=collection.get_max_length(name),
            key=key,
            entry={"lang": lang},
            lang=lang,
        )
        for key, name in get_translated_fields(collection).items()
    ]
    return [*texts[:1], aliases, *texts[1:], *_list_note_fields(collection, lang)]


def _list_note_fields(collection: Collection, lang: str) -> list[FormField]:
    """Return the fields of notes in a language, which is empty for the default one."""
    slots = collection.schema_class.slots_by_role.get(SlotRole.NOTE, ())
    return [
        FormField(
            f"notes.{slot.name}-{lang}".removesuffix("-"),
            "note",
            capitalize_first(slot.label),
            "" if lang else f"{slot.description} {draft_fields.NOTE_HINT}".lstrip(),
            key="notes",
            entry={"type": slot.name, "lang": lang or collection.language},
            lang=lang,
        )
        for slot in slots
        if slot.name not in collection.fields
    ]


def list_all_fields(collection: Collection, languages: Iterable[str]) -> list[FormField]:
    """Return the fields in all languages."""
    others = [item for lang in languages for item in list_language_fields(collection, lang)]
    return [*list_form_fields(collection), *others]


def to_values(collection: Collection, draft: Mapping[str, Any], languages: Sequence[str]) -> dict[str, str]:
    """Return the texts of all fields of a form."""
    plain = draft_fields.to_form_values(draft, collection.language)
    values = {}
    for form_field in list_all_fields(collection, languages):
        if form_field.key:
            places = _find_places(form_field, draft, languages)
            values[form_field.name] = draft_fields.format_entries(
                form_field.key, [draft[form_field.key][place] for place in places], form_field.entry["lang"]
            )
        else:
            values[form_field.name] = plain.get(form_field.name, "")
    return values


def _find_places(form_field: FormField, draft: Mapping[str, Any], languages: Sequence[str]) -> list[int]:
    """Return the places of the entries of a list that a field shows: of names and definitions, the first alone."""
    entry, is_translation = form_field.entry, form_field.key in ("names", "definitions")
    places = [
        place
        for place, item in enumerate(draft.get(form_field.key) or ())
        if all(item.get(name, value) == value for name, value in entry.items())
        # Aliases in languages that the form does not have are shown with their language.
        or (form_field.name == "aliases" and item["lang"] not in languages)
    ]
    return places[:1] if is_translation else places


def is_changed(form_field: FormField, fields: FormValues, shown_value: str) -> bool:
    """Return whether the user changed the text that a field showed."""
    value = normalize_input(form_field, get_text(fields, form_field.name))
    return form_field.name in fields and value != normalize_input(form_field, shown_value)


def normalize_input(form_field: FormField, value: str) -> str:
    """Return a text without what browsers change: line breaks, which single-line inputs do not have."""
    lines = value.replace("\r\n", "\n").replace("\r", "\n")
    if form_field.key in ("names", "definitions", "notes"):
        lines = lines.strip()
    return lines.replace("\n", "").strip() if form_field.kind in ("line", "number") else lines


def parse_draft(
    collection: Collection, fields: FormValues, base_draft: Mapping[str, Any], languages: Sequence[str]
) -> dict[str, Any]:
    """Apply a form to the draft that it was opened with. What the user did not change keeps its exact value."""
    shown_values, draft = to_values(collection, base_draft, languages), dict(base_draft)
    replaced: dict[str, dict[int, list[Any]]] = {}
    for form_field in list_all_fields(collection, languages):
        if not is_changed(form_field, fields, shown_values[form_field.name]):
            continue
        value = normalize_input(form_field, get_text(fields, form_field.name))
        if not form_field.key:
            draft[form_field.name] = draft_fields.parse_field(collection, {form_field.name: value}, form_field.name)
            continue
        entries = draft_fields.parse_entries(form_field.key, value, form_field.entry)
        places = _find_places(form_field, base_draft, languages)
        changes = replaced.setdefault(form_field.key, {})
        changes |= {place: [] for place in places}
        end = len(base_draft.get(form_field.key) or ()) + len(changes)
        changes[places[0] if places else end] = entries
    for key, changes in replaced.items():
        items = dict(enumerate([item] for item in base_draft.get(key) or ())) | changes
        draft[key] = [entry for _, entries in sorted(items.items()) for entry in entries]
    return draft


def locate_problems(
    collection: Collection, draft: Mapping[str, Any], languages: Sequence[str], error: InvalidInput
) -> InvalidInput:
    """Return an error whose problems name the fields of the form that have the entries of a draft's lists."""
    form_fields = [item for item in list_all_fields(collection, languages) if item.key]
    return InvalidInput(str(error), [_locate_problem(form_fields, draft, languages, item) for item in error.problems])


def _locate_problem(
    form_fields: Sequence[FormField], draft: Mapping[str, Any], languages: Sequence[str], problem: FieldProblem
) -> FieldProblem:
    key, _, rest = problem.field.partition("/")
    place, _, part = rest.partition("/")
    for form_field in form_fields:
        places = _find_places(form_field, draft, languages) if form_field.key == key else []
        if place.isdecimal() and int(place) in places:
            line = f"/{places.index(int(place))}/{part}" if form_field.kind == "lines" else ""
            return replace(problem, field=f"{form_field.name}{line}")
    return problem
