"""Describe records in SKOS, Dublin Core and, for the rest, a small vocabulary of our own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyoxigraph import NamedNode

from lexarium.domain.identifiers import find_target_problem, has_prefix
from lexarium.domain.labels import Alias, is_language_tag
from lexarium.domain.record import Record, RecordState, RelatedRecord
from lexarium.domain.schema.collections import (
    MAIN_COLLECTIONS,
    MAPPING_TYPES,
    PARTOF,
    RELATED,
    RELATION_TYPES,
    Collection,
)
from lexarium.domain.schema.predicates import expand_predicate
from lexarium.domain.text.timestamps import format_timestamp_ms, is_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf import predicates
from lexarium.formats.rdf.parser import RdfLiteral
from lexarium.formats.rdf.predicates import LEXARIUM_FIELDS, LEXARIUM_RELATIONS, expand_curie, lexarium_namespace

# The prefix of our own vocabulary.
LEXARIUM_PREFIX = "lexarium"


class TypedLiteral(NamedTuple):
    """A literal with a datatype, which is a CURIE."""

    text: str
    datatype: str


# A predicate, as a CURIE, and its object: an IRI or a literal.
PredicateValue = tuple[str, str | RdfLiteral | TypedLiteral]


class ResourceTriples(NamedTuple):
    """The triples of one subject."""

    subject: str
    properties: list[PredicateValue]


def describe_scheme(vocabulary: Vocabulary, collection: Collection) -> ResourceTriples:
    """Describe a collection as a concept scheme, with the metadata of the vocabulary."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie("skos:ConceptScheme")),
        ("rdf:type", lexarium_namespace(vocabulary) + predicates.COLLECTION_CLASS),
        ("dct:title", _to_literal(vocabulary, f"{vocabulary.title}: {collection.name}")),
        ("dct:description", RdfLiteral(collection.description, "en")),
    ]
    if vocabulary.licence:
        licence = _to_iri_or_literal(vocabulary.licence)
        properties.append(("dct:license" if isinstance(licence, str) else "dct:rights", licence))
    if vocabulary.publisher:
        properties.append(("dc:publisher", RdfLiteral(vocabulary.publisher)))
    if vocabulary.language:
        properties.append(("dc:language", RdfLiteral(vocabulary.language)))
    return ResourceTriples(_get_scheme_iri(vocabulary, collection), properties)


def describe_record(vocabulary: Vocabulary, record: Record) -> ResourceTriples:
    """Describe a record as a concept."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie("skos:Concept")),
        ("skos:inScheme", _get_scheme_iri(vocabulary, record.collection)),
        ("skos:prefLabel", _to_literal(vocabulary, record.fields["name"])),
        *_alias_properties(record.aliases),
    ]
    if record.definition:
        properties.append(("skos:definition", _to_literal(vocabulary, record.definition)))
    properties += [("dct:source", _to_iri_or_literal(source)) for source in record.sources]
    properties += _relation_properties(vocabulary, record)
    properties += _field_properties(vocabulary, record)
    properties += _state_properties(vocabulary, record)
    return ResourceTriples(vocabulary.record_iri(record.id), properties)


def describe_term(vocabulary: Vocabulary, term: predicates.LexariumTerm) -> ResourceTriples:
    """Describe a term of our own vocabulary."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie(term.rdf_type)),
        ("skos:prefLabel", RdfLiteral(term.name, "en")),
        ("skos:definition", RdfLiteral(term.definition, "en")),
    ]
    return ResourceTriples(lexarium_namespace(vocabulary) + term.name, properties)


def describe_neighbourhood(
    vocabulary: Vocabulary, record: Record, related: Sequence[RelatedRecord]
) -> Iterator[ResourceTriples]:
    """Describe a record, and the names of its neighbours and their relations to it."""
    main = describe_record(vocabulary, record)
    record_iri = vocabulary.record_iri(record.id)
    for child in related:
        if child.side == "target" and RELATION_TYPES[child.type_name].is_hierarchical:
            main.properties.append(("skos:narrower", vocabulary.record_iri(child.id)))
    yield main
    neighbours: dict[str, list[PredicateValue]] = {}
    for neighbour in related:
        if RELATION_TYPES[neighbour.type_name].is_mapping or neighbour.name is None:
            continue
        name: PredicateValue = ("skos:prefLabel", _to_literal(vocabulary, neighbour.name))
        properties = neighbours.setdefault(vocabulary.record_iri(neighbour.id), [name])
        if neighbour.side == "target":
            properties += ((predicate, record_iri) for predicate in _find_predicates(neighbour.type_name))
    yield from map(ResourceTriples, neighbours.keys(), neighbours.values())


def _get_scheme_iri(vocabulary: Vocabulary, collection: Collection) -> str:
    return vocabulary.base + collection.name


def _to_literal(vocabulary: Vocabulary, text: str) -> RdfLiteral:
    return RdfLiteral(text, vocabulary.language if is_language_tag(vocabulary.language) else "")


def _to_iri_or_literal(text: str) -> str | RdfLiteral:
    try:
        return NamedNode(text).value
    except ValueError:
        return RdfLiteral(text)


