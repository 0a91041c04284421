"""Who is signed in: the cookie that carries the secret of the token that signing in makes."""

import re
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.accounts import Token
from lexarium.domain.errors import StoreError, Unauthenticated
from lexarium.domain.stamps import now
from lexarium.service.access import Caller, Callers

COOKIE = "lexarium_session"
_SECURE = "__Host-"
"""What its name begins with under https: browsers take a cookie of that name from this very host alone."""
HOME = "/"
_HERE = re.compile(r"/(?!/)[^\s\\\x00-\x1f\x7f]*")
_LONGEST = 2_000


class _Site(Protocol):
    @property
    def callers(self) -> Callers: ...


def authorization(request: Request) -> str | None:
    """What a program would send as `Authorization` to be let in as whoever is signed in; None where nobody is."""
    secret = request.cookies.get(_name(request))
    return f"Bearer {secret}" if secret else None


def caller_of(site: _Site, request: Request) -> Caller | None:
    """Who is signed in; None where nobody is, or not any more. It reads the database: to be called in a thread."""
    if authorization(request) is None:
        return None
    if hasattr(request.state, "caller_unknown"):
        raise request.state.caller_unknown
    if not hasattr(request.state, "caller"):
        try:
            request.state.caller = site.callers.identify(authorization(request))
        except Unauthenticated:
            request.state.caller = None
        except StoreError as error:
            request.state.caller_unknown = error  # so that the page which tells of it does not wait as long again
            raise
    found: Caller | None = request.state.caller
    return found


def known(site: _Site, request: Request) -> Caller:
    """Who is signed in, where someone must be. Raises `Unauthenticated` where nobody is."""
    caller = caller_of(site, request)
    if caller is None:
        raise Unauthenticated("This needs someone who is signed in.")
    return caller


def begin(request: Request, response: Response, token: Token, secret: str) -> None:
    """Have a browser keep a token that was made just now, for as long as it is good, in place of any other."""
    del response.headers["set-cookie"]
    seconds = None if token.expires is None else max(0, (token.expires - now()) // 1000)
    response.set_cookie(_name(request), secret, max_age=seconds, secure=_secure(request), httponly=True)


def end(request: Request, response: Response) -> None:
    """Have a browser forget its token."""
    response.delete_cookie(_name(request), secure=_secure(request), httponly=True)


def local(address: object) -> str:
    """An address that is a path on this site; the first page where it is none."""
    if isinstance(address, str) and len(address) <= _LONGEST and _HERE.fullmatch(address):
        return address
    return HOME


def _name(request: Request) -> str:
    return _SECURE + COOKIE if _secure(request) else COOKIE


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
