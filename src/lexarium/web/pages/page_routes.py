"""Declare pages and forms with the permission they require."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, cast

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import IndexNotReady, StoreError, Unauthenticated
from lexarium.services.access.permissions import REQUIRED_ROLE, Caller, Permission
from lexarium.web.http.problems import HTTPProblem, describe_error
from lexarium.web.http.request_body import read_fields
from lexarium.web.pages import filters
from lexarium.web.pages.session import get_caller
from lexarium.web.pages.site import SIGN_IN_PATH, Site, accepts_html, get_path_and_query, lower_header_names


def redirect_to_sign_in(request: Request) -> Response:
    """Where someone signs in, and comes back from."""
    return RedirectResponse(filters.add_query(SIGN_IN_PATH, next=get_path_and_query(request)), 303, _NO_STORE)


@dataclass(frozen=True)
class PageRoute:
    """A page, and where it is."""

    path: str
    handler: Callable[[Site, Request], Response]
    permission: Permission | None = None
    """What one must be allowed to see it: whoever is not signed in is sent to do so first."""

    def to_route(self, site: Site) -> Route:
        """It as the framework has it."""

        def endpoint(request: Request) -> Response:
            if self.permission is not None:
                caller = get_caller(site, request)
                if caller is None:
                    return redirect_to_sign_in(request)
                _require_permission(caller, self.permission)
            return self.handler(site, request)

        return Route(self.path, endpoint)


@dataclass(frozen=True)
class FormRoute:
    """What answers a form that was sent, and where. Its fields are read, within the limits, and come from this site."""

    path: str
    handler: Callable[[Site, Request, Mapping[str, Any]], Response | Awaitable[Response]]
    """Run in a thread, unless it is a coroutine function: that one has something to wait for."""
    permission: Permission | None = None
    """What one must be allowed to send it; it counts as a write of theirs."""

    def to_route(self, site: Site) -> Route:
        """It as the framework has it."""

        async def endpoint(request: Request) -> Response:
            require_same_origin(request)
            fields, _ = await read_fields(request, site.limits)
            try:
                return await self._run_handler(site, request, fields)
            except (HTTPProblem, StoreError, IndexNotReady) as error:
                is_rejected = isinstance(error, HTTPProblem) and error.status not in _RETRYABLE_STATUSES
                if is_rejected or not _can_resubmit(fields) or not accepts_html(request):
                    raise
                return await run_in_threadpool(_render_resubmit, site, request, fields, error)

        return Route(self.path, endpoint, methods=["POST"])

    async def _run_handler(self, site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
        if self.permission is not None and not await authorize_write(site, request, self.permission):
            return await run_in_threadpool(_render_sign_in, site, request, fields)
        if iscoroutinefunction(self.handler):
            response: Response = await self.handler(site, request, fields)
            return response
        return await run_in_threadpool(cast(_SyncHandler, self.handler), site, request, fields)


_RETRYABLE_STATUSES = (429, 503)
"""What HTTP calls it where the same form, sent a little later, may be taken."""


_NO_STORE = {"cache-control": "no-store"}


async def authorize_write(site: Site, request: Request, permission: Permission) -> bool:
    """Whether whoever sends a form is signed in; then it counts as a write of theirs. Raises where they may not."""
    caller = await run_in_threadpool(get_caller, site, request)
    if caller is None:
        return False
    _require_permission(caller, permission)
    site.limits.write_limiter.acquire(caller.token_id)
    return True


async def handle_expired_session(site: Site, request: Request) -> Response:
    """The answer to a form of someone who is not signed in any more: what they wrote is there for after that."""
    require_same_origin(request)
    fields, _ = await read_fields(request, site.limits)
    return await run_in_threadpool(_render_sign_in, site, request, fields)


def _render_sign_in(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """What someone gets who sent a form and is not signed in any more: nothing that they wrote is lost.

    But for a form with a password, which no page may show: that is to be filled in again, where it stands.
    """
    description = describe_error(Unauthenticated("You are not signed in any more."))
    if _can_resubmit(fields):
        context = {
            "next": get_path_and_query(request),
            "kept": orjson.dumps(dict(fields)).decode(),
            "wrong": description.detail,
        }
    else:
        context = {"next": request.url.path.rpartition("/")[0], "wrong": description.detail}
    return site.render(
        request, "sign_in.html", context, description.status, {**lower_header_names(description), **_NO_STORE}
    )


def _render_resubmit(site: Site, request: Request, fields: Mapping[str, Any], error: Exception) -> Response:
    """What someone gets whose form cannot be taken at this moment: nothing that they wrote is lost."""
    description = describe_error(error)
    context = {"next": get_path_and_query(request), "fields": fields, "wrong": description}
    return site.render(
        request, "send_again.html", context, description.status, {**lower_header_names(description), **_NO_STORE}
    )


def _can_resubmit(fields: Mapping[str, Any]) -> bool:
    """Whether a page may hold what was sent: none may hold a password."""
    return not any("password" in name for name in fields)


def _require_permission(caller: Caller, permission: Permission) -> None:
    """Raise a 403, in kind words, where a role does not allow it."""
    if not caller.has_permission(permission):
        reason = f"This is for people with the role {REQUIRED_ROLE[permission]}, and you have the role {caller.role}."
        raise HTTPProblem(403, f"{reason} Whoever keeps this catalogue can give you another.")


_SyncHandler = Callable[[Site, Request, Mapping[str, Any]], Response]


def require_same_origin(request: Request) -> None:
    """Raise a 403 for a form that a page of another origin sent. Every browser says where a form comes from."""
    origin = request.headers.get("origin")
    host = request.headers.get("host")
    if request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none") and (
        origin is None or origin.partition("://")[2] == host
    ):
        return
    raise HTTPProblem(403, "This form was sent from a page of another site. Open it here, and send it again.")
