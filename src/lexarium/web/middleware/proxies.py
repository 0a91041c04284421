"""Take the address and scheme of the client from the headers of trusted proxies."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.settings import Network


class ProxyHeadersMiddleware:
    """Replace client and scheme of the scope by those that trusted proxies forward."""

    def __init__(self, app: ASGIApp, trusted_networks: Sequence[Network]) -> None:
        self._app = app
        self._trusted_networks = trusted_networks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_trusted(scope["client"][0] if scope["client"] else None):
            client = self._find_client(_list_header(scope, b"x-forwarded-for"))
            if client is not None:
                scope = {**scope, "client": (client, 0)}
            scope = {**scope, "scheme": self.find_scheme(scope)}
        await self._app(scope, receive, send)

    def find_scheme(self, scope: Mapping[str, Any]) -> str:
        """Return the scheme that the client used, which a trusted proxy forwards."""
        forwarded = _list_header(scope, b"x-forwarded-proto")[-1:]
        if forwarded in (["http"], ["https"]) and self._is_trusted(scope["client"][0] if scope["client"] else None):
            return forwarded[0]
        return str(scope["scheme"])

    def _is_trusted(self, host: str | None) -> bool:
        if host is None:
            return True  # A Unix socket: the permissions of its file control access.
        address = _parse_address(host)
        return address is not None and any(address in network for network in self._trusted_networks)

    def _find_client(self, forwarded: Sequence[str]) -> str | None:
        """Return the last address that is not a trusted proxy: a client can forge the entries before it."""
        client = None
        for entry in reversed(forwarded):
            address = _parse_address(_strip_port(entry))
            if address is None:
                break
            client = str(address)
            if not self._is_trusted(client):
                break
        return client


def _list_header(scope: Mapping[str, Any], header_name: bytes) -> list[str]:
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == header_name]
    return [entry.strip() for line in lines for entry in line.split(",")]


def _strip_port(text: str) -> str:
    # Some proxies forward addresses with a port.
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


@lru_cache(maxsize=1024)
def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
