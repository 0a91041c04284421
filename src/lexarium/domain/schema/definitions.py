"""Definitions in a LinkML schema as they are written, before inheritance is resolved."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from lexarium.domain.errors import LineProblem
from lexarium.domain.schema.model import PermissibleValue, ValphaList, ValphaStep
from lexarium.domain.schema.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence

ANNOTATION_PREFIX = "lexarium_"

# Keys that describe an element and change nothing.
_DESCRIPTIVE_KEYS = ("name", "title", "description")


class LocatedValue(NamedTuple):
    """Value of a key with the line of the key."""

    value: Any
    line: int


@dataclass
class Definition:
    """Class, slot or enumeration: the supported keys that it has, and its annotations."""

    name: str
    line: int
    values: dict[str, LocatedValue] = field(default_factory=dict)
    annotations: dict[str, LocatedValue] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key without its line."""
        return self.values[key].value if key in self.values else default

    def line_of(self, key: str) -> int:
        """Return the line of a key, or of the definition if it does not have the key."""
        return self.values[key].line if key in self.values else self.line


@dataclass
class ClassDefinition(Definition):
    """Class with the slots it lists, its attributes and its changes of slots."""

    slots: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, Definition] = field(default_factory=dict)
    slot_usage: dict[str, Definition] = field(default_factory=dict)

    @property
    def has_slots(self) -> bool:
        """Return whether the class itself has or changes slots."""
        return bool(self.slots or self.attributes or self.slot_usage)


@dataclass
class SchemaDefinition(Definition):
    """Whole schema."""

    prefixes: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ClassDefinition] = field(default_factory=dict)
    slots: dict[str, Definition] = field(default_factory=dict)
    enums: dict[str, tuple[PermissibleValue, ...]] = field(default_factory=dict)
    # Built-in type that each type of the schema's own is read as.
    types: dict[str, str] = field(default_factory=dict)


def normalize_slot_name(name: str) -> str:
    """Return the name of a slot as keys of data have it, which is how LinkML writes it in data."""
    return "_".join(name.split()).replace(",", "").replace("-", "_")


