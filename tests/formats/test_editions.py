"""Import of a newer edition: local edits stay, and conflicts are reported."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import CONCEPT
from lexarium.formats.parsed import ParsedRecord, ParsedVersion
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store import revisions
from lexarium.store.database import Database
from tests.support.imports import (
    Curator,
    build_alias,
    build_kind_of,
    build_term,
    find_last_change,
    get_valpha_record,
    import_json,
    import_parsed,
    list_records,
    load_record,
)


@pytest.fixture
def import_edition(database: Database, tmp_path: Path) -> Callable[..., ImportReport]:
    """Function that imports an edition of the concept `trm_a`, with two other concepts."""

    def run_import(prefer: str | None = None, dry_run: bool = False, **fields: Any) -> ImportReport:
        records = [build_term("a", **fields), build_term("b"), build_term("c")]
        return import_json(database, tmp_path, "concept.json", records, prefer=prefer, dry_run=dry_run)

    return run_import


EditionImporter = Callable[..., ImportReport]


def test_local_edits_survive_repeated_imports_of_the_same_file(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    edited = load_record(database, "trm_a")
    for _ in range(3):
        report = import_edition()
        assert not report.has_changes
        assert report.conflicts.count == 0
        assert load_record(database, "trm_a") == edited


def test_changes_of_the_file_are_merged_with_local_edits_of_other_fields(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours")
    report = import_edition(definition_text="Their words.", def_id="def_new")
    assert dict(report.updated) == {"concept": 1}
    assert report.conflicts.count == 0
    fields = load_record(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"], fields["def_id"]) == ("ours", "Their words.", "def_new")
    for _ in range(2):
        assert not import_edition(definition_text="Their words.", def_id="def_new").has_changes
    assert load_record(database, "trm_a").fields["name"] == "ours", "what stood once stands at every later import"
    assert check_database(database).problems == []


def test_a_field_changed_on_both_sides_is_a_conflict_and_keeps_our_value(
    database: Database, curator: Curator, import_edition: EditionImporter, tmp_path: Path
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    report = import_edition(name="theirs", definition_text="Their words.", def_id="def_new", last_updated=1999999999999)
    assert not report.has_changes
    assert [
        (conflict.record, conflict.field, conflict.ours, conflict.theirs) for conflict in report.conflicts.items
    ] == [
        ("trm_a", "name", "ours", "theirs"),
        ("trm_a", "definition_text", "Our words.", "Their words."),
    ]
    assert report.conflicts.items[0].where == f"{tmp_path / 'concept.json'}, line 1"
    fields = load_record(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"]) == ("ours", "Our words.")
    assert fields["def_id"] not in ("def_a", "def_new"), "a definition keeps its own id, author and stamp"


def test_a_conflict_is_reported_until_a_side_is_preferred(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours", definition_text="Our words.")
    for _ in range(2):
        assert import_edition(name="theirs").conflicts.count == 1
    assert import_edition(prefer="ours", name="theirs").conflicts.count == 0
    assert import_edition(name="theirs").conflicts.count == 0, "ours stands"
    assert import_edition(name="newer").conflicts.count == 1
    assert load_record(database, "trm_a").fields["name"] == "ours"
    import_edition(prefer="theirs", name="newer")
    fields = load_record(database, "trm_a").fields
    assert (fields["name"], fields["definition_text"]) == ("newer", "Our words.")


def test_preferring_a_side_resolves_conflicts_without_a_report(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours", aliases=[{"text": "mine"}])
    assert import_edition(prefer="ours", name="theirs").conflicts.count == 0
    assert load_record(database, "trm_a").fields["name"] == "ours"
    report = import_edition(prefer="theirs", name="newer")
    assert (report.conflicts.count, dict(report.updated)) == (0, {"concept": 1})
    fields = load_record(database, "trm_a").fields
    assert fields["name"] == "newer"
    assert fields["alias"] == "mine", "what only people changed stays all the same"


def test_a_dry_run_reports_conflicts_without_storing_them(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours")
    position = database.get_position()
    assert import_edition(dry_run=True, name="theirs", definition_text="Their words.").conflicts.count == 1
    assert database.get_position() == position
    assert import_edition(name="theirs", definition_text="Their words.").conflicts.count == 1


def test_a_field_missing_from_an_import_keeps_the_base_value_of_the_previous_one(
    database: Database, curator: Curator, import_edition: EditionImporter, tmp_path: Path
) -> None:
    import_edition()
    curator.edit("trm_a", name="ours")
    import_json(database, tmp_path, "concept.json", [{"id": "trm_a", "definition_text": "Their words."}])
    assert not import_edition(
        definition_text="Their words.", def_id=load_record(database, "trm_a").fields["def_id"]
    ).has_changes
    assert load_record(database, "trm_a").fields["name"] == "ours"


def test_user_edits_of_a_locally_created_record_are_not_overwritten(
    database: Database, curator: Curator, tmp_path: Path
) -> None:
    other = curator.run(lambda writer: writer.create(CONCEPT, {"name": "other"})).record.id
    draft = {"name": "Working memory", "definition_text": "Ours.", "relations": {"KINDOF": [other]}}
    edited = curator.run(lambda writer: writer.create(CONCEPT, draft)).record
    imported_fields = {"name": "working memory", "definition_text": "Theirs.", "alias": "WM", "relationships": []}
    file = [{"id": edited.id, "id_user": "usr_7", "creation_time": 7, **imported_fields}]
    report = import_json(database, tmp_path, "concept.json", file)
    assert [conflict.field for conflict in report.conflicts.items] == ["name", "definition_text"]
    merged_record = load_record(database, edited.id)
    assert merged_record.fields["alias"] == "WM", "of what they left empty the file's is taken"
    assert merged_record.relations == edited.relations
    ignored = ("alias", "last_updated")
    assert {**merged_record.fields, **{name: edited.fields[name] for name in ignored}} == edited.fields
    second_report = import_json(database, tmp_path, "concept.json", file)
    assert (second_report.has_changes, second_report.conflicts.count) == (False, 2)
    import_json(database, tmp_path, "concept.json", file, prefer="theirs")
    assert load_record(database, edited.id).fields["definition_text"] == "Theirs."
    assert check_database(database).problems == []


def test_local_additions_and_removals_of_relations_survive_an_import(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition(relationships=[build_kind_of("b")])
    curator.run(lambda writer: writer.add_relation(writer.get_record("trm_a"), "PARTOF", "trm_c"))
    curator.run(lambda writer: writer.remove_relation(writer.get_record("trm_a"), "KINDOF", "trm_b"))
    own_relations = {Relation("trm_a", "PARTOF", "trm_c")}
    assert not import_edition(relationships=[build_kind_of("b")]).has_changes
    # An import that changes another field writes the record again, and the edit still stays.
    import_edition(relationships=[build_kind_of("b")], name="theirs")
    assert not import_edition(relationships=[build_kind_of("b")], name="theirs").has_changes
    assert load_record(database, "trm_a").relations == own_relations
    import_edition(relationships=[build_kind_of("b"), build_kind_of("c")], name="theirs")
    assert load_record(database, "trm_a").relations == own_relations | {Relation("trm_a", "KINDOF", "trm_c")}
    report = import_edition(relationships=[build_kind_of("b")], name="theirs")
    assert (report.relations_added, report.relations_removed) == (0, 1)
    assert load_record(database, "trm_a").relations == own_relations
    assert check_database(database).problems == []


def test_a_relation_removed_from_the_file_is_removed_though_another_field_was_edited(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition(relationships=[build_kind_of("b")])
    curator.edit("trm_a", name="ours")
    import_edition(relationships=[])
    assert load_record(database, "trm_a").relations == frozenset()
    assert load_record(database, "trm_a").fields["name"] == "ours"


def build_concept(**values: Any) -> ParsedRecord:
    return ParsedRecord(1, "concept", fields={"id": "trm_a", "name": "a"}, **values)


STATEMENTS = {
    "a.obo": """format-version: 1.4

