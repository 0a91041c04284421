"""Declare pages and forms with the permission they require."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import cast

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import IndexNotReady, StoreError, Unauthenticated
from lexarium.services.access.permissions import REQUIRED_ROLE, Caller, Permission
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import read_fields
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FormValues
from lexarium.web.pages.site import NO_STORE, SIGN_IN_PATH, Site, accepts_html, get_path_and_query

# Statuses of requests that may succeed when sent again later.
_RETRYABLE_STATUSES = (429, 503)


@dataclass(frozen=True)
class PageRoute:
    """A page and the permission to see it. A visitor without a session is sent to sign in."""

    path: str
    handler: Callable[[Site, Request], Response]
    permission: Permission | None = None

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        def endpoint(request: Request) -> Response:
            if self.permission is not None:
                caller = site.get_caller(request)
                if caller is None:
                    return redirect_to_sign_in(request)
                _require_permission(caller, self.permission)
            return self.handler(site, request)

        return Route(self.path, endpoint)


@dataclass(frozen=True)
class FormRoute:
    """The target of a form and the permission to send it. With a permission, it counts as a write of the caller.

    The handler runs in a thread, unless it is a coroutine function.
    """

    path: str
    handler: Callable[[Site, Request, FormValues], Response | Awaitable[Response]]
    permission: Permission | None = None

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        async def endpoint(request: Request) -> Response:
            require_same_origin(request)
            fields, _ = await read_fields(request, site.limits)
            try:
                return await self._run_handler(site, request, fields)
            except (HTTPProblem, StoreError, IndexNotReady) as error:
                is_rejected = isinstance(error, HTTPProblem) and error.status not in _RETRYABLE_STATUSES
                if is_rejected or not _can_resubmit(fields) or not accepts_html(request):
                    raise
                context = {"next": get_path_and_query(request), "fields": fields}
                return await run_in_threadpool(site.error_page, request, error, "resubmit_form.html", context, NO_STORE)

        return Route(self.path, endpoint, methods=["POST"])

    async def _run_handler(self, site: Site, request: Request, fields: FormValues) -> Response:
        if self.permission is not None and not await authorize_write(site, request, self.permission):
            return await run_in_threadpool(_render_sign_in, site, request, fields)
        if iscoroutinefunction(self.handler):
            return cast(Response, await self.handler(site, request, fields))
        return cast(Response, await run_in_threadpool(self.handler, site, request, fields))


def redirect_to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, which leads back to this one."""
    return RedirectResponse(add_query(SIGN_IN_PATH, next=get_path_and_query(request)), 303, NO_STORE)


async def authorize_write(site: Site, request: Request, permission: Permission) -> bool:
    """Check permission and write rate; return False if nobody is signed in."""
    caller = await run_in_threadpool(site.get_caller, request)
    if caller is None:
        return False
    _require_permission(caller, permission)
    site.limits.write_limiter.acquire(caller.token_id)
    return True


async def handle_expired_session(site: Site, request: Request) -> Response:
    """Respond to a form of a visitor whose session has ended with a sign-in page that keeps the input."""
    require_same_origin(request)
    fields, _ = await read_fields(request, site.limits)
    return await run_in_threadpool(_render_sign_in, site, request, fields)


def _render_sign_in(site: Site, request: Request, fields: FormValues) -> Response:
    if _can_resubmit(fields):
        context = {"next": get_path_and_query(request), "saved_form": orjson.dumps(dict(fields)).decode()}
    else:
        context = {"next": request.url.path.rpartition("/")[0]}
    error = Unauthenticated("You are not signed in any more.")
    return site.error_page(request, error, "sign_in.html", context, NO_STORE)


def _can_resubmit(fields: FormValues) -> bool:
    # No page may contain a password.
    return not any("password" in name for name in fields)


def _require_permission(caller: Caller, permission: Permission) -> None:
    if not caller.has_permission(permission):
        reason = f"This is for people with the role {REQUIRED_ROLE[permission]}, and you have the role {caller.role}."
        raise HTTPProblem(403, f"{reason} Whoever keeps this catalogue can give you another.")


def require_same_origin(request: Request) -> None:
    """Raise a 403 for a form sent by a page of another origin; browsers always send the origin."""
    origin = request.headers.get("origin")
    is_same_site = request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    if not is_same_site or (origin is not None and origin.partition("://")[2] != request.headers.get("host")):
        raise HTTPProblem(403, "This form was sent from a page of another site. Open it here, and send it again.")
