"""What stands between a server and its database: a network that can be stopped, cut, or made to lose words."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict

from tests.postgres import HOST

_COMMIT = b"COMMIT\x00"
_NOTIFICATION = b"A"
_HEAD = 5
"""A message of PostgreSQL begins with a letter and its length in four bytes."""


class Proxy:
    """Passes on what comes for a database server, and what is answered."""

    def __init__(self, url: str) -> None:
        self._parts = conninfo_to_dict(url)
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.flowing = threading.Event()
        """While it is not set nothing gets through, in either direction, and nobody is told."""
        self.flowing.set()
        self.deaf = False
        """Whether word of commits is lost, as by a pooler that lends a connection only for a transaction."""
        self._told: bytes | None = None
        self.cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The database's address through here; not encrypted, so that what is said can be understood."""
        login = f"{self._parts['user']}:{self._parts.get('password', '')}".rstrip(":")
        return f"postgresql://{login}@{HOST}:{self.port}/{self._parts['dbname']}?sslmode=disable&gssencmode=disable"

    def _connected(self) -> socket.socket:
        host, port = str(self._parts.get("host", HOST)), int(self._parts.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def cut_after_commit_of(self, told: bytes) -> None:
        """Let the commit of the transaction that says this through, and nothing of the answer: the connection ends."""
        self.cut.clear()
        self._told = told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flowing.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self.flowing.wait()
        with client, suppress(OSError), self._connected() as server:
            answers = threading.Thread(target=self._answer, args=(server, client), daemon=True)
            answers.start()
            telling = False
            while said := client.recv(65_536):
                self.flowing.wait()
                telling |= self._told is not None and self._told in said
                if telling and _COMMIT in said:
                    self._told = None
                    client.shutdown(socket.SHUT_RDWR)  # first, so that no answer can get there
                    server.sendall(said)
                    answers.join()
                    self.cut.set()
                    return
                server.sendall(said)
            server.shutdown(socket.SHUT_WR)
            answers.join()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        waiting = b""
        with suppress(OSError):
            while answered := server.recv(65_536):
                self.flowing.wait()
                if self.deaf:
                    answered, waiting = _without_notifications(waiting + answered)
                client.sendall(answered)
            client.shutdown(socket.SHUT_WR)


def _without_notifications(answered: bytes) -> tuple[bytes, bytes]:
    """The whole messages that are no notifications, and the beginning of one that is not whole yet."""
    kept, start = [], 0
    while len(answered) - start >= _HEAD:
        end = start + 1 + int.from_bytes(answered[start + 1 : start + _HEAD])
        if end > len(answered):
            break
        if answered[start : start + 1] != _NOTIFICATION:
            kept.append(answered[start:end])
        start = end
    return b"".join(kept), answered[start:]
