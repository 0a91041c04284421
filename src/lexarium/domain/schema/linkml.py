"""Load schemas written in LinkML: the subset that `docs/guides/schemas.md` describes."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lexarium.domain.errors import InvalidSchema, LineProblem
from lexarium.domain.schema.definitions import (
    ClassDefinition,
    Definition,
    DefinitionReader,
    LocatedValue,
    SchemaDefinition,
    normalize_slot_name,
)
from lexarium.domain.schema.model import (
    NO_ORDER,
    REFERENCE_TYPES,
    Schema,
    SchemaClass,
    Slot,
)
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole, contract_predicate
from lexarium.domain.schema.yaml_nodes import InvalidYaml, parse_yaml

_BUILTIN_FOLDER = Path(__file__).parent / "builtin"
BUILTIN_NAMES = ("cognitive-atlas", "skos", "obo")

MAX_SCHEMA_BYTES = 2**20
# Slots of all classes together, inherited ones included.
MAX_SLOTS = 100_000
MAX_ANCESTORS = 100

# Types of `linkml:types`.
TYPES = frozenset(
    {
        *("string", "integer", "boolean", "float", "double", "decimal", "time", "date", "datetime", "date_or_datetime"),
        *("uriorcurie", "curie", "uri", "ncname", "objectidentifier", "nodeidentifier"),
        *("jsonpointer", "jsonpath", "sparqlpath"),
    }
)

# Keys that a slot takes from the slots it is derived from.
_INHERITED_KEYS = ("range", "required", "multivalued", "inlined", "inlined_as_list", "pattern")

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def decode_schema(content: bytes) -> str:
    """Decode a LinkML file; raise `InvalidSchema` if it is too large or not UTF-8."""
    _require_size(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSchema([LineProblem(content.count(b"\n", 0, error.start) + 1, "Invalid UTF-8.")]) from None
    # A line break distinguishes it from the name of a built-in schema.
    return text if "\n" in text else f"{text}\n"


def _require_size(content: bytes) -> None:
    if len(content) > MAX_SCHEMA_BYTES:
        raise InvalidSchema([LineProblem(1, f"The schema has more than {MAX_SCHEMA_BYTES:,} bytes.")])


def load_schema(text: str) -> Schema:
    """Load a schema from LinkML YAML; raise `InvalidSchema` with all problems if there are any."""
    _require_size(text.encode(errors="replace"))
    try:
        root = parse_yaml(text)
    except InvalidYaml as error:
        raise InvalidSchema([LineProblem(error.line, str(error))]) from None
    if root is None:
        raise InvalidSchema([LineProblem(1, "The file is empty.")])
    reader = DefinitionReader()
    definition = reader.read_schema(root)
    schema = _SchemaBuilder(definition, reader).build(text)
    if reader.problems:
        raise InvalidSchema(reader.problems, reader.warnings)
    return schema


def read_builtin_source(name: str) -> str:
    """Return the YAML of a built-in schema."""
    return (_BUILTIN_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


@cache
def load_builtin_schema(name: str) -> Schema:
    """Return a built-in schema, one of `BUILTIN_NAMES`."""
    return load_schema(read_builtin_source(name))


def to_snake_case(name: str) -> str:
    """Return the name of a class as that of a collection: `concept_class` for `ConceptClass`."""
    return _WORD_START.sub("_", normalize_slot_name(name)).lower()


def _to_camel_case(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[\s_]+", name.replace(",", "")))


class _InducedDefinition(NamedTuple):
    """Definition of a slot in a class, with its changes in order of precedence, lowest first."""

    definition: Definition
    usages: tuple[Definition, ...]


class _SchemaBuilder:
    """Check the definitions of a schema and resolve inheritance."""

    def __init__(self, definition: SchemaDefinition, reader: DefinitionReader) -> None:
        self._schema = definition
        self._reader = reader
        self._ancestors: dict[str, tuple[str, ...]] = {}
        self._slots: dict[tuple[int, ...], Slot] = {}
        self._identifier_classes: set[str] = set()
        self._slot_count = 0

    def build(self, source: str) -> Schema:
        self._check_head()
        self._check_parents(self._schema.slots, "slot")
        self._check_parents(self._schema.classes, "class")
        self._ancestors = {name: _list_ancestors(name, self._schema.classes) for name in self._schema.classes}
        for definitions, kind in ((self._schema.slots, "slot"), (self._schema.classes, "class")):
            self._check_depth(definitions, kind)
        for owner, definition in self._iter_slot_definitions():
            self._check_slot(owner, definition)
        for class_definition in self._schema.classes.values():
            self._check_class(class_definition)
        induced = {name: self._induce_slots(name) for name in self._schema.classes}
        self._identifier_classes = {
            name for name, slots in induced.items() if any(_get_value(slot, "identifier") for slot in slots.values())
        }
        classes = {}
        for name, slots in induced.items():
            if self._slot_count > MAX_SLOTS:
                self._reader.add_problem(1, f"The classes have more than {MAX_SLOTS:,} slots altogether.")
                break
            classes[name] = self._build_class(self._schema.classes[name], slots)
        self._check_built_classes(classes)
        return self._assemble(source, classes)

    def _assemble(self, source: str, classes: dict[str, SchemaClass]) -> Schema:
        definition = self._schema
        return Schema(
            name=definition.name,
            id=definition.get("id", ""),
            title=definition.get("title", definition.name),
            description=definition.get("description", "").strip(),
            prefixes=definition.prefixes,
            default_prefix=definition.get("default_prefix", ""),
            classes=classes,
            containers={
                name: {slot.name: slot.range for slot in container.slots.values() if slot.range in classes}
                for name, container in classes.items()
                if container.tree_root
            },
            enums=definition.enums,
            source=source,
            warnings=tuple(sorted(set(self._reader.warnings))),
        )

    # Checks of definitions

    def _check_head(self) -> None:
        for key, example in (("id", "https://example.org/animals"), ("name", "animals")):
            if not self._schema.get(key):
                self._reader.add_problem(1, f"The schema has no `{key}`, such as `{key}: {example}`.")
        default_range = self._schema.get("default_range")
        if default_range is not None:
            self._check_range(default_range, self._schema.line_of("default_range"), "`default_range`")
        default_prefix = self._schema.get("default_prefix", "")
        if default_prefix and default_prefix not in self._schema.prefixes and "://" not in default_prefix:
            line = self._schema.line_of("default_prefix")
            self._reader.add_problem(line, f"`default_prefix` is `{default_prefix}`, which `prefixes` does not have.")
        if self._schema.classes and "linkml:types" not in self._schema.get("imports", {}):
            message = "The schema does not import `linkml:types`, which other tools need."
            self._reader.add_warning(1, message)

    def _check_parents(self, definitions: Mapping[str, Definition], kind: str) -> None:
        """Report unknown parents and cycles, and remove them."""
        for name, definition in definitions.items():
            for key in ("is_a", "mixins"):
                for parent in _list_names(definition, key):
                    if parent in definitions:
                        continue
                    article = "its parent" if key == "is_a" else "its mixin"
                    message = f"The {kind} `{name}` has `{parent}` as {article}, but there is no {kind} of that name."
                    self._reader.add_problem(definition.line_of(key), message)
        for cycle in _find_cycles(definitions):
            path = " → ".join(f"`{name}`" for name in (*cycle, cycle[0]))
            definition = definitions[cycle[0]]
            key = "is_a" if definition.get("is_a") == (*cycle, cycle[0])[1] else "mixins"
            message = f"The {kind} `{cycle[0]}` is its own ancestor: {path}."
            self._reader.add_problem(definition.line_of(key), message)
            for name in cycle:
                definitions[name].values.pop("is_a", None)
                definitions[name].values.pop("mixins", None)

    def _check_depth(self, definitions: Mapping[str, Definition], kind: str) -> None:
        for name, definition in definitions.items():
            if len(_list_ancestors(name, definitions)) > MAX_ANCESTORS:
                message = f"The {kind} `{name}` has more than {MAX_ANCESTORS} ancestors."
                self._reader.add_problem(definition.line, message)
                return

    def _iter_slot_definitions(self) -> Iterator[tuple[str, Definition]]:
        """Yield every definition or change of a slot with words for it."""
        for slot in self._schema.slots.values():
            yield f"the slot `{slot.name}`", slot
        for class_definition in self._schema.classes.values():
            for slot in (*class_definition.attributes.values(), *class_definition.slot_usage.values()):
                yield f"the slot `{slot.name}` of the class `{class_definition.name}`", slot

    def _check_slot(self, owner: str, definition: Definition) -> None:
        if "range" in definition.values:
            self._check_range(definition.get("range"), definition.line_of("range"), f"`range` of {owner}")
        if "pattern" in definition.values:
            try:
                re.compile(definition.get("pattern"))
            except (re.error, OverflowError, RecursionError) as error:
                message = f"`pattern` of {owner} is not a valid regular expression: {error}."
                self._reader.add_problem(definition.line_of("pattern"), message)
        if "slot_uri" in definition.values:
            self._check_uri(definition.get("slot_uri"), definition.line_of("slot_uri"), f"`slot_uri` of {owner}")
        self._check_role(owner, definition)

    def _check_role(self, owner: str, definition: Definition) -> None:
        role: LocatedValue | None = definition.annotations.get("role")
        if role and role.value != "none" and role.value not in list(SlotRole):
            known = ", ".join(SlotRole)
            message = f"The annotation `lexarium_role` of {owner} is `{role.value}`, not one of {known} or none."
            self._reader.add_problem(role.line, message)
            del definition.annotations["role"]

    def _check_range(self, range_name: str, line: int, what: str) -> None:
        schema = self._schema
        base = schema.types.get(range_name, range_name)
        if base not in TYPES and base not in schema.classes and base not in schema.enums:
            message = f"{what} is `{range_name}`, which is not a type, class or enumeration."
            self._reader.add_problem(line, message[:1].upper() + message[1:])

    def _check_uri(self, uri: str, line: int, what: str) -> None:
        prefix, colon, local = uri.partition(":")
        if not colon or not _IRI.fullmatch(uri):
            self._reader.add_problem(line, f"{what} is `{uri}`, which is neither a CURIE nor an IRI.")
        elif prefix not in self._schema.prefixes and not local.startswith("//") and prefix != "urn":
            self._reader.add_problem(line, f"{what} has the prefix `{prefix}`, which `prefixes` does not have.")

    def _check_class(self, definition: ClassDefinition) -> None:
        name = definition.name
        if "class_uri" in definition.values:
            what = f"`class_uri` of the class `{name}`"
            self._check_uri(definition.get("class_uri"), definition.line_of("class_uri"), what)
        lineage = self._list_lineage(name)
        own_slots = {slot for ancestor in lineage for slot in (*ancestor.slots, *ancestor.attributes)}
        for slot, line in definition.slots.items():
            if slot not in self._schema.slots and not any(slot in ancestor.attributes for ancestor in lineage):
                message = f"The class `{name}` has the slot `{slot}`, which `slots` does not declare."
                self._reader.add_problem(line, message)
        for slot, usage in definition.slot_usage.items():
            if slot in own_slots:
                continue
            if slot in self._schema.slots:
                message = f"`slot_usage` of the class `{name}` changes `{slot}`, which the class does not have."
                self._reader.add_warning(usage.line, message)
            else:
                message = f"`slot_usage` of the class `{name}` changes `{slot}`, which `slots` does not declare."
                self._reader.add_problem(usage.line, message)

    # Inheritance

    def _list_lineage(self, class_name: str) -> list[ClassDefinition]:
        """Return a class and its ancestors, nearest first, as far as they have or change slots."""
        lineage = (self._schema.classes[name] for name in (class_name, *self._ancestors[class_name]))
        return [definition for definition in lineage if definition.has_slots]

    def _induce_slots(self, class_name: str) -> dict[str, _InducedDefinition]:
        """Return all slots of a class, those of its furthest ancestors first."""
        if self._slot_count > MAX_SLOTS:
            return {}
        lineage = self._list_lineage(class_name)
        slots: dict[str, _InducedDefinition] = {}
        for ancestor in reversed(lineage):
            for slot_name in (*ancestor.slots, *ancestor.attributes):
                if slot_name in slots:
                    continue
                attributes = (entry.attributes[slot_name] for entry in lineage if slot_name in entry.attributes)
                definition = next(attributes, None) or self._schema.slots.get(slot_name)
                if definition is not None:
                    usages = (entry.slot_usage.get(slot_name) for entry in reversed(lineage))
                    slots[slot_name] = _InducedDefinition(definition, tuple(usage for usage in usages if usage))
        self._slot_count += len(slots)
        return slots

    def _build_class(self, definition: ClassDefinition, induced: dict[str, _InducedDefinition]) -> SchemaClass:
        slots = [self._build_slot(name, slot) for name, slot in induced.items()]
        slots.sort(key=lambda slot: slot.order)
        by_name = {slot.name: slot for slot in slots}
        annotations = {key: value for key, (value, _) in definition.annotations.items()}
        return SchemaClass(
            name=definition.name,
            collection=to_snake_case(definition.name),
            uri=self._to_predicate(definition.get("class_uri"), _to_camel_case(definition.name)),
            label=definition.get("title") or to_snake_case(definition.name).replace("_", " "),
            description=definition.get("description", "").strip(),
            abstract=bool(definition.get("abstract") or definition.get("mixin")),
            auxiliary=annotations.get("auxiliary", False),
            tree_root=definition.get("tree_root", False),
            slots=by_name,
            ancestors=self._ancestors[definition.name],
            id_prefixes=annotations.get("id_prefixes", ()),
            in_valpha=annotations.get("valpha", False),
            sort_by_name=annotations.get("valpha_sort_by_name", True),
            search_hit_prefix=annotations.get("valpha_search_prefix"),
            valpha_fields=tuple(by_name[name] for name in annotations.get("valpha_fields", ()) if name in by_name),
            valpha_lists=annotations.get("valpha_lists", ()),
        )

    def _build_slot(self, name: str, induced: _InducedDefinition) -> Slot:
        """Return a slot; classes that change nothing of it share one."""
        key = (id(induced.definition), *map(id, induced.usages))
        if key not in self._slots:
            self._slots[key] = self._create_slot(name, induced)
        return self._slots[key]

    def _create_slot(self, name: str, induced: _InducedDefinition) -> Slot:
        values = {entry: self._resolve_value(induced, entry) for entry in _SLOT_KEYS}
        range_name = values["range"] or self._schema.get("default_range") or "string"
        range_name = self._schema.types.get(range_name, range_name)
        predicate = self._to_predicate(values["slot_uri"], name)
        annotations = _resolve_annotations(induced)
        role = _resolve_role(predicate, annotations)
        label = values["title"] or name.replace("_", " ")
        symmetric = bool(values["symmetric"])
        is_reference = range_name in REFERENCE_TYPES or range_name in self._identifier_classes
        return Slot(
            name=name,
            predicate=predicate,
            range=range_name,
            is_reference=is_reference and not values["identifier"],
            is_node=range_name in self._schema.classes and range_name not in self._identifier_classes,
            label=label,
            inverse_label=annotations.get("inverse_label", label if symmetric else ""),
            description=(values["description"] or "").strip(),
            multivalued=bool(values["multivalued"]),
            required=bool(values["required"] or values["identifier"]),
            identifier=bool(values["identifier"]),
            pattern=values["pattern"],
            enum_values=self._schema.enums.get(range_name, ()),
            inverse=normalize_slot_name(values["inverse"]) if values["inverse"] else None,
            symmetric=symmetric,
            role=role,
            hierarchical=role is SlotRole.HIERARCHY,
            order=annotations.get("order", NO_ORDER),
            editable=annotations.get("editable", not values["identifier"]),
            max_length=annotations.get("max_length"),
            id_prefix=annotations.get("id_prefix"),
            prefix=annotations.get("prefix"),
            separated=annotations.get("separated", False),
            relation=annotations.get("relation"),
            valpha_default=annotations.get("valpha_default"),
        )

    def _resolve_value(self, induced: _InducedDefinition, key: str) -> Any:
        """Return the value of a key: the last change, else the definition's own, else an inherited one."""
        value = _get_value(induced, key)
        is_changed = any(key in usage.values for usage in induced.usages)
        if value or is_changed or key not in _INHERITED_KEYS:
            return value
        definition = induced.definition
        if self._schema.slots.get(definition.name) is not definition:  # an attribute, which inherits nothing
            return value
        ancestors = (self._schema.slots[name] for name in _list_ancestors(definition.name, self._schema.slots))
        return next((ancestor.get(key) for ancestor in ancestors if ancestor.get(key)), value)

    def _to_predicate(self, uri: str | None, name: str) -> str:
        """Return a URI or CURIE of the schema, else the default for a name, as predicates are written."""
        if uri is None:
            default_prefix = self._schema.get("default_prefix") or f"{self._schema.get('id', '').rstrip('/#')}/"
            return contract_predicate(self._schema.prefixes.get(default_prefix, default_prefix) + name)
        prefix, _, local = uri.partition(":")
        is_curie = prefix in self._schema.prefixes and not local.startswith("//")
        return contract_predicate(self._schema.prefixes[prefix] + local if is_curie else uri)

    # Checks of classes

    def _check_built_classes(self, classes: dict[str, SchemaClass]) -> None:
        reported: dict[str, set[tuple[str, ...]]] = {}
        for schema_class in classes.values():
            clashes = self._find_clashes(schema_class)
            reported[schema_class.name] = set(clashes)
        for name, schema_class in classes.items():
            inherited = {clash for ancestor in schema_class.ancestors for clash in reported.get(ancestor, ())}
            for clash, message in self._find_clashes(schema_class).items():
                if clash not in inherited:
                    self._reader.add_problem(self._find_slot_line(name, clash[-1]), message)
        self._check_inverses(classes)
        self._check_collections(classes)
        all_slots = {name for schema_class in classes.values() for name in schema_class.slots}
        for schema_class in classes.values():
            self._check_valpha(schema_class, all_slots)

    def _find_clashes(self, schema_class: SchemaClass) -> dict[tuple[str, ...], str]:
        """Return what two slots of a class have in common and may not, with a sentence for each."""
        clashes: dict[tuple[str, ...], str] = {}
        owner = f"the class `{schema_class.name}`"
        predicates: dict[str, str] = {}
        names: dict[str, str] = {}
        identifier: str | None = None
        for slot in schema_class.slots.values():
            first = predicates.setdefault(slot.predicate, slot.name)
            if first != slot.name:
                message = (
                    f"The slots `{first}` and `{slot.name}` of {owner} have the same predicate, `{slot.predicate}`."
                )
                clashes["predicate", first, slot.name] = message
            first = names.setdefault(to_snake_case(slot.name), slot.name)
            if first != slot.name:
                message = f"The slots `{first}` and `{slot.name}` of {owner} have the same name in snake_case."
                clashes["name", first, slot.name] = message
            if slot.identifier:
                if identifier is not None:
                    message = f"{owner[:1].upper()}{owner[1:]} has two identifiers, `{identifier}` and `{slot.name}`."
                    clashes["identifier", identifier, slot.name] = message
                identifier = identifier or slot.name
                if slot.multivalued:
                    message = f"The identifier `{slot.name}` of {owner} cannot be multivalued."
                    clashes["multivalued", slot.name] = message
        return clashes

    def _find_slot_line(self, class_name: str, slot_name: str) -> int:
        """Return the line that gives a class a slot."""
        for name in (class_name, *self._ancestors[class_name]):
            definition = self._schema.classes[name]
            if slot_name in definition.attributes:
                return definition.attributes[slot_name].line
            if slot_name in definition.slots:
                return definition.slots[slot_name]
        return self._schema.classes[class_name].line

    def _check_inverses(self, classes: dict[str, SchemaClass]) -> None:
        descendants: dict[str, list[SchemaClass]] = {}
        for schema_class in classes.values():
            for name in (schema_class.name, *schema_class.ancestors):
                descendants.setdefault(name, []).append(schema_class)
        all_slots = {name for schema_class in classes.values() for name in schema_class.slots}
        for slot in dict.fromkeys(self._slots.values()):
            if slot.inverse is None:
                continue
            targets = descendants.get(slot.range)
            if targets is None and slot.inverse not in all_slots:
                place = "no class has"
            elif targets is not None and not any(slot.inverse in target.slots for target in targets):
                place = f"the class `{slot.range}` does not have"
            else:
                continue
            message = f"`inverse` of the slot `{slot.name}` is `{slot.inverse}`, which {place}."
            self._reader.add_problem(self._find_inverse_line(slot), message)

    def _find_inverse_line(self, slot: Slot) -> int:
        lines = (
            definition.line_of("inverse")
            for _, definition in self._iter_slot_definitions()
            if definition.name == slot.name and normalize_slot_name(definition.get("inverse", "")) == slot.inverse
        )
        return next(lines, 1)

    def _check_valpha(self, schema_class: SchemaClass, all_slots: set[str]) -> None:
        """Report slots in the v-alpha shapes that do not exist."""
        annotations = self._schema.classes[schema_class.name].annotations
        owner = f"the class `{schema_class.name}`"
        for slot_name in annotations["valpha_fields"].value if "valpha_fields" in annotations else ():
            if slot_name not in schema_class.slots:
                line = annotations["valpha_fields"].line
                message = f"`lexarium_valpha_fields` of {owner} has `{slot_name}`, which the class does not have."
                self._reader.add_problem(line, message)
        for path in (path for valpha_list in schema_class.valpha_lists for path in valpha_list.paths):
            for position, step in enumerate(path):
                is_own = position == 0 and not step.inverse
                if step.slot not in (schema_class.slots if is_own else all_slots):
                    place = "the class does not have" if is_own else "no class has"
                    message = f"`lexarium_valpha_lists` of {owner} has `{step.slot}`, which {place}."
                    self._reader.add_problem(annotations["valpha_lists"].line, message)

    def _check_collections(self, classes: dict[str, SchemaClass]) -> None:
        names: dict[str, str] = {}
        has_collection = False
        for schema_class in classes.values():
            first = names.setdefault(schema_class.collection, schema_class.name)
            if first != schema_class.name:
                line = self._schema.classes[schema_class.name].line
                shared_name = schema_class.collection
                message = f"The classes `{first}` and `{schema_class.name}` are both `{shared_name}` in snake_case."
                self._reader.add_problem(line, message)
            is_concrete = not schema_class.abstract and not schema_class.tree_root
            has_collection = has_collection or (is_concrete and schema_class.identifier is not None)
        if not has_collection and not self._reader.problems:
            message = "The schema has no class for records: a class must have an `identifier` and not be abstract."
            self._reader.add_problem(1, message)


