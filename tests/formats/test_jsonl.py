"""JSON Lines: export and import of a whole catalogue with its history."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import delete, update

from lexarium.domain.account import Role
from lexarium.domain.change import Action, Change
from lexarium.domain.errors import ImportRejected
from lexarium.domain.labels import Alias
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.json import jsonl
from lexarium.formats.parsed import WriteOptions
from lexarium.formats.registry import FORMATS
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.import_report import ImportReport
from lexarium.store import revisions, schema
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.imports import build_term
from tests.support.record_editor import RecordEditor
from tests.support.records import make_record
from tests.support.strategies import storable_texts
from tests.support.write_machine import WriteMachine

VOCABULARY = Vocabulary()
CONCEPT = COLLECTIONS["concept"]
JSONL = FORMATS["jsonl"]


def export_bytes(database: Database) -> bytes:
    return b"".join(export_records(database, VOCABULARY, JSONL))


def wipe(database: Database) -> None:
    # Without a transaction of ours, which would continue from the old position.
    with database.backend.connect_write() as connection, connection.begin():
        for table in (schema.relation_table, schema.record_table, schema.change_table, schema.import_base_table):
            connection.execute(delete(table))
        connection.execute(update(schema.catalogue_table).values(revision=0))


@pytest.fixture
def other_database(database: Database, new_url: DatabaseUrlFactory) -> Iterator[Database]:
    """A second empty catalogue on the same engine."""
    new_database = open_database(new_url("sqlite" if database.is_embedded else "postgres"))
    yield new_database
    new_database.close()


def create_curator(database: Database) -> Caller:
    return Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")


class CopyStateMachine(WriteMachine):
    """Random writes, then a copy of the catalogue."""

    copy: ClassVar[Database]
    path: ClassVar[Path]

    def teardown(self) -> None:
        wipe(self.copy)
        before = export_bytes(self.database)
        self.path.write_bytes(before)
        report = import_files(self.copy, [self.path])
        assert export_bytes(self.copy) == before
        assert sum(report.created.values()) == len(self.versions)
        # Records with the same name are imported as they are.
        warnings = [warning for warning in report.warnings.items if warning.field != "names"]
        assert len(warnings) == (not self.versions)
        assert check_database(self.copy).problems == []
        assert not import_files(self.copy, [self.path]).has_changes


@pytest.mark.parametrize(
    ("engine", "runs"),
    [
        pytest.param("sqlite", 1, marks=pytest.mark.short),
        pytest.param("sqlite", 2, marks=pytest.mark.full),
        ("postgres", 1),
    ],
)
def test_a_copy_of_any_catalogue_has_an_identical_export(
    engine: str, runs: int, new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    database, copy = open_database(new_url(engine)), open_database(new_url(engine))

    class CopyTest(CopyStateMachine):
        pass

    CopyTest.database, CopyTest.copy, CopyTest.path = database, copy, tmp_path / "all.jsonl"
    CopyTest.caller = create_curator(database)
    quick = settings(max_examples=runs, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(CopyTest, settings=quick)
    database.close()
    copy.close()


HOSTILE_TEXTS = st.one_of(
    storable_texts,
    st.sampled_from(['"', "\\", "\r\n\t", "\u2028", "é\u0301", "שלום", "👩‍🔬", '{"a":1}\n', "x" * 50_000]),
)
NAMES = HOSTILE_TEXTS.filter(bool)
ALIASES = st.builds(
    Alias.model_construct, text=NAMES, lang=st.sampled_from(["en", "de", "pt-BR"]), scope=st.just("narrow")
)


@st.composite
def records(draw: st.DrawFn, record_id: str, name: str, states: list[RecordState]) -> Record:
    """Draw a record that the store can hold, in one of the given states."""
    collection = COLLECTIONS[name]
    numbers = st.integers(-(2**63), 2**63 - 1)
    fields = {
        field_name: draw(HOSTILE_TEXTS if kind is str else numbers)
        for field_name, kind in collection.field_types.items()
    }
    type_names = list(collection.relation_types)
    short = NAMES.filter(lambda text: len(text.encode()) <= 500)
    relations = draw(st.lists(st.builds(Relation, st.just(record_id), st.sampled_from(type_names), short), max_size=3))
    state = draw(st.sampled_from(states))
    return make_record(
        collection=collection,
        fields={**fields, "id": record_id},
        relations=frozenset(relations),
        state=state,
        replaced_by=None if state == RecordState.PUBLISHED else draw(short),
        aliases=draw(st.none() | st.lists(ALIASES, max_size=3).map(tuple)),
        sources=tuple(draw(st.lists(HOSTILE_TEXTS, max_size=2))),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """Draw a change log: consecutive versions, one collection per record, none merged at the end."""
    ids = draw(st.lists(st.sampled_from(["trm_a", "trm_b", "odd id", "é:1"]), min_size=1, max_size=6))
    kinds = {record_id: draw(st.sampled_from(list(COLLECTIONS))) for record_id in sorted(set(ids))}
    changes: list[Change] = []
    for seq, record_id in enumerate(ids, 1):
        states = [state for state in RecordState if state != RecordState.MERGED or record_id in ids[seq:]]
        record = draw(records(record_id, kinds[record_id], states))
        proposed = draw(st.none() | st.builds(ProposalOrigin, NAMES, NAMES))
        is_new_write = not changes or draw(st.booleans())
        change = Change(
            seq=seq,
            at=draw(st.integers(0, 2**52)),
            actor=draw(NAMES.filter(lambda text: len(text.encode()) <= 500)),
            write_id=seq if is_new_write else changes[-1].write_id,
            action=draw(st.sampled_from(list(Action))),
            collection=kinds[record_id],
            record_id=record_id,
            version=ids[:seq].count(record_id),
            document=record.to_document(proposed),
        )
        changes.append(change)
    return changes


@pytest.mark.parametrize("runs", [pytest.param(10, marks=pytest.mark.short), pytest.param(60, marks=pytest.mark.full)])
def test_any_history_is_unchanged_after_import_and_export(runs: int, tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/copy.db")
    path = tmp_path / "made.jsonl"

    @settings(max_examples=runs, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def check_round_trip(changes: list[Change]) -> None:
        # A relation to nothing is refused.
        assume(all(relation.target for change in changes for relation in change.to_record().relations))
        wipe(database)
        document = b"".join(jsonl.write(changes, WriteOptions(FORMATS["jsonl"], VOCABULARY, len(changes))))
        path.write_bytes(document)
        import_files(database, [path])
        assert export_bytes(database) == document
        with database.read() as snapshot:
            assert revisions.list_since(snapshot, 0, 100) == changes

    check_round_trip()
    database.close()


def test_a_merge_from_another_catalogue_can_be_reverted(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    ada = create_curator(database)
    with database.write() as transaction:
        writer = RecordEditor(transaction, ada)
        first_id, two, child = (writer.create(CONCEPT, {"name": name}).record.id for name in ("one", "two", "child"))
        writer.add_relation(writer.get_published(CONCEPT, child), "KINDOF", first_id)
    database.run_write(
        lambda transaction: RecordEditor(transaction, ada).merge(
            RecordEditor(transaction, ada).get_published(CONCEPT, first_id), two
        )
    )
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_bytes(database))
    import_files(other_database, [path])
    with other_database.read() as snapshot:
        first = revisions.find_version(snapshot, first_id, 1)
    assert first is not None
    other_database.run_write(lambda transaction: RecordEditor(transaction, as_other_account(ada)).revert(first, 2))
    with other_database.read() as snapshot:
        revision = read_position(snapshot).revision
        now = {record_id: revisions.find_at(snapshot, record_id, revision) for record_id in (first_id, two, child)}
    records = {record_id: change.to_record() for record_id, change in now.items() if change}
    assert {record.state for record in records.values()} == {RecordState.PUBLISHED}
    assert records[child].relations == {Relation(child, "KINDOF", first_id)}
    assert records[two].aliases == ()
    assert check_database(other_database).problems == []


def as_other_account(caller: Caller) -> Caller:
    """Return a caller with an account that this catalogue does not have."""
    return replace(caller, account=replace(caller.account, id="usr_other"))


def add_version(document: bytes, record_id: str, **fields: Any) -> bytes:
    """Append a changed version of a record to an export."""
    lines = [json.loads(line) for line in document.splitlines()]
    last_line = [line for line in lines if line.get("id") == record_id][-1]
    newer = {**last_line, "version": last_line["version"] + 1, "write": lines[-1]["write"] + 1, "action": "update"}
    stated = {CONCEPT.field_predicates[name]: value for name, value in fields.items()}
    newer["statements"] = {**last_line["statements"], **stated}
    return document + json.dumps(newer).encode() + b"\n"


@pytest.fixture
def copied_catalogue(database: Database, other_database: Database, tmp_path: Path) -> tuple[Database, Path, str]:
    """Copy of a catalogue with one record by an unknown account; its file; the record's id."""
    ada = create_curator(database)
    saved = database.run_write(
        lambda transaction: RecordEditor(transaction, ada).create(CONCEPT, {"name": "one", "definition_text": "First."})
    )
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_bytes(database))
    import_files(other_database, [path])
    return other_database, path, saved.record.id


