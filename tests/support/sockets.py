"""Raw connections to a server."""

import select
import socket

from tests.support.polling import DEADLINE_SECONDS
from tests.support.server import Server


def send_raw(server: Server, *chunks: bytes) -> bytes:
    """Send chunks and return all bytes received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_SECONDS) as client:
        for chunk in chunks:
            client.sendall(chunk)
        received = b""
        while data := client.recv(65_536):
            received += data
        return received


def is_dropped(client: socket.socket) -> bool:
    """Return whether the server has closed the connection, without reading data."""
    poller = select.poll()
    poller.register(client, select.POLLRDHUP)
    return bool(poller.poll(0))


def has_response(client: socket.socket) -> bool:
    """Return whether there is data to read."""
    poller = select.poll()
    poller.register(client, select.POLLIN)
    return bool(poller.poll(0))
