"""`lexarium serve`"""

import errno
import logging
import logging.config
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, TemporaryFile
from types import FrameType
from typing import Annotated, Any

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from lexarium.cli.support.options import HELP, DatabaseOption
from lexarium.cli.support.terminal import err
from lexarium.domain.errors import LexariumError
from lexarium.services.vocabularies.metadata_settings import carry_settings_over
from lexarium.settings import METRICS_DIR_VARIABLE, NODE_STATE_VARIABLE, Settings
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.web.logging_config import build_logging_config
from lexarium.web.middleware.uvicorn_protocol import FastPathProtocol

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 10
# Longer than proxies keep idle connections: if the server closed first, a request could be lost.
_KEEP_ALIVE_SECONDS = 75
# Time for a worker to start, or to answer a health check of its parent.
_WORKER_START_SECONDS = 60
_BACKLOG = 2048
# libuv accepts one connection per listener and event-loop iteration. With a single listener, clients of a busy server
# would wait for seconds, even to be refused.
_LISTENER_COUNT = 16
_UNIX_PREFIX = "unix:"
_STOPPING_MESSAGE = "Stopping: finishing requests in progress"


def run(
    database: DatabaseOption = None,
    host: Annotated[str | None, typer.Option(help=HELP["host"], show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help=HELP["port"], show_default="8000")] = None,
    workers: Annotated[int | None, typer.Option(help=HELP["workers"], show_default="1")] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Load the sample catalogue if the catalogue is empty.")
    ] = False,
) -> None:
    """Serve the catalogue over HTTP."""
    settings = Settings.from_environment(database=database, host=host, port=port, workers=workers)
    # SIGTERM and SIGINT exit with 0 at any time, with any number of workers: stopping a server is not a failure.
    # Exit without an exception: Python discards one that is raised while a destructor runs.
    _handle_stop_signals(lambda *_: os._exit(0))
    _serve(settings, sample=sample)


def _handle_stop_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, handler)


def _serve(settings: Settings, *, sample: bool) -> None:
    """Prepare the database and serve until a signal."""
    log_config = build_logging_config(settings.log, err.is_terminal)
    logging.config.dictConfig(log_config)
    _raise_file_limit()
    listener = _listen(settings.host, settings.port)
    Database(settings.database, standbys=settings.database_read).close()  # raises for invalid URLs
    store = open_database(settings.database)
    if sample:
        from lexarium.services.transfer.sample import load_sample  # noqa: PLC0415 - imports take long to load

        loaded = load_sample(store)
        logger.info("Sample catalogue loaded." if loaded else "Catalogue is not empty; sample not loaded.")
    if message := carry_settings_over(store, settings):
        logger.warning(message)
    store.close()
    _handle_stop_signals(lambda *_: sys.exit(0))
    os.environ.update(settings.to_environment())
    with ExitStack() as exit_stack:
        if settings.workers > 1 and not store.is_embedded:
            os.environ[NODE_STATE_VARIABLE] = _create_shared_file(exit_stack)
        if settings.workers > 1:
            os.environ[METRICS_DIR_VARIABLE] = exit_stack.enter_context(TemporaryDirectory(prefix="lexarium-figures-"))
            # Read by glibc when a worker starts. Its threads share memory, of which each would keep some otherwise.
            os.environ.setdefault("MALLOC_ARENA_MAX", "2")
        _run_server(settings, store.location, listener, log_config)


def _create_shared_file(exit_stack: ExitStack) -> str:
    """Return a path where workers can open an empty file while this process lives."""
    fd_directory = Path(f"/proc/{os.getpid()}/fd")
    if fd_directory.is_dir():
        # A file without a name cannot be removed by a clean-up, and nothing remains after a kill.
        return str(fd_directory / str(exit_stack.enter_context(TemporaryFile()).fileno()))
    return exit_stack.enter_context(NamedTemporaryFile(prefix="lexarium-node-")).name


def _raise_file_limit() -> None:
    """Allow as many open files as the system does: each connection takes one."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _run_server(settings: Settings, location: str, listener: socket.socket, log_config: dict[str, Any]) -> None:
    config = uvicorn.Config(
        "lexarium.bootstrap:create_application",
        factory=True,
        workers=settings.workers,
        http=FastPathProtocol,
        ws="none",
        access_log=False,
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],  # also on responses of the protocol itself
        proxy_headers=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_worker_healthcheck=_WORKER_START_SECONDS,
        log_config=log_config,
    )
    listeners = [listener, *(listener.dup() for _ in range(_LISTENER_COUNT - 1))]
    read_access = "public" if settings.read == "open" else "token required"
    logger.info(
        "Serving %s on %s, read access: %s (press Ctrl-C to stop)",
        location,
        _format_url(settings.host, listener),
        read_access,
    )
    if settings.workers > 1:
        _WorkerSupervisor(config, sockets=listeners).run()
    else:
        _SingleServer(config).run(sockets=listeners)


class _SingleServer(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logger.info(_STOPPING_MESSAGE)
        await super().shutdown(sockets)


class _WorkerSupervisor(Multiprocess):
    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        # Exit at once, even during a reload, and not only when signals are next polled. The event is set in a thread,
        # because a signal handler that interrupts a wait for the same event would deadlock.
        _handle_stop_signals(lambda *_: threading.Thread(target=self.should_exit.set).start())

    def keep_subprocess_alive(self) -> None:
        previous_processes = list(self.processes)
        super().keep_subprocess_alive()
        for old, new in zip(previous_processes, self.processes, strict=True):
            if old is not new and old.exitcode is not None:
                logger.error("Worker %s %s; starting a replacement", old.pid, _describe_exit(old.exitcode))

    def handle_hup(self) -> None:
        logger.info("Reloading: replacing workers")
        super().handle_hup()

    def terminate_all(self) -> None:
        logger.info(_STOPPING_MESSAGE)
        # First: while the listener is open here, connections are accepted that no worker serves.
        for listener in self.sockets:
            listener.close()
        super().terminate_all()


def _describe_exit(code: int) -> str:
    # A negative exit code is the number of a signal.
    return f"exited with code {code}" if code >= 0 else f"was killed by signal {-code} ({signal.strsignal(-code)})"


def _format_url(host: str, listener: socket.socket) -> str:
    if host.startswith(_UNIX_PREFIX):
        return host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _listen_unix(path: Path) -> socket.socket:
    """Listen on a Unix socket that its owner and group may use."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            is_listening = probe.connect_ex(str(path)) == 0
        if path.is_socket() and not is_listening:
            path.unlink()  # left by a server that has ended
        previous_umask = os.umask(0o117)
        try:
            listener.bind(str(path))
        finally:
            os.umask(previous_umask)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise LexariumError(f"Cannot listen on {_UNIX_PREFIX}{path}: {error.strerror or error}.") from None
    listener.set_inheritable(True)
    return listener


def _listen(host: str, port: int) -> socket.socket:
    if host.startswith(_UNIX_PREFIX):
        return _listen_unix(Path(host.removeprefix(_UNIX_PREFIX)))
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Before anything else, so that a second server fails here.
        listener.listen(_BACKLOG)
    except OSError as error:
        is_host_error = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        option_hint = "--host or LEXARIUM_HOST" if is_host_error else "--port or LEXARIUM_PORT"
        reason = error.strerror or error
        raise LexariumError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another with {option_hint}."
        ) from None
    listener.set_inheritable(True)
    return listener
