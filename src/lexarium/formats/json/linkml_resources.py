"""Read LinkML instances in JSON or YAML as statements, by the schema of the vocabulary that they are read for."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lexarium.domain.identifiers import MAX_ID_BYTES, MAX_TARGET_BYTES
from lexarium.domain.record import TYPE, RecordState
from lexarium.domain.schema.collections import COLLECTIONS_BY_TYPE
from lexarium.domain.schema.model import Schema, SchemaClass, Slot
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.schema.yaml_nodes import InvalidYaml, YamlMapping, YamlNode, YamlScalar, YamlSequence, parse_yaml
from lexarium.domain.statement import (
    BOOLEAN,
    INTEGER,
    MAX_DEPTH,
    Node,
    Reference,
    Statement,
    Text,
    Value,
    measure_statements,
    parse_statements,
)
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.vocabulary import DEFAULT_SCHEMA, Vocabulary
from lexarium.formats.json.linkml_values import (
    DETAILS_KEY,
    ENTRIES_KEY,
    IRI_KEY,
    OWN_KEYS,
    REPLACED_BY_KEY,
    STATE_KEY,
    STATEMENTS_KEY,
    TYPE_KEY,
    apply_details,
    has_form,
    read_value,
    to_text,
)
from lexarium.formats.json.stream import JsonItem, iter_items
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.reading import copy_seekable
from lexarium.formats.resources import ParsedResource, ResourceOptions, SourceDescription

# Values of a YAML document, which is loaded whole.
_MAX_YAML_NODES = 5_000_000


def open_document(stream: io.BufferedReader, options: ResourceOptions) -> "LinkmlDocument":
    """Read a document; raise ParseError."""
    if stream.peek(1).lstrip()[:1] in (b"{", b"["):
        file = copy_seekable(stream)

        def read_items() -> Iterator[JsonItem]:
            file.seek(0)
            return iter_items(file)

        try:
            return LinkmlDocument(read_items, file.close)
        except BaseException:
            file.close()
            raise
    items = list(_load_yaml(stream.read()))
    return LinkmlDocument(lambda: iter(items), lambda: None)


class LinkmlDocument:
    """Container of records. It is read once for its class, which is often at the end, and again for its records."""

    covers = None

    def __init__(self, read_items: Callable[[], Iterator[JsonItem]], close: Callable[[], None]) -> None:
        self.warnings = WarningCounter()
        self.close = close
        self._read_items = read_items
        types = (item for item in read_items() if item.member == TYPE_KEY)
        self._type = next(types, JsonItem(1, "", None, None))

    def describe(self) -> SourceDescription:
        """Return that the document belongs to the Cognitive Atlas, or nothing."""
        is_known = isinstance(self._type.value, str) and self._type.value in COLLECTIONS_BY_TYPE
        return SourceDescription("", "", DEFAULT_SCHEMA if is_known else "", "", kind="linkml")

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield the records, those that are inlined in others too."""
        schema = vocabulary.schema
        if not schema.inverses:
            yield from self._iter_records(vocabulary, self.warnings)
            return
        # Of two inverse statements, one is kept, at the record that the schema says.
        classes = {item.id: item.class_uri for item in self._iter_records(vocabulary, WarningCounter())}
        for resource in self._iter_records(vocabulary, self.warnings):
            kept = []
            for statement in resource.statements:
                inverse, target = schema.inverses.get(statement.predicate), statement.value[0]
                if inverse and isinstance(statement.value, Reference) and target in classes:
                    moved = Statement(inverse, Reference(resource.id), statement.qualifiers)
                    yield ParsedResource(resource.line, str(target), classes[str(target)], [moved])
                else:
                    kept.append(statement)
            resource.statements = kept
            yield resource

    def _iter_records(self, vocabulary: Vocabulary, warnings: WarningCounter) -> Iterator[ParsedResource]:
        reader = _RecordReader(vocabulary, warnings)
        members = _list_members(vocabulary.schema, self._type)
        count, number, member, line = 0, 0, "", 1
        for item in self._read_items():
            number = number + 1 if item.member == member else 0
            member, line = item.member, item.line
            if member in members:
                count += 1
                place = number if item.key is None else item.key
                pointer = f"/{member}/{place}" if member else f"/{place}"
                yield from reader.read_record(item, members[member], pointer)
            elif member != TYPE_KEY and number == 0:
                warnings.add(f"{member} is not part of a container; it was skipped", f"line {line}", is_loss=True)
        if not count and member not in ("", TYPE_KEY):
            raise ParseError(f"it has none of {', '.join(filter(None, members))}; LinkML data were expected", line, 1)
        if not count:
            warnings.add("it has no records")


