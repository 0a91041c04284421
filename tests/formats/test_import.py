"""Import of v-alpha JSON: what is accepted and rejected, always as a whole."""

import itertools
import json
import os
import random
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from lexarium.domain.errors import ImportRejected
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store import records
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database, upgrade_schema
from tests.support.imports import build_kind_of, build_term, get_valpha_record, import_json, list_records, write_json
from tests.support.polling import wait_until
from tests.support.postgres import open_sqlalchemy
from tests.support.server import Server, run_cli
from tests.support.terminal import TerminalCommand

CONCEPT, TASK = COLLECTIONS["concept"], COLLECTIONS["task"]


def export_valpha(database: Database) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(b"".join(export_records(database, Vocabulary(), FORMATS["v-alpha"])))
    return records


def test_records_are_imported_unchanged(database: Database, tmp_path: Path) -> None:
    records = [build_term("b", name='Ä "x"\r\ny\u2028'), build_term("a", name="a")]
    report = import_json(database, tmp_path, "concept.json", records)
    assert dict(report.created) == {"concept": 2}
    assert report.warnings.count == 0
    assert {record["id"]: record for record in list_records(database)} == {record["id"]: record for record in records}


def test_reimporting_a_file_changes_nothing(database: Database, sample_paths: list[Path]) -> None:
    first = import_files(database, sample_paths)
    revision = database.get_position().revision
    second = import_files(database, sample_paths)
    assert first.has_changes
    assert not second.has_changes
    assert second.unchanged == first.created
    assert database.get_position().revision == revision


def test_a_dry_run_reports_the_same_result_and_changes_nothing(database: Database, sample_paths: list[Path]) -> None:
    dry = import_files(database, sample_paths, dry_run=True)
    assert list_records(database) == []
    assert database.get_position().revision == 0
    wet = import_files(database, sample_paths)
    assert (dry.created, dry.relations_added) == (wet.created, wet.relations_added)


