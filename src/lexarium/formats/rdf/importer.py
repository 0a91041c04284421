"""The resources of a graph as records: what is said of each, made into names, relations and fields."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, TypeVar, cast

from pyoxigraph import RdfFormat

from lexarium.domain.identifiers import find_target_problem, has_prefix
from lexarium.domain.labels import AliasScope
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import MAPPING_TYPES, PARTOF, RELATED, RELATION_TYPES, Side
from lexarium.domain.timestamps import format_timestamp, is_timestamp, parse_timestamp
from lexarium.formats.foreign_ids import parse_integer
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WarningCounter, missing_collection_error
from lexarium.formats.rdf import labels
from lexarium.formats.rdf.graph import SubjectTriples, TripleStore
from lexarium.formats.rdf.parser import ParsedTriple, RdfInput, RdfLiteral, parse_triples
from lexarium.formats.rdf.predicates import (
    BROADER,
    BROADER_GENERIC,
    BROADER_TRANSITIVE,
    INVERSE_PREDICATES,
    UNSCOPED,
    PredicateRole,
    build_predicate_map,
    expand_curie,
    find_catalogue_base,
    to_curie,
    to_obo_curie,
)
from lexarium.formats.reading import open_seekable

Node = str | RdfLiteral

RDF_TYPE = expand_curie("rdf:type")
_ID_PREDICATE = expand_curie("oboInOwl:id")
_OWL_IMPORTS = expand_curie("owl:imports")
_LITERAL_FORM = (expand_curie("skosxl:literalForm"), expand_curie("rdf:value"))
_ON_PROPERTY, _SOME_VALUES = expand_curie("owl:onProperty"), expand_curie("owl:someValuesFrom")
_ANNOTATED_PROPERTY = expand_curie("owl:annotatedProperty")
_LICENCE_PREDICATES = tuple(
    expand_curie(name) for name in ("dct:license", "dct:rights", "dc:rights", "dct:accessRights")
)
_MAPPING_NAMES = tuple(mapping.name for mapping in MAPPING_TYPES)
_BROADER_KINDS = {BROADER, BROADER_GENERIC, BROADER_TRANSITIVE}
_TEXT_ROLES = ("alias", "definition", "note")
_SOURCE_PREDICATES = tuple(expand_curie(name) for name in ("oboInOwl:hasDbXref", "dct:source", "dc:source"))

_COLLECTION_TYPES: tuple[Node, ...] = (expand_curie("skos:Collection"), expand_curie("skos:OrderedCollection"))
_HEADER_TYPES: tuple[Node, ...] = (expand_curie("skos:ConceptScheme"), expand_curie("owl:Ontology"))

_MAX_NODE_PROPERTIES = 100
"""What may be said of a label, note or expression: thousands of records may share one, and each takes all of it."""

Value = TypeVar("Value")
PropertiesByRole = dict[PredicateRole, list[tuple[str, Node]]]
"""What is said of a resource: by kind, details and objects."""


@dataclass(frozen=True)
class RdfProfile:
    """Which resources are records, and how they are named."""

    record_types: tuple[Node, ...]
    """What a record is an instance of."""
    membership_predicates: tuple[str, ...]
    """Predicates that only records have, whatever they are an instance of."""
    name_predicates: tuple[str, ...]
    """Predicates of names, the best first."""
    format_by_type: dict[Node, str]
    """What a document may hold instead, and the format that reads it."""


def import_records(stream: BinaryIO, options: ReadOptions, profile: RdfProfile) -> Iterator[ParsedRecord]:
    """The records of a document, and last what there is to tell of it. Raises `Malformed`."""
    rdf_input = RdfInput(stream)
    if rdf_input.syntax != RdfFormat.JSON_LD:
        with TripleStore() as graph:
            yield from _RdfImporter(graph, options, profile).run(parse_triples(rdf_input, rdf_input.syntax))
        return
    with open_seekable(rdf_input) as copy, TripleStore() as graph:
        syntax = RdfFormat.STREAMING_JSON_LD if _is_streamable_jsonld(copy) else RdfFormat.JSON_LD
        copy.seek(0)
        yield from _RdfImporter(graph, options, profile).run(parse_triples(copy, syntax))


def _is_streamable_jsonld(file: IO[bytes]) -> bool:
    """Whether a document in JSON-LD can be read without having all of it in memory."""
    try:
        deque(parse_triples(file, RdfFormat.STREAMING_JSON_LD), maxlen=0)
    except ParseError:
        return False
    return True


class _RdfImporter:
    def __init__(self, graph: TripleStore, options: ReadOptions, profile: RdfProfile) -> None:
        self._graph = graph
        self._options = options
        self._vocabulary = options.vocabulary
        self._profile = profile
        self._catalogues = [options.vocabulary]
        """Whose records are ours: this catalogue's, and those of the ones that the document was exported from."""
        self._predicate_map = build_predicate_map(options.vocabulary, options.column_mapping)
        self._warnings = WarningCounter()
        self._declared_ids: dict[str, str] = {}
        """What resources are called, where that does not follow from their IRI."""
        self._stated_roles: set[str] = set()
        """Of which relations, and what else, the document says something somewhere."""
        self._oversized_nodes: set[str] = set()
        """Labels and the like of which more is said than is taken."""
        self._suggested_format: str | None = None
        """The format that reads what this document holds instead of records."""
        self._has_vocabulary_header = False
        """Whether it speaks of a vocabulary that records could be of."""

    def run(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedRecord]:
        self._graph.add(self._normalize_triples(triples))
        used_mappings = [
            mapping for predicate, mapping in self._predicate_map.items() if predicate in self._graph.predicate_counts
        ]
        self._stated_roles |= {mapping.target or mapping.role for mapping in used_mappings}
        has_records = False
        for name in self._graph:
            subject = self._graph.get_subject(name)
            if self._is_record(name, subject):
                has_records = True
                record = self._build_record(name, subject)
                if record is not None:
                    yield record
            else:
                self._inspect_other_resource(name, subject)
        if not has_records and self._suggested_format:
            raise ParseError(f"it holds nothing that this format reads: try --format {self._suggested_format}", 1, 1)
        if not has_records and self._graph.predicate_counts and not self._has_vocabulary_header:
            expected_types = ", ".join(to_curie(_node_text(record_type)) for record_type in self._profile.record_types)
            raise ParseError(f"nothing that it speaks of is a {expected_types}", 1, 1)
        yield from self._warnings.to_parsed_records()

    def _normalize_triples(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedTriple]:
        """The statements, each made of what it tells something of that a record holds."""
        for triple in triples:
            line, subject, predicate, value = triple
            if predicate in INVERSE_PREDICATES and isinstance(value, str):
                yield ParsedTriple(line, value, INVERSE_PREDICATES[predicate], subject)
            else:
                yield triple
            if predicate == _ID_PREDICATE and isinstance(value, RdfLiteral) and value.text != to_obo_curie(subject):
                self._declared_ids[subject] = value.text
            elif (
                predicate == RDF_TYPE
                and isinstance(value, str)
                and (base := find_catalogue_base(subject, value)) is not None
            ):
                self._add_catalogue(base)
            elif predicate == _ON_PROPERTY and (mapping := self._predicate_map.get(_iri_or_empty(value))) is not None:
                self._stated_roles.add(mapping.target)

    def _add_catalogue(self, base: str) -> None:
        """Know the records of the catalogue at this base by their own ids."""
        if all(known.base != base for known in self._catalogues):
            catalogue = replace(self._vocabulary, base=base)
            self._catalogues.append(catalogue)
            self._predicate_map = {
                **build_predicate_map(catalogue, self._options.column_mapping),
                **self._predicate_map,
            }

    def _parse_own_id(self, name: str) -> str | None:
        """The id of ours that a resource has."""
        return next(filter(None, (catalogue.parse_record_iri(name) for catalogue in self._catalogues)), None)

    def _is_record(self, name: str, subject: SubjectTriples) -> bool:
        return (
            not name.startswith("_:")
            and any(
                value in self._profile.record_types
                if predicate == RDF_TYPE
                else predicate in self._profile.membership_predicates
                for predicate, value in subject.properties
            )
            and not any(predicate == RDF_TYPE and value in _COLLECTION_TYPES for predicate, value in subject.properties)
        )

    def _inspect_other_resource(self, name: str, subject: SubjectTriples) -> None:
        """What is no record may still say something that is to be told."""
        for predicate, value in subject.properties:
            if predicate == RDF_TYPE and value in self._profile.format_by_type:
                self._suggested_format = self._profile.format_by_type[value]
            elif predicate == RDF_TYPE and value in _COLLECTION_TYPES:
                self._warnings.add(f"a {to_curie(_node_text(value))} is not kept", name)
            elif predicate == RDF_TYPE and value in _HEADER_TYPES:
                self._has_vocabulary_header = True
            elif predicate == _OWL_IMPORTS:
                self._warnings.add("what it imports is not fetched", _node_text(value))
            elif predicate in _LICENCE_PREDICATES and not name.startswith(self._vocabulary.base):
                self._warnings.add("it has terms of its own, to which the catalogue's should fit", _node_text(value))

    def _build_record(self, name: str, subject: SubjectTriples) -> ParsedRecord | None:
        record = ParsedRecord(subject.line, foreign_id=self._get_id(name))
        properties = self._group_by_role(subject)
        collection = self._choose_collection(properties, subject.line)
        record.collection = collection.name
        own_id = self._parse_own_id(name)
        if own_id is not None:
            record.foreign_id, record.fields["id"] = "", own_id
        elif find_target_problem(record.foreign_id):
            self._warnings.add("what has no IRI of its own was left out", name)
            return None
        self._set_names(record, properties)
        if not own_id and "name" not in record.fields:
            self._warnings.add("what has no label was left out", name)
            return None
        self._set_definition(collection, record, properties)
        self._set_relations(collection, record, properties)
        self._set_fields(collection, record, properties)
        self._set_dates(collection, record, properties)
        self._set_state(record, properties)
        return record

    def _get_id(self, name: str) -> str:
        """What a resource is called: by its id where it is one of ours."""
        return self._parse_own_id(name) or self._declared_ids.get(name) or to_obo_curie(name)

    def _group_by_role(self, subject: SubjectTriples) -> PropertiesByRole:
        properties: PropertiesByRole = defaultdict(list)
        names: dict[str, list[RdfLiteral]] = defaultdict(list)
        for predicate, value in _drop_duplicates(subject.properties):
            mapping = self._predicate_map.get(predicate)
            if mapping is None:
                self._warn_unknown_predicate(predicate)
            elif mapping.role == "name":
                names[predicate] += self._get_literals(predicate, value)
            elif mapping.role == "notation":
                codes = self._get_literals(predicate, value)
                properties["alias"] += [("hidden", RdfLiteral(code.text, labels.NO_LANGUAGE)) for code in codes]
            elif mapping.role in _TEXT_ROLES:
                properties[mapping.role] += [(mapping.target, text) for text in self._get_literals(predicate, value)]
            else:
                properties[mapping.role].append((mapping.target, value))
        best_first = [
            *self._profile.name_predicates,
            *(name for name in names if name not in self._profile.name_predicates),
        ]
        properties["name"] = [("", text) for predicate in best_first for text in names.get(predicate, ())]
        return properties

    def _warn_unknown_predicate(self, predicate: str) -> None:
        self._warnings.add(f"{to_curie(predicate)} is not known and was left out; --map can say what it means")

    def _get_literals(self, predicate: str, value: Node) -> list[RdfLiteral]:
        """The text of a label or note, which may be a resource of its own; nothing where there is none."""
        if isinstance(value, RdfLiteral):
            return [value]
        texts = [
            text
            for detail_predicate, text in self._get_node_properties(value)
            if detail_predicate in _LITERAL_FORM and isinstance(text, RdfLiteral)
        ]
        if not texts:
            self._warnings.add(f"{to_curie(predicate)} is not a text, and was left out", _node_text(value))
        return texts

    def _get_node_properties(self, name: str) -> list[tuple[str, Node]]:
        """What is said of something that records only mention; nothing where that is more than any should need."""
        if name in self._oversized_nodes:
            return []
        properties = self._graph.get_subject(name).properties
        if len(properties) > _MAX_NODE_PROPERTIES:
            self._oversized_nodes.add(name)
            self._warnings.add(f"a label of which more than {_MAX_NODE_PROPERTIES} things are said was left out", name)
            return []
        return properties

    def _choose_collection(self, properties: PropertiesByRole, line: int) -> Collection:
        if self._options.collection is not None:
            return self._options.collection
        for _, value in properties["collection"]:
            for catalogue in self._catalogues:
                stated = value.text if isinstance(value, RdfLiteral) else value.removeprefix(catalogue.base)
                if stated in COLLECTIONS:
                    return COLLECTIONS[stated]
        if self._options.default_collection is None:
            raise missing_collection_error(line)
        return self._options.default_collection

    def _set_names(self, record: ParsedRecord, properties: PropertiesByRole) -> None:
        language = self._vocabulary.language
        names = list(dict.fromkeys(_filter_literals(properties["name"])))
        name = labels.select_label(names, language)
        if name is not None:
            record.fields["name"] = name.text
            if labels.matches_language(name, language):
                names = [
                    label for label in names if label.text != name.text or not labels.matches_language(label, language)
                ]
            else:
                self._warnings.add(f"no label is in {language}, and one in another language is the name", name.text)
        scoped = labels.resolve_scopes(
            [(UNSCOPED, text) for text in names]
            + [(scope, text) for scope, text in properties["alias"] if isinstance(text, RdfLiteral)],
            UNSCOPED,
        )
        aliases = (labels.build_alias(text, cast(AliasScope, scope), language) for scope, text in scoped if text.text)
        record.aliases = _unique_if_foreign(record, aliases)

    def _set_definition(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        literals = list(
            dict.fromkeys(_filter_literals(properties["definition"]) or _filter_literals(properties["note"]))
        )
        definition = labels.select_label(literals, self._vocabulary.language)
        field = collection.definition_field
        if definition is not None and field is None:
            self._warnings.add(f"a {collection.name} has no definition; it was left out")
        elif definition is not None and field is not None:
            record.fields[field] = definition.text
            if not labels.matches_language(definition, self._vocabulary.language):
                self._warnings.add(
                    f"no definition is in {self._vocabulary.language}, and one in another language is taken"
                )
        if len(literals) > 1:
            self._warnings.add("only one of several definitions, or notes, is taken")
        sources = [*properties["source"], *self._iter_axiom_sources(properties)]
        if record.fields.get("id") or "source" in self._stated_roles or sources:
            source_texts = (
                _node_text(value) for _, value in sources if isinstance(value, RdfLiteral) or not value.startswith("_:")
            )
            record.sources = _unique_if_foreign(record, filter(None, source_texts))

    def _iter_axiom_sources(self, properties: PropertiesByRole) -> Iterator[tuple[str, Node]]:
        """Where a definition is from, as an axiom about it says."""
        for _, axiom in properties["axiom"]:
            axiom_properties = self._get_node_properties(axiom) if isinstance(axiom, str) else []
            annotated = [
                self._predicate_map.get(_iri_or_empty(value))
                for predicate, value in axiom_properties
                if predicate == _ANNOTATED_PROPERTY
            ]
            if any(mapping is not None and mapping.role == "definition" for mapping in annotated):
                yield from (("", value) for predicate, value in axiom_properties if predicate in _SOURCE_PREDICATES)

    def _set_relations(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        record_id = record.fields.get("id") or record.foreign_id
        targets: dict[str, list[Node]] = defaultdict(list)
        for relation_kind, value in properties["relation"]:
            relation, target = self._resolve_part_of(relation_kind, value)
            targets[relation].append(target)
        partitive = set(targets[PARTOF.name])
        broader = [target for target in targets.pop(BROADER, []) if target not in partitive]
        transitive = [target for target in targets.pop(BROADER_TRANSITIVE, []) if target not in partitive]
        generic = targets.pop(BROADER_GENERIC, []) + broader
        hierarchy_relation = collection.hierarchy_type
        if hierarchy_relation is not None:
            targets[hierarchy_relation.name] += generic or transitive
        elif generic or transitive:
            self._warnings.add(f"a {collection.name} is not a kind of another; that was left out", record_id)
        candidates = (
            self._build_relation(collection, record, relation, target)
            for relation in targets
            for target in targets[relation]
        )
        relations = [candidate for candidate in dict.fromkeys(candidates) if candidate is not None]
        record.relations = [
            candidate for candidate in relations if candidate.source != candidate.target or not record.foreign_id
        ]
        record.complete_relations = self._list_complete_relations(collection, is_own="id" in record.fields)

    def _resolve_part_of(self, relation: str, value: Node) -> tuple[str, Node]:
        """A relation and its target, where an expression says that all of these are part of some of those."""
        if relation not in (BROADER, BROADER_GENERIC) or not isinstance(value, str) or not value.startswith("_:"):
            return relation, value
        node_properties = dict(self._get_node_properties(value))
        mapping, filler = (
            self._predicate_map.get(_iri_or_empty(node_properties.get(_ON_PROPERTY))),
            node_properties.get(_SOME_VALUES),
        )
        if mapping is None or mapping.target != PARTOF.name or filler is None:
            return relation, value
        return PARTOF.name, filler

    def _build_relation(
        self, collection: Collection, record: ParsedRecord, relation: str, value: Node
    ) -> Relation | None:
        record_id = record.fields.get("id") or record.foreign_id
        if relation == RELATED.name and collection.name != RELATED.source_collection:
            self._warnings.add(f"a {collection.name} is not related to others; that is kept as relatedMatch", record_id)
            relation = "relatedMatch"
        if relation in _MAPPING_NAMES:
            return self._build_mapping(record_id, relation, value)
        if RELATION_TYPES[relation].source_collection != collection.name:
            self._warnings.add(f"a {collection.name} cannot be the source of {relation}; that was left out", record_id)
            return None
        if isinstance(value, str) and value.startswith("_:"):
            self._warnings.add("relations to expressions, and to what has no IRI, were left out", record_id)
            return None
        target = value.text if isinstance(value, RdfLiteral) else self._get_id(value)
        if relation == RELATED.name and (record.foreign_id or self._parse_own_id(_node_text(value)) is None):
            # It goes both ways, and others say it once or twice.
            record_id, target = sorted((record_id, target))
        return Relation(record_id, relation, target)

    def _build_mapping(self, record_id: str, relation: str, value: Node) -> Relation | None:
        target = value.text if isinstance(value, RdfLiteral) else value
        if find_target_problem(target):
            self._warnings.add(
                "mappings to what is neither an IRI nor a CURIE were left out", f"{record_id} to {target}"
            )
            return None
        return Relation(record_id, relation, target)

    def _list_complete_relations(self, collection: Collection, is_own: bool) -> list[tuple[str, Side]]:
        """The relations of which all is told: of records of ours any, of others those that the document uses."""
        complete_relations: list[tuple[str, Side]] = []
        hierarchy_relation = collection.hierarchy_type
        for relation in collection.relation_types.values():
            is_stated = relation.name in self._stated_roles or (
                relation == hierarchy_relation and _BROADER_KINDS & self._stated_roles
            )
            if is_own or is_stated:
                complete_relations.append((relation.name, "source"))
                if relation is RELATED and not is_own:
                    complete_relations.append((relation.name, "target"))
        return complete_relations

    def _set_fields(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        for field, value in properties["field"]:
            text = value.text if isinstance(value, RdfLiteral) else self._get_id(value)
            if field not in collection.field_types:
                self._warnings.add(f"{field} is not a field of {collection.name}; it was left out")
            elif collection.field_types[field] is str:
                record.fields[field] = text
            elif (number := parse_integer(text)) is not None:
                record.fields[field] = number
            else:
                record.problems.append(f"{field} is not a whole number that can be kept: {text[:50]}")

    def _set_dates(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        fields = record.fields
        for text in _filter_literals(properties["created"])[:1]:
            timestamp = parse_timestamp(text.text)
            if timestamp is None:
                self._warnings.add("a date that is not one was left out", text.text)
            elif "event_stamp" in collection.field_types:
                fields.setdefault("event_stamp", text.text if is_timestamp(text.text) else format_timestamp(timestamp))
                if "creation_time" in collection.field_types:
                    fields.setdefault("creation_time", timestamp)
        for text in _filter_literals(properties["modified"])[:1]:
            timestamp = parse_timestamp(text.text)
            if timestamp is not None and "last_updated" in collection.field_types:
                fields.setdefault("last_updated", timestamp)
        for text in _filter_literals(properties["creator"]):
            if has_prefix(text.text, ("usr",)) and "id_user" in collection.field_types:
                fields.setdefault("id_user", text.text)

    def _set_state(self, record: ParsedRecord, properties: PropertiesByRole) -> None:
        """Where the record stands in its life."""
        states = [text.text for text in _filter_literals(properties["state"]) if text.text in list(RecordState)]
        is_unpublished = any(text.text in ("true", "1") for text in _filter_literals(properties["deprecated"])) or bool(
            properties["replaced_by"]
        )
        record.state = (
            RecordState(states[0]) if states else RecordState.RETIRED if is_unpublished else RecordState.PUBLISHED
        )
        for _, value in properties["replaced_by"][:1]:
            record.replaced_by = value.text if isinstance(value, RdfLiteral) else self._get_id(value)
        if len(properties["replaced_by"]) > 1:
            self._warnings.add("only the first of several replacements is kept", record.foreign_id)


def _drop_duplicates(properties: Iterable[tuple[str, Node]]) -> Iterator[tuple[str, Node]]:
    """What is said, without the resources that are mentioned again; a text, or a source, may well be there twice."""
    seen: set[tuple[str, Node]] = set()
    for pair in properties:
        if pair not in seen:
            yield pair
        if isinstance(pair[1], str) and pair[0] not in _SOURCE_PREDICATES:
            seen.add(pair)


def _unique_if_foreign(record: ParsedRecord, values: Iterable[Value]) -> tuple[Value, ...]:
    """Values without repetition; as they are in a record of ours, which may hold one twice."""
    return tuple(dict.fromkeys(values) if record.foreign_id else values)


def _filter_literals(properties: list[tuple[str, Node]]) -> list[RdfLiteral]:
    return [value for _, value in properties if isinstance(value, RdfLiteral)]


def _iri_or_empty(node: Node | None) -> str:
    return node if isinstance(node, str) else ""


def _node_text(value: Node) -> str:
    return value.text if isinstance(value, RdfLiteral) else value
