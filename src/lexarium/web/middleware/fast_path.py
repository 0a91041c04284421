"""Send cached responses and overload refusals before the framework is reached.

No routing, no model, no JSON, no thread: refusing many requests must cost little. Everything else falls through.
"""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import StoreError
from lexarium.web.http.conditional import read_conditional_headers
from lexarium.web.http.encodings import choose_encoding
from lexarium.web.http.raw_response import RawResponse
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.middleware.admission import EXEMPT_PATHS, OVERLOAD_RESPONSE, ConcurrencyLimit, is_heavy_request
from lexarium.web.middleware.caching import find_shared_key
from lexarium.web.middleware.request_log import REQUEST_ID, RequestStats


class FastPath:
    """ASGI middleware that answers from the response cache, or refuses under overload."""

    def __init__(
        self,
        app: ASGIApp,
        response_cache: ResponseCache | None,
        request_stats: RequestStats,
        request_limit: ConcurrencyLimit,
        find_scheme: Callable[[Mapping[str, Any]], str],
    ) -> None:
        """Serve everyone from `response_cache`; None where responses depend on the caller."""
        self._request_stats = request_stats
        self._request_limit = request_limit
        self._app = app
        self._response_cache = response_cache
        self._find_scheme = find_scheme

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self.find_response(scope) if scope["type"] == "http" else None
        await (response or self._app)(scope, receive, send)

    def find_response(self, scope: Mapping[str, Any], *, in_round: bool = False) -> RawResponse | None:
        """Return the cached response or the refusal of an HTTP request; None where the framework must answer it.

        `in_round` says that this round of the event loop has read the request: see `ResponseCache.get_in_round`.
        """
        return self._find_cached(scope, in_round) or self._refuse_overload(scope)

    def _find_cached(self, scope: Mapping[str, Any], in_round: bool) -> RawResponse | None:
        cache = self._response_cache
        if cache is None or scope["method"] not in ("GET", "HEAD"):
            return None
        accept_encoding, if_none_match, client_request_id = read_conditional_headers(scope)
        encoding = choose_encoding(accept_encoding)
        request_key = cache.find_alias(scope["raw_path"], scope["query_string"]) or find_shared_key(
            cache, scope, self._find_scheme(scope)
        )
        if request_key is None:
            return None
        try:
            key = (request_key, encoding)
            cached_response = cache.get_in_round(key) if in_round else cache.get(key)
        except StoreError:
            return None  # The framework answers with the error.
        if cached_response is None:
            return None
        response = cached_response.select_response(if_none_match)
        request_id = None if client_request_id is None else self._request_stats.assign_id(client_request_id)
        self._request_stats.record_cached(scope, cached_response.route, response.status, request_id)
        return response if request_id is None else response.with_header((REQUEST_ID, request_id))

    def _refuse_overload(self, scope: Mapping[str, Any]) -> RawResponse | None:
        if scope["path"] in EXEMPT_PATHS or is_heavy_request(scope) or not self._request_limit.should_reject():
            return None
        client_request_id = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
        request_id = self._request_stats.assign_id(client_request_id)
        self._request_stats.record(scope, OVERLOAD_RESPONSE.status, 0.0, request_id)
        return OVERLOAD_RESPONSE.with_header((REQUEST_ID, request_id))