class DefinitionReader:
    """Read the definitions of a schema from YAML, and collect its problems and warnings."""

    def __init__(self) -> None:
        self.problems: list[LineProblem] = []
        self.warnings: list[LineProblem] = []

    def add_problem(self, line: int, message: str) -> None:
        self.problems.append(LineProblem(line, message))

    def add_warning(self, line: int, message: str) -> None:
        self.warnings.append(LineProblem(line, message))

    def read_schema(self, root: YamlNode) -> SchemaDefinition:
        """Return all definitions of a schema."""
        schema = SchemaDefinition("", 1)
        if not isinstance(root, YamlMapping):
            self.add_problem(root.line, "Not a LinkML schema: it must start with keys such as `id:`.")
            return schema
        entries = self._read_entries(root, "the schema")
        self._read_values(schema, entries, SCHEMA_VALUES, SCHEMA_PARTS, "the schema")
        schema.name = schema.get("name", "")
        schema.annotations = self._read_annotations(entries, "the schema", SCHEMA_ANNOTATIONS)
        self._check_imports(schema)
        schema.prefixes = self._read_prefixes(entries)
        schema.types = self._read_types(entries)
        schema.enums = self._read_enums(entries)
        schema.slots = self._read_slots(entries, "slots", "the schema")
        schema.classes = {
            name: self._read_class(name, line, node)
            for name, (node, line) in self._read_part(entries, "classes", "the schema").items()
        }
        return schema

    def _read_entries(self, mapping: YamlMapping, owner: str) -> dict[str, LocatedValue]:
        """Return the entries of a mapping, each as its node; report keys that occur twice."""
        entries: dict[str, LocatedValue] = {}
        for key, node in mapping.entries:
            if key.text in entries:
                first_line = entries[key.text].line
                self.add_problem(key.line, f"The key `{key.text}` of {owner} is already on line {first_line}.")
            else:
                entries[key.text] = LocatedValue(node, key.line)
        return entries

    def _read_part(self, entries: dict[str, LocatedValue], key: str, owner: str) -> dict[str, LocatedValue]:
        """Return the nodes of a part of an element, such as `classes`, by name."""
        if key not in entries:
            return {}
        node, line = entries[key]
        if isinstance(node, YamlMapping):
            return self._read_entries(node, f"`{key}` of {owner}")
        if not (isinstance(node, YamlScalar) and node.is_null):
            self.add_problem(line, f"`{key}` of {owner} must be names with definitions.")
        return {}

    def _read_element(self, node: YamlNode, line: int, owner: str) -> dict[str, LocatedValue]:
        """Return the entries of one element, which may be empty."""
        if isinstance(node, YamlMapping):
            return self._read_entries(node, owner)
        if not (isinstance(node, YamlScalar) and node.is_null):
            self.add_problem(line, f"{_capitalize(owner)} must have keys, such as `description:`.")
        return {}

    def _read_values(
        self,
        definition: Definition,
        entries: dict[str, LocatedValue],
        parsers: "dict[str, Parser]",
        parts: Collection[str],
        owner: str,
    ) -> None:
        """Set the values of the supported keys; warn of all others."""
        for key, (node, line) in entries.items():
            if key in parsers:
                if isinstance(node, YamlScalar) and node.is_null:
                    continue
                value = parsers[key](node)
                if value is None:
                    self.add_problem(line, f"`{key}` of {owner} must be {_EXPECTED[parsers[key]]}.")
                else:
                    definition.values[key] = LocatedValue(value, line)
            elif key not in parts:
                self._warn_of_key(key, line, owner, [*parsers, *parts])

    def _warn_of_key(self, key: str, line: int, owner: str, known: list[str]) -> None:
        similar = get_close_matches(key, known, n=1, cutoff=0.8)
        hint = f" Did you mean `{similar[0]}`?" if similar else ""
        self.add_warning(line, f"The key `{key}` of {owner} is not supported and has no effect.{hint}")

    def _read_annotations(
        self, entries: dict[str, LocatedValue], owner: str, parsers: "dict[str, Parser]"
    ) -> dict[str, LocatedValue]:
        """Return the annotations whose names begin with `lexarium_`, without that beginning."""
        annotations: dict[str, LocatedValue] = {}
        for name, (node, line) in self._read_part(entries, "annotations", owner).items():
            if not name.startswith(ANNOTATION_PREFIX):
                continue
            key = name.removeprefix(ANNOTATION_PREFIX)
            if key not in parsers:
                known = [f"{ANNOTATION_PREFIX}{parser_key}" for parser_key in parsers]
                similar = get_close_matches(name, known, n=1, cutoff=0.7)
                hint = f" Did you mean `{similar[0]}`?" if similar else ""
                self.add_problem(line, f"Unknown annotation `{name}` for {owner}.{hint}")
                continue
            value_node = _get_annotation_value(node)
            value = None if value_node is None else parsers[key](value_node)
            if value is None:
                self.add_problem(line, f"The annotation `{name}` of {owner} must be {_EXPECTED[parsers[key]]}.")
            else:
                annotations[key] = LocatedValue(value, line)
        return annotations

    def _check_imports(self, schema: SchemaDefinition) -> None:
        for name, line in schema.get("imports", {}).items():
            if name != "linkml:types":
                self.add_problem(line, f"Cannot import `{name}`: only `linkml:types` can be imported.")

    def _read_prefixes(self, entries: dict[str, LocatedValue]) -> dict[str, str]:
        prefixes: dict[str, str] = {}
        for name, (node, line) in self._read_part(entries, "prefixes", "the schema").items():
            if isinstance(node, YamlMapping):
                node = {key.text: value for key, value in node.entries}.get("prefix_reference", node)  # noqa: PLW2901
            namespace = parse_text(node)
            if namespace is None or ":" not in namespace:
                self.add_problem(line, f"The prefix `{name}` must be an IRI, such as https://example.org/.")
            else:
                prefixes[name] = namespace
        return prefixes

    def _read_types(self, entries: dict[str, LocatedValue]) -> dict[str, str]:
        types: dict[str, str] = {}
        for name, (node, line) in self._read_part(entries, "types", "the schema").items():
            element = self._read_element(node, line, f"the type `{name}`")
            types[name] = (parse_text(element["typeof"].value) if "typeof" in element else None) or "string"
            self.add_warning(line, f"Custom types are not supported: `{name}` is read as `{types[name]}`.")
        return types

    def _read_enums(self, entries: dict[str, LocatedValue]) -> dict[str, tuple[PermissibleValue, ...]]:
        enums: dict[str, tuple[PermissibleValue, ...]] = {}
        for name, (node, line) in self._read_part(entries, "enums", "the schema").items():
            owner = f"the enumeration `{name}`"
            element = self._read_element(node, line, owner)
            self._read_values(Definition(name, line), element, _ENUM_VALUES, ["permissible_values"], owner)
            enums[name] = self._read_permissible_values(element, line, owner)
        return enums

    def _read_permissible_values(
        self, element: dict[str, LocatedValue], line: int, owner: str
    ) -> tuple[PermissibleValue, ...]:
        if "permissible_values" in element and isinstance(element["permissible_values"].value, YamlSequence):
            texts = _parse_texts(element["permissible_values"].value)
            if texts is not None:
                return tuple(PermissibleValue(text) for text in texts)
        values = []
        for text, (node, value_line) in self._read_part(element, "permissible_values", owner).items():
            definition = Definition(text, value_line)
            value_owner = f"the value `{text}` of {owner}"
            value_entries = self._read_element(node, value_line, value_owner)
            self._read_values(definition, value_entries, _PERMISSIBLE_VALUE_VALUES, (), value_owner)
            values.append(PermissibleValue(text, definition.get("description", "")))
        if not values:
            self.add_warning(line, f"{_capitalize(owner)} has no permissible values: any text is allowed.")
        return tuple(values)

    def _read_slots(self, entries: dict[str, LocatedValue], key: str, owner: str) -> dict[str, Definition]:
        """Return the slots under a key by their names in data."""
        slots: dict[str, Definition] = {}
        for name, (node, line) in self._read_part(entries, key, owner).items():
            slot_owner = f"the slot `{name}`" if owner == "the schema" else f"the slot `{name}` of {owner}"
            definition = Definition(normalize_slot_name(name), line)
            if not _is_name(name):
                self.add_problem(line, f"`{name}` cannot be the name of a slot: names must start with a letter.")
            if definition.name in slots:
                first_line = slots[definition.name].line
                message = f"`{name}` is `{definition.name}` in data, as is the slot on line {first_line}."
                self.add_problem(line, message)
                continue
            element = self._read_element(node, line, slot_owner)
            self._read_values(definition, element, SLOT_VALUES, ["annotations"], slot_owner)
            definition.annotations = self._read_annotations(element, slot_owner, SLOT_ANNOTATIONS)
            _normalize_parents(definition)
            slots[definition.name] = definition
        return slots

    def _read_class(self, name: str, line: int, node: YamlNode) -> ClassDefinition:
        owner = f"the class `{name}`"
        definition = ClassDefinition(name, line)
        if not _is_name(name):
            self.add_problem(line, f"`{name}` cannot be the name of a class: names must start with a letter.")
        element = self._read_element(node, line, owner)
        self._read_values(definition, element, CLASS_VALUES, CLASS_PARTS, owner)
        definition.annotations = self._read_annotations(element, owner, CLASS_ANNOTATIONS)
        definition.slots = {normalize_slot_name(slot): at for slot, at in definition.get("slots", {}).items()}
        definition.attributes = self._read_slots(element, "attributes", owner)
        definition.slot_usage = self._read_slots(element, "slot_usage", owner)
        return definition