_SLOT_KEYS = (
    *("title", "description", "range", "slot_uri", "pattern", "inverse"),
    *("multivalued", "required", "identifier", "symmetric"),
)


def _get_value(induced: _InducedDefinition, key: str) -> Any:
    """Return the last value of a key among a definition and its changes."""
    value = induced.definition.get(key)
    for usage in induced.usages:
        value = usage.get(key, value)
    return value


def _resolve_annotations(induced: _InducedDefinition) -> dict[str, Any]:
    """Return the annotations of a slot. As in LinkML, those of a change replace all of the slot's."""
    annotations = induced.definition.annotations
    for usage in induced.usages:
        annotations = usage.annotations or annotations
    return {key: value for key, (value, _) in annotations.items()}


def _resolve_role(predicate: str, annotations: dict[str, Any]) -> SlotRole | None:
    if annotations.get("role") == "none":
        return None
    if "role" in annotations:
        return SlotRole(annotations["role"])
    hierarchical = annotations.get("hierarchical")
    role = SlotRole.HIERARCHY if hierarchical else STANDARD_ROLES.get(predicate)
    return None if hierarchical is False and role is SlotRole.HIERARCHY else role


def _list_names(definition: Definition, key: str) -> list[str]:
    value = definition.get(key)
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _list_parents(name: str, definitions: Mapping[str, Definition]) -> list[str]:
    definition = definitions[name]
    parents = [*_list_names(definition, "mixins"), *_list_names(definition, "is_a")]
    return [parent for parent in parents if parent in definitions]