def edit_definition(database: Database, caller: Caller, record_id: str, definition: str) -> None:
    with database.write() as transaction:
        writer = RecordEditor(transaction, caller)
        writer.patch(writer.get_published(CONCEPT, record_id), {"definition_text": definition})


def get_fields(database: Database, record_id: str) -> dict[str, Any]:
    with database.read() as snapshot:
        change = revisions.find_at(snapshot, record_id, read_position(snapshot).revision)
    assert change
    return change.to_record().fields


def test_a_newer_edition_keeps_local_edits(copied_catalogue: tuple[Database, Path, str]) -> None:
    copy, path, record_id = copied_catalogue
    grace = create_curator(copy)
    edit_definition(copy, grace, record_id, "Ours.")
    assert not import_files(copy, [path]).has_changes
    edit_definition(copy, grace, record_id, "Ours again.")
    path.write_bytes(add_version(path.read_bytes(), record_id, name="one again"))
    report = import_files(copy, [path])
    assert (report.updated["concept"], report.conflicts.count) == (1, 0)
    now = get_fields(copy, record_id)
    assert (now["name"], now["definition_text"]) == ("one again", "Ours again.")
    path.write_bytes(add_version(path.read_bytes(), record_id, definition_text="Theirs."))
    report = import_files(copy, [path])
    assert [conflict.field for conflict in report.conflicts.items] == ["definition_text"]
    assert get_fields(copy, record_id)["definition_text"] == "Ours again."


