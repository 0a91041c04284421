"""Start and stop a server process."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from benchmarks.harness.cpu_pinning import pin_to_core
from benchmarks.harness.errors import SetupError
from benchmarks.harness.http_client import HOST, connect, request

_START_LIMIT_SECONDS = 120
_STOP_LIMIT_SECONDS = 20
_POLL_SECONDS = 0.002


@dataclass(frozen=True)
class ServerSpec:
    """Command, port and paths of a server."""

    name: str
    command: tuple[str, ...]
    port: int
    collection_path: str
    record_path: str
    folder: Path
    supports_304: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunningServer:
    """Server that has started."""

    server: ServerSpec
    pid: int
    start_seconds: float


def find_free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def run_server(server: ServerSpec, core: int | None, first_path: str) -> Iterator[RunningServer]:
    """Start a server on a core, wait for a 200 at `first_path`, and stop it at the end.

    Raise SetupError, with the end of the server's output, if it does not start.
    """
    log = server.folder / f"{server.name}.log"
    with log.open("wb") as output, pin_to_core(core):
        start = time.perf_counter()
        process = subprocess.Popen(
            server.command,
            cwd=server.folder,
            env={**os.environ, **server.environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_up(process, server, first_path, log)
        yield RunningServer(server, process.pid, time.perf_counter() - start)
    finally:
        _stop(process)


def _wait_until_up(process: "subprocess.Popen[bytes]", server: ServerSpec, path: str, log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT_SECONDS
    while not is_up(server.port, path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SetupError(f"{server.name} did not start: {log.read_text(errors='replace')[-500:]}")
        time.sleep(_POLL_SECONDS)


def is_up(port: int, path: str) -> bool:
    """Return whether a path returns 200 with a body."""
    connection = connect(port)
    try:
        response = request(connection, path)
        return response.status == 200 and len(response.read(1)) == 1
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
