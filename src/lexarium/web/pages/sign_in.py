"""Sign in and sign out."""

import re

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Unauthenticated
from lexarium.services.access import authentication
from lexarium.services.access.tokens import end_session
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.rate_limits import client_address
from lexarium.web.http.session import clear_session_cookie, set_session_cookie
from lexarium.web.pages.form_fields import FormValues
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.site import SIGN_IN_PATH

_SIGN_OUT_PATH = "/sign-out"
_HOME_PATH = "/"
_LOCAL_PATH = re.compile(r"/(?!/)[^\s\\\x00-\x1f\x7f]*")
_MAX_PATH_CHARS = 2_000


def show_form(page: Page) -> Response:
    """Show the sign-in form, or redirect a user who is signed in already."""
    return_path = _get_return_path(page.query.get("next"))
    if page.site.get_caller(page.request) is not None:
        return RedirectResponse(return_path, 303)
    return page.render("sign_in.html", {"next": return_path})


async def sign_in(page: Page) -> Response:
    """Start a new session, or show the form again with the error."""
    site, request, fields = page.site, page.request, page.fields
    name, password = (str(fields.get(field_name, "")) for field_name in ("name", "password"))
    limiter = site.limits.sign_in_limiter
    try:
        limiter.acquire(name, client_address(request))
        async with limiter.hash_semaphore:
            token, secret = await run_in_threadpool(authentication.sign_in, site.database, name, password)
    except (Unauthenticated, HTTPProblem) as error:
        context = {
            "next": _get_return_path(fields.get("next")),
            "name": fields.get("name", ""),
            "saved_form": fields.get("kept", ""),
            "is_rejected": isinstance(error, Unauthenticated),
        }
        return await run_in_threadpool(site.error_page, request, error, "sign_in.html", context)
    limiter.record_success(name, client_address(request))
    response = await run_in_threadpool(_finish_sign_in, page)
    set_session_cookie(request, response, token, secret)
    return response


def _finish_sign_in(page: Page) -> Response:
    _end_session(page)
    return_path, saved_fields = _get_return_path(page.fields.get("next")), _parse_saved_form(page.fields)
    if saved_fields is None:
        return RedirectResponse(return_path, 303)
    return page.render("resubmit_form.html", {"next": return_path, "fields": saved_fields})


def _parse_saved_form(fields: FormValues) -> dict[str, str] | None:
    """Return the fields of the form that was sent after the session had ended, if any."""
    try:
        saved_fields = orjson.loads(fields.get("kept", ""))
    except (orjson.JSONDecodeError, TypeError):
        return None
    return {str(name): str(value) for name, value in saved_fields.items()} if isinstance(saved_fields, dict) else None


def sign_out(page: Page) -> Response:
    """Revoke the session's token and delete the cookie."""
    _end_session(page)
    response = RedirectResponse(_HOME_PATH, 303)
    clear_session_cookie(page.request, response)
    return response


def _end_session(page: Page) -> None:
    caller = page.site.get_caller(page.request)
    if caller is not None:
        end_session(page.site.database, caller)


def _get_return_path(url: object) -> str:
    """Return a URL that is a path on this site, or the home page for any other, and for those of this module."""
    if not isinstance(url, str) or len(url) > _MAX_PATH_CHARS or not _LOCAL_PATH.fullmatch(url):
        return _HOME_PATH
    return _HOME_PATH if url.partition("?")[0] in (SIGN_IN_PATH, _SIGN_OUT_PATH) else url


ROUTES = (PageRoute(SIGN_IN_PATH, show_form), FormRoute(SIGN_IN_PATH, sign_in), FormRoute(_SIGN_OUT_PATH, sign_out))
