"""Columns of the tables of any vocabulary: titles, and what the cells below them hold.

A title is the name of a slot, `name` or `definition`, or a predicate, with a language (`name@es`) or a datatype
(`extent^^xsd:integer`). References have the datatype `@id`. A predicate in angle brackets is taken as it is.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from lexarium.domain.schema.collections import RELATION_TYPES, Collection
from lexarium.domain.schema.model import Slot
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole
from lexarium.domain.statement import BOOLEAN, INTEGER, Reference, Text, Value
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.tables.table_file import parse_predicate

# Columns that are no statements.
ID, IRI, COLLECTION, STATE, REPLACED_BY = "id", "iri", "collection", "state", "replaced_by"
RESERVED = (ID, IRI, COLLECTION, STATE, REPLACED_BY)
NAME, DEFINITION = "name", "definition"
REFERENCE = "@id"
STRING = "xsd:string"

_TITLE = re.compile(r"(<.+>|.+?)(?:@([A-Za-z][A-Za-z0-9-]*)|\^\^(\S+))?", re.DOTALL)
_INTEGER_TEXT = re.compile(r"-?[0-9]+")
# Declared as references, and written as texts.
_TEXT_PREDICATES = frozenset(("oboInOwl:hasDbXref", "oboInOwl:hasAlternativeId"))


class ColumnTitle(NamedTuple):
    """Parts of a title."""

    name: str
    lang: str = ""
    # Datatype, REFERENCE or STRING; empty: as is usual for the predicate.
    kind: str = ""


def split_title(title: str) -> ColumnTitle:
    """Return the parts of a title."""
    match = _TITLE.fullmatch(title)
    name, lang, kind = match.groups() if match else (title, None, None)
    if lang and find_tag_problem(lang):
        return ColumnTitle(title)
    return ColumnTitle(name, format_tag(lang) if lang else "", kind or "")


@lru_cache(maxsize=1_000)
def list_names(collection: Collection) -> dict[str, str]:
    """Return the predicates of a collection by the names that columns have for them."""
    roles = collection.schema_class.slots_by_role
    named = {NAME: roles.get(SlotRole.NAME, ()), DEFINITION: roles.get(SlotRole.DEFINITION, ())}
    names = {name: slots[0].predicate for name, slots in named.items() if slots}
    slots = collection.schema_class.slots.values()
    return names | {slot.name: slot.predicate for slot in slots if not slot.identifier and slot.name not in RESERVED}


def find_slot(predicate: str, collection: Collection) -> Slot | None:
    """Return the slot of a collection that a predicate belongs to, or None."""
    return collection.schema_class.slots_by_predicate.get(predicate)


def is_single(predicate: str, collection: Collection) -> bool:
    """Return whether a cell is one text, however many separators it has."""
    slot = find_slot(predicate, collection)
    role = STANDARD_ROLES.get(predicate) if slot is None else slot.role
    return role in (SlotRole.NAME, SlotRole.DEFINITION) or (slot is not None and not slot.multivalued)


def is_mapping(predicate: str, collection: Collection) -> bool:
    """Return whether values of a predicate are of other vocabularies."""
    return RELATION_TYPES[collection.relation_names.get(predicate, predicate)].is_mapping


def find_inverse(predicate: str, collection: Collection) -> str | None:
    """Return the predicate by which a relation is stored at its other end, or None."""
    slot = find_slot(predicate, collection)
    is_relation = slot is not None and slot.is_reference and slot.role is not SlotRole.MAPPING
    return collection.schema.inverses.get(predicate) if is_relation else None


def infer_kind(predicate: str, text: str, collection: Collection) -> str:
    """Return the datatype that a text has in a column whose title names none; REFERENCE, or empty for a string."""
    slot = find_slot(predicate, collection)
    if predicate in _TEXT_PREDICATES:
        return ""
    if slot is None:
        role = STANDARD_ROLES.get(predicate)
        return REFERENCE if role in (SlotRole.MAPPING, SlotRole.HIERARCHY) else ""
    if slot.range == "integer" and _INTEGER_TEXT.fullmatch(text):
        return INTEGER
    if slot.range == "boolean" and text in ("true", "false"):
        return BOOLEAN
    return REFERENCE if slot.is_reference else ""


def build_value(predicate: str, text: str, title: ColumnTitle, collection: Collection) -> Value:
    """Return the value of a cell or of a part of one."""
    if title.lang:
        return Text(text, title.lang)
    kind = title.kind or infer_kind(predicate, text, collection)
    return Reference(text) if kind == REFERENCE else Text(text, "", "" if kind == STRING else kind)


def format_name(predicate: str, collection: Collection, vocabulary: Vocabulary) -> str:
    """Return the title of the columns of a predicate, without a language or datatype."""
    names = {item: name for name, item in reversed(list_names(collection).items())}
    name = names.get(predicate, predicate)
    is_readable = predicate in names or parse_predicate(predicate, vocabulary) == predicate
    if not is_readable or split_title(name) != (name, "", "") or find_inverse(predicate, collection):
        return f"<{predicate}>"
    return name


def format_title(name: str, predicate: str, value: Text | Reference, collection: Collection) -> str:
    """Return the title of the column of a value, from which `build_value` gives it back."""
    if isinstance(value, Text) and value.lang:
        return f"{name}@{value.lang}"
    kind = value.datatype if isinstance(value, Text) else REFERENCE
    return name if kind == infer_kind(predicate, value[0], collection) else f"{name}^^{kind or STRING}"
