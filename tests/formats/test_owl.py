"""OWL: classes of published ontologies as records."""

from typing import Any

import pytest

from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import CONCEPT, DISORDER
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.rdf import codec
from lexarium.formats.registry import FORMATS
from tests.support.imports import build_alias, open_text

VOCABULARY = Vocabulary(base="https://terms.example/")

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


def read_owl(text: str, **options: Any) -> list[ParsedRecord]:
    return list(
        codec.read(
            open_text(text.encode()),
            ReadOptions(FORMATS["owl"], VOCABULARY, **({"default_collection": CONCEPT} | options)),
        )
    )


def read_by_foreign_id(text: str, **options: Any) -> dict[str, ParsedRecord]:
    return {
        parsed_record.foreign_id: parsed_record
        for parsed_record in read_owl(text, **options)
        if parsed_record.foreign_id
    }


def test_a_class_is_read_as_published_ontologies_have_it() -> None:
    dog = read_by_foreign_id(ONTOLOGY)["PET:0000001"]
    assert dog.line == ONTOLOGY[: ONTOLOGY.index('<owl:Class rdf:about="&obo;PET_0000001">')].count("\n") + 1
    assert dog.fields == {"name": "dog", "definition_text": "A pet that barks."}
    assert dog.sources == ("PMID:1", "https://books.example/dogs")
    assert dog.state == RecordState.PUBLISHED
    assert dog.aliases == (
        build_alias("hound"),
        build_alias("Dackel", "de", "narrow"),
        build_alias("animal", scope="broad"),
        build_alias("wolf", scope="related"),
    )
    assert sorted(dog.relations) == [
        Relation("PET:0000001", "KINDOF", "PET:0000002"),
        Relation("PET:0000001", "PARTOF", "PET:0000003"),
        Relation("PET:0000001", "closeMatch", "MESH:D004285"),
    ]


def test_every_class_with_a_label_is_a_record() -> None:
    assert list(read_by_foreign_id(ONTOLOGY)) == [
        *("PET:0000001", "PET:0000002", "PET:0000004", "EFO:1", "http://other.example/plain"),
    ]


def test_classes_are_called_as_their_ontology_calls_them() -> None:
    records = read_by_foreign_id(ONTOLOGY)
    assert records["EFO:1"].relations == [Relation("EFO:1", "KINDOF", "http://other.example/plain")]


def test_an_obsolete_class_is_retired_in_favour_of_another() -> None:
    puppy = read_by_foreign_id(ONTOLOGY)["PET:0000004"]
    assert (puppy.state, puppy.replaced_by) == (RecordState.RETIRED, "PET:0000001")


def test_classes_may_be_disorders() -> None:
    dog = read_by_foreign_id(ONTOLOGY, collection=DISORDER)["PET:0000001"]
    assert dog.fields == {"name": "dog", "definition": "A pet that barks."}
    assert sorted(relation.relation for relation in dog.relations) == ["ISA", "closeMatch"]


def test_a_class_may_be_a_kind_and_a_part_of_the_same() -> None:
    ontology = ONTOLOGY.replace('<rdfs:subClassOf rdf:resource="&obo;PET_0000002"/>', "", 1).replace(
        "<rdfs:subClassOf>", '<rdfs:subClassOf rdf:resource="&obo;PET_0000003"/><rdfs:subClassOf>', 1
    )
    dog = read_owl(ontology)[0]
    assert sorted(relation.relation for relation in dog.relations if relation.target == "PET:0000003") == [
        "KINDOF",
        "PARTOF",
    ]


def test_what_is_left_out_is_told() -> None:
    [*_, last_item] = read_owl(ONTOLOGY)
    assert last_item.line == 0
    assert last_item.warnings == [
        "what it imports is not fetched (http://purl.obolibrary.org/obo/other.owl)",
        "it has terms of its own, to which the catalogue's should fit (https://creativecommons.org/publicdomain/zero/1.0/)",
        "mappings to what is neither an IRI nor a CURIE were left out (PET:0000001 to no reference)",
        "relations to expressions, and to what has no IRI, were left out (PET:0000001)",
        "owl:disjointWith is not known and was left out; --map can say what it means",
        "what has no label was left out (http://www.w3.org/2002/07/owl#Thing)",
    ]


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
def test_the_syntax_is_told_by_the_beginning(document: str) -> None:
    [parsed_record] = read_owl(document)
    assert (parsed_record.foreign_id, parsed_record.fields) == ("http://a.example/1", {"name": "dog"})


def test_a_thesaurus_is_not_taken_for_an_ontology() -> None:
    with pytest.raises(ParseError, match="--format skos"):
        read_owl("<http://a.example/1> a <http://www.w3.org/2004/02/skos/core#Concept> .")


def test_nothing_is_told_of_relations_that_an_ontology_does_not_use() -> None:
    complete_relations = read_by_foreign_id(ONTOLOGY)["PET:0000002"].complete_relations
    assert set(complete_relations) == {("KINDOF", "source"), ("PARTOF", "source"), ("closeMatch", "source")}
