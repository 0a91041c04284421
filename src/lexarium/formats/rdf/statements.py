"""Write records as RDF, statement by statement: the reverse of `resources`."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from tempfile import SpooledTemporaryFile

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, serialize

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.predicates import NAMESPACES, expand_predicate
from lexarium.domain.statement import Node, Reference, Statement, Text, Value
from lexarium.domain.vocabulary import Vocabulary

_TYPE, _FIRST, _REST, _NIL = (NamedNode(expand_predicate(f"rdf:{name}")) for name in ("type", "first", "rest", "nil"))
_LIST = Statement("rdf:type", Reference("rdf:List"))
_AXIOM = NamedNode(expand_predicate("owl:Axiom"))
_AXIOM_PARTS = [NamedNode(expand_predicate(f"owl:annotated{part}")) for part in ("Source", "Property", "Target")]
_DEPRECATED = NamedNode(expand_predicate("owl:deprecated"))
_TRUE = Literal("true", datatype=NamedNode(expand_predicate("xsd:boolean")))
_REPLACED_BY = {
    "skos": NamedNode(expand_predicate("dcterms:isReplacedBy")),
    "obo": NamedNode(expand_predicate("IAO:0100001")),
}
_RESTRICTION, _SUBCLASS = NamedNode(expand_predicate("owl:Restriction")), NamedNode(expand_predicate("rdfs:subClassOf"))
_ON_PROPERTY, _SOME_VALUES = (NamedNode(expand_predicate(f"owl:{name}")) for name in ("onProperty", "someValuesFrom"))
_SYNTAXES = {
    "skos": RdfFormat.TURTLE,
    "rdfxml": RdfFormat.RDF_XML,
    "ntriples": RdfFormat.N_TRIPLES,
    "jsonld": RdfFormat.JSON_LD,
    "owl": RdfFormat.RDF_XML,
}

# A smaller document is kept in memory.
_MAX_MEMORY_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 16

Subject = NamedNode | BlankNode
Term = NamedNode | BlankNode | Literal


def write_statements(records: Iterable[Record], format_name: str, vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yield a document of the records of one vocabulary, in chunks."""
    writer = _StatementWriter(vocabulary)
    triples = (triple for record in records for triple in writer.iter_record(record))
    prefixes = {**NAMESPACES, **vocabulary.prefixes}
    with SpooledTemporaryFile(_MAX_MEMORY_BYTES) as file:
        serialize(triples, file, format=_SYNTAXES[format_name], prefixes=prefixes)
        file.seek(0)
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


class _StatementWriter:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._numbers = count(1)

    def iter_record(self, record: Record) -> Iterator[Triple]:
        """Yield the triples of a record."""
        subject = NamedNode(record.iri or self._expand(record.local_id))
        yield Triple(subject, _TYPE, NamedNode(expand_predicate(record.collection.schema_class.uri)))
        if record.state != RecordState.PUBLISHED:
            yield Triple(subject, _DEPRECATED, _TRUE)
        if record.replaced_by is not None:
            predicate = _REPLACED_BY.get(record.collection.schema.name, _REPLACED_BY["skos"])
            yield Triple(subject, predicate, NamedNode(self._expand(get_local_id(record.replaced_by))))
        slots: Mapping[str, object] = record.collection.schema_class.slots_by_predicate
        is_ontology = record.collection.schema.name == "obo"
        for statement in record.statements:
            # In OWL, what relates classes is a restriction of their instances.
            is_restriction = is_ontology and statement.predicate not in slots and self._is_relation(statement)
            yield from self._iter_statement(subject, statement, is_restriction=is_restriction)

    @staticmethod
    def _is_relation(statement: Statement) -> bool:
        return isinstance(statement.value, Reference) and statement.predicate.partition(":")[0] not in (
            *("rdf", "rdfs", "owl", "skos", "dcterms", "dc", "oboInOwl", "schema", "foaf", "prov"),
        )

    def _iter_statement(
        self, subject: Subject, statement: Statement, *, is_restriction: bool = False
    ) -> Iterator[Triple]:
        predicate = NamedNode(self._expand_predicate(statement.predicate))
        value, nested = self._convert(statement.value)
        if is_restriction:
            node = self._make_node()
            nested = [
                Triple(node, _TYPE, _RESTRICTION),
                Triple(node, _ON_PROPERTY, predicate),
                Triple(node, _SOME_VALUES, value),
            ]
            predicate, value = _SUBCLASS, node
        yield Triple(subject, predicate, value)
        yield from nested
        if statement.qualifiers:
            axiom = self._make_node()
            yield Triple(axiom, _TYPE, _AXIOM)
            for part, end in zip(_AXIOM_PARTS, (subject, predicate, value), strict=True):
                yield Triple(axiom, part, end)
            for qualifier in statement.qualifiers:
                yield from self._iter_statement(axiom, qualifier)

    def _convert(self, value: Value) -> tuple[Term, Iterable[Triple]]:
        if isinstance(value, Text):
            if value.lang:
                return Literal(value.text, language=value.lang), ()
            datatype = NamedNode(expand_predicate(value.datatype)) if value.datatype else None
            return Literal(value.text, datatype=datatype), ()
        if isinstance(value, Reference):
            return NamedNode(self._expand(value.target)), ()
        if _LIST in value.statements:
            return self._convert_list(value)
        node: Subject = NamedNode(value.iri) if value.iri else self._make_node()
        return node, [triple for item in value.statements for triple in self._iter_statement(node, item)]

    def _convert_list(self, value: Node) -> tuple[Term, Iterable[Triple]]:
        members = [item for item in value.statements if item.predicate.startswith("rdf:_")]
        members.sort(key=lambda item: int(item.predicate.removeprefix("rdf:_")))
        triples: list[Triple] = []
        head: Subject = _NIL
        for member in reversed(members):
            cell = self._make_node()
            converted, nested = self._convert(member.value)
            triples += [Triple(cell, _FIRST, converted), Triple(cell, _REST, head), *nested]
            head = cell
        return head, triples

    def _make_node(self) -> BlankNode:
        return BlankNode(f"b{next(self._numbers)}")

    def _expand_predicate(self, predicate: str) -> str:
        expanded = expand_predicate(predicate)
        return self._expand(predicate) if expanded == predicate else expanded

    def _expand(self, name: str) -> str:
        """Return the IRI of an id, a CURIE or an IRI."""
        prefix, colon, local = name.partition(":")
        namespace = self._vocabulary.prefixes.get(prefix) or NAMESPACES.get(prefix)
        if colon and namespace:
            return namespace + local
        if colon and (local.startswith("//") or "/" in prefix or prefix in ("urn", "http", "https", "mailto", "tag")):
            return name
        return f"{OBO_BASE}{prefix}_{local}" if colon and local else self._vocabulary.record_iri(name)