def _list_ancestors(name: str, definitions: Mapping[str, Definition]) -> tuple[str, ...]:
    """Return the ancestors of a class or slot in LinkML's order of precedence: nearest first, mixins before parents.

    There may be some that are missing if there are more than `MAX_ANCESTORS`.
    """
    ancestors: dict[str, None] = {}
    pending = [name]
    while pending and len(ancestors) <= MAX_ANCESTORS:
        for parent in _list_parents(pending.pop(), definitions):
            if parent not in ancestors:
                ancestors[parent] = None
                pending.append(parent)
    return tuple(ancestors)


def _find_cycles(definitions: Mapping[str, Definition]) -> list[tuple[str, ...]]:
    """Return cycles of parents and mixins, each once."""
    cycles: list[tuple[str, ...]] = []
    finished: set[str] = set()
    for start in definitions:
        path: dict[str, Iterator[str]] = {}
        pending: str | None = start if start not in finished else None
        while pending is not None or path:
            if pending is not None:
                path[pending] = iter(_list_parents(pending, definitions))
            name = next(reversed(path))
            pending = next(path[name], None)
            if pending is None:
                finished.add(name)
                del path[name]
            elif pending in path:
                names = list(path)
                cycles.append(tuple(names[names.index(pending) :]))
                pending = None
                # Step on with the next parent of the same class.
            elif pending in finished:
                pending = None
    return cycles
