"""Resolve webhook URLs to permitted addresses (SSRF guard) and POST to them."""

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

# Limit for one delivery, from the lookup of the host to the status line.
TIMEOUT_SECONDS = 10

_DEFAULT_PORTS = {"http": 80, "https": 443}
_Address = tuple[socket.AddressFamily, Any]


class DeliveryFailed(LexariumError):
    """The URL is not permitted, or its server does not answer."""


@dataclass(frozen=True)
class ResolvedTarget:
    """A URL with the addresses of its host, which are the only ones connected to."""

    url: SplitResult
    host: str
    port: int
    addresses: tuple[_Address, ...]


def start_deadline() -> float:
    """Return the deadline of a delivery that begins now, by the monotonic clock."""
    return time.monotonic() + TIMEOUT_SECONDS


def resolve_target(url: str, *, allow_private: bool, deadline: float) -> ResolvedTarget:
    """Parse a URL and resolve its host; raise DeliveryFailed if it is invalid, not permitted or not found in time.

    Without `allow_private`, all addresses of the host must be public: otherwise an admin of the catalogue could reach
    services of the server's own network.
    """
    parts, host, port = _parse_url(url)
    try:
        address_infos = _resolve_host(host, port, deadline)
    except TimeoutError:
        raise DeliveryFailed(f"DNS lookup of {host} timed out.") from None
    except (OSError, UnicodeError):
        raise DeliveryFailed(f"host {host} not found.") from None
    addresses = tuple(dict.fromkeys((family, address) for family, _, _, _, address in address_infos))
    if not allow_private and not all(_is_public(str(address[0])) for _, address in addresses):
        raise DeliveryFailed(f"host {host} is in a private or reserved range, which is not allowed.")
    return ResolvedTarget(parts, host, port, addresses)


def send(target: ResolvedTarget, body: bytes, headers: Mapping[str, str], *, deadline: float) -> int:
    """POST a body and return the status, without following redirects; raise DeliveryFailed if there is none in time."""
    try:
        with _connect(target, deadline) as connection, _abort_at_deadline(connection, deadline):
            return _post(target, connection, body, headers)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DeliveryFailed(f"no response: {reason}") from None


def _parse_url(url: str) -> tuple[SplitResult, str, int]:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise DeliveryFailed("it must contain only printable ASCII characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise DeliveryFailed("it is not a valid URL.") from None
    if parts.scheme not in _DEFAULT_PORTS or not host or port == 0:
        raise DeliveryFailed("it must start with https:// or http:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise DeliveryFailed("it must not contain a user name or password.")
    return parts, host, port or _DEFAULT_PORTS[parts.scheme]


def _resolve_host(host: str, port: int, deadline: float) -> list[Any]:
    # The system's resolver has no timeout. A thread that takes too long is left behind.
    future: Future[list[Any]] = Future()

    def resolve() -> None:
        try:
            future.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=resolve, name="lexarium-look-up", daemon=True).start()
    return future.result(_remaining(deadline))


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


def _is_public(text: str) -> bool:
    address = ip_address(text)
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    # 6to4 wraps any IPv4 address; site-local addresses are deprecated private ones.
    return not (isinstance(address, IPv6Address) and (address.sixtofour or address.is_site_local))


def _connect(target: ResolvedTarget, deadline: float) -> socket.socket:
    """Connect to the first address that accepts. Each gets an equal share of the remaining time."""
    error = OSError("no address to connect to")
    for attempt, (family, address) in enumerate(target.addresses):
        connection: socket.socket | None = None
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)  # fails if the host has no IPv6
            connection.settimeout(_remaining(deadline) / (len(target.addresses) - attempt))
            connection.connect(address)
            connection.settimeout(_remaining(deadline))
        except OSError as refused:
            if connection is not None:
                connection.close()
            error = refused
        else:
            return connection
    raise error


def _post(target: ResolvedTarget, connection: socket.socket, body: bytes, headers: Mapping[str, str]) -> int:
    client = http.client.HTTPConnection(target.host, target.port)
    client.default_port = _DEFAULT_PORTS[target.url.scheme]  # It is left out of the Host header.
    client.sock = connection
    if target.url.scheme == "https":
        # The certificate must be for the host, although only its address is used.
        client.sock = _get_ssl_context().wrap_socket(connection, server_hostname=target.host)
    request_target = (target.url.path or "/") + (f"?{target.url.query}" if target.url.query else "")
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
    """Shut down a connection at the deadline.

    A socket's timeout is one per operation: a server that sends a byte now and then would never exceed it.
    """
    expired = threading.Event()
    # A duplicate, since TLS detaches the original handle.
    with connection.dup() as handle:

        def abort() -> None:
            expired.set()
            with suppress(OSError):  # It may be closed already.
                handle.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(_remaining(deadline), abort)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            if expired.is_set():
                # Replaces a partial response, or any error it caused.
                raise TimeoutError("timed out")