def _list_members(schema: Schema, stated: JsonItem) -> dict[str, SchemaClass | None]:
    """Return the members of a document that hold records, with the class of each; None if records state theirs."""
    if stated.value is not None:
        name = stated.value if isinstance(stated.value, str) else ""
        if name in schema.containers:
            return {member: schema.classes[item] for member, item in schema.containers[name].items()}
        schema_class = schema.find_class(name)
        if schema_class is None:
            known = ", ".join([*schema.containers, *(item.name for item in schema.collections.values())])
            raise ParseError(f"its {TYPE_KEY} is {stated.value!r}, which is not one of {known}", stated.line, 1)
        return {ENTRIES_KEY: schema_class}
    main = list(schema.main_collections.values())
    only = main[0] if len(main) == 1 else None
    names: dict[str, set[str]] = {}
    for ranges in schema.containers.values():
        for member, class_name in ranges.items():
            names.setdefault(member, set()).add(class_name)
    members = {member: schema.classes[min(found)] if len(found) == 1 else only for member, found in names.items()}
    return {"": only, ENTRIES_KEY: only, **members}


class _RecordReader:
    """Read objects as records; count what is odd about them."""

    def __init__(self, vocabulary: Vocabulary, warnings: WarningCounter) -> None:
        self._schema = vocabulary.schema
        self._vocabulary = vocabulary
        self._warnings = warnings

    def read_record(
        self, item: JsonItem, range_class: SchemaClass | None, pointer: str, depth: int = 1
    ) -> list[ParsedResource]:
        """Return the record that an object is, after those that are inlined in it."""
        resource = ParsedResource(item.line, pointer, "")
        entry = {} if item.value is None and item.key is not None else item.value
        if not isinstance(entry, dict):
            resource.problems.append((0, "is not an object, one record"))
            return [resource]
        schema_class = self._choose_class(entry, range_class)
        if schema_class is None or schema_class.identifier is None:
            resource.problems.append((0, self._explain_class(entry, range_class)))
            return [resource]
        identifier = schema_class.identifier.name
        record_id = to_text(entry.get(identifier, item.key))
        if not record_id:
            resource.problems.append((0, f"has no {identifier}"))
            return [resource]
        resource.id, resource.class_uri = self._vocabulary.contract_iri(record_id), schema_class.uri
        resource.iri = record_id if "://" in record_id else None
        inlined = _ObjectReader(self._schema, self._vocabulary, self._warnings, resource, self)
        resource.statements = inlined.read(schema_class, entry, "", depth)
        self._read_state(resource, entry)
        self._check(resource, schema_class)
        return [*inlined.resources, resource]

    def _choose_class(self, entry: Mapping[str, Any], range_class: SchemaClass | None) -> SchemaClass | None:
        if TYPE_KEY in entry:
            stated = entry[TYPE_KEY]
            found = self._schema.find_class(stated) if isinstance(stated, str) else None
            return None if found is None or found.abstract or found.tree_root else found
        if range_class is not None and range_class.abstract:
            heirs = [item for item in self._schema.collections.values() if range_class.name in item.ancestors]
            return heirs[0] if len(heirs) == 1 else None
        return range_class

    def _explain_class(self, entry: Mapping[str, Any], range_class: SchemaClass | None) -> str:
        names = [
            item.name
            for item in self._schema.collections.values()
            if range_class is None or range_class.name in (item.name, *item.ancestors)
        ]
        stated = f"its {TYPE_KEY} is {entry[TYPE_KEY]!r}" if TYPE_KEY in entry else f"it has no {TYPE_KEY}"
        return f"does not say its class: {stated}, which must be one of {', '.join(names)}"

    def _read_state(self, resource: ParsedResource, entry: Mapping[str, Any]) -> None:
        texts = {key: entry.get(key) for key in (IRI_KEY, STATE_KEY, REPLACED_BY_KEY)}
        for key, text in texts.items():
            if text is not None and (not isinstance(text, str) or not text or find_unstorable_char(text)):
                resource.problems.append((0, f"has an {key} that is not text"))
                return
        if IRI_KEY in entry:
            resource.iri = texts[IRI_KEY]
        if texts[STATE_KEY] not in (None, RecordState.PUBLISHED, RecordState.RETIRED):
            resource.problems.append(
                (0, f"has the {STATE_KEY} {texts[STATE_KEY]!r}, which is not one of published, retired")
            )
            return
        resource.state = None if texts[STATE_KEY] is None else RecordState(str(texts[STATE_KEY]))
        if texts[REPLACED_BY_KEY] is not None:
            resource.state = RecordState.RETIRED
            resource.replaced_by = self._vocabulary.contract_iri(str(texts[REPLACED_BY_KEY]))

    def _check(self, resource: ParsedResource, schema_class: SchemaClass) -> None:
        if measure_statements(resource.statements)[1] > MAX_DEPTH:
            resource.problems.append((0, f"is nested more than {MAX_DEPTH} levels deep"))
        stated = {statement.predicate for statement in resource.statements}
        slots = schema_class.slots_by_predicate
        for slot in slots.values():
            # The importer warns of records without a name.
            is_required = slot.required and not slot.identifier and slot.role is not SlotRole.NAME
            if is_required and slot.predicate not in stated:
                self._warnings.add(f"a record has no {slot.name}, which {schema_class.name} requires", resource.id)
        for predicate, value, _ in resource.statements:
            is_mapping = predicate in slots and slots[predicate].role is SlotRole.MAPPING
            limit = MAX_TARGET_BYTES if is_mapping else MAX_ID_BYTES
            if isinstance(value, Reference) and not 0 < len(value.target.encode(errors="replace")) <= limit:
                resource.problems.append(
                    (0, f"has a reference by {predicate} that is empty or has more than {limit} bytes")
                )