def test_a_known_history_is_continued_and_another_one_contributes_its_last_version(
    copied_catalogue: tuple[Database, Path, str],
) -> None:
    copy, path, record_id = copied_catalogue
    path.write_bytes(add_version(add_version(path.read_bytes(), record_id, name="two"), record_id, name="three"))
    assert import_files(copy, [path]).updated == {"concept": 1}
    assert get_fields(copy, record_id)["name"] == "three"
    with copy.read() as snapshot:
        assert len(revisions.list_history(snapshot, record_id, 100)) == 3
    edit_definition(copy, create_curator(copy), record_id, "Ours.")
    path.write_bytes(add_version(add_version(path.read_bytes(), record_id, name="four"), record_id, name="five"))
    assert import_files(copy, [path]).updated == {"concept": 1}
    assert get_fields(copy, record_id)["name"] == "five"
    with copy.read() as snapshot:
        assert len(revisions.list_history(snapshot, record_id, 100)) == 5


def test_a_waiting_relation_is_completed_when_the_history_of_its_record_is_imported(
    copied_catalogue: tuple[Database, Path, str], other_database: Database, tmp_path: Path
) -> None:
    copy, path, record_id = copied_catalogue
    wipe(copy)
    contrast = tmp_path / "contrast.json"
    concepts = [{"id": record_id, "name": "one", "relationship": "MEASUREDBY"}]
    contrast.write_text(json.dumps([{"id": "cnt_1", "name": "a > b", "concepts": concepts}]))
    import_files(copy, [contrast])
    import_files(copy, [path])
    with copy.read() as snapshot:
        change = revisions.find_at(snapshot, record_id, 100)
    assert change
    assert change.to_record().relations == {Relation(record_id, "MEASUREDBY", "cnt_1")}
    assert check_database(copy).problems == []


def test_several_exports_of_one_catalogue_are_imported_together(
    copied_catalogue: tuple[Database, Path, str], tmp_path: Path
) -> None:
    copy, path, record_id = copied_catalogue
    newer = tmp_path / "newer.jsonl"
    newer.write_bytes(add_version(path.read_bytes(), record_id, name="two"))
    wipe(copy)
    assert import_files(copy, [path, newer]).created == {"concept": 1}
    with copy.read() as snapshot:
        assert [change.version for change in revisions.list_history(snapshot, record_id, 100)] == [2, 1]


