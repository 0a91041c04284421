"""Importing v-alpha JSON: what it takes, what it refuses, and that it is all or nothing."""

import itertools
import json
import os
import pty
import random
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import ImportRefused
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.exchange.formats import FORMATS
from lexarium.service.checking import check
from lexarium.service.exporting import export
from lexarium.service.importing import import_files
from lexarium.service.reading import reading
from lexarium.service.reports import Report
from lexarium.store import records
from lexarium.store.database import Database
from lexarium.store.migrate import migrate, open_database
from tests.postgres import plain
from tests.server import Server, run
from tests.waiting import wait_until

CONCEPT, TASK = COLLECTIONS["concept"], COLLECTIONS["task"]


def term(suffix: str, **fields: Any) -> dict[str, Any]:
    whole = {
        "id": f"trm_{suffix}",
        "name": suffix,
        "alias": "",
        "definition_text": f"What {suffix} is.",
        "id_concept_class": "",
        "id_user": "usr_1",
        "event_stamp": "2020-01-02T03:04:05",
        "def_id": f"def_{suffix}",
        "def_id_user": "usr_2",
        "def_event_stamp": "2020-01-02T03:04:06",
        "creation_time": 1577934245000,
        "last_updated": 1577934245000,
    }
    return whole | fields


def kind_of(parent: str) -> dict[str, str]:
    return {"id": f"trm_{parent}", "name": parent, "relationship": "KINDOF", "direction": "parent"}


def write(path: Path, records: object) -> Path:
    path.write_text(json.dumps(records), "utf-8")
    return path


def imported(database: Database, tmp_path: Path, name: str, records: object, **options: Any) -> Report:
    return import_files(database, [write(tmp_path / name, records)], **options)


def listed(database: Database, name: str = "concept") -> list[dict[str, Any]]:
    with reading(database) as now:
        found: list[dict[str, Any]] = json.loads(b"".join(now.whole(COLLECTIONS[name])))
        return found


def one(database: Database, identifier: str) -> dict[str, Any]:
    with reading(database) as now:
        stored = now.any(identifier)
        found: dict[str, Any] = json.loads(now.shape(COLLECTIONS[stored.collection], stored))
        return found


def exported(database: Database) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(b"".join(export(database, About(), FORMATS["v-alpha"])))
    return found


def test_records_come_in_as_they_are(database: Database, tmp_path: Path) -> None:
    records = [term("b", name='Ä "x"\r\ny\u2028'), term("a", name="a")]
    report = imported(database, tmp_path, "concept.json", records)
    assert dict(report.created) == {"concept": 2}
    assert report.warnings.count == 0
    assert {record["id"]: record for record in listed(database)} == {record["id"]: record for record in records}


def test_a_second_import_changes_nothing(database: Database, sample_paths: list[Path]) -> None:
    first = import_files(database, sample_paths)
    revision = database.position().revision
    second = import_files(database, sample_paths)
    assert first.changed
    assert not second.changed
    assert second.unchanged == first.created
    assert database.position().revision == revision


def test_a_dry_run_reports_the_same_and_changes_nothing(database: Database, sample_paths: list[Path]) -> None:
    dry = import_files(database, sample_paths, dry_run=True)
    assert listed(database) == []
    assert database.position().revision == 0
    wet = import_files(database, sample_paths)
    assert (dry.created, dry.relations_added) == (wet.created, wet.relations_added)


