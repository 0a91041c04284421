"""JSON Lines of a vocabulary: it moves to another server with its head record, schema and history."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lexarium.domain.account import Role
from lexarium.domain.change import Action
from lexarium.domain.errors import ImportRejected
from lexarium.domain.identifiers import SYSTEM_USER_ID, qualify_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import INTEGER, Statement, Text, normalize
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, register_vocabularies
from lexarium.formats.registry import FORMATS
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store import change_log, revisions, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.formats.test_linkml_instances import SCHEMA, VALUES, any_statements
from tests.formats.test_plain_records import SAMPLE_SCHEMA
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.record_editor import RecordEditor
from tests.support.server import run_cli
from tests.support.vocabularies import add_concept, create_vocabulary, update_vocabulary


@pytest.fixture
def other_database(database: Database, new_url: DatabaseUrlFactory) -> Iterator[Database]:
    new_database = open_database(new_url("sqlite" if database.is_embedded else "postgres"))
    yield new_database
    new_database.close()


def export(database: Database, slug: str) -> bytes:
    vocabulary = VOCABULARIES[slug]
    return b"".join(export_records(database, vocabulary, FORMATS["jsonl"], vocabulary.collections))


def export_all(database: Database) -> bytes:
    return b"".join(export_records(database, VOCABULARIES["main"], FORMATS["jsonl"], list(COLLECTIONS.values())))


def make_curator(database: Database) -> Caller:
    return Caller(add_account(database, "Ada", Role.ADMIN), Role.ADMIN, "tok_test")


def write_garden(database: Database) -> None:
    """Create a vocabulary with a history: edits, a revert, a merge, a retired record, another schema."""
    create_vocabulary(database, "other", schema="skos")
    create_vocabulary(database, "garden", **VALUES, minting="gd:{n}", private=True, defines=["gd"])
    ada, plant = make_curator(database), COLLECTIONS["garden/plant"]
    with database.write() as transaction:
        editor = RecordEditor(transaction, ada)
        for name in ("rose", "briar", "oak", "moss"):
            editor.create(plant, {"name": name})
        editor.create(COLLECTIONS["other/concept"], {"name": "galaxy"})

    def edit(number: int, **patch: Any) -> None:
        with database.write() as transaction:
            editor = RecordEditor(transaction, ada)
            editor.patch(editor.get_published(plant, f"garden\x1fgd:{number}"), patch)

    edit(1, name="Rose", names=[{"text": "rose sauvage", "lang": "fr"}], relations={"beside": ["gd:3"]})
    edit(2, relations={"beside": ["gd:4"]})
    with database.read() as snapshot:
        first = revisions.find_version(snapshot, "garden\x1fgd:1", 1)
    assert first
    database.run_write(lambda transaction: RecordEditor(transaction, ada).revert(first, 2))
    schema = SCHEMA.replace("slots: [rings]", "slots: [rings, age]").replace(
        "\nslots:\n", "\nslots:\n  age: {range: integer}\n"
    )
    update_vocabulary(database, "garden", schema=schema, title="The garden", default=True)
    with database.write() as transaction:
        editor, plant = RecordEditor(transaction, ada), COLLECTIONS["garden/plant"]
        editor.merge(editor.get_published(plant, "garden\x1fgd:2"), "gd:1")
        editor.retire(editor.get_published(plant, "garden\x1fgd:4"))


def test_a_vocabulary_is_moved_to_another_server_with_all_its_content(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    write_garden(database)
    document = export(database, "garden")
    assert b"\\u001f" not in document
    path = tmp_path / "garden.jsonl"
    path.write_bytes(document)
    with database.read() as snapshot:
        history = revisions.list_history(snapshot, "garden\x1fgd:1", 1_000)
    before = VOCABULARIES["garden"].to_values() | {"default": False}
    register_vocabularies([])
    report = import_files(other_database, [path], vocabulary=None)
    assert (report.vocabulary, report.created, report.warnings.count) == ("garden", {"plant": 4}, 0)
    assert VOCABULARIES["garden"].to_values() == before
    assert "other" not in VOCABULARIES
    assert export(other_database, "garden") == document
    with other_database.read() as snapshot:
        copied = revisions.list_history(snapshot, "garden\x1fgd:1", 1_000)
        merged = get_record(snapshot, "garden\x1fgd:2").record
    assert [(item.version, item.at, item.actor, item.action, item.document) for item in copied] == [
        (item.version, item.at, item.actor, item.action, item.document) for item in history
    ]
    assert (merged.state, merged.replaced_by) == (RecordState.MERGED, "garden\x1fgd:1")
    assert check_database(other_database).problems == []
    assert not import_files(other_database, [path], vocabulary=None).has_changes
    assert export(other_database, "garden") == document


def test_records_of_a_class_without_names_are_moved(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    create_vocabulary(database, "samples", schema=SAMPLE_SCHEMA)
    sample = COLLECTIONS["samples/sample"]
    record = Record(sample, "samples\x1fs1", (Statement(sample.field_predicates["weight"], Text("5", "", INTEGER)),))
    with database.write() as transaction:
        change_log.save_records(transaction, [RecordWrite(record, 1, Action.CREATE)], actor=SYSTEM_USER_ID, at=1)
    document = export(database, "samples")
    path = tmp_path / "samples.jsonl"
    path.write_bytes(document)
    register_vocabularies([])
    assert import_files(other_database, [path], vocabulary=None).created == {"sample": 1}
    assert export(other_database, "samples") == document


def test_a_newer_export_continues_the_copy_and_keeps_local_edits(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    write_garden(database)
    path = tmp_path / "garden.jsonl"
    path.write_bytes(export(database, "garden"))
    register_vocabularies([])
    import_files(other_database, [path], vocabulary=None)
    ada, plant = make_curator(other_database), COLLECTIONS["garden/plant"]
    with other_database.write() as transaction:
        editor = RecordEditor(transaction, ada)
        editor.patch(editor.get_published(plant, "garden\x1fgd:3"), {"code": "OK"})
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for number in (1, 3):
        last = [line for line in lines if line.get("id") == f"gd:{number}"][-1]
        statements = {**last["statements"], "skos:prefLabel": f"new {number}"}
        lines.append({**last, "version": last["version"] + 1, "write": 99 + number, "statements": statements})
    path.write_text("\n".join(map(json.dumps, lines)))
    report = import_files(other_database, [path], vocabulary=None)
    assert (report.updated, report.conflicts.count) == ({"plant": 2}, 0)
    assert "\x1f" not in repr(report)
    with other_database.read() as snapshot:
        rose, oak = (get_record(snapshot, f"garden\x1fgd:{number}").record for number in (1, 3))
    assert (rose.fields["name"], oak.fields["name"], oak.fields["code"]) == ("new 1", "new 3", "OK")
    assert check_database(other_database).problems == []


def test_several_vocabularies_are_moved_at_once(database: Database, other_database: Database, tmp_path: Path) -> None:
    write_garden(database)
    (tmp_path / "concept.csv").write_text("name\nmemory\n")
    run_import(database, ImportRequest([tmp_path / "concept.csv"]))
    document = export_all(database)
    assert b"\\u001f" not in document
    header, *lines = map(json.loads, document.splitlines())
    assert set(header["vocabularies"]) == {"main", "garden", "other"}
    assert {line["vocabulary"] for line in lines} == {"main", "garden", "other"}
    path = tmp_path / "all.jsonl"
    path.write_bytes(document)
    before = {slug: item.to_values() | {"default": False} for slug, item in VOCABULARIES.items()}
    register_vocabularies([])
    report = run_import(other_database, ImportRequest([path]))
    assert (set(report.new_vocabularies), report.warnings.count) == ({"garden", "other"}, 0)
    assert report.created == {"plant": 4, "concept": 2}
    for slug in ("garden", "other"):
        assert VOCABULARIES[slug].to_values() == before[slug]
    assert sorted(export_all(other_database).splitlines()[1:]) == sorted(document.splitlines()[1:])
    assert check_database(other_database).problems == []
    assert not run_import(other_database, ImportRequest([path])).has_changes


def test_lines_of_a_file_with_several_vocabularies_must_name_an_included_one(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    write_garden(database)
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_all(database))
    register_vocabularies([])
    with pytest.raises(ImportRejected) as refusal:
        run_import(other_database, ImportRequest([path], "copy"))
    assert "import it without --vocabulary" in refusal.value.problems[0].detail
    path.write_bytes(path.read_bytes() + b'{"vocabulary": "third", "collection": "concept", "id": "x"}\n{}\n')
    with pytest.raises(ImportRejected) as refusal:
        run_import(other_database, ImportRequest([path]))
    assert len(refusal.value.problems) == 2
    assert all("its vocabulary is not one of" in problem.detail for problem in refusal.value.problems)
    with other_database.read() as snapshot:
        assert vocabularies.list_vocabularies(snapshot) == []


def test_a_dry_run_and_a_rejected_import_leave_no_vocabulary(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    write_garden(database)
    path = tmp_path / "garden.jsonl"
    path.write_bytes(export(database, "garden"))
    register_vocabularies([])
    assert import_files(other_database, [path], vocabulary=None, dry_run=True).created == {"plant": 4}
    assert "garden" not in VOCABULARIES
    path.write_bytes(path.read_bytes() + b'{"collection": "plant", "id": "x"}\n')
    with pytest.raises(ImportRejected) as refusal:
        import_files(other_database, [path], vocabulary=None)
    assert [problem.detail for problem in refusal.value.problems] == ["it has no statements"]
    assert "garden" not in VOCABULARIES
    with other_database.read() as snapshot:
        assert vocabularies.list_vocabularies(snapshot) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"lexarium:defines":"gd"', '"lexarium:defines":"uat"'), "uat is defined by another vocabulary"),
        (("imports: [linkml:types]", "imports: [x]"), "Cannot import `x`"),
        (('"vocabulary":"garden","version":2', '"vocabulary":"garden","version":3'), "version 3 of the vocabulary"),
    ],
)
def test_an_invalid_head_record_is_rejected_with_its_line(
    database: Database, other_database: Database, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    write_garden(database)
    path = tmp_path / "garden.jsonl"
    path.write_text(export(database, "garden").decode().replace(*change))
    register_vocabularies([])
    create_vocabulary(other_database, "uat", schema="skos", defines=["uat"])
    with pytest.raises(ImportRejected) as refusal:
        import_files(other_database, [path], vocabulary=None)
    assert message in refusal.value.problems[0].detail
    assert ", line 3" in refusal.value.problems[0].field


def test_references_of_versions_to_missing_records_are_reported(
    database: Database, other_database: Database, tmp_path: Path
) -> None:
    create_vocabulary(database, "colours", schema="skos")
    add_concept(database, "colours", "red", {"en": "red"}, broader="missing")
    path = tmp_path / "colours.jsonl"
    path.write_bytes(export(database, "colours"))
    report = run_import(other_database, ImportRequest([path], "colours"))
    missing = [item.detail for item in report.warnings.items if "does not exist" in item.detail]
    assert missing == ["red broader missing: refers to a record that does not exist"]


def test_the_commands_move_a_vocabulary_between_catalogues(tmp_path: Path) -> None:
    one, two = (("--database", f"sqlite:///{tmp_path}/{name}.db") for name in ("a", "b"))
    (tmp_path / "garden.yaml").write_text(SCHEMA)
    schema = "--schema", tmp_path / "garden.yaml", "--title", "Garden"
    run_cli("vocabulary", "add", "garden", *schema, "--prefix", "gd=https://example.org/plants/", *one)
    (tmp_path / "data.json").write_text('{"plants": [{"id": "gd:rose", "name": "rose"}]}')
    assert run_cli("import", tmp_path / "data.json", "--vocabulary", "garden", *one).returncode == 0
    file = tmp_path / "garden.jsonl.gz"
    assert run_cli("export", "--vocabulary", "garden", "-o", file, *one).returncode == 0
    moved = run_cli("import", file, *two)
    assert moved.returncode == 0, moved.stderr
    assert "New vocabulary: garden" in moved.stdout
    export_options = "export", "--vocabulary", "garden", "--format", "jsonl"
    assert run_cli(*export_options, *two).stdout == run_cli(*export_options, *one).stdout
    assert run_cli("import", file, "--vocabulary", "copy", *two).returncode == 0
    assert "rose" in run_cli("export", "--vocabulary", "copy", "--format", "linkml", *two).stdout


@pytest.mark.parametrize(("engine", "runs"), [(engine, 5) for engine in ENGINES])
def test_any_statements_are_unchanged_after_write_read_edit_revert_and_json_lines(
    engine: str, runs: int, new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    database = open_database(new_url(engine))
    ada, slugs = make_curator(database), iter(range(1_000))
    path = tmp_path / "all.jsonl"

    @settings(
        max_examples=runs,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(st.lists(any_statements, min_size=1, max_size=6))
    def check(made: list[tuple[Statement, ...]]) -> None:
        number = next(slugs)
        slug, copy = f"v{number}", f"c{number}"
        create_vocabulary(database, slug, **VALUES, title="Any statements")
        plant = COLLECTIONS[f"{slug}/plant"]
        records = [Record(plant, qualify_id(slug, f"gd:{item}"), statements) for item, statements in enumerate(made)]
        with database.write() as transaction:
            writes = [RecordWrite(record, 1, Action.CREATE) for record in records]
            changes = change_log.save_records(transaction, writes, actor=SYSTEM_USER_ID, at=1)
            change_log.update_relations(transaction, {item for record in records for item in record.relations}, ())
            vocabularies.update_derived_rows(transaction, (), records)
        with database.read() as snapshot:
            assert [get_record(snapshot, record.id).record for record in records] == records
        for change in changes:
            with database.write() as transaction:
                editor = RecordEditor(transaction, ada)
                current = editor.get_record(change.record_id)
                edited = editor.patch(current, {"sources": [*current.record.sources, "a new source"]}).record
                assert set(current.record.statements) < set(edited.statements)
            with database.write() as transaction:
                reverted = RecordEditor(transaction, ada).revert(change, 2).record
                assert set(reverted.statements) == set(current.record.statements)
        document = export(database, slug)
        path.write_bytes(document)
        report = import_files(database, [path], vocabulary=Vocabulary(copy))
        assert report.created == {"plant": len(records)}
        assert export(database, copy) == document.replace(f'"{slug}"'.encode(), f'"{copy}"'.encode())
        with database.read() as snapshot:
            for record in records:
                copied = get_record(snapshot, qualify_id(copy, record.local_id))
                assert copied.change.version == 3
                assert set(normalize(copied.record.statements)) == set(record.statements)
        import_files(database, [path], vocabulary=VOCABULARIES[copy])
        with database.read() as snapshot:
            for record in records:
                again = get_record(snapshot, qualify_id(copy, record.local_id)).record
                assert set(normalize(again.statements)) == set(record.statements)

    check()
    assert check_database(database).problems == []
    database.close()


def test_classes_and_names_of_lines_without_versions_are_those_of_their_vocabulary(
    database: Database, tmp_path: Path
) -> None:
    create_vocabulary(database, "minds", schema="cognitive-atlas")
    concept = COLLECTIONS["minds/concept"]
    name, kind = concept.field_predicates["name"], concept.field_predicates["id_concept_class"]
    broader = concept.relation_predicates["KINDOF"]
    lines = [
        {"lexarium": "jsonl", "format": 2, "vocabulary": "minds"},
        {"collection": "concept_class", "id": "c:1", "statements": {name: ["Memory"]}},
        {"collection": "concept", "id": "m:1", "statements": {name: ["recall"], kind: [{"ref": "c:1"}]}},
        {"collection": "concept", "id": "m:2", "statements": {name: ["free recall"], kind: [{"ref": "c:2"}]}},
        {"collection": "concept", "id": "m:3", "statements": {name: ["cued recall"], broader: [{"ref": "m:1"}]}},
    ]
    path = tmp_path / "minds.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    report = run_import(database, ImportRequest([path]))
    assert [item.detail for item in report.warnings.items] == ["the class c:2 is not in the catalogue"]
    assert report.names == {"m:3": "cued recall", "m:1": "recall"}


def test_lines_of_an_unknown_vocabulary_are_rejected(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "garden.jsonl"
    path.write_text('{"lexarium":"jsonl","format":2,"vocabulary":"garden"}\n{"id":"gd:1","statements":{}}\n')
    with pytest.raises(ImportRejected) as refusal:
        run_import(database, ImportRequest([path]))
    assert "the collection of the records is unknown" in refusal.value.problems[0].detail
