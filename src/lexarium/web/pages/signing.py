"""Signing in and out."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Unauthenticated
from lexarium.service import passwords
from lexarium.service.access import end_session
from lexarium.web.limits import address_of
from lexarium.web.pages.session import HOME, begin, caller_of, end, local
from lexarium.web.pages.site import SIGN_IN, Form, Page, Site
from lexarium.web.problems import HttpProblem, explained

_SIGN_OUT = "/sign-out"


def ask(site: Site, request: Request) -> Response:
    """A place for a name and a password; whoever is signed in already is sent on."""
    there = _after(request.query_params.get("next"))
    if caller_of(site, request) is not None:
        return RedirectResponse(there, 303)
    return site.render(request, "sign_in.html", {"next": there})


async def sign_in(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """Sent on with a new token, whatever the browser had before; or the form again, with what is wrong."""
    name, password = (str(fields.get(each, "")) for each in ("name", "password"))
    try:
        site.limits.sign_ins.take(name, address_of(request))
        async with site.limits.sign_ins.hashing:
            token, secret = await run_in_threadpool(passwords.sign_in, site.database, name, password)
    except (Unauthenticated, HttpProblem) as error:
        return await run_in_threadpool(_again, site, request, fields, error)
    site.limits.sign_ins.succeeded(name, address_of(request))
    response = await run_in_threadpool(_welcome, site, request, fields)
    begin(request, response, token, secret)
    return response


def _again(site: Site, request: Request, fields: Mapping[str, Any], error: Exception) -> Response:
    wrong = explained(error)
    told = {
        "next": _after(fields.get("next")),
        "name": fields.get("name", ""),
        "kept": fields.get("kept", ""),
        "wrong": wrong.detail,
        "refused": isinstance(error, Unauthenticated),
    }
    return site.render(request, "sign_in.html", told, wrong.status, wrong.headers)


def _welcome(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """Where someone goes who has signed in; with a form that could not be sent before, if there is one."""
    _revoke(site, request)
    there, kept = _after(fields.get("next")), _kept(fields)
    if kept is None:
        return RedirectResponse(there, 303)
    return site.render(request, "send_again.html", {"next": there, "fields": kept})


def _kept(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """The fields of the form that someone had sent when they were no longer signed in."""
    try:
        kept = orjson.loads(fields.get("kept", ""))
    except (orjson.JSONDecodeError, TypeError):
        return None
    return {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else None


def sign_out(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """The token is useless from now on, here and everywhere."""
    _revoke(site, request)
    response = RedirectResponse(HOME, 303)
    end(request, response)
    return response


def _revoke(site: Site, request: Request) -> None:
    """End the session that a browser has, if it is still valid."""
    caller = caller_of(site, request)
    if caller is not None:
        end_session(site.database, caller)


def _after(address: object) -> str:
    there = local(address)
    return HOME if there.partition("?")[0] in (SIGN_IN, _SIGN_OUT) else there


PAGES = (Page(SIGN_IN, ask), Form(SIGN_IN, sign_in), Form(_SIGN_OUT, sign_out))
