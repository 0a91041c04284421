"""Failures of the database of a server."""

import fcntl
import os
import signal
import sqlite3
from pathlib import Path

import psycopg
import pytest

from lexarium.domain.account import Role
from lexarium.domain.errors import DatabaseUnavailable
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.transaction import Transaction
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server


def test_an_acknowledged_write_survives_a_kill(url: str) -> None:
    server = Server(url)
    with server:
        token = server.create_token("curator")
        ids = {server.post_json("/api/v-alpha/task", {"name": str(number)}, token).json["id"] for number in range(5)}
        os.kill(server.pid, signal.SIGKILL)
    with Server(url) as restarted:
        assert {record["id"] for record in restarted.get("/api/v-alpha/task").json} == ids


def test_a_removed_database_file_accepts_no_more_writes(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/gone.db") as server:
        token = server.create_token("curator")
        assert server.get("/readyz").status == 200
        for path in filter(Path.is_file, tmp_path.glob("gone.db*")):
            path.unlink()
        response = server.post_json("/api/v-alpha/task", {"name": "lost"}, token)
        assert response.status == 503
        assert response.headers["retry-after"]
        assert "gone.db" not in response.body.decode()
    assert "removed or replaced" in server.log


def test_a_server_keeps_its_locks_on_the_wal_index(tmp_path: Path) -> None:
    """Without the lock, the next process to open the file would treat it as unused and truncate the index."""
    with Server(f"sqlite:///{tmp_path}/shared.db") as server:
        assert server.get("/api/v-alpha/task").status == 200
        with (tmp_path / "shared.db-shm").open("r+b") as index, pytest.raises(BlockingIOError):
            # The lock that every process with an open file holds, as in SQLite's file format.
            fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)


def test_a_write_gets_a_503_while_the_database_is_locked_and_reads_continue(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    with Server(f"sqlite:///{path}") as server:
        token = server.create_token("curator")
        server.post_json("/api/v-alpha/task", {"name": "first"}, token)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        response = server.post_json("/api/v-alpha/task", {"name": "second"}, token)
        assert response.status == 503
        assert len(server.get("/api/v-alpha/task").json) == 1
        blocker.close()
        assert server.post_json("/api/v-alpha/task", {"name": "third"}, token).status == 201


def test_a_server_recovers_from_a_lost_connection_to_postgresql(
    new_url: DatabaseUrlFactory, postgres_server: str
) -> None:
    url = new_url("postgres")
    with Server(url) as server:
        token = server.create_token("curator")
        assert server.post_json("/api/v-alpha/task", {"name": "before"}, token).status == 201
        name = url.split("@/")[1].split("?")[0]
        with psycopg.connect(postgres_server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        statuses: list[int] = []

        def is_accepted() -> bool:
            statuses.append(server.post_json("/api/v-alpha/task", {"name": "after"}, token).status)
            return statuses[-1] == 201

        wait_until(is_accepted)
        assert set(statuses) <= {201, 503}
        wait_until(lambda: len(server.get("/api/v-alpha/task").json) == 2)


def test_a_server_is_not_ready_if_postgresql_cannot_be_read(new_url: DatabaseUrlFactory, postgres_server: str) -> None:
    url = new_url("postgres")
    with Server(url) as server:
        server.wait_until_ready()
        name = url.split("@/")[1].split("?")[0]
        with psycopg.connect(postgres_server, autocommit=True) as other:
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            assert server.get("/readyz").status == 503
            assert server.get("/healthz").status == 200
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        server.wait_until_ready()


def test_an_expired_token_is_rejected(database: Database, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    add_account(database, "ada", Role.CURATOR)
    _, secret = create_token(database, "ada", expires_at=1)
    with Server(url) as server:
        response = server.post_json("/api/v-alpha/task", {"name": "late"}, secret)
        assert response.status == 401
        assert "expired" in response.json["detail"]


def test_a_failed_write_does_not_affect_others(url: str) -> None:
    database = open_database(url)

    def count_accounts(transaction: Transaction) -> int:
        transaction.bump_accounts_revision()
        return transaction.finish().after.accounts

    def fail(transaction: Transaction) -> int:
        transaction.bump_accounts_revision()
        raise RuntimeError("on purpose")

    assert database.run_write(count_accounts) == 1
    with pytest.raises(RuntimeError, match="on purpose"):
        database.run_write(fail)
    assert database.run_write(count_accounts) == 2
    assert database.get_position().accounts == 2
    database.close()


def test_a_missing_database_is_reported_as_unavailable(new_url: DatabaseUrlFactory) -> None:
    with pytest.raises(DatabaseUnavailable):
        open_database(new_url("postgres").replace("/test_", "/absent_"))
