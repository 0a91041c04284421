"""Round trips of OBO files: every clause is kept, and other programs can read the output."""

import fastobo  # type: ignore[import-untyped]
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lexarium.formats.parsed import WarningCounter
from tests.support.round_trip import parse_rdf, rewrite

EVERY_CLAUSE = r"""format-version: 1.4
data-version: releases/2024-01-01
date: 01:01:2024 12:00
saved-by: ada
auto-generated-by: by hand
import: http://purl.obolibrary.org/obo/ro.owl
subsetdef: slim "A \"slim\"" {source="me"}
synonymtypedef: abbreviation "short form" EXACT
synonymtypedef: plain "plain language"
default-namespace: made
namespace-id-rule: * MADE:$sequence(7,0,9999999)$
idspace: GO http://purl.obolibrary.org/obo/GO_ "gene ontology"
treat-xrefs-as-equivalent: CL
property_value: dcterms:license https://example.org/by
property_value: dcterms:title "Made" xsd:string
remark: first \! with an escape
remark: second
ontology: made
owl-axioms: Prefix(a:=<http://a>)\nOntology()

[Term]
id: MADE:1 {source="here"}
is_anonymous: false
name: one \{not a qualifier\}
namespace: part
alt_id: MADE:11 {source="old"}
alt_id: MADE:12
def: "A \"quoted\" text\nin two lines." [MADE:x, PMID:1 "an article", https://example.org/a] {date="2024", date="2025"}
comment: some \! comment
subset: slim
synonym: "uno" EXACT abbreviation [PMID:1 "an article"] {lang="es"}
synonym: "I" BROAD []
synonym: "i" NARROW [MADE:x]
synonym: "1" RELATED plain [] {source="a", source="b"}
xref: WIKI:One "the \"article\"" {source="x"}
xref: OTHER:1
builtin: false
property_value: IAO:0000233 https://example.org/issue {source="x"}
property_value: made_property MADE:2
property_value: creator "Ada" xsd:string
property_value: oboInOwl:created "2024-01-01T00:00:00Z" xsd:dateTime
property_value: skos:exactMatch OTHER:1
is_a: MADE:2 {all_only="true", source="me"}
intersection_of: MADE:2
intersection_of: part_of MADE:3 {cardinality="2"}
union_of: MADE:2
union_of: MADE:3
equivalent_to: OTHER:1
disjoint_from: MADE:3
relationship: part_of MADE:3 {maxCardinality="1"}
relationship: RO:0002202 MADE:2
relationship: skos:related MADE:2
relationship: https://example.org/relation MADE:2
created_by: ada
creation_date: 2024-01-01T00:00:00Z
is_obsolete: false

[Term]
id: MADE:2
name: two
is_obsolete: true {source="me"}
replaced_by: MADE:1 {source="me"}
replaced_by: MADE:3
consider: MADE:4

[Term]
id: MADE:3
name: three
is_obsolete: true
replaced_by: MADE:1

[Typedef]
id: part_of
name: part of
namespace: relations
def: "Being inside." []
xref: BFO:0000050
property_value: creator "Ada" xsd:string
domain: MADE:1
range: MADE:2
builtin: false
holds_over_chain: part_of located_in
is_anti_symmetric: true
is_cyclic: false
is_reflexive: true
is_symmetric: false
is_asymmetric: false
is_transitive: true
is_functional: false
is_inverse_functional: false
is_a: related_to
inverse_of: has_part
transitive_over: located_in
equivalent_to_chain: part_of part_of
disjoint_over: has_part
disjoint_from: unrelated_to
equivalent_to: inside
expand_assertion_to: "Class: ?X DisjointWith: ?Y" [PMID:1]
expand_expression_to: "part some \"?Y\"" []
is_metadata_tag: false
is_class_level: true
created_by: ada

[Instance]
id: MADE:i1
name: this one
instance_of: MADE:1
property_value: part_of MADE:i2
property_value: made_property "text" xsd:string
"""


