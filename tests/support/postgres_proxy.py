"""Proxy to PostgreSQL that stalls, cuts connections or loses messages."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres import HOST

_COMMIT = b"COMMIT\x00"
_NOTIFICATION = b"A"
# A message begins with its type, one byte, and its length, four bytes.
_HEADER_BYTES = 5


class PostgresProxy:
    """Forward connections to a PostgreSQL server."""

    def __init__(self, url: str) -> None:
        self._parts = conninfo_to_dict(url)
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        # While cleared, nothing passes in either direction.
        self.is_flowing = threading.Event()
        self.is_flowing.set()
        # Drop notifications of commits, as a transaction-level connection pooler does.
        self.drops_notifications = False
        self._commit_marker: bytes | None = None
        self.was_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Database URL through the proxy, unencrypted so that it can read messages."""
        login = f"{self._parts['user']}:{self._parts.get('password', '')}".rstrip(":")
        return f"postgresql://{login}@{HOST}:{self.port}/{self._parts['dbname']}?sslmode=disable&gssencmode=disable"

    def _connect(self) -> socket.socket:
        host, port = str(self._parts.get("host", HOST)), int(self._parts.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def cut_after_commit(self, marker: bytes) -> None:
        """Cut the connection after the commit of the transaction that contains a marker, before any reply."""
        self.was_cut.clear()
        self._commit_marker = marker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_flowing.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self.is_flowing.wait()
        with client, suppress(OSError), self._connect() as server:
            reply_thread = threading.Thread(target=self._forward_replies, args=(server, client), daemon=True)
            reply_thread.start()
            has_marker = False
            while data := client.recv(65_536):
                self.is_flowing.wait()
                has_marker |= self._commit_marker is not None and self._commit_marker in data
                if has_marker and _COMMIT in data:
                    self._commit_marker = None
                    client.shutdown(socket.SHUT_RDWR)  # first, so that no reply gets through
                    server.sendall(data)
                    reply_thread.join()
                    self.was_cut.set()
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
            reply_thread.join()

    def _forward_replies(self, server: socket.socket, client: socket.socket) -> None:
        incomplete = b""
        with suppress(OSError):
            while data := server.recv(65_536):
                self.is_flowing.wait()
                if self.drops_notifications:
                    data, incomplete = _drop_notifications(incomplete + data)
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)


def _drop_notifications(data: bytes) -> tuple[bytes, bytes]:
    """Return the complete messages other than notifications, and the incomplete rest."""
    messages, start = [], 0
    while len(data) - start >= _HEADER_BYTES:
        end = start + 1 + int.from_bytes(data[start + 1 : start + _HEADER_BYTES])
        if end > len(data):
            break
        if data[start : start + 1] != _NOTIFICATION:
            messages.append(data[start:end])
        start = end
    return b"".join(messages), data[start:]
