"""Send cached responses and overload refusals before the framework is reached.

No routing, no model, no JSON, no thread: refusing many requests must cost little. Everything else falls through.
"""

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import StoreError
from lexarium.web.http.conditional import read_conditional_headers
from lexarium.web.http.encodings import choose_encoding
from lexarium.web.http.raw_response import RawResponse
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.middleware.admission import EXEMPT_PATHS, HEAVY_REQUESTS, OVERLOAD_RESPONSE, ConcurrencyLimit
from lexarium.web.middleware.request_log import REQUEST_ID, RequestStats


class FastPath:
    """ASGI middleware that answers from the response cache, or refuses under overload."""

    def __init__(
        self,
        app: ASGIApp,
        response_cache: ResponseCache | None,
        request_stats: RequestStats,
        request_limit: ConcurrencyLimit,
    ) -> None:
        """Serve everyone from `response_cache`; None where responses depend on the caller."""
        self._request_stats = request_stats
        self._request_limit = request_limit
        self._app = app
        self._response_cache = response_cache

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self.find_response(scope) if scope["type"] == "http" else None
        await (response or self._app)(scope, receive, send)

    def find_response(self, scope: Mapping[str, Any]) -> RawResponse | None:
        """Return the cached response or the refusal of an HTTP request; None where the framework must answer it."""
        return self._find_cached(scope) or self._refuse_overload(scope)

    def _find_cached(self, scope: Mapping[str, Any]) -> RawResponse | None:
        if self._response_cache is None or scope["method"] not in ("GET", "HEAD"):
            return None
        accept_encoding, if_none_match, client_request_id = read_conditional_headers(scope)
        try:
            cached_response = self._response_cache.find_by_url(
                scope["raw_path"], scope["query_string"], choose_encoding(accept_encoding)
            )
        except StoreError:
            return None  # The framework answers with the error.
        if cached_response is None:
            return None
        response = cached_response.select_response(if_none_match)
        request_id = None if client_request_id is None else self._request_stats.assign_id(client_request_id)
        self._request_stats.record_cached(scope, response.status, request_id)
        return response if request_id is None else response.with_header((REQUEST_ID, request_id))

    def _refuse_overload(self, scope: Mapping[str, Any]) -> RawResponse | None:
        if (
            scope["path"] in EXEMPT_PATHS
            or (scope["method"], scope["path"]) in HEAVY_REQUESTS
            or not self._request_limit.should_reject()
        ):
            return None
        client_request_id = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
        request_id = self._request_stats.assign_id(client_request_id)
        self._request_stats.record(scope, OVERLOAD_RESPONSE.status, 0.0, request_id)
        return OVERLOAD_RESPONSE.with_header((REQUEST_ID, request_id))
