"""The gate of a closed catalogue (the setting `read`): who is not known reads nothing, at no address."""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, Unauthenticated
from lexarium.service.access import Callers
from lexarium.web.pages import session
from lexarium.web.pages.site import SIGN_IN, Site, sent_to_sign_in, wants_page
from lexarium.web.writes import caller_by

OPEN = frozenset({"/healthz", "/readyz", "/api/v1/sign-in", SIGN_IN})
"""What answers everyone: the probes, which tell nothing of the catalogue, and where a token is had."""
_FILES = "/static/"
"""The files of ours that pages load; they are the same in every catalogue."""


class Gate:
    """Tells whether a request may read."""

    def __init__(self, callers: Callers, closed: bool) -> None:
        self._callers = callers
        self.closed = closed

    async def check(self, request: Request) -> None:
        """Raise `Unauthenticated` where the catalogue is closed and neither a token nor a session says who asks."""
        if self.closed:
            await caller_by(request.headers.get("authorization") or session.authorization(request), self._callers)


class Gated:
    """An ASGI application behind the gate of a closed catalogue."""

    def __init__(self, app: ASGIApp, gate: Gate, site: Site) -> None:
        self._app = app
        self._gate = gate
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN or scope["path"].startswith(_FILES):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = self._app
        try:
            await self._gate.check(request)
        except Unauthenticated as error:
            answer = await run_in_threadpool(self._turned_away, request, error)
        except LexariumError as error:
            answer = await run_in_threadpool(self._site.handle_error, request, error)
        await answer(scope, receive, _private(send))

    def _turned_away(self, request: Request, error: Unauthenticated) -> Response:
        """A person who wants to see a page is shown where to sign in; everyone else is told."""
        if request.method == "GET" and wants_page(request):
            return sent_to_sign_in(request)
        return self._site.handle_error(request, error)


def _private(send: Send) -> Send:
    """Sends answers that no cache may show to others, nor a browser to pages of other origins."""

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            headers["cache-control"] = f"private, {headers.get('cache-control', 'no-cache')}"
            del headers["access-control-allow-origin"]
            message = {**message, "headers": headers.raw}
        await send(message)

    return told
