"""HTTP transport to one server: a kept connection, retries with backoff, and limits on responses.

Every request must be safe to repeat: reads, and writes with an idempotency key.
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

# Default limit of a response.
MAX_BYTES = 64 << 20
_RETRY_STATUSES = (429, 500, 502, 503, 504)
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5
_MAX_ATTEMPTS = 6
_CHUNK_BYTES = 1 << 16
_INITIAL_BACKOFF, _MAX_BACKOFF = 0.2, 20.0
# The caller gets the response where the server asks to wait longer than this.
_MAX_RETRY_AFTER = 120.0
# Minimum speed of a response, beyond its initial timeout.
_MIN_BYTES_PER_SECOND = 1_024
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Unreachable(LexariumError):
    """A server does not respond, or not in valid HTTP."""


@dataclass(frozen=True)
class Request:
    """A request to a target below the base URL.

    The body of a 200 is written to `output`, if given, through `transform`, replacing the content of the file.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    output: BinaryIO | None = None
    transform: Callable[[Iterator[bytes]], Iterator[bytes]] = iter
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True)
class HttpResponse:
    """Response of a server, with lower-case header names; the body is empty where it was written to a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON; raise `ValueError`."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("JSON is nested too deeply.") from None


class Transport:
    """Connection to one server. Not thread-safe."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        requests_per_second: float | None = None,
        timeout: float = 30,
    ) -> None:
        """Send `headers` with every request; `timeout` is in seconds, for each network operation."""
        self._base = _parse_url(base_url.rstrip("/"))
        self._headers = {"User-Agent": f"lexarium/{__version__}", "Accept-Encoding": "gzip", **headers}
        self._interval = 1 / requests_per_second if requests_per_second else 0.0
        self._timeout = timeout
        self._next_request_at = 0.0
        self._connection: http.client.HTTPConnection | None = None
        self._connected_to: tuple[str, str] | None = None

    @property
    def base_url(self) -> str:
        """Return the base URL, as of the last redirect to another host or scheme."""
        return self._base.geturl()

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, request: Request) -> HttpResponse:
        """Send a request, and retry while the server is busy or unreachable; return the last response.

        Raise `Unreachable` where there is no valid response after all attempts.
        """
        delays = _backoff_delays()
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

    def _throttle(self) -> None:
        wait = self._next_request_at - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        self._next_request_at = time.monotonic() + self._interval

    def _follow_redirects(self, request: Request) -> HttpResponse:
        """Return the response after all redirects, which only GET follows."""
        requested_url = url = _parse_url(self.base_url + request.target)
        for _ in range(_MAX_REDIRECTS):
            response = self._send_once(request, url)
            location = response.headers.get("location")
            if request.method != "GET" or response.status not in _REDIRECT_STATUSES or not location:
                return response
            redirect_url = _parse_url(location, url.geturl())
            _reject_foreign_redirect(url, redirect_url)
            if (redirect_url.path, redirect_url.query) == (requested_url.path, requested_url.query):
                # Another host or scheme for the same path: later requests go there directly.
                self._base = self._base._replace(scheme=redirect_url.scheme, netloc=redirect_url.netloc)
            url = redirect_url
        raise Unreachable(f"{requested_url.geturl()} has too many redirects.")

    def _send_once(self, request: Request, url: SplitResult) -> HttpResponse:
        connection = self._connect(url)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(request.method, target, request.body, {**self._headers, **request.headers})
        response = connection.getresponse()
        try:
            body = self._read_body(request, response, url)
        except BaseException:
            # The rest of this response must not be taken for the next one.
            self.close()
            raise
        finally:
            response.close()
        return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def _read_body(self, request: Request, response: http.client.HTTPResponse, url: SplitResult) -> bytes:
        chunks = self._iter_body(response, url, request.max_bytes)
        if request.output is None or response.status != http.client.OK:
            return b"".join(chunks)
        # An earlier attempt may have written a part.
        request.output.seek(0)
        request.output.truncate()
        request.output.writelines(request.transform(chunks))
        return b""

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        if self._connection is None or self._connected_to != (url.scheme, url.netloc):
            self.close()
            connection_class = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            port = url.port or _DEFAULT_PORTS[url.scheme]
            self._connection = connection_class(url.hostname or "", port, timeout=self._timeout)
            self._connected_to = (url.scheme, url.netloc)
        return self._connection

    def _iter_body(self, response: http.client.HTTPResponse, url: SplitResult, max_bytes: int) -> Iterator[bytes]:
        """Yield the body, decompressed; raise `Unreachable` where it is too large or too slow."""
        unzip = zlib.decompressobj(31) if response.headers.get("content-encoding") == "gzip" else None
        deadline = time.monotonic() + 2 * self._timeout
        received = size = 0
        while chunk := response.read1(_CHUNK_BYTES):
            received += len(chunk)
            if unzip:
                chunk = unzip.decompress(chunk)
            size += len(chunk)
            if size > max_bytes:
                raise Unreachable(f"{url.geturl()} sent more than {max_bytes:,} bytes, which is not accepted.")
            if time.monotonic() > deadline + received / _MIN_BYTES_PER_SECOND:
                raise Unreachable(f"{url.geturl()} responds too slowly.")
            yield chunk
        if response.length or (unzip and not unzip.eof and response.status != http.client.NOT_MODIFIED):
            raise http.client.IncompleteRead(b"")


def _backoff_delays() -> Iterator[float]:
    for attempt in range(_MAX_ATTEMPTS - 1):
        yield min(_INITIAL_BACKOFF * 2**attempt, _MAX_BACKOFF) * random.uniform(0.75, 1.25)  # noqa: S311


def _parse_url(url: str, base: str = "") -> SplitResult:
    try:
        url = urljoin(base, url)
        parts = urlsplit(url)
        is_valid = parts.scheme in _DEFAULT_PORTS and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid or not url.isascii() or not url.isprintable() or " " in url:
        raise Unreachable(f"{url!r} is not a URL such as https://example.org.")
    return parts._replace(fragment="")


def _reject_foreign_redirect(current_url: SplitResult, redirect_url: SplitResult) -> None:
    """Raise `Unreachable` for a redirect to another host, or from HTTPS to HTTP."""
    current_host, redirect_host = ((url.hostname or "").removeprefix("www.") for url in (current_url, redirect_url))
    if current_host != redirect_host or (current_url.scheme == "https" and redirect_url.scheme == "http"):
        urls = f"{current_url.geturl()} redirects to {redirect_url.geturl()}"
        raise Unreachable(f"{urls}, which is not followed. Use that URL if you trust it.")


def _parse_retry_after(response: HttpResponse) -> float:
    """Return the seconds that the server asks to wait."""
    header_value = response.headers.get("retry-after", "")
    if header_value.isascii() and header_value.isdecimal():
        return float(header_value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(header_value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _describe_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, http.client.IncompleteRead | zlib.error):
        return "its response is incomplete"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
        return "its response is not HTTP"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
