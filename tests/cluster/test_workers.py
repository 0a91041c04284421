"""Servers with several worker processes: how they stop and restart."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server, SpawnedServer, run_cli
from tests.support.workers import list_worker_pids


def test_a_stopping_server_rejects_new_requests_and_finishes_admitted_ones(
    new_url: DatabaseUrlFactory,
) -> None:
    """A client that is refused can retry on another node, even a write; one dropped after admission cannot."""
    with Server(new_url("sqlite"), "--workers", "2") as server:
        server.wait_until_ready()
        under_way = server.connect()
        under_way.putrequest("POST", "/api/v1/annotate")
        under_way.putheader("Content-Type", "application/json")
        under_way.putheader("Content-Length", "12")
        under_way.endheaders()
        under_way.send(b'{"text"')
        assert server.get("/healthz").status == 200  # sent after the slow request
        os.kill(server.pid, signal.SIGTERM)
        wait_until(lambda: is_refused(server.port))
        under_way.send(b':"a"}')
        assert under_way.getresponse().status == 200
        under_way.close()


def is_refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.full
def test_workers_exit_with_their_parent_process(new_url: DatabaseUrlFactory) -> None:
    with SpawnedServer(new_url("sqlite"), "--workers", "2") as server:
        wait_until(lambda: len(list_worker_pids(server)) == 2)
        remaining_pids = list_worker_pids(server)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{worker_pid}").exists() for worker_pid in remaining_pids))
        assert is_refused(server.port)


@pytest.mark.full
def test_workers_restart_after_temporary_files_were_deleted(new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    with SpawnedServer(new_url("postgres"), "--workers", "2", TMPDIR=str(tmp_path)) as server:
        server.wait_until_ready()
        for leftover_file in filter(Path.is_file, tmp_path.iterdir()):
            leftover_file.unlink()
        before = list_worker_pids(server)
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: len(list_worker_pids(server)) == 2 and not before & list_worker_pids(server))
        assert server.get("/healthz").status == 200


@pytest.mark.full
def test_a_worker_that_dies_is_replaced_and_logged_with_its_signal(new_url: DatabaseUrlFactory) -> None:
    with SpawnedServer(new_url("sqlite"), "--workers", "2") as server:
        wait_until(lambda: server.get("/readyz").status == 200 and len(list_worker_pids(server)) == 2)
        server.drain_log()
        killed_pid = min(list_worker_pids(server))
        os.kill(killed_pid, signal.SIGKILL)
        wait_until(lambda: f"Worker {killed_pid} was killed by signal 9 (Killed)" in server.log)
        wait_until(lambda: len(list_worker_pids(server) - {killed_pid}) == 2)


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.full), "2"])
def test_a_server_logs_stops_and_reloads(new_url: DatabaseUrlFactory, workers: str) -> None:
    with SpawnedServer(new_url("sqlite"), "--workers", workers) as server:
        server.wait_until_ready()
        server.drain_log()
        if workers == "2":
            os.kill(server.pid, signal.SIGHUP)
            wait_until(lambda: "Reloading" in server.log)
        # Also while the new workers start; the test does not wait for them.
        assert "Stopping" in server.stop()


def test_a_host_that_cannot_be_bound_is_reported(new_url: DatabaseUrlFactory) -> None:
    for host in ("nosuch.invalid", "192.0.2.1"):
        result = run_cli("serve", "--host", host, "--port", "0", "--database", new_url("sqlite"))
        assert result.returncode == 1
        assert "Choose another with --host or LEXARIUM_HOST" in " ".join(result.stderr.split())
