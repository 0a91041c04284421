"""Import of RDF and OBO into vocabularies: nothing of a file is lost, and no vocabulary touches another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lexarium.domain.errors import ImportRejected
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import Record, RecordState
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.imports import import_files
from lexarium.services.transfer.resource_import import import_resource_files
from lexarium.services.vocabularies.access import find_record_id, get_read_scope
from lexarium.services.vocabularies.head_records import create_vocabulary
from lexarium.store.database import Database

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
        return import_resource_files(database, [path], vocabulary=vocabulary, **options)  # type: ignore[arg-type]

    return run


def read(database: Database, record_id: str) -> Record:
    return database.run_read(get_record, record_id).record


def test_an_import_creates_the_vocabulary_that_its_file_describes(database: Database, import_text: ImportText) -> None:
    report = import_text("colours.ttl", THESAURUS, "colours")
    assert report.created_vocabulary == "colours"
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


def test_an_inverse_is_kept_once_at_the_narrower_end(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    assert read(database, "colours\x1fcolours:blue").relation_targets["broader"] == ["colours:colour"]
    assert "narrower" not in read(database, "colours\x1fcolours:colour").relation_targets


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_mapping_is_never_an_identity(database: Database, import_text: ImportText, order: tuple[str, str]) -> None:
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


def test_two_vocabularies_may_have_the_same_ids(database: Database, import_text: ImportText) -> None:
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
def test_importing_a_file_again_changes_nothing(import_text: ImportText, name: str, text: str) -> None:
    import_text(name, text, "colours")
    assert not import_text(name, text, "colours").has_changes


def test_an_update_removes_what_the_file_no_longer_states(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    import_text("colours.ttl", THESAURUS.replace(' ; skos:altLabel "crimson"@en', ""), "colours")
    assert read(database, "colours\x1fcolours:red").aliases == ()


def test_another_source_adds_but_removes_nothing(database: Database, import_text: ImportText) -> None:
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


def test_a_file_that_does_not_fit_the_schema_is_refused_with_its_own_identifiers(import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    with pytest.raises(ImportRejected) as refusal:
        import_text("colours.obo", ONTOLOGY, "colours")
    assert any("COL:0001" in problem.message for problem in refusal.value.problems)


@pytest.mark.parametrize("format", ["skos", "rdfxml", "ntriples", "jsonld"])
def test_what_is_exported_is_imported_as_it_was(database: Database, import_text: ImportText, format: str) -> None:
    import_text("colours.ttl", THESAURUS, "colours")
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections)).decode()
    report = import_text(f"again{FORMATS[format].extensions[0]}", text, "colours")
    assert (report.created, report.updated, report.retired) == ({}, {}, {})


def test_an_ontology_comes_back_as_obo(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS["obo"], vocabulary.collections)).decode()
    assert 'synonym: "crimson" NARROW poetic [COL:curators]' in text
    assert 'xref: WIKI:Red "the article"' in text
    assert 'is_a: COL:0002 {source="me"}' in text
    report = import_text("again.obo", text, "colours")
    assert not report.has_changes


def test_a_vocabulary_goes_through_json_lines_with_its_history(
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
