"""`lexarium check` tells whatever was broken on purpose: each of its looks is seen to find something."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table, delete, func, insert, select, text, update

from lexarium.domain.changes import Change
from lexarium.domain.relations import Edge
from lexarium.search.index import IndexFolder, OpenIndex, Standing, Writing
from lexarium.service.checking import check
from lexarium.service.indexed import compare
from lexarium.service.indexing import Indexer
from lexarium.store import log, versions
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.store.schema import (
    account,
    catalogue,
    change,
    delivery,
    idempotency,
    lease,
    metadata,
    proposal,
    record,
    relation,
    release,
    token,
    upstream,
    webhook,
)
from tests.databases import ENGINES, NewUrl
from tests.server import run
from tests.test_store import entry, save

Break = Callable[[Connection], object]

ONE = record.c.id == "trm_one"
FIRST = change.c.seq == 1
TABLES = [table for table in metadata.sorted_tables if table is not lease]
BESIDE: dict[Table, list[dict[str, Any]]] = {
    account: [{"id": "usr_1", "name": "Ada", "role": "admin", "created": 1}],
    token: [{"id": "tok_1", "account": "usr_1", "label": "", "role": "admin", "hash": "x", "created": 1}],
    proposal: [
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
    release: [{"name": "2026.1", "revision": 4, "note": "", "author": "usr_1", "made": 1}],
    idempotency: [{"account": "usr_1", "key": "k", "request": "x", "answer": b"{}", "made": 1}],
    webhook: [
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
    delivery: [{"id": 1, "webhook": "whk_1", "seq": 4, "at": 1, "status": 200, "error": ""}],
    upstream: [{"record": "trm_one", "untaken": b"{}"}],
}
"""What stands beside records, relations and log."""


@pytest.fixture(scope="module", params=ENGINES)
def address(request: pytest.FixtureRequest, new_url: NewUrl) -> str:
    return new_url(request.param)


@pytest.fixture(scope="module")
def whole(address: str) -> Iterator[Database]:
    """A catalogue of three records, one of them edited, one related to another."""
    database = open_database(address)
    edge = Edge("trm_two", "KINDOF", "trm_one")
    two = entry("two")
    with database.write() as transaction:
        related = replace(two, whole=replace(two.whole, edges=frozenset({edge})))
        save(transaction, entry("one"), related, entry("three"))
        log.relate(transaction, [edge], [])
    with database.write() as transaction:
        save(transaction, entry("first", suffix="one", version=2))
    with altered(database) as connection:
        for table, rows in BESIDE.items():
            connection.execute(insert(table), rows)
    yield database
    database.close()


@contextmanager
def altered(database: Database) -> Iterator[Connection]:
    """A transaction in which nothing is held to foreign keys."""
    with database.backend.writing() as connection:
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
def database(whole: Database) -> Iterator[Database]:
    """The same, made whole again after each test."""
    with whole.read() as connection:
        rows = {table: [row._asdict() for row in connection.execute(select(table))] for table in TABLES}
    yield whole
    with altered(whole) as connection:
        for table in TABLES:
            connection.execute(delete(table))
            connection.execute(insert(table), rows[table])


def changed_body(connection: Connection) -> None:
    body = connection.execute(select(record.c.body).where(ONE)).scalar_one()
    connection.execute(update(record).where(ONE).values(body=body.replace(b'"id_user":"', b'"id_user":"x')))


def cut_document(connection: Connection) -> None:
    document = connection.execute(select(change.c.document).where(change.c.seq == 4)).scalar_one()
    connection.execute(update(change).where(change.c.seq == 4).values(document=document[:100]))


def altered_past(connection: Connection) -> None:
    """Alter a text in a version that is not the last, such that it is as well formed as before."""
    document = connection.execute(select(change.c.document).where(FIRST)).scalar_one()
    said = document.replace(b'"definition_text":""', b'"definition_text":"altered"')
    assert said != document
    connection.execute(update(change).where(FIRST).values(document=said))


def to(table: Table, **values: Any) -> Break:
    """The first row of a table says something else."""
    first = next(iter(table.primary_key.columns))
    return lambda connection: connection.execute(
        update(table).where(first == select(func.min(first)).scalar_subquery()).values(values)
    )


BREAKS: list[tuple[Break, str]] = [
    (changed_body, "trm_one is not what the log says it is"),
    (lambda to: to.execute(update(record).where(ONE).values(state="retired")), "trm_one is not what the log says"),
    (lambda to: to.execute(update(record).where(ONE).values(order_key="z")), "trm_one is not rendered as it should be"),
    (lambda to: to.execute(update(record).where(ONE).values(version=9)), "version 9 of trm_one is not in the log"),
    (lambda to: to.execute(update(record).where(ONE).values(collection="x")), "a collection that there is not"),
    (lambda to: to.execute(delete(record).where(ONE)), "trm_one is in the log but not in the catalogue"),
    (lambda to: to.execute(delete(relation)), "trm_two is not what the log says it is"),
    (
        lambda to: to.execute(insert(relation).values(source="trm_three", relation="KINDOF", target="trm_one")),
        "trm_three is not what the log says it is",
    ),
    (lambda to: to.execute(delete(change).where(change.c.seq == 3)), "revision 4, its log has 3 changes up to 4"),
    (lambda to: to.execute(update(catalogue).values(revision=3)), "revision 3, its log has 4 changes up to 4"),
    (lambda to: to.execute(delete(change).where(change.c.seq == 1)), "the log lacks a version of trm_one"),
    (cut_document, "version 2 of trm_one cannot be read in the log"),
    (lambda to: to.execute(update(change).where(change.c.seq == 1).values(owner="x")), "change 1 in the log is not as"),
    (
        lambda to: to.execute(update(change).where(change.c.seq == 1).values(document=b"{")),
        "change 1 in the log is not",
    ),
    (altered_past, "change 1 in the log is not as it should be"),
    (to(change, at=2), "change 1 in the log is not as it should be: version 1 of trm_one"),
    (to(change, actor="usr_2"), "change 1 in the log is not as it should be"),
    (to(change, batch=2), "change 1 in the log is not as it should be"),
    (to(change, action="merge"), "change 1 in the log is not as it should be"),
    (to(change, digest=b"x"), "change 1 in the log is not as it should be"),
    (to(change, digest=None), "change 1 in the log is not as it should be"),
    (lambda to: to.execute(delete(account)), "token tok_1: account 'usr_1' is not there"),
    (to(account, role="boss"), "account usr_1: role 'boss' is none that there is"),
    (to(token, account="usr_9"), "token tok_1: account 'usr_9' is not there"),
    (to(token, role="boss"), "token tok_1: role 'boss' is none that there is"),
    (to(proposal, author="usr_9"), "proposal prp_1: author 'usr_9' is not there"),
    (to(proposal, decider="usr_9"), "proposal prp_1: decider 'usr_9' is not there"),
    (to(proposal, decider=None), "proposal prp_1: state 'accepted' does not go with its decider"),
    (to(proposal, state="open"), "proposal prp_1: state 'open' does not go with its decider"),
    (to(proposal, state="odd"), "proposal prp_1: state 'odd' is none that there is"),
    (to(proposal, collection="odd"), "proposal prp_1: collection 'odd' is none that there is"),
    (to(proposal, record="trm_9"), "proposal prp_1: record 'trm_9' is not there"),
    (to(proposal, base_version=9), "proposal prp_1: base_version 9 is no version of its record"),
    (to(proposal, change=b"{"), "proposal prp_1: change cannot be read"),
    (to(release, author="usr_9"), "release 2026.1: author 'usr_9' is not there"),
    (to(release, revision=5), "release 2026.1: revision 5 is not in the log"),
    (to(idempotency, account="usr_9"), "idempotency usr_9 k: account 'usr_9' is not there"),
    (to(idempotency, answer=b"[]"), "idempotency usr_1 k: answer cannot be read"),
    (to(webhook, seq=5), "webhook whk_1: seq 5 is not in the log"),
    (to(webhook, collections="concept odd"), "webhook whk_1: collections has 'odd'"),
    (to(webhook, actions="odd"), "webhook whk_1: actions has 'odd'"),
    (to(delivery, webhook="whk_9"), "delivery 1: webhook 'whk_9' is not there"),
    (to(delivery, seq=5), "delivery 1: seq 5 is not in the log"),
    (to(upstream, record="trm_9"), "upstream trm_9: record 'trm_9' is not there"),
    (to(upstream, untaken=b""), "upstream trm_one: untaken cannot be read"),
]


@pytest.mark.parametrize(("broken", "told"), BREAKS, ids=[told for _, told in BREAKS])
def test_a_catalogue_that_does_not_agree_with_itself_is_told_of(database: Database, broken: Break, told: str) -> None:
    assert check(database).problems == []
    with altered(database) as connection:
        broken(connection)
    assert any(told in problem for problem in check(database).problems)


def test_every_table_is_looked_at() -> None:
    assert {record, relation, change, catalogue, *BESIDE} == set(TABLES)


@pytest.fixture
def index(database: Database, tmp_path: Path) -> Path:
    """The folder of a sound index."""
    indexer = Indexer(database, str(tmp_path / "index"))
    indexer.catch_up()
    indexer.stop()
    assert compare(database, tmp_path / "index").problems == []
    return tmp_path / "index"


def stale(writing: Writing, changes: list[Change]) -> None:
    writing.put(changes[0])


def twice(writing: Writing, changes: list[Change]) -> None:
    writing.add(changes[3])


def strange(writing: Writing, changes: list[Change]) -> None:
    document = changes[3].document.replace(b"trm_one", b"trm_ten")
    writing.add(replace(changes[3], record="trm_ten", document=document))


def mislabelled(writing: Writing, changes: list[Change]) -> None:
    writing.put(replace(changes[3], document=changes[3].document.replace(b"first", b"worst")))


def empty(writing: Writing, changes: list[Change]) -> None:
    writing.clear()


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (stale, "trm_one is not in the search index as the log has it, but version 1"),
        (twice, "trm_one is not in the search index as the log has it, but version 2, published, version 2"),
        (mislabelled, "trm_one is not in the search index as the log has it, but version 2"),
        (empty, "trm_two is not in the search index as the log has it, but nothing"),
        (strange, "1 documents of no record that there is"),
    ],
)
def test_an_index_that_does_not_agree_with_the_catalogue_is_told_of(
    database: Database, index: Path, broken: Callable[[Writing, list[Change]], None], told: str
) -> None:
    with database.read() as connection:
        changes = versions.since(connection, 0, 10)
        position = read_position(connection)
    path = IndexFolder(index).current()
    assert path is not None
    writing = OpenIndex(path).write()
    broken(writing, changes)
    writing.commit(Standing(position.epoch, position.revision))
    writing.close()
    assert any(told in problem for problem in compare(database, index).problems)


def test_an_index_that_cannot_be_read_is_told_of(database: Database, index: Path) -> None:
    path = IndexFolder(index).current()
    assert path is not None
    for file in path.glob("*.store"):
        file.write_bytes(b"")
    assert any("cannot be read" in problem for problem in compare(database, index).problems)


def test_an_index_that_is_behind_or_missing_is_no_fault_and_told_of(database: Database, index: Path) -> None:
    with database.write() as transaction:
        save(transaction, entry("four"))
        save(transaction, entry("second", suffix="one", version=3))
    behind = compare(database, index)
    assert behind.problems == []
    assert "stands at revision 4, the catalogue at 6" in behind.remarks[0]
    shutil.rmtree(index)
    missing = compare(database, index)
    assert missing.problems == []
    assert "no search index" in missing.remarks[0]


def test_the_command_looks_at_the_index_too(database: Database, index: Path, address: str) -> None:
    def told() -> tuple[int, list[str]]:
        done = run("check", "--json", "--database", address, LEXARIUM_INDEX=str(index))
        return done.returncode, json.loads(done.stdout)["problems"]

    assert told() == (0, [])
    test_an_index_that_cannot_be_read_is_told_of(database, index)
    code, problems = told()
    assert code == 1
    assert "cannot be read" in problems[0]


@pytest.mark.parametrize("command", ["check", "serve", "backup", "restore"])
def test_a_file_whose_schema_is_damaged_is_told_as_damaged(command: str, tmp_path: Path) -> None:
    """Also where the name of a table is no text any more, which the driver cannot spell."""
    file = tmp_path / "catalogue.db"
    assert run("migrate", "--database", f"sqlite:///{file}").returncode == 0
    with sqlite3.connect(file) as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    at = content.index(b"CREATE TABLE")
    content[at - 16 : at] = b"\xff" * 16
    file.write_bytes(content)
    there = {
        "backup": [tmp_path / "backup", "--database", f"sqlite:///{file}"],
        "restore": [file, "--database", f"sqlite:///{tmp_path}/new.db"],
    }
    told = run(command, *there.get(command, ["--database", f"sqlite:///{file}"]))
    assert told.returncode == 1
    assert f"{file} is not an SQLite database, or it is damaged" in " ".join(told.stderr.split())


def test_the_command_tells_what_to_do_about_a_broken_catalogue(database: Database, address: str) -> None:
    with altered(database) as connection:
        to(change, at=2)(connection)
    done = run("check", "--database", address)
    told = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "1 problem: • change 1 in the log is not as it should be: version 1 of trm_one" in told
    assert "`lexarium restore`" in told
