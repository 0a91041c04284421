"""SSSOM: import of mappings with their metadata, and export as tables that other programs read."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.editing.edit import list_mappings
from lexarium.domain.errors import ImportRejected
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.statement import Reference, Statement, Text, normalize
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, resolve_schema
from lexarium.formats.detection import detect_format
from lexarium.formats.parsed import WriteOptions
from lexarium.formats.registry import FORMATS
from lexarium.formats.resources import ResourceOptions
from lexarium.formats.tables import sssom
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store.database import Database
from tests.support.imports import open_text

ImportText = Callable[..., ImportReport]

THESAURUS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix ex: <https://example.org/terms/> .
ex:red a skos:Concept ; skos:prefLabel "red"@en ; skos:exactMatch <https://other.example/rot> .
ex:blue a skos:Concept ; skos:prefLabel "blue"@en .
"""
MAPPINGS = (
    "#curie_map:\n"
    "#  ex: https://example.org/terms/\n"
    "#  wiki: https://wiki.example/\n"
    "#mapping_set_id: https://example.org/mappings\n"
    "#license: https://creativecommons.org/publicdomain/zero/1.0/\n"
    "#mapping_tool: by hand\n"
    "subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\tauthor_id\tmapping_date\tcomment\n"
    "ex:red\tskos:closeMatch\tMESH:D1\tsemapv:ManualMappingCuration\t0.9\torcid:1|orcid:2\t2026-01-31\tsure\n"
    "ex:blue\tskos:exactMatch\twiki:Blau\tsemapv:LexicalMatching\t\t\t\t\n"
)
COLLECTION = Collection("colours", resolve_schema("skos"), resolve_schema("skos").classes["Concept"])


@pytest.fixture
def import_text(database: Database, tmp_path: Path) -> ImportText:
    """Return a function that imports a text as a file of this name into a vocabulary with two concepts."""

    def run(name: str, text: str, **options: object) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return import_resource_files(database, ImportRequest([path], "colours", **options))  # type: ignore[arg-type]

    run("colours.ttl", THESAURUS)
    return run


def read(database: Database, name: str) -> Record:
    return database.run_read(get_record, f"colours\x1fcolours:{name}").record


def export(database: Database) -> str:
    vocabulary = VOCABULARIES["colours"]
    return b"".join(export_records(database, vocabulary, FORMATS["sssom"], vocabulary.collections)).decode()


def test_a_row_becomes_a_mapping_with_qualifiers(database: Database, import_text: ImportText) -> None:
    assert import_text("colours.sssom.tsv", MAPPINGS).updated == {"concept": 2}
    mappings = {item.relation.target: item.qualifiers for item in list_mappings(read(database, "red"))}
    assert mappings == {
        "MESH:D1": {
            "justification": "semapv:ManualMappingCuration",
            "confidence": 0.9,
            "author": "orcid:2",
            "date": "2026-01-31",
        },
        "https://other.example/rot": {},
    }
    [close] = [item for item in read(database, "red").statements if item.predicate == "skos:closeMatch"]
    qualifiers = [(item.predicate, item.value[0]) for item in close.qualifiers]
    assert ("sssom:author_id", "orcid:1") in qualifiers
    assert ("sssom:comment", "sure") in qualifiers
    assert ("sssom:mapping_tool", "by hand") in qualifiers


def test_a_target_with_a_prefix_of_the_file_is_expanded_to_an_iri(database: Database, import_text: ImportText) -> None:
    import_text("colours.sssom.tsv", MAPPINGS)
    assert read(database, "blue").relation_targets["exactMatch"] == ["https://wiki.example/Blau"]


def test_a_denied_mapping_is_no_mapping(database: Database, import_text: ImportText) -> None:
    header = "subject_id\tpredicate_id\tobject_id\tmapping_justification\tpredicate_modifier\n"
    rows = [
        "colours:red\tskos:exactMatch\tMESH:D2\tsemapv:ManualMappingCuration\tNot",
        "colours:red\tskos:exactMatch\tsssom:NoTermFound\tsemapv:ManualMappingCuration\t",
    ]
    before = read(database, "red").relations
    import_text("denied.sssom.tsv", header + "\n".join(rows) + "\n")
    assert read(database, "red").relations == before
    text = export(database)
    assert set(rows) <= set(text.splitlines())
    assert not import_text("again.sssom.tsv", text).has_changes


def test_skipped_metadata_is_reported(import_text: ImportText) -> None:
    [warning] = import_text("colours.sssom.tsv", MAPPINGS).warnings.items
    assert warning.detail == "metadata of the mapping set are skipped: license"


def test_missing_subjects_are_counted(import_text: ImportText) -> None:
    report = import_text("colours.sssom.tsv", MAPPINGS.replace("ex:blue", "ex:green"))
    kind = next(kind for kind in report.warnings.kinds if "is not in the vocabulary colours" in kind.message)
    assert kind.count == 1
    assert kind.examples[0].field.endswith("line 9")
    assert kind.examples[0].detail.startswith("colours:green: ")
    assert kind.message.endswith("choose the vocabulary that has it with --vocabulary")
    assert report.skipped == 1


def test_adding_a_justification_to_a_mapping_does_not_duplicate_it(database: Database, import_text: ImportText) -> None:
    row = "ex:red\tskos:exactMatch\thttps://other.example/rot\tsemapv:LexicalMatching\t\t\t\t\n"
    import_text("colours.sssom.tsv", MAPPINGS + row)
    statements = [item for item in read(database, "red").statements if item.predicate == "skos:exactMatch"]
    assert [len(item.qualifiers) for item in statements] == [2]
    assert not import_text("colours.ttl", THESAURUS).has_changes


