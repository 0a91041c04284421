"""Records with an exact match in a file adopt the id of the term and are still found by their old one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from lexarium.domain.account import Role
from lexarium.domain.errors import InvalidInput
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import RecordState, Relation
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.import_undo import undo_import
from lexarium.store import revisions
from lexarium.store.database import Database
from tests.support.imports import Curator, import_json, load_record
from tests.support.server import Server, run_cli

ONTOLOGY = """format-version: 1.4
ontology: test/colours

[Term]
id: COL:1
name: red
is_a: COL:2

[Term]
id: COL:2
name: colour
"""
DISORDERS = [
    {"id": "dso_1", "name": "red", "definition": "Ours."},
    {"id": "dso_2", "name": "colour"},
    {"id": "dso_3", "name": "pink"},
]
Adopt = Callable[..., ImportReport]


@pytest.fixture
def adopt(database: Database, tmp_path: Path) -> Adopt:
    """Return a function that imports a file and adopts its ids."""

    def run(text: str = ONTOLOGY, name: str = "colours.obo", **options: Any) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        request = ImportRequest([path], **{"collection": "disorder", "adopt": True, **options})
        return run_import(database, request)

    return run


@pytest.fixture(autouse=True)
def disorders(database: Database, curator: Curator, tmp_path: Path) -> None:
    import_json(database, tmp_path, "disorder.json", DISORDERS)
    curator.run(lambda writer: writer.add_relation(writer.get_record("dso_3"), "ISA", "dso_1"))


def relate(curator: Curator, source: str, relation: str, target: str) -> None:
    curator.run(lambda writer: writer.add_relation(writer.get_record(source), relation, target))


def count_versions(database: Database, record_id: str) -> int:
    with database.read() as snapshot:
        return len(revisions.list_history(snapshot, record_id, database.get_position().revision))


def list_warnings(report: ImportReport) -> list[str]:
    return [problem.detail for problem in report.warnings.items]


def test_a_record_with_an_exact_match_adopts_the_id_of_the_term_and_keeps_its_statements(
    database: Database, curator: Curator, adopt: Adopt
) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    relate(curator, "dso_2", "exactMatch", "http://purl.obolibrary.org/obo/COL_2")
    relate(curator, "dso_1", "ISA", "dso_2")
    report = adopt()
    assert (report.adopted, report.created) == ({"disorder": 2}, {})
    red = load_record(database, "COL:1")
    assert (red.fields["name"], red.definition) == ("red", "Ours.")
    assert red.alternative_ids == ("http://purl.obolibrary.org/obo/COL_1", "dso_1")
    assert red.relations == {Relation("COL:1", "ISA", "COL:2")}, "it follows, and nothing maps to itself"
    assert load_record(database, "dso_3").relations == {Relation("dso_3", "ISA", "COL:1")}
    old = load_record(database, "dso_1")
    assert (old.state, old.replaced_by, old.relations) == (RecordState.MERGED, "COL:1", frozenset())
    assert count_versions(database, "dso_1") == 4, "the history stays"
    assert check_database(database).problems == []
    again = adopt()
    assert (again.adopted, again.has_changes, again.warnings.count) == ({}, False, 0)


def test_a_dry_run_reports_adoptions_and_changes_nothing(database: Database, curator: Curator, adopt: Adopt) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    report = adopt(dry_run=True)
    assert report.adopted == {"disorder": 1}
    [item] = report.affected["adopted"]
    assert (item.id, [(*change.removed, *change.added) for change in item.changes]) == ("COL:1", [("dso_1", "COL:1")])
    assert load_record(database, "dso_1").state == RecordState.PUBLISHED
    assert count_versions(database, "COL:1") == 0


def test_ambiguous_matches_are_skipped_and_reported(database: Database, curator: Curator, adopt: Adopt) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    relate(curator, "dso_3", "exactMatch", "COL:1")
    report = adopt()
    assert (report.adopted, report.created) == ({}, {"disorder": 2})
    assert "COL:1: several records map to this term, dso_1, dso_3; they keep their ids" in list_warnings(report)


def test_a_record_that_maps_to_several_terms_is_skipped_and_reported(
    database: Database, curator: Curator, adopt: Adopt
) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    relate(curator, "dso_1", "exactMatch", "COL:2")
    report = adopt()
    assert report.adopted == {}
    assert "dso_1: this record maps to several terms, COL:1, COL:2; it keeps its id" in list_warnings(report)


def test_cross_references_are_used_where_no_exact_match_exists(
    database: Database, curator: Curator, adopt: Adopt
) -> None:
    note = "[Term]\nid: dso_1\nname: red\nxref: COL:1\n\n[Term]\nid: dso_2\nname: colour\nxref: COL:2\n"
    adopt(f"format-version: 1.4\nontology: test/ours\n\n{note}", "ours.obo", adopt=False)
    relate(curator, "dso_3", "exactMatch", "COL:1")
    report = adopt()
    assert report.adopted == {"disorder": 2}
    assert "dso_3" in load_record(database, "COL:1").alternative_ids
    assert "dso_2" in load_record(database, "COL:2").alternative_ids
    assert load_record(database, "dso_1").state == RecordState.PUBLISHED


def test_a_record_of_another_class_keeps_its_id(database: Database, curator: Curator, adopt: Adopt) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    report = adopt(collection=None, vocabulary="main")
    assert (report.adopted, report.created) == ({}, {"concept": 2})
    message = "COL:1: the record that maps to this term, dso_1, is a disorder; it keeps its id"
    assert message in list_warnings(report)


def test_a_term_that_already_exists_under_its_id_is_not_adopted(
    database: Database, curator: Curator, adopt: Adopt
) -> None:
    adopt(adopt=False)
    relate(curator, "dso_1", "exactMatch", "COL:1")
    assert not adopt().has_changes
    assert load_record(database, "dso_1").state == RecordState.PUBLISHED


def test_user_edits_are_kept(database: Database, curator: Curator, adopt: Adopt, tmp_path: Path) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    curator.edit("dso_1", name="crimson")
    curator.edit("dso_3", name="rose")
    report = adopt()
    assert report.conflicts.count == 1
    assert load_record(database, "COL:1").fields["name"] == "crimson"
    assert load_record(database, "dso_3").relations == {Relation("dso_3", "ISA", "COL:1")}
    import_json(database, tmp_path, "disorder.json", DISORDERS[2:])
    assert load_record(database, "dso_3").fields["name"] == "rose", "an edit, though the import wrote it last"


def test_the_import_can_be_undone(database: Database, curator: Curator, adopt: Adopt) -> None:
    relate(curator, "dso_1", "exactMatch", "COL:1")
    relate(curator, "dso_2", "exactMatch", "COL:2")
    relate(curator, "dso_1", "ISA", "dso_2")
    before = {record_id: load_record(database, record_id) for record_id in ("dso_1", "dso_2", "dso_3")}
    report = adopt()
    caller = Caller(add_account(database, "Bo", Role.CURATOR), Role.CURATOR, "tok_test")
    database.run_write(lambda transaction: undo_import(transaction, caller, report.base_revision, report.last_revision))
    for record_id, record in before.items():
        after = load_record(database, record_id)
        assert (after.state, after.relations) == (record.state, record.relations)
    assert load_record(database, "COL:1").state == RecordState.RETIRED
    assert check_database(database).problems == []


def test_a_record_of_any_vocabulary_adopts_the_iri_of_the_term(adopt: Adopt, database: Database) -> None:
    prefixes = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix o: <http://old.example/> ."
    prefixes += " @prefix n: <http://new.example/> ."
    old = 'o:s a skos:ConceptScheme . o:1 a skos:Concept ; skos:prefLabel "red"@en ; skos:exactMatch n:red .'
    old += ' o:2 a skos:Concept ; skos:prefLabel "pink"@en ; skos:broader o:1 .'
    new = 'n:s a skos:ConceptScheme . n:red a skos:Concept ; skos:prefLabel "red"@en ; skos:altLabel "rouge"@fr .'
    adopt(f"{prefixes}\n{old}", "old.ttl", vocabulary="colours", collection=None, adopt=False)
    report = adopt(f"{prefixes}\n{new}", "new.ttl", vocabulary="colours", collection=None)
    assert (report.adopted, report.updated) == ({"concept": 1}, {"concept": 1})
    merged = load_record(database, qualify_id("colours", "colours:1"))
    red = load_record(database, str(merged.replaced_by))
    assert (red.local_id, red.iri) == ("http://new.example/red", "http://new.example/red")
    assert red.alternative_ids == ("http://new.example/red", "colours:1", "http://old.example/1")
    pink = load_record(database, qualify_id("colours", "colours:2"))
    assert {relation.target for relation in pink.relations} >= {red.id}
    assert check_database(database).problems == []


def test_only_formats_with_statements_support_adoption(adopt: Adopt) -> None:
    with pytest.raises(InvalidInput, match="read as statements"):
        adopt("id,name\nCOL:1,red\n", "disorder.csv")


def test_an_id_minted_for_a_table_row_redirects_to_the_adopted_id(url: str, tmp_path: Path) -> None:
    table, ontology = tmp_path / "disorder.csv", tmp_path / "colours.obo"
    table.write_text("id,name\nCOL:1,red\n")
    ontology.write_text(ONTOLOGY)
    run_cli("import", table, "--collection", "disorder", "--database", url)
    command = ("import", ontology, "--collection", "disorder", "--adopt", "--database", url)
    preview = run_cli(*command, "--dry-run")
    assert "adopted: 1" in preview.stdout
    assert "= COL:1 red" in preview.stdout
    report = json.loads(run_cli(*command, "--json").stdout)
    assert report["adopted"] == {"disorder": 1}
    old_id = report["records"]["adopted"][0]["changes"][0]["removed"][0]
    assert old_id.startswith("dso_")
    with Server(url) as server:
        for path in ("/api/v1/records/", "/api/v-alpha/disorder?id=", "/id/"):
            response = server.get(f"{path}{old_id}")
            assert (response.status, unquote(response.headers["location"])) == (308, f"{path}COL:1")
        [hit, *_] = server.get(f"/api/v1/search?q={old_id}").json["hits"]
        assert hit["id"] == "COL:1"
