"""Who is signed in: the cookie that carries the secret of the token that signing in makes."""

import re
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.account import Token
from lexarium.domain.errors import StoreError, Unauthenticated
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller

COOKIE = "lexarium_session"
_SECURE_PREFIX = "__Host-"
"""What its name begins with under https: browsers take a cookie of that name from this very host alone."""
HOME_PATH = "/"
_LOCAL_PATH = re.compile(r"/(?!/)[^\s\\\x00-\x1f\x7f]*")
_MAX_PATH_CHARS = 2_000


class _HasAuthenticator(Protocol):
    @property
    def authenticator(self) -> Authenticator: ...


def get_authorization(request: Request) -> str | None:
    """What a program would send as `Authorization` to be let in as whoever is signed in; None where nobody is."""
    secret = request.cookies.get(_get_cookie_name(request))
    return f"Bearer {secret}" if secret else None


def get_caller(site: _HasAuthenticator, request: Request) -> Caller | None:
    """Who is signed in; None where nobody is, or not any more. It reads the database: to be called in a thread."""
    if get_authorization(request) is None:
        return None
    if hasattr(request.state, "caller_unknown"):
        raise request.state.caller_unknown
    if not hasattr(request.state, "caller"):
        try:
            request.state.caller = site.authenticator.authenticate(get_authorization(request))
        except Unauthenticated:
            request.state.caller = None
        except StoreError as error:
            request.state.caller_unknown = error  # so that the page which tells of it does not wait as long again
            raise
    caller: Caller | None = request.state.caller
    return caller


def require_caller(site: _HasAuthenticator, request: Request) -> Caller:
    """Who is signed in, where someone must be. Raises `Unauthenticated` where nobody is."""
    caller = get_caller(site, request)
    if caller is None:
        raise Unauthenticated("This needs someone who is signed in.")
    return caller


def set_session_cookie(request: Request, response: Response, token: Token, secret: str) -> None:
    """Have a browser keep a token that was made just now, for as long as it is good, in place of any other."""
    del response.headers["set-cookie"]
    seconds = None if token.expires_at is None else max(0, (token.expires_at - now_ms()) // 1000)
    response.set_cookie(_get_cookie_name(request), secret, max_age=seconds, secure=_is_secure(request), httponly=True)


def clear_session_cookie(request: Request, response: Response) -> None:
    """Have a browser forget its token."""
    response.delete_cookie(_get_cookie_name(request), secure=_is_secure(request), httponly=True)


def to_local_path(url: object) -> str:
    """An address that is a path on this site; the first page where it is none."""
    if isinstance(url, str) and len(url) <= _MAX_PATH_CHARS and _LOCAL_PATH.fullmatch(url):
        return url
    return HOME_PATH


def _get_cookie_name(request: Request) -> str:
    return _SECURE_PREFIX + COOKIE if _is_secure(request) else COOKIE


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"
