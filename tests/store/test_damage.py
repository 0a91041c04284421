"""Damaged database: no process reads or writes until `lexarium check` finds nothing wrong."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lexarium.domain.account import Role
from lexarium.domain.errors import DatabaseDamaged
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.services.maintenance.watchdog import Watchdog
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.damage import PAGE_BYTES, corrupt_pages
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import HttpResponse, Server, run_cli

# Lists, and records on damaged and on intact pages.
READ_TARGETS = (
    "/api/v-alpha/concept",
    "/api/v-alpha/concept?id=trm_0001",
    "/api/v-alpha/concept?id=trm_0150",
    "/api/v1/concept",
    "/api/v1/concept/trm_0001",
    "/api/v1/concept/trm_0150",
    "/api/v1/changes",
    "/api/v1/search?q=0001",
    "/api/v1/suggest?prefix=0001",
    "/api/v1/export?format=jsonl",
)
# Without the background check, damage is found when it is read.
NO_INTEGRITY_CHECKS = {"LEXARIUM_INTEGRITY_MINUTES": "0"}


def fill_with_records(url: str) -> None:
    """Create a catalogue whose records are on many pages."""
    database = open_database(url)
    with database.write() as transaction:
        save_entries(
            transaction, *(build_log_entry(f"{number:04} {'x' * 400}", suffix=f"{number:04}") for number in range(300))
        )
    database.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """File of a catalogue whose records are on many pages."""
    file = tmp_path / "catalogue.db"
    fill_with_records(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file


def _overwrite(file: Path, start: int, content: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(start)
        stream.write(content)


def reports_damage(response: HttpResponse) -> bool:
    if response.status != 503:
        return False
    detail = response.json["detail"]
    assert "catalogue.db" not in detail
    return all(words in detail for words in ("is damaged", "lexarium check", "backup"))


def assert_all_rejected(server: Server, token: str) -> None:
    for target in READ_TARGETS:
        assert reports_damage(server.get(target)), target
    assert reports_damage(server.create_concept(token, "another"))
    ready = server.get("/readyz")
    assert reports_damage(ready)
    assert (ready.json["reads"], ready.json["writes"]) == (False, False)
    assert server.get("/healthz").status == 200


def assert_all_answered(server: Server, token: str) -> None:
    server.wait_until_ready()
    assert len(server.get("/api/v-alpha/concept").json) >= 300
    assert server.get("/api/v1/concept/trm_0150").status == 200
    assert server.create_concept(token, "another").status == 201


def test_damage_found_by_a_read_stops_reads_and_writes_until_a_check_passes(file: Path) -> None:
    with Server(f"sqlite:///{file}", **NO_INTEGRITY_CHECKS) as server:
        token = server.create_token("curator")
        assert_all_answered(server, token)
        for target in READ_TARGETS:  # so that everything cacheable is cached
            server.get(target)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        original = file.read_bytes()
        corrupt_pages(file, b"trm_0150")
        wait_until(lambda: server.get("/api/v1/changes?limit=1000").status == 503)
        assert_all_rejected(server, token)
        checked = run_cli("check", "--database", f"sqlite:///{file}")
        assert checked.returncode == 1
        assert_all_rejected(server, token)
        file.write_bytes(original)
        assert_all_rejected(server, token)
        checked = run_cli("check", "--database", f"sqlite:///{file}")
        assert checked.returncode == 0, checked.stderr
        assert_all_answered(server, token)
    assert server.log.count("reads and writes are refused") == 1
    assert server.log.count("reads and writes are accepted again") == 1
    assert "Traceback" not in server.log


def test_a_connection_that_met_damage_reads_again_after_the_file_is_repaired(file: Path) -> None:
    """A connection keeps a damaged page in its cache."""
    with closing(sqlite3.connect(file)) as other:
        (page,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'catalogue'").fetchone()
        original = file.read_bytes()[(page - 1) * PAGE_BYTES : page * PAGE_BYTES]
        database = Database(f"sqlite:///{file}", statement_timeout=5)
        _overwrite(file, (page - 1) * PAGE_BYTES, b"\xff" * 64)
        with pytest.raises(DatabaseDamaged):
            database.get_position()
        _overwrite(file, (page - 1) * PAGE_BYTES, original)
        database.clear_damage()
        database.refresh_damage()
        assert database.get_position().revision == 300
        database.close()


def test_damage_found_by_a_write_stops_reads_and_writes(file: Path) -> None:
    with Server(f"sqlite:///{file}", **NO_INTEGRITY_CHECKS) as server:
        token = server.create_token("curator")
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'idempotency'").fetchone()
        _overwrite(file, (page - 1) * PAGE_BYTES, b"\xff" * 64)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": "1"}
        assert reports_damage(server.request("POST", "/api/v1/concept", headers, json.dumps({"name": "one"})))
        assert_all_rejected(server, token)


def test_unread_damage_is_found_after_the_start_by_every_worker(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'delivery'").fetchone()
    _overwrite(file, (page - 1) * PAGE_BYTES, b"\xff" * 64)
    with Server(f"sqlite:///{file}", "--workers", "2") as server:
        server.drain_log()
        database = Database(server.url)
        wait_until(lambda: database.backend.find_damage() is not None)
        database.close()
        wait_until(lambda: server.log.count("reads and writes are refused") == 2)  # once in each worker
        for _ in range(20):
            assert reports_damage(server.get("/readyz"))
            assert reports_damage(server.get("/api/v-alpha/concept"))


def test_the_integrity_check_is_repeated_at_its_interval(file: Path) -> None:
    database = Database(f"sqlite:///{file}", statement_timeout=10)
    watchdog = Watchdog(database, 0.01, None)
    watchdog.start()
    corrupt_pages(file, b"trm_0150")
    wait_until(lambda: database.backend.find_damage() is not None)
    with pytest.raises(DatabaseDamaged, match="lexarium check"), database.read():
        pass
    watchdog.stop()
    database.close()


def test_damage_stays_recorded_across_a_restart_until_a_check_passes(file: Path) -> None:
    with Server(f"sqlite:///{file}") as server:
        token = server.create_token("curator")
    database = Database(f"sqlite:///{file}")
    database.backend.record_damage("a page was bad")
    database.close()
    with Server(f"sqlite:///{file}") as server:
        assert_all_rejected(server, token)
        checked = run_cli("check", "--database", f"sqlite:///{file}")
        assert checked.returncode == 0
        assert "no longer marked as damaged" in " ".join(checked.stdout.split())
        assert_all_answered(server, token)


def test_commands_do_not_write_to_a_damaged_database_but_can_export_it(file: Path) -> None:
    database = Database(f"sqlite:///{file}")
    database.backend.record_damage("a page was bad")
    database.close()
    result = run_cli("user", "add", "ada", "--role", "admin", "--database", f"sqlite:///{file}")
    assert result.returncode == 1
    assert "lexarium check" in " ".join(result.stderr.split())
    assert run_cli("export", "--database", f"sqlite:///{file}").returncode == 0


def test_a_restored_database_is_not_damaged(file: Path, tmp_path: Path) -> None:
    assert run_cli("backup", tmp_path / "backup", "--database", f"sqlite:///{file}").returncode == 0
    database = Database(f"sqlite:///{file}")
    database.backend.record_damage("a page was bad")
    database.close()
    for path in (file, *file.parent.glob("catalogue.db-[ws]*")):
        path.rename(path.with_name(f"broken {path.name}"))
    assert run_cli("restore", tmp_path / "backup", "--database", f"sqlite:///{file}").returncode == 0
    with Server(f"sqlite:///{file}") as server:
        server.wait_until_ready()


@contextmanager
def run_damaged_postgres() -> Iterator[tuple[PostgresServer, str, str, Path, int, bytes]]:
    """Run a PostgreSQL server on which a block of the records is overwritten.

    Yield the server, its URL, a token, the file, the block and the original content.
    """
    with PostgresServer().init_cluster() as postgres:
        postgres.start()
        url = postgres.create_database("catalogue")
        fill_with_records(url)
        database = Database(url)
        add_account(database, "ada", Role.CURATOR)
        _, token = create_token(database, "ada")
        database.close()
        ((name,),) = postgres.execute("SELECT pg_relation_filepath('record')", "catalogue")
        postgres.stop()
        relation = postgres.folder / name
        intact_bytes = relation.read_bytes()
        block = intact_bytes.index(b"trm_0150") // 8192 * 8192
        _overwrite(relation, block, b"\xff" * 64)
        postgres.start()
        yield postgres, url, token, relation, block, intact_bytes[block : block + 64]


@pytest.mark.full
def test_damage_on_postgresql_is_known_to_every_node_until_a_check_passes() -> None:
    with run_damaged_postgres() as (postgres, url, token, relation, block, header):
        with Server(url, **NO_INTEGRITY_CHECKS) as met, Server(url, "--workers", "2", **NO_INTEGRITY_CHECKS) as other:
            assert met.get("/api/v-alpha/concept").status == 503
            assert_all_rejected(met, token)
            assert reports_damage(other.create_concept(token, "another"))
            wait_until(lambda: all(reports_damage(other.get("/api/v-alpha/concept?id=trm_0001")) for _ in "12345"))
            assert run_cli("check", "--database", url).returncode == 1
            assert_all_rejected(met, token)
            postgres.stop()
            _overwrite(relation, block, header)
            postgres.start()
            assert run_cli("check", "--database", url).returncode == 0
            assert_all_answered(met, token)
            # Each of its processes must have learned of the check.
            wait_until(lambda: all(other.get("/api/v1/concept/trm_0150").status == 200 for _ in range(10)))
            assert_all_answered(other, token)
        assert "Traceback" not in met.log + other.log


@pytest.mark.full
def test_unread_damage_on_postgresql_is_found_after_the_start() -> None:
    with run_damaged_postgres() as (_, url, *_), Server(url) as server:
        wait_until(lambda: reports_damage(server.get("/readyz")))