[Term]
id: trm_a
name: a
synonym: "also a" EXACT []
""",
    "a.ttl": """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://localhost:8000/id/trm_a> a skos:Concept ; skos:prefLabel "a" ; skos:altLabel "also a" .
""",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_import_of_statements_keeps_the_base_values_of_later_merges(
    database: Database, curator: Curator, import_edition: EditionImporter, tmp_path: Path, name: str
) -> None:
    import_edition(relationships=[build_kind_of("b")])
    curator.edit("trm_a", name="ours")
    curator.run(lambda writer: writer.add_relation(writer.get_record("trm_a"), "PARTOF", "trm_c"))
    curator.run(lambda writer: writer.remove_relation(writer.get_record("trm_a"), "KINDOF", "trm_b"))
    (tmp_path / name).write_text(STATEMENTS[name])
    report = run_import(database, ImportRequest([tmp_path / name], vocabulary="main"))
    assert dict(report.updated) == {"concept": 1}
    edited = load_record(database, "trm_a")
    assert [alias.text for alias in edited.aliases] == ["also a"]
    assert edited.relations == {Relation("trm_a", "PARTOF", "trm_c")}
    for _ in range(2):
        import_edition(relationships=[build_kind_of("b")], definition_text="Their words.", def_id="def_new")
        record = load_record(database, "trm_a")
        assert (record.fields["name"], record.definition) == ("ours", "Their words.")
        assert (record.aliases, record.relations) == (edited.aliases, edited.relations)
    report = import_edition(relationships=[build_kind_of("b")], name="theirs", definition_text="Their words.")
    assert [conflict.field for conflict in report.conflicts.items] == ["name"]
    assert load_record(database, "trm_a").fields["name"] == "ours"
    assert check_database(database).problems == []


def test_aliases_and_sources_are_merged_like_fields(database: Database, curator: Curator) -> None:
    first = (build_alias("eins", lang="de"), build_alias("one", scope="narrow"))
    import_parsed(database, build_concept(aliases=first, sources=("A book",)))
    assert load_record(database, "trm_a").stored_aliases == first
    assert load_record(database, "trm_a").fields["alias"] == "one"
    assert not import_parsed(database, build_concept(aliases=first[::-1], sources=("A book",))).has_changes, (
        "their order says nothing"
    )
    curator.edit("trm_a", aliases=[{"text": "ours"}])
    report = import_parsed(database, build_concept(aliases=(build_alias("theirs"),), sources=("Another book",)))
    assert [conflict.field for conflict in report.conflicts.items] == ["aliases"]
    assert load_record(database, "trm_a").fields["alias"] == "ours"
    assert load_record(database, "trm_a").sources == ("Another book",)


def test_an_alias_string_replaces_only_names_that_it_can_express(database: Database, tmp_path: Path) -> None:
    import_parsed(database, build_concept(aliases=(build_alias("eins", lang="de"), build_alias("one", scope="narrow"))))
    import_json(database, tmp_path, "concept.json", [{"id": "trm_a", "alias": "one, uno"}])
    assert set(load_record(database, "trm_a").aliases) == {
        build_alias("one", scope="narrow"),
        build_alias("uno"),
        build_alias("eins", lang="de"),
    }
    assert load_record(database, "trm_a").fields["alias"] == "one, uno"


def test_a_file_can_retire_and_restore_records_and_name_their_replacements(database: Database) -> None:
    other = ParsedRecord(2, "concept", fields={"id": "trm_b", "name": "b"})
    import_parsed(database, build_concept(state=RecordState.PUBLISHED), other)
    report = import_parsed(database, build_concept(state=RecordState.RETIRED, replaced_by="trm_b"), other)
    assert (dict(report.retired), dict(report.updated)) == ({"concept": 1}, {})
    assert (load_record(database, "trm_a").state, load_record(database, "trm_a").replaced_by) == (
        RecordState.RETIRED,
        "trm_b",
    )
    assert find_last_change(database, "trm_a").action == Action.RETIRE
    assert [record["id"] for record in list_records(database)] == ["trm_b"]
    assert not import_parsed(database, build_concept()).has_changes, (
        "a file that says nothing of it changes nothing of it"
    )
    import_parsed(database, build_concept(state=RecordState.PUBLISHED))
    assert load_record(database, "trm_a").state == RecordState.PUBLISHED
    assert check_database(database).problems == []


def test_a_locally_retired_record_is_not_restored_by_the_same_edition(database: Database, curator: Curator) -> None:
    import_parsed(database, build_concept(state=RecordState.PUBLISHED))
    curator.run(lambda writer: writer.retire(writer.get_record("trm_a")))
    assert not import_parsed(database, build_concept(state=RecordState.PUBLISHED)).has_changes
    assert load_record(database, "trm_a").state == RecordState.RETIRED


def test_a_locally_merged_record_is_not_recreated(
    database: Database, curator: Curator, import_edition: EditionImporter
) -> None:
    import_edition(relationships=[build_kind_of("c")])
    curator.run(lambda writer: writer.merge(writer.get_record("trm_a"), "trm_b"))
    before = [load_record(database, name) for name in ("trm_a", "trm_b", "trm_c")]
    report = import_edition(relationships=[build_kind_of("c")], name="theirs")
    assert not report.has_changes
    assert report.skipped == 1
    assert "merged into trm_b" in report.warnings.items[0].detail
    assert [load_record(database, name) for name in ("trm_a", "trm_b", "trm_c")] == before
    assert "trm_a" not in [record["id"] for record in get_valpha_record(database, "trm_c")["relationships"]]
    assert check_database(database).problems == []


def build_row(suffix: str, **values: Any) -> ParsedRecord:
    return ParsedRecord(
        1, "concept", fields={"id": f"trm_{suffix}", "name": suffix, **values.pop("fields", {})}, **values
    )


def revert_record(database: Database, curator: Curator, record_id: str, version: int) -> None:
    with database.read() as snapshot:
        past = revisions.find_versions(snapshot, [(record_id, version)])[record_id]
    curator.run(lambda writer: writer.revert(past, find_last_change(database, record_id).version))


def test_reverting_an_imported_merge_keeps_all_other_imported_changes(database: Database, curator: Curator) -> None:
    import_parsed(database, build_row("a"), build_row("b"), build_row("c"))
    parent = Relation("trm_c", "KINDOF", "trm_b")
    import_parsed(
        database,
        build_row("a", state=RecordState.MERGED, replaced_by="trm_b"),
        build_row("c", aliases=(build_alias("see"),), relations=[parent]),
        build_row("new"),
    )
    before = [find_last_change(database, f"trm_{name}") for name in ("b", "c", "new")]
    revert_record(database, curator, "trm_a", 1)
    assert load_record(database, "trm_a").state == RecordState.PUBLISHED
    assert [find_last_change(database, f"trm_{name}") for name in ("b", "c", "new")] == before
    assert check_database(database).problems == []


def test_references_to_a_locally_merged_record_are_redirected_to_its_survivor(
    database: Database, curator: Curator
) -> None:
    import_parsed(
        database, build_row("a"), build_row("b"), build_row("c", relations=[Relation("trm_c", "KINDOF", "trm_a")])
    )
    curator.run(lambda writer: writer.merge(writer.get_record("trm_a"), "trm_b"))
    complete_relations = {"complete_relations": [("KINDOF", "source")]}
    file = [
        build_row("c", relations=[Relation("trm_c", "KINDOF", "trm_a")], **complete_relations),
        build_row("d", relations=[Relation("trm_d", "KINDOF", "trm_a")], **complete_relations),
        build_row("e", state=RecordState.RETIRED, replaced_by="trm_a"),
    ]
    import_parsed(database, *file)
    for source in ("trm_c", "trm_d"):
        assert load_record(database, source).relations == {Relation(source, "KINDOF", "trm_b")}
    assert load_record(database, "trm_e").replaced_by == "trm_b"
    assert not import_parsed(database, *file).has_changes
    curator.run(lambda writer: writer.remove_relation(writer.get_record("trm_c"), "KINDOF", "trm_b"))
    assert not import_parsed(database, *file).has_changes, "what people took away does not come back"
    assert check_database(database).problems == []


def test_a_record_with_an_invalid_merge_target_is_retired(database: Database, curator: Curator) -> None:
    def build_merged(suffix: str, survivor_id: str | None) -> ParsedRecord:
        return build_row(suffix, state=RecordState.MERGED, replaced_by=survivor_id)

    import_parsed(
        database, build_row("x"), build_row("y"), ParsedRecord(1, "disorder", fields={"id": "dso_1", "name": "one"})
    )
    curator.run(lambda writer: writer.merge(writer.get_record("trm_y"), "trm_x"))
    survivors = {"1": None, "2": "trm_2", "3": "trm_4", "4": "trm_3", "5": "trm_nowhere", "6": "dso_1", "x": "trm_y"}
    file = [build_merged(suffix, into) for suffix, into in survivors.items()]
    file += [build_merged("7", "trm_8"), build_merged("8", "trm_9"), build_row("9")]
    report = import_parsed(database, *file)
    records = {suffix: load_record(database, f"trm_{suffix}") for suffix in (*survivors, "7", "8")}
    assert {suffix for suffix, record in records.items() if record.state == RecordState.RETIRED} == {*survivors}
    assert {suffix: record.replaced_by for suffix, record in records.items() if record.replaced_by} == {
        "5": "trm_nowhere", "6": "dso_1", "7": "trm_8", "8": "trm_9"
    }  # fmt: skip
    assert sum("marked as merged" in note.detail for note in report.warnings.items) == len(survivors)
    assert not import_parsed(database, *file).has_changes
    assert check_database(database).problems == []


def build_version(suffix: str, version: int, write_id: int, action: Action, **values: Any) -> ParsedRecord:
    fields = {**build_term(suffix), **values.pop("fields", {})}
    return build_row(
        suffix, fields=fields, version=ParsedVersion(version, write_id, 1, "usr_1", action, None, ""), **values
    )


def test_a_history_with_an_invalid_merge_target_retires_the_record(database: Database, curator: Curator) -> None:
    def build_merged(suffix: str, survivor_id: str) -> ParsedRecord:
        return build_version(suffix, 1, ord(suffix), Action.CREATE, state=RecordState.MERGED, replaced_by=survivor_id)

    import_parsed(database, build_row("x", relations=[Relation("trm_x", "KINDOF", "trm_a")]), build_row("y"))
    curator.run(lambda writer: writer.merge(writer.get_record("trm_y"), "trm_x"))
    survivors = {"a": "trm_b", "b": "trm_a", "c": "trm_nowhere", "d": "trm_e", "e": "trm_f", "g": "trm_y"}
    report = import_parsed(
        database, *(build_merged(*item) for item in survivors.items()), build_version("f", 1, 1, Action.CREATE)
    )
    records = {suffix: load_record(database, f"trm_{suffix}") for suffix in survivors}
    assert {suffix for suffix, item in records.items() if item.state == RecordState.RETIRED} == {"a", "b", "c"}
    doubted = [note.detail for note in report.warnings.items if "marked as merged" in note.detail]
    assert [doubt.partition(" but its target ")[2] for doubt in doubted] == [
        "leads back to itself; it is retired",
        "leads back to itself; it is retired",
        "is not a concept of the import or the catalogue; it is retired",
    ]
    curator.edit("trm_x", name="y")
    revert_record(database, curator, "trm_x", 1)
    assert check_database(database).problems == []


def test_reverting_a_merge_of_an_imported_history_restores_its_names_from_an_existing_survivor(
    database: Database, curator: Curator
) -> None:
    first = [build_version("b", 1, 1, Action.CREATE), build_version("c", 1, 1, Action.CREATE)]
    import_parsed(database, *first)
    merge = [
        build_version("a", 1, 2, Action.CREATE),
        build_version("a", 2, 3, Action.MERGE, state=RecordState.MERGED, replaced_by="trm_b"),
        build_version(
            "b", 2, 3, Action.MERGE, aliases=(build_alias("a"),), relations=[Relation("trm_b", "KINDOF", "trm_c")]
        ),
    ]
    report = import_parsed(database, *first, *merge)
    assert (dict(report.created), dict(report.updated), dict(report.unchanged)) == (
        {"concept": 1},
        {"concept": 1},
        {"concept": 1},
    )
    assert find_last_change(database, "trm_b").action == Action.MERGE
    assert load_record(database, "trm_b").relations == {Relation("trm_b", "KINDOF", "trm_c")}
    assert not import_parsed(database, *first, *merge).has_changes
    revert_record(database, curator, "trm_a", 1)
    assert load_record(database, "trm_b").aliases == ()
    assert load_record(database, "trm_b").relations == frozenset()
    assert check_database(database).problems == []


def test_an_imported_history_does_not_continue_a_locally_edited_record(database: Database, curator: Curator) -> None:
    first = build_version("b", 1, 1, Action.CREATE)
    import_parsed(database, first)
    curator.edit("trm_b", definition_text="Ours.")
    import_parsed(database, first, build_version("b", 2, 2, Action.UPDATE, fields={"name": "another"}))
    assert find_last_change(database, "trm_b").actor == SYSTEM_USER_ID
    fields = load_record(database, "trm_b").fields
    assert (fields["name"], fields["definition_text"]) == ("another", "Ours.")


@pytest.mark.parametrize("record_count", [0, 1_100])
def test_references_to_a_locally_merged_class_are_redirected(
    database: Database, curator: Curator, tmp_path: Path, record_count: int
) -> None:
    classes = [ParsedRecord(1, "concept_class", fields={"id": f"ctp_{letter}", "name": letter}) for letter in "ABC"]
    import_parsed(database, *classes, build_row("z", fields={"id_concept_class": "ctp_C"}))
    curator.run(lambda writer: writer.merge(writer.get_record("ctp_A"), "ctp_B"))
    records = [build_term("z", id_concept_class="ctp_A"), build_term("new", id_concept_class="ctp_A")]
    records += [build_term(f"n{number}") for number in range(record_count)]
    report = import_json(database, tmp_path, "concept.json", records)
    assert report.warnings.count == 0
    assert report.conflicts.count == 0
    assert [load_record(database, f"trm_{letter}").fields["id_concept_class"] for letter in ("z", "new")] == [
        "ctp_B",
        "ctp_B",
    ]
    assert not import_json(database, tmp_path, "concept.json", records).has_changes
    curator.edit("trm_new", id_concept_class="ctp_C")
    assert not import_json(database, tmp_path, "concept.json", records).has_changes, "what people changed stays"
    assert check_database(database).problems == []


def test_an_unknown_parent_keeps_the_previously_imported_one(database: Database, tmp_path: Path) -> None:
    def import_table(parent: str, more_rows: str = "") -> ImportReport:
        file = tmp_path / "concept.csv"
        file.write_text(f"id,name,parent\ntrm_a,a,{parent}\n{more_rows}")
        return import_files(database, [file])

    def list_parents() -> set[str]:
        return {relation.target for relation in load_record(database, "trm_a").relations}

    import_table("b", "trm_b,b,\ntrm_c,c,\n")
    assert list_parents() == {"trm_b"}
    for unknown in ("mispelt", "X:17"):
        report = import_table(unknown)
        assert list_parents() == {"trm_b"}
        assert "is skipped" in report.warnings.items[0].detail
        assert "existing relations of this kind are kept" in report.warnings.items[0].detail
    import_table("twin", "trm_d,twin,\ntrm_e,Twin,\n")
    assert list_parents() == {"trm_b"}
    import_table("c; mispelt")
    assert list_parents() == {"trm_b", "trm_c"}
    import_table("c")
    assert list_parents() == {"trm_c"}
    import_table("")
    assert list_parents() == set()


def test_a_cycle_across_relation_types_is_reported_by_import_and_check(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "concept.csv"
    file.write_text("id,name,KINDOF,PARTOF\ntrm_a,a,trm_b,\ntrm_b,b,,trm_a\ntrm_c,c,trm_a,trm_b\n")
    report = import_files(database, [file])
    (detail,) = (note.detail for note in report.warnings.items)
    assert re.fullmatch("KINDOF and PARTOF relations form a cycle: (trm_[ab]) → trm_[ab] → \\1", detail)
    assert check_database(database).remarks == [detail]
