"""Run `lexarium serve` and send it HTTP requests."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from tempfile import TemporaryDirectory
from threading import Thread, get_ident
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote_plus

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.store.database import Database
from tests.support.fork_server import ForkedProcess
from tests.support.polling import DEADLINE_SECONDS, wait_until


@dataclass(frozen=True)
class HttpResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def run_cli(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a `lexarium` command and return its result."""
    return run_cli_with_input(b"", *arguments, **environment)


def run_cli_with_input(stdin: str | bytes, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a `lexarium` command with at most 64 KiB of standard input, from a pipe, and return its result."""
    reader, writer = os.pipe()
    os.write(writer, stdin.encode() if isinstance(stdin, str) else stdin)
    os.close(writer)
    process = ForkedProcess([*map(str, arguments)], {**build_environment(), **environment}, reader)
    os.close(reader)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode is not None
    return subprocess.CompletedProcess([*map(str, arguments)], process.returncode, out, err)


class Server:
    """`lexarium serve` on a free port."""

    _umask = -1

    def __init__(self, url: str, *options: str, **environment: str) -> None:
        self.url = url
        self._arguments = ["serve", "--port", "0", "--database", url, *options]
        self._index = None if url.startswith("sqlite") else TemporaryDirectory(prefix="lexarium-index-")
        if self._index is not None:
            environment.setdefault("LEXARIUM_INDEX", self._index.name)
        self._environment = {**build_environment(), **environment}
        self._listener: Thread | None = None
        # Connection of each thread to a server of one process; others get a new one for each request.
        self._reuses_connections = "--workers" not in options
        self._connections: dict[int, HTTPConnection] = {}

    def __enter__(self) -> Self:
        self._process = self._start_process()
        assert self._process.stderr is not None
        self.log = ""
        for line in self._process.stderr:
            self.log += line
            match = re.search(r"on (?:http://127\.0\.0\.1:(\d+)|unix:)", line)
            if match:
                self.port = int(match.group(1) or 0)
                if "--sample" in self._arguments:  # tests search the sample, so wait for its index
                    self.wait_until_ready()
                return self
        raise AssertionError(f"the server did not start: {self.log}")

    def _start_process(self) -> "ForkedProcess | subprocess.Popen[str]":
        return ForkedProcess(self._arguments, self._environment, umask=self._umask)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def is_ready(self) -> bool:
        return self.get("/readyz").status == 200

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready)

    def pause(self) -> None:
        """Stop its process, as a frozen machine would."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> str:
        """Terminate it and return its log."""
        self.close_connections()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self._listener is not None:
            self._listener.join(timeout=DEADLINE_SECONDS)
        _, remaining = self._process.communicate(timeout=DEADLINE_SECONDS)
        self.log += remaining
        if self._index is not None:
            self._index.cleanup()
        return self.log

    def drain_log(self) -> None:
        """Read the log in a thread: a server that fills its pipe would block."""
        stderr = self._process.stderr
        assert stderr is not None

        def read_log() -> None:
            for line in stderr:
                self.log += line

        self._listener = Thread(target=read_log, daemon=True)
        self._listener.start()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)

    def close_connections(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def request(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes | str | None = None
    ) -> HttpResponse:
        connection = self._connections.pop(get_ident(), None)
        if connection is not None and connection.port == self.port:
            with suppress(ConnectionError):  # It may have been closed meanwhile.
                return self._send(connection, method, target, headers, body)
        elif connection is not None:
            connection.close()
        return self._send(self.connect(), method, target, headers, body)

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str] | None,
        body: bytes | str | None,
    ) -> HttpResponse:
        try:
            connection.request(method, target, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            names = [name.lower() for name, _ in response.getheaders()]
            assert len(names) == len(set(names)), f"a header is repeated: {names}"
            content = response.read()
        except BaseException:
            connection.close()
            raise
        if self._reuses_connections:
            self._connections[get_ident()] = connection
        else:
            connection.close()
        return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def get(self, target: str, **headers: str) -> HttpResponse:
        return self.request("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})

    def post_json(self, target: str, body: object, token: str | None = None) -> HttpResponse:
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.request("POST", target, headers, json.dumps(body))

    def send_write(self, token: str, method: str, path: str, body: object = None) -> Any:
        """Send a write to v1 with `If-Match: *`; it must succeed. Return the JSON body."""
        headers = {"Authorization": f"Bearer {token}", "If-Match": "*", "Content-Type": "application/json"}
        response = self.request(method, f"/api/v1/{path}", headers, None if body is None else json.dumps(body))
        assert response.status < 300, response.body
        return response.json

    def create_concept(self, token: str, name: str, **fields: str) -> HttpResponse:
        return self.post_json("/api/v1/concept", {"name": name, **fields}, token)

    def finds(self, name: str) -> bool:
        """Return whether a search for a name has a hit with it; False also while there is no index."""
        response = self.get(f"/api/v1/search?q={quote_plus(name)}")
        assert response.status in (200, 503), response.body
        return response.status == 200 and any(hit["name"] == name for hit in response.json["hits"])

    def create_token(self, role: str) -> str:
        """Create an account with a role and return a token of it."""
        database = Database(self.url)
        account = add_account(database, f"{role} {uuid.uuid4().hex}", Role(role))
        _, secret = create_token(database, account.name)
        database.close()
        return secret


class SpawnedServer(Server):
    """Server started as a new Python process, with spawned workers, as in production."""

    def _build_command(self) -> list[str]:
        return [sys.executable, "-m", "lexarium", *self._arguments]

    def _start_process(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self._build_command(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )


def build_environment() -> dict[str, str]:
    """Return the environment without settings of Lexarium."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LEXARIUM_")}