def _alias_properties(aliases: Iterable[Alias]) -> Iterator[PredicateValue]:
    alias_list = list(aliases)
    scoped = {(alias.text, alias.lang) for alias in alias_list if alias.scope not in ("exact", "hidden")}
    for alias in alias_list:
        text = RdfLiteral(alias.text, alias.lang)
        if alias.scope == "hidden":
            is_notation = alias.lang == predicates.NO_LANGUAGE
            yield ("skos:notation", RdfLiteral(alias.text)) if is_notation else ("skos:hiddenLabel", text)
            continue
        yield "skos:altLabel", text
        # SKOS has no scopes. State them all if a label without one would be misread.
        if alias.scope != "exact" or (alias.text, alias.lang) in scoped:
            yield predicates.SYNONYM_PREDICATES[alias.scope], text


def _relation_properties(vocabulary: Vocabulary, record: Record) -> Iterator[PredicateValue]:
    targets_by_relation = record.relation_targets
    hierarchy_relation = record.collection.hierarchy_type
    generic = targets_by_relation.pop(hierarchy_relation.name, []) if hierarchy_relation else []
    partitive = targets_by_relation.pop(PARTOF.name, [])
    yield from (("skos:broader", vocabulary.record_iri(target)) for target in dict.fromkeys(generic + partitive))
    yield from (("isothes:broaderGeneric", vocabulary.record_iri(target)) for target in generic if target in partitive)
    yield from (("isothes:broaderPartitive", vocabulary.record_iri(target)) for target in partitive)
    if hierarchy_relation and not generic and not partitive:
        yield "skos:topConceptOf", _get_scheme_iri(vocabulary, record.collection)
    for relation, targets in targets_by_relation.items():
        is_mapping = RELATION_TYPES[relation].is_mapping
        to_object: Callable[[str], str | RdfLiteral] = _to_iri_or_literal if is_mapping else vocabulary.record_iri
        for predicate in _find_predicates(relation):
            yield from ((predicate, to_object(target)) for target in targets)


def _find_predicates(relation: str) -> list[str]:
    """Return the predicate of a relation type. One that is not declared is its own, unless it is no IRI."""
    if relation in _PREDICATE_BY_RELATION:
        return [_PREDICATE_BY_RELATION[relation]]
    iri = expand_predicate(relation)
    return [iri] if find_target_problem(iri) is None and iri.startswith(("http:", "https:")) else []


_PREDICATE_BY_RELATION: dict[str, str] = {
    **{entry.hierarchy_type.name: "skos:broader" for entry in MAIN_COLLECTIONS.values() if entry.hierarchy_type},
    PARTOF.name: "isothes:broaderPartitive",
    RELATED.name: "skos:related",
    **{mapping.name: f"skos:{mapping.name}" for mapping in MAPPING_TYPES},
    **{relation: f"{LEXARIUM_PREFIX}:{name}" for relation, name in LEXARIUM_RELATIONS.items()},
}


def _field_properties(vocabulary: Vocabulary, record: Record) -> Iterator[PredicateValue]:
    for field, predicate, default, is_reference in _LEXARIUM_PROPERTIES[record.collection.name]:
        value = record.fields[field]
        if value == default:
            continue
        if dublin_core := _dublin_core_property(field, value):
            yield dublin_core
        elif is_reference:
            yield predicate, vocabulary.record_iri(value)
        else:
            yield predicate, RdfLiteral(value) if isinstance(value, str) else TypedLiteral(str(value), "xsd:integer")


# For each collection, the fields in our own vocabulary: name, predicate, default, whether it is a record id.
_LEXARIUM_PROPERTIES = {
    collection.name: [
        (
            field,
            f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS[field]}",
            None
            if field in collection.assigned_fields and not slot.valpha_default
            else collection.field_defaults[field],
            field in collection.class_fields,
        )
        for field, slot in collection.fields.items()
        if field in LEXARIUM_FIELDS
    ]
    for collection in MAIN_COLLECTIONS.values()
}


def _dublin_core_property(field: str, value: Any) -> PredicateValue | None:
    """Return the value of a field in Dublin Core; None if Dublin Core cannot express it."""
    if field == "event_stamp" and is_timestamp(value):
        return "dct:created", TypedLiteral(value, "xsd:dateTime")
    if field == "last_updated" and (text := format_timestamp_ms(value)) is not None:
        return "dct:modified", TypedLiteral(text, "xsd:dateTime")
    if field == "id_user" and has_prefix(value, ("usr",)):
        return "dc:creator", RdfLiteral(value)
    return None


def _state_properties(vocabulary: Vocabulary, record: Record) -> Iterator[PredicateValue]:
    if record.state != RecordState.PUBLISHED:
        yield "owl:deprecated", TypedLiteral("true", "xsd:boolean")
    if record.state == RecordState.MERGED:
        yield f"{LEXARIUM_PREFIX}:{predicates.STATE_PROPERTY}", RdfLiteral(record.state)
    if record.replaced_by is not None:
        yield "dct:isReplacedBy", vocabulary.record_iri(record.replaced_by)
