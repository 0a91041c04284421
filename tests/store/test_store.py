"""Store on both engines: transactions, change log, migrations."""

import sqlite3
import stat
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, select, text
from sqlalchemy.exc import DBAPIError

from lexarium.domain.account import Role
from lexarium.domain.change import Action, ChangeFilter
from lexarium.domain.errors import DatabaseUnavailable, InvalidDatabase, SchemaTooNew, SettingError, StoreError
from lexarium.domain.proposal import ProposalFilter
from lexarium.domain.record import ListQuery, Relation, parse_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.maintenance.database_check import check_database
from lexarium.store import accounts, change_log, migrations, proposals, records, relations, revisions, write_queue
from lexarium.store.database import Database
from lexarium.store.engine.node_state import NodeState
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance import integrity
from lexarium.store.maintenance.upgrade import open_database, upgrade_schema
from lexarium.store.revisions import PageKey
from lexarium.store.schema import change_table, metadata
from lexarium.store.transaction import Transaction
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import wait_until
from tests.support.postgres import open_sqlalchemy
from tests.support.vocabularies import add_concept, create_vocabulary, purge_vocabulary, remove_vocabulary

pytestmark = pytest.mark.both_engines


def list_ids(database: Database, kind: str) -> list[str]:
    with database.read() as connection:
        return [
            orjson.loads(body)["id"] for bodies in records.iter_bodies(connection, COLLECTIONS[kind]) for body in bodies
        ]


def test_a_write_stores_the_record_and_its_log_entry(database: Database) -> None:
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("one"), build_log_entry("two"))
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("other", suffix="one", version=2))
    with database.read() as connection:
        rows = connection.execute(select(change_table).order_by(change_table.c.seq)).all()
        stored = records.find(connection, "trm_one")
    assert [(row.seq, row.record, row.version, row.action) for row in rows] == [
        (1, "trm_one", 1, Action.CREATE),
        (2, "trm_two", 1, Action.CREATE),
        (3, "trm_one", 2, Action.UPDATE),
    ]
    assert stored is not None
    assert stored.version == 2
    assert stored.body == parse_record("concept", rows[2].document).rendered.body
    assert database.get_position().revision == 3


def test_counts_do_not_include_records_of_a_purged_vocabulary(database: Database) -> None:
    for local_id in ("frog", "newt"):
        create_vocabulary(database, "pond")
        add_concept(database, "pond", local_id, {"en": local_id})
        with database.read() as snapshot:
            counts = database.counts.count_at(snapshot, read_position(snapshot).revision)
        assert counts["pond/concept", "published"] == 1
        remove_vocabulary(database, "pond")
        purge_vocabulary(database, "pond")


def test_a_failed_write_stores_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), database.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
        change_log.update_relations(transaction, [Relation("trm_one", "KINDOF", "trm_two")], [])
        raise RuntimeError("on purpose")
    with database.read() as connection:
        assert records.count(connection) == 0
        assert relations.find_touching(connection, ["trm_one"]) == set()
        assert integrity.find_log_extent(connection).count == 0
    assert database.get_position().revision == 0


def test_a_reader_sees_a_consistent_snapshot_during_writes(database: Database) -> None:
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
    with database.read() as connection:
        assert records.count(connection) == 1
        with database.write() as transaction:
            save_entries(transaction, build_log_entry("two"))
        assert records.count(connection) == 1
    assert list_ids(database, "concept") == ["trm_one", "trm_two"]


