"""Records as statements of SKOS, Dublin Core and, where these cannot say it, a small vocabulary of our own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyoxigraph import NamedNode

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.labels import Alias, is_language_tag
from lexarium.domain.record import Record, RecordState, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import MAPPING_TYPES, PARTOF, RELATED, RELATION_TYPES
from lexarium.domain.timestamps import format_timestamp_ms, is_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf.labels import NO_LANGUAGE
from lexarium.formats.rdf.parser import RdfLiteral
from lexarium.formats.rdf.predicates import (
    COLLECTION_CLASS,
    LEXARIUM_FIELDS,
    LEXARIUM_RELATIONS,
    STATE_PROPERTY,
    SYNONYM_PREDICATES,
    LexariumTerm,
    expand_curie,
    lexarium_namespace,
)

LEXARIUM_PREFIX = "lexarium"
"""The prefix of our own vocabulary."""


class TypedLiteral(NamedTuple):
    """A literal that is more than text."""

    text: str
    datatype: str
    """As a CURIE."""


PredicateValue = tuple[str, str | RdfLiteral | TypedLiteral]
"""A predicate, as a CURIE, and what it says: an IRI or a literal."""


class ResourceTriples(NamedTuple):
    """What is said of one resource."""

    subject: str
    properties: list[PredicateValue]


def describe_scheme(vocabulary: Vocabulary, collection: Collection) -> ResourceTriples:
    """A collection, with what the catalogue says of itself."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie("skos:ConceptScheme")),
        ("rdf:type", lexarium_namespace(vocabulary) + COLLECTION_CLASS),
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
    """A record, with all that can be said of it."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie("skos:Concept")),
        ("skos:inScheme", _get_scheme_iri(vocabulary, record.collection)),
        ("skos:prefLabel", _to_literal(vocabulary, record.fields["name"])),
        *_alias_properties(record.aliases),
    ]
    definition = record.fields.get(record.collection.definition_field or "")
    if definition:
        properties.append(("skos:definition", _to_literal(vocabulary, definition)))
    properties += [("dct:source", _to_iri_or_literal(source)) for source in record.sources]
    properties += _relation_properties(vocabulary, record)
    properties += _field_properties(vocabulary, record)
    properties += _state_properties(vocabulary, record)
    return ResourceTriples(vocabulary.record_iri(record.id), properties)


def describe_term(vocabulary: Vocabulary, term: LexariumTerm) -> ResourceTriples:
    """A term of our own vocabulary."""
    properties: list[PredicateValue] = [
        ("rdf:type", expand_curie(term.rdf_type)),
        ("skos:prefLabel", RdfLiteral(term.name, "en")),
    ]
    return ResourceTriples(
        lexarium_namespace(vocabulary) + term.name,
        [*properties, ("skos:definition", RdfLiteral(term.definition, "en"))],
    )


def describe_neighbourhood(
    vocabulary: Vocabulary, record: Record, related: Sequence[RelatedRecord]
) -> Iterator[ResourceTriples]:
    """A record, and what those around it are called and say of it."""
    main = describe_record(vocabulary, record)
    record_iri = vocabulary.record_iri(record.id)
    narrower = [
        child for child in related if child.side == "target" and RELATION_TYPES[child.type_name].is_hierarchical
    ]
    yield ResourceTriples(
        record_iri, [*main.properties, *(("skos:narrower", vocabulary.record_iri(child.id)) for child in narrower)]
    )
    neighbours: dict[str, list[PredicateValue]] = {}
    for neighbour in related:
        if RELATION_TYPES[neighbour.type_name].target_collection is None or neighbour.name is None:
            continue
        properties = neighbours.setdefault(
            vocabulary.record_iri(neighbour.id), [("skos:prefLabel", _to_literal(vocabulary, neighbour.name))]
        )
        if neighbour.side == "target":
            properties.append((_PREDICATE_BY_RELATION[neighbour.type_name], record_iri))
    for iri, properties in neighbours.items():
        yield ResourceTriples(iri, properties)


def _get_scheme_iri(vocabulary: Vocabulary, collection: Collection) -> str:
    return vocabulary.base + collection.name


def _to_literal(vocabulary: Vocabulary, text: str) -> RdfLiteral:
    return RdfLiteral(text, vocabulary.language if is_language_tag(vocabulary.language) else "")


def _to_iri_or_literal(text: str) -> str | RdfLiteral:
    """What points to something outside, as an IRI where it is one."""
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
            is_notation = alias.lang == NO_LANGUAGE
            yield ("skos:notation", RdfLiteral(alias.text)) if is_notation else ("skos:hiddenLabel", text)
            continue
        yield "skos:altLabel", text
        # SKOS cannot say more. Where it would be misread, all scopes are said outright.
        if alias.scope != "exact" or (alias.text, alias.lang) in scoped:
            yield SYNONYM_PREDICATES[alias.scope], text


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
        is_mapping = RELATION_TYPES[relation].target_collection is None
        yield from (
            (
                _PREDICATE_BY_RELATION[relation],
                _to_iri_or_literal(target) if is_mapping else vocabulary.record_iri(target),
            )
            for target in targets
        )


_PREDICATE_BY_RELATION: dict[str, str] = {
    **{
        collection.hierarchy_type.name: "skos:broader"
        for collection in COLLECTIONS.values()
        if collection.hierarchy_type
    },
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
        if field in _DUBLIN_CORE_FIELDS and (dublin_core := _DUBLIN_CORE_FIELDS[field](value)) is not None:
            yield dublin_core
        elif is_reference:
            yield predicate, vocabulary.record_iri(value)
        else:
            yield predicate, RdfLiteral(value) if isinstance(value, str) else TypedLiteral(str(value), "xsd:integer")


_LEXARIUM_PROPERTIES = {
    collection.name: [
        (
            field,
            f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS[field]}",
            None if info.is_required() else info.default,
            field in collection.id_fields and collection.id_fields[field].collection is not None,
        )
        for field, info in collection.fields.items()
        if field in LEXARIUM_FIELDS
    ]
    for collection in COLLECTIONS.values()
}
"""What our own vocabulary says of each collection: fields, their names, what goes unsaid, and whether they refer."""


def _created_property(timestamp: str) -> PredicateValue | None:
    return ("dct:created", TypedLiteral(timestamp, "xsd:dateTime")) if is_timestamp(timestamp) else None


def _modified_property(milliseconds: int) -> PredicateValue | None:
    text = format_timestamp_ms(milliseconds)
    return None if text is None else ("dct:modified", TypedLiteral(text, "xsd:dateTime"))


def _creator_property(user: str) -> PredicateValue | None:
    return ("dc:creator", RdfLiteral(user)) if has_prefix(user, ("usr",)) else None


_DUBLIN_CORE_FIELDS: dict[str, Callable[[Any], PredicateValue | None]] = {
    "event_stamp": _created_property,
    "last_updated": _modified_property,
    "id_user": _creator_property,
}
"""What Dublin Core can say of a field, or None where it cannot say this."""


def _state_properties(vocabulary: Vocabulary, record: Record) -> Iterator[PredicateValue]:
    if record.state != RecordState.PUBLISHED:
        yield "owl:deprecated", TypedLiteral("true", "xsd:boolean")
    if record.state == RecordState.MERGED:
        yield f"{LEXARIUM_PREFIX}:{STATE_PROPERTY}", RdfLiteral(record.state)
    if record.replaced_by is not None:
        yield "dct:isReplacedBy", vocabulary.record_iri(record.replaced_by)
