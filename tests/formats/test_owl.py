"""OWL: classes of published ontologies as records of the main vocabulary."""

import pytest

from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import CONCEPT, DISORDER, Collection
from lexarium.domain.statement import Statement, Text
from tests.support.imports import build_alias
from tests.support.round_trip import ReadFile, read_file

# In the style of the OBO Foundry's tools, with content of our own.
ONTOLOGY = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
    <!ENTITY obo "http://purl.obolibrary.org/obo/" >
    <!ENTITY xsd "http://www.w3.org/2001/XMLSchema#" >
]>
<rdf:RDF xmlns="http://purl.obolibrary.org/obo/pets.owl#"
     xml:base="http://purl.obolibrary.org/obo/pets.owl"
     xmlns:obo="http://purl.obolibrary.org/obo/"
     xmlns:owl="http://www.w3.org/2002/07/owl#"
     xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
     xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
     xmlns:dct="http://purl.org/dc/terms/"
     xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#">
    <owl:Ontology rdf:about="http://purl.obolibrary.org/obo/pets.owl">
        <owl:imports rdf:resource="http://purl.obolibrary.org/obo/other.owl"/>
        <dct:license rdf:resource="https://creativecommons.org/publicdomain/zero/1.0/"/>
    </owl:Ontology>
    <owl:AnnotationProperty rdf:about="&obo;IAO_0000115"/>
    <owl:ObjectProperty rdf:about="&obo;BFO_0000050"><rdfs:label>part of</rdfs:label></owl:ObjectProperty>

    <owl:Class rdf:about="&obo;PET_0000001">
        <rdfs:subClassOf rdf:resource="&obo;PET_0000002"/>
        <rdfs:subClassOf>
            <owl:Restriction>
                <owl:onProperty rdf:resource="&obo;BFO_0000050"/>
                <owl:someValuesFrom rdf:resource="&obo;PET_0000003"/>
            </owl:Restriction>
        </rdfs:subClassOf>
        <rdfs:subClassOf>
            <owl:Restriction>
                <owl:onProperty rdf:resource="&obo;RO_0002202"/>
                <owl:someValuesFrom rdf:resource="&obo;PET_0000003"/>
            </owl:Restriction>
        </rdfs:subClassOf>
        <obo:IAO_0000115 rdf:datatype="&xsd;string">A pet that barks.</obo:IAO_0000115>
        <oboInOwl:hasDbXref>MESH:D004285</oboInOwl:hasDbXref>
        <oboInOwl:hasDbXref>no reference</oboInOwl:hasDbXref>
        <oboInOwl:hasExactSynonym>hound</oboInOwl:hasExactSynonym>
        <oboInOwl:hasNarrowSynonym xml:lang="de">Dackel</oboInOwl:hasNarrowSynonym>
        <oboInOwl:hasBroadSynonym>animal</oboInOwl:hasBroadSynonym>
        <oboInOwl:hasRelatedSynonym>wolf</oboInOwl:hasRelatedSynonym>
        <oboInOwl:hasOBONamespace>pets</oboInOwl:hasOBONamespace>
        <oboInOwl:id>PET:0000001</oboInOwl:id>
        <rdfs:comment>A comment.</rdfs:comment>
        <rdfs:label>dog</rdfs:label>
    </owl:Class>
    <owl:Axiom>
        <owl:annotatedSource rdf:resource="&obo;PET_0000001"/>
        <owl:annotatedProperty rdf:resource="&obo;IAO_0000115"/>
        <owl:annotatedTarget rdf:datatype="&xsd;string">A pet that barks.</owl:annotatedTarget>
        <oboInOwl:hasDbXref>PMID:1</oboInOwl:hasDbXref>
        <oboInOwl:hasDbXref>https://books.example/dogs</oboInOwl:hasDbXref>
    </owl:Axiom>
    <owl:Axiom>
        <owl:annotatedSource rdf:resource="&obo;PET_0000001"/>
        <owl:annotatedProperty rdf:resource="http://www.geneontology.org/formats/oboInOwl#hasExactSynonym"/>
        <owl:annotatedTarget>hound</owl:annotatedTarget>
        <oboInOwl:hasDbXref>PMID:2</oboInOwl:hasDbXref>
    </owl:Axiom>
    <owl:Class rdf:about="&obo;PET_0000002"><rdfs:label xml:lang="en">pet</rdfs:label></owl:Class>
    <owl:Class rdf:about="&obo;PET_0000004">
        <rdfs:label>obsolete puppy</rdfs:label>
        <owl:deprecated rdf:datatype="&xsd;boolean">true</owl:deprecated>
        <obo:IAO_0100001 rdf:resource="&obo;PET_0000001"/>
    </owl:Class>
    <owl:Class rdf:about="http://other.example/EFO_1">
        <rdfs:label>cat</rdfs:label>
        <oboInOwl:id>EFO:1</oboInOwl:id>
        <rdfs:subClassOf rdf:resource="http://other.example/plain"/>
    </owl:Class>
    <owl:Class rdf:about="http://other.example/plain">
        <rdfs:label>animal</rdfs:label>
        <owl:disjointWith rdf:resource="http://other.example/EFO_1"/>
    </owl:Class>
    <owl:Class rdf:about="http://www.w3.org/2002/07/owl#Thing"/>
    <owl:Class>
        <owl:unionOf rdf:parseType="Collection"><owl:Class rdf:about="&obo;PET_0000002"/></owl:unionOf>
    </owl:Class>
