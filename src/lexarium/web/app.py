"""The application: what answers where, handed to one constructor."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from lexarium.domain.errors import LexariumError, StoreError
from lexarium.services.access.authentication import Authenticator
from lexarium.services.maintenance.watchdog import Watchdog
from lexarium.services.records.class_colors import ClassCache
from lexarium.services.records.statistics import StatisticsCache
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.reconciliation import Reconciler
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.transfer.uploads import UploadManager
from lexarium.services.webhooks.delivery import DeliveryWorker
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.health import HealthEndpoints
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.streaming import EventStreams
from lexarium.web.metrics import MetricsEndpoint
from lexarium.web.middleware.access_gate import AccessGate, AccessGateMiddleware
from lexarium.web.middleware.admission import AdmissionMiddleware, ConcurrencyLimit, WriteSchedulingMiddleware
from lexarium.web.middleware.fast_path import FastPath
from lexarium.web.middleware.lazy_app import LazyApp
from lexarium.web.middleware.proxies import ProxyHeadersMiddleware
from lexarium.web.middleware.request_log import RequestLogMiddleware, RequestStats
from lexarium.web.pages import routes
from lexarium.web.pages.site import Site
from lexarium.web.reconcile import endpoint as reconcile
from lexarium.web.record_endpoint import RecordEndpoint
from lexarium.web.valpha import endpoint

_GC_THRESHOLD = 10_000
"""After how many new ones Python looks for circles of objects that nothing uses: there are next to none."""
_METRICS_INTERVAL_SECONDS = 1.0
_UPLOAD_CLEANUP_SECONDS = 300.0


def create_app(settings: Settings, database: Database, metrics_dir: Path | None = None) -> ASGIApp:
    """The whole service as one ASGI application. It closes the database when it shuts down.

    `figures` is the folder in which the workers of a node tell each other theirs, where there are several.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        with suppress(StoreError):  # Where the database is away, it is looked for until it is there.
            await run_in_threadpool(database.get_position)  # connects, so that the first request need not
        delivery_worker = DeliveryWorker(database, allow_private=settings.webhooks_private == "yes")
        await run_in_threadpool(watchdog.start)
        delivery_worker.start()
        indexer.start()
        tasks = [
            asyncio.create_task(coroutine)
            for coroutine in (
                _write_metrics(metrics),
                response_cache.run_invalidation_loop(),
                _delete_expired_uploads(uploads),
            )
        ]
        gc.set_threshold(_GC_THRESHOLD)
        gc.freeze()  # What is there by now stays: whoever collects garbage holds up everyone, and need not look at it.
        yield {  # for `protocol`
            "streams": event_streams,
            "body_seconds": settings.body_seconds,
            "bodies": limits.body_memory,
            "connections": settings.connections,
        }
        for task in tasks:
            task.cancel()
        database.stop_using_standbys()  # first: what follows may be in the midst of reading there
        await run_in_threadpool(watchdog.stop)
        await run_in_threadpool(indexer.stop)
        await run_in_threadpool(delivery_worker.stop)
        await run_in_threadpool(database.close)

    limits = Limits(settings)
    event_streams = EventStreams(settings.streams)
    authenticator = Authenticator(database)
    gate = AccessGate(authenticator, is_private=settings.read == "token")
    request_limit, heavy_limit = (
        ConcurrencyLimit(settings.requests),
        ConcurrencyLimit(settings.heavy_requests, overload_divisor=1),
    )
    indexer = Indexer(database, settings.index, is_overloaded=lambda: request_limit.is_overloaded)
    record_search = RecordSearch(database, indexer)
    response_cache = ResponseCache(settings.cache_mb * 1_000_000, database)
    request_stats = RequestStats(log_all=settings.log_requests == "yes")
    metrics = MetricsEndpoint(
        database,
        indexer,
        response_cache,
        event_streams,
        request_stats,
        request_limit,
        heavy_limit,
        limits.body_memory,
        metrics_dir,
    )
    watchdog = Watchdog(database, settings.integrity_minutes * 60, metrics_dir)
    annotator_cache = AnnotatorCache(database)
    uploads = UploadManager(database, settings.vocabulary)
    site = Site(
        database=database,
        record_search=record_search,
        annotator_cache=annotator_cache,
        statistics_cache=StatisticsCache(database),
        class_cache=ClassCache(),
        limits=limits,
        vocabulary=settings.vocabulary,
        authenticator=authenticator,
        response_cache=response_cache,
        uploads=uploads,
        settings=settings,
    )
    v1 = LazyApp(
        "lexarium.web.v1.app", lambda module: module.create_v1_app(site, authenticator, gate, event_streams, settings)
    )
    app = Starlette(
        routes=[
            # The first are found first: what is asked for most, and is not finished.
            *(Route(path, v1) for path in ("/api/v1/{rest:path}", "/api/v1", "/openapi.json", "/docs")),
            *endpoint.routes(database, authenticator, response_cache, limits, record_search),
            *reconcile.routes(settings.vocabulary, Reconciler(database, record_search), limits),
            metrics.route(),
            *HealthEndpoints(database, indexer).routes(),
            *routes.build_routes(site),
            *RecordEndpoint(site).routes(),
        ],
        exception_handlers=dict.fromkeys([HTTPException, HTTPProblem, LexariumError, Exception], site.handle_error),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    admission_app = AdmissionMiddleware(
        WriteSchedulingMiddleware(AccessGateMiddleware(app, gate, site) if gate.is_private else app),
        request_limit,
        heavy_limit,
        limits.body_memory,
    )
    logged_app = RequestLogMiddleware(admission_app, request_stats)
    # What is finished is sent without asking who wants it: in a closed catalogue nothing is.
    return FastPath(
        ProxyHeadersMiddleware(logged_app, settings.proxy_networks),
        None if gate.is_private else response_cache,
        request_stats,
        request_limit,
    )


async def _delete_expired_uploads(uploads: UploadManager) -> None:
    while True:
        await asyncio.sleep(_UPLOAD_CLEANUP_SECONDS)
        with suppress(OSError, StoreError):
            await run_in_threadpool(uploads.delete_expired)


async def _write_metrics(metrics: MetricsEndpoint) -> None:
    while True:
        with suppress(OSError):  # where there is no room for them now, there may be later
            await run_in_threadpool(metrics.write_worker_file)
        await asyncio.sleep(_METRICS_INTERVAL_SECONDS)