def test_a_large_history_is_exported_as_it_was_imported(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "concept.jsonl"
    parent = {"relationship": "KINDOF", "direction": "parent", "id": "trm_0", "name": "0"}
    terms = [
        {**build_term(str(number)), "relationships": [parent] if number % 3 == 1 else []} for number in range(1_200)
    ]
    path.write_text("\n".join(map(json.dumps, terms)))
    import_files(database, [path])
    edit_definition(database, create_curator(database), "trm_7", "Edited.")
    path.write_bytes(export_bytes(database))
    assert import_files(other_database, [path]).created == {"concept": 1_200}
    assert export_bytes(other_database) == path.read_bytes()
    assert get_fields(other_database, "trm_7")["definition_text"] == "Edited."
    assert check_database(other_database).problems == []


def test_records_one_per_line_need_no_history(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "concept.jsonl"
    parent = {"relationship": "KINDOF", "direction": "parent", "id": "trm_a", "name": "a"}
    lines = [
        build_term("a"),
        {**build_term("b"), "relationships": [parent]},
        {"collection": "concept", "record": build_term("c")},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    assert import_files(database, [path]).created == {"concept": 3}
    assert not import_files(database, [path]).has_changes
    assert check_database(database).problems == []


def test_an_export_in_another_language_gets_a_warning(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"".join(export_records(database, replace(VOCABULARY, languages=("de",)), JSONL)))
    assert "language is de" in import_files(database, [path]).warnings.items[0].detail


VALID_LINE = {
    "collection": "concept", "id": "trm_a", "version": 1, "write": 1, "at": 1, "actor": "usr_a", "action": "create",
    "state": "published", "record": build_term("a"), "relations": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "an object"),
        ('{"a": ', "not one JSON object"),
        ('{"lexarium": "jsonl", "format": 4}', "newer Lexarium"),
        ('{"lexarium": true}', "which format"),
        ({**VALID_LINE, "collection": "animal"}, "animal"),
        ({**VALID_LINE, "record": 3}, "not an object"),
        ({**VALID_LINE, "id": "trm_b"}, "not its record's"),
        ({**VALID_LINE, "state": "lost"}, "state of trm_a is not one of published"),
        ({**VALID_LINE, "state": 3}, "state of trm_a"),
        ({**VALID_LINE, "action": "eat"}, "action of trm_a is not one of create"),
        ({**VALID_LINE, "version": "1"}, "version of trm_a is not a whole number"),
        ({**VALID_LINE, "at": True}, "at of trm_a is not a whole number"),
        ({**VALID_LINE, "actor": ""}, "actor of trm_a"),
        ({**VALID_LINE, "actor": "a\x00"}, "U+0000"),
        ({**VALID_LINE, "relations": {"ISA": ["dso_a"]}}, "not a relation of a concept"),
        ({**VALID_LINE, "relations": {"KINDOF": "trm_b"}}, "relations/KINDOF of trm_a"),
        ({**VALID_LINE, "relations": {"KINDOF": ["x" * 501]}}, "too long"),
        ({**VALID_LINE, "relations": []}, "relations of trm_a is not an object"),
        ({**VALID_LINE, "aliases": ["a"]}, "aliases of trm_a"),
        ({**VALID_LINE, "aliases": [{"text": "a", "scope": "odd"}]}, "aliases of trm_a"),
        ({**VALID_LINE, "aliases": [{"text": "a", "lang": 'es"/><x'}]}, "aliases of trm_a"),
        ({**VALID_LINE, "aliases": [{"text": "a\x00"}]}, "U+0000"),
        ({**VALID_LINE, "sources": "a book"}, "sources of trm_a"),
        ({**VALID_LINE, "proposed": {"by": "usr_b"}}, "proposed of trm_a"),
        ({**VALID_LINE, "version": 2}, "version 2 of trm_a found, but version 1 was expected"),
        ({**VALID_LINE, "version": 1, "actor": "usr_b"}, "version 1 of trm_a found, but version 2 was expected"),
    ],
)
def test_an_invalid_line_is_reported_and_nothing_is_imported(
    tmp_path: Path, line: dict[str, Any] | str, message: str
) -> None:
    database = open_database(f"sqlite:///{tmp_path}/x.db")
    path = tmp_path / "all.jsonl"
    invalid = line if isinstance(line, str) else json.dumps(line)
    first = VALID_LINE if "but version 2" in message else {**VALID_LINE, "id": "trm_z", "record": build_term("z")}
    path.write_text(f"{json.dumps(first)}\n{invalid}\n")
    with pytest.raises(ImportRejected) as error:
        import_files(database, [path])
    problem = error.value.problems[0]
    assert f"{path}, line 2" in problem.field
    assert message in problem.detail
    with database.read() as snapshot:
        assert read_position(snapshot).revision == 0
    database.close()


def test_a_dry_run_reports_all_changes_without_making_them(copied_catalogue: tuple[Database, Path, str]) -> None:
    copy, path, _ = copied_catalogue
    wipe(copy)
    report: ImportReport = import_files(copy, [path], dry_run=True)
    assert report.created == {"concept": 1}
    with copy.read() as snapshot:
        assert read_position(snapshot).revision == 0


def test_every_line_that_is_not_a_record_is_reported(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "concept.jsonl"
    invalid = b'{"id": \n' + json.dumps(build_term("a")).encode() + b'\n[]\n\n{"id": "trm_b", "name": 1}\nx\n'
    path.write_bytes(invalid * 600)
    with pytest.raises(ImportRejected, match="Nothing was imported: 2,400 problems") as caught:
        import_files(database, [path])
    locations = [problem.field.removeprefix(f"{path}, ") for problem in caught.value.problems]
    assert locations[:5] == ["line 1, column 1", "line 3, column 1", "line 5", "line 6, column 1", "line 7, column 1"]
    assert len(locations) == 1_000
