"""Names, definitions, notes and notations of a record in all languages, as v1 lists and changes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole
from lexarium.domain.statement import Statement, Text
from lexarium.domain.text.languages import choose_language

# Keys of a draft that hold all texts of a role.
TEXT_ROLES = {
    "names": SlotRole.NAME,
    "definitions": SlotRole.DEFINITION,
    "notes": SlotRole.NOTE,
    "notations": SlotRole.NOTATION,
}
# Those of them that a draft leaves as they are unless it has them.
NOTE_KEYS = ("notes", "notations")
_NOTATION = "skos:notation"


def find_role(collection: Collection, predicate: str) -> SlotRole | None:
    """Return the role of a predicate in a collection, whether or not a slot declares it."""
    return collection.schema.role_of(predicate, collection.local_name)


def list_text_statements(record: Record) -> dict[SlotRole, list[Statement]]:
    """Return the statements of texts that have a role, by role. Nodes are left out."""
    found: dict[SlotRole, list[Statement]] = {}
    for statement in record.own_statements:
        role = find_role(record.collection, statement.predicate)
        if role is not None and isinstance(statement.value, Text):
            found.setdefault(role, []).append(statement)
    return found


def dump_texts(record: Record, statements: Sequence[Statement]) -> list[dict[str, str]]:
    """Return texts as JSON. One without a tag has the default language."""
    return [{"text": value.text, "lang": value.lang or record.collection.language} for value in _iter_texts(statements)]


def dump_translations(record: Record, statements: Sequence[Statement]) -> list[dict[str, str]]:
    """Return names or definitions as JSON, those in the default language first."""
    return sorted(dump_texts(record, statements), key=lambda text: text["lang"] != record.collection.language)


def dump_notes(record: Record, statements: Sequence[Statement]) -> list[dict[str, str]]:
    """Return notes as JSON: the name of the slot or the predicate, the text and its language."""
    slots = record.collection.schema_class.slots_by_predicate
    types = [slots[item.predicate].name if item.predicate in slots else item.predicate for item in statements]
    texts = dump_texts(record, statements)
    return [{"type": type_name, **text} for type_name, text in zip(types, texts, strict=True)]


def dump_notations(statements: Sequence[Statement]) -> list[str]:
    """Return the texts of notations."""
    return [value.text for value in _iter_texts(statements)]


def choose_text(record: Record, texts: Sequence[Mapping[str, str]], languages: Sequence[str]) -> Mapping[str, str]:
    """Return the text that suits a reader of these languages best, else the first in the default language."""
    default = record.collection.language
    tag = choose_language([text["lang"] for text in texts], languages or default, default)
    return next((text for text in texts if text["lang"] == tag), {"text": "", "lang": default})


def list_note_types(collection: Collection) -> dict[str, str]:
    """Return the predicates of notes by type: the name of a slot, or a standard predicate."""
    slots = collection.schema_class.slots_by_role.get(SlotRole.NOTE, ())
    standard = {predicate: predicate for predicate, role in STANDARD_ROLES.items() if role is SlotRole.NOTE}
    return {**{slot.name: slot.predicate for slot in slots}, **standard}


def apply_notes(record: Record, draft: Mapping[str, Any]) -> Record:
    """Return a record with the notes and notations of a validated draft. Statements of those that stay are kept."""
    for key in NOTE_KEYS:
        if draft.get(key) is not None:
            existing = list_text_statements(record).get(TEXT_ROLES[key], [])
            wanted = list(_iter_statements(record.collection, draft[key], existing))
            if wanted != existing:
                record = record.replace_statements(existing, wanted)
    return record


def _iter_statements(
    collection: Collection, items: Sequence[str | Mapping[str, str]], existing: Sequence[Statement]
) -> Iterator[Statement]:
    note_types = list_note_types(collection)
    notations = collection.schema_class.slots_by_role.get(SlotRole.NOTATION, ())
    for item in items:
        if isinstance(item, str):
            predicate, value = notations[0].predicate if notations else _NOTATION, Text(item)
        else:
            lang = "" if item["lang"] == collection.language else item["lang"]
            predicate, value = note_types[item["type"]], Text(item["text"], lang)
        same = (statement for statement in existing if _is_same(collection, statement, predicate, value))
        yield next(same, Statement(predicate, value))


def _is_same(collection: Collection, statement: Statement, predicate: str, value: Text) -> bool:
    """Return whether a statement is a text, with or without a datatype or the tag of the default language."""
    stated = statement.value
    if statement.predicate != predicate or not isinstance(stated, Text) or stated.text != value.text:
        return False
    return (stated.lang or collection.language) == (value.lang or collection.language)


def _iter_texts(statements: Sequence[Statement]) -> Iterator[Text]:
    return (statement.value for statement in statements if isinstance(statement.value, Text))
