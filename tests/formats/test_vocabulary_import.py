"""Import of RDF and OBO into vocabularies: all content is kept, and other vocabularies do not change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from lexarium.domain.change import Action
from lexarium.domain.errors import Conflict, ImportRejected, InvalidInput
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import Record, RecordState
from lexarium.domain.statement import Node, Text, Value
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.services.vocabularies.access import find_record_id, get_read_scope
from lexarium.services.vocabularies.conformance import check_conformance
from lexarium.services.vocabularies.head_records import create_vocabulary
from lexarium.store import change_log
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from tests.formats.test_linkml_instances import SCHEMA
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import run_cli
from tests.support.vocabularies import remove_vocabulary, restore_vocabulary, update_vocabulary

ImportText = Callable[..., ImportReport]

PREFIXES = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix ex: <https://example.org/terms/> .
"""
THESAURUS = (
    PREFIXES
    + """
ex:scheme a skos:ConceptScheme ; dct:title "Colours"@en, "Farben"@de ; dct:license <https://example.org/by> .
ex:red a skos:Concept ; skos:inScheme ex:scheme ; skos:prefLabel "red"@en, "rot"@de ; skos:altLabel "crimson"@en ;
    skos:broader ex:colour ; skos:scopeNote "Not pink."@en ; ex:wavelength 700 .
ex:colour a skos:Concept ; skos:prefLabel "colour"@en ; skos:narrower ex:blue .
ex:blue a skos:Concept ; skos:prefLabel "blue"@en ; skos:exactMatch <https://other.example/c/blau> .
"""
)
ONTOLOGY = """format-version: 1.4
ontology: test/colours

[Term]
id: COL:0001
name: red
alt_id: COL:0009
def: "The colour of blood." [PMID:1]
synonym: "crimson" NARROW poetic [COL:curators]
xref: WIKI:Red "the article"
is_a: COL:0002 {source="me"} ! colour
relationship: RO:0002202 COL:0002 ! colour

[Term]
id: COL:0002
name: colour

[Term]
id: COL:0003
is_obsolete: true
name: rouge
replaced_by: COL:0001
"""


@pytest.fixture
def import_text(database: Database, tmp_path: Path) -> ImportText:
    """Return a function that imports a text as a file of this name."""

    def run(name: str, text: str, vocabulary: str | None = None, **options: object) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return import_resource_files(database, ImportRequest([path], vocabulary or "", **options))  # type: ignore[arg-type]

    return run


def read(database: Database, record_id: str) -> Record:
    return database.run_read(get_record, record_id).record


def test_an_import_creates_the_vocabulary_described_by_its_file(database: Database, import_text: ImportText) -> None:
    report = import_text("colours.ttl", THESAURUS, "colours")
    assert (report.vocabulary, report.is_new_vocabulary) == ("colours", True)
    assert report.created == {"concept": 3, "concept_scheme": 1}
    vocabulary = VOCABULARIES["colours"]
    assert (vocabulary.schema_source, vocabulary.title, vocabulary.languages) == ("skos", "Colours", ("en", "de"))
    assert vocabulary.prefixes == {"colours": "https://example.org/terms/"}
    red = read(database, "colours\x1fcolours:red")
    assert red.iri == "https://example.org/terms/red"
    assert (red.fields["name"], red.translated_names) == ("red", {"de": "rot"})
    assert [alias.text for alias in red.aliases] == ["crimson"]
    assert red.relation_targets["broader"] == ["colours:colour"]
    assert check_database(database).problems == []