def test_a_changed_record_is_updated_with_a_new_version(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a"), build_term("b")])
    report = import_json(database, tmp_path, "concept.json", [build_term("a", name="A new name"), build_term("b")])
    assert (dict(report.updated), dict(report.unchanged)) == ({"concept": 1}, {"concept": 1})
    with open_valpha_reader(database) as now:
        assert (now.get_row("trm_a").version, now.get_row("trm_b").version) == (2, 1)
    assert check_database(database).problems == []


def test_the_order_of_files_does_not_matter(new_url: Any, sample_paths: list[Path]) -> None:
    results = []
    for order in itertools.islice(itertools.permutations(sample_paths), 0, 120, 40):
        database = Database(new_url("sqlite"))
        upgrade_schema(database)
        import_files(database, list(order))
        results.append(export_valpha(database))
        database.close()
    assert results[0] == results[1] == results[2]

    upgrade_schema(database)


def test_importing_files_one_by_one_equals_importing_them_together(new_url: Any, sample_paths: list[Path]) -> None:
    together, one_by_one = Database(new_url("sqlite")), Database(new_url("sqlite"))
    for database in (together, one_by_one):
        upgrade_schema(database)
    import_files(together, sample_paths)
    for path in reversed(sample_paths):
        import_files(one_by_one, [path])
    assert export_valpha(together) == export_valpha(one_by_one)
    assert check_database(one_by_one).problems == []
    together.close()
    one_by_one.close()


def test_a_plain_file_and_one_with_relations_are_merged_into_one_record(database: Database, tmp_path: Path) -> None:
    plain_file = write_json(tmp_path / "concept.json", [build_term("a"), build_term("b")])
    full = write_json(
        tmp_path / "concept.full.json", [build_term("a", type="concept", relationships=[build_kind_of("b")])]
    )
    report = import_files(database, [full, plain_file])
    assert dict(report.created) == {"concept": 2}
    assert report.relations_added == 1
    assert not import_files(database, [plain_file]).has_changes, (
        "a list says nothing of relations, so it takes none away"
    )
    assert get_valpha_record(database, "trm_a")["relationships"] == [build_kind_of("b")]


def test_a_relation_to_a_missing_record_appears_once_the_record_exists(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a", relationships=[build_kind_of("b")])])
    assert get_valpha_record(database, "trm_a")["relationships"] == []
    import_json(database, tmp_path, "concept.json", [build_term("b")])
    assert get_valpha_record(database, "trm_a")["relationships"] == [build_kind_of("b")]
    assert [record["id"] for record in get_valpha_record(database, "trm_b")["relationships"]] == ["trm_a"]


def test_a_relation_given_by_its_target_waits_for_its_source(database: Database, tmp_path: Path) -> None:
    child = {"id": "trm_a", "name": "a", "relationship": "KINDOF", "direction": "child"}
    import_json(database, tmp_path, "concept.json", [build_term("b", relationships=[child])])
    import_json(database, tmp_path, "concept.json", [build_term("a")])
    assert get_valpha_record(database, "trm_a")["relationships"] == [build_kind_of("b")]
    assert check_database(database).problems == []


def test_a_relation_missing_from_a_newer_file_is_removed(database: Database, tmp_path: Path) -> None:
    records = [
        build_term("a", relationships=[build_kind_of("b"), build_kind_of("c")]),
        build_term("b"),
        build_term("c"),
    ]
    import_json(database, tmp_path, "concept.json", records)
    report = import_json(database, tmp_path, "concept.json", [build_term("a", relationships=[build_kind_of("c")])])
    assert (report.relations_added, report.relations_removed) == (0, 1)
    assert get_valpha_record(database, "trm_a")["relationships"] == [build_kind_of("c")]
    assert check_database(database).problems == []


def test_an_export_keeps_relations_to_missing_records(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a", relationships=[build_kind_of("b")])])
    path = tmp_path / "all.json"
    path.write_bytes(b"".join(export_records(database, Vocabulary(), FORMATS["v-alpha"], [CONCEPT])))
    report = import_files(database, [path])
    assert not report.has_changes
    assert get_valpha_record(database, "trm_a")["relationships"] == []
    import_json(database, tmp_path, "concept.json", [build_term("a", relationships=[])])
    import_json(database, tmp_path, "concept.json", [build_term("b")])
    assert get_valpha_record(database, "trm_a")["relationships"] == [build_kind_of("b")], (
        "its teller could not have told of it"
    )


def test_a_changed_definition_without_an_id_gets_a_new_id(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a")])
    import_json(database, tmp_path, "concept.json", [{"id": "trm_a", "definition_text": "Another."}])
    (record,) = list_records(database)
    assert record["definition_text"] == "Another."
    assert record["def_id"] != "def_a"
    assert record["creation_time"] == build_term("a")["creation_time"]


def test_a_relation_between_the_wrong_collections_is_not_shown(database: Database, tmp_path: Path) -> None:
    contrast = {"id": "cnt_1", "name": "c", "concepts": [{"id": "trm_t", "name": "t", "relationship": "MEASUREDBY"}]}
    import_json(database, tmp_path, "contrast.json", [contrast])
    import_json(database, tmp_path, "task.json", [build_term("t")])
    with open_valpha_reader(database) as now:
        assert b"".join(now.iter_measured_concepts("cnt_1")) == b"[]"
    assert get_valpha_record(database, "cnt_1")["concepts"] == []


def test_the_collection_is_determined_by_option_then_type_then_file_name(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a", type="task")])
    import_json(database, tmp_path, "task.2020.json", [build_term("b")])
    import_json(database, tmp_path, "whatever.json", build_term("c"), collection=CONCEPT)
    assert [record["id"] for record in list_records(database, "task")] == ["trm_a", "trm_b"]
    assert [record["id"] for record in list_records(database)] == ["trm_c"]
    with pytest.raises(ImportRejected) as error:
        import_json(database, tmp_path, "whatever.json", [build_term("d"), build_term("e")])
    (problem,) = error.value.problems
    assert "--collection" in problem.detail


def test_a_missing_key_gets_a_default_value_with_a_warning(database: Database, tmp_path: Path) -> None:
    bare = {"id": "trm_x", "name": "x", "creation_time": 1577934245000, "alias": None}
    report = import_json(database, tmp_path, "concept.json", [bare])
    assert any("alias" in note.detail for note in report.warnings.items)
    (record,) = list_records(database)
    assert set(record) == set(build_term("x"))
    assert record["id_user"] == record["def_id_user"] == SYSTEM_USER_ID
    assert record["event_stamp"] == record["def_event_stamp"] == "2020-01-02T03:04:05"
    assert record["last_updated"] == bare["creation_time"]
    assert record["def_id"].startswith("def_")
    assert not import_json(database, tmp_path, "concept.json", [bare]).has_changes
    assert list_records(database) == [record]


def test_unusual_values_are_imported_with_a_warning(database: Database, tmp_path: Path) -> None:
    odd_records = [
        build_term("a", name="", event_stamp="yesterday", id_user="someone", relationships=[build_kind_of("a")]),
        build_term("b", id="weird id", id_concept_class="ctp_gone", unknown_key=1),
    ]
    report = import_json(database, tmp_path, "concept.json", odd_records)
    text = " | ".join(note.detail for note in report.warnings.items)
    for sign in ("empty name", "yesterday", "someone", "weird id", "ctp_gone", "unknown_key", "form a cycle"):
        assert sign in text
    records = {record["id"]: record for record in list_records(database)}
    assert records["trm_a"]["event_stamp"] == "yesterday"
    assert "unknown_key" not in records["weird id"]
    assert get_valpha_record(database, "trm_a")["relationships"][0]["id"] == "trm_a"


def test_a_timestamp_of_a_nonexistent_day_gets_a_warning(database: Database, tmp_path: Path) -> None:
    days = ("01-31", "02-28", "04-30", "12-29", "02-30", "04-31", "06-00", "13-01")
    records = [build_term(day.replace("-", ""), event_stamp=f"2023-{day}T00:00:00") for day in (*days, "02-29")]
    records.append(build_term("leap", event_stamp="2024-02-29T00:00:00"))
    report = import_json(database, tmp_path, "concept.json", records)
    invalid_days = [note.detail.rpartition(": ")[2][5:10] for note in report.warnings.items]
    assert invalid_days == ["02-30", "04-31", "06-00", "13-01", "02-29"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "empty"),
        ("nonsense", 1, "array of objects"),
        ("5", 1, "array of objects"),
        ('[\n{"id": "trm_a"},\n]', 3, "object"),
        ('[{"id": "trm_a"}\n{"id": "trm_b"}]', 2, "comma"),
        ('[{"id": "trm_a"}', 1, "comma"),
        ('[{"id": "trm_a", }]', 1, "property name"),
        ('[{"id": "trm_a"}]\n\nmore', 3, "after the end"),
        ('[{"id": "trm_a"}, 5]', 1, "object"),
        ('[{"id": "trm_a", "x": ' + "[" * 100_000, 1, "nested"),
        ('[{"id": "trm_a", "x": ' + "9" * 5_000 + "}]", 1, "digits"),
        ('[{"name": "no id"}]', 1, "no id"),
        ('[{"id": ""}]', 1, "no id"),
        ('[{"id": "trm_a", "name": 5}]', 1, "name of trm_a is not text"),
        ('[{"id": "trm_a", "name": "a\\u0000b"}]', 1, "U+0000"),
        ('[{"id": "trm_a", "alias": "\\ud800"}]', 1, "U+D800"),
        ('[{"id": "trm_a", "creation_time": "now"}]', 1, "not a whole number"),
        ('[{"id": "trm_a", "creation_time": true}]', 1, "not a whole number"),
        ('[{"id": "trm_a", "creation_time": 99999999999999999999}]', 1, "too large"),
        ('[{"id": "trm_a", "creation_time": NaN}]', 1, "not a whole number"),
        ('[{"id": "trm_a", "relationships": {}}]', 1, "not a list"),
        ('[{"id": "trm_a", "relationships": [{"id": "trm_b", "relationship": "EATS"}]}]', 1, "cannot be read"),
        ('[{"id": "trm_a", "type": "animal"}]', 1, "animal"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_rejected_with_file_line_and_reason(
    tmp_path: Path, new_url: Any, text: str, line: int, reason: str
) -> None:
    database = Database(new_url("sqlite"))
    upgrade_schema(database)
    valid_file = write_json(tmp_path / "task.json", [build_term("good")])
    invalid_file = tmp_path / "concept.json"
    invalid_file.write_text(text)
    with pytest.raises(ImportRejected) as error:
        import_files(database, [valid_file, invalid_file])
    (problem,) = error.value.problems
    assert problem.field.startswith(f"{invalid_file}, line {line}")
    assert reason in problem.detail
    assert list_records(database, "task") == []
    assert database.get_position().revision == 0
    database.close()


def test_all_problems_of_all_files_are_reported_at_once(database: Database, tmp_path: Path) -> None:
    first_file = write_json(tmp_path / "concept.json", [build_term("a", name=1, alias=2), build_term("b", name=3)])
    other = write_json(tmp_path / "task.json", [build_term("c", name=None, def_id=[])])
    with pytest.raises(ImportRejected) as error:
        import_files(database, [first_file, other, tmp_path / "absent.json"])
    assert len(error.value.problems) == 5


def test_a_collection_option_that_contradicts_existing_records_is_rejected(database: Database, tmp_path: Path) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a")])
    with pytest.raises(ImportRejected) as error:
        import_json(
            database, tmp_path, "terms.json", [build_term("a"), build_term("b")], collection=COLLECTIONS["task"]
        )
    (problem,) = error.value.problems
    assert problem.detail == "trm_a is a task here, but a concept in the catalogue"
    assert list_records(database, "task") == []


def test_records_larger_than_the_read_buffer_are_imported_completely(database: Database, tmp_path: Path) -> None:
    records = [build_term(f"n{number}", definition_text="é\n" * 300_000) for number in range(5)]
    import_json(database, tmp_path, "concept.json", records)
    assert list_records(database) == records


def test_an_export_of_everything_is_imported_unchanged(
    database: Database, sample_paths: list[Path], new_url: Any, tmp_path: Path
) -> None:
    import_files(database, sample_paths)
    path = tmp_path / "all.json"
    path.write_bytes(b"".join(export_records(database, Vocabulary(), FORMATS["v-alpha"])))
    other = Database(new_url("sqlite"))
    upgrade_schema(other)
    report = import_files(other, [path])
    assert {warning.field for warning in report.warnings.items} == {"names"}, "some records have the same name"
    assert export_valpha(other) == export_valpha(database)
    assert not import_files(database, [path]).has_changes
    other.close()


def test_names_of_any_length_are_imported_sorted_and_found(database: Database, tmp_path: Path) -> None:
    rng = random.Random(1)
    start = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=1_900))
    long_name = "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöü語", k=6_000))
    names = [start + "b", start + "A", start + "c", long_name, long_name.upper() + "x", "short"]
    import_json(database, tmp_path, "concept.json", [build_term(str(at), name=name) for at, name in enumerate(names)])
    assert check_database(database).problems == []
    listed_names = [record["name"] for record in list_records(database) if len(record["name"]) < 2_000]
    assert listed_names == sorted(listed_names, key=str.casefold)
    with database.read() as snapshot:
        for name, suffix in ((long_name, "3"), (long_name.upper(), "3"), (long_name + "X", "4")):
            stored = records.find_by_name(snapshot, CONCEPT, name)
            assert stored is not None
            assert stored.id == f"trm_{suffix}"
        assert records.find_by_name(snapshot, CONCEPT, long_name + "y") is None


def test_an_id_too_long_for_the_database_index_is_rejected_with_its_line(database: Database, tmp_path: Path) -> None:
    long = "trm_" + "x" * 6_000
    with pytest.raises(ImportRejected) as error:
        import_json(
            database,
            tmp_path,
            "concept.json",
            [build_term("a", id=long), build_term("b", relationships=[build_kind_of(long)])],
        )
    assert ["line 1" in problem.field for problem in error.value.problems] == [True, True]
    assert list_records(database) == []


def interrupt_import(
    url: str, source: Path, trigger: str, feed: bytes = b"", signal_number: signal.Signals = signal.SIGINT
) -> tuple[int, str]:
    """Run an import in a terminal, send a signal when it shows a word, and return the exit code and output."""
    command = TerminalCommand("import", source, "--collection", "concept", "--database", url)
    writer = source.open("wb", buffering=0) if feed else None
    if writer is not None:
        writer.write(feed)
    chunks = command.iter_output()
    output = ""
    while trigger not in output:
        output += next(chunks)
    command.process.send_signal(signal_number)
    if writer is not None:
        writer.close()
    output += "".join(chunks)
    return command.wait(), output


@pytest.mark.parametrize("by", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGKILL])
def test_an_interrupted_import_leaves_the_catalogue_unchanged(
    database: Database, url: str, tmp_path: Path, by: signal.Signals
) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("a")])
    position = database.get_position()
    large_file = write_json(
        tmp_path / "many.json", [build_term(f"n{number}") for number in range(12_000)] + [build_term("a", name="other")]
    )
    indexes = list_indexes(url)
    code, output = interrupt_import(url, large_file, "writing", signal_number=by)
    if by == signal.SIGINT:
        assert code == 130
        assert "The catalogue was not changed" in output
    assert database.get_position() == position
    assert list_indexes(url) == indexes
    assert list_records(database) == [build_term("a")]
    assert check_database(database).problems == []
    assert import_json(database, tmp_path, "concept.json", [build_term("b")]).has_changes, "and it can be written to"