</rdf:RDF>
"""


def read_owl(text: str, collection: Collection | None = None) -> ReadFile:
    found = read_file(text, "owl", collection=collection)
    assert found.problems == []
    return found


@pytest.fixture(scope="module")
def pets() -> dict[str, Record]:
    return read_owl(ONTOLOGY).records


def test_a_class_becomes_a_record_under_its_own_identifier(pets: dict[str, Record]) -> None:
    dog = pets["PET:0000001"]
    assert (dog.collection, dog.iri) == (CONCEPT, "http://purl.obolibrary.org/obo/PET_0000001")
    assert (dog.fields["name"], dog.definition, dog.state) == ("dog", "A pet that barks.", RecordState.PUBLISHED)
    assert dog.aliases == (
        build_alias("hound"),
        build_alias("Dackel", "de", "narrow"),
        build_alias("animal", scope="broad"),
        build_alias("wolf", scope="related"),
    )
    assert sorted(dog.relations) == [
        Relation("PET:0000001", "KINDOF", "PET:0000002"),
        Relation("PET:0000001", "PARTOF", "PET:0000003"),
        Relation("PET:0000001", "RO:0002202", "PET:0000003"),
        Relation("PET:0000001", "oboInOwl:hasDbXref", "MESH:D004285"),
        Relation("PET:0000001", "oboInOwl:hasDbXref", "no reference"),
    ]


def test_all_statements_of_a_class_are_kept(pets: dict[str, Record]) -> None:
    statements = pets["PET:0000001"].statements
    [definition] = [item for item in statements if item.predicate == "skos:definition"]
    assert {str(item.value[0]) for item in definition.qualifiers} == {"PMID:1", "https://books.example/dogs"}
    [hound] = [item for item in statements if item.value == Text("hound")]
    assert hound == Statement("skos:altLabel", Text("hound"), (Statement("oboInOwl:hasDbXref", Text("PMID:2")),))
    assert Statement("rdfs:comment", Text("A comment.")) in statements
    assert Statement("oboInOwl:hasOBONamespace", Text("pets")) in statements


def test_every_class_becomes_a_record(pets: dict[str, Record]) -> None:
    assert set(pets) == {
        *("PET:0000001", "PET:0000002", "PET:0000004", "owl:Thing"),
        *("http://other.example/EFO_1", "http://other.example/plain"),
    }
    assert pets["http://other.example/EFO_1"].relation_targets == {"KINDOF": ["http://other.example/plain"]}


def test_an_obsolete_class_is_retired_with_its_replacement(pets: dict[str, Record]) -> None:
    puppy = pets["PET:0000004"]
    assert (puppy.state, puppy.replaced_by) == (RecordState.RETIRED, "PET:0000001")


def test_classes_can_be_imported_as_disorders() -> None:
    dog = read_owl(ONTOLOGY, DISORDER).records["PET:0000001"]
    assert (dog.fields["name"], dog.fields["definition"]) == ("dog", "A pet that barks.")
    assert {relation.relation for relation in dog.relations} == {
        *("ISA", "BFO:0000050", "RO:0002202", "oboInOwl:hasDbXref"),
    }


def test_a_class_may_be_a_kind_and_a_part_of_the_same_class() -> None:
    ontology = ONTOLOGY.replace('<rdfs:subClassOf rdf:resource="&obo;PET_0000002"/>', "", 1).replace(
        "<rdfs:subClassOf>", '<rdfs:subClassOf rdf:resource="&obo;PET_0000003"/><rdfs:subClassOf>', 1
    )
    targets = read_owl(ontology).records["PET:0000001"].relation_targets
    assert (targets["KINDOF"], targets["PARTOF"]) == (["PET:0000003"], ["PET:0000003"])


def test_content_that_the_main_vocabulary_cannot_hold_is_counted() -> None:
    warnings = read_owl(ONTOLOGY).warnings
    assert [warning for warning in warnings if warning.startswith("BFO:0000050")] == [
        "BFO:0000050: is an owl:ObjectProperty, which the schema of main does not have; it was left out"
    ]
    assert "owl:imports: what the file says about itself, and about what is no term, was left out" in warnings


@pytest.mark.parametrize(
    "document",
    [
        '@prefix owl: <http://www.w3.org/2002/07/owl#> . <http://a.example/1> a owl:Class ; '
        '<http://www.w3.org/2000/01/rdf-schema#label> "dog" .',
        '<http://a.example/1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>'
        ' <http://www.w3.org/2002/07/owl#Class> .\n'
        '<http://a.example/1> <http://www.w3.org/2000/01/rdf-schema#label> "dog" .',
        '{"@id": "http://a.example/1", "@type": "http://www.w3.org/2002/07/owl#Class",'
        ' "http://www.w3.org/2000/01/rdf-schema#label": "dog"}',
        ' \n[{"@type": ["http://www.w3.org/2002/07/owl#Class"], "@id": "http://a.example/1",'
        ' "http://www.w3.org/2000/01/rdf-schema#label": [{"@value": "dog"}]}]',
    ],
)  # fmt: skip
def test_the_syntax_is_detected_by_content(document: str) -> None:
    [record] = read_owl(document).records.values()
    assert (record.id, record.fields["name"]) == ("http://a.example/1", "dog")