def _normalize_parents(slot: Definition) -> None:
    """Write the parents of a slot as their own names are written."""
    for key, (value, line) in slot.values.items():
        if key == "is_a":
            slot.values[key] = LocatedValue(normalize_slot_name(value), line)
        elif key == "mixins":
            slot.values[key] = LocatedValue({normalize_slot_name(name): at for name, at in value.items()}, line)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_name(name: str) -> bool:
    return name[:1].isalpha() and name.replace("_", "").replace("-", "").replace(" ", "").isalnum()


def _get_annotation_value(node: YamlNode) -> YamlNode | None:
    """Return the value of an annotation, which may be written as `{tag: …, value: …}`."""
    if isinstance(node, YamlMapping):
        return next((value for key, value in node.entries if key.text == "value"), None)
    return node


def parse_text(node: YamlNode) -> str | None:
    """Return a text, or None if the node is none."""
    return node.text if isinstance(node, YamlScalar) and not node.is_null else None


def _parse_flag(node: YamlNode) -> bool | None:
    return node.to_bool() if isinstance(node, YamlScalar) else None


def _parse_integer(node: YamlNode) -> int | None:
    # Longer numbers have no use, and Python refuses to parse very long ones.
    text = node.text.removeprefix("-") if isinstance(node, YamlScalar) else ""
    return (
        int(node.text)
        if isinstance(node, YamlScalar) and text.isascii() and text.isdigit() and len(text) < 10
        else None
    )


