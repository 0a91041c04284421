"""Fork `lexarium` commands from a process that has already imported all modules, which saves a second per command.

Test processes send requests to the fork server over a socket: see `ForkedProcess`. They share one server.
"""

import atexit
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_path
from select import select
from typing import NoReturn

import uvicorn._subprocess

from lexarium import formats
from lexarium.cli.main import COMMANDS, run
from lexarium.cli.support import terminal
from lexarium.search.analysis.folding import fold
from lexarium.settings import Settings
from lexarium.store.engine import sqlite
from lexarium.store.maintenance.upgrade import open_database
from lexarium.web.template_environment import get_templates
from lexarium.web.v1.openapi.document import build_document
from lexarium.web.v1.operations import OPERATIONS
from tests.support.overrides import apply_overrides
from tests.support.route_list import list_routes

# What commands import when they need it.
_PRELOADED = (
    "lexarium.bootstrap",
    "lexarium.services.transfer.file_import",
    "lexarium.services.transfer.sample",
    "lexarium.web.v1.openapi.reference_page",
    "lexarium.store.engine.postgres",
    "anyio._backends._asyncio",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.loops.uvloop",
    "typer._adapters",
    "typer._click.decorators",
    "typer.rich_utils",
    "rich._emoji_codes",
    "rich.progress",
    "rich.markdown",
    "pygments.lexers",
    "pygments.styles",
    "prometheus_client.exposition",
    "encodings.idna",
    "encodings.utf_8_sig",
)
_MAX_MESSAGE_BYTES = 1 << 20
# Environment variable with the name of the server's socket.
_NAME_VARIABLE = "TEST_FORK_SERVER"
_ROOT = Path(__file__).parents[2]
_request_lock = threading.Lock()


