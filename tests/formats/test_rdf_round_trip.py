"""Round trips of SKOS and OWL: any generated document keeps all its triples."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple, serialize

from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.predicates import expand_predicate
from tests.support.round_trip import SYNTAXES, parse_rdf, rewrite

EXAMPLES = pytest.mark.parametrize(
    "examples", [pytest.param(30, marks=pytest.mark.short), pytest.param(60, marks=pytest.mark.full)]
)
EX = "https://example.org/terms/"
Node = NamedNode | BlankNode


def name(curie: str) -> NamedNode:
    return NamedNode(expand_predicate(curie))


TYPE, FIRST, REST, NIL = (name(f"rdf:{item}") for item in ("type", "first", "rest", "nil"))
RECORDS = [NamedNode(f"{EX}{item}") for item in ("a", "b", "c", "d-1", "e%20f")]
RECORDS += [NamedNode("https://other.example/ü#1"), NamedNode("urn:x:1")]
SCHEMES = [NamedNode(f"{EX}scheme"), NamedNode(f"{EX}scheme2")]
COLLECTIONS = [NamedNode(f"{EX}collection"), NamedNode("http://collections.example/1")]
LABELS = [NamedNode(f"{EX}label/{number}") for number in (1, 2)]
OTHERS = [
    *(NamedNode(iri) for iri in ("info:x/y", "foo:bar", "mailto:a@b.example", "http://purl.obolibrary.org/obo/dc_1")),
    *(NamedNode(iri) for iri in ("http://purl.obolibrary.org/obo/XYZ_1", "http://e.example/ä?q=1&r='2'#(x)")),
    *(name("skos:Concept"), name("dcterms:title"), NamedNode(f"{EX}//x"), NamedNode(f"{EX}Thing")),
]
BLANKS = [BlankNode(f"n{number}") for number in range(4)] + [BlankNode("lexarium1")]
UNKNOWN = [
    NamedNode("foo:predicate"),
    NamedNode(f"{EX}prop"),
    NamedNode("http://unknown.example/ns#p"),
    name("foaf:page"),
    name("prov:value"),
]

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
# XML has no other control characters.
xml_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\n\r\t"),
    max_size=8,
)


def literals(values: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Literal]:
    datatypes = st.sampled_from(
        [name("xsd:integer"), name("xsd:boolean"), name("xsd:anyURI"), name("rdf:HTML"), NamedNode(f"{EX}code")]
    )
    return st.one_of(
        st.builds(Literal, values),
        st.builds(lambda text, tag: Literal(text, language=tag), values, st.sampled_from(["en", "de", "zh-hant-tw"])),
        st.builds(lambda text, datatype: Literal(text, datatype=datatype), values, datatypes),
        st.sampled_from([Literal("01", datatype=name("xsd:integer")), Literal("false", datatype=name("xsd:boolean"))]),
    )


@st.composite
def skos_triples(draw: st.DrawFn, values: st.SearchStrategy[str] = texts) -> list[Triple]:
    literal = literals(values)
    concepts = st.sampled_from(RECORDS)
    triples = [Triple(item, TYPE, name("skos:Concept")) for item in RECORDS]
    triples += [Triple(item, TYPE, name("skos:ConceptScheme")) for item in SCHEMES]
    triples += [Triple(COLLECTIONS[0], TYPE, name("skos:Collection"))]
    triples += [Triple(COLLECTIONS[1], TYPE, name("skos:OrderedCollection"))]
    triples += [Triple(item, TYPE, name("skosxl:Label")) for item in LABELS]
    # Nothing else distinguishes blank nodes with the same content.
    triples += [Triple(item, name("rdfs:label"), Literal(f"node {item.value}")) for item in BLANKS]
    anything = st.one_of(literal, st.sampled_from([*RECORDS, *OTHERS, *LABELS, *BLANKS, NIL]))
    some = st.lists
    for subject, predicate, value in draw(
        some(
            st.one_of(
                st.tuples(
                    concepts,
                    st.sampled_from(["prefLabel", "altLabel", "hiddenLabel", "definition", "scopeNote", "notation"]),
                    literal,
                ),
                st.tuples(
                    concepts,
                    st.sampled_from(["broader", "narrower", "related", "broaderTransitive", "narrowerTransitive"]),
                    concepts,
                ),
                st.tuples(
                    concepts,
                    st.sampled_from(["exactMatch", "closeMatch", "broadMatch", "narrowMatch", "relatedMatch"]),
                    st.sampled_from([*OTHERS, *RECORDS]),
                ),
                st.tuples(concepts, st.sampled_from(["inScheme", "topConceptOf"]), st.sampled_from(SCHEMES)),
                st.tuples(st.sampled_from(SCHEMES), st.just("hasTopConcept"), concepts),
                st.tuples(st.just(COLLECTIONS[0]), st.just("member"), st.sampled_from([*RECORDS, COLLECTIONS[1]])),
                st.tuples(concepts, st.sampled_from(["note", "example", "changeNote"]), st.sampled_from(BLANKS)),
            ),
            max_size=12,
        )
    ):
        triples.append(Triple(subject, name(f"skos:{predicate}"), value))
    subjects = st.sampled_from([*RECORDS, *SCHEMES, *COLLECTIONS, *LABELS, *BLANKS, OTHERS[-1]])
    triples += draw(some(st.builds(Triple, subjects, st.sampled_from(UNKNOWN), anything), max_size=10))
    triples += draw(some(st.builds(Triple, concepts, st.just(TYPE), st.just(OTHERS[-1])), max_size=2))
    xl = st.sampled_from([name(f"skosxl:{item}") for item in ("prefLabel", "altLabel")])
    triples += draw(some(st.builds(Triple, concepts, xl, st.sampled_from([*LABELS, *BLANKS])), max_size=3))
    triples += draw(
        some(st.builds(Triple, st.sampled_from(LABELS), st.just(name("skosxl:literalForm")), literal), max_size=3)
    )
    triples += draw(
        some(st.builds(Triple, st.sampled_from(LABELS), st.just(UNKNOWN[1]), st.sampled_from(LABELS)), max_size=2)
    )
    for subject in draw(some(concepts, unique=True, max_size=2)):
        triples.append(Triple(subject, name("owl:deprecated"), Literal("true", datatype=name("xsd:boolean"))))
        targets = draw(some(st.sampled_from([*RECORDS, *OTHERS]), max_size=3))
        triples += [Triple(subject, name("dcterms:isReplacedBy"), target) for target in targets]
    members = draw(some(st.one_of(concepts, literal, st.sampled_from(BLANKS)), max_size=4))
    triples += list_triples(COLLECTIONS[1], name("skos:memberList"), members, "l")
    return draw(st.permutations(triples))


def list_triples(subject: Node, predicate: NamedNode, members: Sequence[object], label: str) -> Iterator[Triple]:
    cells: list[Node] = [BlankNode(f"{label}{number}") for number in range(len(members))]
    yield Triple(subject, predicate, [*cells, NIL][0])
    for cell, rest, member in zip(cells, [*cells[1:], NIL], members, strict=False):
        yield Triple(cell, FIRST, member)  # type: ignore[arg-type]
        yield Triple(cell, REST, rest)


CLASSES = [NamedNode(f"http://purl.obolibrary.org/obo/TST_{number}") for number in range(1, 5)]
PROPERTIES = [NamedNode("http://purl.obolibrary.org/obo/RO_0002202"), NamedNode(f"{EX}part-of"), name("skos:related")]
INDIVIDUALS = [NamedNode("http://purl.obolibrary.org/obo/TST_i1"), NamedNode(f"{EX}individual")]
ONTOLOGY = NamedNode("http://purl.obolibrary.org/obo/tst.owl")


@st.composite
def owl_triples(draw: st.DrawFn, values: st.SearchStrategy[str] = texts) -> list[Triple]:
    literal, classes = literals(values), st.sampled_from(CLASSES)
    some = st.lists
    triples = [Triple(item, TYPE, name("owl:Class")) for item in CLASSES]
    triples += [Triple(item, TYPE, name("owl:ObjectProperty")) for item in PROPERTIES[:2]]
    triples += [Triple(item, TYPE, name("owl:NamedIndividual")) for item in INDIVIDUALS]
    triples += [Triple(name("IAO:0000233"), TYPE, name("owl:AnnotationProperty"))]
    triples += [Triple(ONTOLOGY, TYPE, name("owl:Ontology"))]
    triples += [
        Triple(ONTOLOGY, name("owl:imports"), NamedNode("http://purl.obolibrary.org/obo/ro.owl")),
        Triple(ONTOLOGY, name("IAO:0000700"), CLASSES[0]),
        Triple(ONTOLOGY, name("dcterms:creator"), BlankNode("creator")),
        Triple(BlankNode("creator"), name("foaf:name"), draw(literal)),
        Triple(PROPERTIES[0], name("owl:inverseOf"), PROPERTIES[1]),
        *list_triples(PROPERTIES[0], name("owl:propertyChainAxiom"), [*PROPERTIES[:2]], "chain"),
    ]
    annotations = st.sampled_from(
        [name("rdfs:label"), name("IAO:0000115"), name("oboInOwl:hasExactSynonym"), name("rdfs:comment"), *UNKNOWN]
    )
    subjects = st.sampled_from([*CLASSES, *PROPERTIES[:2], *INDIVIDUALS])
    triples += draw(some(st.builds(Triple, subjects, annotations, literal), max_size=8))
    iris = st.sampled_from([*CLASSES, *OTHERS])
    links = st.sampled_from([name("IAO:0000233"), name("rdfs:seeAlso"), *PROPERTIES, *UNKNOWN])
    triples += draw(some(st.builds(Triple, subjects, links, iris), max_size=6))
    triples += draw(some(st.builds(Triple, classes, st.just(name("rdfs:subClassOf")), iris), max_size=4))
    for subject in draw(some(classes, unique=True, max_size=1)):
        triples.append(Triple(subject, name("owl:deprecated"), Literal("true", datatype=name("xsd:boolean"))))
        triples.append(Triple(subject, name("IAO:0100001"), draw(iris)))
    for number in range(draw(st.integers(0, 4))):
        node, nested = draw_expression(draw, f"e{number}", 2)
        predicate = draw(st.sampled_from(["rdfs:subClassOf", "owl:equivalentClass", "owl:disjointWith"]))
        triples += [Triple(draw(classes), name(predicate), node), *nested]
    stated = list(triples)
    for number in range(draw(st.integers(0, 4))):
        axiom, target = BlankNode(f"axiom{number}"), draw(st.sampled_from(stated))
        triples += annotate(axiom, target, "owl:Axiom")
        note = Triple(axiom, draw(annotations), Literal(f"note {number}"))
        triples.append(note)
        if draw(st.booleans()):
            triples += annotate(BlankNode(f"nested{number}"), note, "owl:Annotation")
            triples.append(Triple(BlankNode(f"nested{number}"), draw(annotations), draw(literal)))
    return draw(st.permutations(triples))


def annotate(axiom: BlankNode, target: Triple, kind: str) -> list[Triple]:
    parts = zip(("Source", "Property", "Target"), target, strict=True)
    return [
        Triple(axiom, TYPE, name(kind)),
        *(Triple(axiom, name(f"owl:annotated{part}"), value) for part, value in parts),
    ]


def draw_expression(draw: st.DrawFn, label: str, depth: int) -> tuple[Node, list[Triple]]:
    """Return a class expression with its triples."""
    kind = draw(
        st.sampled_from(["class", "some", "only", "and", "or", "not"][0 if depth < 2 else 1 : 6 if depth else 1])
    )
    if kind == "class":
        return draw(st.sampled_from([*CLASSES, OTHERS[5]])), []
    node = BlankNode(label)
    if kind in ("some", "only"):
        target, nested = draw_expression(draw, f"{label}t", depth - 1)
        filler = name("owl:someValuesFrom" if kind == "some" else "owl:allValuesFrom")
        relation = draw(st.sampled_from(PROPERTIES))
        return node, [
            Triple(node, TYPE, name("owl:Restriction")),
            Triple(node, name("owl:onProperty"), relation),
            Triple(node, filler, target),
            *nested,
        ]
    if kind == "not":
        target, nested = draw_expression(draw, f"{label}n", depth - 1)
        return node, [Triple(node, TYPE, name("owl:Class")), Triple(node, name("owl:complementOf"), target), *nested]
    parts = [draw_expression(draw, f"{label}p{number}", depth - 1) for number in range(draw(st.integers(1, 3)))]
    predicate = name("owl:intersectionOf" if kind == "and" else "owl:unionOf")
    members = list_triples(node, predicate, [part for part, _ in parts], f"{label}l")
    return node, [Triple(node, TYPE, name("owl:Class")), *members, *(item for _, nested in parts for item in nested)]


def close_inverses(triples: list[Triple]) -> list[Triple]:
    """Return triples with those of the inverse predicates that the document uses."""
    inverses = {expand_predicate(a): expand_predicate(b) for a, b in load_builtin_schema("skos").inverses.items()}
    stored = {b: a for a, b in inverses.items() if any(item.predicate.value == a for item in triples)}
    types = (name(f"skos:{item}") for item in ("Concept", "ConceptScheme", "Collection", "OrderedCollection"))
    known = {item.subject for kind in types for item in triples if item.predicate == TYPE and item.object == kind}
    known |= {item.subject for item in triples if item.predicate in (name("skos:inScheme"), name("skos:topConceptOf"))}
    closed = list(triples)
    # SKOS has `skos:member` alone.
    member = expand_predicate("skos:member")
    if all(item.predicate.value != inverses[member] for item in triples):
        del inverses[member]
    for subject, predicate, value in triples:
        if predicate.value in inverses and subject in known and value in known:
            closed.append(Triple(value, NamedNode(inverses[predicate.value]), subject))
    for subject, predicate, value in list(closed):
        if predicate.value in stored and isinstance(value, NamedNode):
            closed.append(Triple(value, NamedNode(stored[predicate.value]), subject))
    return closed


def to_bytes(triples: list[Triple], format: str) -> bytes:
    data = serialize(triples, format=SYNTAXES[format])
    assert data is not None
    return data


def has_twins(triples: list[Triple]) -> bool:
    """Return whether two blank nodes have the same content, of which one is kept."""
    contents: dict[BlankNode, set[tuple[str, str]]] = {}
    for subject, predicate, value in triples:
        if isinstance(subject, BlankNode):
            contents.setdefault(subject, set()).add((str(predicate), str(value)))
    return len({frozenset(item) for item in contents.values()}) < len(contents)


def check(documents: st.SearchStrategy[list[Triple]], format: str, examples: int) -> None:
    @settings(max_examples=examples, phases=[Phase.explicit, Phase.generate])
    @given(documents)
    def check_document(triples: list[Triple]) -> None:
        assume(not has_twins(triples))
        written = rewrite(to_bytes(triples, "ntriples"), "ntriples", format)
        assert parse_rdf(written, format) == parse_rdf(to_bytes(close_inverses(triples), "ntriples"), "ntriples")

    check_document()


@EXAMPLES
@pytest.mark.parametrize("format", ["skos", "ntriples", "jsonld"])
def test_skos_is_unchanged_after_a_round_trip(format: str, examples: int) -> None:
    check(skos_triples(), format, examples)


@EXAMPLES
def test_skos_is_unchanged_after_a_round_trip_in_xml(examples: int) -> None:
    check(skos_triples(xml_texts), "rdfxml", examples)


@EXAMPLES
def test_owl_is_unchanged_after_a_round_trip(examples: int) -> None:
    check(owl_triples(xml_texts), "owl", examples)
