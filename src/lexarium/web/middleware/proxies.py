"""Who a request comes from where a proxy passes it on: told by its headers, where the proxy is one to be trusted."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.settings import Network

_FORWARDED_FOR = b"x-forwarded-for"
_FORWARDED_PROTO = b"x-forwarded-proto"
_SCHEMES = ("http", "https")


class ProxyHeadersMiddleware:
    """An ASGI application in front of another, which is told the client's own address and scheme."""

    def __init__(self, app: ASGIApp, trusted_networks: Sequence[Network]) -> None:
        self._app = app
        self._trusted_networks = trusted_networks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_trusted(scope["client"][0] if scope["client"] else None):
            scope = {**scope, **dict(self._forwarded_scope(scope))}
        await self._app(scope, receive, send)

    def _is_trusted(self, host: str | None) -> bool:
        """Whether it is to be trusted. Who comes by a Unix socket has no address, and was let in by its file."""
        if host is None:
            return True
        address = _parse_address(host)
        return address is not None and any(address in network for network in self._trusted_networks)

    def _forwarded_scope(self, scope: Scope) -> Iterator[tuple[str, object]]:
        client = self._find_client(_list_header(scope, _FORWARDED_FOR))
        if client is not None:
            yield "client", (client, 0)
        scheme = _list_header(scope, _FORWARDED_PROTO)[-1:]
        if scheme and scheme[0] in _SCHEMES:
            yield "scheme", scheme[0]

    def _find_client(self, forwarded: Sequence[str]) -> str | None:
        """The last that is no proxy of ours: what stands before it anyone may have written."""
        client = None
        for entry in reversed(forwarded):
            address = _parse_address(_strip_port(entry))
            if address is None:
                break
            client = str(address)
            if not self._is_trusted(client):
                break
        return client


def _list_header(scope: Scope, header_name: bytes) -> list[str]:
    """What a header lists, in however many lines."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == header_name]
    return [entry.strip() for line in lines for entry in line.split(",")]


def _strip_port(text: str) -> str:
    """An address that may stand with a port, as some proxies write it."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


@lru_cache(maxsize=1024)  # the same few ask again and again
def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
