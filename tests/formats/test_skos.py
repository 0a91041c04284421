"""The main vocabulary as SKOS in four syntaxes, and foreign SKOS imported into it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import parse

from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, RelatedRecord, Relation
from lexarium.domain.schema.collections import (
    COLLECTIONS,
    CONCEPT,
    CONTRAST,
    DISORDER,
    MAPPING_TYPES,
    TASK,
    Collection,
)
from lexarium.domain.statement import Reference, Statement, Text
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf.statements import render_record
from lexarium.formats.registry import FORMATS
from tests.support.imports import build_alias
from tests.support.records import make_record
from tests.support.round_trip import SYNTAXES as RDF_SYNTAXES
from tests.support.round_trip import read_file, write_records

SYNTAXES = ("skos", "rdfxml", "ntriples", "jsonld")
VOCABULARY = Vocabulary(
    title="Terms & “conditions”",
    licence="https://example.org/licence",
    publisher="A <publisher>",
    base="https://terms.example/",
)
SKOS = "http://www.w3.org/2004/02/skos/core#"

PREFIXES = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix isothes: <http://purl.org/iso25964/skos-thes#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix ex: <https://example.org/> .
"""


def read_turtle(text: str, collection: Collection | None = None) -> dict[str, Record]:
    """Return the records read from a Turtle text into the main vocabulary, by the last part of their IRIs."""
    found = read_file(PREFIXES + text, "skos", VOCABULARY, collection)
    assert found.problems == []
    return {name.rpartition("/")[2]: record for name, record in found.records.items()}


def list_warnings(text: str) -> list[str]:
    return read_file(PREFIXES + text, "skos", VOCABULARY).warnings