class _ObjectReader:
    """Read the statements of one record, and of the nodes in it."""

    def __init__(
        self,
        schema: Schema,
        vocabulary: Vocabulary,
        warnings: WarningCounter,
        resource: ParsedResource,
        records: _RecordReader,
    ) -> None:
        self._schema = schema
        self._vocabulary = vocabulary
        self._warnings = warnings
        self._resource = resource
        self._records = records
        # Records that are inlined.
        self.resources: list[ParsedResource] = []

    def read(self, schema_class: SchemaClass, entry: Mapping[str, Any], pointer: str, depth: int) -> list[Statement]:
        """Return the statements of an object of a class. Problems are added to the resource."""
        if depth > MAX_DEPTH:
            self._add_problem(pointer, f"is nested more than {MAX_DEPTH} levels deep")
            return []
        details = entry.get(DETAILS_KEY) or {}
        if not isinstance(details, dict):
            self._add_problem(f"{pointer}/{DETAILS_KEY}", "is not an object")
            details = {}
        statements: list[Statement] = []
        for key, value in entry.items():
            slot = schema_class.slots.get(key)
            if key in OWN_KEYS or value is None or (slot is not None and slot.identifier):
                continue
            if slot is None:
                statements += self._read_undeclared(schema_class, key, value, f"{pointer}/{key}", depth)
            else:
                statements += self._read_slot(slot, value, details.get(key), f"{pointer}/{key}", depth)
        try:
            return [*statements, *parse_statements(entry.get(STATEMENTS_KEY) or {})]
        except ValueError as error:
            self._add_problem(f"{pointer}/{STATEMENTS_KEY}", str(error))
            return statements

    def _read_slot(self, slot: Slot, value: Any, details: Any, pointer: str, depth: int) -> list[Statement]:
        is_list = isinstance(value, list)
        values = list(enumerate(value)) if is_list else self._split_inlined(slot, value)
        if len(values) > 1 and not slot.multivalued:
            self._warn(f"{slot.name} has several values, and the schema allows one; all were kept")
        all_details = (details if isinstance(details, list) else [details]) if details else [None] * len(values)
        if len(all_details) != len(values):
            self._warn(f"{DETAILS_KEY} of {slot.name} are not as many as its values; they were skipped", is_loss=True)
            all_details = [None] * len(values)
        statements = []
        for (place, item), item_details in zip(values, all_details, strict=True):
            at = pointer if place == "" else f"{pointer}/{place}"
            read = self._read_item(slot, item, str(place) if isinstance(value, dict) else None, at, depth)
            if read is None:
                continue
            try:
                statements.append(
                    apply_details(slot.predicate, read, item_details)
                    if item_details
                    else Statement(slot.predicate, read)
                )
            except ValueError as error:
                self._add_problem(f"{DETAILS_KEY}{at}", str(error))
        return statements

    def _split_inlined(self, slot: Slot, value: Any) -> list[tuple[Any, Any]]:
        """Return the values of a slot that is no list: one, or records in an object by their ids."""
        range_class = self._schema.classes.get(slot.range)
        if not isinstance(value, dict) or not slot.is_reference or range_class is None:
            return [("", value)]
        is_one = TYPE_KEY in value or (range_class.identifier and range_class.identifier.name in value)
        return [("", value)] if is_one else list(value.items())

    def _read_item(self, slot: Slot, item: Any, key: str | None, pointer: str, depth: int) -> Value | None:
        range_class = self._schema.classes.get(slot.range)
        if range_class is not None and slot.is_reference and (isinstance(item, dict) or (key and item is None)):
            nested = self._records.read_record(
                JsonItem(self._resource.line, "", key or None, item),
                range_class,
                f"{self._resource.id}{pointer}",
                depth + 1,
            )
            self.resources += nested
            return Reference(nested[-1].id)
        if isinstance(item, dict) and slot.is_node and range_class is not None:
            return self._read_node(range_class, item, pointer, depth)
        text = to_text(item)
        if item is None:
            return None
        if text is None:
            kind = "an object" if isinstance(item, dict) else "a list"
            self._add_problem(pointer, f"is {kind}, where a value of {slot.range} belongs")
            return None
        return self._read_text(slot, text, pointer)

    def _read_text(self, slot: Slot, text: str, pointer: str) -> Value | None:
        if not text:
            self._warn("an empty text was skipped", slot.name, is_loss=True)
            return None
        if char := find_unstorable_char(text):
            self._add_problem(pointer, f"contains the character {char}, which cannot be stored")
            return None
        if slot.is_node:
            self._warn(f"{slot.name} is a text, and the schema has objects of {slot.range}; it was kept")
        elif not has_form(slot, text):
            self._warn(f"{slot.name} does not have the form of {slot.range}; it was kept as text")
        elif slot.enum_values and text not in {value.text for value in slot.enum_values}:
            self._warn(f"{slot.name} is not one of the values of {slot.range}; it was kept")
        return read_value(slot, text, self._vocabulary)

    def _read_node(self, range_class: SchemaClass, entry: Mapping[str, Any], pointer: str, depth: int) -> Node | None:
        schema_class, statements = range_class, list[Statement]()
        if TYPE_KEY in entry:
            stated = entry[TYPE_KEY]
            found = self._schema.find_class(stated) if isinstance(stated, str) else None
            if found is None or range_class.name not in (found.name, *found.ancestors):
                self._add_problem(f"{pointer}/{TYPE_KEY}", f"is {stated!r}, which is not a {range_class.name}")
                return None
            schema_class = found
            statements = [] if found is range_class else [Statement(TYPE, Reference(found.uri))]
        iri = entry.get(IRI_KEY) or ""
        if not isinstance(iri, str) or find_unstorable_char(iri):
            self._add_problem(f"{pointer}/{IRI_KEY}", "is not text")
            return None
        return Node((*statements, *self.read(schema_class, entry, pointer, depth + 1)), iri)

    def _read_undeclared(
        self, schema_class: SchemaClass, key: str, value: Any, pointer: str, depth: int
    ) -> list[Statement]:
        """Return the statements of a key that is no slot."""
        predicate = self._schema.name_predicate(key)
        if not key or key[0] == "@" or len(predicate.encode(errors="replace")) > MAX_ID_BYTES:
            message = f"{key[:100]} is not a slot of {schema_class.name}, and cannot be kept; it was skipped"
            self._warn(message, is_loss=True)
            return []
        if char := find_unstorable_char(key):
            self._add_problem(pointer, f"contains the character {char}, which cannot be stored")
            return []
        self._warn(f"{key} is not a slot of {schema_class.name}; it was kept as a statement of {predicate}")
        return self._state_any(predicate, value, pointer, depth)

    def _state_any(self, predicate: str, value: Any, pointer: str, depth: int) -> list[Statement]:
        if isinstance(value, list):
            items = [
                (f"{pointer}/{place}", [item] if isinstance(item, list) else item) for place, item in enumerate(value)
            ]
            return [
                statement
                for at, item in items
                for statement in (
                    [Statement(predicate, Node(tuple(self._state_any("rdf:value", item[0], at, depth + 1))))]
                    if isinstance(item, list)
                    else self._state_any(predicate, item, at, depth)
                )
            ]
        if value is None:
            return []
        if depth > MAX_DEPTH:
            self._add_problem(pointer, f"is nested more than {MAX_DEPTH} levels deep")
            return []
        if isinstance(value, dict):
            inner = []
            for key, item in value.items():
                inner_predicate = self._schema.name_predicate(key) if key else "rdf:value"
                if find_unstorable_char(key) or len(inner_predicate.encode()) > MAX_ID_BYTES:
                    self._add_problem(pointer, f"has a key that cannot be stored, {key[:50]!r}")
                else:
                    inner += self._state_any(inner_predicate, item, f"{pointer}/{key}", depth + 1)
            return [Statement(predicate, Node(tuple(inner)))]
        return [Statement(predicate, self._to_any_text(value, pointer))]

    def _to_any_text(self, value: Any, pointer: str) -> Text:
        text = to_text(value) or ""
        if char := find_unstorable_char(text):
            self._add_problem(pointer, f"contains the character {char}, which cannot be stored")
        types = {bool: BOOLEAN, int: INTEGER, float: "xsd:double"}
        return Text(text, "", types.get(type(value), ""))

    def _warn(self, message: str, what: str = "", *, is_loss: bool = False) -> None:
        example = f"{what} of {self._resource.id}" if what else self._resource.id
        self._warnings.add(message, example, is_loss=is_loss)

    def _add_problem(self, pointer: str, reason: str) -> None:
        self._resource.problems.append((0, f"at {pointer} {reason}"))


