"""JSON Lines: all of a catalogue, history too, out and in again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import delete, update

from lexarium.domain.about import About
from lexarium.domain.accounts import Role
from lexarium.domain.aliases import Alias
from lexarium.domain.changes import Action, Change, Proposed, State, Whole
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import ImportRefused
from lexarium.domain.relations import RELATIONS, Edge
from lexarium.exchange import jsonl
from lexarium.exchange.formats import FORMATS
from lexarium.service.access import Caller, add_account
from lexarium.service.checking import check
from lexarium.service.desk import Desk
from lexarium.service.exporting import export
from lexarium.service.importing import import_files
from lexarium.service.reports import Report
from lexarium.store import schema, versions
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.databases import NewUrl
from tests.test_import import term
from tests.test_properties import storable
from tests.test_v1_model import Writes

ABOUT = About()
CONCEPT = COLLECTIONS["concept"]
LINES = FORMATS["jsonl"]


def exported(database: Database) -> bytes:
    return b"".join(export(database, ABOUT, LINES))


def wipe(database: Database) -> None:
    # Not by a transaction of ours, which would count on from where the catalogue stood.
    with database.backend.writing() as connection, connection.begin():
        for table in (schema.relation, schema.record, schema.change, schema.upstream):
            connection.execute(delete(table))
        connection.execute(update(schema.catalogue).values(revision=0))


@pytest.fixture
def other(database: Database, new_url: NewUrl) -> Iterator[Database]:
    """A second, empty catalogue on the same engine."""
    opened = open_database(new_url("sqlite" if database.embedded else "postgres"))
    yield opened
    opened.close()


def curator(database: Database) -> Caller:
    return Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")


class Copied(Writes):
    """Any sequence of writes, and in the end a copy of what came of it."""

    copy: ClassVar[Database]
    path: ClassVar[Path]

    def teardown(self) -> None:
        wipe(self.copy)
        before = exported(self.database)
        self.path.write_bytes(before)
        report = import_files(self.copy, [self.path])
        assert exported(self.copy) == before
        assert sum(report.created.values()) == len(self.versions)
        assert report.warnings.count == (not self.versions)
        assert check(self.copy).problems == []
        assert not import_files(self.copy, [self.path]).changed


@pytest.mark.parametrize(
    ("engine", "runs"), [("sqlite", 2), pytest.param("sqlite", 8, marks=pytest.mark.full), ("postgres", 2)]
)
def test_a_copy_of_any_catalogue_is_told_to_the_byte_alike(
    engine: str, runs: int, new_url: NewUrl, tmp_path: Path
) -> None:
    database, copy = open_database(new_url(engine)), open_database(new_url(engine))

    class Here(Copied):
        pass

    Here.database, Here.copy, Here.path = database, copy, tmp_path / "all.jsonl"
    Here.caller = curator(database)
    quick = settings(max_examples=runs, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Here, settings=quick)
    database.close()
    copy.close()


HOSTILE = st.one_of(
    storable, st.sampled_from(['"', "\\", "\r\n\t", "\u2028", "é\u0301", "שלום", "👩‍🔬", '{"a":1}\n', "x" * 50_000])
)
NAMES = HOSTILE.filter(bool)
ALIASES = st.builds(
    Alias.model_construct, text=NAMES, lang=st.sampled_from(["en", "de", "pt-BR"]), scope=st.just("narrow")
)


@st.composite
def wholes(draw: st.DrawFn, identifier: str, name: str, states: list[State]) -> Whole:
    """A record in any of these states that the store can hold, whoever could have written it."""
    collection = COLLECTIONS[name]
    numbers = st.integers(-(2**63), 2**63 - 1)
    fields = {each: draw(HOSTILE if kind is str else numbers) for each, kind in collection.types.items()}
    usable = [each for each, relation in RELATIONS.items() if relation.source in (None, name)]
    short = NAMES.filter(lambda text: len(text.encode()) <= 500)
    edges = draw(st.lists(st.builds(Edge, st.just(identifier), st.sampled_from(usable), short), max_size=3))
    state = draw(st.sampled_from(states))
    return Whole(
        collection=collection,
        fields={**fields, "id": identifier},
        edges=frozenset(edges),
        state=state,
        replaced_by=None if state == State.PUBLISHED else draw(short),
        aliases=draw(st.none() | st.lists(ALIASES, max_size=3).map(tuple)),
        sources=tuple(draw(st.lists(HOSTILE, max_size=2))),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """A log, each record of which has one collection, counts its versions, and is not merged in the end."""
    ids = draw(st.lists(st.sampled_from(["trm_a", "trm_b", "odd id", "é:1"]), min_size=1, max_size=6))
    kinds = {identifier: draw(st.sampled_from(list(COLLECTIONS))) for identifier in sorted(set(ids))}
    changes: list[Change] = []
    for seq, identifier in enumerate(ids, 1):
        states = [state for state in State if state != State.MERGED or identifier in ids[seq:]]
        whole = draw(wholes(identifier, kinds[identifier], states))
        proposed = draw(st.none() | st.builds(Proposed, NAMES, NAMES))
        new = not changes or draw(st.booleans())
        change = Change(
            seq=seq,
            at=draw(st.integers(0, 2**52)),
            actor=draw(NAMES.filter(lambda text: len(text.encode()) <= 500)),
            batch=seq if new else changes[-1].batch,
            action=draw(st.sampled_from(list(Action))),
            collection=kinds[identifier],
            record=identifier,
            version=ids[:seq].count(identifier),
            document=whole.document(proposed),
        )
        changes.append(change)
    return changes


@pytest.mark.parametrize("runs", [10, pytest.param(60, marks=pytest.mark.full)])
def test_any_history_comes_in_and_goes_out_as_it_was(runs: int, tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/copy.db")
    path = tmp_path / "made.jsonl"

    @settings(max_examples=runs, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def comes_and_goes(changes: list[Change]) -> None:
        wipe(database)
        document = b"".join(jsonl.write(ABOUT, len(changes), changes))
        path.write_bytes(document)
        import_files(database, [path])
        assert exported(database) == document
        with database.read() as snapshot:
            assert versions.since(snapshot, 0, 100) == changes

    comes_and_goes()
    database.close()


def test_what_was_merged_elsewhere_can_be_undone_here(database: Database, other: Database, tmp_path: Path) -> None:
    ada = curator(database)
    with database.write() as transaction:
        desk = Desk(transaction, ada)
        one, two, child = (desk.create(CONCEPT, {"name": name}).whole.id for name in ("one", "two", "child"))
        desk.relate(desk.current(CONCEPT, child), "KINDOF", one)
    database.run(lambda transaction: Desk(transaction, ada).merge(Desk(transaction, ada).current(CONCEPT, one), two))
    path = tmp_path / "all.jsonl"
    path.write_bytes(exported(database))
    import_files(other, [path])
    with other.read() as snapshot:
        first = versions.find_version(snapshot, one, 1)
    assert first is not None
    other.run(lambda transaction: Desk(transaction, curator_of(ada)).revert(first, 2))
    with other.read() as snapshot:
        revision = read_position(snapshot).revision
        now = {each: versions.find(snapshot, each, revision) for each in (one, two, child)}
    wholes = {each: change.whole() for each, change in now.items() if change}
    assert {whole.state for whole in wholes.values()} == {State.PUBLISHED}
    assert wholes[child].edges == {Edge(child, "KINDOF", one)}
    assert wholes[two].alias_list == ()
    assert check(other).problems == []


def curator_of(caller: Caller) -> Caller:
    """Someone else: no account of this catalogue made what is told."""
    return replace(caller, account=replace(caller.account, id="usr_other"))


def edited(document: bytes, identifier: str, **fields: Any) -> bytes:
    """A newer edition: the last version of a record, changed and added as another."""
    lines = [json.loads(line) for line in document.splitlines()]
    last = [line for line in lines if line.get("id") == identifier][-1]
    newer = {**last, "version": last["version"] + 1, "write": lines[-1]["write"] + 1, "action": "update"}
    newer["record"] = {**last["record"], **fields}
    return document + json.dumps(newer).encode() + b"\n"


@pytest.fixture
def copied(database: Database, other: Database, tmp_path: Path) -> tuple[Database, Path, str]:
    """A copy of a catalogue whose only record someone made elsewhere, the file it came from, and the record."""
    ada = curator(database)
    saved = database.run(
        lambda transaction: Desk(transaction, ada).create(CONCEPT, {"name": "one", "definition_text": "First."})
    )
    path = tmp_path / "all.jsonl"
    path.write_bytes(exported(database))
    import_files(other, [path])
    return other, path, saved.whole.id


def rewrite(database: Database, caller: Caller, identifier: str, definition: str) -> None:
    with database.write() as transaction:
        desk = Desk(transaction, caller)
        desk.patch(desk.current(CONCEPT, identifier), {"definition_text": definition})


def fields_of(database: Database, identifier: str) -> dict[str, Any]:
    with database.read() as snapshot:
        found = versions.find(snapshot, identifier, read_position(snapshot).revision)
    assert found
    return found.whole().fields


def test_a_newer_edition_keeps_what_people_made_of_a_record_here(copied: tuple[Database, Path, str]) -> None:
    copy, path, identifier = copied
    grace = curator(copy)
    rewrite(copy, grace, identifier, "Ours.")
    assert not import_files(copy, [path]).changed
    rewrite(copy, grace, identifier, "Ours again.")
    path.write_bytes(edited(path.read_bytes(), identifier, name="one again"))
    report = import_files(copy, [path])
    assert (report.updated["concept"], report.conflicts.count) == (1, 0)
    now = fields_of(copy, identifier)
    assert (now["name"], now["definition_text"]) == ("one again", "Ours again.")
    path.write_bytes(edited(path.read_bytes(), identifier, definition_text="Theirs."))
    report = import_files(copy, [path])
    assert [each.field for each in report.conflicts.kept] == ["definition_text"]
    assert fields_of(copy, identifier)["definition_text"] == "Ours again."


def test_a_record_goes_on_where_the_file_knows_it_and_else_takes_what_its_last_version_says(
    copied: tuple[Database, Path, str],
) -> None:
    copy, path, identifier = copied
    path.write_bytes(edited(edited(path.read_bytes(), identifier, name="two"), identifier, name="three"))
    assert import_files(copy, [path]).updated == {"concept": 1}
    assert fields_of(copy, identifier)["name"] == "three"
    with copy.read() as snapshot:
        assert len(versions.history(snapshot, identifier, 100)) == 3
    rewrite(copy, curator(copy), identifier, "Ours.")
    path.write_bytes(edited(edited(path.read_bytes(), identifier, name="four"), identifier, name="five"))
    assert import_files(copy, [path]).updated == {"concept": 1}
    assert fields_of(copy, identifier)["name"] == "five"
    with copy.read() as snapshot:
        assert len(versions.history(snapshot, identifier, 100)) == 5


def test_a_relation_that_waited_for_a_record_is_there_once_its_history_comes(
    copied: tuple[Database, Path, str], other: Database, tmp_path: Path
) -> None:
    copy, path, identifier = copied
    wipe(copy)
    contrast = tmp_path / "contrast.json"
    concepts = [{"id": identifier, "name": "one", "relationship": "MEASUREDBY"}]
    contrast.write_text(json.dumps([{"id": "cnt_1", "name": "a > b", "concepts": concepts}]))
    import_files(copy, [contrast])
    import_files(copy, [path])
    with copy.read() as snapshot:
        found = versions.find(snapshot, identifier, 100)
    assert found
    assert found.whole().edges == {Edge(identifier, "MEASUREDBY", "cnt_1")}
    assert check(copy).problems == []


def test_several_exports_of_one_catalogue_come_in_together(copied: tuple[Database, Path, str], tmp_path: Path) -> None:
    copy, path, identifier = copied
    newer = tmp_path / "newer.jsonl"
    newer.write_bytes(edited(path.read_bytes(), identifier, name="two"))
    wipe(copy)
    assert import_files(copy, [path, newer]).created == {"concept": 1}
    with copy.read() as snapshot:
        assert [each.version for each in versions.history(snapshot, identifier, 100)] == [2, 1]


def test_records_a_line_need_no_history(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "concept.jsonl"
    parent = {"relationship": "KINDOF", "direction": "parent", "id": "trm_a", "name": "a"}
    lines = [term("a"), {**term("b"), "relationships": [parent]}, {"collection": "concept", "record": term("c")}]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    assert import_files(database, [path]).created == {"concept": 3}
    assert not import_files(database, [path]).changed
    assert check(database).problems == []


def test_another_language_is_told(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"".join(export(database, replace(ABOUT, language="de"), LINES)))
    assert "language is de" in import_files(database, [path]).warnings.kept[0].detail


LINE = {
    "collection": "concept", "id": "trm_a", "version": 1, "write": 1, "at": 1, "actor": "usr_a", "action": "create",
    "state": "published", "record": term("a"), "relations": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1, 2]", "an object"),
        ('{"a": ', "not one JSON object"),
        ('{"lexarium": "jsonl", "format": 2}', "newer Lexarium"),
        ('{"lexarium": true}', "which format"),
        ({**LINE, "collection": "animal"}, "animal"),
        ({**LINE, "record": 3}, "not an object"),
        ({**LINE, "id": "trm_b"}, "not its record's"),
        ({**LINE, "state": "lost"}, "state of trm_a is none of published"),
        ({**LINE, "state": 3}, "state of trm_a"),
        ({**LINE, "action": "eat"}, "action of trm_a is none of create"),
        ({**LINE, "version": "1"}, "version of trm_a is not a whole number"),
        ({**LINE, "at": True}, "at of trm_a is not a whole number"),
        ({**LINE, "actor": ""}, "actor of trm_a"),
        ({**LINE, "actor": "a\x00"}, "U+0000"),
        ({**LINE, "relations": {"ISA": ["dso_a"]}}, "no relation of a concept"),
        ({**LINE, "relations": {"KINDOF": "trm_b"}}, "relations/KINDOF of trm_a"),
        ({**LINE, "relations": {"KINDOF": ["x" * 501]}}, "too long"),
        ({**LINE, "relations": []}, "relations of trm_a is not an object"),
        ({**LINE, "aliases": ["a"]}, "aliases of trm_a"),
        ({**LINE, "aliases": [{"text": "a", "scope": "odd"}]}, "aliases of trm_a"),
        ({**LINE, "aliases": [{"text": "a", "lang": 'es"/><x'}]}, "aliases of trm_a"),
        ({**LINE, "aliases": [{"text": "a\x00"}]}, "U+0000"),
        ({**LINE, "sources": "a book"}, "sources of trm_a"),
        ({**LINE, "proposed": {"by": "usr_b"}}, "proposed of trm_a"),
        ({**LINE, "version": 2}, "version 2 of trm_a comes where version 1 was expected"),
        ({**LINE, "version": 1, "actor": "usr_b"}, "version 1 of trm_a comes where version 2 was expected"),
    ],
)
def test_a_line_that_cannot_be_taken_is_named_and_nothing_is(
    tmp_path: Path, line: dict[str, Any] | str, said: str
) -> None:
    database = open_database(f"sqlite:///{tmp_path}/x.db")
    path = tmp_path / "all.jsonl"
    wrong = line if isinstance(line, str) else json.dumps(line)
    first = LINE if "where version 2" in said else {**LINE, "id": "trm_z", "record": term("z")}
    path.write_text(f"{json.dumps(first)}\n{wrong}\n")
    with pytest.raises(ImportRefused) as refused:
        import_files(database, [path])
    problem = refused.value.problems[0]
    assert f"{path}, line 2" in problem.field
    assert said in problem.detail
    with database.read() as snapshot:
        assert read_position(snapshot).revision == 0
    database.close()


def test_a_dry_run_tells_all_and_changes_nothing(copied: tuple[Database, Path, str]) -> None:
    copy, path, _ = copied
    wipe(copy)
    report: Report = import_files(copy, [path], dry_run=True)
    assert report.created == {"concept": 1}
    with copy.read() as snapshot:
        assert read_position(snapshot).revision == 0


def test_every_line_that_is_no_record_is_told(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "concept.jsonl"
    wrong = b'{"id": \n' + json.dumps(term("a")).encode() + b'\n[]\n\n{"id": "trm_b", "name": 1}\nx\n'
    path.write_bytes(wrong * 600)
    with pytest.raises(ImportRefused, match="Nothing was imported: 2,400 problems") as caught:
        import_files(database, [path])
    where = [problem.field.removeprefix(f"{path}, ") for problem in caught.value.problems]
    assert where[:5] == ["line 1, column 1", "line 3, column 1", "line 5", "line 6, column 1", "line 7, column 1"]
    assert len(where) == 1_000
