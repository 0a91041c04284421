"""The gate of a closed catalogue (the setting `read`): who is not known reads nothing, at no address."""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, Unauthenticated
from lexarium.services.access.authentication import Authenticator
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.write_requests import authenticate_header
from lexarium.web.pages import session
from lexarium.web.pages.page_routes import handle_expired_session, redirect_to_sign_in
from lexarium.web.pages.site import SIGN_IN_PATH, Site, accepts_html

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/api/v1/sign-in", SIGN_IN_PATH})
"""What answers everyone: the probes, which tell nothing of the catalogue, and where a token is had."""
_STATIC_PREFIX = "/static/"
"""The files of ours that pages load; they are the same in every catalogue."""


class AccessGate:
    """Tells whether a request may read."""

    def __init__(self, authenticator: Authenticator, is_private: bool) -> None:
        self._authenticator = authenticator
        self.is_private = is_private

    async def require_reader(self, request: Request) -> None:
        """Raise `Unauthenticated` where the catalogue is closed and neither a token nor a session says who asks."""
        if self.is_private:
            await authenticate_header(
                request.headers.get("authorization") or session.get_authorization(request), self._authenticator
            )


class AccessGateMiddleware:
    """An ASGI application behind the gate of a closed catalogue."""

    def __init__(self, app: ASGIApp, gate: AccessGate, site: Site) -> None:
        self._app = app
        self._gate = gate
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC_PATHS or scope["path"].startswith(_STATIC_PREFIX):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        app = self._app
        try:
            await self._gate.require_reader(request)
        except Unauthenticated as error:
            app = await self._respond_unauthenticated(request, error)
        except LexariumError as error:
            app = await run_in_threadpool(self._site.handle_error, request, error)
        await app(scope, receive, _mark_private(send))

    async def _respond_unauthenticated(self, request: Request, error: Unauthenticated) -> Response:
        """A person who wants to see a page, or sent a form, is shown where to sign in; everyone else is told."""
        shown_error: LexariumError | HTTPProblem = error
        has_files = request.headers.get("content-type", "").startswith("multipart/")  # to be chosen again
        if accepts_html(request) and (request.method == "GET" or (request.method == "POST" and has_files)):
            return redirect_to_sign_in(request)
        if accepts_html(request) and request.method == "POST":
            try:
                return await handle_expired_session(self._site, request)
            except HTTPProblem as problem:
                shown_error = problem
        return await run_in_threadpool(self._site.handle_error, request, shown_error)


def _mark_private(send: Send) -> Send:
    """Sends answers that no cache may show to others, nor a browser to pages of other origins."""

    async def send_private(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            caching = headers.get("cache-control", "no-cache").removeprefix("private, ")
            headers["cache-control"] = f"private, {caching}"
            del headers["access-control-allow-origin"]
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_private
