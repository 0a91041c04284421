"""Where webhooks are sent: which addresses may be, and the sending itself."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from lexarium.domain.errors import LexariumError

SECONDS = 10
"""How long a delivery may take, from looking its host up to the status of the answer."""

_PORTS = {"http": 80, "https": 443}
_Place = tuple[socket.AddressFamily, Any]
"""A kind of network, and an address and port in it."""


class Unreachable(LexariumError):
    """A receiver that may not be sent to, or that does not answer."""


@dataclass(frozen=True)
class Receiver:
    """An address whose host was looked up, and where it was found: nothing else is ever connected to."""

    url: SplitResult
    host: str
    port: int
    places: tuple[_Place, ...]


def deadline() -> float:
    """When a delivery that begins now must have ended, by the monotonic clock."""
    return time.monotonic() + SECONDS


def find_receiver(url: str, *, private: bool, until: float) -> Receiver:
    """Look an address up. Raises `Unreachable` where it is not one to send to, or cannot be found in time.

    Unless `private` allows them, every address that the host has must be one of the public internet: a server
    must not lend its place in a network to whoever may name an address.
    """
    parts, host, port = _parsed(url)
    try:
        found = _looked_up(host, port, until)
    except TimeoutError:
        raise Unreachable(f"the host {host} was not found in time.") from None
    except (OSError, UnicodeError):
        raise Unreachable(f"the host {host} cannot be found.") from None
    places = tuple(dict.fromkeys((family, place) for family, _, _, _, place in found))
    if not private and not all(_is_public(str(place[0])) for _, place in places):
        raise Unreachable(f"the host {host} is in a private or reserved range, which the operator does not allow.")
    return Receiver(parts, host, port, places)


def send(receiver: Receiver, body: bytes, headers: Mapping[str, str], *, until: float) -> int:
    """POST a body and give the status that is answered; redirects are not followed.

    Raises `Unreachable` where there is no answer in time.
    """
    try:
        with _connected(receiver, until) as connection, _cut_in_time(connection, until):
            return _answer(receiver, connection, body, headers)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unreachable(f"no answer: {reason}") from None


def _parsed(url: str) -> tuple[SplitResult, str, int]:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise Unreachable("it must hold nothing but printable ASCII characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Unreachable("it is not an address that can be read.") from None
    if parts.scheme not in _PORTS or not host or port == 0:
        raise Unreachable("it must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise Unreachable("it must not hold a user name or password.")
    return parts, host, port or _PORTS[parts.scheme]


def _looked_up(host: str, port: int, until: float) -> list[Any]:
    """What the system's resolver finds; it has no time limit of its own, and is left behind where it takes too long."""
    found: Future[list[Any]] = Future()

    def look() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=look, name="lexarium-look-up", daemon=True).start()
    return found.result(_left(until))


def _left(until: float) -> float:
    """How many seconds are left. Raises `TimeoutError` where there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _is_public(text: str) -> bool:
    address = ip_address(text)
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    # Tunnels to an IPv4 address, which may be any; and a range that was private once.
    return not (isinstance(address, IPv6Address) and (address.sixtofour or address.is_site_local))


def _connected(receiver: Receiver, until: float) -> socket.socket:
    """A connection to the first of the places found that takes one; each has its share of the time that is left."""
    error = OSError("nothing to connect to")
    for tried, (family, place) in enumerate(receiver.places):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left(until) / (len(receiver.places) - tried))
            connection.connect(place)
            connection.settimeout(_left(until))
        except OSError as refused:
            connection.close()
            error = refused
        else:
            return connection
    raise error


def _answer(receiver: Receiver, plain: socket.socket, body: bytes, headers: Mapping[str, str]) -> int:
    client: http.client.HTTPConnection
    if receiver.url.scheme == "https":
        client = http.client.HTTPSConnection(receiver.host, receiver.port, context=_trust())
        # The name is what the certificate must be for, though it is not looked up again.
        client.sock = _trust().wrap_socket(plain, server_hostname=receiver.host)
    else:
        client = http.client.HTTPConnection(receiver.host, receiver.port)
        client.sock = plain
    target = (receiver.url.path or "/") + (f"?{receiver.url.query}" if receiver.url.query else "")
    try:
        client.request("POST", target, body, dict(headers))
        return client.getresponse().status
    finally:
        client.close()


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


@contextmanager
def _cut_in_time(connection: socket.socket, until: float) -> Iterator[None]:
    """End a connection when its time is up.

    Time-outs of a socket are a step each: a receiver that sends a byte now and then would never run into one.
    """
    # A handle of its own: encryption takes over the one that is given.
    with connection.dup() as handle:
        late = threading.Event()
        cut = threading.Timer(_left(until), _shut, [handle, late])
        cut.start()
        try:
            yield
        finally:
            cut.cancel()
            cut.join()
            if late.is_set():
                # Whatever was read of an answer that was cut off, and whatever was raised about it.
                raise TimeoutError("timed out")


def _shut(connection: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):  # it may have ended by itself
        connection.shutdown(socket.SHUT_RDWR)
