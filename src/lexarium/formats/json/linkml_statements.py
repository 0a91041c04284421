"""Write records as LinkML instances, statement by statement: the reverse of `linkml_resources`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import TYPE, Record, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.model import Schema, SchemaClass, Slot
from lexarium.domain.statement import Node, Reference, Statement, Text, Value, dump_statements
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.json.linkml_values import (
    DETAILS_KEY,
    ENTRIES_KEY,
    IRI_KEY,
    REPLACED_BY_KEY,
    STATE_KEY,
    STATEMENTS_KEY,
    TYPE_KEY,
    read_value,
    to_details,
    to_plain,
    to_text,
)


class _PlainValue(NamedTuple):
    statement: Statement
    json: Any
    # The value that a reader gets.
    read: Value


def sort_collections(schema: Schema, collections: Sequence[Collection]) -> list[Collection]:
    """Return collections in the order in which the container for them has their records."""
    container, attributes = _choose_container(schema, collections)
    names = list(schema.containers.get(container, ()))
    return sorted(collections, key=lambda item: names.index(attributes[item.schema_class.name]) if names else 0)


def _choose_container(schema: Schema, collections: Sequence[Collection]) -> tuple[str, dict[str, str]]:
    """Return the container that can hold all of these collections, and the attribute for each class; else no name."""
    for container, ranges in schema.containers.items():
        by_class = {class_name: attribute for attribute, class_name in reversed(list(ranges.items()))}
        attributes = {}
        for schema_class in (collection.schema_class for collection in collections):
            held = (by_class[name] for name in (schema_class.name, *schema_class.ancestors) if name in by_class)
            attributes[schema_class.name] = next(held, "")
        if all(attributes.values()):
            return container, attributes
    return "", {collection.schema_class.name: ENTRIES_KEY for collection in collections}


def write_statements(
    records: Iterable[Record], vocabulary: Vocabulary, collections: Sequence[Collection]
) -> Iterator[bytes]:
    """Yield one container of the records, which come in the order of `sort_collections`."""
    schema = vocabulary.schema
    container, attributes = _choose_container(schema, collections)
    writer = _EntryWriter(vocabulary)
    yield orjson.dumps({TYPE_KEY: container})[:-1] if container else b"{"
    separator, current = b"," if container else b"", ""
    for record in records:
        class_name = record.collection.schema_class.name
        attribute = attributes[class_name]
        if attribute != current:
            yield (b"\n]," if current else separator) + orjson.dumps(attribute) + b":["
            current, separator = attribute, b"\n"
        is_stated = bool(container) and schema.containers[container][attribute] == class_name
        yield separator + orjson.dumps(({} if is_stated else {TYPE_KEY: class_name}) | writer.build_entry(record))
        separator = b",\n"
    if not current and not container:
        yield orjson.dumps(ENTRIES_KEY) + b":["
        current = ENTRIES_KEY
    yield b"\n]}\n" if current else b"}\n"


class _EntryWriter:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._schema = vocabulary.schema

    def build_entry(self, record: Record) -> dict[str, Any]:
        """Return a record as an object: its slots, then what they do not say."""
        self._schema, schema_class, local_id = record.collection.schema, record.collection.schema_class, record.local_id
        assert schema_class.identifier
        entry: dict[str, Any] = {schema_class.identifier.name: local_id}
        if record.iri != (local_id if "://" in local_id else None):
            entry[IRI_KEY] = record.iri
        if record.state != RecordState.PUBLISHED:
            entry[STATE_KEY] = RecordState.RETIRED
        if record.replaced_by is not None:
            entry[REPLACED_BY_KEY] = get_local_id(record.replaced_by)
        # Values of further classes are no values of these slots.
        own = set(record.own_statements)
        others = [statement for statement in record.statements if statement not in own]
        return entry | self._build_object(schema_class, record.own_statements, others)

    def _build_object(
        self, schema_class: SchemaClass, statements: Iterable[Statement], others: Sequence[Statement] = ()
    ) -> dict[str, Any]:
        groups: dict[str, list[Statement]] = {}
        for statement in statements:
            groups.setdefault(statement.predicate, []).append(statement)
        entry, details, rest = dict[str, Any](), dict[str, Any](), list[Statement]()
        for slot in schema_class.slots.values():
            group = [] if slot.identifier else groups.pop(slot.predicate, [])
            plain = self._choose_plain(slot, group)
            shown = {item.statement for item in plain}
            rest += (statement for statement in group if statement not in shown)
            if plain:
                entry[slot.name] = _unwrap(slot, [item.json for item in plain])
                item_details = [to_details(item.statement, item.read) for item in plain]
                if any(item_details):
                    details[slot.name] = _unwrap(slot, item_details)
        rest += (statement for group in groups.values() for statement in group)
        rest += others
        if details:
            entry[DETAILS_KEY] = details
        if rest:
            entry[STATEMENTS_KEY] = dump_statements(rest)
        return entry

    def _choose_plain(self, slot: Slot, statements: Sequence[Statement]) -> list[_PlainValue]:
        """Return the values that the slot itself can have: texts in one language, and one value if it is for one."""
        language = self._vocabulary.language
        tags = [value.lang for _, value, _ in statements if isinstance(value, Text)]
        shown = language if not tags or {"", language}.intersection(tags) else tags[0]
        values = [
            plain
            for statement in statements
            if not isinstance(statement.value, Text) or statement.value.lang in ("", shown)
            if (plain := self._to_plain(slot, statement)) is not None
        ]
        return values if slot.multivalued else values[:1]

    def _to_plain(self, slot: Slot, statement: Statement) -> _PlainValue | None:
        value = statement.value
        if isinstance(value, Node):
            return _PlainValue(statement, self._build_node(slot, value), value) if slot.is_node else None
        if slot.is_node or not value[0]:
            return None
        plain = to_plain(slot, value)
        return _PlainValue(statement, plain, read_value(slot, to_text(plain) or "", self._vocabulary))

    def _build_node(self, slot: Slot, node: Node) -> dict[str, Any]:
        schema_class, statements = self._schema.classes[slot.range], list(node.statements)
        entry: dict[str, Any] = {IRI_KEY: node.iri} if node.iri else {}
        types = [item for item in statements if item.predicate == TYPE and item.qualifiers == ()]
        if len(types) == 1 and isinstance(types[0].value, Reference):
            stated = self._schema.find_class(types[0].value.target)
            if stated and stated is not schema_class and slot.range in stated.ancestors and not stated.abstract:
                schema_class = stated
                entry[TYPE_KEY] = stated.name
                statements.remove(types[0])
        return entry | self._build_object(schema_class, statements)


def _unwrap(slot: Slot, values: list[Any]) -> Any:
    return values if slot.multivalued else values[0]