def normalize_obo(document: str) -> set[tuple[str, str]]:
    """Return the clauses of a file as fastobo understands them, each with its stanza."""
    parsed = fastobo.loads(document, threads=1)
    clauses = {("", str(clause)) for clause in parsed.header}
    for frame in parsed:
        if isinstance(frame, fastobo.instance.InstanceFrame):
            # It has no clauses to iterate over.
            continue
        clauses |= {(str(frame.id), normalize_clause(clause)) for clause in frame}
        clauses.add((str(frame.id), type(frame).__name__))
    return clauses


def normalize_clause(clause: object) -> str:
    """Return a clause with its xrefs and qualifiers in sorted order."""
    text = str(clause)
    xrefs = getattr(clause, "xrefs", None) or getattr(getattr(clause, "synonym", None), "xrefs", None)
    if xrefs:
        for xref in xrefs:
            text = text.replace(str(xref), "")
        text = text.replace(", ", "") + " ".join(sorted(map(str, xrefs)))
    return text


def rewrite_obo(text: str) -> str:
    return rewrite(text.encode(), "obo", "obo").decode()


def to_clauses(text: str) -> set[tuple[str, str]]:
    clauses, stanza = set(), ""
    for line in text.splitlines():
        if line.startswith("["):
            stanza = line
        elif line.startswith("id: "):
            stanza = f"{stanza.partition(' ')[0]} {line}"
        elif line.strip():
            clauses.add((stanza, line))
    return clauses


def test_every_clause_is_unchanged_after_a_round_trip() -> None:
    written = rewrite_obo(EVERY_CLAUSE)
    assert to_clauses(written) == to_clauses(EVERY_CLAUSE)


def test_fastobo_reads_every_written_clause() -> None:
    assert normalize_obo(rewrite_obo(EVERY_CLAUSE)) == normalize_obo(EVERY_CLAUSE)


def test_properties_keep_their_form() -> None:
    header = 'format-version: 1.4\ndata-version: 2\nproperty_value: owl:versionInfo "1" xsd:string\n'
    iris = "property_value: http://purl.org/dc/terms/license http://example.org/l\nontology: made\n\n"
    term = '[Term]\nid: MADE:1\nproperty_value: http://purl.org/dc/terms/date "2024" xsd:string\n'
    text = f'{header}{iris}{term}property_value: dc:title "x" xsd:string\n'
    assert to_clauses(rewrite_obo(text)) == to_clauses(text)


def test_every_clause_is_unchanged_after_a_round_trip_through_owl() -> None:
    owl = rewrite(EVERY_CLAUSE.encode(), "obo", "owl")
    again = rewrite(owl, "owl", "obo").decode()
    # Ids without a prefix are IRIs of the ontology in OWL.
    assert to_clauses(again.replace("http://purl.obolibrary.org/obo/made#", "")) == to_clauses(EVERY_CLAUSE)


def test_a_logical_definition_is_an_equivalent_class_in_owl() -> None:
    stanza = "[Term]\nid: MADE:1\nintersection_of: MADE:2\nintersection_of: RO:1 MADE:3\n"
    text = f"format-version: 1.4\nontology: made\n\n{stanza}union_of: MADE:4\nunion_of: MADE:5\n"
    expected = """
        @prefix : <http://purl.obolibrary.org/obo/> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        <http://purl.obolibrary.org/obo/made.owl> a owl:Ontology .
        :MADE_1 a owl:Class ; owl:equivalentClass
            [ a owl:Class ; owl:unionOf (:MADE_4 :MADE_5) ],
            [ a owl:Class ; owl:intersectionOf
                (:MADE_2 [ a owl:Restriction ; owl:onProperty :RO_1 ; owl:someValuesFrom :MADE_3 ]) ] .
    """
    assert parse_rdf(rewrite(text.encode(), "obo", "owl"), "owl") == parse_rdf(expected.encode(), "skos")