def test_writes_are_serialized_and_seq_has_no_gaps(database: Database) -> None:
    def write(number: int) -> None:
        with database.write() as transaction:
            save_entries(transaction, build_log_entry(f"n{number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(40)))
    with database.read() as connection:
        extent = integrity.find_log_extent(connection)
    assert (extent.count, extent.last_seq) == (40, 40)
    assert database.get_position().revision == 40


def test_another_process_is_notified_of_a_write(url: str) -> None:
    one, other = open_database(url), open_database(url)
    assert other.get_position().revision == 0
    with one.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
    assert one.get_position().revision == 1
    if url.startswith("sqlite"):
        assert other.get_position().revision == 1
    else:
        wait_until(lambda: other.get_position().revision == 1)
    one.close()
    other.close()


def test_processes_of_a_node_share_the_latest_known_position(new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    shared = tmp_path / "mark"
    shared.touch()
    one, other = NodeState(shared), NodeState(shared)
    assert other.position is None
    database = open_database(new_url("postgres"))
    worker = Database(new_url("postgres"), node_state=other)
    start = database.get_position()
    # Only the shared position shows this: it is stored nowhere else.
    later = start._replace(revision=7, writes=9)
    one.advance(later)
    assert other.position == later
    one.advance(start)
    assert other.position == later
    upgrade_schema(worker)
    assert worker.get_position().epoch != later.epoch
    one.advance(worker.get_position()._replace(revision=11, writes=99))
    assert worker.get_position().revision == 11
    one.close()
    for node in (database, worker):
        node.close()


def test_positions_from_before_a_loss_of_writes_are_never_reused(new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    """Writes are lost by promotion of a lagging standby, or by restoring an older backup."""
    url = new_url("postgres")
    path = tmp_path / "mark"
    path.touch()
    open_database(url).close()
    node = Database(url, node_state=NodeState(path))
    node.get_position()
    for name in ("kept", "lost", "lost too"):
        with node.write() as transaction:
            save_entries(transaction, build_log_entry(name))
    before = node.get_position()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE catalogue SET writes = writes - 2")
        wait_until(lambda: node.get_position().epoch != before.epoch)
        after = node.get_position()
        node.observe_position(before)  # by a reader that started earlier
        assert node.get_position() == after
        connection.execute("UPDATE catalogue SET epoch = %s", [before.epoch])
        wait_until(lambda: node.get_position().epoch not in (before.epoch, after.epoch))
        last = node.get_position()
        for earlier in (before, after):
            node.observe_position(earlier)
        assert node.get_position() == last
    node.close()


def test_a_write_that_fails_on_flush_fails_only_writes_that_share_its_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later write of the same group flushes the rows of an earlier one: both fail, the next does not."""
    monkeypatch.setattr(write_queue, "_MIN_GROUP_SECONDS", 600)
    with database.backend.connect_write() as connection, connection.begin():
        for statement in STUCK_TRIGGERS[database.is_embedded]:
            connection.exec_driver_sql(statement)
    started, waiting = threading.Event(), threading.Event()

    def keep_busy(transaction: Transaction) -> None:
        started.set()
        assert waiting.wait(60)

    def write_stuck(transaction: Transaction) -> None:
        save_entries(transaction, build_log_entry("before"), build_log_entry("stuck"))

    def read_record(transaction: Transaction) -> None:
        records.find(transaction.flush(), "trm_any")

    def write_other(transaction: Transaction) -> None:
        save_entries(transaction, build_log_entry("unconcerned"))

    database.submit_write(keep_busy)  # until all that follow are queued, so that they form one group
    assert started.wait(60)
    futures = [database.submit_write(task) for task in (write_stuck, read_record, write_other)]
    waiting.set()
    for future in futures[:2]:
        with pytest.raises((DBAPIError, DatabaseUnavailable), match="no room"):
            future.result()
    futures[2].result()
    with database.read() as snapshot:
        assert [change.to_record().fields["name"] for change in revisions.list_since(snapshot, 0, 10)] == [
            "unconcerned"
        ]


# Triggers that reject one record as a full disk would, on SQLite and PostgreSQL.
STUCK_TRIGGERS = {
    True: [
        "CREATE TRIGGER stuck BEFORE INSERT ON record WHEN NEW.name = 'stuck' BEGIN SELECT RAISE(ABORT, 'no room'); END"
    ],
    False: [
        "CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no room' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER stuck BEFORE INSERT ON record FOR EACH ROW WHEN (NEW.name = 'stuck') EXECUTE FUNCTION stuck()",
    ],
}


def test_names_are_ordered_by_code_point(database: Database) -> None:
    names = ["b", "a", "B", "A", "ä", "Z", "z", "_", "é", "e", "~", "\U0001f9e0", "\uffee", "a b", "a-b", "ab"]
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(name, suffix=str(number)) for number, name in enumerate(names)))
        save_entries(
            transaction,
            *(build_log_entry(str(number), kind="disorder", suffix=name) for number, name in enumerate("bBaA_09é")),
        )
    expected = sorted(range(len(names)), key=lambda number: (names[number].casefold(), f"trm_{number}"))
    assert list_ids(database, "concept") == [f"trm_{number}" for number in expected]
    assert list_ids(database, "disorder") == [f"dso_{name}" for name in sorted("bBaA_09é")]


def test_a_name_is_looked_up_by_spelling_then_ignoring_case_then_by_lowest_id(database: Database) -> None:
    names = {"3": "Straße", "1": "STRASSE", "2": "strasse", "5": "Cafe\u0301", "6": "I"}
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(name, suffix=suffix) for suffix, name in names.items()))
    find_id: Callable[[str], str | None]
    with database.read() as connection:

        def find_id(name: str) -> str | None:
            stored = records.find_by_name(connection, COLLECTIONS["concept"], name)
            return None if stored is None else stored.id

        assert [find_id(name) for name in ("Straße", "strasse", "sTRASSE", "STRAßE")] == [
            "trm_3",
            "trm_2",
            "trm_1",
            "trm_1",
        ]
        assert find_id("CAFÉ") == "trm_5", "the same text in another Unicode form"
        assert find_id("i") == "trm_6"
        assert find_id("none") is None


def test_a_new_database_gets_a_unique_epoch(blank_url: DatabaseUrlFactory) -> None:
    databases = [open_database(blank_url("sqlite")) for _ in range(2)]
    assert len({database.get_position().epoch for database in databases}) == 2
    for database in databases:
        database.close()


def test_reading_with_position_equals_reading_in_a_transaction(database: Database) -> None:
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
    for identifier, exists in (("trm_one", True), ("trm_none", False)):
        position, related = database.read_with_position(partial(relations.find_with_related, record_id=identifier))
        with database.read() as connection:
            assert (position, related) == relations.find_with_related(connection, identifier)
            assert position == read_position(connection)
        assert (related is not None) == exists


def test_a_second_migration_changes_nothing(database: Database) -> None:
    version = upgrade_schema(database)[1]
    assert upgrade_schema(database) == (version, version)


def test_a_new_database_has_the_schema(database: Database, url: str) -> None:
    with open_sqlalchemy(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_partial_indexes_are_partial_on_both_engines(database: Database) -> None:
    catalogue = "sqlite_master WHERE type = 'index'" if database.is_embedded else "pg_indexes"
    column = "sql" if database.is_embedded else "indexdef"
    partial_ones = {str(index.name) for table in metadata.tables.values() for index in table.indexes if index.kwargs}
    name = "name" if database.is_embedded else "indexname"
    with database.read() as connection:
        rows = connection.execute(text(f"SELECT {name}, {column} FROM {catalogue}")).all()
    partial_indexes = {name for name, definition in rows if definition and " WHERE " in definition}
    assert partial_indexes == partial_ones
    assert len(partial_indexes) == 4


def test_switching_to_the_write_ahead_log_waits_for_another_writer(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.db"
    open_database(f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN IMMEDIATE")
        database = Database(f"sqlite:///{file}")
        with ThreadPoolExecutor() as threads:
            settling = threads.submit(database.backend.configure)
            with pytest.raises(TimeoutError):
                settling.result(0.1)
            other.execute("COMMIT")
            settling.result()
        database.close()
    with closing(sqlite3.connect(file)) as another:
        assert another.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_schema_version_is_that_of_the_newest_migration() -> None:
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_current_head() == migrations.SCHEMA_VERSION


@pytest.mark.parametrize("engine", ENGINES)
def test_concurrent_migrations_create_one_database(engine: str, blank_url: DatabaseUrlFactory) -> None:
    url = blank_url(engine)
    with ThreadPoolExecutor(4) as threads:
        databases = list(threads.map(lambda _: open_database(url), range(4)))
    assert len({database.get_position() for database in databases}) == 1
    for database in databases:
        database.close()


# Tables of versions after 0007.
NEWER_INDEXES = (
    "account_by_role", "token_in_order", "token_of_account", "proposal_by_state_of_author", "proposal_of_author",
    "proposal_waits", "token_by_parent",
)  # fmt: skip


def drop_newer_tables(connection: Connection) -> None:
    for index_name in ("proposal_by_decision", "change_of_person"):
        connection.execute(text(f"DROP INDEX {index_name}"))
    for table, column in (("proposal", "summary"), ("proposal", "amended"), ("account", "notified")):
        connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
    for table in (
        "alternative_id",
        "comment",
        "import_statement",
        "label",
        "membership",
        "release_file",
        "release_chunk",
        "import_write",
    ):
        connection.execute(text(f"DROP TABLE {table}"))
    connection.execute(text("ALTER TABLE catalogue DROP COLUMN vocabularies"))


def test_an_upgrade_is_done_once_and_counts_as_a_write(url: str) -> None:
    """Otherwise a node would treat a standby that has not replayed the upgrade as current."""
    database = open_database(url)
    with database.backend.connect_write() as connection, connection.begin():
        for column in ("timeline", "parted"):
            connection.execute(text(f"ALTER TABLE catalogue DROP COLUMN {column}"))
        connection.execute(text("ALTER TABLE change DROP COLUMN digest"))
        for column in NEWER_INDEXES:
            connection.execute(text(f"DROP INDEX {column}"))
        for column in ("origin", "parent"):
            connection.execute(text(f"ALTER TABLE token DROP COLUMN {column}"))
        connection.execute(text("UPDATE catalogue SET writes = 7"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0007'"))
        drop_newer_tables(connection)
    database.close()
    databases = [Database(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda database: upgrade_schema(database, lambda _: None), databases))
    assert {database.get_position().writes for database in databases} == {8}
    for database in databases:
        database.close()


def test_a_newer_database_is_rejected_with_a_clear_message(database: Database) -> None:
    with database.write() as transaction:
        transaction.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match=r"newer Lexarium.*9999.*Upgrade"):
        upgrade_schema(database)


def test_a_new_file_is_accessible_to_its_owner_only_and_an_existing_one_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    for mode in (0o600, 0o640):
        database = open_database(f"sqlite:///{file}")
        with database.write() as transaction:
            save_entries(transaction, build_log_entry(f"with {mode:o}", suffix=str(mode)))
        beside = [path for path in tmp_path.iterdir() if path.is_file()]
        assert {f"{file.name}-wal", f"{file.name}-shm"} <= {path.name for path in beside}
        assert {stat.S_IMODE(path.stat().st_mode) for path in beside} == {mode}
        database.close()
        file.chmod(0o640)


def test_a_damaged_file_is_reported_by_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    open_database(f"sqlite:///{path}").close()
    path.write_bytes(b"x" * 5000)
    with pytest.raises(InvalidDatabase, match=r"broken\.db"):
        open_database(f"sqlite:///{path}")


def test_a_write_that_waits_too_long_for_the_lock_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexarium.store.engine.sqlite._LOCK_TIMEOUT_SECONDS", 0)
    path = tmp_path / "busy.db"
    database = open_database(f"sqlite:///{path}")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable, match="locked"), database.write():
        pass
    blocker.close()
    database.close()


def test_too_long_keys_are_truncated_by_the_upgrade(new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    name = "x" * 3_000
    with database.write() as transaction:
        save_entries(transaction, build_log_entry(name, suffix="long"), build_log_entry("short"))
        for table in ("record", "change"):
            cut = f"UPDATE {table} SET order_key = :whole, name_key = :whole WHERE length(name_key) > 1000"
            transaction.execute(text(cut), {"whole": name})
    with database.backend.connect_write() as connection, connection.begin():
        people = ("account_by_role", "token_in_order", "token_of_account", "token_by_parent")
        proposal_indexes = ("proposal_by_state_of_author", "proposal_of_author", "proposal_waits")
        for index_name in ("change_by_class", "change_flagged", *people, *proposal_indexes):
            connection.execute(text(f"DROP INDEX {index_name}"))
        connection.execute(text("DROP TABLE upstream"))
        for index_name in ("writes", "timeline", "parted"):
            connection.execute(text(f"ALTER TABLE catalogue DROP COLUMN {index_name}"))
        connection.execute(text("ALTER TABLE change DROP COLUMN digest"))
        for index_name in ("origin", "parent"):
            connection.execute(text(f"ALTER TABLE token DROP COLUMN {index_name}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
        drop_newer_tables(connection)
    assert upgrade_schema(database, lambda _: None) == ("0003", migrations.SCHEMA_VERSION)
    assert check_database(database).problems == []
    with database.read() as connection:
        record_row = records.find_by_name(connection, COLLECTIONS["concept"], name)
        keys = connection.execute(select(change_table.c.name_key).order_by(change_table.c.seq)).scalars().all()
    assert record_row is not None
    assert [len(key) for key in keys] == [2_000, 5]
    database.close()


def test_a_page_by_id_is_read_from_its_first_row(new_url: DatabaseUrlFactory) -> None:
    """PostgreSQL may scan the log twice: both times from the start of the page, in either direction."""
    database = open_database(new_url("postgres"))
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(f"{number:04}") for number in range(1_000)))
    executed = record_statements(database)
    for descending, record_id in ((False, "trm_0900"), (True, "trm_0100")):
        listing = ListQuery("concept", 1_000, sort="id", descending=descending)
        with database.read() as connection:
            page = revisions.list_page(connection, listing, PageKey(record_id, record_id), 10)
            for plan_type in ("nestloop", "hashjoin", "seqscan", "bitmapscan", "sort"):
                connection.exec_driver_sql(f"SET LOCAL enable_{plan_type} = off")
            statement, values = executed[-6]
            plan = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values).scalar_one()
        assert len(page) == 10
        assert max(list_row_counts(plan[0]["Plan"])) < 100
    database.close()


@pytest.mark.parametrize("head_ids", [(), ("\x1fgarden",)])
def test_the_latest_writes_of_few_changes_are_found_by_index(tmp_path: Path, head_ids: tuple[str, ...]) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    for number in range(3):
        with database.write() as transaction:
            save_entries(transaction, *(build_log_entry(f"{number}{place}", kind="task") for place in range(2)))
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(f"{number:03}") for number in range(200)))
    executed = record_statements(database)
    with database.read() as connection:

        def list_seqs(last_seq: int, limit: int, *collections: str) -> tuple[list[int], str]:
            """Return the sequence numbers of the changes, and the plan of the query."""
            shown = ChangeFilter(collections, head_ids)
            changes = revisions.list_last_of_writes(connection, last_seq, limit, shown)
            statement, values = executed[-1]
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            return [change.seq for change in changes], "\n".join(step.detail for step in plan)

        for last_seq, collections, seqs, is_by_index in (
            (206, ["task"], [6, 4, 2], True),
            (5, ["task"], [5, 4, 2], False),
            (206, ["concept"], [206], False),
            (206, ["concept", "task"], [206, 6, 4, 2], False),
        ):
            found, plan = list_seqs(last_seq, 10, *collections)
            assert (found, "(collection=?" in plan) == (seqs, is_by_index)
    database.close()


def test_a_page_of_given_ids_is_read_by_index(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    executed = record_statements(database)
    with database.read() as connection:
        revisions.list_page(connection, ListQuery("concept", 1, ids=("trm_1",)), None, 10)
        statement, values = executed[-1]
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert "change_of_record (record=?" in plan[0][-1]
    database.close()


def record_statements(database: Database) -> list[tuple[str, Any]]:
    """Return a list that collects the statements sent from now on."""
    executed: list[tuple[str, Any]] = []
    event.listen(
        database.backend.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, values, *_: executed.append((statement, values)),
    )
    return executed


def list_row_counts(plan: dict[str, Any]) -> list[float]:
    """Return the row counts of all nodes of a query plan."""
    own_rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return [own_rows, *(rows for part in plan.get("Plans", []) for rows in list_row_counts(part))]


def test_counts_of_past_revisions_are_cached(database: Database) -> None:
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(f"{number:04}") for number in range(1_100)))
    with database.write() as transaction:
        save_entries(
            transaction, *(build_log_entry(f"new {number}", suffix=f"{number:04}", version=2) for number in range(100))
        )
    executed = record_statements(database)
    for revision in (200, 650):
        for _ in range(3):
            with database.read() as connection:
                assert revisions.count_matching(connection, ListQuery("concept", revision), database.counts) == revision
    counting = [statement for statement, _ in executed if "count(" in statement]
    assert len(counting) == 3  # of the oldest; of the present and of what changed since the other, which is nearer


def test_new_records_of_a_transaction_are_inserted_together(database: Database) -> None:
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    executed = record_statements(database)
    with database.write() as transaction:
        executed_before = len(executed)
        for number in range(3):
            transaction.begin_write()
            RecordWriter(transaction, caller).create(COLLECTIONS["concept"], {"name": f"new {number}"})
            transaction.end_write()
        assert len(executed) == executed_before
    inserts = [values for statement, values in executed if statement.startswith("INSERT")]
    assert [len(rows) for rows in inserts] == [3, 3]  # records and log rows


def test_a_disk_that_fills_up_during_a_write_is_reported_as_full(tmp_path: Path) -> None:
    """SQLite then rolls back the whole transaction, and the savepoint to roll back to is gone."""
    database = open_database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    engine = database.backend.engine
    with engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(engine, "connect", lambda driver, _: driver.execute(f"PRAGMA max_page_count={pages + 2}").close())
    engine.dispose()

    def fill(transaction: Transaction) -> None:
        save_entries(
            transaction, *(build_log_entry(f"{number} {'x' * 1_000}", suffix=str(number)) for number in range(100))
        )
        transaction.flush()

    with pytest.raises(DatabaseUnavailable, match="full"):
        database.submit_write(fill).result()
    assert list_ids(database, "concept") == []
    database.close()


def test_missing_permissions_of_a_database_role_are_reported(blank_url: DatabaseUrlFactory) -> None:
    url = blank_url("postgres")
    role = f"poor_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    database = Database(add_query(url, user=role))
    with pytest.raises(StoreError, match=r"permission denied for schema public.* OWNER TO"):
        upgrade_schema(database)
    database.close()


def add_query(url: str, **parts: str) -> str:
    """Add query parameters to a URL."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parts)}"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_in_another_encoding_is_rejected(blank_url: DatabaseUrlFactory, encoding: str) -> None:
    url = blank_url("postgres")
    name = f"other_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SettingError, match=f"has the encoding {encoding}.*ENCODING 'UTF8'"):
        open_database(add_query(url, dbname=name))


def test_an_unescaped_password_in_a_database_url_is_not_shown(new_url: DatabaseUrlFactory) -> None:
    with pytest.raises(SettingError, match="%40") as caught:
        Database("postgresql://lexarium:p@ss@localhost/lexarium")
    assert "ss" not in str(caught.value).replace("password", "").replace("address", "")


def test_paginated_queries_of_accounts_tokens_and_proposals_use_indexes(new_url: DatabaseUrlFactory) -> None:
    database, page_key = open_database(new_url("sqlite")), (1, "x")
    with database.read() as connection:
        queries: list[tuple[str, Any]] = []
        event.listen(
            connection, "before_cursor_execute", lambda _, __, sql, values, *___: queries.append((sql, values))
        )
        for account_id in ("usr_1", None):
            accounts.list_tokens(connection, page_key, 100, account_id=account_id, active_at=1)
        accounts.find_usage(connection, ["usr_1", "usr_2"], at=1)
        accounts.has_other_admin(connection, "usr_1")
        accounts.list_accounts(connection, "a", 100)
        proposals.list_open_authors(connection, ["task"], 200)
        for proposal_filter in (
            ProposalFilter(),
            ProposalFilter(author="usr_1", newest_first=True),
            ProposalFilter(author="usr_1", newest_first=True, state=None),
            ProposalFilter(record="trm_1"),
        ):
            proposals.list_page(connection, proposal_filter, page_key, 50)
        plans = {
            sql: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all() for sql, values in [*queries]
        }
    database.close()
    assert len(plans) >= 10
    for sql, plan in plans.items():
        for step in plan:
            if step.detail.startswith(("SCAN", "USE TEMP B-TREE")):
                raise AssertionError((sql, plan))
