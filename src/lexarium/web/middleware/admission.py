"""Admission control: limit concurrent requests, refuse the rest with 503; start one write per event-loop iteration."""

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem, problem_response
from lexarium.web.http.raw_response import RawResponse

# Always accepted: monitoring must not mistake a busy server for a dead one.
EXEMPT_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
# Requests that keep a thread busy for long have limits of their own, so that they lock no reader out.
_HEAVY_REQUESTS = frozenset(
    {
        ("POST", "/annotate"),
        ("POST", "/api/v1/annotate"),
        ("GET", "/api/v1/export"),
    }
)
# Reconciliation with all vocabularies, or with one.
_RECONCILE_REQUEST = re.compile(r"(?:GET|POST) (?:/vocabularies/[^/]+)?/reconcile/?")
# Part of the paths of files of releases, which may have to be rendered.
_HEAVY_PATH = "/files/"
# After a refusal the limit is divided by this,
_OVERLOAD_DIVISOR = 8
# for as long as the refused clients have to wait.
_OVERLOAD_SECONDS = 1.0


def is_heavy_request(scope: Mapping[str, Any]) -> bool:
    """Return whether a request keeps a thread busy for long."""
    method, path = scope["method"], scope["path"]
    is_listed = (method, path) in _HEAVY_REQUESTS or _HEAVY_PATH in path
    return is_listed or _RECONCILE_REQUEST.fullmatch(f"{method} {path}") is not None


def _build_overload_response(detail: str) -> RawResponse:
    return RawResponse.from_response(problem_response(HTTPProblem(503, detail), {"access-control-allow-origin": "*"}))


OVERLOAD_RESPONSE = _build_overload_response("Server is overloaded; try again in a few seconds.")
_HEAVY_OVERLOAD_RESPONSE = _build_overload_response(
    "Too many annotate, export and reconcile requests; try again in a few seconds."
)


class ConcurrencyLimit:
    """Limit of the requests that a worker processes at a time.

    A burst up to the limit is accepted. Past it the server is overloaded: for a while a lower limit applies, so that
    the requests accepted are quick and the others fail fast.
    """

    def __init__(self, limit: int, overload_divisor: int = _OVERLOAD_DIVISOR) -> None:
        self._limit = limit
        self._overload_limit = max(1, limit // overload_divisor)
        self._overloaded_until = 0.0
        self.active = 0

    @property
    def is_overloaded(self) -> bool:
        """Return whether a request was refused within the last second."""
        return monotonic() < self._overloaded_until

    def should_reject(self) -> bool:
        """Return whether to refuse one more request; doing so starts or prolongs the overload mode."""
        if self.active < self._overload_limit:
            return False
        now = monotonic()
        if self.active < (self._overload_limit if now < self._overloaded_until else self._limit):
            return False
        self._overloaded_until = now + _OVERLOAD_SECONDS
        return True


class AdmissionMiddleware:
    """Limit the concurrent requests of an application, heavy ones separately.

    A request counts until its response starts, but not while waiting for its client: slow clients lock nobody out.
    Their bodies are limited by `BodyMemory`. At most one write is started per event-loop iteration.
    """

    def __init__(
        self, app: ASGIApp, request_limit: ConcurrencyLimit, heavy_limit: ConcurrencyLimit, limits: Limits
    ) -> None:
        self._app = app
        self._request_limit = request_limit
        self._heavy_limit = heavy_limit
        self._limits = limits
        self._scheduler = FairScheduler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in EXEMPT_PATHS:
            await self._app(scope, receive, send)
            return
        is_heavy = is_heavy_request(scope)
        limit = self._heavy_limit if is_heavy else self._request_limit
        if limit.should_reject():
            await (_HEAVY_OVERLOAD_RESPONSE if is_heavy else OVERLOAD_RESPONSE)(scope, receive, send)
        else:
            await self._run_counted(limit, scope, receive, send)

    async def _run_counted(self, limit: ConcurrencyLimit, scope: Scope, receive: Receive, send: Send) -> None:
        is_counted = is_response_started = False

        def set_counted(*, now: bool) -> None:
            nonlocal is_counted
            limit.active += now - is_counted
            is_counted = now

        async def receive_counted() -> Message:
            set_counted(now=False)
            try:
                return await receive()
            finally:
                set_counted(now=not is_response_started)

        async def send_counted(message: Message) -> None:
            nonlocal is_response_started
            is_response_started = True
            set_counted(now=False)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # Before the end of the response, at which its client may send the next request.
                self._limits.release(scope.get("state", {}))
            await send(message)

        set_counted(now=True)
        try:
            if scope["method"] not in ("GET", "HEAD"):
                await self._scheduler.wait()
            await self._app(scope, receive_counted, send_counted)
        finally:
            set_counted(now=False)
            self._limits.release(scope.get("state", {}))


class FairScheduler:
    """FIFO queue that lets one waiter go on per event-loop iteration.

    Group commit answers many writers together, and they write again together. Started all at once, they would block
    every reader.
    """

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_busy = False

    async def wait(self) -> None:
        """Wait for a turn, in FIFO order."""
        loop = asyncio.get_running_loop()
        if self._is_busy:
            waiter = loop.create_future()
            self._waiters.append(waiter)
            await waiter
        else:
            self._is_busy = True
            loop.call_soon(self._release_next, loop)

    def _release_next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.cancelled():
                waiter.set_result(None)
                loop.call_soon(self._release_next, loop)
                return
        self._is_busy = False
