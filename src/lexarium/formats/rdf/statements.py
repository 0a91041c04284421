"""Write records as RDF, statement by statement: the reverse of `resources`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count
from tempfile import SpooledTemporaryFile

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, serialize

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.identity.prefixes import encode_iri
from lexarium.domain.record import Record, RecordState, RelatedRecord
from lexarium.domain.schema.collections import RELATION_TYPES, Collection
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.predicates import (
    NAMESPACES,
    STANDARD_ROLES,
    SlotRole,
    contract_predicate,
    expand_predicate,
)
from lexarium.domain.statement import Node, Reference, Statement, Text, Value
from lexarium.domain.vocabulary import TITLE, Vocabulary
from lexarium.formats.ontology_view import (
    LIST_TYPE,
    get_ontology_class,
    has_own_classes,
    is_relation,
    join_definitions,
    list_derived_aliases,
    mark_repeated,
    to_ontology,
)
from lexarium.formats.parsed import WriteOptions
from lexarium.formats.registry import Format
from lexarium.formats.resources import (
    BLANK_LABEL,
    DEFINITION_CLASSES,
    EXPORTED_VOCABULARY,
    OTHER_RESOURCE,
    STATE,
    WRITTEN_INVERSE,
    list_metadata,
)

_TYPE, _FIRST, _REST, _NIL = (NamedNode(expand_predicate(f"rdf:{name}")) for name in ("type", "first", "rest", "nil"))
_OBO = load_builtin_schema("obo")
_ONTOLOGY = "owl:Ontology"
_ONTOLOGY_TYPE = Statement("rdf:type", Reference(_ONTOLOGY))
_AXIOM, _ANNOTATION = (NamedNode(expand_predicate(f"owl:{name}")) for name in ("Axiom", "Annotation"))
_AXIOM_TYPES = [Statement("rdf:type", Reference(f"owl:{name}")) for name in ("Axiom", "Annotation")]
_AXIOM_PARTS = [NamedNode(expand_predicate(f"owl:annotated{part}")) for part in ("Source", "Property", "Target")]
_DEPRECATED = NamedNode(expand_predicate("owl:deprecated"))
_TRUE = Literal("true", datatype=NamedNode(expand_predicate("xsd:boolean")))
_REPLACED_BY = {"skos": "dcterms:isReplacedBy", "obo": "IAO:0100001"}
_RESTRICTION, _SUBCLASS = NamedNode(expand_predicate("owl:Restriction")), NamedNode(expand_predicate("rdfs:subClassOf"))
_ON_PROPERTY, _SOME_VALUES = (NamedNode(expand_predicate(f"owl:{name}")) for name in ("onProperty", "someValuesFrom"))
_CONCEPT, _SCHEME, _IN_SCHEME, _TOP_CONCEPT_OF, _NARROWER, _NAME, _ALIAS = (
    NamedNode(expand_predicate(f"skos:{name}"))
    for name in ("Concept", "ConceptScheme", "inScheme", "topConceptOf", "narrower", "prefLabel", "altLabel")
)
_STATE = NamedNode(expand_predicate(STATE))
_ANNOTATION_PROPERTY = NamedNode(expand_predicate("owl:AnnotationProperty"))
_SUBPROPERTY = NamedNode(expand_predicate("rdfs:subPropertyOf"))
_MEMBER_OF = "uneskos:memberOf"
_MAPPINGS = frozenset(predicate for predicate, role in STANDARD_ROLES.items() if role == SlotRole.MAPPING)
_INVALID_XML_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SYNTAXES = {
    "skos": RdfFormat.TURTLE,
    "rdfxml": RdfFormat.RDF_XML,
    "ntriples": RdfFormat.N_TRIPLES,
    "jsonld": RdfFormat.JSON_LD,
    "owl": RdfFormat.RDF_XML,
}

# What an element can be named after, at the end of an IRI.
_XML_NAME_END = re.compile(r"[^\W\d][\w.-]*\Z")

# A smaller document is kept in memory.
_MAX_MEMORY_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 16
# IRIs that are kept while a document is written.
_MAX_CACHED = 10_000

Subject = NamedNode | BlankNode
Term = NamedNode | BlankNode | Literal


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield a document of the records of one vocabulary, in chunks, after what its head record states.

    What XML cannot express is counted as a loss.
    """
    writer = _StatementWriter(options)
    triples = chain(writer.list_head_triples(), chain.from_iterable(map(writer.list_triples, records)))
    return _serialize(triples, options)


