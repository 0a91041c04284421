"""LinkML instances: containers of entries, whose keys are the slots of a class, in JSON or YAML."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

import orjson

from lexarium.domain.identifiers import MAIN_VOCABULARY, MAX_ID_BYTES, MAX_TARGET_BYTES, has_prefix, is_id_too_long
from lexarium.domain.record import Record, Relation
from lexarium.domain.schema.collections import COLLECTIONS_BY_TYPE, SCHEMA, Collection
from lexarium.domain.schema.model import Slot
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.schema.yaml_nodes import InvalidYaml, YamlMapping, YamlNode, YamlScalar, YamlSequence, parse_yaml
from lexarium.domain.statement import Node, Text, Value
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.timestamps import is_timestamp
from lexarium.formats.column_mapping import rename_keys
from lexarium.formats.json.linkml_statements import write_statements
from lexarium.formats.json.stream import iter_members
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WarningCounter, WriteOptions
from lexarium.formats.reading import open_seekable

_TYPE_KEY, _ENTRIES_KEY = "@type", "entries"
# A key of the document, with its line. The value of `entries` is an iterable of entries, each with its line.
_Member = tuple[int, str, Any]

# Values of a YAML document, which is loaded whole.
_MAX_YAML_NODES = 5_000_000
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
_HTML_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z]+\d*);", re.IGNORECASE)
_CONTAINERS = {class_name: name for name, attributes in SCHEMA.containers.items() for class_name in attributes.values()}


def read(stream: io.BufferedReader, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield the records of a document, then its warnings, counted by kind."""
    if stream.peek(1).lstrip()[:1] in (b"{", b"["):
        # Data often state their class at the end, so they are read twice.
        with open_seekable(stream) as file:
            collection = options.collection or _find_collection(iter_members(file, _ENTRIES_KEY))
            file.seek(0)
            yield from _ContainerReader(options, collection).read(iter_members(file, _ENTRIES_KEY))
    else:
        members = _load_yaml_members(stream)
        yield from _ContainerReader(options, options.collection or _find_collection(members)).read(members)


def _find_collection(members: Iterable[_Member]) -> Collection | None:
    """Return the collection that a document states; None if it states none, or its entries state theirs."""
    for line, key, value in members:
        if key == _TYPE_KEY:
            return _parse_type(value, line)
        if key == _ENTRIES_KEY and _TYPE_KEY in next(iter(value), (0, {}))[1]:
            return None
    return None


def _parse_type(stated: Any, line: int) -> Collection:
    collection = COLLECTIONS_BY_TYPE.get(stated) if isinstance(stated, str) else None
    if collection is None:
        names = ", ".join(schema_class.name for schema_class in SCHEMA.collections.values())
        raise ParseError(f"its {_TYPE_KEY} is {stated!r}, which is not one of {names}, nor a container of one", line, 1)
    return collection


class _ContainerReader:
    """Parse the entries of a document, and count what is odd about them."""

    def __init__(self, options: ReadOptions, collection: Collection | None) -> None:
        self._options = options
        self._collection = collection
        self._warnings = WarningCounter()

    def read(self, members: Iterable[_Member]) -> Iterator[ParsedRecord]:
        keys = set()
        for line, key, value in members:
            keys.add(key)
            if key == _ENTRIES_KEY:
                for entry_line, entry in value:
                    yield self._parse_entry(entry_line, entry)
            elif key != _TYPE_KEY:
                self._warnings.add(f"{key} is not part of a container; it was skipped", f"line {line}", is_loss=True)
        if not keys.intersection((_ENTRIES_KEY, _TYPE_KEY)):
            raise ParseError(f"it has no {_ENTRIES_KEY}; LinkML data were expected", 1, 1)
        yield ParsedRecord(0, counted_warnings=self._warnings)

    def _parse_entry(self, line: int, entry: dict[str, Any]) -> ParsedRecord:
        record = ParsedRecord(line, targets_are_ids=True)
        if self._options.column_mapping:
            entry = rename_keys(entry, self._options.column_mapping)
        stated = _parse_type(entry[_TYPE_KEY], line) if _TYPE_KEY in entry else self._collection
        collection = self._options.choose_collection(stated, line)
        record.collection = collection.name
        record_id = _to_text(entry.get("id"))
        if not record_id or is_id_too_long(record_id):
            record.problems.append(f"it has no id of 1 to {MAX_ID_BYTES} bytes")
            return record
        slots = collection.schema_class.slots
        relations = collection.relation_slots
        for name in [name for name in slots if name in entry]:
            if name in relations:
                self._parse_references(record, record_id, slots[name], relations[name], entry[name])
            elif name in collection.fields:
                self._parse_field(record, record_id, slots[name], entry[name])
        for key in sorted(entry.keys() - collection.fields.keys() - relations.keys() - {_TYPE_KEY}):
            message = f"{key} is not a slot of {collection.schema_class.name}; it was skipped"
            self._warnings.add(message, record_id, is_loss=True)
        record.complete_relations = [(name, "source") for name in collection.relation_predicates]
        self._check_form(collection, record)
        return record

    def _parse_field(self, record: ParsedRecord, record_id: str, slot: Slot, value: Any) -> None:
        if value is None:
            return
        text = _to_text(value)
        if text is None:
            record.problems.append(f"{slot.name} of {record_id} is not one text")
        elif not text:
            self._warnings.add("an empty text was skipped", f"{slot.name} of {record_id}", is_loss=True)
        elif slot.range != "integer":
            record.fields[slot.name] = text
            if text == "None":
                self._warnings.add("a text is the word None; it was kept", f"{slot.name} of {record_id}")
        elif (number := _parse_integer(text)) is not None:
            record.fields[slot.name] = number
        else:
            record.fields[slot.name], record.is_typed = text, False
            self._warnings.add(f"{slot.name} is not a whole number; it was kept as text", f"that of {record_id}")

    def _parse_references(
        self, record: ParsedRecord, record_id: str, slot: Slot, relation_type: str, value: Any
    ) -> None:
        targets = [_to_text(item) for item in (value if isinstance(value, list) else [] if value is None else [value])]
        max_bytes = MAX_TARGET_BYTES if slot.role is SlotRole.MAPPING else MAX_ID_BYTES
        known: set[str] = set()
        for target in targets:
            if target == "":
                self._warnings.add("an empty text was skipped", f"{slot.name} of {record_id}", is_loss=True)
            elif target is None or find_unstorable_char(target) or len(target.encode()) > max_bytes:
                record.problems.append(f"{slot.name} of {record_id} has a value that is not an id")
            elif target in known:
                self._warnings.add("a list has an id twice; it was kept once", f"{slot.name} of {record_id}")
            else:
                known.add(target)
                record.relations.append(Relation(record_id, relation_type, target))

    def _check_form(self, collection: Collection, record: ParsedRecord) -> None:
        """Count what users may not enter."""
        fields, record_id, add = record.fields, record.fields["id"], self._warnings.add
        if not has_prefix(record_id, collection.id_prefixes):
            add(f"an id does not have the form {collection.id_prefixes[0]}_…", record_id)
        names = [slot.name for slot in collection.schema_class.slots_by_role[SlotRole.NAME] if slot.name in fields]
        if "name" not in names:
            add(
                f"a record has no name; its {names[0]} is used as its name" if names else "a record has no name",
                record_id,
            )
        if any(_HTML_ENTITY.search(fields[name]) for name in names):
            add("a name contains an HTML entity; it was kept", record_id)
        for name, prefix in collection.id_fields.items():
            if name in fields and not has_prefix(fields[name], (prefix,)):
                add(f"{name} does not have the form {prefix}_…", f"that of {record_id}")
        for name in collection.timestamp_fields:
            if name in fields and not is_timestamp(fields[name]):
                add(f"{name} does not have the form YYYY-MM-DDThh:mm:ss", f"that of {record_id}")