# Words that are syntax in some format, and characters that are often handled wrongly.
SYNTAX = [
    '"',
    "'",
    '"""',
    "\\",
    "\\n",
    ";",
    "=",
    "<b>",
    "&amp;",
    "&",
    "]]>",
    "<!--",
    "@en",
    "^^xsd:integer",
    "{",
    "}",
    "[",
]
DIFFICULT_CHARACTERS = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "  ",
    "🧠",
    "שלום",
    "e\u0301",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\x85",
    "\u00a0",
]
LOOKALIKES = ["_:b", "<<(", "\\u0041", "%41", "true", "1", "a", "word"]
hostile_texts = st.sampled_from(SYNTAX + DIFFICULT_CHARACTERS + LOOKALIKES)
texts = st.lists(hostile_texts | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5), max_size=8).map(
    "".join
)
nonempty_texts = texts.filter(bool)
tags = st.sampled_from(["en", "de", "pt-BR", "zh-Hant-TW", "x-private", "zxx", "he", "sl-rozaj-biske"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(st.builds(Alias.model_construct, text=nonempty_texts, lang=tags, scope=scopes), max_size=6).map(
    tuple
)
identifiers = st.from_regex(r"\A(trm|dso|cnt)_[0-9A-Za-z]{1,13}\Z") | nonempty_texts.map(lambda text: text[:40])
IRIS = [
    "https://example.org/a?b=c&d='e'#f",
    "http://purl.obolibrary.org/obo/doid.owl",
    "https://пример.example/ü",
    "urn:uuid:0",
]
CURIES = ["DOID:3324", "my_own:1", "dc:creator", "skos:prefLabel", "id:1", "mailto:a@b.example"]
external_ids = st.sampled_from(IRIS + CURIES)
timestamps = st.integers(-(2**62), 2**62)


@st.composite
def generated_records(draw: st.DrawFn) -> Record:
    """Draw a record that a catalogue can hold and RDF/XML can express."""
    collection: Collection = draw(st.sampled_from(list(COLLECTIONS.values())))
    identifier = draw(identifiers)
    fields_drawn: dict[str, Any] = {}
    for name in collection.core_fields:
        kind = collection.field_types[name]
        if name == collection.alias_field:
            continue
        fields_drawn[name] = draw(st.integers(-(2**63), 2**63 - 1) | timestamps if kind is int else texts)
    fields_drawn |= (
        {"id": identifier, "id_concept_class": draw(identifiers | st.just(""))}
        if "id_concept_class" in fields_drawn
        else {}
    )
    fields = fields_drawn | {"id": identifier}
    relation_types = list(collection.relation_types.values())
    relations = set()
    for relation_type in draw(st.lists(st.sampled_from(relation_types), max_size=6)):
        internal_ids = st.just(identifier) | identifiers
        relations.add(
            Relation(
                identifier, relation_type.name, draw(external_ids if relation_type in MAPPING_TYPES else internal_ids)
            )
        )
    state = draw(st.sampled_from(list(RecordState)))
    others = identifiers.filter(lambda other: other != identifier)
    replacements = {
        RecordState.PUBLISHED: st.none(),
        RecordState.RETIRED: st.none() | others,
        RecordState.MERGED: others,
    }
    return make_record(
        collection,
        fields,
        frozenset(relations),
        state,
        draw(replacements[state]),
        draw(aliases),
        tuple(draw(st.lists(nonempty_texts | external_ids, max_size=4))),
    )


def to_content(record: Record) -> dict[str, Any]:
    """Return the content of a record, unordered."""
    return {
        "collection": record.collection.name,
        "statements": set(record.statements),
        "state": record.state,
        "replaced_by": record.replaced_by,
        # An id that is a CURIE has the IRI that it stands for.
        "iri": None if ":" in record.id else record.iri,
    }


def check_round_trip(records: list[Record], format: str, written_by: Vocabulary = VOCABULARY) -> None:
    found = read_file(write_records(records, format, written_by), format, VOCABULARY)
    assert found.problems == []
    expected = {record.id: to_content(record) for record in records}
    assert {name: to_content(record) for name, record in found.records.items()} == expected


@pytest.mark.parametrize("runs", [pytest.param(10, marks=pytest.mark.short), pytest.param(40, marks=pytest.mark.full)])
@pytest.mark.parametrize("format", SYNTAXES)
def test_exporting_and_reimporting_changes_nothing(format: str, runs: int) -> None:
    @settings(max_examples=runs)
    @given(records=st.lists(generated_records(), min_size=1, max_size=4, unique_by=lambda record: record.id))
    def check(records: list[Record]) -> None:
        check_round_trip(records, format)

    check()


@pytest.mark.parametrize("format", SYNTAXES)
@settings(max_examples=10, deadline=None)
@given(records=st.lists(generated_records(), min_size=1, max_size=4, unique_by=lambda record: record.id))
def test_an_export_of_another_catalogue_is_read_under_the_local_base(format: str, records: list[Record]) -> None:
    check_round_trip(records, format, replace(VOCABULARY, base="http://elsewhere.example/terms#"))


def build_concept(identifier: str = "trm_1", **options: Any) -> Record:
    return make_record(CONCEPT, {"id": identifier, "name": "attention", **options.pop("fields", {})}, **options)


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_long_text_is_unchanged_after_a_round_trip(format: str) -> None:
    check_round_trip([build_concept(fields={"definition_text": "line “of” text\n" * 4_000})], format)


@pytest.mark.parametrize("format", [syntax for syntax in SYNTAXES if syntax != "rdfxml"])
def test_control_characters_are_kept_by_syntaxes_that_can_encode_them(format: str) -> None:
    check_round_trip([build_concept(fields={"definition_text": "\x01\x0b\x7f\x9f\ufffe"})], format)


def test_characters_that_xml_cannot_encode_are_replaced() -> None:
    document = write_records([build_concept(fields={"definition_text": "a\x01b"})], "rdfxml", VOCABULARY)
    [reread] = read_file(document, "rdfxml", VOCABULARY).records.values()
    assert reread.definition == "a\ufffdb"


@pytest.mark.parametrize("format", SYNTAXES)
def test_aliases_in_one_text_are_exported_as_labels_and_reimported_as_one_text(format: str) -> None:
    record = build_concept(fields={"alias": "focus, concentration"})
    assert {(str(subject), text) for subject, name, text in list_triples([record], format) if name == "altLabel"} == {
        ("https://terms.example/id/trm_1", "focus"),
        ("https://terms.example/id/trm_1", "concentration"),
    }
    check_round_trip([record], format)


@pytest.mark.parametrize("format", [*SYNTAXES, "owl", "obo"])
def test_a_record_of_several_classes_keeps_all_of_them(format: str) -> None:
    both = build_concept("trm_1").with_class(TASK, {"name": "attending", "definition_text": "Looking."})
    task = make_record(TASK, {"id": "trm_2", "name": "task"})
    other = make_record(TASK, {"id": "trm_3", "name": "other"}).with_class(CONCEPT, {})
    same = build_concept("trm_4").with_class(TASK, {"name": "attention"})
    check_round_trip([both, task, other, same], format)


@pytest.mark.parametrize("format", [*SYNTAXES, "owl", "obo"])
def test_a_merged_record_is_exported_and_reimported_as_merged(format: str) -> None:
    check_round_trip([build_concept(), build_concept("trm_2", state=RecordState.MERGED, replaced_by="trm_1")], format)


@pytest.mark.parametrize("format", [*SYNTAXES, "owl", "obo"])
@pytest.mark.parametrize("target", ["ICD10CM:F32.9", "DOID:1", "https://example.org/a?b=[c]", "MESH:D01(1)"])
def test_a_mapping_with_any_target_is_unchanged_after_a_round_trip(format: str, target: str) -> None:
    check_round_trip([build_concept(relations={Relation("trm_1", "exactMatch", target)})], format)


def list_triples(records: list[Record], format: str = "skos") -> set[tuple[str, str, str]]:
    """Return subjects, the last parts of predicates, and values."""
    return {
        (quad.subject.value, quad.predicate.value.rpartition("#")[2].rpartition("/")[2], quad.object.value)
        for quad in parse(write_records(records, format, VOCABULARY), RDF_SYNTAXES[format])
    }


def test_plain_skos_readers_find_labels_hierarchy_and_mappings() -> None:
    aliases = (build_alias("focus"), build_alias("Fokus", lang="de"))
    relations = {Relation("tsk_1", "KINDOF", "tsk_2"), Relation("tsk_1", "exactMatch", "DOID:1")}
    fields = {"id": "tsk_1", "name": "n-back", "definition_text": "To remember."}
    task = make_record(TASK, fields, relations, aliases=aliases, sources=("https://example.org/book",))
    contrast = make_record(CONTRAST, {"id": "cnt_1", "name": "2-back > 0-back"})
    triples = list_triples([task, make_record(TASK, {"id": "tsk_2", "name": "task"}), contrast])
    task_iri, scheme = "https://terms.example/id/tsk_1", "https://terms.example/task"
    assert {
        (task_iri, "type", f"{SKOS}Concept"),
        (task_iri, "type", "https://w3id.org/rwblair/legacy-cogat-linkml/Task"),
        (task_iri, "inScheme", scheme),
        (task_iri, "prefLabel", "n-back"),
        (task_iri, "altLabel", "focus"),
        (task_iri, "altLabel", "Fokus"),
        (task_iri, "definition", "To remember."),
        (task_iri, "broader", "https://terms.example/id/tsk_2"),
        (task_iri, "exactMatch", "http://purl.obolibrary.org/obo/DOID_1"),
        (task_iri, "source", "https://example.org/book"),
        ("https://terms.example/id/tsk_2", "topConceptOf", scheme),
        (scheme, "type", f"{SKOS}ConceptScheme"),
        (scheme, "title", "Terms & “conditions”: task"),
        (scheme, "license", "https://example.org/licence"),
    } <= triples
    assert (task_iri, "topConceptOf", scheme) not in triples
    assert ("https://terms.example/id/cnt_1", "type", f"{SKOS}Concept") not in triples, "it is an auxiliary record"


@pytest.mark.parametrize("format", ["skos", "jsonld"])
def test_a_single_record_includes_the_names_of_related_records(format: str) -> None:
    record = build_concept(relations=frozenset({Relation("trm_1", "KINDOF", "trm_2")}))
    related = [
        RelatedRecord("trm_2", "cognition", "KINDOF", "source", "concept"),
        RelatedRecord("trm_3", "vigilance", "KINDOF", "target", "concept"),
        RelatedRecord("tsk_4", "a task", "ASSERTS", "target", "task"),
        RelatedRecord("trm_5", None, "KINDOF", "target", None),
        RelatedRecord("DOID:1", None, "exactMatch", "source", None),
    ]
    document = render_record(FORMATS[format], VOCABULARY, record, related)
    own, *others = (f"https://terms.example/id/{name}" for name in ("trm_1", "trm_2", "trm_3", "tsk_4"))
    triples = {
        (quad.subject.value, quad.predicate.value.rpartition("#")[2].rpartition("/")[2], quad.object.value)
        for quad in parse(document, RDF_SYNTAXES[format])
    }
    assert {
        (own, "broader", others[0]),
        (others[0], "prefLabel", "cognition"),
        (own, "narrower", others[1]),
        (others[1], "broader", own),
        (others[2], "asserts", own),
    } <= triples


def test_foreign_concepts_keep_their_identifiers_languages_and_notes() -> None:
    found = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en ; skos:altLabel "hound"@en, "pooch" ;
            skos:hiddenLabel "dgo"@en ; skos:notation "D-1" ; skos:scopeNote "Of pets."@en ; ex:legs 4 .
           <http://purl.obolibrary.org/obo/PET_0000001> a skos:Concept ; skos:prefLabel "pet"@en ;
            skos:exactMatch ex:1 ."""
    )
    dog, pet = found["1"], found["PET:0000001"]
    assert (dog.id, dog.iri, dog.collection) == ("https://example.org/1", "https://example.org/1", CONCEPT)
    assert (dog.fields["name"], dog.translated_names) == ("dog", {"de": "Hund"})
    assert [(alias.text, alias.scope) for alias in dog.aliases] == [
        ("hound", "exact"),
        ("pooch", "exact"),
        ("dgo", "hidden"),
    ]
    assert Statement("skos:scopeNote", Text("Of pets.", "en")) in dog.statements
    assert Statement("https://example.org/legs", Text("4", "", "xsd:integer")) in dog.statements
    assert pet.iri == "http://purl.obolibrary.org/obo/PET_0000001"
    assert pet.relations == {Relation("PET:0000001", "exactMatch", "https://example.org/1")}, "a mapping is no identity"


def test_foreign_concepts_are_imported_into_the_chosen_collection() -> None:
    text = 'ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:broader ex:2 ; isothes:broaderPartitive ex:3 .'
    [concept], [disorder] = read_turtle(text).values(), read_turtle(text, DISORDER).values()
    assert concept.relation_targets == {"KINDOF": ["https://example.org/2"], "PARTOF": ["https://example.org/3"]}
    assert disorder.collection is DISORDER
    assert disorder.relation_targets == {
        "ISA": ["https://example.org/2"],
        "isothes:broaderPartitive": ["https://example.org/3"],
    }


def test_all_kinds_of_labels_are_read_as_names() -> None:
    found = read_turtle(
        """ex:1 a skos:Concept ; rdfs:label "one" .
           ex:2 a skos:Concept ; skos:prefLabel "two" ; rdfs:label "the second" .
           ex:3 a skos:Concept ; skosxl:altLabel [ skosxl:literalForm "drei"@de ] ; skos:prefLabel "three" ."""
    )
    assert [found[name].fields["name"] for name in "123"] == ["one", "two", "three"]
    assert Statement("rdfs:label", Text("the second")) in found["2"].statements
    assert found["3"].aliases == (build_alias("drei", "de"),)


def test_hierarchies_are_read_in_either_direction() -> None:
    found = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:narrower ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ."""
    )
    assert found["1"].relations == frozenset()
    assert found["2"].relation_targets == {"KINDOF": ["https://example.org/1"]}


def test_deprecated_concepts_are_retired() -> None:
    found = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; owl:deprecated true ; dct:isReplacedBy ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ."""
    )
    assert (found["1"].state, found["1"].replaced_by) == (RecordState.RETIRED, "https://example.org/2")
    assert found["2"].state == RecordState.PUBLISHED


def test_content_that_the_main_vocabulary_cannot_hold_is_counted() -> None:
    text = """ex:s a skos:ConceptScheme ; dct:license <http://licences.example/by> .
        ex:1 a skos:Concept ; skos:prefLabel "one" ; skos:inScheme ex:s .
        ex:some a skos:Collection ; skos:prefLabel "some" ; skos:member ex:1 ."""
    found = read_turtle(text)
    assert list(found) == ["1"]
    assert Statement("skos:inScheme", Reference("https://example.org/s")) in found["1"].statements
    warnings = list_warnings(text)
    for kind in ("ConceptScheme", "Collection"):
        expected = f"is a skos:{kind}, which the schema of main does not have; it was left out"
        assert len([warning for warning in warnings if warning.endswith(expected)]) == 1
    assert "dcterms:license: what the file says about itself, and about what is no term, was left out" in warnings


def test_a_scheme_with_a_similar_iri_does_not_turn_foreign_concepts_into_local_records() -> None:
    found = read_turtle(
        """<https://x.example/task> a skos:ConceptScheme .
           <https://x.example/id/trm_1> a skos:Concept ; skos:prefLabel "dog" ;
               skos:inScheme <https://x.example/task> ."""
    )
    assert found["trm_1"].id == "https://x.example/id/trm_1"
    assert found["trm_1"].collection is CONCEPT


def test_statements_of_a_record_may_be_scattered() -> None:
    records = [build_concept(f"trm_{number}", fields={"alias": "a, b"}) for number in range(20)]
    lines = write_records(records, "ntriples", VOCABULARY).splitlines(keepends=True)
    whole, scattered = (
        read_file(b"".join(order), "ntriples", VOCABULARY).records for order in (lines, lines[::2] + lines[1::2])
    )
    assert {name: to_content(record) for name, record in scattered.items()} == {
        name: to_content(record) for name, record in whole.items()
    }


@pytest.mark.parametrize("format", SYNTAXES)
def test_an_empty_catalogue_is_exported_as_a_document_without_records(format: str) -> None:
    assert read_file(write_records([], format, VOCABULARY), format, VOCABULARY) == ({}, ["has no records"], [], [])
