"""Build the ASGI application: services, routes and middleware."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from lexarium.domain.errors import LexariumError, StoreError
from lexarium.services.access.authentication import Authenticator
from lexarium.services.maintenance.watchdog import Watchdog
from lexarium.services.records.class_colors import ClassCache
from lexarium.services.records.statistics import StatisticsCache
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.transfer.uploads import UploadManager
from lexarium.services.webhooks.delivery import DeliveryWorker
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web import health
from lexarium.web.http.callers import AccessGate
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.streaming import EventStreams
from lexarium.web.metrics import MetricsEndpoint
from lexarium.web.middleware.admission import AdmissionMiddleware, ConcurrencyLimit
from lexarium.web.middleware.caching import CachingMiddleware
from lexarium.web.middleware.fast_path import FastPath
from lexarium.web.middleware.lazy_app import LazyApp
from lexarium.web.middleware.proxies import ProxyHeadersMiddleware
from lexarium.web.middleware.request_log import RequestLogMiddleware, RequestStats
from lexarium.web.middleware.vocabularies import VocabulariesMiddleware
from lexarium.web.site import Site
from lexarium.web.valpha import endpoint

# Collect seldom: reference cycles are rare, and a collection blocks the event loop.
_GC_THRESHOLD = 10_000
_METRICS_INTERVAL_SECONDS = 1.0
_UPLOAD_CLEANUP_SECONDS = 300.0


def create_app(settings: Settings, database: Database, metrics_dir: Path | None = None) -> ASGIApp:
    """Return the whole service as one ASGI application, which closes the database when it shuts down.

    Where there are several workers, they share their metrics through files in `metrics_dir`.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        with suppress(StoreError):  # Without a database, connecting is tried again with each request.
            await run_in_threadpool(database.get_position)  # connects before the first request
        delivery_worker = DeliveryWorker(database, allow_private=settings.allows_private_webhooks)
        await run_in_threadpool(watchdog.start)
        delivery_worker.start()
        indexer.start()
        loops = (
            _repeat(metrics.write_worker_file, _METRICS_INTERVAL_SECONDS),
            _repeat(uploads.delete_expired, _UPLOAD_CLEANUP_SECONDS),
            response_cache.run_invalidation_loop(),
        )
        tasks = [asyncio.create_task(loop) for loop in loops]
        gc.set_threshold(_GC_THRESHOLD)
        gc.freeze()  # Collections need not look at objects that stay for good.
        yield {  # read by `uvicorn_protocol`
            "streams": event_streams,
            "body_seconds": settings.body_seconds,
            "bodies": limits.body_memory,
            "connections": settings.connections,
        }
        for task in tasks:
            task.cancel()
        database.stop_using_standbys()  # first, because the services below may be reading from them
        for stop in (watchdog.stop, indexer.stop, delivery_worker.stop, database.close):
            await run_in_threadpool(stop)

    def build_v1() -> ASGIApp:
        from lexarium.web.v1.app import create_v1_app  # noqa: PLC0415 - takes long to load

        return create_v1_app(site, gate, event_streams)

    limits = Limits(settings)
    event_streams = EventStreams(settings.streams)
    authenticator = Authenticator(database)
    gate = AccessGate(authenticator, is_private=settings.read == "token")
    request_limit = ConcurrencyLimit(settings.requests)
    heavy_limit = ConcurrencyLimit(settings.heavy_requests, overload_divisor=1)
    indexer = Indexer(database, settings.index, is_overloaded=lambda: request_limit.is_overloaded)
    record_search = RecordSearch(database, indexer)
    response_cache = ResponseCache(settings.cache_mb * 1_000_000, database)
    request_stats = RequestStats(log_all=settings.log_requests == "yes")
    limiters = (request_limit, heavy_limit, limits.body_memory)
    metrics = MetricsEndpoint(database, indexer, response_cache, event_streams, request_stats, *limiters, metrics_dir)
    watchdog = Watchdog(database, settings.integrity_minutes * 60, metrics_dir)
    annotator_cache = AnnotatorCache(database, settings.index)
    uploads = UploadManager(database)
    site = Site(
        database=database,
        record_search=record_search,
        annotator_cache=annotator_cache,
        statistics_cache=StatisticsCache(database),
        class_cache=ClassCache(),
        limits=limits,
        authenticator=authenticator,
        response_cache=response_cache,
        uploads=uploads,
        settings=settings,
    )
    v1 = LazyApp(build_v1)
    app = Starlette(
        routes=[
            # In the order of how often they are requested.
            *(Route(path, v1) for path in ("/api/v1/{rest:path}", "/api/v1", "/openapi.json", "/docs")),
            *endpoint.routes(site),
            metrics.route(),
            *health.build_routes(database, indexer),
        ],
        exception_handlers=dict.fromkeys([HTTPException, HTTPProblem, LexariumError, Exception], site.handle_error),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.router.default = LazyApp(partial(_build_pages, site))
    # Of a private catalogue no response is for everyone.
    cached_app = _gate(app, gate, site) if gate.is_private else CachingMiddleware(app, response_cache, database)
    following_app = VocabulariesMiddleware(cached_app, database)
    logged_app = RequestLogMiddleware(
        AdmissionMiddleware(following_app, request_limit, heavy_limit, limits), request_stats
    )
    proxied_app = ProxyHeadersMiddleware(logged_app, settings.proxy_networks)
    # Cached responses are sent without authentication: not from a private catalogue.
    shared_cache = None if gate.is_private else response_cache
    return FastPath(proxied_app, shared_cache, request_stats, request_limit, proxied_app.find_scheme)


def _build_pages(site: Site) -> ASGIApp:
    """Return the application of all that is not an API: pages, records at their IRIs, and reconciliation."""
    from lexarium.services.search.reconciliation import Reconciler  # noqa: PLC0415 - these take long to load
    from lexarium.web.pages.routes import build_routes  # noqa: PLC0415
    from lexarium.web.reconcile import endpoint as reconcile  # noqa: PLC0415
    from lexarium.web.record_endpoint import RecordEndpoint  # noqa: PLC0415

    records = RecordEndpoint(site)
    routes = (
        *reconcile.routes(Reconciler(site.database, site.record_search), site.authenticator, site.limits),
        *records.first_routes(),
        *build_routes(site),
        *records.routes(),
    )
    return Router(routes, redirect_slashes=False)


def _gate(app: ASGIApp, gate: AccessGate, site: Site) -> ASGIApp:
    from lexarium.web.middleware.access_gate import AccessGateMiddleware  # noqa: PLC0415 - loads pages

    return AccessGateMiddleware(app, gate, site)


async def _repeat(function: Callable[[], object], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        with suppress(OSError, StoreError):  # such as a full disk
            await run_in_threadpool(function)