@pytest.mark.full
@pytest.mark.parametrize("by", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGKILL])
def test_an_interrupted_first_import_leaves_nothing(url: str, tmp_path: Path, by: signal.Signals) -> None:
    open_database(url).close()
    large_file = write_json(tmp_path / "many.json", [build_term(f"n{number}") for number in range(12_000)])
    interrupt_import(url, large_file, "writing", signal_number=by)
    database = open_database(url)
    assert database.get_position().revision == 0
    assert check_database(database).problems == []
    assert dict(import_files(database, [large_file], collection=CONCEPT).created) == {"concept": 12_000}
    assert check_database(database).problems == []
    database.close()


def test_an_import_works_while_a_server_uses_the_catalogue(server: Server, tmp_path: Path) -> None:
    assert server.get("/api/v-alpha/concept").json == []
    large_file = write_json(tmp_path / "concept.json", [build_term(f"n{number}") for number in range(1_500)])
    assert run_cli("import", large_file, "--database", server.url).returncode == 0
    # On PostgreSQL a server learns of other writes after a moment.
    wait_until(lambda: len(server.get("/api/v-alpha/concept").json) == 1_500)


def test_a_loaded_database_keeps_its_write_ahead_log(tmp_path: Path) -> None:
    large_file = write_json(tmp_path / "concept.json", [build_term(f"n{number}") for number in range(1_500)])
    assert run_cli("import", large_file, "--database", f"sqlite:///{tmp_path}/new.db").returncode == 0
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def list_indexes(url: str) -> set[str]:
    with open_sqlalchemy(url) as connection:
        return {
            str(index["name"]) for table in ("record", "change") for index in inspect(connection).get_indexes(table)
        }


