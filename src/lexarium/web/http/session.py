"""Session cookie of a signed-in browser. It carries the secret of the token that signing in creates."""

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.account import Token
from lexarium.domain.text.timestamps import now_ms

COOKIE = "lexarium_session"
# Browsers accept a cookie with this prefix only from this host, and only over https.
_SECURE_PREFIX = "__Host-"


def get_authorization(request: Request) -> str | None:
    """Return the cookie's token as an `Authorization` header, or None."""
    secret = request.cookies.get(_get_cookie_name(request))
    return f"Bearer {secret}" if secret else None


def set_session_cookie(request: Request, response: Response, token: Token, secret: str) -> None:
    """Store a new token in the browser until it expires, replacing any other."""
    del response.headers["set-cookie"]
    seconds = None if token.expires_at is None else max(0, (token.expires_at - now_ms()) // 1000)
    response.set_cookie(_get_cookie_name(request), secret, max_age=seconds, secure=_is_secure(request), httponly=True)


def clear_session_cookie(request: Request, response: Response) -> None:
    """Delete the token from the browser."""
    response.delete_cookie(_get_cookie_name(request), secure=_is_secure(request), httponly=True)


def _get_cookie_name(request: Request) -> str:
    return _SECURE_PREFIX + COOKIE if _is_secure(request) else COOKIE


def _is_secure(request: Request) -> bool:
    scheme: str = request.scope["scheme"]
    return scheme == "https"