def test_two_logical_definitions_stay_separate_in_owl_and_are_counted_as_lost_in_obo() -> None:
    document = b"""
        @prefix : <http://purl.obolibrary.org/obo/> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        <http://purl.obolibrary.org/obo/made.owl> a owl:Ontology .
        :MADE_1 a owl:Class ; owl:equivalentClass [ a owl:Class ; owl:intersectionOf (:MADE_2 :MADE_3) ],
            [ a owl:Class ; owl:intersectionOf (:MADE_4 :MADE_5) ] .
    """
    assert parse_rdf(rewrite(document, "owl", "owl"), "owl") == parse_rdf(document, "skos")
    losses = WarningCounter()
    assert b"intersection_of" not in rewrite(document, "owl", "obo", losses)
    assert [*map(losses.format_message, losses)] == [
        "owl:equivalentClass of a record is a node and is skipped (2 times, first MADE:1)"
    ]


def test_documentation_nodes_of_a_thesaurus_become_texts_with_qualifiers() -> None:
    document = b"""
        @prefix : <https://example.org/terms/> .
        @prefix dct: <http://purl.org/dc/terms/> .
        @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
        @prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
        :dog a skos:Concept ; xl:prefLabel [ xl:literalForm "dog"@en ; dct:source "a book" ] ;
            skos:definition [ rdf:value "A pet that barks."@en ; dct:creator "Ada" ; dct:source [ :page 5 ] ] ;
            skos:scopeNote [ rdf:value "Kein Wolf."@de ] ;
            skos:changeNote :change ; skos:note "Common." ; skos:example [ :shows :dog ] .
        :change rdf:value "Renamed." ; dct:date "2024" .
    """
    losses = WarningCounter()
    written = rewrite(document, "skos", "obo", losses).decode()
    assert set(written.partition("[Term]\n")[2].splitlines()) - {""} == {
        "id: made:dog",
        'name: dog {dcterms:source="a book"}',
        'def: "A pet that barks." [] {dcterms:creator="Ada"}',
        'comment: Renamed. {dcterms:date="2024", id="https://example.org/terms/change"}',
        'property_value: http://www.w3.org/2000/01/rdf-schema#comment "Common." xsd:string',
        'property_value: http://www.w3.org/2000/01/rdf-schema#comment "Kein Wolf." xsd:string {lang="de"}',
    }
    assert [*map(losses.format_message, losses)] == [
        "the qualifier dcterms:source is a node and is skipped (made:dog)",
        "rdfs:comment of a record is a node and is skipped (made:dog)",
    ]
    normalize_obo(written)


def split_stanzas(text: str) -> tuple[str, list[list[str]]]:
    header, *stanzas = text.strip().split("\n\n")
    return header, [stanza.splitlines() for stanza in stanzas]


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(st.randoms(use_true_random=False))
def test_the_order_of_lines_and_stanzas_does_not_matter(random: object) -> None:
    header, stanzas = split_stanzas(EVERY_CLAUSE)
    parts = []
    for first, identifier, *clauses in stanzas:
        random.shuffle(clauses)  # type: ignore[attr-defined]
        # A stanza may be repeated: both halves are one record.
        half = len(clauses) // 2
        parts += [[first, identifier, *clauses[:half]], [first, identifier, *clauses[half:]]]
    random.shuffle(parts)  # type: ignore[attr-defined]
    text = "\n\n".join([header, *("\n".join(part) for part in parts)]) + "\n"
    assert to_clauses(rewrite_obo(text)) == to_clauses(EVERY_CLAUSE)


@settings(max_examples=60, phases=[Phase.explicit, Phase.generate])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12))
def test_any_text_is_unchanged_after_escaping_and_unescaping(text: str) -> None:
    quoted = "".join(f"\\{char}" if char in '"\\' else {"\n": "\\n", "\r": "\\r"}.get(char, char) for char in text)
    source = f'format-version: 1.4\nontology: made\n\n[Term]\nid: MADE:1\ndef: "{quoted}" [] {{note="{quoted}"}}\n'
    first = rewrite_obo(source)
    assert rewrite_obo(first) == first
