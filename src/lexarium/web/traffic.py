"""The requests of one worker: counted, timed until their answers begin, and told in the log."""

import itertools
import logging
import re
import secrets
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("lexarium.requests")

BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""In seconds: how long requests took is told as how many took no longer than each of these."""
REQUEST_ID = b"x-request-id"
_GIVEN = re.compile(rb"[\w.:+/=-]{1,128}", re.ASCII)
_SECRET = re.compile(r"lex_[\w-]+")
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_V1 = "/api/v1"
_PARTS = {_V1: "v1", "/api/v-alpha": "v-alpha", "/reconcile": "reconcile"}
"""By what addresses begin with."""
_OTHER = "other"
_REASONS = (_ANSWER, _BROKEN_OFF) = ("answer", "broken off")
"""What a fault of ours did: it was the answer, or ended one that had begun."""
_ERROR = 400
_FAULT = 500


Asked = tuple[str, str, int]
"""A method, a route, and the status of the answer."""


Fault = tuple[str, str]
"""A part of the interface, and a reason."""


class Traffic:
    """What has come so far. To be used from the event loop's thread; reading it from another does no harm."""

    def __init__(self, *, told: bool) -> None:
        """`told` says whether the log has a line for every request; it always has one for a fault of ours."""
        self._told = told
        self._worker = secrets.token_hex(6).encode()
        self._numbers = itertools.count(1)
        self.finished: defaultdict[Asked, int] = defaultdict(int)
        """How many were answered with what was finished."""
        self.counts: defaultdict[Asked, int] = defaultdict(int)
        """How many others were answered."""
        self.times: defaultdict[str, list[float]] = defaultdict(lambda: [0] * (len(BOUNDS) + 2))
        """Of these, by route: how many took how long, and all seconds together."""

        self.faults: dict[Fault, int] = dict.fromkeys(product((*_PARTS.values(), _OTHER), _REASONS), 0)
        """How often the server made a mistake. Each is there from the start, so that the first shows as one more."""

    def identify(self, given: bytes | None) -> bytes:
        """The id of a request: the one that it brought, where that is a plain word, else a new one."""
        if given is not None and _GIVEN.fullmatch(given):
            return given
        return b"%b-%x" % (self._worker, next(self._numbers))

    def note_finished(self, scope: Mapping[str, Any], status: int, request: bytes | None) -> None:
        """Count a request whose answer was finished: what it is spelt like is its route, and it took no time to tell.

        Little is done here: this is a part of every such request, most of which take no longer than a few of these.
        """
        self.finished[scope["method"], scope["path"], status] += 1
        if self._told:
            self._tell(scope["method"], scope["path"], status, 0.0, request)

    def note(self, scope: Mapping[str, Any], status: int, seconds: float, request: bytes) -> None:
        """Count any other request whose answer has begun."""
        method, route = scope["method"] if scope["method"] in _METHODS else "other", route_of(scope)
        self.counts[method, route, status] += 1
        times = self.times[route]
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds
        if status == _FAULT:
            self._note_fault(scope, _ANSWER)
        if self._told or status == _FAULT:
            self._tell(method, scope["path"], status, seconds, request)

    def note_broken_off(self, scope: Mapping[str, Any]) -> None:
        """Count a fault of ours in the midst of an answer."""
        self._note_fault(scope, _BROKEN_OFF)

    def _note_fault(self, scope: Mapping[str, Any], reason: str) -> None:
        part = next((part for begin, part in _PARTS.items() if scope["path"].startswith(begin)), _OTHER)
        self.faults[part, reason] += 1

    def _tell(self, method: str, path: str, status: int, seconds: float, request: bytes | None) -> None:
        """Neither the query, which may hold a secret, nor who asks."""
        shown, milliseconds = _SECRET.sub("lex_...", path), round(seconds * 1000, 2)
        named = (request or self.identify(None)).decode()
        fields = {"request": named, "method": method, "path": shown, "status": status, "ms": milliseconds}
        level = logging.ERROR if status == _FAULT else logging.INFO
        line = f"{method} {shown} {status} in {milliseconds:.2f} ms, request {named}"
        log.log(level, "%s", line, extra={"fields": fields})


def route_of(scope: Mapping[str, Any]) -> str:
    """The address that answered, with names in place of what differs; `none` where it did not come to one."""
    path: str | None = getattr(scope.get("route"), "path", None)
    if path is None:
        return "none"
    return _V1 + path if scope["path"].startswith(_V1) and not path.startswith("/api") else path


class Observed:
    """An ASGI application whose requests are counted. Every error tells the id of its request."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        brought = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
        request = self._traffic.identify(brought)
        status: int | None = None

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._traffic.note(scope, status, perf_counter() - began, request)
                if brought is not None or status >= _ERROR:
                    message = {**message, "headers": [*message["headers"], (REQUEST_ID, request)]}
            await send(message)

        try:
            await self._app(scope, receive, told)
        except Exception:
            if status is None:
                self._traffic.note(scope, _FAULT, perf_counter() - began, request)
            elif status != _FAULT:
                self._traffic.note_broken_off(scope)
            raise
