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

LARGEST = 64 << 20
"""The most bytes that an answer may have, unless told otherwise."""

_BUSY = (429, 500, 502, 503, 504)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_PIECE = 1 << 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 20.0
_LONGEST_WAIT = 120.0
"""How long a server may ask to be left alone; past that, whoever called should come again another time."""
_SLOWEST = 1_024
"""How many bytes a second an answer must bring once it has had its first time."""
_PORTS = {"http": 80, "https": 443}


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
    into: BinaryIO | None = None
    """The file that the body of a 200 is written to, in place of what it holds."""
    through: Callable[[Iterator[bytes]], Iterator[bytes]] = iter
    """What is made of the body on its way there."""
    largest: int = LARGEST


@dataclass(frozen=True)
class Reply:
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
        rate: float | None = None,
        seconds: float = 30,
        tries: int = 6,
    ) -> None:
        """`rate` is how many requests a second are sent at most, `seconds` how long to wait for each step of an answer.

        `headers` go with every request.
        """
        self._base = _parsed(base_url.rstrip("/"))
        self._headers = {"User-Agent": f"lexarium/{__version__}", "Accept-Encoding": "gzip", **(headers or {})}
        self._interval = 1 / rate if rate else 0.0
        self._seconds = seconds
        self._tries = tries
        self._next_turn = 0.0
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

    def send(self, request: Request) -> Reply:
        """What the server answers, once it is not busy any more; errors too.

        Raises `Unreachable` where there is no answer after several tries, or none that can be taken.
        """
        pauses = self._pauses()
        while True:
            self._wait_for_turn()
            reused = self._connection is not None
            try:
                reply = self._follow(request)
            except (OSError, http.client.HTTPException, zlib.error) as error:
                self.close()
                pause = 0.0 if reused and isinstance(error, ConnectionError) else next(pauses, None)
                if pause is None or isinstance(error, ssl.SSLCertVerificationError | socket.gaierror):
                    raise Unreachable(f"{self.base_url} cannot be reached: {_reason(error)}.") from None
            else:
                pause = next(pauses, None) if reply.status in _BUSY else None
                asked = _asked_wait(reply)
                if pause is None or asked > _LONGEST_WAIT:
                    return reply
                pause = max(pause, asked)
            time.sleep(pause)

    def _pauses(self) -> Iterator[float]:
        """How long to wait before each further try."""
        for number in range(self._tries - 1):
            yield min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE) * random.uniform(0.75, 1.25)  # noqa: S311

    def _wait_for_turn(self) -> None:
        wait = self._next_turn - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        self._next_turn = time.monotonic() + self._interval

    def _follow(self, request: Request) -> Reply:
        """The answer at the end of any redirects, which only reads follow."""
        asked = url = _parsed(self.base_url + request.target)
        for _ in range(_MOST_REDIRECTS):
            reply = self._exchange(request, url)
            location = reply.headers.get("location")
            if request.method != "GET" or reply.status not in _REDIRECTS or not location:
                return reply
            there = _parsed(location, url.geturl())
            _refuse_elsewhere(url, there)
            if (there.path, there.query) == (asked.path, asked.query):
                # The same at another place: what comes next is asked there at once.
                self._base = self._base._replace(scheme=there.scheme, netloc=there.netloc)
            url = there
        raise Unreachable(f"{asked.geturl()} is redirected without end.")

    def _exchange(self, request: Request, url: SplitResult) -> Reply:
        connection = self._connected(url)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(request.method, target, request.body, {**self._headers, **request.headers})
        response = connection.getresponse()
        try:
            content = self._content(request, response, url)
        except BaseException:
            # What is left of the answer must not be taken for the next one.
            self.close()
            raise
        finally:
            response.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def _content(self, request: Request, response: http.client.HTTPResponse, url: SplitResult) -> bytes:
        pieces = self._pieces(response, url, request.largest)
        if request.into is None or response.status != http.client.OK:
            return b"".join(pieces)
        # Also what an earlier try has left there.
        request.into.seek(0)
        request.into.truncate()
        request.into.writelines(request.through(pieces))
        return b""

    def _connected(self, url: SplitResult) -> http.client.HTTPConnection:
        if self._connection is None or self._connected_to != (url.scheme, url.netloc):
            self.close()
            kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            assert url.hostname is not None
            self._connection = kind(url.hostname, url.port or _PORTS[url.scheme], timeout=self._seconds)
            self._connected_to = (url.scheme, url.netloc)
        return self._connection

    def _pieces(self, response: http.client.HTTPResponse, url: SplitResult, largest: int) -> Iterator[bytes]:
        """The body, as it comes. Raises `Unreachable` where it is too large or too slow."""
        unzip = zlib.decompressobj(31) if response.headers.get("content-encoding") == "gzip" else None
        until = time.monotonic() + 2 * self._seconds
        received = size = 0
        while piece := response.read1(_PIECE):
            received += len(piece)
            if unzip:
                piece = unzip.decompress(piece)
            size += len(piece)
            if size > largest:
                raise Unreachable(f"{url.geturl()} answers more than {largest:,} bytes, which is not taken.")
            if time.monotonic() > until + received / _SLOWEST:
                raise Unreachable(f"{url.geturl()} answers too slowly.")
            yield piece
        if response.length or (unzip and not unzip.eof and response.status != http.client.NOT_MODIFIED):
            raise http.client.IncompleteRead(b"")


def _parsed(url: str, base: str = "") -> SplitResult:
    try:
        url = urljoin(base, url)
        parts = urlsplit(url)
        fit = parts.scheme in _PORTS and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        fit = False
    if not fit or not url.isascii() or not url.isprintable() or " " in url:
        raise Unreachable(f"{url!r} is not an address like https://example.org.")
    return parts._replace(fragment="")


def _refuse_elsewhere(here: SplitResult, there: SplitResult) -> None:
    """A server may send on to an address of its own, not to someone else's, which whoever calls has not named."""
    if _bare(here) != _bare(there) or (here.scheme, there.scheme) == ("https", "http"):
        raise Unreachable(
            f"{here.geturl()} leads to {there.geturl()}, which is not followed. If it is what you want, name it."
        )


def _bare(url: SplitResult) -> str:
    return (url.hostname or "").removeprefix("www.")


def _asked_wait(reply: Reply) -> float:
    """How many seconds the server wants to be left alone."""
    told = reply.headers.get("retry-after", "")
    if told.isascii() and told.isdecimal():
        return float(told[:9])
    try:
        return max(0.0, (parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead | zlib.error):
        return "its answers end in the middle"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
        return "what it answers is not HTTP"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
