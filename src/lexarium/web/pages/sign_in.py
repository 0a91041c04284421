"""Signing in and out."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Unauthenticated
from lexarium.services.access import passwords
from lexarium.services.access.tokens import end_session
from lexarium.web.http.problems import HTTPProblem, describe_error
from lexarium.web.http.rate_limits import client_address
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import HOME_PATH, clear_session_cookie, get_caller, set_session_cookie, to_local_path
from lexarium.web.pages.site import SIGN_IN_PATH, Site

_SIGN_OUT_PATH = "/sign-out"


def show_form(site: Site, request: Request) -> Response:
    """A place for a name and a password; whoever is signed in already is sent on."""
    return_path = _get_return_path(request.query_params.get("next"))
    if get_caller(site, request) is not None:
        return RedirectResponse(return_path, 303)
    return site.render(request, "sign_in.html", {"next": return_path})


async def sign_in(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """Sent on with a new token, whatever the browser had before; or the form again, with what is wrong."""
    name, password = (str(fields.get(field_name, "")) for field_name in ("name", "password"))
    try:
        site.limits.sign_in_limiter.acquire(name, client_address(request))
        async with site.limits.sign_in_limiter.hash_semaphore:
            token, secret = await run_in_threadpool(passwords.sign_in, site.database, name, password)
    except (Unauthenticated, HTTPProblem) as error:
        return await run_in_threadpool(_render_error, site, request, fields, error)
    site.limits.sign_in_limiter.record_success(name, client_address(request))
    response = await run_in_threadpool(_finish_sign_in, site, request, fields)
    set_session_cookie(request, response, token, secret)
    return response


def _render_error(site: Site, request: Request, fields: Mapping[str, Any], error: Exception) -> Response:
    description = describe_error(error)
    context = {
        "next": _get_return_path(fields.get("next")),
        "name": fields.get("name", ""),
        "kept": fields.get("kept", ""),
        "wrong": description.detail,
        "refused": isinstance(error, Unauthenticated),
    }
    return site.render(request, "sign_in.html", context, description.status, description.headers)


def _finish_sign_in(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """Where someone goes who has signed in; with a form that could not be sent before, if there is one."""
    _end_session(site, request)
    return_path, saved_fields = _get_return_path(fields.get("next")), _parse_saved_form(fields)
    if saved_fields is None:
        return RedirectResponse(return_path, 303)
    return site.render(request, "send_again.html", {"next": return_path, "fields": saved_fields})


def _parse_saved_form(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """The fields of the form that someone had sent when they were no longer signed in."""
    try:
        saved_fields = orjson.loads(fields.get("kept", ""))
    except (orjson.JSONDecodeError, TypeError):
        return None
    return {str(name): str(value) for name, value in saved_fields.items()} if isinstance(saved_fields, dict) else None


def sign_out(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """The token is useless from now on, here and everywhere."""
    _end_session(site, request)
    response = RedirectResponse(HOME_PATH, 303)
    clear_session_cookie(request, response)
    return response


def _end_session(site: Site, request: Request) -> None:
    """End the session that a browser has, if it is still valid."""
    caller = get_caller(site, request)
    if caller is not None:
        end_session(site.database, caller)


def _get_return_path(url: object) -> str:
    path = to_local_path(url)
    return HOME_PATH if path.partition("?")[0] in (SIGN_IN_PATH, _SIGN_OUT_PATH) else path


ROUTES = (PageRoute(SIGN_IN_PATH, show_form), FormRoute(SIGN_IN_PATH, sign_in), FormRoute(_SIGN_OUT_PATH, sign_out))
