"""View records of any schema as terms of an ontology, for OBO and OWL, and read terms as records of a schema."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from lexarium.domain.labels import split_alias_texts
from lexarium.domain.record import ALIAS_SCOPES, TYPE, Record, get_text
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.model import Schema
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole
from lexarium.domain.statement import Node, Reference, Statement, Text, Value

_LABEL, _DEFINITION, _SUBCLASS, _PART_OF = "rdfs:label", "IAO:0000115", "rdfs:subClassOf", "BFO:0000050"
_ALT_LABEL, _PARTITIVE = "skos:altLabel", "isothes:broaderPartitive"
_PREDICATES = {
    SlotRole.NAME: _LABEL,
    SlotRole.DEFINITION: _DEFINITION,
    SlotRole.NOTE: "rdfs:comment",
    SlotRole.HIERARCHY: _SUBCLASS,
}
# Predicates of which a term has one text.
_SINGLE_PREDICATES = (_LABEL, _DEFINITION)
# Of aliases, by scope.
_SYNONYM_PREDICATES = {
    "exact": "oboInOwl:hasExactSynonym",
    "narrow": "oboInOwl:hasNarrowSynonym",
    "broad": "oboInOwl:hasBroadSynonym",
    "related": "oboInOwl:hasRelatedSynonym",
    "hidden": "oboInOwl:hasRelatedSynonym",
}
# Statement of a term that names the collection of its record.
NAMESPACE = "oboInOwl:hasOBONamespace"
# Qualifier with the predicate of a record's statement, where it does not follow from that of the term.
STATED_PREDICATE = "lexarium:predicate"
# Qualifier of a synonym in OBO that is a further name.
FURTHER_NAME = Statement(STATED_PREDICATE, Text("rdfs:label"))
# Schemas of the formats themselves. Records of any other are written by the predicates that these formats have.
_FORMAT_SCHEMAS = ("skos", "obo")

# Predicates of the parts of logical definitions. OBO states each part of a term, OWL an equivalent class of a list.
_DEFINITIONS = ("owl:intersectionOf", "owl:unionOf")
_EQUIVALENT, _MEMBER = "owl:equivalentClass", "rdf:_"
_CLASS, _RESTRICTION, LIST_TYPE = (
    Statement("rdf:type", Reference(name)) for name in ("owl:Class", "owl:Restriction", "rdf:List")
)
_PROPERTY, _TARGET = "owl:onProperty", "owl:someValuesFrom"

_TERM_PREDICATES = frozenset(load_builtin_schema("obo").collections["term"].slots_by_predicate)
# Prefixes of predicates that say something about a term, and nothing about its instances.
_ANNOTATION_PREFIXES = frozenset(("rdf", "rdfs", "owl", "skos", "dcterms", "dc", "oboInOwl", "schema", "foaf", "prov"))


def is_relation(predicate: str) -> bool:
    """Return whether a term's references by a predicate are relations of its instances: restrictions in OWL.

    Those of an annotation by the same predicate are nodes with an IRI and no statements.
    """
    return predicate not in _TERM_PREDICATES and predicate.partition(":")[0] not in _ANNOTATION_PREFIXES


def has_own_classes(schema: Schema) -> bool:
    """Return whether a schema has other classes than those of SKOS or OBO."""
    return schema.name not in _FORMAT_SCHEMAS


def get_ontology_class(collection: Collection) -> str:
    """Return the class of records in the schema `obo`. A record of an auxiliary class is an instance."""
    if collection.schema.name == "obo":
        return collection.local_name
    return "instance" if collection.is_auxiliary else "term"


def to_ontology(record: Record) -> tuple[Statement, ...]:
    """Return the statements of a record with the predicates of the schema `obo`. Those without a role stay."""
    return record.statements if record.collection.schema.name == "obo" else tuple(_iter_statements(record))


def list_derived_aliases(record: Record) -> list[str]:
    """Return the aliases that a record has only as parts of one text."""
    if not record.stored_aliases:
        # Most records have none. To split the text takes less time than to build aliases of its parts.
        return split_alias_texts(record.fields.get(record.collection.alias_field or "", ""))
    return [alias.text for alias in record.aliases if alias not in record.stored_aliases]


def mark_repeated(statements: Iterable[Statement]) -> list[Statement]:
    """Return statements in which one without qualifiers has a mark, if others of the same value have qualifiers.

    In RDF they are one triple, which shows only what is annotated.
    """
    stated = list(statements)
    qualified = {item[:2] for item in stated if item[2]}
    if not qualified:
        return stated
    return [
        item._replace(qualifiers=(_build_mark(item.predicate),))
        if not item.qualifiers and item[:2] in qualified
        else item
        for item in stated
    ]


def _iter_statements(record: Record) -> Iterator[Statement]:
    collection = record.collection
    renamed = [_rename(statement, collection) for statement in record.statements]
    if has_own_classes(collection.schema):
        yield Statement(NAMESPACE, Text(collection.local_name))
        yield from _mark_predicates(record.statements, renamed, collection)
    else:
        yield from renamed
    for alias in list_derived_aliases(record):
        yield Statement(_SYNONYM_PREDICATES["exact"], Text(alias))


def _mark_predicates(
    statements: Sequence[Statement], renamed: Iterable[Statement], collection: Collection
) -> Iterator[Statement]:
    """Yield renamed statements with the predicates that `from_ontology` would not find otherwise."""
    restored = _map_to_schema(collection)
    has_aliases = any(item[0] == _ALT_LABEL for item in statements)
    derived = _derive_aliases(statements, collection) if has_aliases else ()
    seen: dict[str, set[Value]] = {}
    for original, statement in zip(statements, renamed, strict=True):
        stated_predicate = original[0]
        predicate, value, qualifiers = statement
        values = seen.setdefault(predicate, set())
        lang = value.lang if isinstance(value, Text) else ""
        is_further = predicate in _SINGLE_PREDICATES and (bool(values) or lang not in ("", collection.language))
        if value in values:
            # Two statements of one predicate and value would be one.
            yield original._replace(qualifiers=(*qualifiers, _build_mark(stated_predicate)))
        elif (
            is_further
            or restored.get(predicate, predicate) != stated_predicate
            or (stated_predicate == _ALT_LABEL and Statement(_ALT_LABEL, Text(str(value[0]))) in derived)
        ):
            yield Statement(predicate, value, (*qualifiers, _build_mark(stated_predicate)))
        else:
            yield statement
        values.add(value)


@lru_cache(maxsize=1_000)
def _build_mark(predicate: str) -> Statement:
    return Statement(STATED_PREDICATE, Text(predicate))


def _rename(statement: Statement, collection: Collection) -> Statement:
    """Return a statement by the predicate that the schema `obo` has for its role."""
    predicate, value, qualifiers = statement
    if predicate in ALIAS_SCOPES:
        text = get_text(value)
        if text is not None:
            return Statement(_SYNONYM_PREDICATES[ALIAS_SCOPES[predicate]], text, qualifiers)
    name = _find_term_predicate(predicate, collection)
    if name == predicate or (name == _SUBCLASS and not isinstance(value, Reference)):
        return statement
    return Statement(name, value, qualifiers)


# Called for each statement of a document, which has few predicates.
@lru_cache(maxsize=10_000)
def _find_term_predicate(predicate: str, collection: Collection) -> str:
    """Return the predicate that the schema `obo` has for the role of another one, or that one itself."""
    if predicate == _PARTITIVE:
        return _PART_OF
    slot = collection.schema_class.slots_by_predicate.get(predicate)
    role = slot.role if slot else STANDARD_ROLES.get(predicate)
    return predicate if role is None else _PREDICATES.get(role, predicate)


@lru_cache(maxsize=1_000)
def _map_to_schema(collection: Collection) -> dict[str, str]:
    """Return the predicates of a class that those of a term stand for, if nothing else is said."""
    slots = collection.schema_class.slots_by_predicate
    restored = dict(zip((_LABEL,), collection.name_predicates, strict=False))
    restored["oboInOwl:hasExactSynonym"] = _ALT_LABEL
    if collection.definition_field:
        restored[_DEFINITION] = collection.field_predicates[collection.definition_field]
    if collection.hierarchy_type:
        restored[_SUBCLASS] = collection.relation_predicates[collection.hierarchy_type.name]
    if _PARTITIVE in slots:
        restored[_PART_OF] = _PARTITIVE
    return {name: predicate for name, predicate in restored.items() if name not in slots}


def from_ontology(statements: Iterable[Statement], collection: Collection) -> list[Statement]:
    """Return the statements of a term as the class of a record has them: the reverse of `to_ontology`.

    A bare name, such as `part_of`, is that of a slot. What the class has no predicate for stays as it is.
    """
    stated = list(statements)
    restored = _map_to_schema(collection)
    slots = collection.schema_class.slots
    present = {item.predicate for item in stated if _find_mark(item) is None}
    converted = []
    unmarked = set()
    for statement in stated:
        predicate = statement.predicate
        name = restored.get(predicate, slots[predicate].predicate if predicate in slots else predicate)
        is_taken = predicate in _SINGLE_PREDICATES and name in present
        if is_taken or (predicate == _SUBCLASS and not isinstance(statement.value, Reference)):
            name = predicate
        mark = _find_mark(statement)
        converted.append(_convert_values(statement._replace(predicate=mark or name), collection))
        if mark is None:
            unmarked.add(converted[-1])
    derived = _derive_aliases(converted, collection)
    untagged = (item for item in unmarked if isinstance(item.value, Text) and not item.value.lang)
    aliases = {item for item in untagged if item.predicate == _ALT_LABEL and not item.qualifiers}
    return [item for item in converted if item not in derived] if aliases == derived else converted


def _find_mark(statement: Statement) -> str | None:
    marks = (item.value for item in statement.qualifiers if item.predicate == STATED_PREDICATE)
    return next((value.text for value in marks if isinstance(value, Text)), None)


def _convert_values(statement: Statement, collection: Collection) -> Statement:
    """Return a statement with references where its class has them, and files may have texts."""
    slot = collection.schema_class.slots_by_predicate.get(statement.predicate)
    qualifiers = tuple(
        _refer(item) if item.predicate == TYPE else item
        for item in statement.qualifiers
        if item.predicate != STATED_PREDICATE
    )
    converted = _refer(statement) if slot and slot.is_reference else statement
    return converted._replace(qualifiers=qualifiers)


def _refer(statement: Statement) -> Statement:
    value = statement.value
    is_id = isinstance(value, Text) and value.text and not any(map(str.isspace, value.text))
    return statement._replace(value=Reference(str(value[0]))) if is_id else statement


def _derive_aliases(statements: Iterable[Statement], collection: Collection) -> set[Statement]:
    """Return the aliases that are parts of one text."""
    separated = {slot.predicate for slot in collection.schema_class.slots.values() if slot.separated}
    texts = (item.value.text for item in statements if item.predicate in separated and isinstance(item.value, Text))
    return {Statement(_ALT_LABEL, Text(part)) for text in texts for part in split_alias_texts(text)}


def join_definitions(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements of a term with the parts of a logical definition as an equivalent class."""
    parts: dict[str, list[Statement]] = {}
    for statement in statements:
        member = _to_member(statement)
        if member is None:
            yield statement
        else:
            parts.setdefault(statement.predicate, []).append(member)
    for predicate, members in parts.items():
        numbered = (item._replace(predicate=f"{_MEMBER}{place}") for place, item in enumerate(members, 1))
        yield Statement(_EQUIVALENT, Node((_CLASS, Statement(predicate, Node((LIST_TYPE, *numbered))))))


