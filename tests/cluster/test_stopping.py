"""Exit code of a server that is stopped while it is busy."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import Server

WORKERS = pytest.mark.parametrize("workers", ["1", "2"])
SIGNALS = pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)],
    ids=lambda number: number.name,
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder whose path is short enough for a Unix socket."""
    with TemporaryDirectory(prefix="lexarium-") as name:
        yield Path(name)


@WORKERS
@SIGNALS
def test_a_running_server_exits_with_0(new_url: DatabaseUrlFactory, workers: str, number: signal.Signals) -> None:
    with Server(new_url("sqlite"), "--workers", workers) as server:
        server.wait_until_ready()
        os.kill(server.pid, number)
        wait_until(lambda: server.returncode is not None)
        server.stop()
    assert server.returncode == 0
    assert "Traceback" not in server.log


@WORKERS
@SIGNALS
def test_a_starting_server_exits_with_0(folder: Path, workers: str, number: signal.Signals) -> None:
    url, listener = f"sqlite:///{folder}/catalogue.db", folder / "socket"
    open_database(url).close()
    arguments = ["serve", "--sample", "--database", url, "--workers", workers, "--host", f"unix:{listener}"]
    other = Database(url)
    with other.write():  # loading the sample waits for this transaction
        process = subprocess.Popen([sys.executable, "-m", "lexarium", *arguments], stderr=subprocess.PIPE, text=True)
        wait_until(listener.exists)
        process.send_signal(number)
    other.close()
    _, log = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, log
    assert "Traceback" not in log
