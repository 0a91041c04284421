"""Admission: past so many requests at a time the next is refused at once, so that those that are taken stay quick."""

import asyncio
from collections import deque
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.http.conditional import RawResponse
from lexarium.web.http.limits import BodyMemory
from lexarium.web.http.problems import HTTPProblem, problem_response

EXEMPT_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Always taken: whoever watches must not take a server that is busy for one that is dead."""


_OVERLOAD_DIVISOR = 8
"""Under strain, one in so many of the requests that may be in work otherwise may be."""
_OVERLOAD_SECONDS = 1.0
"""How long it lasts after the last refusal: for as long as those who were refused are told to wait."""
HEAVY_REQUESTS = frozenset(
    {
        ("POST", "/annotate"),
        ("POST", "/api/v1/annotate"),
        ("GET", "/api/v1/export"),
        *((method, path) for method in ("GET", "POST") for path in ("/reconcile", "/reconcile/")),
    }
)
"""What keeps the server busy for long: it has limits of its own, so that it keeps no reader out."""


def _build_overload_response(detail: str) -> RawResponse:
    response = problem_response(HTTPProblem(503, detail), {"access-control-allow-origin": "*"})
    return RawResponse(response.status_code, response.raw_headers, bytes(response.body))


OVERLOAD_RESPONSE = _build_overload_response("The server has more to do than it can. Try again in a moment.")
_HEAVY_OVERLOAD_RESPONSE = _build_overload_response(
    "There are too many requests to annotate, export or reconcile. Try again in a moment."
)


class ConcurrencyLimit:
    """The requests that a worker has in work, and how many may be.

    Many may come at once, and wait for each other a little. Where even more come, more is asked than can be done, and
    will be for a while: then few are taken, so that those need not wait, and the rest know at once.
    """

    def __init__(self, limit: int, overload_divisor: int = _OVERLOAD_DIVISOR) -> None:
        self._limit = limit
        self._overload_limit = max(1, limit // overload_divisor)
        self._overloaded_until = 0.0
        self.active = 0

    @property
    def is_overloaded(self) -> bool:
        """Whether requests have been refused of late."""
        return monotonic() < self._overloaded_until

    def should_reject(self) -> bool:
        """Whether one more is to be refused; to be asked when there is one more."""
        if self.active < self._overload_limit:
            return False
        now = monotonic()
        if self.active < (self._overload_limit if now < self._overloaded_until else self._limit):
            return False
        self._overloaded_until = now + _OVERLOAD_SECONDS
        return True


class AdmissionMiddleware:
    """An ASGI application that has at most so many requests in work, and beside them so many heavy ones.

    One counts from when it comes until its answer begins, but not while its client is waited for: however many are
    slow to send, they keep nobody else out. What they have sent counts by itself.
    """

    def __init__(
        self, app: ASGIApp, request_limit: ConcurrencyLimit, heavy_limit: ConcurrencyLimit, body_memory: BodyMemory
    ) -> None:
        self._app = app
        self._request_limit = request_limit
        self._heavy_limit = heavy_limit
        self._body_memory = body_memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in EXEMPT_PATHS:
            await self._app(scope, receive, send)
            return
        is_heavy = (scope["method"], scope["path"]) in HEAVY_REQUESTS
        limit = self._heavy_limit if is_heavy else self._request_limit
        if limit.should_reject():
            await (_HEAVY_OVERLOAD_RESPONSE if is_heavy else OVERLOAD_RESPONSE).send_to(send)
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
            await send(message)

        set_counted(now=True)
        try:
            await self._app(scope, receive_counted, send_counted)
        finally:
            set_counted(now=False)
            self._body_memory.release(scope.get("state", {}))


class WriteSchedulingMiddleware:
    """An ASGI application whose writes take turns."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._scheduler = FairScheduler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            await self._scheduler.wait()
        await self._app(scope, receive, send)


class FairScheduler:
    """One turn for each round of the event loop.

    Many writers who are answered together write again together. Taken up all at once, they would hold every reader up
    for as long as all of them take.
    """

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_busy = False

    async def wait(self) -> None:
        """Wait for a turn, in the order of asking."""
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
