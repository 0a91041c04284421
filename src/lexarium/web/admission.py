"""Admission: past so many requests at a time the next is refused at once, so that those that are taken stay quick."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.limits import Bodies
from lexarium.web.problems import HttpProblem, respond

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Always taken: whoever watches must not take a server that is busy for one that is dead."""


class Work:
    """The requests that a worker has in work."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.requests = 0


class Admitted:
    """An ASGI application that has at most so many requests in work.

    One counts from when it comes until its answer begins, but not while its client is waited for: however many are
    slow to send, they keep nobody else out. What they have sent counts by itself.
    """

    def __init__(self, app: ASGIApp, work: Work, bodies: Bodies) -> None:
        self._app = app
        self._work = work
        self._bodies = bodies
        problem = HttpProblem(503, "The server has more to do than it can. Try again in a moment.")
        self._refuse = respond(problem, {"access-control-allow-origin": "*"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
        elif self._work.requests >= self._work.most:
            await self._refuse(scope, receive, send)
        else:
            await self._take(scope, receive, send)

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        counted = begun = False

        def count(*, now: bool) -> None:
            nonlocal counted
            self._work.requests += now - counted
            counted = now

        async def heard() -> Message:
            count(now=False)
            try:
                return await receive()
            finally:
                count(now=not begun)

        async def told(message: Message) -> None:
            nonlocal begun
            begun = True
            count(now=False)
            await send(message)

        count(now=True)
        try:
            await self._app(scope, heard, told)
        finally:
            count(now=False)
            self._bodies.let_go(scope)
