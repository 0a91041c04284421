"""HTTP to one server, over a connection that is kept: with patience where it is busy, and bounds on what it sends.

Every request is one that may be sent again: reads, and writes that carry a key.
"""

import http.client
import json
import random
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO
from urllib.parse import SplitResult, urljoin, urlsplit

from lexarium import __version__
from lexarium.domain.errors import LexariumError

MAX_BYTES = 64 << 20
"""The most bytes that an answer may have, unless told otherwise."""

_RETRY_STATUSES = (429, 500, 502, 503, 504)
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5
_CHUNK_BYTES = 1 << 16
_INITIAL_BACKOFF, _MAX_BACKOFF = 0.2, 20.0
_MAX_RETRY_AFTER = 120.0
"""How long a server may ask to be left alone; past that, whoever called should come again another time."""
_MIN_BYTES_PER_SECOND = 1_024
"""How many bytes a second an answer must bring once it has had its first time."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Unreachable(LexariumError):
    """A server that does not answer, or not as HTTP servers do."""


@dataclass(frozen=True)
class Request:
    """What is asked of a server."""

    method: str
    target: str
    """The address, below the server's base."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    output: BinaryIO | None = None
    """The file that the body of a 200 is written to, in place of what it holds."""
    transform: Callable[[Iterator[bytes]], Iterator[bytes]] = iter
    """What is made of the body on its way there."""
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True)
class HttpResponse:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    """Empty where it was written to a file."""

    def json(self) -> Any:
        """The body as JSON. Raises `ValueError` where it is none, or none that can be read."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("It is nested too deeply.") from None


class Transport:
    """The way to one server. Not for several threads at a time."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        requests_per_second: float | None = None,
        timeout: float = 30,
        max_attempts: int = 6,
    ) -> None:
        """`rate` is how many requests a second are sent at most, `seconds` how long to wait for each step of an answer.

        `headers` go with every request.
        """
        self._base = _parse_url(base_url.rstrip("/"))
        self._headers = {"User-Agent": f"lexarium/{__version__}", "Accept-Encoding": "gzip", **(headers or {})}
        self._interval = 1 / requests_per_second if requests_per_second else 0.0
        self._timeout = timeout
        self._max_attempts = max_attempts
        self._next_request_at = 0.0
        self._connection: http.client.HTTPConnection | None = None
        self._connected_to: tuple[str, str] | None = None

    @property
    def base_url(self) -> str:
        """Where the server is; after a redirect to another host or scheme, there."""
        return self._base.geturl()

    def close(self) -> None:
        """End the connection. The next request makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, request: Request) -> HttpResponse:
        """What the server answers, once it is not busy any more; errors too.

        Raises `Unreachable` where there is no answer after several tries, or none that can be taken.
        """
        delays = self._backoff_delays()
        while True:
            self._throttle()
            is_reused = self._connection is not None
            try:
                response = self._follow_redirects(request)
            except (OSError, http.client.HTTPException, zlib.error) as error:
                self.close()
                delay = 0.0 if is_reused and isinstance(error, ConnectionError) else next(delays, None)
                if delay is None or isinstance(error, ssl.SSLCertVerificationError | socket.gaierror):
                    raise Unreachable(f"{self.base_url} cannot be reached: {_describe_error(error)}.") from None
            else:
                delay = next(delays, None) if response.status in _RETRY_STATUSES else None
                retry_after = _parse_retry_after(response)
                if delay is None or retry_after > _MAX_RETRY_AFTER:
                    return response
                delay = max(delay, retry_after)
            time.sleep(delay)

    def _backoff_delays(self) -> Iterator[float]:
        """How long to wait before each further try."""
        for attempt in range(self._max_attempts - 1):
            yield min(_INITIAL_BACKOFF * 2**attempt, _MAX_BACKOFF) * random.uniform(0.75, 1.25)  # noqa: S311

    def _throttle(self) -> None:
        wait = self._next_request_at - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        self._next_request_at = time.monotonic() + self._interval

    def _follow_redirects(self, request: Request) -> HttpResponse:
        """The answer at the end of any redirects, which only reads follow."""
        requested_url = url = _parse_url(self.base_url + request.target)
        for _ in range(_MAX_REDIRECTS):
            response = self._send_once(request, url)
            location = response.headers.get("location")
            if request.method != "GET" or response.status not in _REDIRECT_STATUSES or not location:
                return response
            redirect_url = _parse_url(location, url.geturl())
            _reject_foreign_redirect(url, redirect_url)
            if (redirect_url.path, redirect_url.query) == (requested_url.path, requested_url.query):
                # The same at another place: what comes next is asked there at once.
                self._base = self._base._replace(scheme=redirect_url.scheme, netloc=redirect_url.netloc)
            url = redirect_url
        raise Unreachable(f"{requested_url.geturl()} is redirected without end.")

    def _send_once(self, request: Request, url: SplitResult) -> HttpResponse:
        connection = self._connect(url)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(request.method, target, request.body, {**self._headers, **request.headers})
        response = connection.getresponse()
        try:
            body = self._read_body(request, response, url)
        except BaseException:
            # What is left of the answer must not be taken for the next one.
            self.close()
            raise
        finally:
            response.close()
        return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def _read_body(self, request: Request, response: http.client.HTTPResponse, url: SplitResult) -> bytes:
        chunks = self._iter_body(response, url, request.max_bytes)
        if request.output is None or response.status != http.client.OK:
            return b"".join(chunks)
        # Also what an earlier try has left there.
        request.output.seek(0)
        request.output.truncate()
        request.output.writelines(request.transform(chunks))
        return b""

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        if self._connection is None or self._connected_to != (url.scheme, url.netloc):
            self.close()
            connection_class = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            assert url.hostname is not None
            self._connection = connection_class(
                url.hostname, url.port or _DEFAULT_PORTS[url.scheme], timeout=self._timeout
            )
            self._connected_to = (url.scheme, url.netloc)
        return self._connection

    def _iter_body(self, response: http.client.HTTPResponse, url: SplitResult, max_bytes: int) -> Iterator[bytes]:
        """The body, as it comes. Raises `Unreachable` where it is too large or too slow."""
        unzip = zlib.decompressobj(31) if response.headers.get("content-encoding") == "gzip" else None
        deadline = time.monotonic() + 2 * self._timeout
        received = size = 0
        while chunk := response.read1(_CHUNK_BYTES):
            received += len(chunk)
            if unzip:
                chunk = unzip.decompress(chunk)
            size += len(chunk)
            if size > max_bytes:
                raise Unreachable(f"{url.geturl()} answers more than {max_bytes:,} bytes, which is not taken.")
            if time.monotonic() > deadline + received / _MIN_BYTES_PER_SECOND:
                raise Unreachable(f"{url.geturl()} answers too slowly.")
            yield chunk
        if response.length or (unzip and not unzip.eof and response.status != http.client.NOT_MODIFIED):
            raise http.client.IncompleteRead(b"")


def _parse_url(url: str, base: str = "") -> SplitResult:
    try:
        url = urljoin(base, url)
        parts = urlsplit(url)
        is_valid = parts.scheme in _DEFAULT_PORTS and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid or not url.isascii() or not url.isprintable() or " " in url:
        raise Unreachable(f"{url!r} is not an address like https://example.org.")
    return parts._replace(fragment="")


def _reject_foreign_redirect(current_url: SplitResult, redirect_url: SplitResult) -> None:
    """A server may send on to an address of its own, not to someone else's, which whoever calls has not named."""
    if _strip_www(current_url) != _strip_www(redirect_url) or (current_url.scheme, redirect_url.scheme) == (
        "https",
        "http",
    ):
        raise Unreachable(
            f"{current_url.geturl()} leads to {redirect_url.geturl()}, which is not followed. If it"
            f" is what you want, name it."
        )


def _strip_www(url: SplitResult) -> str:
    return (url.hostname or "").removeprefix("www.")


def _parse_retry_after(response: HttpResponse) -> float:
    """How many seconds the server wants to be left alone."""
    header_value = response.headers.get("retry-after", "")
    if header_value.isascii() and header_value.isdecimal():
        return float(header_value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(header_value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _describe_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead | zlib.error):
        return "its answers end in the middle"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
        return "what it answers is not HTTP"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