def _to_text(value: Any) -> str | None:
    """Return a text, number or truth value as text; None for anything else."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else None


def _parse_integer(text: str) -> int | None:
    """Return an integer if a text is what would be written for it."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and _MIN_INT64 <= number <= _MAX_INT64 else None


def _load_yaml_members(stream: IO[bytes]) -> list[_Member]:
    try:
        root = parse_yaml(stream.read().decode(), _MAX_YAML_NODES)
    except InvalidYaml as error:
        reason = str(error)
        raise ParseError(reason[0].lower() + reason[1:].removesuffix("."), error.line, 1) from None
    if root is None:
        raise ParseError("the file is empty; LinkML data were expected", 1, 1)
    if not isinstance(root, YamlMapping):
        raise ParseError("this is not a YAML mapping", root.line, 1)
    return [
        (key.line, key.text, _list_entries(value) if key.text == _ENTRIES_KEY else _to_value(value))
        for key, value in root.entries
    ]


def _list_entries(node: YamlNode) -> list[tuple[int, dict[str, Any]]]:
    items = node.items if isinstance(node, YamlSequence) else []
    entries = [(item.line, _to_value(item)) for item in items]
    is_empty = isinstance(node, YamlScalar) and node.is_null
    if not (isinstance(node, YamlSequence) or is_empty) or not all(isinstance(entry, dict) for _, entry in entries):
        raise ParseError(f"{_ENTRIES_KEY} is not a list of mappings", node.line, 1)
    return entries


def _to_value(node: YamlNode) -> Any:
    """Return a value as in JSON, except that numbers, dates and truth values are texts, as they are written."""
    if isinstance(node, YamlScalar):
        return None if node.is_null else node.text
    if isinstance(node, YamlSequence):
        return [_to_value(item) for item in node.items]
    return {key.text: _to_value(value) for key, value in node.entries}


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield a container of one class, or, for several, one whose entries state their classes."""
    collections = options.collections
    if options.vocabulary.slug != MAIN_VOCABULARY:
        yield from write_statements(records, options.vocabulary, collections)
        return
    container = _CONTAINERS.get(collections[0].schema_class.name) if len(collections) == 1 else None
    head = {_TYPE_KEY: container} if container else {}
    yield orjson.dumps(head | {_ENTRIES_KEY: []}).removesuffix(b"]}")
    separator = b"\n"
    for record in records:
        for collection in (record.collection, *record.further_collections):
            if collection in collections:
                entry = _build_entry(record.as_member(collection))
                types = {} if container else {_TYPE_KEY: collection.schema_class.name}
                yield separator + orjson.dumps(types | entry)
                separator = b",\n"
    yield b"\n]}\n"


def _build_entry(record: Record) -> dict[str, Any]:
    """Return the stated values of a record by slot."""
    values: dict[str, list[Any]] = {}
    for predicate, value, _ in record.own_statements:
        if not isinstance(value, Node):
            values.setdefault(predicate, []).append(value)
    entry: dict[str, Any] = {}
    for name, slot in record.collection.schema_class.slots.items():
        if slot.identifier:
            entry[name] = record.local_id
        elif slot.predicate in values:
            slot_values = [_to_json(slot, value) for value in values[slot.predicate]]
            entry[name] = slot_values if slot.multivalued else slot_values[0]
    return entry


def _to_json(slot: Slot, value: Value) -> Any:
    text = value[0]
    assert isinstance(text, str)
    number = _parse_integer(text) if slot.range == "integer" and isinstance(value, Text) else None
    return text if number is None else number
