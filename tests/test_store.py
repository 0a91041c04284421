"""The store, on both engines: transactions, the log, migrations."""

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
from sqlalchemy import event, select, text
from sqlalchemy.exc import DBAPIError

from lexarium.domain.accounts import Role
from lexarium.domain.changes import Action, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.completion import complete
from lexarium.domain.errors import NotACatalogue, SettingError, StoreError, TooNew, Unavailable
from lexarium.domain.proposals import Queue
from lexarium.domain.relations import Edge
from lexarium.service.access import Caller, add_account
from lexarium.service.checking import check
from lexarium.service.desk import Desk
from lexarium.store import accounts, edges, integrity, log, migrations, proposals, records, versions
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.mark import Mark
from lexarium.store.migrate import migrate, open_database
from lexarium.store.schema import change, metadata
from lexarium.store.transaction import Transaction
from lexarium.store.versions import Listing, Place
from tests.databases import ENGINES, NewUrl
from tests.postgres import plain
from tests.waiting import wait_until

pytestmark = pytest.mark.both_engines


def entry(name: str, *, kind: str = "concept", suffix: str = "", version: int = 1) -> log.Entry:
    collection: Collection = COLLECTIONS[kind]
    fields = complete(collection, {"id": f"{collection.prefixes[0]}_{suffix or name}", "name": name}, 1_600_000_000_000)
    action = Action.CREATE if version == 1 else Action.UPDATE
    return log.Entry(Whole(collection, fields), version, action)


def save(transaction: Transaction, *entries: log.Entry) -> None:
    log.save(transaction, entries, actor="usr_test", at=1_700_000_000_000)


def ids_in_order(database: Database, kind: str) -> list[str]:
    with database.read() as connection:
        return [orjson.loads(body)["id"] for bodies in records.bodies(connection, COLLECTIONS[kind]) for body in bodies]


def test_a_write_is_the_record_and_its_row_in_the_log(database: Database) -> None:
    with database.write() as transaction:
        save(transaction, entry("one"), entry("two"))
    with database.write() as transaction:
        save(transaction, entry("other", suffix="one", version=2))
    with database.read() as connection:
        rows = connection.execute(select(change).order_by(change.c.seq)).all()
        stored = records.find(connection, "trm_one")
    assert [(row.seq, row.record, row.version, row.action) for row in rows] == [
        (1, "trm_one", 1, Action.CREATE),
        (2, "trm_two", 1, Action.CREATE),
        (3, "trm_one", 2, Action.UPDATE),
    ]
    assert stored is not None
    assert stored.version == 2
    assert stored.body in rows[2].document
    assert database.position().revision == 3


def test_a_write_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), database.write() as transaction:
        save(transaction, entry("one"))
        log.relate(transaction, [Edge("trm_one", "KINDOF", "trm_two")], [])
        raise RuntimeError("on purpose")
    with database.read() as connection:
        assert records.total(connection) == 0
        assert edges.touching(connection, ["trm_one"]) == set()
        assert integrity.log_extent(connection).count == 0
    assert database.position().revision == 0


def test_a_reader_sees_one_state_while_others_write(database: Database) -> None:
    with database.write() as transaction:
        save(transaction, entry("one"))
    with database.read() as connection:
        assert records.total(connection) == 1
        with database.write() as transaction:
            save(transaction, entry("two"))
        assert records.total(connection) == 1
    assert ids_in_order(database, "concept") == ["trm_one", "trm_two"]