def _to_member(statement: Statement) -> Statement | None:
    """Return a part of a logical definition as a member of a list, or None if it is none."""
    predicate, value, _ = statement
    if predicate not in _DEFINITIONS:
        return None
    if isinstance(value, Reference):
        return statement if predicate == "owl:unionOf" else None
    parts = {item.predicate: item.value for item in value[0]} if isinstance(value, Node) and not value.iri else {}
    if not all(isinstance(part, Reference) for part in parts.values()):
        return None
    if parts.keys() == {_TARGET}:
        return statement._replace(value=parts[_TARGET])
    if parts.keys() == {_PROPERTY, _TARGET}:
        return statement._replace(value=Node((_RESTRICTION, *value[0])))
    return None


def split_definitions(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements of a term with an equivalent class as the parts of a logical definition.

    This is the reverse of `join_definitions`. If there are several definitions, all stay as they are.
    """
    result: list[Statement] = []
    found: dict[str, list[tuple[Statement, list[Statement]]]] = {}
    for statement in statements:
        definition = _parse_definition(statement)
        if definition:
            found.setdefault(definition[0].predicate, []).append((statement, definition))
        else:
            result.append(statement)
    for definitions in found.values():
        result += definitions[0][1] if len(definitions) == 1 else [statement for statement, _ in definitions]
    return result


def _parse_definition(statement: Statement) -> list[Statement]:
    """Return the parts of a logical definition; none if the statement is anything else."""
    predicate, value, qualifiers = statement
    if predicate != _EQUIVALENT or not isinstance(value, Node) or value.iri or qualifiers:
        return []
    lists = [item for item in value.statements if item != _CLASS]
    if len(lists) != 1 or len(value.statements) != 2 or lists[0].predicate not in _DEFINITIONS or lists[0].qualifiers:
        return []
    [(part_predicate, members, _)] = lists
    if not isinstance(members, Node) or LIST_TYPE not in members.statements:
        return []
    parts = []
    for _, member, details in sorted(
        (item for item in members.statements if item != LIST_TYPE),
        key=lambda item: int(item.predicate.removeprefix(_MEMBER)),
    ):
        part = _to_part(part_predicate, member)
        if part is None:
            return []
        parts.append(Statement(part_predicate, part, details))
    return parts if len(set(parts)) == len(parts) else []


def _to_part(predicate: str, member: Value) -> Value | None:
    """Return a member of a list as a part of a logical definition, or None if OBO cannot express it."""
    if isinstance(member, Reference):
        return member if predicate == "owl:unionOf" else Node((Statement(_TARGET, member),))
    if not isinstance(member, Node) or member.iri or predicate == "owl:unionOf":
        return None
    parts = {item.predicate: item for item in member.statements if item != _RESTRICTION}
    is_simple = parts.keys() == {_PROPERTY, _TARGET} and len(member.statements) == 3
    if not is_simple or any(item.qualifiers or not isinstance(item.value, Reference) for item in parts.values()):
        return None
    return Node((parts[_PROPERTY], parts[_TARGET]))
