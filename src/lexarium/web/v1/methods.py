"""Which methods an address takes: for those that it does not, and for OPTIONS."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from lexarium.web.http.problems import HTTPProblem, problem_response

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PREFLIGHT = {
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "Accept, Cache-Control, If-None-Match, Last-Event-ID",
    "access-control-max-age": "86400",
}
"""Pages of other origins may read, and send no token."""


def answer(request: Request) -> Response:
    """The answer to a method that no handler takes at an address that is there."""
    allow = ", ".join(_allowed(request))
    if request.method != "OPTIONS":
        return problem_response(
            HTTPProblem(405, f"{request.method} is not allowed here; {allow} are.", {"allow": allow})
        )
    asked = "access-control-request-method" in request.headers
    return Response(status_code=204, headers={"allow": allow, **(_PREFLIGHT if asked else {})})


def _allowed(request: Request) -> list[str]:
    scope = {name: request.scope[name] for name in ("type", "path", "root_path", "headers")}
    found = [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    return [*found, *(["HEAD"] if "GET" in found else []), "OPTIONS"]
