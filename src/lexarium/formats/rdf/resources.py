"""Read the resources of an RDF document as statements."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from io import BufferedReader

from pyoxigraph import RdfFormat

from lexarium.domain.record import RecordState
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.model import Schema
from lexarium.domain.schema.predicates import contract_predicate, expand_predicate
from lexarium.domain.statement import MAX_DEPTH, Node, Reference, Statement, Text, Value
from lexarium.domain.text.languages import format_tag
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.rdf.graph import TripleStore
from lexarium.formats.rdf.importer import is_streamable_jsonld
from lexarium.formats.rdf.parser import ParsedTriple, RdfLiteral, detect_syntax, parse_triples
from lexarium.formats.reading import open_seekable
from lexarium.formats.resources import ParsedResource, SourceDescription, contract_iri, find_namespace, make_slug

_TYPE = expand_predicate("rdf:type")
_FIRST, _REST, _NIL = (expand_predicate(f"rdf:{name}") for name in ("first", "rest", "nil"))
_LIST = Statement("rdf:type", Reference("rdf:List"))
_AXIOM_PARTS = tuple(expand_predicate(f"owl:annotated{part}") for part in ("Source", "Property", "Target"))
_AXIOM, _RESTRICTION = expand_predicate("owl:Axiom"), expand_predicate("owl:Restriction")
_ON_PROPERTY, _SOME_VALUES = expand_predicate("owl:onProperty"), expand_predicate("owl:someValuesFrom")
_ONTOLOGY, _SCHEME = expand_predicate("owl:Ontology"), expand_predicate("skos:ConceptScheme")
_CONCEPT, _CLASS = expand_predicate("skos:Concept"), expand_predicate("owl:Class")
_CONCEPT_PREDICATES = frozenset(expand_predicate(f"skos:{name}") for name in ("inScheme", "topConceptOf"))
_DEPRECATED = expand_predicate("owl:deprecated")
_REPLACED_BY = (expand_predicate("dcterms:isReplacedBy"), expand_predicate("IAO:0100001"))
_SUBCLASS = expand_predicate("rdfs:subClassOf")
_PREFERRED_PREFIX = "http://purl.org/vocab/vann/preferredNamespacePrefix"
_TITLES = tuple(expand_predicate(name) for name in ("dcterms:title", "dc:title", "rdfs:label", "skos:prefLabel"))
# Where resources of the file that are neither records nor parts of one are kept.
_OTHER_RESOURCE = "lexarium:resource"
# Properties of a nested resource: thousands of records may share one, and each repeats all of them.
_MAX_NODE_PROPERTIES = 100

RdfNode = str | RdfLiteral


def open_document(stream: BufferedReader) -> "RdfDocument":
    """Read an RDF document; raise ParseError."""
    syntax = detect_syntax(stream.peek())
    graph = TripleStore()
    try:
        with open_seekable(stream) if syntax == RdfFormat.JSON_LD else nullcontext(stream) as file:
            if syntax == RdfFormat.JSON_LD:
                syntax = RdfFormat.STREAMING_JSON_LD if is_streamable_jsonld(file) else RdfFormat.JSON_LD
                file.seek(0)
            return RdfDocument(graph, parse_triples(file, syntax, lists=True))
    except BaseException:
        graph.close()
        raise


class RdfDocument:
    """Triples of a document, and the resources that they make up."""

    def __init__(self, graph: TripleStore, triples: Iterable[ParsedTriple]) -> None:
        self.warnings = WarningCounter()
        self._graph = graph
        self.close = graph.close
        self._types: dict[str, list[str]] = {}
        # Blank nodes of annotation axioms, by the statement that they annotate.
        self._axioms: dict[tuple[str, str, RdfNode], list[str]] = {}
        self._prefixes: Mapping[str, str] = {}
        # Resources that records have taken in.
        self._nested: set[str] = set()
        graph.add(self._observe(triples))
        self._collect_axioms()
        counts = Counter(name for names in self._types.values() for name in names)
        self._schema: Schema = load_builtin_schema("obo" if counts[_CLASS] > counts[_CONCEPT] else "skos")
        self._class_uris = {expand_predicate(item.uri): item.uri for item in self._schema.collections.values()}
        self._inverses = {
            expand_predicate(name): expand_predicate(inverse) for name, inverse in self._schema.inverses.items()
        }
        if not any(self._find_class(name) for name in graph):
            raise ParseError("it holds no concept, class or other resource that can be a record", 1, 1)
        self._inverse_properties = self._collect_inverses()

    def _observe(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedTriple]:
        for triple in triples:
            _, subject, predicate, value = triple
            if predicate == _TYPE and isinstance(value, str):
                self._types.setdefault(subject, []).append(value)
            elif predicate in _CONCEPT_PREDICATES:
                # A member of a scheme is a concept, whether or not it says so.
                self._types.setdefault(subject, [])
            yield triple

    def _collect_axioms(self) -> None:
        for name, types in self._types.items():
            if _AXIOM in types:
                parts = dict(self._graph.get_subject(name).properties)
                source, predicate, target = (parts.get(part) for part in _AXIOM_PARTS)
                if isinstance(source, str) and isinstance(predicate, str) and target is not None:
                    self._axioms.setdefault((source, predicate, target), []).append(name)

    def _collect_inverses(self) -> dict[str, list[tuple[str, RdfNode]]]:
        """Return the statements that others make by an inverse predicate, such as `skos:narrower`, by subject."""
        if not self._inverses.keys() & self._graph.predicate_numbers.keys():
            return {}
        properties: dict[str, list[tuple[str, RdfNode]]] = {}
        for name in self._graph:
            if self._find_class(name):
                for predicate, value in self._graph.get_subject(name).properties:
                    if predicate in self._inverses and isinstance(value, str) and self._find_class(value):
                        properties.setdefault(value, []).append((self._inverses[predicate], name))
        return properties

    def _find_class(self, name: str) -> str | None:
        """Return the class of a resource as schemas name it, or None if it is no record."""
        types = self._types.get(name)
        if types is None or name.startswith("_:"):
            return None
        found = next((self._class_uris[item] for item in types if item in self._class_uris), None)
        if found is None and not types:
            return self._class_uris.get(_CONCEPT)
        return found

    def describe(self) -> SourceDescription:
        """Return what the document says about its vocabulary."""
        records = [name for name in self._graph if self._find_class(name)]
        main = [name for name in records if self._types[name] and self._types[name][0] in (_CONCEPT, _CLASS)]
        namespace = find_namespace(main or records)
        heads = [name for name, types in self._types.items() if _ONTOLOGY in types]
        heads = heads or [name for name, types in self._types.items() if _SCHEME in types]
        head = heads[0] if len(heads) == 1 else ""
        properties = self._graph.get_subject(head).properties if head else []
        prefix = next((value[0] for name, value in properties if name == _PREFERRED_PREFIX), "")
        slug = make_slug(prefix) or make_slug(head.rstrip("/#").rpartition("/")[2].rpartition("#")[2].partition(".")[0])
        titles = [value for name, value in properties if name in _TITLES and isinstance(value, RdfLiteral)]
        statements = [Statement("dcterms:title", Text(item.text, format_tag(item.language))) for item in titles]
        statements += self._build_statements(head, properties, 1) if head else []
        languages = Counter(
            format_tag(value.language)
            for name in main[:1_000]
            for _, value in self._graph.get_subject(name).properties
            if isinstance(value, RdfLiteral) and value.language
        )
        ordered = sorted(languages, key=lambda tag: (-languages[tag], tag))
        return SourceDescription(head, slug, self._schema.name, namespace, tuple(statements), tuple(ordered))

    def iter_resources(self, prefixes: Mapping[str, str]) -> Iterator[ParsedResource]:
        """Yield the records of the document. What is neither a record nor part of one belongs to the head record."""
        self._prefixes = prefixes
        self._nested.clear()
        for name in self._graph:
            class_uri = self._find_class(name)
            if class_uri is not None:
                yield self._build_resource(name, class_uri)
        others = self._build_others()
        if others:
            yield ParsedResource(0, "", "", others)

    def _build_resource(self, name: str, class_uri: str) -> ParsedResource:
        subject = self._graph.get_subject(name)
        resource = ParsedResource(subject.line, contract_iri(name, self._prefixes), class_uri, iri=name)
        properties = []
        is_deprecated = False
        for predicate, value in (*subject.properties, *self._inverse_properties.get(name, ())):
            if predicate == _TYPE and value == expand_predicate(class_uri):
                continue
            if predicate in self._inverses and isinstance(value, str) and self._find_class(value):
                continue
            if predicate == _DEPRECATED and isinstance(value, RdfLiteral) and value.text in ("true", "1"):
                is_deprecated = True
            elif predicate in _REPLACED_BY and isinstance(value, str) and resource.replaced_by is None:
                resource.replaced_by = contract_iri(value, self._prefixes)
            else:
                properties.append((predicate, value))
        if is_deprecated or resource.replaced_by:
            resource.state = RecordState.RETIRED
        resource.statements = self._build_statements(name, properties, 1)
        return resource

    def _build_statements(self, subject: str, properties: Iterable[tuple[str, RdfNode]], depth: int) -> list[Statement]:
        statements = []
        for predicate, value in properties:
            built, target = self._convert_restriction(predicate, value) or (predicate, value)
            qualifiers = [
                statement
                for axiom in self._axioms.get((subject, predicate, value), ())
                for statement in self._build_qualifiers(axiom, depth)
            ]
            converted = self._convert(target, depth)
            if converted is not None:
                statements.append(Statement(contract_predicate(built), converted, tuple(qualifiers)))
        return statements

    def _build_qualifiers(self, axiom: str, depth: int) -> list[Statement]:
        self._nested.add(axiom)
        properties = self._graph.get_subject(axiom).properties
        own = [item for item in properties if item[0] not in _AXIOM_PARTS and item != (_TYPE, _AXIOM)]
        return self._build_statements(axiom, own, depth + 1)

    def _convert_restriction(self, predicate: str, value: RdfNode) -> tuple[str, RdfNode] | None:
        """Return a restriction that some record is related to this one as that relation."""
        if predicate != _SUBCLASS or not isinstance(value, str) or not value.startswith("_:"):
            return None
        parts = self._graph.get_subject(value).properties
        by_predicate = dict(parts)
        relation, target = by_predicate.get(_ON_PROPERTY), by_predicate.get(_SOME_VALUES)
        is_simple = len(parts) == 3 and by_predicate.get(_TYPE) == _RESTRICTION
        if not is_simple or not isinstance(relation, str) or not isinstance(target, str) or target.startswith("_:"):
            return None
        self._nested.add(value)
        return relation, target

    def _convert(self, value: RdfNode, depth: int) -> Value | None:
        if isinstance(value, RdfLiteral):
            datatype = contract_predicate(value.datatype) if value.datatype else ""
            return Text(value.text, format_tag(value.language) if value.language else "", datatype)
        if value == _NIL:
            return Node((_LIST,))
        is_known = value.startswith("_:") or (value in self._graph and not self._find_class(value))
        if not is_known or _ONTOLOGY in self._types.get(value, ()):
            return Reference(contract_iri(contract_predicate(value), self._prefixes))
        return self._convert_node(value, depth)

    def _convert_node(self, name: str, depth: int) -> Value | None:
        self._nested.add(name)
        iri = "" if name.startswith("_:") else name
        properties = self._graph.get_subject(name).properties
        if depth >= MAX_DEPTH or len(properties) > _MAX_NODE_PROPERTIES:
            self.warnings.add("a nested resource is too deep or too large and was left out", iri or name)
            return None
        if any(predicate == _FIRST for predicate, _ in properties):
            return Node((_LIST, *self._iter_list(name, depth)))
        return Node(tuple(self._build_statements(name, properties, depth + 1)), iri)

    def _iter_list(self, name: str, depth: int) -> Iterator[Statement]:
        """Yield the members of a list, numbered."""
        seen: set[str] = set()
        while name != _NIL and name not in seen:
            seen.add(name)
            self._nested.add(name)
            cell = dict(self._graph.get_subject(name).properties)
            member = self._convert(cell[_FIRST], depth + 1) if _FIRST in cell else None
            if member is not None:
                yield Statement(f"rdf:_{len(seen)}", member)
            rest = cell.get(_REST, _NIL)
            name = rest if isinstance(rest, str) else _NIL

    def _build_others(self) -> list[Statement]:
        others = []
        for name in self._graph:
            is_head = _ONTOLOGY in self._types.get(name, ())
            if name not in self._nested and not self._find_class(name) and not is_head:
                node = self._convert_node(name, 1)
                if node is not None:
                    others.append(Statement(_OTHER_RESOURCE, node))
        return others
