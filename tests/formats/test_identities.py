"""Records with foreign ids map to the same record in every import."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.errors import ImportRejected
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.record import RecordState, Relation
from lexarium.formats.parsed import ParsedRecord
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store import relations
from lexarium.store.database import Database
from tests.support.imports import Curator, import_json, import_parsed, list_records, load_record


def build_foreign(name: str, line: int = 1, **values: Any) -> ParsedRecord:
    fields = {"name": name.lower(), **values.pop("fields", {})}
    return ParsedRecord(line, "disorder", foreign_id=name, fields=fields, **values)


def build_is_a(child: str, parent: str) -> Relation:
    return Relation(child, "ISA", parent)


def list_ids(database: Database) -> dict[str, str]:
    return {record["name"]: record["id"] for record in list_records(database, "disorder")}


def test_a_foreign_id_is_stored_as_an_exact_match_and_identifies_the_record_on_reimport(database: Database) -> None:
    first = import_parsed(database, build_foreign("DOID:1"), build_foreign("http://example.org/2#x", 2))
    assert dict(first.created) == {"disorder": 2}
    ids_by_name = list_ids(database)
    assert all(has_prefix(record_id, ("dso",)) for record_id in ids_by_name.values())
    assert load_record(database, ids_by_name["doid:1"]).relations == {
        Relation(ids_by_name["doid:1"], "exactMatch", "DOID:1")
    }
    second_report = import_parsed(database, build_foreign("DOID:1"), build_foreign("http://example.org/2#x", 2))
    assert not second_report.has_changes
    assert second_report.warnings.count == 0
    report = import_parsed(database, build_foreign("DOID:1", fields={"name": "another"}))
    assert dict(report.updated) == {"disorder": 1}
    assert list_ids(database)["another"] == ids_by_name["doid:1"]
    assert check_database(database).problems == []


def test_relations_between_foreign_ids_become_relations_between_records(database: Database) -> None:
    complete_relations = [("ISA", "source")]
    child = build_foreign(
        "X:child", relations=[build_is_a("X:child", "X:parent")], complete_relations=complete_relations
    )
    assert import_parsed(database, child, build_foreign("X:parent", 2)).relations_added == 3
    ids_by_name = list_ids(database)
    assert (
        build_is_a(ids_by_name["x:child"], ids_by_name["x:parent"])
        in load_record(database, ids_by_name["x:child"]).relations
    )
    assert not import_parsed(database, child).has_changes, "a parent that is not in the file is found by its name"
    report = import_parsed(database, build_foreign("X:child", relations=[], complete_relations=complete_relations))
    assert (report.relations_added, report.relations_removed) == (0, 1)


def test_a_relation_to_an_unknown_record_is_skipped_and_reported_with_its_line(database: Database) -> None:
    report = import_parsed(database, build_foreign("X:1", 7, relations=[build_is_a("X:1", "X:unknown")]))
    (note,) = report.warnings.items
    assert note.field == "somewhere, line 7"
    assert "X:unknown" in note.detail
    assert report.relations_added == 1, "only what the record itself is called"


def test_a_relation_to_a_missing_record_with_a_local_id_is_kept(database: Database) -> None:
    import_parsed(database, build_foreign("X:1", relations=[build_is_a("X:1", "dso_later")]))
    import_parsed(database, ParsedRecord(1, "disorder", fields={"id": "dso_later", "name": "later"}))
    source = list_ids(database)["x:1"]
    assert build_is_a(source, "dso_later") in load_record(database, source).relations


def test_an_exact_match_added_by_a_curator_identifies_the_record(database: Database, curator: Curator) -> None:
    import_parsed(database, ParsedRecord(1, "disorder", fields={"id": "dso_1", "name": "ours"}))
    curator.run(lambda writer: writer.add_relation(writer.get_record("dso_1"), "exactMatch", "X:1"))
    import_parsed(database, build_foreign("X:1", fields={"definition": "Theirs."}))
    assert list(list_ids(database).values()) == ["dso_1"]
    assert load_record(database, "dso_1").fields["definition"] == "Theirs."


def test_a_replacement_may_be_given_by_a_foreign_id(database: Database) -> None:
    old = build_foreign("X:old", state=RecordState.RETIRED, replaced_by="X:new")
    lost = build_foreign("X:lost", 3, state=RecordState.RETIRED, replaced_by="X:nowhere")
    report = import_parsed(database, old, build_foreign("X:new", 2), lost)
    with database.read() as snapshot:
        matches = relations.find_exact_matches(snapshot, ["X:old", "X:lost"])
    assert load_record(database, matches["X:old"][0].id).replaced_by == list_ids(database)["x:new"]
    assert load_record(database, matches["X:lost"][0].id).replaced_by is None
    assert "X:nowhere" in report.warnings.items[0].detail
    assert not import_parsed(database, old, build_foreign("X:new", 2), lost).has_changes


def test_two_foreign_records_merged_locally_stay_merged(database: Database, curator: Curator) -> None:
    records = [build_foreign("X:1"), build_foreign("X:2", 2)]
    import_parsed(database, *records)
    ids_by_name = list_ids(database)
    curator.run(lambda writer: writer.merge(writer.get_record(ids_by_name["x:2"]), ids_by_name["x:1"]))
    report = import_parsed(database, *records)
    assert not report.has_changes
    assert report.skipped == 1
    assert "X:2" in report.warnings.items[0].detail
    newer = import_parsed(database, *(build_foreign(name, fields={"definition": name}) for name in ("X:2", "X:1")))
    assert dict(newer.updated) == {"disorder": 1}
    assert load_record(database, ids_by_name["x:1"]).fields["definition"] == "X:1"
    second_report = import_parsed(
        database, *(build_foreign(name, fields={"definition": name}) for name in ("X:2", "X:1"))
    )
    assert not second_report.has_changes
    assert list(list_ids(database)) == ["x:1"]


def test_a_record_without_an_id_is_matched_by_name(database: Database) -> None:
    rows = [ParsedRecord(at, "concept", fields={"name": name}) for at, name in enumerate(("Alpha", "Beta"), 1)]
    assert dict(import_parsed(database, *rows).created) == {"concept": 2}
    assert not import_parsed(database, *rows).has_changes
    report = import_parsed(database, ParsedRecord(1, "concept", fields={"name": "alpha", "definition_text": "First."}))
    assert dict(report.updated) == {"concept": 1}
    assert len(list_records(database)) == 2


@pytest.mark.parametrize("name", ["no prefix", "javascript:alert(1)", "X:a b"])
def test_a_foreign_id_that_is_neither_curie_nor_iri_is_rejected(database: Database, name: str) -> None:
    with pytest.raises(ImportRejected) as error:
        import_parsed(database, build_foreign(name))
    assert "CURIE" in error.value.problems[0].detail


def test_a_mapping_to_an_invalid_identifier_is_skipped_with_a_warning(database: Database) -> None:
    report = import_parsed(database, build_foreign("X:1", relations=[Relation("X:1", "closeMatch", "some words")]))
    assert "some words" in report.warnings.items[0].detail
    assert len(load_record(database, list_ids(database)["x:1"]).relations) == 1


def test_control_characters_are_rejected_in_every_format(database: Database) -> None:
    with pytest.raises(ImportRejected) as error:
        import_parsed(
            database, build_foreign("X:1", fields={"definition": "a\0b"}), build_foreign("X:2", sources=("\0",))
        )
    assert ["U+0000" in problem.detail for problem in error.value.problems] == [True, True]


def test_an_exact_match_of_another_collection_is_reported_and_not_used(database: Database, curator: Curator) -> None:
    import_parsed(database, ParsedRecord(1, "concept", fields={"id": "trm_1", "name": "ours"}))
    curator.run(lambda writer: writer.add_relation(writer.get_record("trm_1"), "exactMatch", "X:1"))
    report = import_parsed(database, build_foreign("X:1"), build_foreign("X:2", 2))
    assert dict(report.created) == {"disorder": 2}
    assert "trm_1, which is a concept" in report.warnings.items[0].detail
    second_report = import_parsed(database, build_foreign("X:1"), build_foreign("X:2", 2))
    assert not second_report.has_changes, "it is found among its own, though the other comes first"


def test_a_relation_to_a_missing_curie_is_kept_by_formats_without_foreign_ids(
    database: Database, tmp_path: Path
) -> None:
    parent = {"id": "X:2", "name": "", "relationship": "KINDOF", "direction": "parent"}
    import_json(database, tmp_path, "concept.json", [{"id": "X:1", "name": "one", "relationships": [parent]}])
    lines = [{"collection": "concept", "record": {"id": "X:3", "name": "three"}, "relations": {"KINDOF": ["X:2"]}}]
    lines += [{**lines[0], "record": {"id": "X:4", "name": "four"}, "state": "retired", "replaced_by": "X:2"}]
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    import_files(database, [file])
    import_json(database, tmp_path, "concept.json", [{"id": "X:2", "name": "two"}])
    for source in ("X:1", "X:3", "X:4"):
        assert load_record(database, source).relations == {Relation(source, "KINDOF", "X:2")}
    assert load_record(database, "X:4").replaced_by == "X:2"


def test_several_foreign_records_that_match_one_record_are_skipped_together(
    database: Database, curator: Curator
) -> None:
    import_parsed(database, ParsedRecord(1, "disorder", fields={"id": "dso_1", "name": "ours"}))
    curator.edit("dso_1", relations={"exactMatch": [f"X:{number}" for number in range(5)]})
    records = [build_foreign(f"X:{number}", number + 1) for number in range(5)]
    report = import_parsed(database, *records, build_foreign("X:other", 9, relations=[build_is_a("X:other", "X:4")]))
    assert report.skipped == 4
    assert [note.field for note in report.warnings.items] == [f"somewhere, line {line}" for line in range(2, 6)]
    assert (
        build_is_a(list_ids(database)["x:other"], "dso_1")
        in load_record(database, list_ids(database)["x:other"]).relations
    )


def test_a_table_refers_to_parents_by_their_names_in_the_catalogue(database: Database, tmp_path: Path) -> None:
    table = tmp_path / "concept.csv"
    table.write_text("name,parent\nanger,emotion\nemotion,\n")
    assert dict(import_files(database, [table]).created) == {"concept": 2}
    table.write_text("name,parent\nANGER,Emotion\n")
    second_report = import_files(database, [table])
    assert (second_report.relations_added, second_report.relations_removed, second_report.warnings.count) == (0, 0, 0)
    table.write_text("name,parent\nanger,nothing\n")
    lost = import_files(database, [table])
    assert (lost.relations_added, lost.relations_removed) == (0, 0), "it may be misspelt"
    assert "'anger' kind of 'nothing' is skipped" in str(lost.warnings.items)
    assert check_database(database).problems == []
