"""`lexarium check` reports every kind of damage."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table, delete, func, insert, select, text, update

from lexarium.domain.change import Change
from lexarium.domain.record import Relation
from lexarium.search.index import IndexDirectory, IndexPosition, SearchIndex, SearchIndexWriter
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.maintenance.index_check import check_index
from lexarium.services.search.indexer import Indexer
from lexarium.store import change_log, revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.releases import compress_chunk
from lexarium.store.schema import (
    account_table,
    alternative_id_table,
    catalogue_table,
    change_table,
    comment_table,
    delivery_table,
    idempotency_table,
    import_base_table,
    import_statement_table,
    import_write_table,
    label_table,
    lease_table,
    membership_table,
    metadata,
    proposal_table,
    record_table,
    relation_table,
    release_chunk_table,
    release_file_table,
    release_table,
    token_table,
    webhook_table,
)
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.imports import build_log_entry, save_entries
from tests.support.server import run_cli
from tests.support.vocabularies import create_vocabulary

Corruption = Callable[[Connection], object]

IS_RECORD_ONE = record_table.c.id == "trm_one"
IS_FIRST_CHANGE = change_table.c.seq == 1
TABLES = [table for table in metadata.sorted_tables if table is not lease_table]
# Tables other than record, relation and change.
OTHER_ROWS: dict[Table, list[dict[str, Any]]] = {
    account_table: [{"id": "usr_1", "name": "Ada", "role": "admin", "created": 1}],
    membership_table: [{"account": "usr_1", "vocabulary": "main", "role": "curator"}],
    import_write_table: [{"batch": 1}],
    import_statement_table: [{"record": "trm_one", "source": "https://example.org/", "statements": b"{}"}],
    token_table: [{"id": "tok_1", "account": "usr_1", "label": "", "role": "admin", "hash": "x", "created": 1}],
    comment_table: [
        {
            "id": "cmt_1",
            "record": "trm_one",
            "thread": "cmt_1",
            "author": "usr_1",
            "at": 1,
            "action": "open",
            "text": "a comment",
        }
    ],
    proposal_table: [
        {
            "id": "prp_1",
            "collection": "concept",
            "record": "trm_one",
            "base_version": 1,
            "change": b"{}",
            "author": "usr_1",
            "made": 1,
            "state": "accepted",
            "decider": "usr_1",
            "decided": 1,
            "reason": "",
        },
        {
            "id": "prp_2",
            "collection": "concept",
            "record": None,
            "base_version": None,
            "change": b"{}",
            "author": "usr_1",
            "made": 1,
            "state": "open",
            "decider": None,
            "decided": None,
            "reason": "",
        },
    ],
    release_table: [{"name": "2026.1", "revision": 4, "note": "", "author": "usr_1", "made": 1}],
    release_file_table: [
        {
            "release": "2026.1",
            "format": "obo",
            "media_type": "text/obo",
            "size": 4,
            "sha256": sha256(b"file").hexdigest(),
            "made": 1,
        }
    ],
    release_chunk_table: [
        {"release": "2026.1", "format": "obo", "number": 0, "content": compress_chunk(b"fi")},
        {"release": "2026.1", "format": "obo", "number": 1, "content": compress_chunk(b"le")},
    ],
    idempotency_table: [{"account": "usr_1", "key": "k", "request": "x", "answer": b"{}", "made": 1}],
    webhook_table: [
        {
            "id": "whk_1",
            "url": "https://example.org",
            "secret": "x",
            "collections": "concept task",
            "actions": "create",
            "seq": 4,
            "created": 1,
            "attempts": 0,
            "due": 0,
        }
    ],
    delivery_table: [{"id": 1, "webhook": "whk_1", "seq": 4, "at": 1, "status": 200, "error": ""}],
    import_base_table: [{"record": "trm_one", "untaken": b"{}"}],
}


@pytest.fixture(scope="module", params=ENGINES)
def database_url(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> str:
    return new_url(request.param)


@pytest.fixture(scope="module")
def filled_database(database_url: str) -> Iterator[Database]:
    """Catalogue of three records, one of them edited, one related to another."""
    database = open_database(database_url)
    relation = Relation("trm_two", "KINDOF", "trm_one")
    two = build_log_entry("two")
    with database.write() as transaction:
        related = replace(two, record=two.record.with_relations([relation]))
        save_entries(transaction, build_log_entry("one"), related, build_log_entry("three"))
        change_log.update_relations(transaction, [relation], [])
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("first", suffix="one", version=2))
    with disable_foreign_keys(database) as connection:
        for table, rows in OTHER_ROWS.items():
            connection.execute(insert(table), rows)
    yield database
    database.close()


@contextmanager
def disable_foreign_keys(database: Database) -> Iterator[Connection]:
    """Open a transaction without foreign key checks."""
    with database.backend.connect_write() as connection:
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            if not isinstance(driver, sqlite3.Connection):
                connection.execute(text("SET LOCAL session_replication_role = replica"))
            yield connection
        if isinstance(driver, sqlite3.Connection):
            driver.execute("PRAGMA foreign_keys=ON")


@pytest.fixture
def database(filled_database: Database) -> Iterator[Database]:
    """The filled catalogue, restored after each test."""
    with filled_database.read() as connection:
        rows = {table: [row._asdict() for row in connection.execute(select(table))] for table in TABLES}
    yield filled_database
    with disable_foreign_keys(filled_database) as connection:
        for table in TABLES:
            connection.execute(delete(table))
            if rows[table]:
                connection.execute(insert(table), rows[table])


def corrupt_body(connection: Connection) -> None:
    body = connection.execute(select(record_table.c.body).where(IS_RECORD_ONE)).scalar_one()
    connection.execute(
        update(record_table).where(IS_RECORD_ONE).values(body=body.replace(b'"id_user":"', b'"id_user":"x'))
    )


def truncate_document(connection: Connection) -> None:
    document = connection.execute(select(change_table.c.document).where(change_table.c.seq == 4)).scalar_one()
    connection.execute(update(change_table).where(change_table.c.seq == 4).values(document=document[:100]))


def alter_old_version(connection: Connection) -> None:
    """Change a text in an older version; the version stays well formed."""
    document = connection.execute(select(change_table.c.document).where(IS_FIRST_CHANGE)).scalar_one()
    altered_document = document.replace(b'"skos:prefLabel":"one"', b'"skos:prefLabel":"altered"')
    assert altered_document != document
    connection.execute(update(change_table).where(IS_FIRST_CHANGE).values(document=altered_document))


def set_first_row(table: Table, **values: Any) -> Corruption:
    """Return a corruption that updates the first row of a table."""
    first = next(iter(table.primary_key.columns))
    return lambda connection: connection.execute(
        update(table).where(first == select(func.min(first)).scalar_subquery()).values(values)
    )


CORRUPTIONS: list[tuple[Corruption, str]] = [
    (corrupt_body, "trm_one differs from the change log"),
    (
        lambda to: to.execute(update(record_table).where(IS_RECORD_ONE).values(state="retired")),
        "trm_one differs from the change log",
    ),
    (
        lambda to: to.execute(update(record_table).where(IS_RECORD_ONE).values(order_key="z")),
        "trm_one has wrong rendered JSON",
    ),
    (
        lambda to: to.execute(update(record_table).where(IS_RECORD_ONE).values(version=9)),
        "version 9 of trm_one is not in the log",
    ),
    (
        lambda to: to.execute(update(record_table).where(IS_RECORD_ONE).values(collection="x")),
        "an unknown collection",
    ),
    (
        lambda to: to.execute(delete(record_table).where(IS_RECORD_ONE)),
        "trm_one is in the log but not in the catalogue",
    ),
    (lambda to: to.execute(delete(relation_table)), "trm_two differs from the change log"),
    (
        lambda to: to.execute(insert(alternative_id_table), {"name": "x:1", "record": "trm_one"}),
        "trm_one has alternative IDs or translated names that differ from the change log",
    ),
    (
        lambda to: to.execute(insert(label_table), {"record": "trm_one", "language": "fr", "name": "un"}),
        "trm_one has alternative IDs or translated names that differ from the change log",
    ),
    (
        lambda to: to.execute(insert(relation_table).values(source="trm_three", relation="KINDOF", target="trm_one")),
        "trm_three differs from the change log",
    ),
    (
        lambda to: to.execute(delete(change_table).where(change_table.c.seq == 3)),
        "revision 4, its log has 3 changes up to 4",
    ),
    (lambda to: to.execute(update(catalogue_table).values(revision=3)), "revision 3, its log has 4 changes up to 4"),
    (
        lambda to: to.execute(delete(change_table).where(change_table.c.seq == 1)),
        "the log is missing a version of trm_one",
    ),
    (truncate_document, "version 2 of trm_one cannot be read in the log"),
    (
        lambda to: to.execute(update(change_table).where(change_table.c.seq == 1).values(owner="x")),
        "change 1 in the log is wrong",
    ),
    (
        lambda to: to.execute(update(change_table).where(change_table.c.seq == 1).values(document=b"{")),
        "change 1 in the log is wrong",
    ),
    (alter_old_version, "change 1 in the log is wrong"),
    (set_first_row(change_table, at=2), "change 1 in the log is wrong: version 1 of trm_one"),
    (set_first_row(change_table, actor="usr_2"), "change 1 in the log is wrong"),
    (set_first_row(change_table, batch=2), "change 1 in the log is wrong"),
    (set_first_row(change_table, action="merge"), "change 1 in the log is wrong"),
    (set_first_row(change_table, digest=b"x"), "change 1 in the log is wrong"),
    (set_first_row(change_table, digest=None), "change 1 in the log is wrong"),
    (lambda to: to.execute(delete(account_table)), "token tok_1: account 'usr_1' is missing"),
    (set_first_row(account_table, role="boss"), "account usr_1: role 'boss' does not exist"),
    (set_first_row(token_table, account="usr_9"), "token tok_1: account 'usr_9' is missing"),
    (set_first_row(token_table, role="boss"), "token tok_1: role 'boss' does not exist"),
    (set_first_row(proposal_table, author="usr_9"), "proposal prp_1: author 'usr_9' is missing"),
    (set_first_row(proposal_table, decider="usr_9"), "proposal prp_1: decider 'usr_9' is missing"),
    (set_first_row(proposal_table, decider=None), "proposal prp_1: state 'accepted' does not match its decider"),
    (set_first_row(proposal_table, state="open"), "proposal prp_1: state 'open' does not match its decider"),
    (set_first_row(proposal_table, state="odd"), "proposal prp_1: state 'odd' does not exist"),
    (set_first_row(proposal_table, collection="odd"), "proposal prp_1: collection 'odd' does not exist"),
    (set_first_row(proposal_table, record="trm_9"), "proposal prp_1: record 'trm_9' is missing"),
    (set_first_row(proposal_table, base_version=9), "proposal prp_1: base_version 9 is not a version of its record"),
    (set_first_row(proposal_table, change=b"{"), "proposal prp_1: change cannot be read"),
    (set_first_row(comment_table, record="trm_9"), "comment cmt_1: record 'trm_9' is missing"),
    (set_first_row(comment_table, thread="cmt_9"), "comment cmt_1: thread 'cmt_9' is missing"),
    (set_first_row(comment_table, action="odd"), "comment cmt_1: action 'odd' does not exist"),
    (set_first_row(release_table, author="usr_9"), "release 2026.1: author 'usr_9' is missing"),
    (set_first_row(release_table, revision=5), "release 2026.1: revision 5 is not in the log"),
    (set_first_row(release_file_table, release="2026.2"), "release_file 2026.2 obo: release '2026.2' is missing"),
    (
        lambda to: to.execute(update(release_chunk_table).values(release="2026.2")),
        "release_chunk 2026.2 obo 0: release '2026.2' is missing",
    ),
    (
        lambda to: to.execute(update(release_chunk_table).values(content=compress_chunk(b"fi"))),
        "the obo file of the release 2026.1 differs from what was rendered",
    ),
    (
        lambda to: to.execute(update(release_chunk_table).values(content=b"file")),
        "the obo file of the release 2026.1 differs from what was rendered",
    ),
    (set_first_row(idempotency_table, account="usr_9"), "idempotency usr_9 k: account 'usr_9' is missing"),
    (set_first_row(idempotency_table, answer=b"[]"), "idempotency usr_1 k: answer cannot be read"),
    (set_first_row(webhook_table, seq=5), "webhook whk_1: seq 5 is not in the log"),
    (set_first_row(webhook_table, collections="concept odd"), "webhook whk_1: collections has 'odd'"),
    (set_first_row(webhook_table, actions="odd"), "webhook whk_1: actions has 'odd'"),
    (set_first_row(delivery_table, webhook="whk_9"), "delivery 1: webhook 'whk_9' is missing"),
    (set_first_row(delivery_table, seq=5), "delivery 1: seq 5 is not in the log"),
    (set_first_row(import_base_table, record="trm_9"), "upstream trm_9: record 'trm_9' is missing"),
    (set_first_row(membership_table, account="usr_9"), "membership usr_9 main: account 'usr_9' is missing"),
    (set_first_row(membership_table, role="boss"), "membership usr_1 main: role 'boss' does not exist"),
    (
        lambda connection: connection.execute(insert(label_table).values(record="trm_one", language="de", name="x")),
        "trm_one has alternative IDs or translated names that differ from the change log",
    ),
    (
        lambda connection: connection.execute(insert(alternative_id_table), {"record": "uat\x1f1", "name": "old:1"}),
        "alternative_id old:1 1 in uat: record '1 in uat' is missing",
    ),
    (set_first_row(import_write_table, batch=9), "import_write 9: batch 9 is missing"),
    (set_first_row(import_statement_table, record="trm_9"), "import_statement trm_9 https://example.org/: record"),
    (set_first_row(import_base_table, untaken=b""), "upstream trm_one: untaken cannot be read"),
]


@pytest.mark.parametrize(("corrupt", "message"), CORRUPTIONS, ids=[message for _, message in CORRUPTIONS])
def test_inconsistencies_of_a_catalogue_are_reported(database: Database, corrupt: Corruption, message: str) -> None:
    assert check_database(database).problems == []
    with disable_foreign_keys(database) as connection:
        corrupt(connection)
    assert any(message in problem for problem in check_database(database).problems)


MAIN_TABLES = {record_table, relation_table, change_table, catalogue_table}


def test_every_table_is_checked() -> None:
    assert {*MAIN_TABLES, alternative_id_table, label_table, *OTHER_ROWS} == set(TABLES)


@pytest.fixture
def index(database: Database, tmp_path: Path) -> Path:
    """Folder of an intact index."""
    indexer = Indexer(database, str(tmp_path / "index"))
    indexer.catch_up()
    indexer.stop()
    assert check_index(database, tmp_path / "index").problems == []
    return tmp_path / "index"


def index_old_version(writing: SearchIndexWriter, changes: list[Change]) -> None:
    writing.replace(changes[0])


def index_twice(writing: SearchIndexWriter, changes: list[Change]) -> None:
    writing.add(changes[3])


def index_unknown_record(writing: SearchIndexWriter, changes: list[Change]) -> None:
    document = changes[3].document.replace(b"trm_one", b"trm_ten")
    writing.add(changes[3]._replace(record_id="trm_ten", document=document))


def index_wrong_label(writing: SearchIndexWriter, changes: list[Change]) -> None:
    writing.replace(changes[3]._replace(document=changes[3].document.replace(b"first", b"worst")))


def clear_index(writing: SearchIndexWriter, changes: list[Change]) -> None:
    writing.clear()


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (index_old_version, "trm_one in the search index differs from the log: version 1"),
        (index_twice, "trm_one in the search index differs from the log: version 2, published, version 2"),
        (index_wrong_label, "trm_one in the search index differs from the log: version 2"),
        (clear_index, "trm_two in the search index differs from the log: nothing"),
        (index_unknown_record, "1 documents of missing records"),
    ],
)
def test_inconsistencies_between_index_and_catalogue_are_reported(
    database: Database, index: Path, corrupt: Callable[[SearchIndexWriter, list[Change]], None], message: str
) -> None:
    with database.read() as connection:
        changes = revisions.list_since(connection, 0, 10)
        position = read_position(connection)
    path = IndexDirectory(index).current_path()
    assert path is not None
    writing = SearchIndex(path).open_writer()
    corrupt(writing, changes)
    writing.commit(IndexPosition(position.epoch, position.revision))
    writing.close()
    assert any(message in problem for problem in check_index(database, index).problems)


def test_the_index_of_a_catalogue_that_has_only_vocabularies_is_checked(
    new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    database = open_database(new_url("sqlite"))
    create_vocabulary(database, "birds")
    indexer = Indexer(database, str(tmp_path))
    indexer.catch_up()
    indexer.stop()
    report = check_index(database, tmp_path)
    assert (report.problems, report.remarks) == ([], [])
    database.close()


def test_an_unreadable_index_is_reported(database: Database, index: Path) -> None:
    path = IndexDirectory(index).current_path()
    assert path is not None
    for file in path.glob("*.store"):
        file.write_bytes(b"")
    assert any("cannot be read" in problem for problem in check_index(database, index).problems)


def test_a_lagging_or_missing_index_is_only_a_remark(database: Database, index: Path) -> None:
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("four"))
        save_entries(transaction, build_log_entry("second", suffix="one", version=3))
    comparison = check_index(database, index)
    assert comparison.problems == []
    assert "is at revision 4, the catalogue at 6" in comparison.remarks[0]
    shutil.rmtree(index)
    missing = check_index(database, index)
    assert missing.problems == []
    assert "no search index" in missing.remarks[0]


def test_the_command_checks_the_index_too(database: Database, index: Path, database_url: str) -> None:
    def run_check() -> tuple[int, list[str]]:
        result = run_cli("check", "--json", "--database", database_url, LEXARIUM_INDEX=str(index))
        return result.returncode, json.loads(result.stdout)["problems"]

    assert run_check() == (0, [])
    test_an_unreadable_index_is_reported(database, index)
    code, problems = run_check()
    assert code == 1
    assert "cannot be read" in problems[0]


@pytest.mark.parametrize("command", ["check", "serve", "backup", "restore"])
def test_a_file_with_a_damaged_schema_is_reported_as_damaged(command: str, tmp_path: Path) -> None:
    """Also where a table name is not text any more, which the driver cannot decode."""
    file = tmp_path / "catalogue.db"
    assert run_cli("migrate", "--database", f"sqlite:///{file}").returncode == 0
    with sqlite3.connect(file) as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    at = content.index(b"CREATE TABLE")
    content[at - 16 : at] = b"\xff" * 16
    file.write_bytes(content)
    arguments = {
        "backup": [tmp_path / "backup", "--database", f"sqlite:///{file}"],
        "restore": [file, "--database", f"sqlite:///{tmp_path}/new.db"],
    }
    result = run_cli(command, *arguments.get(command, ["--database", f"sqlite:///{file}"]))
    assert result.returncode == 1
    assert f"{file} is not an SQLite database, or it is damaged" in " ".join(result.stderr.split())


def test_the_command_suggests_a_restore_for_an_inconsistent_catalogue(database: Database, database_url: str) -> None:
    with disable_foreign_keys(database) as connection:
        set_first_row(change_table, at=2)(connection)
    result = run_cli("check", "--database", database_url)
    text = " ".join(result.stderr.split())
    assert result.returncode == 1
    assert "1 problem: • change 1 in the log is wrong: version 1 of trm_one" in text
    assert "`lexarium restore`" in text