def test_a_bulk_load_equals_a_gradual_import(database: Database, url: str, new_url: Any, tmp_path: Path) -> None:
    records = [build_term(f"n{number:04}", name=f"Ñame {number % 7}", alias="a, b") for number in range(2_500)]
    records[5] = {"id": "trm_bare", "name": "only a name", "creation_time": 1, "def_id": "def_1"}
    records[6]["relationships"] = [build_kind_of("n0007"), build_kind_of("bare")]
    records[2_000] = records[1_000] | {"alias": "told again"}
    indexes = list_indexes(url)
    import_json(database, tmp_path, "concept.json", records)
    assert list_indexes(url) == indexes
    assert check_database(database).problems == []
    one_by_one = open_database(new_url("sqlite"))
    for start in range(0, 2_500, 500):
        import_json(one_by_one, tmp_path, "concept.json", records[start : start + 500])
    assert export_valpha(database) == export_valpha(one_by_one)
    one_by_one.close()


def test_ctrl_c_while_reading_leaves_the_catalogue_unchanged(database: Database, url: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    many_records = json.dumps([build_term(f"n{number}") for number in range(10_000)])
    code, _ = interrupt_import(url, pipe, "reading", many_records[:-1].encode())
    assert code == 130
    assert database.get_position().revision == 0
    assert list_records(database) == []