def test_writers_take_turns_and_seq_has_no_gaps(database: Database) -> None:
    def write(number: int) -> None:
        with database.write() as transaction:
            save(transaction, entry(f"n{number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(40)))
    with database.read() as connection:
        extent = integrity.log_extent(connection)
    assert (extent.count, extent.last) == (40, 40)
    assert database.position().revision == 40


def test_another_process_hears_of_a_write(url: str) -> None:
    one, other = open_database(url), open_database(url)
    assert other.position().revision == 0
    with one.write() as transaction:
        save(transaction, entry("one"))
    assert one.position().revision == 1
    if url.startswith("sqlite"):
        assert other.position().revision == 1
    else:
        heard = threading.Event()
        for _ in range(200):
            if other.position().revision == 1:
                break
            heard.wait(0.01)
        assert other.position().revision == 1
    one.close()
    other.close()


def test_processes_of_a_node_stand_where_any_of_them_does(new_url: NewUrl, tmp_path: Path) -> None:
    shared = tmp_path / "mark"
    shared.touch()
    one, other = Mark(shared), Mark(shared)
    assert other.read() is None
    database = open_database(new_url("postgres"))
    worker = Database(new_url("postgres"), mark=other)
    start = database.position()
    # Nothing but the mark can tell of this: it is written nowhere.
    later = start._replace(revision=7, writes=9)
    one.advance(later)
    assert other.read() == later
    one.advance(start)
    assert other.read() == later
    migrate(worker)
    assert worker.position().epoch != later.epoch
    one.advance(worker.position()._replace(revision=11, writes=99))
    assert worker.position().revision == 11
    one.close()
    for each in (database, worker):
        each.close()


def test_what_was_before_a_loss_never_comes_back(new_url: NewUrl, tmp_path: Path) -> None:
    """As by a promotion that lost writes, and by an older backup that is put in its place."""
    url = new_url("postgres")
    path = tmp_path / "mark"
    path.touch()
    open_database(url).close()
    node = Database(url, mark=Mark(path))
    node.position()
    for name in ("kept", "lost", "lost too"):
        with node.write() as transaction:
            save(transaction, entry(name))
    before = node.position()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE catalogue SET writes = writes - 2")
        wait_until(lambda: node.position().epoch != before.epoch)
        after = node.position()
        node.notice(before)  # by whoever began to read in time
        assert node.position() == after
        connection.execute("UPDATE catalogue SET epoch = %s", [before.epoch])
        wait_until(lambda: node.position().epoch not in (before.epoch, after.epoch))
        last = node.position()
        for earlier in (before, after):
            node.notice(earlier)
        assert node.position() == last
    node.close()


def test_a_write_that_cannot_be_written_takes_only_those_with_it_that_share_its_rows(
    database: Database, url: str
) -> None:
    """What is new is written when a later write of the same turn needs to see it: both fail, the next does not."""
    with database.backend.writing() as connection, connection.begin():
        for statement in STUCK[database.embedded]:
            connection.exec_driver_sql(statement)
    waiting = threading.Event()

    def keep_busy(transaction: Transaction) -> None:
        assert waiting.wait(60)

    def first(transaction: Transaction) -> None:
        save(transaction, entry("before"), entry("stuck"))

    def second(transaction: Transaction) -> None:
        records.find(transaction.connection, "trm_any")

    def third(transaction: Transaction) -> None:
        save(transaction, entry("unconcerned"))

    database.submit(keep_busy)  # until all that follow wait, and so have one turn
    futures = [database.submit(each) for each in (first, second, third)]
    waiting.set()
    for future in futures[:2]:
        with pytest.raises((DBAPIError, Unavailable), match="no room"):
            future.result()
    futures[2].result()
    with database.read() as snapshot:
        assert [change.whole().fields["name"] for change in versions.since(snapshot, 0, 10)] == ["unconcerned"]


STUCK = {
    True: [
        "CREATE TRIGGER stuck BEFORE INSERT ON record WHEN NEW.name = 'stuck' BEGIN SELECT RAISE(ABORT, 'no room'); END"
    ],
    False: [
        "CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'no room' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER stuck BEFORE INSERT ON record FOR EACH ROW WHEN (NEW.name = 'stuck') EXECUTE FUNCTION stuck()",
    ],
}
"""What refuses one record as a full disk would, on SQLite and on PostgreSQL."""


def test_order_is_by_code_point(database: Database) -> None:
    names = ["b", "a", "B", "A", "ä", "Z", "z", "_", "é", "e", "~", "\U0001f9e0", "\uffee", "a b", "a-b", "ab"]
    with database.write() as transaction:
        save(transaction, *(entry(name, suffix=str(number)) for number, name in enumerate(names)))
        save(transaction, *(entry(str(number), kind="disorder", suffix=name) for number, name in enumerate("bBaA_09é")))
    expected = sorted(range(len(names)), key=lambda number: (names[number].casefold(), f"trm_{number}"))
    assert ids_in_order(database, "concept") == [f"trm_{number}" for number in expected]
    assert ids_in_order(database, "disorder") == [f"dso_{name}" for name in sorted("bBaA_09é")]


def test_a_name_is_found_as_spelt_then_ignoring_case_then_by_lowest_id(database: Database) -> None:
    names = {"3": "Straße", "1": "STRASSE", "2": "strasse", "5": "Cafe\u0301", "6": "I"}
    with database.write() as transaction:
        save(transaction, *(entry(name, suffix=suffix) for suffix, name in names.items()))
    found: Callable[[str], str | None]
    with database.read() as connection:

        def found(name: str) -> str | None:
            stored = records.find_named(connection, COLLECTIONS["concept"], name)
            return None if stored is None else stored.id

        assert [found(name) for name in ("Straße", "strasse", "sTRASSE", "STRAßE")] == [
            "trm_3",
            "trm_2",
            "trm_1",
            "trm_1",
        ]
        assert found("CAFÉ") == "trm_5", "the same text in another Unicode form"
        assert found("i") == "trm_6"
        assert found("none") is None


def test_a_new_database_gets_an_epoch_of_its_own(blank_url: NewUrl) -> None:
    databases = [open_database(blank_url("sqlite")) for _ in range(2)]
    assert len({database.position().epoch for database in databases}) == 2
    for database in databases:
        database.close()


def test_what_is_told_at_once_is_what_a_transaction_tells(database: Database) -> None:
    with database.write() as transaction:
        save(transaction, entry("one"))
    for identifier, found in (("trm_one", True), ("trm_none", False)):
        position, told = database.at_once(partial(edges.with_related, identifier=identifier))
        with database.read() as connection:
            assert (position, told) == edges.with_related(connection, identifier)
            assert position == read_position(connection)
        assert (told is not None) == found


def test_migrating_again_does_nothing(database: Database) -> None:
    version = migrate(database)[1]
    assert migrate(database) == (version, version)


def test_the_migrations_end_at_the_schema(database: Database, url: str) -> None:
    with plain(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_indexes_of_a_part_of_a_table_are_so_on_either_engine(database: Database) -> None:
    catalogue = "sqlite_master WHERE type = 'index'" if database.embedded else "pg_indexes"
    column = "sql" if database.embedded else "indexdef"
    partial_ones = {str(index.name) for table in metadata.tables.values() for index in table.indexes if index.kwargs}
    name = "name" if database.embedded else "indexname"
    with database.read() as connection:
        rows = connection.execute(text(f"SELECT {name}, {column} FROM {catalogue}")).all()
    found = {name for name, made in rows if made and " WHERE " in made}
    assert found == partial_ones
    assert len(found) == 3


def test_a_write_ahead_log_is_waited_for_where_another_writes(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.db"
    open_database(f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN IMMEDIATE")
        database = Database(f"sqlite:///{file}")
        with ThreadPoolExecutor() as threads:
            settling = threads.submit(database.backend.settle)
            with pytest.raises(TimeoutError):
                settling.result(0.1)
            other.execute("COMMIT")
            settling.result()
        database.close()
    with closing(sqlite3.connect(file)) as another:
        assert another.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_newest_step_is_the_one_that_is_known() -> None:
    assert ScriptDirectory(str(Path(migrations.__file__).parent)).get_current_head() == migrations.HEAD


@pytest.mark.parametrize("engine", ENGINES)
def test_two_that_migrate_at_once_agree(engine: str, blank_url: NewUrl) -> None:
    url = blank_url(engine)
    with ThreadPoolExecutor(4) as threads:
        databases = list(threads.map(lambda _: open_database(url), range(4)))
    assert len({database.position() for database in databases}) == 1
    for database in databases:
        database.close()


LATER_INDEXES = (
    "account_by_role", "token_in_order", "token_of_account", "proposal_by_state_of_author", "proposal_of_author",
    "proposal_waits", "token_by_parent",
)  # fmt: skip
"""What versions after 0007 have made."""


def test_an_upgrade_is_done_once_and_counts_as_a_write(url: str) -> None:
    """So that no node takes a standby that has not followed it for one that has everything."""
    database = open_database(url)
    with database.backend.writing() as connection, connection.begin():
        for later in ("timeline", "parted"):
            connection.execute(text(f"ALTER TABLE catalogue DROP COLUMN {later}"))
        connection.execute(text("ALTER TABLE change DROP COLUMN digest"))
        for later in LATER_INDEXES:
            connection.execute(text(f"DROP INDEX {later}"))
        for later in ("origin", "parent"):
            connection.execute(text(f"ALTER TABLE token DROP COLUMN {later}"))
        connection.execute(text("UPDATE catalogue SET writes = 7"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0007'"))
    database.close()
    with ThreadPoolExecutor(4) as threads:
        databases = list(threads.map(lambda _: open_database(url), range(4)))
    assert {database.position().writes for database in databases} == {8}
    for database in databases:
        database.close()


def test_a_newer_database_is_refused_with_a_clear_sentence(database: Database) -> None:
    with database.write() as transaction:
        transaction.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(TooNew, match=r"newer Lexarium.*9999.*Upgrade"):
        migrate(database)


def test_a_new_file_is_its_owners_alone_and_one_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    for given in (0o600, 0o640):
        database = open_database(f"sqlite:///{file}")
        with database.write() as transaction:
            save(transaction, entry(f"with {given:o}", suffix=str(given)))
        beside = [path for path in tmp_path.iterdir() if path.is_file()]
        assert {f"{file.name}-wal", f"{file.name}-shm"} <= {path.name for path in beside}
        assert {stat.S_IMODE(path.stat().st_mode) for path in beside} == {given}
        database.close()
        file.chmod(0o640)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    open_database(f"sqlite:///{path}").close()
    path.write_bytes(b"x" * 5000)
    with pytest.raises(NotACatalogue, match=r"broken\.db"):
        open_database(f"sqlite:///{path}")


def test_a_writer_that_waits_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexarium.store.sqlite._WAIT_SECONDS", 0)
    path = tmp_path / "busy.db"
    database = open_database(f"sqlite:///{path}")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"), database.write():
        pass
    blocker.close()
    database.close()


def test_keys_that_are_too_long_are_cut_by_the_upgrade(new_url: NewUrl) -> None:
    database = open_database(new_url("sqlite"))
    name = "x" * 3_000
    with database.write() as transaction:
        save(transaction, entry(name, suffix="long"), entry("short"))
        for table in ("record", "change"):
            cut = f"UPDATE {table} SET order_key = :whole, name_key = :whole WHERE length(name_key) > 1000"
            transaction.connection.execute(text(cut), {"whole": name})
    with database.backend.writing() as connection, connection.begin():
        people = ("account_by_role", "token_in_order", "token_of_account", "token_by_parent")
        proposed = ("proposal_by_state_of_author", "proposal_of_author", "proposal_waits")
        for later in ("change_by_class", "change_flagged", *people, *proposed):
            connection.execute(text(f"DROP INDEX {later}"))
        connection.execute(text("DROP TABLE upstream"))
        for later in ("writes", "timeline", "parted"):
            connection.execute(text(f"ALTER TABLE catalogue DROP COLUMN {later}"))
        connection.execute(text("ALTER TABLE change DROP COLUMN digest"))
        for later in ("origin", "parent"):
            connection.execute(text(f"ALTER TABLE token DROP COLUMN {later}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    assert migrate(database) == ("0003", migrations.HEAD)
    assert check(database).problems == []
    with database.read() as connection:
        found = records.find_named(connection, COLLECTIONS["concept"], name)
        keys = connection.execute(select(change.c.name_key).order_by(change.c.seq)).scalars().all()
    assert found is not None
    assert [len(key) for key in keys] == [2_000, 5]
    database.close()


def test_a_page_by_id_is_read_from_its_place_on(new_url: NewUrl) -> None:
    """PostgreSQL may go through the log twice, side by side: both times from where the page begins, at either end."""
    database = open_database(new_url("postgres"))
    with database.write() as transaction:
        save(transaction, *(entry(f"{number:04}") for number in range(1_000)))
    said = statements(database)
    for descending, place in ((False, "trm_0900"), (True, "trm_0100")):
        listing = Listing("concept", 1_000, sort="id", descending=descending)
        with database.read() as connection:
            found = versions.page(connection, listing, Place(place, place), 10)
            for other in ("nestloop", "hashjoin", "seqscan", "bitmapscan", "sort"):
                connection.exec_driver_sql(f"SET LOCAL enable_{other} = off")
            statement, values = said[-6]
            plan = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values).scalar_one()
        assert len(found) == 10
        assert max(rows_read(plan[0]["Plan"])) < 100
    database.close()


def test_a_page_of_named_records_is_read_by_their_ids(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    said = statements(database)
    with database.read() as connection:
        versions.page(connection, Listing("concept", 1, ids=("trm_1",)), None, 10)
        statement, values = said[-1]
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert "change_of_record (record=?" in plan[0][-1]
    database.close()


def statements(database: Database) -> list[tuple[str, Any]]:
    """What is said to a database from now on."""
    said: list[tuple[str, Any]] = []
    event.listen(
        database.backend.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, values, *_: said.append((statement, values)),
    )
    return said


def rows_read(plan: dict[str, Any]) -> list[float]:
    """How many rows each part of a plan came by."""
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return [own, *(rows for part in plan.get("Plans", []) for rows in rows_read(part))]


def test_records_of_the_past_are_counted_once(database: Database) -> None:
    with database.write() as transaction:
        save(transaction, *(entry(f"{number:04}") for number in range(1_100)))
    with database.write() as transaction:
        save(transaction, *(entry(f"new {number}", suffix=f"{number:04}", version=2) for number in range(100)))
    said = statements(database)
    for revision in (200, 650):
        for _ in range(3):
            with database.read() as connection:
                assert versions.total(connection, Listing("concept", revision), database.tallies) == revision
    counting = [statement for statement, _ in said if "count(" in statement]
    assert len(counting) == 3  # of the oldest; of the present and what came since the other, which is the nearer


def test_new_records_are_written_together_and_none_by_a_statement_of_its_own(database: Database) -> None:
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    said = statements(database)
    with database.write() as transaction:
        begun = len(said)
        for number in range(3):
            transaction.begin()
            Desk(transaction, caller).create(COLLECTIONS["concept"], {"name": f"new {number}"})
            transaction.end()
        assert len(said) == begun
    inserts = [values for statement, values in said if statement.startswith("INSERT")]
    assert [len(rows) for rows in inserts] == [3, 3]  # records, and rows of the log


def test_a_disk_that_is_full_in_the_midst_of_a_write_is_told_as_that(tmp_path: Path) -> None:
    """SQLite then undoes the whole transaction by itself, and what was to undo one write finds nothing."""
    database = open_database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    engine = database.backend.engine
    with engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(engine, "connect", lambda driver, _: driver.execute(f"PRAGMA max_page_count={pages + 2}").close())
    engine.dispose()

    def fill(transaction: Transaction) -> None:
        save(transaction, *(entry(f"{number} {'x' * 1_000}", suffix=str(number)) for number in range(100)))
        assert transaction.connection  # so that it is written

    with pytest.raises(Unavailable, match="full"):
        database.submit(fill).result()
    assert ids_in_order(database, "concept") == []
    database.close()


def test_a_role_that_may_make_no_tables_is_told_what_it_lacks(blank_url: NewUrl) -> None:
    url = blank_url("postgres")
    role = f"poor_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    database = Database(with_parts(url, user=role))
    with pytest.raises(StoreError, match=r"permission denied for schema public.* OWNER TO"):
        migrate(database)
    database.close()


def with_parts(url: str, **parts: str) -> str:
    """The address with other parts."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parts)}"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_in_another_encoding_is_refused(blank_url: NewUrl, encoding: str) -> None:
    url = blank_url("postgres")
    name = f"other_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SettingError, match=f"is in {encoding}.*ENCODING 'UTF8'"):
        open_database(with_parts(url, dbname=name))


def test_a_password_that_is_not_written_as_an_address_has_it_is_not_told(new_url: NewUrl) -> None:
    with pytest.raises(SettingError, match="%40") as refused:
        Database("postgresql://lexarium:p@ss@localhost/lexarium")
    assert "ss" not in str(refused.value).replace("password", "").replace("address", "")


def test_no_page_of_people_tokens_or_proposals_reads_or_sorts_a_whole_table(new_url: NewUrl) -> None:
    database, place = open_database(new_url("sqlite")), (1, "x")
    with database.read() as connection:
        asked: list[tuple[str, Any]] = []
        event.listen(connection, "before_cursor_execute", lambda _, __, sql, values, *___: asked.append((sql, values)))
        for account_id in ("usr_1", None):
            accounts.tokens_before(connection, place, 100, account_id=account_id, good_at=1)
        accounts.uses(connection, ["usr_1", "usr_2"], at=1)
        accounts.has_other_admin(connection, "usr_1")
        accounts.accounts_from(connection, "a", 100)
        proposals.made_by(connection, "usr_1", place, 30)
        proposals.about(connection, "trm_1", None, 100)
        proposals.authors(connection, 200)
        for queue in (Queue(None, None, False), Queue(None, "usr_1", True)):
            proposals.waiting(connection, queue, place, 50)
        plans = {sql: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all() for sql, values in [*asked]}
    database.close()
    assert len(plans) >= 10
    for sql, plan in plans.items():
        for step in plan:
            if step.detail.startswith(("SCAN", "USE TEMP B-TREE")):
                raise AssertionError((sql, plan))
