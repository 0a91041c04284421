"""Access control of a private catalogue (the setting `read`): only authenticated callers may read."""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, Unauthenticated
from lexarium.web.http.callers import AccessGate
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.pages.page import handle_expired_session, redirect_to_sign_in
from lexarium.web.site import SIGN_IN_PATH, Site, accepts_html

# Probes, which reveal nothing of the catalogue, and the ways to sign in.
PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/api/v1/sign-in", SIGN_IN_PATH})
_STATIC_PREFIX = "/static/"


class AccessGateMiddleware:
    """Let only requests through that may read, and mark all responses as private."""

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
        """Redirect browsers to the sign-in page, keep the fields of a form sent, and refuse everyone else."""
        shown_error: LexariumError | HTTPProblem = error
        if accepts_html(request):
            has_files = request.headers.get("content-type", "").startswith("multipart/")  # must be chosen again
            if request.method == "GET" or (request.method == "POST" and has_files):
                return redirect_to_sign_in(request)
            if request.method == "POST":
                try:
                    return await handle_expired_session(self._site, request)
                except HTTPProblem as problem:
                    shown_error = problem
        return await run_in_threadpool(self._site.handle_error, request, shown_error)


def _mark_private(send: Send) -> Send:
    """Wrap `send` so that no shared cache may store responses and no other origin may read them."""

    async def send_private(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            caching = headers.get("cache-control", "no-cache").removeprefix("private, ")
            headers["cache-control"] = f"private, {caching}"
            del headers["access-control-allow-origin"]
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_private