def test_an_inverse_relation_is_stored_once_at_the_narrower_end(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    assert read(database, "colours\x1fcolours:blue").relation_targets["broader"] == ["colours:colour"]
    assert "narrower" not in read(database, "colours\x1fcolours:colour").relation_targets


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_mapping_never_identifies_a_record(
    database: Database, import_text: ImportText, order: tuple[str, str]
) -> None:
    texts = {
        "a": PREFIXES + '<https://a.example/1> a skos:Concept ; skos:prefLabel "A"@en ;'
        " skos:exactMatch <https://b.example/1> .",
        "b": PREFIXES + '<https://b.example/1> a skos:Concept ; skos:prefLabel "B"@en .',
    }
    for slug in order:
        import_text(f"{slug}.ttl", texts[slug], slug)
    a, b = read(database, "a\x1fa:1"), read(database, "b\x1fb:1")
    assert (a.fields["name"], b.fields["name"]) == ("A", "B")
    assert a.relation_targets["exactMatch"] == ["https://b.example/1"]


def test_two_vocabularies_may_use_the_same_ids(database: Database, import_text: ImportText) -> None:
    import_text("one.obo", ONTOLOGY, "one")
    import_text("two.obo", ONTOLOGY.replace("name: red", "name: scarlet"), "two")
    assert read(database, "one\x1fCOL:0001").fields["name"] == "red"
    assert read(database, "two\x1fCOL:0001").fields["name"] == "scarlet"


def test_an_ontology_keeps_synonym_types_sources_and_obsolete_terms(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    red, rouge = read(database, "colours\x1fCOL:0001"), read(database, "colours\x1fCOL:0003")
    assert red.alternative_ids == ("http://purl.obolibrary.org/obo/COL_0001", "COL:0009")
    assert [(alias.text, alias.scope) for alias in red.aliases] == [("crimson", "narrow")]
    assert red.relation_targets["RO:0002202"] == ["COL:0002"]
    assert (rouge.state, rouge.replaced_by) == (RecordState.RETIRED, "colours\x1fCOL:0001")


@pytest.mark.parametrize(("name", "text"), [("colours.ttl", THESAURUS), ("colours.obo", ONTOLOGY)])
def test_reimporting_a_file_changes_nothing(import_text: ImportText, name: str, text: str) -> None:
    import_text(name, text, "colours")
    assert not import_text(name, text, "colours").has_changes


def test_an_update_removes_statements_that_the_file_no_longer_has(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    import_text("colours.ttl", THESAURUS.replace(' ; skos:altLabel "crimson"@en', ""), "colours")
    assert read(database, "colours\x1fcolours:red").aliases == ()


def test_another_source_adds_but_never_removes_statements(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    addition = PREFIXES + 'ex:other a skos:ConceptScheme . ex:red a skos:Concept ; skos:altLabel "scarlet"@en .'
    import_text("more.ttl", addition, "colours")
    assert {alias.text for alias in read(database, "colours\x1fcolours:red").aliases} == {"crimson", "scarlet"}
    import_text("colours.ttl", THESAURUS.replace("Not pink.", "Never pink."), "colours")
    assert {alias.text for alias in read(database, "colours\x1fcolours:red").aliases} == {"crimson", "scarlet"}


def test_a_dry_run_creates_neither_records_nor_the_vocabulary(database: Database, import_text: ImportText) -> None:
    report = import_text("colours.ttl", THESAURUS, "colours", dry_run=True)
    assert report.created["concept"] == 3
    assert "colours" not in VOCABULARIES


def test_a_file_that_does_not_match_the_schema_is_rejected_with_its_own_identifiers(import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    with pytest.raises(ImportRejected) as refusal:
        import_text("colours.obo", ONTOLOGY, "colours")
    assert any("COL:0001" in problem.message for problem in refusal.value.problems)


@pytest.mark.parametrize("format", ["skos", "rdfxml", "ntriples", "jsonld", "linkml"])
def test_importing_an_export_changes_nothing(database: Database, import_text: ImportText, format: str) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections)).decode()
    report = import_text(f"again{FORMATS[format].extensions[0]}", text, "colours")
    assert (report.created, report.updated, report.retired) == ({}, {}, {})


def test_an_ontology_is_exported_as_obo_unchanged(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS["obo"], vocabulary.collections)).decode()
    assert 'synonym: "crimson" NARROW poetic [COL:curators]' in text
    assert 'xref: WIKI:Red "the article"' in text
    assert 'is_a: COL:0002 {source="me"}' in text
    report = import_text("again.obo", text, "colours")
    assert not report.has_changes


def test_an_ontology_is_unchanged_after_a_round_trip_through_linkml(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS["linkml"], vocabulary.collections)).decode()
    assert '"is_a":["COL:0002"]' in text
    assert not import_text("again.json", text, "colours").has_changes


def test_a_vocabulary_is_unchanged_with_its_history_after_a_round_trip_through_json_lines(
    database: Database, import_text: ImportText, tmp_path: Path
) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    import_text("colours.ttl", THESAURUS.replace("Not pink.", "Never pink."), "colours")
    vocabulary = VOCABULARIES["colours"]
    path = tmp_path / "colours.jsonl"
    path.write_bytes(b"".join(export_records(database, vocabulary, FORMATS["jsonl"], vocabulary.collections)))
    assert b"\\u001f" not in path.read_bytes()
    with database.write() as transaction:
        create_vocabulary(transaction, SYSTEM_USER_ID, "copy", {"schema": "skos", "languages": ["en", "de"]})
    report = import_files(database, [path], vocabulary=VOCABULARIES["copy"])
    assert sum(report.created.values()) == 4
    original, copy = read(database, "colours\x1fcolours:red"), read(database, "copy\x1fcolours:red")
    assert (copy.statements, copy.iri) == (original.statements, original.iri)
    assert not import_files(database, [path], vocabulary=VOCABULARIES["copy"]).has_changes


@pytest.mark.parametrize(
    "identifier",
    ["COL:0001", "http://purl.obolibrary.org/obo/COL_0001", "COL:0009", "http://localhost:8000/id/COL%3A0001"],
)
def test_a_record_is_found_by_id_iri_and_alternative_id(
    database: Database, import_text: ImportText, identifier: str
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    with database.read() as snapshot:
        assert find_record_id(snapshot, identifier, get_read_scope(None)) == "colours\x1fCOL:0001"


OTHER_HEADER = """format-version: 1.4
data-version: 2026-01
date: 01:02:2026 10:00
subsetdef: slim "A small subset"
synonymtypedef: poetic "Poetic name" NARROW
idspace: COL http://example.org/COL_
property_value: http://purl.org/dc/terms/title "Colours of things" xsd:string
remark: Only for tests.
ontology: test/colours
"""
CLASSES = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .
<http://purl.obolibrary.org/obo/test/colours.owl> a owl:Ontology ; rdfs:label "Colours" ; owl:versionInfo "7" .
oio:hasExactSynonym a owl:AnnotationProperty .
obo:COL_0001 a owl:Class ; rdfs:label "red"@en ; obo:IAO_0000115 "The colour of blood."@en ;
    rdfs:subClassOf obo:COL_0002 ,
        [ a owl:Restriction ; owl:onProperty obo:RO_0002202 ; owl:someValuesFrom obo:COL_0002 ] .
[] a owl:Axiom ; owl:annotatedSource obo:COL_0001 ; owl:annotatedProperty obo:IAO_0000115 ;
    owl:annotatedTarget "The colour of blood."@en ; oio:hasDbXref "PMID:1" .
obo:COL_0002 a owl:Class ; rdfs:label "colour"@en .
"""


def export(database: Database, slug: str, format: str) -> str:
    vocabulary = VOCABULARIES[slug]
    return b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections)).decode()


def parse_rdf(text: str, format: RdfFormat) -> set[str]:
    dataset = Dataset(parse(text, format))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad.triple) for quad in dataset}


def retire_record(database: Database, record_id: str) -> None:
    """Retire a record as a user does."""
    with database.write() as transaction:
        change = change_log.find_latest(transaction.flush(), [record_id])[record_id]
        write = RecordWrite(replace(change.to_record(), state=RecordState.RETIRED), change.version + 1, Action.RETIRE)
        change_log.save_records(transaction, [write], actor="usr_1", at=0)


def get_head(database: Database, slug: str) -> Record:
    return read(database, f"\x1f{slug}")


def test_the_file_determines_its_vocabulary(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "anything.obo"
    path.write_text(ONTOLOGY, encoding="utf-8")
    first, second = (run_import(database, ImportRequest([path])) for _ in range(2))
    assert (first.vocabulary, first.is_new_vocabulary) == ("colours", True)
    assert (second.vocabulary, second.is_new_vocabulary, second.has_changes) == ("colours", False, False)


@pytest.mark.parametrize(
    ("iri", "slug"),
    [
        ("https://example.org/plants/scheme", "plants"),
        ("https://example.org/plants#Scheme", "plants"),
        ("https://example.org/plants/1.0/", "plants"),
        ("https://example.org/scheme", "garden"),
        ("https://example.org/vocabulary/thesaurus", "garden"),
        ("https://plants.org/", "plants"),
    ],
)
def test_a_generic_end_of_an_iri_does_not_name_the_vocabulary(import_text: ImportText, iri: str, slug: str) -> None:
    text = f'<{iri}> a skos:ConceptScheme . <https://example.org/1> a skos:Concept ; skos:prefLabel "rose" .'
    assert import_text("garden.ttl", PREFIXES + text).vocabulary == slug
    assert import_text("other.ttl", PREFIXES + text).vocabulary == slug


def test_a_file_without_an_identity_requires_the_vocabulary_option(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "anything.obo"
    path.write_text(ONTOLOGY.replace("ontology: test/colours\n", ""), encoding="utf-8")
    with pytest.raises(InvalidInput, match="choose one with --vocabulary"):
        run_import(database, ImportRequest([path]))


def test_another_ontology_of_the_same_name_requires_the_vocabulary_option(import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    with pytest.raises(InvalidInput, match="--vocabulary"):
        import_text("other.obo", ONTOLOGY.replace("test/colours", "other/colours"))


def test_files_of_different_kinds_cannot_be_imported_together(database: Database, tmp_path: Path) -> None:
    ontology, table = tmp_path / "colours.obo", tmp_path / "concept.csv"
    ontology.write_text(ONTOLOGY, encoding="utf-8")
    table.write_text("name\nmemory\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="one after the other"):
        run_import(database, ImportRequest([ontology, table]))


def test_an_rdf_or_obo_export_of_the_main_vocabulary_is_imported_back_into_it(
    database: Database, tmp_path: Path
) -> None:
    table = tmp_path / "concept.csv"
    table.write_text("name\nmemory\n", encoding="utf-8")
    run_import(database, ImportRequest([table]))
    for name in ("skos", "rdfxml", "ntriples", "jsonld", "obo", "owl"):
        path = tmp_path / f"main{FORMATS[name].extensions[0]}"
        path.write_text(export(database, "main", name), encoding="utf-8")
        report = run_import(database, ImportRequest([path]))
        assert (name, report.vocabulary, report.has_changes) == (name, "main", False)


def test_the_header_of_an_obo_file_is_exported(database: Database, import_text: ImportText) -> None:
    text = ONTOLOGY.replace("format-version: 1.4\nontology: test/colours\n", OTHER_HEADER)
    import_text("colours.obo", text)
    assert VOCABULARIES["colours"].title == "Colours of things"
    header = export(database, "colours", "obo").partition("\n\n")[0]
    assert set(header.splitlines()) == set(OTHER_HEADER.strip().splitlines())


def test_an_ontology_is_exported_as_rdf_with_every_triple(database: Database, import_text: ImportText) -> None:
    import_text("colours.owl", CLASSES)
    assert VOCABULARIES["colours"].title == "Colours"
    written = parse_rdf(export(database, "colours", "owl"), RdfFormat.RDF_XML)
    assert written == parse_rdf(CLASSES, RdfFormat.TURTLE)


def test_inverse_statements_of_a_scheme_are_exported_in_both_directions(
    database: Database, import_text: ImportText
) -> None:
    text = THESAURUS.replace("skos:broader ex:colour ;", "skos:broader ex:colour ; skos:topConceptOf ex:scheme ;")
    text += "ex:scheme skos:hasTopConcept ex:red . ex:colour skos:narrower ex:red . ex:blue skos:broader ex:colour ."
    import_text("colours.ttl", text, "colours")
    written = parse_rdf(export(database, "colours", "skos"), RdfFormat.TURTLE)
    assert written == parse_rdf(text, RdfFormat.TURTLE)


def test_obo_and_owl_of_one_ontology_agree(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY.replace(' {source="me"}', ""))
    report = import_text("colours.owl", CLASSES, mode=ImportMode.ADD)
    changed = {change.field for item in report.affected["updated"] for change in item.changes}
    assert (report.vocabulary, report.created, changed) == ("colours", {}, set())


@pytest.mark.parametrize("format", ["obo", "owl"])
def test_a_thesaurus_can_be_exported_as_an_ontology(database: Database, import_text: ImportText, format: str) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    text = export(database, "colours", format)
    import_text(f"copy.{format}", text, "copy")
    prefix = "colours" if format == "obo" else "copy"
    red = read(database, f"copy\x1f{prefix}:red")
    assert (red.fields["name"], red.collection.local_name) == ("red", "term")
    assert {("crimson", "en"), ("rot", "de")} <= {
        *((alias.text, alias.lang) for alias in red.aliases),
        *((name, lang) for lang, name in red.translated_names.items()),
    }
    assert red.relation_targets["is_a"] == [f"{prefix}:colour"]


def test_metadata_of_a_newer_edition_replaces_that_of_the_previous_one(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.owl", CLASSES)
    import_text("colours.owl", CLASSES.replace('"7"', '"8"'))
    versions = [
        item.value[0] for item in get_head(database, "colours").statements if item.predicate == "owl:versionInfo"
    ]
    assert versions == ["8"]


def test_the_add_mode_removes_nothing(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    text = THESAURUS.replace('skos:altLabel "crimson"@en', 'skos:altLabel "ruby"@en').replace('"red"@en', '"Red"@en')
    report = import_text("colours.ttl", text, "colours", mode=ImportMode.ADD)
    red = read(database, "colours\x1fcolours:red")
    assert {alias.text for alias in red.aliases} == {"crimson", "ruby"}
    assert (red.fields["name"], report.conflicts.count) == ("red", 1)


def test_an_update_keeps_statements_imported_in_add_mode(database: Database, import_text: ImportText) -> None:
    header = "ontology: test/colours\n\n"
    red = "[Term]\nid: COL:0001\nname: Red\nxref: WIKI:Rouge\nis_obsolete: true\n\n"
    teal = '[Term]\nid: COL:0007\nname: teal\nsynonym: "petrol" EXACT []\n'
    import_text("colours.obo", ONTOLOGY)
    import_text("more.obo", header + red + teal, mode=ImportMode.ADD)
    assert not import_text("colours.obo", ONTOLOGY).has_changes
    newer = ONTOLOGY.replace("name: red", "name: scarlet\nis_obsolete: true")
    report = import_text("colours.obo", f"{newer}\n[Term]\nid: COL:0007\nname: Teal\n")
    scarlet, teal_record = read(database, "colours\x1fCOL:0001"), read(database, "colours\x1fCOL:0007")
    names = [scarlet.fields["name"], teal_record.fields["name"]]
    assert (names, report.conflicts.count) == (["scarlet", "Teal"], 0)
    assert "WIKI:Rouge" in {item.value[0] for item in scarlet.statements}
    assert scarlet.state == RecordState.RETIRED
    assert [alias.text for alias in teal_record.aliases] == ["petrol"]


def test_the_replace_mode_retires_records_that_the_source_no_longer_has(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY)
    without = ONTOLOGY[: ONTOLOGY.index("[Term]\nid: COL:0002")] + "[Term]\nid: COL:0003\nname: rouge\n"
    assert import_text("colours.obo", without).retired == {}
    report = import_text("colours.obo", without, mode=ImportMode.REPLACE)
    assert [item.id for item in report.affected["retired"]] == ["COL:0002"]
    assert read(database, "colours\x1fCOL:0002").state == RecordState.RETIRED


def test_the_replace_mode_keeps_records_of_other_sources(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    import_text("more.obo", "format-version: 1.4\nontology: more\n\n[Term]\nid: COL:0007\nname: teal\n", "colours")
    assert import_text("colours.obo", ONTOLOGY, mode=ImportMode.REPLACE).retired == {}


def test_two_files_of_one_import_are_separate_sources(database: Database, tmp_path: Path) -> None:
    paths = [tmp_path / "colours.obo", tmp_path / "more.obo"]
    paths[0].write_text(ONTOLOGY, encoding="utf-8")
    addition = 'format-version: 1.4\nontology: more\n\n[Term]\nid: COL:0001\nsynonym: "scarlet" EXACT []\n'
    paths[1].write_text(addition, encoding="utf-8")
    run_import(database, ImportRequest(paths, "colours"))
    run_import(database, ImportRequest(paths[:1], "colours"))
    assert {alias.text for alias in read(database, "colours\x1fCOL:0001").aliases} == {"crimson", "scarlet"}
    paths[1].write_text(addition.replace("scarlet", "ruby"), encoding="utf-8")
    run_import(database, ImportRequest(paths[1:], "colours"))
    assert {alias.text for alias in read(database, "colours\x1fCOL:0001").aliases} == {"crimson", "ruby"}


def test_a_statement_of_two_sources_is_kept_if_one_of_them_drops_it(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY)
    more = "format-version: 1.4\nontology: more\n\n[Term]\nid: COL:0001\nxref: WIKI:Rouge\n"
    import_text("more.obo", more, "colours")
    import_text("colours.obo", ONTOLOGY.replace("is_a:", "xref: WIKI:Rouge\nis_a:"))
    import_text("colours.obo", ONTOLOGY)
    red = read(database, "colours\x1fCOL:0001")
    assert "WIKI:Rouge" in {item.value[0] for item in red.statements if item.predicate == "oboInOwl:hasDbXref"}


def test_repeated_stanzas_are_merged(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", f'{ONTOLOGY}\n[Term]\nid: COL:0001\ndef: "" []\nxref: WIKI:Rouge\n')
    red = read(database, "colours\x1fCOL:0001")
    assert red.definition == "The colour of blood."
    assert {item.value[0] for item in red.statements if item.predicate == "oboInOwl:hasDbXref"} == {
        "WIKI:Red",
        "WIKI:Rouge",
    }


def test_a_file_without_classes_adds_statements_to_existing_records(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.owl", CLASSES)
    text = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix obo: <http://purl.obolibrary.org/obo/> .
    obo:COL_0001 rdfs:label "rot"@de . obo:COL_0009 rdfs:label "lila"@de ."""
    report = import_text("german.ttl", text, "colours")
    assert read(database, "colours\x1fCOL:0001").translated_names == {"de": "rot"}
    (kind,) = report.warnings.kinds
    assert (kind.count, kind.is_loss) == (1, True)
    assert "COL:0009" in kind.examples[0].detail


def test_a_file_in_an_additional_language_changes_only_that_language(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    before = read(database, "colours\x1fcolours:red")
    text = (
        PREFIXES
        + """ex:scheme a skos:ConceptScheme .
    ex:red a skos:Concept ; skos:prefLabel "rouge"@fr ; skos:altLabel "vermeil"@fr .
    ex:blue a skos:Concept ; skos:prefLabel "bleu"@fr ."""
    )
    report = import_text("french.ttl", text, "colours")
    red = read(database, "colours\x1fcolours:red")
    assert (report.updated, report.created) == ({"concept": 2}, {})
    assert set(before.statements) < set(red.statements)
    assert red.translated_names == {"de": "rot", "fr": "rouge"}
    import_text("french.ttl", text.replace("vermeil", "carmin"), "colours")
    texts = [alias.text for alias in read(database, "colours\x1fcolours:red").aliases]
    assert sorted(texts) == ["carmin", "crimson"]


def test_a_title_in_a_language_that_is_given_leaves_the_others(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    translation = THESAURUS.replace('"@en', '"').replace('"Colours"', '"Farben"').replace('"red", "rot"@de', '"rot"')
    report = import_text("colours-de.ttl", translation, "colours", language="de")
    scheme = read(database, "colours\x1fcolours:scheme")
    for record in scheme, get_head(database, "colours"):
        titles = [item.value for item in record.statements if item.predicate == "dcterms:title"]
        assert set(titles) == {Text("Colours", "en"), Text("Farben", "de")}
    assert report.conflicts.count == 0


def test_terms_that_only_a_translation_has_are_counted(database: Database, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("french.ttl", "german.csv", "colours.ttl")]
    files[0].write_text(
        f'{PREFIXES} ex:scheme a skos:ConceptScheme . ex:new a skos:Concept ; skos:prefLabel "nouveau"@fr .'
    )
    files[1].write_text("id,name@de\ncolours:new,neu\ncolours:none,nichts\n")
    files[2].write_text(THESAURUS)
    run_import(database, ImportRequest(files[2:], "colours"))
    report = run_import(database, ImportRequest(files[:2], "colours"))
    assert (report.created, report.skipped, [kind.count for kind in report.warnings.kinds]) == ({}, 3, [3])
    files[2].write_text(THESAURUS + 'ex:new a skos:Concept ; skos:prefLabel "new"@en .')
    report = run_import(database, ImportRequest(files, "colours"))
    assert (report.created, report.skipped) == ({"concept": 1}, 1)
    assert read(database, "colours\x1fcolours:new").translated_names == {"fr": "nouveau", "de": "neu"}


def test_a_translation_replaces_no_value_in_another_language(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    text = "ontology: test/colours\n\n[Term]\nid: COL:0001\nname: rot\ncreated_by: Eva\n"
    import_text("other.obo", ONTOLOGY.replace("name: red", "name: red\ncreated_by: Ada"))
    report = import_text("colours-de.obo", text, language="de")
    authors = [item.value[0] for item in read(database, "colours\x1fCOL:0001").statements if "creat" in item.predicate]
    assert (authors, report.conflicts.count) == (["Ada"], 1)


def test_texts_without_a_language_get_the_given_language(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    spanish = "format-version: 1.4\nontology: test/colours\n\n[Term]\nid: COL:0001\nname: rojo\n"
    import_text("spanish.obo", spanish, language="es")
    red = read(database, "colours\x1fCOL:0001")
    assert (red.fields["name"], red.translated_names, red.definition) == ("red", {"es": "rojo"}, "The colour of blood.")


def test_the_given_language_reaches_texts_that_are_nodes(database: Database, import_text: ImportText) -> None:
    prefixes = """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        @prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> ."""
    concept = """ex:red a skos:Concept ; skos:prefLabel "rouge"@fr ; ex:size [ rdf:value "3" ] ;
        skos:definition [ rdf:value "La couleur du sang." ; dct:creator "Ada" ] ; skosxl:altLabel ex:label .
        ex:label a skosxl:Label ; skosxl:literalForm "vermeil" ."""

    def list_nodes() -> dict[str, list[set[Value]]]:
        nodes: dict[str, list[set[Value]]] = {}
        for predicate, value, _ in read(database, "colours\x1fcolours:red").statements:
            if isinstance(value, Node):
                nodes.setdefault(predicate, []).append({item.value for item in value.statements})
        return nodes

    import_text("colours.ttl", THESAURUS, "colours")
    import_text("french.ttl", PREFIXES + prefixes + concept, "colours", language="fr")
    found = list_nodes()
    assert found["skos:definition"] == [{Text("La couleur du sang.", "fr"), Text("Ada")}]
    assert found["https://example.org/terms/size"] == [{Text("3")}]
    assert [alias.lang for alias in read(database, "colours\x1fcolours:red").aliases] == ["en", "fr"]
    import_text("french.ttl", PREFIXES + prefixes + concept.replace("sang", "vin"), "colours", language="fr")
    assert list_nodes()["skos:definition"] == [{Text("La couleur du vin.", "fr"), Text("Ada")}]


def test_a_file_in_add_mode_never_removes_statements(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS.replace("ex:scheme a skos:ConceptScheme", "ex:scheme a ex:Thing"), "colours")
    before = read(database, "colours\x1fcolours:red")
    import_text("more.ttl", PREFIXES + 'ex:red skos:altLabel "ruby"@en .', "colours")
    import_text("most.ttl", PREFIXES + 'ex:red skos:altLabel "scarlet"@en .', "colours")
    after = read(database, "colours\x1fcolours:red")
    assert set(before.statements) < set(after.statements)
    assert {"ruby", "scarlet"} < {alias.text for alias in after.aliases}


def test_updating_the_first_file_keeps_a_translation_of_the_same_scheme(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    french = 'ex:scheme a skos:ConceptScheme . ex:red a skos:Concept ; skos:prefLabel "rouge"@fr .'
    import_text("french.ttl", PREFIXES + french, "colours")
    assert VOCABULARIES["colours"].title == "Colours"
    report = import_text("colours.ttl", THESAURUS.replace('"red"@en', '"Red"@en'), "colours")
    red = read(database, "colours\x1fcolours:red")
    assert (red.fields["name"], red.translated_names, report.conflicts.count) == (
        "Red",
        {"de": "rot", "fr": "rouge"},
        0,
    )


def test_an_ontology_keeps_statements_of_an_earlier_table(database: Database, import_text: ImportText) -> None:
    import_text("colours.csv", "id,name,alt_label\ncolours:red,red,ruby\n", "colours")
    import_text("colours.ttl", THESAURUS.replace("@prefix", "@prefix colours: <urn:x:> .\n@prefix", 1), "colours")
    import_text("colours.ttl", THESAURUS, "colours")
    records = [read(database, record_id) for record_id in ("colours\x1fcolours:red",)]
    assert any(alias.text == "ruby" for record in records for alias in record.aliases)


def test_a_locally_retired_record_stays_retired(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    retire_record(database, "colours\x1fCOL:0002")
    import_text("colours.obo", ONTOLOGY.replace("name: colour", "name: color"))
    colour = read(database, "colours\x1fCOL:0002")
    assert (colour.state, colour.fields["name"]) == (RecordState.RETIRED, "color")


def test_a_replacement_added_by_a_newer_edition_is_imported(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY.replace("replaced_by: COL:0001\n", ""))
    import_text("colours.obo", ONTOLOGY)
    assert read(database, "colours\x1fCOL:0003").replaced_by == "colours\x1fCOL:0001"


def test_the_replace_mode_removes_only_statements_of_the_source_from_other_records(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY)
    more = 'format-version: 1.4\nontology: more\n\n[Term]\nid: COL:0002\nsynonym: "hue" EXACT []\n'
    import_text("more.obo", more, "colours")
    other = "format-version: 1.4\nontology: more\n\n[Term]\nid: COL:0008\nname: teal\n"
    report = import_text("more.obo", other, "colours", mode=ImportMode.REPLACE)
    colour = read(database, "colours\x1fCOL:0002")
    assert (report.retired, colour.state, colour.aliases) == ({}, RecordState.PUBLISHED, ())


def test_names_without_a_language_are_in_the_default_language(database: Database, import_text: ImportText) -> None:
    text = THESAURUS.replace('"red"@en, "rot"@de', '"red"').replace("@en", "").replace('"crimson"', '"carmin"@fr')
    import_text("colours.ttl", text, "colours")
    assert VOCABULARIES["colours"].languages == ("en", "fr")
    import_text("colours.ttl", text.replace(' ; skos:altLabel "carmin"@fr', ""), "colours")
    assert read(database, "colours\x1fcolours:red").aliases == ()


def test_warnings_are_counted_by_kind_with_losses_first(import_text: ImportText) -> None:
    text = THESAURUS.replace('"colour"@en', '"colour"@en, "color"@en').replace('"blue"@en', '"blue"@en, "Blue"@en')
    text = text.replace("ex:wavelength 700 .", "ex:wavelength 700 ; skos:related ex:colour .")
    report = import_text("colours.ttl", text, "colours")
    assert [(kind.message.partition(";")[0], kind.count) for kind in report.warnings.kinds] == [
        ("has several names in one language", 2),
        ("is related to a concept that is also broader", 1),
    ]
    assert [problem.detail.partition(" ")[0] for problem in report.warnings.kinds[0].examples] == [
        "colours:colour:",
        "colours:blue:",
    ]


def test_a_dry_run_lists_the_changes_of_each_field(import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    report = import_text("colours.ttl", THESAURUS.replace("Not pink.", "Never pink."), "colours", dry_run=True)
    (item,) = report.affected["updated"]
    assert [(change.removed, change.added) for change in item.changes] == [(["Not pink. (en)"], ["Never pink. (en)"])]


def test_a_dry_run_shows_what_would_change_in_the_metadata(import_text: ImportText) -> None:
    import_text("colours.owl", CLASSES)
    report = import_text("colours.owl", CLASSES.replace('"7"', '"8"'), dry_run=True)
    assert [(item.field, item.removed, item.added) for item in report.metadata] == [("owl:versionInfo", ["7"], ["8"])]
    assert report.has_changes


def test_values_that_only_qualifiers_tell_apart_are_shown_with_them(import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    report = import_text("colours.obo", ONTOLOGY.replace("[PMID:1]", "[PMID:1, PMID:2]"))
    [[change]] = [item.changes for item in report.affected["updated"]]
    assert change.removed == ["The colour of blood. [oboInOwl:hasDbXref PMID:1]"]
    assert change.added == ["The colour of blood. [oboInOwl:hasDbXref PMID:1; oboInOwl:hasDbXref PMID:2]"]


def test_a_class_missing_from_the_schema_is_reported_with_its_article(import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    text = """
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    <https://example.org/terms/mauve> a owl:Class ; skos:prefLabel "mauve"@en .
    """
    with pytest.raises(ImportRejected) as error:
        import_text("classes.ttl", text, "colours")
    [problem] = error.value.problems
    assert problem.detail == "colours:mauve is an owl:Class, which the schema of colours does not have"


def test_nothing_is_imported_into_a_removed_vocabulary(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    remove_vocabulary(database, "colours")
    with pytest.raises(Conflict, match="The vocabulary colours is removed"):
        import_text("colours.ttl", THESAURUS, "colours")
    restore_vocabulary(database, "colours")
    assert not import_text("colours.ttl", THESAURUS, "colours").updated


@pytest.mark.parametrize("order", [("a.obo", "b.obo"), ("b.obo", "a.obo")])
def test_the_last_file_of_an_import_sets_single_valued_statements(
    database: Database, tmp_path: Path, order: tuple[str, str]
) -> None:
    header = "format-version: 1.4\nontology: test/colours\n\n[Term]\nid: COL:1\n"
    (tmp_path / "a.obo").write_text(f'{header}name: red\nsynonym: "crimson" EXACT []\ncreated_by: ada\n')
    (tmp_path / "b.obo").write_text(f'{header}name: scarlet\nsynonym: "rouge" EXACT []\n')
    report = run_import(database, ImportRequest([tmp_path / name for name in order]))
    record = read(database, "colours\x1fCOL:1")
    assert record.fields["name"] == {"a.obo": "red", "b.obo": "scarlet"}[order[-1]]
    assert {alias.text for alias in record.aliases} == {"crimson", "rouge"}
    assert record.fields["created_by"] == "ada"
    [warning] = report.warnings.kinds
    assert warning.message == "has values that differ between the files; those of the last file were used"


def test_an_empty_name_beside_another_one_is_left_out_and_reported(import_text: ImportText) -> None:
    extended = THESAURUS + '<https://example.org/terms/empty> a skos:Concept ; skos:prefLabel ""@en , "full"@en .\n'
    report = import_text("colours.ttl", extended, "colours")
    assert ("has an empty value beside another one; the empty one was left out", True) in {
        (kind.message, kind.is_loss) for kind in report.warnings.kinds
    }


def test_the_command_counts_content_that_obo_cannot_express(tmp_path: Path) -> None:
    thesaurus = tmp_path / "pets.ttl"
    thesaurus.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix ex: <https://example.org/pets/> .\n"
        'ex:dog a skos:Concept ; skos:prefLabel "dog"@en ; skos:note [ ex:shows ex:dog ] .\n',
        encoding="utf-8",
    )
    options = "--vocabulary", "pets", "--database", f"sqlite:///{tmp_path}/catalogue.db"
    assert run_cli("import", thesaurus, *options).returncode == 0
    exported = run_cli("export", *options, "-o", tmp_path / "pets.obo")
    assert exported.returncode == 0
    assert "rdfs:comment of a record is a node and is skipped (pets:dog)" in " ".join(exported.stderr.split())
    assert run_cli("export", *options, "-o", tmp_path / "copy.ttl").stderr == ""


def test_files_of_unknown_formats_in_an_archive_are_skipped(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "release.zip"
    members = {"README.md": "Colours, and more.", "colours.obo": ONTOLOGY, "cover.pdf": "%PDF-1.7", "notes": "All."}
    with ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    report = run_import(database, ImportRequest([path]))
    assert (report.vocabulary, report.created["term"]) == ("colours", 3)
    skipped = [item for item in report.warnings.items if "was skipped" in item.detail]
    assert [item.field for item in skipped] == [f"{path}, {name}" for name in ("README.md", "cover.pdf", "notes")]
    assert "is a PDF document" in skipped[1].detail
    with ZipFile(path, "w") as archive:
        archive.writestr("cover.pdf", members["cover.pdf"])
        archive.writestr("other.pdf", members["cover.pdf"])
    with pytest.raises(ImportRejected) as refusal:
        run_import(database, ImportRequest([path], "colours"))
    assert [problem.field for problem in refusal.value.problems] == [f"{path}, cover.pdf", f"{path}, other.pdf"]


def test_statements_about_triples_are_counted(import_text: ImportText) -> None:
    reified = """
        ex:red skos:altLabel "crimson"@en {| ex:source "a book" |} .
        ex:claim <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( ex:red skos:related ex:blue )>> .
    """
    report = import_text("thesaurus.ttl", THESAURUS + reified)
    [kind] = [kind for kind in report.warnings.kinds if kind.is_loss]
    assert (kind.message, kind.count) == ("a triple about a triple (RDF 1.2) was skipped", 2)
    assert "line " in kind.examples[0].detail


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "".join(f'ex:scheme ex:note "{number}" .\n' for number in range(10_001)),
            "statements; a record can have at most 10,000",
        ),
        (f'ex:scheme ex:note "{"x" * (1 << 20)}" .\n', "bytes; a record can have at most 1,048,576"),
    ],
)
def test_metadata_of_a_vocabulary_has_the_limits_of_a_record(import_text: ImportText, head: str, message: str) -> None:
    with pytest.raises(ImportRejected) as refusal:
        import_text("thesaurus.ttl", THESAURUS + head)
    details = [problem.detail for problem in refusal.value.problems]
    assert any(detail.startswith("the metadata of the vocabulary has") and message in detail for detail in details)


def test_non_utf8_bytes_are_reported_with_their_line(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "colours.obo"
    path.write_bytes(ONTOLOGY.replace("name: red", "name: röt").encode("cp1252"))
    report = run_import(database, ImportRequest([path]))
    assert "line 6 is not UTF-8" in report.warnings.items[0].detail


def test_a_rejected_file_leaves_no_vocabulary(database: Database, import_text: ImportText) -> None:
    with pytest.raises(ImportRejected):
        import_text("colours.obo", f"{ONTOLOGY}no clause\n", "fresh")
    assert "fresh" not in VOCABULARIES


def list_kinds(report: ImportReport) -> dict[str, int]:
    return {kind.message.partition(";")[0]: kind.count for kind in report.warnings.kinds}


def test_members_of_a_collection_are_exported_as_in_skos(database: Database, import_text: ImportText) -> None:
    text = THESAURUS + 'ex:warm a skos:Collection ; skos:prefLabel "warm"@en ; skos:member ex:red .\n'
    import_text("colours.ttl", text, "colours")
    exported = export(database, "colours", "ntriples")
    assert "<https://example.org/terms/warm> <http://www.w3.org/2004/02/skos/core#member>" in exported
    assert "uneskos" not in exported


def test_a_node_of_a_scheme_that_is_an_ontology_is_exported_once(database: Database, import_text: ImportText) -> None:
    text = THESAURUS.replace(
        "a skos:ConceptScheme ;",
        'a skos:ConceptScheme, <http://www.w3.org/2002/07/owl#Ontology> ; dct:creator [ dct:title "Ada" ] ;',
    )
    import_text("colours.ttl", text, "colours")
    assert export(database, "colours", "ntriples").count('"Ada"') == 1


def test_resources_are_concepts_even_if_only_their_superclass_or_scheme_implies_it(
    database: Database, import_text: ImportText
) -> None:
    text = """
        ex:Kind <http://www.w3.org/2000/01/rdf-schema#subClassOf> skos:Concept .
        ex:pale a ex:Kind ; skos:prefLabel "pale"@en .
        ex:dark a ex:Unknown ; skos:inScheme ex:scheme ; skos:prefLabel "dark"@en .
        ex:warm a <http://purl.org/iso25964/skos-thes#ConceptGroup> ; skos:prefLabel "warm"@en .
        """
    report = import_text("colours.ttl", THESAURUS + text, "colours")
    assert report.created == {"concept": 5, "concept_scheme": 1, "collection": 1}
    again = import_text("again.ttl", export(database, "colours", "skos"), "colours")
    assert not again.has_changes


def test_a_relation_to_a_concept_of_another_scheme_is_kept(database: Database, import_text: ImportText) -> None:
    text = THESAURUS + "ex:blue skos:broader <https://other.example/c/hue> .\n"
    import_text("colours.ttl", text, "colours")
    again = import_text("again.ttl", export(database, "colours", "skos"), "colours")
    assert not again.has_changes


def test_xml_literals_declare_their_namespaces(database: Database, import_text: ImportText) -> None:
    text = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:unused="https://example.org/u#"
        xmlns:skos="http://www.w3.org/2004/02/skos/core#"><skos:Concept rdf:about="https://example.org/terms/red">
        <skos:prefLabel xml:lang="en">red</skos:prefLabel>
        <skos:note rdf:parseType="Literal"><p xmlns="http://www.w3.org/1999/xhtml">not <b>pink</b></p></skos:note>
        </skos:Concept></rdf:RDF>"""
    import_text("colours.rdf", text, "colours")
    [note] = [item.value[0] for item in read(database, "colours\x1fcolours:red").statements if "note" in item.predicate]
    assert note == '<p xmlns="http://www.w3.org/1999/xhtml">not <b>pink</b></p>'


def test_subsets_and_synonym_types_of_owl_are_records(database: Database, import_text: ImportText) -> None:
    text = """
        @prefix : <http://purl.obolibrary.org/obo/> .
        @prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :col.owl a owl:Ontology .
        <http://purl.obolibrary.org/obo/col#slim> a owl:AnnotationProperty ; rdfs:subPropertyOf oio:SubsetProperty ;
            rdfs:comment "The main colours." .
        :OMO_1 a owl:AnnotationProperty ; rdfs:subPropertyOf oio:SynonymTypeProperty ; rdfs:label "abbreviation" ;
            oio:hasScope oio:hasExactSynonym .
        :COL_1 a owl:Class ; rdfs:label "red" ; oio:inSubset <http://purl.obolibrary.org/obo/col#slim> ;
            oio:hasExactSynonym "rd" .
        [] a owl:Axiom ; owl:annotatedSource :COL_1 ; owl:annotatedProperty oio:hasExactSynonym ;
            owl:annotatedTarget "rd" ; oio:hasSynonymType :OMO_1 .
        """
    report = import_text("col.ttl", text)
    assert report.created == {"term": 1, "subset_def": 1, "synonym_type_def": 1}
    obo = export(database, "col", "obo").splitlines()
    assert {
        'subsetdef: slim "The main colours."',
        'synonymtypedef: OMO:1 "abbreviation" EXACT',
        "subset: slim",
        'synonym: "rd" EXACT OMO:1 []',
    } <= set(obo)
    assert parse_rdf(export(database, "col", "ntriples"), RdfFormat.N_TRIPLES) == parse_rdf(text, RdfFormat.TURTLE)


def test_unreadable_parts_of_a_clause_are_counted_with_their_line(import_text: ImportText) -> None:
    text = ONTOLOGY.replace(
        "name: colour\n", 'name: colour\ndef: "Hue." old [A:1]\nis_a: COL:0001 COL:0007\ncomment:\n'
    )
    report = import_text("colours.obo", text)
    kinds = list_kinds(report)
    assert kinds["text after the value of a clause was skipped"] == 2
    assert kinds["clauses without a value were left out"] == 1
    assert "line 18, is_a: COL:0007" in str(report.warnings.items)


def test_an_id_without_a_prefix_may_contain_spaces(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY + "\n[Term]\nid: dark red\nis_a: dark red ! itself\n")
    assert "id: dark\\ red\nis_a: dark\\ red\n" in export(database, "colours", "obo")


def test_an_empty_value_does_not_remove_a_value(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY + '\n[Term]\nid: COL:0001\ndef: "" []\n')
    assert read(database, "colours\x1fCOL:0001").definition == "The colour of blood."
    report = import_text("colours.obo", ONTOLOGY.replace('"The colour of blood." [PMID:1]', '"" []'))
    assert not report.has_changes
    assert read(database, "colours\x1fCOL:0001").definition == "The colour of blood."


def test_several_names_of_a_term_and_cycles_get_warnings(import_text: ImportText) -> None:
    text = ONTOLOGY.replace("name: colour\n", "name: colour\nname: color\nis_a: COL:0001\n")
    kinds = list_kinds(import_text("colours.obo", text))
    assert (kinds["has several names in one language"], kinds["a record is below itself"]) == (1, 1)


def test_references_to_records_of_other_vocabularies_are_not_missing(
    database: Database, import_text: ImportText
) -> None:
    start = "format-version: 1.4\nontology: "
    import_text("do.obo", f"{start}do\n\n[Term]\nid: DOID:1\nname: flu\nalt_id: DOID:9\n", "do")
    import_text("secret.obo", f"{start}secret\n\n[Term]\nid: DOID:2\nname: cold\n", "secret")
    update_vocabulary(database, "secret", private=True)
    references = "".join(f"relationship: RO:0002202 DOID:{number}\n" for number in (1, 9, 2, 3))
    report = import_text("hp.obo", f"{start}hp\n\n[Term]\nid: HP:1\nname: fever\n{references}", "hp")
    missing = [item.detail for item in report.warnings.items if "does not exist" in item.detail]
    assert [number for number in (1, 9, 2, 3) if any(f"DOID:{number}" in detail for detail in missing)] == [2, 3]
    with database.read() as snapshot:
        conformance = check_conformance(snapshot, VOCABULARIES["hp"], ["main", "do", "hp"])
    details = [finding.detail for finding in conformance.groups["missing_target"].examples]
    assert [number for number in (1, 9, 2, 3) if any(f"DOID:{number}" in detail for detail in details)] == [2, 3]
    [remark] = [item for item in check_database(database).remarks if "missing" in item]
    assert remark == "1 relation refers to a missing record: HP:1 RO:0002202 DOID:3"


def test_records_without_a_name_are_reported_once_where_their_class_has_names(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    nameless = THESAURUS.replace('skos:prefLabel "red"@en, "rot"@de ;', "")
    reports = [import_text("colours.ttl", text, "colours") for text in (nameless, nameless, THESAURUS)]
    assert [list_kinds(report).get("has no name", 0) for report in reports] == [1, 0, 0]
    schema = SCHEMA.replace("slots: [name, seeds", "slots: [id, seeds")
    schema = schema.replace("      title: {}", "      crop: {range: Fruit, multivalued: true, inlined_as_list: true}")
    with database.write() as transaction:
        create_vocabulary(transaction, SYSTEM_USER_ID, "garden", {"schema": schema})
    report = import_text("garden.json", '{"crop": [{"id": "hip"}], "people": [{"id": "ada"}]}', "garden")
    assert [item.detail for item in report.warnings.items if "name" in item.detail] == ["ada: has no name"]
    assert report.created == {"fruit": 1, "person": 1}


def test_iris_made_of_ids_are_no_namespace(database: Database, import_text: ImportText) -> None:
    start, end = "https://s.example/id/", "?vocabulary=colours"
    import_text(
        "colours.ttl", "".join(f"{PREFIXES}<{start}{name}{end}> a skos:Concept ." for name in ("c1", "c2")), "colours"
    )
    vocabulary = VOCABULARIES["colours"]
    assert (vocabulary.has_base, dict(vocabulary.prefixes)) == (False, {})
    assert read(database, "colours\x1fc1").iri is None


@pytest.mark.parametrize("base", ["", "https://park.example/"])
def test_an_export_of_a_vocabulary_with_its_own_schema_can_be_imported_into_another_one(
    database: Database, import_text: ImportText, base: str
) -> None:
    for slug, start in (("plants", ""), ("based", "https://based.example/"), ("park", base)):
        with database.write() as transaction:
            create_vocabulary(transaction, SYSTEM_USER_ID, slug, {"schema": SCHEMA, "base": start})
    for number, slug in enumerate(("plants", "based")):
        import_text(f"{slug}.json", f'{{"plants": [{{"id": "a{number}", "name": "oak"}}]}}', slug)
        report = import_text(f"{slug}.ttl", export(database, slug, "skos"), "park")
        assert sum(report.created.values()) == 1
        assert read(database, f"park\x1fa{number}").iri is None


def test_a_collection_is_one_of_the_chosen_vocabulary(new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    option = ("--database", new_url("sqlite"))
    schema, path = tmp_path / "garden.yaml", tmp_path / "colours.ttl"
    schema.write_text(SCHEMA)
    path.write_text(THESAURUS)
    run_cli("vocabulary", "add", "garden", "--title", "Garden", "--schema", schema, *option)
    command = ("import", path, "--vocabulary", "garden", *option, "--collection")
    refused = run_cli(*command, "concept")
    assert refused.returncode == 1
    assert "no collection 'concept'; available: plant" in " ".join(refused.stderr.split())
    assert "\nplant             3 " in run_cli(*command, "plant").stdout
    exported = run_cli("export", "--vocabulary", "garden", "--collection", "plant", "--format", "csv", *option)
    assert len(exported.stdout.splitlines()) == 4