def render_record(format: Format, vocabulary: Vocabulary, record: Record, related: Iterable[RelatedRecord]) -> bytes:
    """Return a document of one record, with the names of those that it is related to."""
    options = WriteOptions(format, vocabulary)
    writer = _StatementWriter(options)
    return b"".join(_serialize([*writer.list_triples(record), *writer.iter_neighbours(record, related)], options))


def _serialize(triples: Iterable[Triple], options: WriteOptions) -> Iterator[bytes]:
    prefixes = {**NAMESPACES, **options.vocabulary.prefixes}
    syntax = _SYNTAXES[options.format.name]
    with SpooledTemporaryFile(_MAX_MEMORY_BYTES) as file:
        serialize(triples, file, format=syntax, prefixes=prefixes)
        file.seek(0)
        while chunk := file.read(_CHUNK_BYTES):
            # The serializer ends lines with a line feed only. A reader of XML would take a carriage return for one.
            yield chunk.replace(b"\r", b"&#13;") if syntax == RdfFormat.RDF_XML else chunk


@lru_cache(_MAX_CACHED)
def _make_class(uri: str) -> NamedNode:
    return NamedNode(expand_predicate(uri))


@lru_cache(_MAX_CACHED)
def _is_element_name(predicate: NamedNode) -> bool:
    return _XML_NAME_END.search(predicate.value) is not None