def _parse_texts(node: YamlNode) -> dict[str, int] | None:
    """Return the texts of a list, or a single one, with their lines."""
    items = node.items if isinstance(node, YamlSequence) else [node]
    texts: dict[str, int] = {}
    for item in items:
        text = parse_text(item)
        if text is None:
            return None
        texts.setdefault(text, item.line)
    return texts


def _parse_names(node: YamlNode) -> tuple[str, ...] | None:
    """Return names that are separated by commas."""
    text = parse_text(node)
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    return names if names and all(names) else None


_VALPHA_LIST = re.compile(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*=([^=]*)")


def _parse_valpha_lists(node: YamlNode) -> tuple[ValphaList, ...] | None:
    """Return the lists in `citations=has_citation; parents(id, name)=kind_of, ^has_kind`."""
    lists = []
    for part in (parse_text(node) or "").split(";"):
        match = _VALPHA_LIST.fullmatch(part)
        if match is None:
            return None
        key, entry_keys, paths = match.groups(default="id, name")
        steps = tuple(tuple(map(_parse_step, path.split("/"))) for path in paths.split(","))
        if not all(step.slot for path in steps for step in path):
            return None
        lists.append(ValphaList(key, tuple(name.strip() for name in entry_keys.split(",")), steps))
    return tuple(lists)


def _parse_step(text: str) -> ValphaStep:
    return ValphaStep(text.strip().removeprefix("^").strip(), text.strip().startswith("^"))


Parser = Callable[[YamlNode], Any]

_EXPECTED: dict[Parser, str] = {
    parse_text: "a text",
    _parse_flag: "true or false",
    _parse_integer: "a whole number of at most nine digits",
    _parse_texts: "a list of names",
    _parse_names: "names separated by commas",
    _parse_valpha_lists: "lists with their slots, such as `citations=has_citation; members=^member_of`",
}

_DESCRIPTIVE_VALUES: dict[str, Parser] = dict.fromkeys(_DESCRIPTIVE_KEYS, parse_text)
SCHEMA_VALUES: dict[str, Parser] = {
    **_DESCRIPTIVE_VALUES,
    **dict.fromkeys(("id", "version", "license", "default_prefix", "default_range"), parse_text),
    **dict.fromkeys(("imports", "see_also"), _parse_texts),
}
SCHEMA_PARTS = ("prefixes", "types", "enums", "slots", "classes", "annotations")
_ENUM_VALUES: dict[str, Parser] = _DESCRIPTIVE_VALUES
_PERMISSIBLE_VALUE_VALUES: dict[str, Parser] = {**_DESCRIPTIVE_VALUES, "text": parse_text}
SLOT_VALUES: dict[str, Parser] = {
    **_DESCRIPTIVE_VALUES,
    **dict.fromkeys(("is_a", "range", "pattern", "slot_uri", "inverse"), parse_text),
    **dict.fromkeys(
        ("abstract", "mixin", "multivalued", "required", "identifier", "symmetric", "inlined", "inlined_as_list"),
        _parse_flag,
    ),
    "mixins": _parse_texts,
}
CLASS_VALUES: dict[str, Parser] = {
    **_DESCRIPTIVE_VALUES,
    **dict.fromkeys(("is_a", "class_uri"), parse_text),
    **dict.fromkeys(("abstract", "mixin", "tree_root"), _parse_flag),
    **dict.fromkeys(("mixins", "slots"), _parse_texts),
}
CLASS_PARTS = ("attributes", "slot_usage", "annotations")

# Annotations without `lexarium_`.
SCHEMA_ANNOTATIONS: dict[str, Parser] = {}
CLASS_ANNOTATIONS: dict[str, Parser] = {
    **dict.fromkeys(("auxiliary", "valpha", "valpha_sort_by_name"), _parse_flag),
    **dict.fromkeys(("id_prefixes", "valpha_fields"), _parse_names),
    "valpha_lists": _parse_valpha_lists,
    "valpha_search_prefix": parse_text,
}
SLOT_ANNOTATIONS: dict[str, Parser] = {
    **dict.fromkeys(("role", "inverse_label", "id_prefix", "prefix", "relation", "valpha_default"), parse_text),
    **dict.fromkeys(("hierarchical", "editable", "separated"), _parse_flag),
    **dict.fromkeys(("order", "max_length"), _parse_integer),
}
