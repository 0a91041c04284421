"""Read the resources of an RDF document as statements."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from io import BufferedReader
from typing import IO

from pyoxigraph import RdfFormat

from lexarium.domain.record import RecordState
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.model import Schema
from lexarium.domain.schema.predicates import contract_predicate, expand_predicate
from lexarium.domain.statement import MAX_DEPTH, Node, Reference, Statement, Text, Value
from lexarium.domain.text.languages import TAG_FORM, format_tag
from lexarium.domain.vocabulary import DEFAULT_BASE, VOCABULARIES, Vocabulary
from lexarium.formats.ontology_view import LIST_TYPE, is_relation, split_definitions
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.rdf.graph import TripleStore
from lexarium.formats.rdf.parser import ParsedTriple, RdfLiteral, detect_syntax, parse_triples
from lexarium.formats.reading import open_seekable
from lexarium.formats.resources import (
    BLANK_LABEL,
    DEFINITION_CLASSES,
    EXPORTED_VOCABULARY,
    OTHER_RESOURCE,
    STATE,
    WRITTEN_INVERSE,
    ParsedResource,
    ResourceOptions,
    SourceDescription,
    find_namespace,
    make_iri_slug,
    make_slug,
)

_TYPE = expand_predicate("rdf:type")
_FIRST, _REST, _NIL = (expand_predicate(f"rdf:{name}") for name in ("first", "rest", "nil"))
_AXIOM_PARTS = tuple(expand_predicate(f"owl:annotated{part}") for part in ("Source", "Property", "Target"))
_AXIOM_TYPES = tuple(expand_predicate(f"owl:{name}") for name in ("Axiom", "Annotation"))
_RESTRICTION = expand_predicate("owl:Restriction")
_ON_PROPERTY, _SOME_VALUES = expand_predicate("owl:onProperty"), expand_predicate("owl:someValuesFrom")
_ONTOLOGY, _SCHEME = expand_predicate("owl:Ontology"), expand_predicate("skos:ConceptScheme")
_CONCEPT, _CLASS = expand_predicate("skos:Concept"), expand_predicate("owl:Class")
_INDIVIDUAL = expand_predicate("owl:NamedIndividual")
_CONCEPT_PREDICATES = frozenset(expand_predicate(f"skos:{name}") for name in ("inScheme", "topConceptOf"))
# Predicates whose subject is a concept. Of concepts that others describe, a document may have the relations alone.
_CONCEPT_RELATIONS = frozenset(expand_predicate(f"skos:{name}") for name in ("broader", "narrower", "related"))
# Classes that are commonly used without their superclass in SKOS, which other documents define.
_SUPERCLASSES = {
    expand_predicate(f"isothes:{name}"): expand_predicate("skos:Collection")
    for name in ("ConceptGroup", "ThesaurusArray")
}
_DEPRECATED = expand_predicate("owl:deprecated")
_REPLACED_BY = {"skos": expand_predicate("dcterms:isReplacedBy"), "obo": expand_predicate("IAO:0100001")}
_LIST_TYPE = expand_predicate("rdf:List")
_SUBCLASS = expand_predicate("rdfs:subClassOf")
_EXPORTED_VOCABULARY = expand_predicate(EXPORTED_VOCABULARY)
_MERGED = expand_predicate(STATE), RdfLiteral(RecordState.MERGED)
# Classes of annotation properties that are records, by the property that they are a kind of.
_ANNOTATION_PROPERTY, _SUBPROPERTY = expand_predicate("owl:AnnotationProperty"), expand_predicate("rdfs:subPropertyOf")
_DEFINITIONS = {expand_predicate(uri): uri for uri in DEFINITION_CLASSES}
_LABELS = (expand_predicate("skos:prefLabel"), expand_predicate("rdfs:label"))
_MEMBER_OF = expand_predicate("uneskos:memberOf")
_PREFERRED_PREFIX = "http://purl.org/vocab/vann/preferredNamespacePrefix"
# Properties of a nested resource: thousands of records may share one, and each repeats all of them. A larger one
# belongs to the head record.
_MAX_NODE_PROPERTIES = 100

# Records whose languages are looked at.
_MAX_SAMPLE = 1_000
# Class of a resource that adds to a record, whatever its class.
_ANY_CLASS = "rdfs:Resource"

RdfNode = str | RdfLiteral


def open_document(stream: BufferedReader, options: ResourceOptions) -> "RdfDocument":
    """Read an RDF document; raise ParseError."""
    syntax = detect_syntax(stream.peek())
    graph = TripleStore()
    try:
        with open_seekable(stream) if syntax == RdfFormat.JSON_LD else nullcontext(stream) as file:
            if syntax == RdfFormat.JSON_LD:
                syntax = RdfFormat.STREAMING_JSON_LD if _is_streamable_jsonld(file) else RdfFormat.JSON_LD
                file.seek(0)
            warnings = WarningCounter()
            return RdfDocument(graph, parse_triples(file, syntax, warnings), warnings)
    except BaseException:
        graph.close()
        raise


def _is_streamable_jsonld(file: IO[bytes]) -> bool:
    """Return whether a JSON-LD document can be parsed without keeping all of it in memory."""
    try:
        deque(parse_triples(file, RdfFormat.STREAMING_JSON_LD), maxlen=0)
    except ParseError:
        return False
    return True


class RdfDocument:
    """Triples of a document, and the resources that they make up."""

    covers = None

    def __init__(self, graph: TripleStore, triples: Iterable[ParsedTriple], warnings: WarningCounter) -> None:
        self.warnings = warnings
        self._graph = graph
        self.close = graph.close
        self._types: dict[str, list[str]] = {}
        # Blank nodes of annotation axioms, by the statement that they annotate.
        self._axioms: dict[tuple[str, str, RdfNode], list[str]] = {}
        self._vocabulary = Vocabulary()
        # Resources that records have taken in.
        self._nested: set[str] = set()
        # Resources that the current record has taken in, each once.
        self._expanded: set[str] = set()
        # First subject and predicate of each blank node that is an object.
        self._referrers: dict[str, tuple[str, str]] = {}
        # Blank nodes that several statements refer to, so that they need a label.
        self._labelled: set[str] = set()
        # Slugs of the vocabularies that the document was exported from, by the start of their IRIs.
        self._exported: dict[str, str] = {}
        self._exporters: list[Vocabulary] = []
        graph.add(self._observe(triples))
        self._collect_axioms()
        counts = Counter(name for names in self._types.values() for name in names)
        class_count = counts[_CLASS] + (counts[_INDIVIDUAL] if self._exported else 0)
        self._schema: Schema = load_builtin_schema("obo" if class_count > counts[_CONCEPT] else "skos")
        self._inverses = {
            expand_predicate(name): expand_predicate(inverse) for name, inverse in self._schema.inverses.items()
        }
        self._used_inverses = sorted(self._inverses.keys() & graph.predicate_numbers.keys())
        self._written_inverses = sorted({*self._inverses, _MEMBER_OF} & graph.predicate_numbers.keys())
        exporters = [VOCABULARIES[slug] for slug in self._exported.values() if slug in VOCABULARIES]
        self._use_schema(exporters[0].schema if exporters else self._schema)

    def _use_schema(self, schema: Schema) -> None:
        """Find the resources that are records in a vocabulary with this schema."""
        self._used_schema = schema
        schemas = [schema, self._schema, *([load_builtin_schema("obo")] if self._exported else [])]
        self._class_uris = {
            expand_predicate(item.uri): item.uri for entry in schemas for item in entry.collections.values()
        }
        # Concept schemes that an export makes of collections, with the class of their records.
        self._schemes = {
            base + name: expand_predicate(item.uri)
            for base in self._exported
            for name, item in schema.collections.items()
        }
        self._is_addition = False
        self._inferred: dict[str, str] = {}
        # A file without any class adds statements to records that are there.
        self._is_addition = not self._exported and not any(self._find_class(name) for name in self._graph)
        if not self._is_addition:
            self._inferred = dict(self._infer_classes())
        self._inverse_properties = self._collect_inverses()

    def _observe(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedTriple]:
        for triple in triples:
            _, subject, predicate, value = triple
            if predicate == _TYPE and isinstance(value, str):
                self._types.setdefault(subject, []).append(value)
            elif predicate in _CONCEPT_PREDICATES:
                # A member of a scheme is a concept, whether or not it says so.
                self._types.setdefault(subject, [])
            elif predicate == _EXPORTED_VOCABULARY and isinstance(value, RdfLiteral):
                self._exported[subject] = value.text
            if isinstance(value, str) and value.startswith("_:") and predicate not in _AXIOM_PARTS:
                reference = subject, predicate
                if self._referrers.setdefault(value, reference) != reference:
                    self._labelled.add(value)
            yield triple

    def _get_properties(self, name: str) -> list[tuple[str, RdfNode]]:
        """Return the properties of a resource, each once."""
        return list(dict.fromkeys(self._graph.get_subject(name).properties))

    def _collect_axioms(self) -> None:
        for name, types in self._types.items():
            if name.startswith("_:") and name not in self._referrers and any(item in _AXIOM_TYPES for item in types):
                properties = self._get_properties(name)
                parts = [[value for key, value in properties if key == part] for part in _AXIOM_PARTS]
                # One without annotations is no part of any statement.
                if [len(values) for values in parts] == [1, 1, 1] and len(properties) > 4:
                    (source,), (predicate,), (target,) = parts
                    if isinstance(source, str) and isinstance(predicate, str):
                        axioms = self._axioms.setdefault((source, predicate, target), [])
                        axioms.append(name)
                        # Each axiom makes a statement with the same node. What one says of the member of a list is
                        # part of the list.
                        nodes = (source, target) if len(axioms) > 1 else () if predicate == _FIRST else (source,)
                        self._labelled.update(item for item in nodes if isinstance(item, str) and item[:2] == "_:")

    def _collect_inverses(self) -> dict[str, list[tuple[str, RdfNode]]]:
        """Return the statements that others make by an inverse predicate, such as `skos:narrower`, by subject.

        Others are records, and what the document says nothing else of.
        """
        self._neighbours: set[str] = set()
        if not self._used_inverses:
            return {}
        properties: dict[str, list[tuple[str, RdfNode]]] = {}
        for name in self._graph:
            stated = self._graph.get_subject(name).properties if name[:2] != "_:" else []
            inverses = [item for item in stated if item[0] in self._inverses and self._is_record(item[1])]
            if self._find_class(name) or (inverses and len(inverses) == len(stated)):
                if not self._find_class(name):
                    self._neighbours.add(name)
                for predicate, value in inverses:
                    properties.setdefault(str(value), []).append((self._inverses[predicate], name))
        return properties

    def _is_record(self, value: RdfNode) -> bool:
        return isinstance(value, str) and self._find_class(value) is not None

    def _infer_classes(self) -> Iterator[tuple[str, str]]:
        """Yield resources that are records by what else is said about them, with their class."""
        for name in self._graph:
            if not name.startswith("_:") and not self._find_class(name):
                class_uri = self._infer_concept(name) if _CONCEPT in self._class_uris else self._infer_definition(name)
                if class_uri:
                    yield name, class_uri

    def _infer_definition(self, name: str) -> str | None:
        """Return the class of a subset or synonym type, which OWL has as a kind of annotation property, or None."""
        if _ANNOTATION_PROPERTY not in self._types.get(name, ()):
            return None
        properties = self._graph.get_subject(name).properties
        kinds = [_DEFINITIONS[value] for key, value in properties if key == _SUBPROPERTY and value in _DEFINITIONS]
        return next(iter(kinds), None)

    def _infer_concept(self, name: str) -> str | None:
        """Return the class of a resource by a superclass of its class, or by its relations, or None."""
        for class_iri in self._types.get(name, ()):
            known = self._find_known_superclass(class_iri)
            if known:
                return known
        predicates = {predicate for predicate, _ in self._graph.get_subject(name).properties}
        is_described = predicates & _CONCEPT_RELATIONS and predicates.intersection(_LABELS)
        return self._class_uris[_CONCEPT] if is_described or predicates & _CONCEPT_PREDICATES else None

    def _find_known_superclass(self, class_iri: str) -> str | None:
        """Return the class of a schema that a class is said to be a kind of, or None."""
        pending, seen = [class_iri], {class_iri}
        while pending:
            name = pending.pop()
            if name in self._class_uris:
                return self._class_uris[name]
            superclasses = [value for key, value in self._graph.get_subject(name).properties if key == _SUBCLASS]
            superclasses += filter(None, [_SUPERCLASSES.get(name)])
            new = {item for item in superclasses if isinstance(item, str)} - seen
            pending += sorted(new)
            seen |= new
        return None

    def _find_class(self, name: str) -> str | None:
        """Return the class of a resource as schemas name it, or None if it is no record."""
        types = self._types.get(name)
        if name.startswith("_:"):
            return None
        if name in self._inferred:
            return self._inferred[name]
        if types is None:
            return _ANY_CLASS if self._is_addition and name in self._graph else None
        found = next((self._class_uris[item] for item in types if item in self._class_uris), None)
        if found is None and not types:
            return self._class_uris.get(_CONCEPT)
        return found

    def describe(self) -> SourceDescription:
        """Return what the document says about its vocabulary."""
        records = [name for name in self._graph if self._find_class(name)]
        main = [name for name in records if self._types.get(name, [""])[:1] in ([_CONCEPT], [_CLASS])]
        namespace = find_namespace(main or records)
        head = self._find_head()
        properties = self._get_properties(head)
        prefixes = [value for name, value in properties if name == _PREFERRED_PREFIX]
        prefix = next((value.text for value in prefixes if isinstance(value, RdfLiteral)), "")
        slug = next(iter(self._exported.values()), "") or make_slug(prefix) or make_iri_slug(head)
        statements = self._build_head(head)
        statements += [Statement(WRITTEN_INVERSE, Text(contract_predicate(name))) for name in self._written_inverses]
        # Names without a language are in the default one.
        languages = Counter(
            format_tag(value.language) if value.language else ""
            for name in main[:_MAX_SAMPLE]
            for predicate, value in self._graph.get_subject(name).properties
            if isinstance(value, RdfLiteral) and (value.language or predicate in _LABELS)
        )
        ordered = sorted(languages, key=lambda tag: (-languages[tag], tag))
        schema, kind = ("", "addition") if self._is_addition else (self._schema.name, "")
        return SourceDescription(head, slug, schema, namespace, tuple(statements), tuple(ordered), kind)

    def _find_head(self) -> str:
        """Return the IRI of the ontology, or else of the concept scheme, if there is one. An export has its slug."""
        if self._exported:
            return ""
        for head_type in (_ONTOLOGY, _SCHEME):
            heads = [name for name, types in self._types.items() if head_type in types and not name.startswith("_:")]
            if heads:
                return heads[0] if len(heads) == 1 else ""
        return ""

    def _find_empty_ontologies(self) -> Iterator[str]:
        """Yield ontologies without a name and without properties, as an export has one if the vocabulary has no IRI."""
        for name, types in self._types.items():
            if types == [_ONTOLOGY] and name.startswith("_:") and len(self._get_properties(name)) == 1:
                yield name

    def _build_head(self, head: str) -> list[Statement]:
        properties = self._get_properties(head)
        if self._find_class(head):
            # A scheme is a record too, with its top concepts and notes: the head record has what describes the whole.
            properties = [item for item in properties if not isinstance(item[1], str) or not self._find_class(item[1])]
        self._expanded = {head}
        return self._build_statements(head, properties, 1)

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield the records of the document. What is neither a record nor part of one belongs to the head record."""
        self._vocabulary = vocabulary
        # Their IRIs begin in the same way with a base and without one, but name the vocabulary without one.
        self._exporters = [
            replace(vocabulary, slug=slug, base=DEFAULT_BASE, address=base) for base, slug in self._exported.items()
        ]
        if vocabulary.schema is not self._used_schema:
            self._use_schema(vocabulary.schema)
        self._nested = {self._find_head(), *self._find_empty_ontologies(), *self._exported, *self._neighbours}
        self._build_head(self._find_head())
        for name in self._graph:
            class_uri = self._find_class(name)
            if class_uri is not None and name not in self._schemes:
                yield self._build_resource(name, class_uri)
        others = self._build_others()
        if others:
            yield ParsedResource(0, "", "", others)

    def _build_resource(self, name: str, class_uri: str) -> ParsedResource:
        subject = self._graph.get_subject(name)
        is_derived = self._parse_exported_id(name) is not None
        added = self._find_view(subject.properties)
        if (_TYPE, _CONCEPT) in added:
            types = [item for item in self._types[name] if item != _CONCEPT and item in self._class_uris]
            class_uri = self._class_uris[types[0]] if types else class_uri
        resource = ParsedResource(subject.line, self._contract(name), class_uri, iri=None if is_derived else name)
        resource.is_update = class_uri == _ANY_CLASS
        properties = []
        class_properties = self._list_class_properties(name, class_uri)
        is_deprecated = False
        for predicate, value in (*dict.fromkeys(subject.properties), *self._inverse_properties.get(name, ())):
            if (predicate, value) in added or (predicate, value) in class_properties:
                continue
            if predicate in self._inverses and isinstance(value, str) and self._find_class(value):
                continue
            if predicate == _DEPRECATED and isinstance(value, RdfLiteral) and value.text in ("true", "1"):
                is_deprecated = True
                if (name, predicate, value) not in self._axioms:
                    continue
            if (
                predicate in _REPLACED_BY.values()
                and isinstance(value, str)
                and not value.startswith("_:")
                and resource.replaced_by is None
            ):
                resource.replaced_by = self._contract(value)
                if predicate == _REPLACED_BY[self._schema.name] and (name, predicate, value) not in self._axioms:
                    continue
            properties.append((predicate, value))
        if is_deprecated or resource.replaced_by:
            resource.state = RecordState.MERGED if _MERGED in added else RecordState.RETIRED
        self._expanded = {name}
        is_term = expand_predicate(class_uri) == _CLASS
        statements = self._build_statements(name, properties, 1, is_term=is_term)
        resource.statements = split_definitions(statements) if is_term else statements
        return resource

    def _list_class_properties(self, name: str, class_uri: str) -> list[tuple[str, RdfNode]]:
        """Return the properties by which a record is of its class."""
        class_iri = expand_predicate(class_uri)
        if name in self._inferred and class_uri in DEFINITION_CLASSES:
            return [(_TYPE, class_iri), (_TYPE, _ANNOTATION_PROPERTY), (_SUBPROPERTY, class_iri)]
        return [(_TYPE, class_iri)]

    def _find_view(self, properties: list[tuple[str, RdfNode]]) -> list[tuple[str, RdfNode]]:
        """Return the properties of a record that are no statements: its state, and what only SKOS programs need."""
        added = [item for item in properties if item[0] in _CONCEPT_PREDICATES and item[1] in self._schemes]
        if added and all(self._schemes[str(scheme)] != _CONCEPT for _, scheme in added):
            added.append((_TYPE, _CONCEPT))
        return added + [item for item in properties if item == _MERGED]

    def _build_statements(
        self, subject: str, properties: Iterable[tuple[str, RdfNode]], depth: int, *, is_term: bool = False
    ) -> list[Statement]:
        statements = []
        for predicate, value in properties:
            relation, target = (self._convert_restriction(predicate, value) if is_term else None) or ("", value)
            name = contract_predicate(relation or predicate)
            name = self._mark_iri(name) if name == (relation or predicate) else name
            converted = self._convert(target, depth)
            if is_term and not relation and isinstance(target, str) and is_relation(name):
                # An annotation, though its predicate might be a relation.
                converted = Node((), converted.target) if isinstance(converted, Reference) else converted
            axioms = self._axioms.get((subject, predicate, value), ())
            # Each axiom makes a statement, so that its annotations stay together.
            qualifiers = [self._build_qualifiers(axiom, depth) for axiom in axioms] if depth < MAX_DEPTH else []
            statements += [Statement(name, converted, tuple(items)) for items in qualifiers or [[]]]
        return statements

    def _build_cell_qualifiers(self, cell: str, value: RdfNode, depth: int) -> tuple[Statement, ...]:
        """Return what an axiom says about the member of a list."""
        axioms = self._axioms.get((cell, _FIRST, value), ()) if depth + 1 < MAX_DEPTH else ()
        return tuple(item for axiom in axioms for item in self._build_qualifiers(axiom, depth + 1))

    def _build_qualifiers(self, axiom: str, depth: int) -> list[Statement]:
        self._nested.add(axiom)
        if axiom in self._expanded:
            return []
        self._expanded.add(axiom)
        own = [
            (predicate, value)
            for predicate, value in self._get_properties(axiom)
            if predicate not in _AXIOM_PARTS and not (predicate == _TYPE and value in _AXIOM_TYPES)
        ]
        return self._build_statements(axiom, own, depth + 1)

    def _convert_restriction(self, predicate: str, value: RdfNode) -> tuple[str, RdfNode] | None:
        """Return a restriction that some record is related to this one as that relation."""
        if predicate != _SUBCLASS or not isinstance(value, str) or not value.startswith("_:"):
            return None
        parts = self._get_properties(value)
        by_predicate = dict(parts)
        relation, target = by_predicate.get(_ON_PROPERTY), by_predicate.get(_SOME_VALUES)
        is_simple = len(parts) == 3 and by_predicate.get(_TYPE) == _RESTRICTION
        if not is_simple or not isinstance(relation, str) or not isinstance(target, str) or value in self._labelled:
            return None
        if self._is_nested(target) or relation.startswith("_:") or not is_relation(contract_predicate(relation)):
            return None
        self._nested.add(value)
        return relation, target

    def _contract(self, iri: str) -> str:
        """Return the CURIE of an IRI in the vocabulary, else the IRI."""
        own_id = self._parse_exported_id(iri)
        if own_id is not None:
            return own_id
        # In OBO, an id without a prefix is the end of such an IRI.
        ends = [iri.rpartition("#")[2]] if self._inferred.get(iri) in DEFINITION_CLASSES else []
        for name in (self._vocabulary.contract_iri(iri), contract_predicate(iri), *ends):
            if name != iri and self._vocabulary.expand_id(name) == iri:
                return name
        return self._mark_iri(iri)

    def _parse_exported_id(self, iri: str) -> str | None:
        """Return the id of a record without an IRI of its own that an export has made one of; None if it is none."""
        own_id = self._vocabulary.parse_record_iri(iri)
        if own_id is not None and self._vocabulary.expand_id(own_id) == self._vocabulary.record_iri(own_id):
            return own_id
        ids = (exporter.parse_record_iri(iri) for exporter in self._exporters)
        return next((item for item in ids if item is not None), None)

    def _mark_iri(self, iri: str) -> str:
        """Return an IRI, in angle brackets if it would be taken for a CURIE."""
        return iri if self._vocabulary.expand_id(iri) == iri else f"<{iri}>"

    def _refer(self, name: str) -> Reference | Node:
        """Return a value that refers to a resource."""
        if name.startswith("_:"):
            self._labelled.add(name)
            return Node((), self._get_label(name))
        return Reference(self._contract(name))

    def _get_label(self, name: str) -> str:
        if not name.startswith("_:"):
            return self._mark_iri(name)
        label = name.removeprefix("_:")
        # Each export creates new labels.
        return f"_:x{label}" if label.startswith(BLANK_LABEL) else name

    def _is_nested(self, name: str) -> bool:
        """Return whether a resource is a part of those that refer to it."""
        is_part = name.startswith("_:") or (
            name in self._graph and not self._find_class(name) and name not in self._neighbours
        )
        return is_part and _ONTOLOGY not in self._types.get(name, ())

    def _convert(self, value: RdfNode, depth: int) -> Value:
        if isinstance(value, RdfLiteral):
            datatype = contract_predicate(value.datatype) if value.datatype else ""
            tag = format_tag(value.language) if value.language else ""
            if tag and not TAG_FORM.fullmatch(tag):
                self.warnings.add("a language tag is not valid and was skipped", tag, is_loss=True)
                tag = ""
            return Text(value.text, tag, datatype)
        if value == _NIL:
            return Node((LIST_TYPE,))
        return self._convert_node(value, depth) if self._is_nested(value) else self._refer(value)

    def _convert_node(self, name: str, depth: int) -> Value:
        """Return a node with its statements; without them, if the record has it elsewhere or it is too large or deep.

        What is too large or deep belongs to the head record.
        """
        properties = self._get_properties(name)
        is_large = len(properties) > _MAX_NODE_PROPERTIES and depth > 1
        if name in self._expanded or depth >= MAX_DEPTH or is_large:
            return self._refer(name)
        cells = self._find_cells(name)
        if cells:
            self._nested.update(cells)
            members = (
                Statement(
                    f"rdf:_{place}", self._convert(value, depth + 1), self._build_cell_qualifiers(cell, value, depth)
                )
                for place, (cell, value) in enumerate(cells.items(), 1)
            )
            return Node((LIST_TYPE, *members))
        self._nested.add(name)
        self._expanded.add(name)
        statements = self._build_statements(name, properties, depth + 1)
        if LIST_TYPE in statements and name.startswith("_:"):
            self._labelled.add(name)
        has_label = not name.startswith("_:") or name in self._labelled
        return Node(tuple(statements), self._get_label(name) if has_label else "")

    def _find_cells(self, name: str) -> dict[str, RdfNode]:
        """Return the cells of a list with their members; none if there is anything else to any of them."""
        cells: dict[str, RdfNode] = {}
        while name != _NIL:
            properties = self._get_properties(name)
            parts = dict(properties)
            rest = parts.get(_REST)
            is_plain = len(properties) == len(parts) and parts.keys() <= {_TYPE, _FIRST, _REST}
            is_plain = is_plain and parts.get(_TYPE, _LIST_TYPE) == _LIST_TYPE and name not in self._labelled
            if not is_plain or not name.startswith("_:") or name in cells or _FIRST not in parts:
                return {}
            if not isinstance(rest, str):
                return {}
            cells[name] = parts[_FIRST]
            name = rest
        return cells

    def _build_others(self) -> list[Statement]:
        others = []
        pending = [name for name in self._graph if name not in self._nested and not self._find_class(name)]
        # What nothing refers to comes first, since it may contain the others, and axioms before their annotations.
        pending.sort(key=lambda name: (name in self._referrers, _AXIOM_TYPES[1] in self._types.get(name, ())))
        for name in pending:
            if name not in self._nested:
                self._expanded = set()
                others.append(Statement(OTHER_RESOURCE, self._convert_node(name, 1)))
        return others