def _load_yaml(data: bytes) -> Iterator[JsonItem]:
    try:
        root = parse_yaml(data.decode(), _MAX_YAML_NODES)
    except InvalidYaml as error:
        reason = str(error)
        raise ParseError(reason[0].lower() + reason[1:].removesuffix("."), error.line, 1) from None
    if root is None:
        raise ParseError("the file is empty; LinkML data were expected", 1, 1)
    if isinstance(root, YamlSequence):
        yield from (JsonItem(node.line, "", None, _to_json(node)) for node in root.items)
    elif isinstance(root, YamlMapping):
        for key, node in root.entries:
            if isinstance(node, YamlSequence):
                yield from (JsonItem(item.line, key.text, None, _to_json(item)) for item in node.items)
            elif isinstance(node, YamlMapping):
                yield from (JsonItem(name.line, key.text, name.text, _to_json(item)) for name, item in node.entries)
            else:
                yield JsonItem(key.line, key.text, None, _to_json(node))
    else:
        raise ParseError("this is neither a YAML mapping nor a list", root.line, 1)


def _to_json(node: YamlNode, *, typed: bool = False) -> Any:
    """Return a value as in JSON. Outside of our own keys, numbers and truth values are texts, as they are written."""
    if isinstance(node, YamlScalar):
        return None if node.is_null else _to_typed(node) if typed else node.text
    if isinstance(node, YamlSequence):
        return [_to_json(item, typed=typed) for item in node.items]
    return {key.text: _to_json(value, typed=typed or key.text.startswith("@")) for key, value in node.entries}


def _to_typed(node: YamlScalar) -> Any:
    try:
        value = json.loads(node.text) if node.is_plain else node.text
    except ValueError:
        return node.text
    return value if isinstance(value, int) else node.text