class _StatementWriter:
    """Convert records to triples.

    For XML, predicates that are no names of elements are skipped, and control characters are replaced.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._vocabulary = vocabulary = options.vocabulary
        self._losses = options.losses
        self._head = options.head.statements if options.head else ()
        written = {str(item.value[0]) for item in self._head if item.predicate == WRITTEN_INVERSE}
        # Predicates that are only written the other way round: SKOS has no word for how membership is stored.
        self._replaced = {_MEMBER_OF} - written
        # Predicates that are written the other way round.
        self._inverses = {
            stored: NamedNode(expand_predicate(name))
            for name, stored in vocabulary.schema.inverses.items()
            if name in written or stored in self._replaced
        }
        self._is_owl = options.format.name == "owl"
        self._is_xml = _SYNTAXES[options.format.name] == RdfFormat.RDF_XML
        self._has_own_classes = has_own_classes(vocabulary.schema)
        # Concept schemes that are described already.
        self._schemes: set[str] = set()
        self._main_classes = {item.name for item in vocabulary.schema.main_collections.values()}
        self._numbers = count(1)
        # Statements of one vocabulary share predicates and many targets.
        self._make_predicate = lru_cache(_MAX_CACHED)(self._expand_predicate)
        self._make_iri = lru_cache(_MAX_CACHED)(self._expand_iri)
        self._make_scheme = lru_cache(_MAX_CACHED)(self._encode_scheme)
        # Ontology with its statements that are written already, some of which may be those of a concept scheme too.
        self._head_subject: Subject | None = None
        self._written_head: frozenset[Statement] = frozenset()
        # Hashes of statements of nodes with a name, which several records may repeat.
        self._written: set[int] = set()

    def list_head_triples(self) -> list[Triple]:
        """Return what the head record states about an ontology, and the resources that are no records.

        What it states about a concept scheme is left to the scheme's own record.
        """
        placeholder = Statement(TITLE, Text(self._vocabulary.slug))
        stated = [item for item in self._head if not item.predicate.startswith("lexarium:") and item != placeholder]
        types = {str(item.value[0]) for item in stated if item.predicate == "rdf:type"}
        iri = next(iter(self._vocabulary.sources), "")
        others = [item.value for item in self._head if item.predicate == OTHER_RESOURCE]
        is_ontology = self._is_owl or self._vocabulary.schema.name == "obo"
        triples: list[Triple] = []
        if self._has_own_classes:
            marks = [
                *([_ONTOLOGY_TYPE] if self._is_owl else []),
                Statement(EXPORTED_VOCABULARY, Text(self._vocabulary.slug)),
            ]
            self._add_statements(
                triples, self._make_node(self._vocabulary.iri_start), [*marks, *list_metadata(self._vocabulary)]
            )
        elif iri and (_ONTOLOGY in types or is_ontology):
            # Some programs know an ontology only if its type comes first.
            stated = [_ONTOLOGY_TYPE, *(item for item in stated if item != _ONTOLOGY_TYPE)]
            self._head_subject, self._written_head = self._make_node(iri), frozenset(stated)
            self._add_statements(triples, self._head_subject, stated)
        elif (self._is_owl or (self._head and is_ontology)) and not any(
            _ONTOLOGY_TYPE in item.statements for item in others if isinstance(item, Node)
        ):
            self._add_statements(triples, self._make_node(), [_ONTOLOGY_TYPE])
        for value in others:
            triples += self._convert(value)[1]
        return triples

    def list_triples(self, record: Record) -> list[Triple]:
        """Return the triples of a record."""
        subject = self._make_iri(record.iri or record.local_id)
        class_uri, statements = record.collection.schema_class.uri, record.statements
        if subject == self._head_subject:
            statements = tuple(item for item in statements if item not in self._written_head)
        class_name = get_ontology_class(record.collection)
        if self._is_owl:
            class_uri, statements = _OBO.collections[class_name].uri, to_ontology(record)
        is_skos_view = self._has_own_classes and not self._is_owl
        members = _list_members(record) if is_skos_view else []
        triples = self._list_schemes(members)
        triples += _list_class_triples(subject, class_uri)
        if is_skos_view:
            triples += self._iter_skos(subject, record, members)
        is_ontology = self._is_owl or record.collection.schema.name == "obo"
        if record.state != RecordState.PUBLISHED:
            triples.append(Triple(subject, _DEPRECATED, _TRUE))
        if record.state == RecordState.MERGED:
            triples.append(Triple(subject, _STATE, Literal(record.state)))
        if record.replaced_by is not None:
            replacement = Reference(get_local_id(record.replaced_by))
            if not any(item.value == replacement for item in statements if item.predicate in _REPLACED_BY.values()):
                predicate = _REPLACED_BY["obo" if is_ontology else "skos"]
                self._add_statement(triples, subject, Statement(predicate, replacement), triples)
        if self._has_own_classes:
            statements = tuple(
                self._convert_mapping(item) if item[0] in _MAPPINGS else item for item in mark_repeated(statements)
            )
        if is_ontology and class_name == "term":
            self._add_statements(triples, subject, join_definitions(statements), record)
        else:
            self._add_statements(triples, subject, statements)
        return triples

    def _iter_skos(self, subject: NamedNode, record: Record, members: Sequence[Collection]) -> Iterator[Triple]:
        """Yield what programs that know SKOS alone need of a record of other classes."""
        if members and all(self._make_predicate(item.schema_class.uri) != _CONCEPT for item in members):
            yield Triple(subject, _TYPE, _CONCEPT)
        for collection in members:
            scheme = self._make_scheme(collection)
            yield Triple(subject, _IN_SCHEME, scheme)
            types = collection.hierarchical_types
            if types and not any(relation.relation in types for relation in record.relations):
                yield Triple(subject, _TOP_CONCEPT_OF, scheme)
        for text in list_derived_aliases(record):
            yield Triple(subject, _ALIAS, Literal(text))

    def _convert_mapping(self, statement: Statement) -> Statement:
        """Return a mapping whose value is a text, if no IRI is known for its target."""
        if not isinstance(statement.value, Reference) or self._has_iri(statement.value.target):
            return statement
        return statement._replace(value=Text(statement.value.target))

    def _list_schemes(self, collections: Iterable[Collection]) -> list[Triple]:
        """Return the concept schemes that collections are, unless they are written already."""
        triples: list[Triple] = []
        for collection in collections:
            if collection.name not in self._schemes:
                self._schemes.add(collection.name)
                scheme, title = self._make_scheme(collection), f"{self._vocabulary.title}: {collection.label}"
                described = replace(self._vocabulary, title=title, description=collection.description)
                triples.append(Triple(scheme, _TYPE, _SCHEME))
                self._add_statements(triples, scheme, list_metadata(described))
        return triples

    def _encode_scheme(self, collection: Collection) -> NamedNode:
        return self._encode_iri(self._vocabulary.iri_start + collection.local_name, collection.local_name)

    def iter_neighbours(self, record: Record, related: Iterable[RelatedRecord]) -> Iterator[Triple]:
        """Yield the names of related records, and what they state about this one."""
        subject = self._make_iri(record.iri or record.local_id)
        for other in related:
            relation_type = RELATION_TYPES[other.type_name]
            if relation_type.is_mapping or other.name is None:
                continue
            neighbour = self._make_iri(get_local_id(other.id))
            yield Triple(neighbour, _NAME, Literal(other.name))
            if other.side == "target":
                yield Triple(neighbour, self._make_predicate(relation_type.predicate or other.type_name), subject)
                if relation_type.is_hierarchical:
                    yield Triple(subject, _NARROWER, neighbour)

    def _add_statements(
        self, triples: list[Triple], subject: Subject, statements: Iterable[Statement], term: Record | None = None
    ) -> None:
        """Add the triples of a subject, and then those of nodes, axioms and inverses.

        In XML, some programs read the first element of a subject only. The references of a term to others are
        restrictions of their instances, as OWL has them.
        """
        later: list[Triple] = []
        slots = term.collection.schema_class.slots_by_predicate if term and not self._has_own_classes else {}
        for statement in statements:
            predicate, value, qualifiers = statement
            is_restriction = False
            if isinstance(value, Reference):
                inverse = self._inverses.get(predicate)
                if inverse and self._can_write(inverse, subject):
                    later.append(Triple(self._make_iri(value.target), inverse, subject))
                    if predicate in self._replaced and not qualifiers:
                        continue
                if term is not None:
                    slot = slots.get(predicate)
                    is_restriction = is_relation(predicate) and (not slot or slot.range in self._main_classes)
            self._add_statement(triples, subject, statement, later, is_restriction=is_restriction)
        triples += later

    def _add_statement(  # noqa: PLR0913 (a statement, and where its triples go)
        self,
        triples: list[Triple],
        subject: Subject,
        statement: Statement,
        later: list[Triple],
        *,
        is_restriction: bool = False,
        annotation_type: NamedNode = _AXIOM,
    ) -> None:
        """Add the triple of a statement, and later those of its node and qualifiers."""
        predicate = self._make_predicate(statement[0])
        value, nested = self._convert(statement[1])
        if is_restriction:
            node = self._make_node()
            nested = [
                Triple(node, _TYPE, _RESTRICTION),
                Triple(node, _ON_PROPERTY, predicate),
                Triple(node, _SOME_VALUES, value),
            ]
            predicate, value = _SUBCLASS, node
        triple = Triple(subject, predicate, value)
        if not self._is_xml or self._can_write(predicate, subject):
            triples.append(triple)
        later += nested
        if statement[2]:
            self._add_qualifiers(later, triple, statement[2], annotation_type)

    def _add_qualifiers(
        self, triples: list[Triple], triple: Triple, qualifiers: Iterable[Statement], annotation_type: NamedNode
    ) -> None:
        """Add the axiom that annotates a triple."""
        axiom = self._make_node()
        triples.append(Triple(axiom, _TYPE, annotation_type))
        triples += (Triple(axiom, part, end) for part, end in zip(_AXIOM_PARTS, triple, strict=True))
        for qualifier in qualifiers:
            self._add_statement(triples, axiom, qualifier, triples, annotation_type=_ANNOTATION)

    def _convert(self, value: Value) -> tuple[Term, Iterable[Triple]]:
        if isinstance(value, Text):
            text, lang, datatype = value
            if self._is_xml:
                text = _INVALID_XML_CHARS.sub("\ufffd", text)
                if text != value.text:
                    self._losses.add("a control character is replaced, since XML has none", text[:50])
            if lang:
                return Literal(text, language=lang), ()
            return Literal(text, datatype=self._make_predicate(datatype) if datatype else None), ()
        if isinstance(value, Reference):
            return self._make_iri(value.target), ()
        if LIST_TYPE in value.statements and not value.iri:
            return self._convert_list(value)
        node = self._make_node(value.iri)
        statements: Iterable[Statement] = value.statements
        if value.iri:
            hashes = {hash((value.iri, item)): item for item in value.statements}
            statements = [item for key, item in hashes.items() if key not in self._written]
            self._written |= hashes.keys()
        is_axiom = any(item in value.statements for item in _AXIOM_TYPES)
        kind = _ANNOTATION if is_axiom else _AXIOM
        triples: list[Triple] = []
        for item in statements:
            self._add_statement(triples, node, item, triples, annotation_type=kind)
        return node, triples

    def _convert_list(self, value: Node) -> tuple[Term, Iterable[Triple]]:
        members = [item for item in value.statements if item.predicate.startswith("rdf:_")]
        members.sort(key=lambda item: int(item.predicate.removeprefix("rdf:_")))
        triples: list[Triple] = []
        head: Subject = _NIL
        for member in reversed(members):
            cell = self._make_node()
            converted, nested = self._convert(member.value)
            first = Triple(cell, _FIRST, converted)
            triples += [first, Triple(cell, _REST, head), *nested]
            if member.qualifiers:
                self._add_qualifiers(triples, first, member.qualifiers, _AXIOM)
            head = cell
        return head, triples

    def _can_write(self, predicate: NamedNode, subject: Subject) -> bool:
        """Return whether the syntax can express a predicate; if not, count a loss."""
        if not self._is_xml or _is_element_name(predicate):
            return True
        self._losses.add(f"{predicate.value} cannot be the name of an XML element and is skipped", subject.value)
        return False

    def _make_node(self, name: str = "") -> Subject:
        """Return a node by its IRI, CURIE or label; without one, a blank node of its own."""
        if name.startswith("_:"):
            with suppress(ValueError):
                return BlankNode(name.removeprefix("_:"))
        elif name:
            return self._make_iri(name)
        return BlankNode(f"{BLANK_LABEL}{next(self._numbers)}")

    def _expand_predicate(self, predicate: str) -> NamedNode:
        expanded = expand_predicate(predicate)
        return self._make_iri(predicate) if expanded == predicate else self._encode_iri(expanded, predicate)

    def _expand_iri(self, name: str) -> NamedNode:
        if self._has_own_classes and not self._has_iri(name):
            return NamedNode(self._vocabulary.record_iri(name))
        return self._encode_iri(self._vocabulary.expand_id(name), name)

    def _has_iri(self, name: str) -> bool:
        """Return whether a name is an IRI, or a CURIE that readers find in the IRI it stands for."""
        if ":" not in name:
            return False
        iri = self._vocabulary.expand_id(name)
        with suppress(ValueError):
            NamedNode(iri)
            return name in (iri, self._vocabulary.contract_iri(iri), contract_predicate(iri))
        return False

    def _encode_iri(self, iri: str, name: str) -> NamedNode:
        """Return an IRI; of what is none, one with the rest percent-encoded."""
        with suppress(ValueError):
            return NamedNode(iri)
        with suppress(ValueError):
            return NamedNode(encode_iri(iri))
        return NamedNode(self._vocabulary.record_iri(name))


def _list_class_triples(subject: NamedNode, class_uri: str) -> list[Triple]:
    """Return the triples by which a record is of its class."""
    if class_uri not in DEFINITION_CLASSES:
        return [Triple(subject, _TYPE, _make_class(class_uri))]
    kind = Triple(subject, _SUBPROPERTY, _make_class(class_uri))
    return [Triple(subject, _TYPE, _ANNOTATION_PROPERTY), kind]


def _list_members(record: Record) -> list[Collection]:
    """Return the collections of a record that are concept schemes in SKOS."""
    return [item for item in (record.collection, *record.further_collections) if not item.is_auxiliary]
