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
from lexarium.service.access import Callers
from lexarium.service.annotating import Annotating
from lexarium.service.classes import Classes
from lexarium.service.deliverer import Deliverer
from lexarium.service.finding import Finder
from lexarium.service.indexing import Indexer
from lexarium.service.reconciling import Reconciler
from lexarium.service.statistics import Statistics
from lexarium.service.uploads import Uploads
from lexarium.service.watchdog import Watchdog
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.admission import Admitted, Work
from lexarium.web.answers import Answers
from lexarium.web.fastpath import FastPath
from lexarium.web.gate import Gate, Gated
from lexarium.web.iris import Iris
from lexarium.web.lazy import Lazy
from lexarium.web.limits import Limits
from lexarium.web.metrics import Metrics
from lexarium.web.pages import addresses
from lexarium.web.pages.site import Site
from lexarium.web.probes import Probes
from lexarium.web.problems import HttpProblem
from lexarium.web.proxies import Forwarded
from lexarium.web.reconcile import endpoint as reconcile
from lexarium.web.streams import Streams
from lexarium.web.suggest import Suggest
from lexarium.web.traffic import Observed, Traffic
from lexarium.web.turns import InTurn
from lexarium.web.v1.plain_search import PlainSearch
from lexarium.web.valpha import endpoint

_OBJECTS = 10_000
"""After how many new ones Python looks for circles of objects that nothing uses: there are next to none."""
_PUBLISH_SECONDS = 1.0
_SWEEP_SECONDS = 300.0


def make_app(settings: Settings, database: Database, figures: Path | None = None) -> ASGIApp:
    """The whole service as one ASGI application. It closes the database when it shuts down.

    `figures` is the folder in which the workers of a node tell each other theirs, where there are several.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        with suppress(StoreError):  # Where the database is away, it is looked for until it is there.
            await run_in_threadpool(database.position)  # connects, so that the first request need not
        deliverer = Deliverer(database, private=settings.webhooks_private == "yes")
        await run_in_threadpool(watchdog.start)
        deliverer.start()
        indexer.start()
        tasks = [asyncio.create_task(each) for each in (_publish(metrics), answers.go_along(), _sweep(uploads))]
        gc.set_threshold(_OBJECTS)
        gc.freeze()  # What is there by now stays: whoever collects garbage holds up everyone, and need not look at it.
        yield {  # for `protocol`
            "streams": streams,
            "body_seconds": settings.body_seconds,
            "bodies": limits.bodies,
            "connections": settings.connections,
        }
        for task in tasks:
            task.cancel()
        database.leave_standbys()  # first: what follows may be in the midst of reading there
        await run_in_threadpool(watchdog.stop)
        await run_in_threadpool(indexer.stop)
        await run_in_threadpool(deliverer.stop)
        await run_in_threadpool(database.close)

    limits = Limits(settings)
    streams = Streams(settings.streams)
    callers = Callers(database)
    gate = Gate(callers, closed=settings.read == "token")
    work, heavy = Work(settings.requests), Work(settings.heavy_requests, parts=1)
    indexer = Indexer(database, settings.index, hurried=lambda: work.is_strained)
    finder = Finder(database, indexer)
    answers = Answers(settings.cache_mb * 1_000_000, database)
    traffic = Traffic(told=settings.log_requests == "yes")
    metrics = Metrics(database, indexer, answers, streams, traffic, work, heavy, limits.bodies, figures)
    watchdog = Watchdog(database, settings.integrity_minutes * 60, figures)
    annotating = Annotating(database)
    uploads = Uploads(database, settings.about)
    site = Site(
        database=database,
        finder=finder,
        annotating=annotating,
        statistics=Statistics(database),
        classes=Classes(),
        limits=limits,
        about=settings.about,
        callers=callers,
        answers=answers,
        uploads=uploads,
        settings=settings,
    )
    v1 = Lazy("lexarium.web.v1.app", lambda module: module.make_v1(site, callers, gate, streams, settings))
    app = Starlette(
        routes=[
            # The first are found first: what is asked for most, and is not finished.
            Suggest(finder).route(),
            PlainSearch(finder, v1).route(),
            *(Route(path, v1) for path in ("/api/v1/{rest:path}", "/api/v1", "/openapi.json", "/docs")),
            *endpoint.routes(database, callers, answers, limits, finder),
            *reconcile.routes(settings.about, Reconciler(database, finder), limits),
            metrics.route(),
            *Probes(database, indexer).routes(),
            *addresses.routes(site),
            *Iris(site).routes(),
        ],
        exception_handlers=dict.fromkeys([HTTPException, HttpProblem, LexariumError, Exception], site.handle_error),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    admitted = Admitted(InTurn(Gated(app, gate, site) if gate.closed else app), work, heavy, limits.bodies)
    watched = Observed(admitted, traffic)
    # What is finished is sent without asking who wants it: in a closed catalogue nothing is.
    return FastPath(Forwarded(watched, settings.proxies), None if gate.closed else answers, traffic, work)


async def _sweep(uploads: Uploads) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        with suppress(OSError, StoreError):
            await run_in_threadpool(uploads.sweep)


async def _publish(metrics: Metrics) -> None:
    while True:
        with suppress(OSError):  # where there is no room for them now, there may be later
            await run_in_threadpool(metrics.publish)
        await asyncio.sleep(_PUBLISH_SECONDS)