class ForkedProcess:
    """Forked command, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdin: int | None = None,
        terminal: int | None = None,
        umask: int = -1,
    ) -> None:
        """Start it; it writes to the terminal, if there is one, else to pipes."""
        out, child_out = os.pipe()
        err, child_err = os.pipe()
        streams = {1: child_out, 2: child_err}
        if stdin is not None:
            streams[0] = stdin
        if terminal is not None:
            streams |= {1: terminal, 2: terminal}
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": os.getcwd(),
            "umask": umask,
            "streams": list(streams),
        }
        self.pid = _send_request(request, list(streams.values()))
        os.close(child_out)
        os.close(child_err)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)
        self.returncode: int | None = None
        self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._wait_for_exit(0)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end; return the rest of its output, which is empty at the second call."""
        if self.stdout.closed or self.stderr.closed:
            return "", ""
        deadline = time.monotonic() + timeout
        output: dict[int, bytes] = {stream.fileno(): b"" for stream in (self.stdout, self.stderr)}
        open_fds = set(output)
        while open_fds:
            ready, _, _ = select(open_fds, [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired("lexarium", timeout)
            for fd in ready:
                chunk = os.read(fd, _MAX_MESSAGE_BYTES)
                output[fd] += chunk
                if not chunk:
                    open_fds.remove(fd)
        if self._wait_for_exit(deadline - time.monotonic()) is None:
            raise subprocess.TimeoutExpired("lexarium", timeout)
        out, err = (output[stream.fileno()].decode() for stream in (self.stdout, self.stderr))
        self.stdout.close()
        self.stderr.close()
        return out, err

    def _wait_for_exit(self, timeout: float) -> int | None:
        if self.returncode is None and select([self._handle], [], [], max(0, timeout))[0]:
            self.returncode = _send_request({"ended": self.pid})
            os.close(self._handle)
        return self.returncode


def start_fork_server() -> None:
    """Start the fork server for this process and those that it starts. It ends with this process."""
    name = f"lexarium-fork-server-{os.getpid()}"
    parent_socket, child_socket = socket.socketpair()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, child_socket:
        listener.bind(f"\0{name}")
        listener.listen()
        descriptors = [listener.fileno(), child_socket.fileno()]
        command = [sys.executable, "-m", "tests.support.fork_server", *map(str, descriptors)]
        process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=descriptors)
    os.environ[_NAME_VARIABLE] = name
    atexit.register(_stop_fork_server, parent_socket, process)


def _stop_fork_server(parent_socket: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    parent_socket.close()
    process.wait()


@cache
def _connect() -> socket.socket:
    if _NAME_VARIABLE not in os.environ:
        start_fork_server()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0{os.environ[_NAME_VARIABLE]}")
    atexit.register(connection.close)
    return connection


def _send_request(request: Mapping[str, object], descriptors: Sequence[int] = ()) -> int:
    with _request_lock:
        connection = _connect()
        socket.send_fds(connection, [json.dumps(request).encode()], descriptors)
        return int(connection.recv(100))


def _serve_requests(listener: socket.socket, parent: socket.socket) -> None:
    """Fork a process per request, until the process that started this one has ended."""
    all_formats = (module.name for module in walk_packages(formats.__path__, "lexarium.formats."))
    for name in (*COMMANDS.values(), *_PRELOADED, *all_formats):
        with suppress(ModuleNotFoundError):  # Not every version of a package has each private module.
            import_module(name)
    apply_overrides()
    for operation in OPERATIONS:
        operation.parameters.model_rebuild()
    for name in get_templates().list_templates():
        get_templates().get_template(name)
    build_document(Settings().title)
    # Builds the applications: `re` keeps the patterns of their routes for the forked processes, which build them again.
    list_routes(Settings().database)
    fold("λ-λ")  # compiles the patterns of words
    with tempfile.TemporaryDirectory() as folder:
        open_database(f"sqlite:///{folder}/catalogue.db").close()  # loads Alembic
    tempfile.tempdir = None  # Each command finds it in its own environment.
    # Fork workers too: uvicorn would spawn them, and each would import all modules again.
    setattr(uvicorn._subprocess, "spawn", multiprocessing.get_context("fork"))  # noqa: B010
    gc.freeze()  # The garbage collector of a forked process would copy the pages of all that is loaded.
    sockets = [listener, parent]
    while True:
        ready, _, _ = select(sockets, [], [])
        if parent in ready:
            return
        for connection in ready:
            if connection is listener:
                sockets.append(listener.accept()[0])
            elif not _handle_request(connection, sockets):
                sockets.remove(connection)
                connection.close()


def _handle_request(connection: socket.socket, sockets: Sequence[socket.socket]) -> bool:
    """Return whether there was a request, and not the end of the connection."""
    message, descriptors, _, _ = socket.recv_fds(connection, _MAX_MESSAGE_BYTES, 3)
    if not message:
        return False
    request = json.loads(message)
    if "ended" in request:
        _, status = os.waitpid(request["ended"], 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        return True
    pid = os.fork()
    if pid == 0:
        for item in sockets:
            item.close()
        _run_command(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.send(str(pid).encode())
    return True


def _run_command(request: dict[str, object], descriptors: list[int]) -> NoReturn:
    """Run a command in this forked process, and exit."""
    for descriptor, stream in zip(descriptors, request["streams"], strict=True):  # type: ignore[call-overload]
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.stdin = os.fdopen(0)  # The old object still knows whether the old stream was seekable.
    if sys.stdout.isatty():
        _recreate_consoles()
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    if any(name.endswith("_LIMIT") for name in os.environ):
        build_document.cache_clear()  # It was built with the default limits.
    if seconds := os.environ.pop("LEXARIUM_TEST_LOCK_SECONDS", ""):  # for tests that hold the write lock
        sqlite._LOCK_TIMEOUT_SECONDS = int(seconds)
    os.chdir(str(request["folder"]))
    if request["umask"] != -1:
        os.umask(request["umask"])  # type: ignore[arg-type]
    sys.argv = ["lexarium", *request["arguments"]]  # type: ignore[misc]
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _recreate_consoles() -> None:
    """Let the consoles of this process find out anew what their terminal can do."""
    consoles = run_path(terminal.__file__)
    for name in ("out", "err"):
        vars(getattr(terminal, name)).update(vars(consoles[name]))


if __name__ == "__main__":
    _serve_requests(*(socket.socket(fileno=int(descriptor)) for descriptor in sys.argv[1:]))
