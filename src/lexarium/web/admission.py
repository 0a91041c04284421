"""Admission: past so many requests at a time the next is refused at once, so that those that are taken stay quick."""

from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.answers import Reply
from lexarium.web.limits import Bodies
from lexarium.web.problems import HttpProblem, respond

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Always taken: whoever watches must not take a server that is busy for one that is dead."""


_PARTS = 8
"""Under strain, one in so many of the requests that may be in work otherwise may be."""
_STRAIN_SECONDS = 1.0
"""How long it lasts after the last refusal: for as long as those who were refused are told to wait."""
HEAVY = frozenset(
    {
        ("POST", "/annotate"),
        ("POST", "/api/v1/annotate"),
        ("GET", "/api/v1/export"),
        *((method, path) for method in ("GET", "POST") for path in ("/reconcile", "/reconcile/")),
    }
)
"""What keeps the server busy for long: it has limits of its own, so that it keeps no reader out."""


def _refusal(detail: str) -> Reply:
    response = respond(HttpProblem(503, detail), {"access-control-allow-origin": "*"})
    return Reply(response.status_code, response.raw_headers, bytes(response.body))


REFUSAL = _refusal("The server has more to do than it can. Try again in a moment.")
_HEAVY_REFUSAL = _refusal("There are too many requests to annotate, export or reconcile. Try again in a moment.")


class Work:
    """The requests that a worker has in work, and how many may be.

    Many may come at once, and wait for each other a little. Where even more come, more is asked than can be done, and
    will be for a while: then few are taken, so that those need not wait, and the rest know at once.
    """

    def __init__(self, most: int, parts: int = _PARTS) -> None:
        self._most = most
        self._few = max(1, most // parts)
        self._strained_until = 0.0
        self.requests = 0

    @property
    def is_strained(self) -> bool:
        """Whether requests have been refused of late."""
        return monotonic() < self._strained_until

    def is_full(self) -> bool:
        """Whether one more is to be refused; to be asked when there is one more."""
        if self.requests < self._few:
            return False
        now = monotonic()
        if self.requests < (self._few if now < self._strained_until else self._most):
            return False
        self._strained_until = now + _STRAIN_SECONDS
        return True


class Admitted:
    """An ASGI application that has at most so many requests in work, and beside them so many heavy ones.

    One counts from when it comes until its answer begins, but not while its client is waited for: however many are
    slow to send, they keep nobody else out. What they have sent counts by itself.
    """

    def __init__(self, app: ASGIApp, work: Work, heavy: Work, bodies: Bodies) -> None:
        self._app = app
        self._work = work
        self._heavy = heavy
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        is_heavy = (scope["method"], scope["path"]) in HEAVY
        work = self._heavy if is_heavy else self._work
        if work.is_full():
            await (_HEAVY_REFUSAL if is_heavy else REFUSAL).deliver(send)
        else:
            await self._take(work, scope, receive, send)

    async def _take(self, work: Work, scope: Scope, receive: Receive, send: Send) -> None:
        counted = begun = False

        def count(*, now: bool) -> None:
            nonlocal counted
            work.requests += now - counted
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
            self._bodies.let_go(scope.get("state", {}))
