"""Count, time and log the requests of one worker, and assign request ids."""

import logging
import re
import secrets
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from itertools import count, product
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("lexarium.requests")

# Upper bounds in seconds.
DURATION_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
REQUEST_ID = b"x-request-id"
_VALID_ID = re.compile(rb"[\w.:+/=-]{1,128}", re.ASCII)
_TOKEN = re.compile(r"lex_[\w-]+")
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_INTERFACES = {"/api/v1": "v1", "/api/v-alpha": "v-alpha", "/reconcile": "reconcile"}
_OTHER = "other"
_REASONS = (_HTTP_500, _ABORTED) = ("http_500", "aborted")
_CLIENT_ERROR = 400
_SERVER_ERROR = 500


# Method, route and status.
RequestLabels = tuple[str, str, int]


class RequestStats:
    """Counters of requests. Only the event loop's thread may write; any thread may read."""

    def __init__(self, *, log_all: bool) -> None:
        """Log every request with `log_all`, else only internal errors."""
        self._log_all = log_all
        self._worker_id = secrets.token_hex(6).encode()
        self._numbers = count(1)
        # Requests answered from the response cache, and others.
        self.cached_counts: defaultdict[RequestLabels, int] = defaultdict(int)
        self.counts: defaultdict[RequestLabels, int] = defaultdict(int)
        # By route, without cached responses: a count per bucket, and the sum of the seconds.
        self.durations: defaultdict[str, list[float]] = defaultdict(lambda: [0] * (len(DURATION_BUCKETS) + 2))
        # Internal errors by interface and reason. All exist from the start, so that the first shows as an increase.
        self.server_errors = dict.fromkeys(product((*_INTERFACES.values(), _OTHER), _REASONS), 0)

    def assign_id(self, client_request_id: bytes | None) -> bytes:
        """Return the id that the client sent, where it is valid, else a new one."""
        if client_request_id is not None and _VALID_ID.fullmatch(client_request_id):
            return client_request_id
        return b"%b-%x" % (self._worker_id, next(self._numbers))

    def record_cached(self, scope: Mapping[str, Any], route: str | None, status: int, request_id: bytes | None) -> None:
        """Count a request answered from the response cache, by its route, which is its path where there is none.

        This is the hottest path: do little.
        """
        self.cached_counts[scope["method"], route or scope["path"], status] += 1
        if self._log_all:
            self._log_request(scope["method"], scope["path"], status, 0.0, request_id)

    def record(self, scope: Mapping[str, Any], status: int, seconds: float, request_id: bytes) -> None:
        """Count any other request whose response has started."""
        method, route = scope["method"] if scope["method"] in _METHODS else "other", route_template(scope)
        self.counts[method, route, status] += 1
        durations = self.durations[route]
        durations[bisect_left(DURATION_BUCKETS, seconds)] += 1
        durations[-1] += seconds
        if status == _SERVER_ERROR:
            self._record_server_error(scope, _HTTP_500)
        if self._log_all or status == _SERVER_ERROR:
            self._log_request(method, scope["path"], status, seconds, request_id)

    def record_aborted(self, scope: Mapping[str, Any]) -> None:
        """Count an internal error after the response started."""
        self._record_server_error(scope, _ABORTED)

    def _record_server_error(self, scope: Mapping[str, Any], reason: str) -> None:
        interfaces = (name for prefix, name in _INTERFACES.items() if scope["path"].startswith(prefix))
        self.server_errors[next(interfaces, _OTHER), reason] += 1

    def _log_request(self, method: str, path: str, status: int, seconds: float, request_id: bytes | None) -> None:
        # Neither the query, which may hold a secret, nor the client is logged.
        path, milliseconds = _TOKEN.sub("lex_...", path), round(seconds * 1000, 2)
        id_text = (request_id or self.assign_id(None)).decode()
        fields = {"request": id_text, "method": method, "path": path, "status": status, "ms": milliseconds}
        level = logging.ERROR if status == _SERVER_ERROR else logging.INFO
        line = f"{method} {path} {status} in {milliseconds:.2f} ms, request {id_text}"
        logger.log(level, "%s", line, extra={"fields": fields})


def route_template(scope: Mapping[str, Any]) -> str:
    """Return the path template of the route that matched; `none` without one."""
    return str(getattr(scope.get("route"), "path", "none"))


class RequestLogMiddleware:
    """Record the requests of an application, and send the request id with every error."""

    def __init__(self, app: ASGIApp, request_stats: RequestStats) -> None:
        self._app = app
        self._request_stats = request_stats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        client_request_id = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
        request_id = self._request_stats.assign_id(client_request_id)
        status: int | None = None

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._request_stats.record(scope, status, perf_counter() - started, request_id)
                if client_request_id is not None or status >= _CLIENT_ERROR:
                    message = {**message, "headers": [*message["headers"], (REQUEST_ID, request_id)]}
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        except Exception:
            if status is None:
                self._request_stats.record(scope, _SERVER_ERROR, perf_counter() - started, request_id)
            elif status != _SERVER_ERROR:
                self._request_stats.record_aborted(scope)
            raise
