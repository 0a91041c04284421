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

TIMEOUT_SECONDS = 10
"""How long a delivery may take, from looking its host up to the status of the answer."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_Address = tuple[socket.AddressFamily, Any]
"""A kind of network, and an address and port in it."""


class DeliveryFailed(LexariumError):
    """A receiver that may not be sent to, or that does not answer."""


@dataclass(frozen=True)
class ResolvedTarget:
    """An address whose host was looked up, and where it was found: nothing else is ever connected to."""

    url: SplitResult
    host: str
    port: int
    addresses: tuple[_Address, ...]


def start_deadline() -> float:
    """When a delivery that begins now must have ended, by the monotonic clock."""
    return time.monotonic() + TIMEOUT_SECONDS


def resolve_target(url: str, *, allow_private: bool, deadline: float) -> ResolvedTarget:
    """Look an address up. Raises `Unreachable` where it is not one to send to, or cannot be found in time.

    Unless `private` allows them, every address that the host has must be one of the public internet: a server
    must not lend its place in a network to whoever may name an address.
    """
    parts, host, port = _parse_url(url)
    try:
        address_infos = _resolve_host(host, port, deadline)
    except TimeoutError:
        raise DeliveryFailed(f"the host {host} was not found in time.") from None
    except (OSError, UnicodeError):
        raise DeliveryFailed(f"the host {host} cannot be found.") from None
    addresses = tuple(dict.fromkeys((family, address) for family, _, _, _, address in address_infos))
    if not allow_private and not all(_is_public(str(address[0])) for _, address in addresses):
        raise DeliveryFailed(f"the host {host} is in a private or reserved range, which the operator does not allow.")
    return ResolvedTarget(parts, host, port, addresses)


def send(resolved: ResolvedTarget, body: bytes, headers: Mapping[str, str], *, deadline: float) -> int:
    """POST a body and give the status that is answered; redirects are not followed.

    Raises `Unreachable` where there is no answer in time.
    """
    try:
        with _connect(resolved, deadline) as connection, _abort_at_deadline(connection, deadline):
            return _post(resolved, connection, body, headers)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DeliveryFailed(f"no answer: {reason}") from None


def _parse_url(url: str) -> tuple[SplitResult, str, int]:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise DeliveryFailed("it must hold nothing but printable ASCII characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise DeliveryFailed("it is not an address that can be read.") from None
    if parts.scheme not in _DEFAULT_PORTS or not host or port == 0:
        raise DeliveryFailed("it must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise DeliveryFailed("it must not hold a user name or password.")
    return parts, host, port or _DEFAULT_PORTS[parts.scheme]


def _resolve_host(host: str, port: int, deadline: float) -> list[Any]:
    """What the system's resolver finds; it has no time limit of its own, and is left behind where it takes too long."""
    future: Future[list[Any]] = Future()

    def resolve() -> None:
        try:
            future.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=resolve, name="lexarium-look-up", daemon=True).start()
    return future.result(_remaining(deadline))


def _remaining(deadline: float) -> float:
    """How many seconds are left. Raises `TimeoutError` where there are none."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


def _is_public(text: str) -> bool:
    address = ip_address(text)
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    # Tunnels to an IPv4 address, which may be any; and a range that was private once.
    return not (isinstance(address, IPv6Address) and (address.sixtofour or address.is_site_local))


def _connect(resolved: ResolvedTarget, deadline: float) -> socket.socket:
    """A connection to the first of the places found that takes one; each has its share of the time that is left."""
    error = OSError("nothing to connect to")
    for attempt, (family, address) in enumerate(resolved.addresses):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(_remaining(deadline) / (len(resolved.addresses) - attempt))
            connection.connect(address)
            connection.settimeout(_remaining(deadline))
        except OSError as refused:
            connection.close()
            error = refused
        else:
            return connection
    raise error


def _post(resolved: ResolvedTarget, raw_socket: socket.socket, body: bytes, headers: Mapping[str, str]) -> int:
    client: http.client.HTTPConnection
    if resolved.url.scheme == "https":
        client = http.client.HTTPSConnection(resolved.host, resolved.port, context=_get_ssl_context())
        # The name is what the certificate must be for, though it is not looked up again.
        client.sock = _get_ssl_context().wrap_socket(raw_socket, server_hostname=resolved.host)
    else:
        client = http.client.HTTPConnection(resolved.host, resolved.port)
        client.sock = raw_socket
    request_target = (resolved.url.path or "/") + (f"?{resolved.url.query}" if resolved.url.query else "")
    try:
        client.request("POST", request_target, body, dict(headers))
        return client.getresponse().status
    finally:
        client.close()


@cache
def _get_ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()


@contextmanager
def _abort_at_deadline(connection: socket.socket, deadline: float) -> Iterator[None]:
    """End a connection when its time is up.

    Time-outs of a socket are a step each: a receiver that sends a byte now and then would never run into one.
    """
    # A handle of its own: encryption takes over the one that is given.
    with connection.dup() as handle:
        expired = threading.Event()
        timer = threading.Timer(_remaining(deadline), _shut_down, [handle, expired])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            if expired.is_set():
                # Whatever was read of an answer that was cut off, and whatever was raised about it.
                raise TimeoutError("timed out")


def _shut_down(connection: socket.socket, expired: threading.Event) -> None:
    expired.set()
    with suppress(OSError):  # it may have ended by itself
        connection.shutdown(socket.SHUT_RDWR)