def test_an_update_removes_mappings_that_the_set_no_longer_has(database: Database, import_text: ImportText) -> None:
    import_text("colours.sssom.tsv", MAPPINGS)
    import_text("colours.sssom.tsv", MAPPINGS.replace("MESH:D1", "MESH:D2"))
    targets = read(database, "red").relation_targets
    assert targets == {"closeMatch": ["MESH:D2"], "exactMatch": ["https://other.example/rot"]}


def test_all_problems_are_reported_with_line_column_and_subject(import_text: ImportText) -> None:
    rows = "ex:red\tnonsense\tMESH:D1\n\tskos:exactMatch\tMESH:D1\nex:blue\tskos:exactMatch\t\n"
    with pytest.raises(ImportRejected) as raised:
        import_text("colours.sssom.tsv", MAPPINGS + rows)
    places = [problem.field.partition("sssom.tsv, ")[2] for problem in raised.value.problems]
    assert places == ["line 10, column 2", "line 11, column 1", "line 12, column 3"]
    assert "ex:red" in raised.value.problems[0].detail


def test_reimporting_an_exported_table_with_its_prefixes_changes_nothing(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.sssom.tsv", MAPPINGS)
    text = export(database)
    lines = text.splitlines(keepends=True)
    metadata = yaml.safe_load("".join(line.removeprefix("#") for line in lines if line.startswith("#")))
    rows = list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))
    assert metadata["curie_map"]["colours"] == "https://example.org/terms/"
    assert metadata["curie_map"]["skos"] == "http://www.w3.org/2004/02/skos/core#"
    assert metadata["mapping_set_id"].endswith("/vocabularies/colours/mappings")
    [close] = [row for row in rows if row["predicate_id"] == "skos:closeMatch"]
    assert (close["subject_id"], close["object_id"], close["confidence"]) == ("colours:red", "MESH:D1", "0.9")
    assert close["author_id"] == "orcid:1|orcid:2"
    [unspecified] = [row for row in rows if row["object_id"] == "https://other.example/rot"]
    assert unspecified["mapping_justification"] == "semapv:UnspecifiedMatching"
    assert detect_format("x.tsv", text.encode()).name == "sssom"
    assert not import_text("again.sssom.tsv", text).has_changes


def test_cross_references_of_an_ontology_are_exported_and_reimported(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "colours.obo"
    path.write_text(
        "format-version: 1.4\nontology: colours\n\n[Term]\nid: COL:0001\nname: red\n"
        'xref: WIKI:Red "the article" {source="me"}\nxref: ODD\n',
        encoding="utf-8",
    )
    import_resource_files(database, ImportRequest([path], "colours"))
    text = export(database)
    assert "COL: http://purl.obolibrary.org/obo/COL_" in text
    (tmp_path / "colours.sssom.tsv").write_text(text, encoding="utf-8")
    assert not import_resource_files(database, ImportRequest([tmp_path / "colours.sssom.tsv"], "colours")).has_changes


def test_a_file_with_invalid_yaml_metadata_is_rejected_with_its_line(import_text: ImportText) -> None:
    with pytest.raises(ImportRejected) as raised:
        import_text("colours.sssom.tsv", MAPPINGS.replace("#license:", "#\tlicense: ["))
    assert "line 5" in raised.value.problems[0].field


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00") | st.sampled_from("|\\\t\r\n\"'=+-@ #"),
    min_size=1,
)
LANGUAGES = st.sampled_from(["", "de", "pt-BR"])
REFERENCES = st.sampled_from(["MESH:D1", "https://example.org/a", "orcid:1", "UNKNOWN:x", "wiki:a|b"])
QUALIFIERS = st.builds(
    Statement,
    st.sampled_from(
        (
            *("sssom:comment", "sssom:author_id", "sssom:author_label", "sssom:confidence", "sssom:subject_id"),
            *("sssom:mapping_justification", "rdfs:label", "https://example.org/own", "part_of"),
        )
    ),
    st.builds(Text, TEXTS, LANGUAGES, st.just(""))
    | st.builds(Reference, REFERENCES)
    | st.just(Text("0.5", "", "xsd:double")),
    st.just(()),
)
MAPPING_STATEMENTS = st.builds(
    Statement,
    st.sampled_from(["skos:exactMatch", "skos:narrowMatch", "oboInOwl:hasDbXref"]),
    st.builds(Reference, REFERENCES) | st.builds(Text, REFERENCES, st.just(""), st.sampled_from(["", "xsd:anyURI"])),
    st.lists(QUALIFIERS, max_size=4).map(tuple),
)


@given(st.lists(MAPPING_STATEMENTS, min_size=1, max_size=5))
def test_any_mappings_are_unchanged_after_export_and_import(statements: list[Statement]) -> None:
    vocabulary = Vocabulary("colours", schema_source="skos")
    record = Record(COLLECTION, "colours\x1fCOL:1", normalize(statements))
    document = b"".join(sssom.write([record], WriteOptions(FORMATS["sssom"], vocabulary)))
    table = sssom.open_document(open_text(document), ResourceOptions())
    resources = list(table.iter_resources(vocabulary))
    assert not any(resource.problems for resource in resources)
    assert {resource.id for resource in resources} == {"COL:1"}
    assert set(normalize(item for resource in resources for item in resource.statements)) == set(record.statements)