def test_an_edit_is_an_update_with_a_new_version(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a"), term("b")])
    report = imported(database, tmp_path, "concept.json", [term("a", name="A new name"), term("b")])
    assert (dict(report.updated), dict(report.unchanged)) == ({"concept": 1}, {"concept": 1})
    with reading(database) as now:
        assert (now.any("trm_a").version, now.any("trm_b").version) == (2, 1)
    assert check(database).problems == []


def test_the_order_of_files_does_not_matter(new_url: Any, sample_paths: list[Path]) -> None:
    results = []
    for order in itertools.islice(itertools.permutations(sample_paths), 0, 120, 40):
        database = Database(new_url("sqlite"))
        migrate(database)
        import_files(database, list(order))
        results.append(exported(database))
        database.close()
    assert results[0] == results[1] == results[2]

    migrate(database)


def test_files_one_by_one_end_where_all_at_once_do(new_url: Any, sample_paths: list[Path]) -> None:
    together, apart = Database(new_url("sqlite")), Database(new_url("sqlite"))
    for database in (together, apart):
        migrate(database)
    import_files(together, sample_paths)
    for path in reversed(sample_paths):
        import_files(apart, [path])
    assert exported(together) == exported(apart)
    assert check(apart).problems == []
    together.close()
    apart.close()


def test_a_list_and_its_shape_with_relations_are_one_record(database: Database, tmp_path: Path) -> None:
    plain = write(tmp_path / "concept.json", [term("a"), term("b")])
    full = write(tmp_path / "concept.full.json", [term("a", type="concept", relationships=[kind_of("b")])])
    report = import_files(database, [full, plain])
    assert dict(report.created) == {"concept": 2}
    assert report.relations_added == 1
    assert not import_files(database, [plain]).changed, "a list says nothing of relations, so it takes none away"
    assert one(database, "trm_a")["relationships"] == [kind_of("b")]


def test_a_relation_to_a_record_that_is_not_there_shows_once_it_is(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a", relationships=[kind_of("b")])])
    assert one(database, "trm_a")["relationships"] == []
    imported(database, tmp_path, "concept.json", [term("b")])
    assert one(database, "trm_a")["relationships"] == [kind_of("b")]
    assert [each["id"] for each in one(database, "trm_b")["relationships"]] == ["trm_a"]


def test_a_relation_told_by_the_other_end_waits_for_its_source(database: Database, tmp_path: Path) -> None:
    child = {"id": "trm_a", "name": "a", "relationship": "KINDOF", "direction": "child"}
    imported(database, tmp_path, "concept.json", [term("b", relationships=[child])])
    imported(database, tmp_path, "concept.json", [term("a")])
    assert one(database, "trm_a")["relationships"] == [kind_of("b")]
    assert check(database).problems == []


def test_a_relation_that_is_told_no_more_goes(database: Database, tmp_path: Path) -> None:
    both = [term("a", relationships=[kind_of("b"), kind_of("c")]), term("b"), term("c")]
    imported(database, tmp_path, "concept.json", both)
    report = imported(database, tmp_path, "concept.json", [term("a", relationships=[kind_of("c")])])
    assert (report.relations_added, report.relations_removed) == (0, 1)
    assert one(database, "trm_a")["relationships"] == [kind_of("c")]
    assert check(database).problems == []


def test_an_export_keeps_relations_that_wait_for_a_record(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a", relationships=[kind_of("b")])])
    path = tmp_path / "all.json"
    path.write_bytes(b"".join(export(database, About(), FORMATS["v-alpha"], [CONCEPT])))
    report = import_files(database, [path])
    assert not report.changed
    assert one(database, "trm_a")["relationships"] == []
    imported(database, tmp_path, "concept.json", [term("a", relationships=[])])
    imported(database, tmp_path, "concept.json", [term("b")])
    assert one(database, "trm_a")["relationships"] == [kind_of("b")], "its teller could not have told of it"


def test_another_definition_without_an_id_gets_a_new_one(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a")])
    imported(database, tmp_path, "concept.json", [{"id": "trm_a", "definition_text": "Another."}])
    (record,) = listed(database)
    assert record["definition_text"] == "Another."
    assert record["def_id"] != "def_a"
    assert record["creation_time"] == term("a")["creation_time"]


def test_a_relation_between_the_wrong_collections_does_not_show(database: Database, tmp_path: Path) -> None:
    contrast = {"id": "cnt_1", "name": "c", "concepts": [{"id": "trm_t", "name": "t", "relationship": "MEASUREDBY"}]}
    imported(database, tmp_path, "contrast.json", [contrast])
    imported(database, tmp_path, "task.json", [term("t")])
    with reading(database) as now:
        assert b"".join(now.measured_by("cnt_1")) == b"[]"
    assert one(database, "cnt_1")["concepts"] == []


def test_the_collection_is_told_by_option_then_type_then_file_name(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a", type="task")])
    imported(database, tmp_path, "task.2020.json", [term("b")])
    imported(database, tmp_path, "whatever.json", term("c"), collection=CONCEPT)
    assert [record["id"] for record in listed(database, "task")] == ["trm_a", "trm_b"]
    assert [record["id"] for record in listed(database)] == ["trm_c"]
    with pytest.raises(ImportRefused) as refused:
        imported(database, tmp_path, "whatever.json", [term("d"), term("e")])
    (problem,) = refused.value.problems
    assert "--collection" in problem.detail


def test_a_missing_key_is_filled_with_a_warning_and_stays_so(database: Database, tmp_path: Path) -> None:
    bare = {"id": "trm_x", "name": "x", "creation_time": 1577934245000, "alias": None}
    report = imported(database, tmp_path, "concept.json", [bare])
    assert any("alias" in note.detail for note in report.warnings.kept)
    (record,) = listed(database)
    assert set(record) == set(term("x"))
    assert record["id_user"] == record["def_id_user"] == SYSTEM_USER
    assert record["event_stamp"] == record["def_event_stamp"] == "2020-01-02T03:04:05"
    assert record["last_updated"] == bare["creation_time"]
    assert record["def_id"].startswith("def_")
    assert not imported(database, tmp_path, "concept.json", [bare]).changed
    assert listed(database) == [record]


def test_what_a_server_holds_is_taken_with_a_warning(database: Database, tmp_path: Path) -> None:
    odd = [
        term("a", name="", event_stamp="yesterday", id_user="someone", relationships=[kind_of("a")]),
        term("b", id="weird id", id_concept_class="ctp_gone", unknown_key=1),
    ]
    report = imported(database, tmp_path, "concept.json", odd)
    said = " | ".join(note.detail for note in report.warnings.kept)
    for sign in ("empty name", "yesterday", "someone", "weird id", "ctp_gone", "unknown_key", "where it began"):
        assert sign in said
    records = {record["id"]: record for record in listed(database)}
    assert records["trm_a"]["event_stamp"] == "yesterday"
    assert "unknown_key" not in records["weird id"]
    assert one(database, "trm_a")["relationships"][0]["id"] == "trm_a"


def test_a_stamp_is_odd_where_there_is_no_such_day(database: Database, tmp_path: Path) -> None:
    days = ("01-31", "02-28", "04-30", "12-29", "02-30", "04-31", "06-00", "13-01")
    records = [term(day.replace("-", ""), event_stamp=f"2023-{day}T00:00:00") for day in (*days, "02-29")]
    records.append(term("leap", event_stamp="2024-02-29T00:00:00"))
    report = imported(database, tmp_path, "concept.json", records)
    told = [note.detail.rpartition(": ")[2][5:10] for note in report.warnings.kept]
    assert told == ["02-30", "04-31", "06-00", "13-01", "02-29"]


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
def test_what_cannot_be_taken_is_refused_with_file_line_and_reason(
    tmp_path: Path, new_url: Any, text: str, line: int, reason: str
) -> None:
    database = Database(new_url("sqlite"))
    migrate(database)
    good = write(tmp_path / "task.json", [term("good")])
    bad = tmp_path / "concept.json"
    bad.write_text(text)
    with pytest.raises(ImportRefused) as refused:
        import_files(database, [good, bad])
    (problem,) = refused.value.problems
    assert problem.field.startswith(f"{bad}, line {line}")
    assert reason in problem.detail
    assert listed(database, "task") == []
    assert database.position().revision == 0
    database.close()


def test_every_problem_of_every_file_is_told_at_once(database: Database, tmp_path: Path) -> None:
    one = write(tmp_path / "concept.json", [term("a", name=1, alias=2), term("b", name=3)])
    other = write(tmp_path / "task.json", [term("c", name=None, def_id=[])])
    with pytest.raises(ImportRefused) as refused:
        import_files(database, [one, other, tmp_path / "absent.json"])
    assert len(refused.value.problems) == 5


def test_an_id_cannot_be_in_two_collections(database: Database, tmp_path: Path) -> None:
    imported(database, tmp_path, "concept.json", [term("a")])
    with pytest.raises(ImportRefused):
        imported(database, tmp_path, "task.json", [term("a"), term("b")])
    with pytest.raises(ImportRefused):
        import_files(
            database, [write(tmp_path / "concept.json", [term("c")]), write(tmp_path / "task.json", [term("c")])]
        )
    assert listed(database, "task") == []


def test_records_longer_than_the_window_are_read_whole(database: Database, tmp_path: Path) -> None:
    records = [term(f"n{number}", definition_text="é\n" * 300_000) for number in range(5)]
    imported(database, tmp_path, "concept.json", records)
    assert listed(database) == records


def test_an_export_of_all_comes_in_again_as_it_was(
    database: Database, sample_paths: list[Path], new_url: Any, tmp_path: Path
) -> None:
    import_files(database, sample_paths)
    path = tmp_path / "all.json"
    path.write_bytes(b"".join(export(database, About(), FORMATS["v-alpha"])))
    other = Database(new_url("sqlite"))
    migrate(other)
    report = import_files(other, [path])
    assert report.warnings.count == 0
    assert exported(other) == exported(database)
    assert not import_files(database, [path]).changed
    other.close()


def test_names_of_any_length_are_taken_and_ordered_and_found(database: Database, tmp_path: Path) -> None:
    rng = random.Random(1)
    start = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=1_900))
    whole = "".join(rng.choices("abcdefghijklmnopqrstuvwxyzäöü語", k=6_000))
    names = [start + "b", start + "A", start + "c", whole, whole.upper() + "x", "short"]
    imported(database, tmp_path, "concept.json", [term(str(at), name=name) for at, name in enumerate(names)])
    assert check(database).problems == []
    told = [record["name"] for record in listed(database) if len(record["name"]) < 2_000]
    assert told == sorted(told, key=str.casefold)
    with database.read() as snapshot:
        for name, suffix in ((whole, "3"), (whole.upper(), "3"), (whole + "X", "4")):
            stored = records.find_named(snapshot, CONCEPT, name)
            assert stored is not None
            assert stored.id == f"trm_{suffix}"
        assert records.find_named(snapshot, CONCEPT, whole + "y") is None


def test_an_id_that_no_index_can_hold_is_refused_with_its_line(database: Database, tmp_path: Path) -> None:
    long = "trm_" + "x" * 6_000
    with pytest.raises(ImportRefused) as refused:
        imported(database, tmp_path, "concept.json", [term("a", id=long), term("b", relationships=[kind_of(long)])])
    assert ["line 1" in problem.field for problem in refused.value.problems] == [True, True]
    assert listed(database) == []


def interrupted(
    url: str, source: Path, when: str, feed: bytes = b"", by: signal.Signals = signal.SIGINT
) -> tuple[int, str]:
    """Run an import on a terminal, press Ctrl-C (or worse) once it shows a word, and tell how it ended."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "lexarium", "import", str(source), "--collection", "concept", "--database", url]
    process = subprocess.Popen(command, stdout=side, stderr=side, env={**os.environ, "TERM": "xterm-256color"})
    os.close(side)
    writer = source.open("wb", buffering=0) if feed else None
    if writer is not None:
        writer.write(feed)
    seen = ""
    while when not in seen and select.select([main], [], [], 30)[0]:
        seen += os.read(main, 65536).decode(errors="replace")
    process.send_signal(by)
    if writer is not None:
        writer.close()
    with suppress(OSError):  # the other side is closed
        while select.select([main], [], [], 30)[0] and (piece := os.read(main, 65536)):
            seen += piece.decode(errors="replace")
    os.close(main)
    return process.wait(30), seen


@pytest.mark.parametrize("by", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGKILL])
def test_an_import_that_is_ended_while_it_writes_leaves_the_catalogue_as_it_was(
    database: Database, url: str, tmp_path: Path, by: signal.Signals
) -> None:
    imported(database, tmp_path, "concept.json", [term("a")])
    position = database.position()
    many = write(tmp_path / "many.json", [term(f"n{number}") for number in range(30_000)] + [term("a", name="other")])
    indexes = indexes_of(url)
    code, seen = interrupted(url, many, "writing", by=by)
    if by == signal.SIGINT:
        assert code == 130
        assert "the catalogue is as it was" in seen
    assert database.position() == position
    assert indexes_of(url) == indexes
    assert listed(database) == [term("a")]
    assert check(database).problems == []
    assert imported(database, tmp_path, "concept.json", [term("b")]).changed, "and it can be written to"


@pytest.mark.full
@pytest.mark.parametrize("by", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGKILL])
def test_a_first_import_that_is_ended_while_it_writes_leaves_nothing(
    url: str, tmp_path: Path, by: signal.Signals
) -> None:
    open_database(url).close()
    many = write(tmp_path / "many.json", [term(f"n{number}") for number in range(30_000)])
    interrupted(url, many, "writing", by=by)
    database = open_database(url)
    assert database.position().revision == 0
    assert check(database).problems == []
    assert dict(import_files(database, [many], collection=CONCEPT).created) == {"concept": 30_000}
    assert check(database).problems == []
    database.close()


def test_a_catalogue_is_loaded_also_while_a_server_has_it_open(server: Server, tmp_path: Path) -> None:
    assert server.get("/api/v-alpha/concept").json == []
    many = write(tmp_path / "concept.json", [term(f"n{number}") for number in range(1_500)])
    assert run("import", many, "--database", server.url).returncode == 0
    # On PostgreSQL a server hears of what others write, a little later.
    wait_until(lambda: len(server.get("/api/v-alpha/concept").json) == 1_500)


def test_a_loaded_database_keeps_its_write_ahead_log(tmp_path: Path) -> None:
    many = write(tmp_path / "concept.json", [term(f"n{number}") for number in range(1_500)])
    assert run("import", many, "--database", f"sqlite:///{tmp_path}/new.db").returncode == 0
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def indexes_of(url: str) -> set[str]:
    with plain(url) as connection:
        return {str(each["name"]) for table in ("record", "change") for each in inspect(connection).get_indexes(table)}


def test_what_is_loaded_at_once_is_what_comes_piece_by_piece(
    database: Database, url: str, new_url: Any, tmp_path: Path
) -> None:
    records = [term(f"n{number:04}", name=f"Ñame {number % 7}", alias="a, b") for number in range(2_500)]
    records[5] = {"id": "trm_bare", "name": "only a name", "creation_time": 1, "def_id": "def_1"}
    records[6]["relationships"] = [kind_of("n0007"), kind_of("bare")]
    records[2_000] = records[1_000] | {"alias": "told again"}
    indexes = indexes_of(url)
    imported(database, tmp_path, "concept.json", records)
    assert indexes_of(url) == indexes
    assert check(database).problems == []
    apart = open_database(new_url("sqlite"))
    for start in range(0, 2_500, 500):
        imported(apart, tmp_path, "concept.json", records[start : start + 500])
    assert exported(database) == exported(apart)
    apart.close()


def test_ctrl_c_while_it_reads_leaves_the_catalogue_as_it_was(database: Database, url: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    many = json.dumps([term(f"n{number}") for number in range(10_000)])
    code, _ = interrupted(url, pipe, "reading", many[:-1].encode())
    assert code == 130
    assert database.position().revision == 0
    assert listed(database) == []
