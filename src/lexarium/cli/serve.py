"""`lexarium serve`"""

import errno
import logging
import logging.config
import os
import resource
import signal
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, TemporaryFile
from typing import Annotated, Any

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from lexarium.cli.options import HELP, DatabaseOption
from lexarium.cli.terminal import err
from lexarium.domain.errors import LexariumError
from lexarium.service.sample import load_sample
from lexarium.settings import FIGURES, MARK, Settings
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.web.logs import logging_config
from lexarium.web.protocol import FinishedReplies

app = typer.Typer(add_completion=False)
log = logging.getLogger(__name__)

_DRAIN_SECONDS = 10
_IDLE_SECONDS = 75
"""Longer than a proxy keeps a connection that is idle: it must be the one that closes, or a request could be lost."""
_START_SECONDS = 60
"""How long a worker may take to start, or to answer its parent, before it is given up."""
_BACKLOG = 2048
_LISTENERS = 16
"""How many connections are taken up in each round of the event loop: libuv takes up one a listener. With one listener
alone, those who come to a busy server would wait for seconds, even to be refused."""
_UNIX = "unix:"
_STOPPING = "Stopping: what is under way is finished"


@app.command()
def serve(
    database: DatabaseOption = None,
    host: Annotated[str | None, typer.Option(help=HELP["host"], show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help=HELP["port"], show_default="8000")] = None,
    workers: Annotated[int | None, typer.Option(help=HELP["workers"], show_default="1")] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Load the sample catalogue if there are no records.")
    ] = False,
) -> None:
    """Serve the catalogue over HTTP."""
    settings = Settings.of(os.environ, database=database, host=host, port=port, workers=workers)
    # SIGTERM and SIGINT exit with 0 at any moment, with any number of workers: stopping a server is not a failure.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        _serve(settings, sample=sample)


def _serve(settings: Settings, *, sample: bool) -> None:
    """Prepare the database and serve until a signal ends it; raises KeyboardInterrupt where that ends one process."""
    logs = logging_config(settings.log, err.is_terminal)
    logging.config.dictConfig(logs)
    _allow_connections()
    listener = _listen(settings.host, settings.port)
    Database(settings.database, standbys=settings.database_read).close()  # refuses addresses that cannot be
    store = open_database(settings.database)
    if sample:
        loaded = load_sample(store)
        log.info("The sample catalogue is loaded." if loaded else "The catalogue has records; no sample was loaded.")
    store.close()
    os.environ.update(settings.environment())
    with ExitStack() as ending:
        if settings.workers > 1 and not store.embedded:
            os.environ[MARK] = _shared_file(ending)
        if settings.workers > 1:
            os.environ[FIGURES] = ending.enter_context(TemporaryDirectory(prefix="lexarium-figures-"))
        _run(settings, store.place, listener, logs)


def _shared_file(ending: ExitStack) -> str:
    """A path at which workers can open an empty file, for as long as this process lasts."""
    opened = Path(f"/proc/{os.getpid()}/fd")
    if opened.is_dir():
        # Without a name of its own: nothing that tidies up can take it away, and a kill leaves nothing behind.
        return str(opened / str(ending.enter_context(TemporaryFile()).fileno()))
    return ending.enter_context(NamedTemporaryFile(prefix="lexarium-node-")).name


def _allow_connections() -> None:
    """Take as many open files as the system allows: each connection is one, and 1,024 are soon used up."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(settings: Settings, place: str, listener: socket.socket, logs: dict[str, Any]) -> None:
    config = uvicorn.Config(
        "lexarium.bootstrap:application",
        factory=True,
        workers=settings.workers,
        http=FinishedReplies,
        ws="none",
        access_log=False,
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],  # of every answer, also of those that the protocol gives
        proxy_headers=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_worker_healthcheck=_START_SECONDS,
        log_config=logs,
    )
    listeners = [listener, *(listener.dup() for _ in range(_LISTENERS - 1))]
    readers = "everyone" if settings.read == "open" else "those who have a token"
    log.info("Serving %s on %s to %s (Ctrl-C stops)", place, _address(settings.host, listener), readers)
    if settings.workers > 1:
        _Workers(config, sockets=listeners).run()
    else:
        _Alone(config).run(sockets=listeners)


class _Alone(uvicorn.Server):
    """A process that serves by itself."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info(_STOPPING)
        await super().shutdown(sockets)


class _Workers(Multiprocess):
    """The processes that serve."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: self._end())

    def _end(self) -> None:
        """End at once, also in the midst of a reload, and not when signals are next looked for."""
        # In a thread: where a signal finds this process about to wait for the very same event, it could never be set.
        threading.Thread(target=self.should_exit.set).start()

    def keep_subprocess_alive(self) -> None:
        before = list(self.processes)
        super().keep_subprocess_alive()
        for old, new in zip(before, self.processes, strict=True):
            if old is not new and old.exitcode is not None:
                log.error("Worker %s %s; another takes its place", old.pid, _ending(old.exitcode))

    def handle_hup(self) -> None:
        log.info("Reloading: new workers take the place of the old ones")
        super().handle_hup()

    def terminate_all(self) -> None:
        log.info(_STOPPING)
        # First of all: while the listener is open here, clients are let in whom no worker takes any more.
        for each in self.sockets:
            each.close()
        super().terminate_all()


def _ending(code: int) -> str:
    """How a process ended, by its exit code: below 0, a signal's number."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code} ({signal.strsignal(-code)})"


def _address(host: str, listener: socket.socket) -> str:
    if host.startswith(_UNIX):
        return host
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _listen_at(path: Path) -> socket.socket:
    """Listen on a socket in the file system, which the owner and the group may use."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _answers(path):
            path.unlink()  # left behind by a server that has ended
        before = os.umask(0o117)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise LexariumError(f"Cannot listen on {_UNIX}{path}: {error.strerror or error}.") from None
    listener.set_inheritable(True)
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def _listen(host: str, port: int) -> socket.socket:
    if host.startswith(_UNIX):
        return _listen_at(Path(host.removeprefix(_UNIX)))
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Before anything else is done, so that a second server fails here.
        listener.listen(_BACKLOG)
    except OSError as error:
        another = "--host or LEXARIUM_HOST" if _is_of_host(error) else "--port or LEXARIUM_PORT"
        reason = error.strerror or error
        raise LexariumError(f"Cannot listen on {host} port {port}: {reason}. {another} takes another.") from None
    listener.set_inheritable(True)
    return listener


def _is_of_host(error: OSError) -> bool:
    """Whether it is the host that cannot be listened on, whatever the port."""
    return isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
