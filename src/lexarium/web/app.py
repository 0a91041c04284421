"""The application: what answers where, handed to one constructor."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
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
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.answers import Answers
from lexarium.web.fastpath import FastPath
from lexarium.web.iris import Iris
from lexarium.web.lazy import Lazy
from lexarium.web.limits import Limits
from lexarium.web.pages import addresses
from lexarium.web.pages.site import Site
from lexarium.web.probes import Probes
from lexarium.web.problems import HttpProblem
from lexarium.web.proxies import Forwarded
from lexarium.web.reconcile import endpoint as reconcile
from lexarium.web.streams import Streams
from lexarium.web.suggest import Suggest
from lexarium.web.valpha import endpoint


def make_app(settings: Settings, database: Database) -> ASGIApp:
    """The whole service as one ASGI application. It closes the database when it shuts down."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        with suppress(StoreError):  # Where the database is away, it is looked for until it is there.
            await run_in_threadpool(database.position)  # connects, so that the first request need not
        deliverer = Deliverer(database, private=settings.webhooks_private == "yes")
        deliverer.start()
        indexer.start()
        yield {"streams": streams, "body_seconds": settings.body_seconds}  # for `protocol`
        await run_in_threadpool(indexer.stop)
        await run_in_threadpool(deliverer.stop)
        await run_in_threadpool(database.close)

    limits = Limits(settings)
    streams = Streams(settings.streams)
    callers = Callers(database)
    indexer = Indexer(database, settings.index)
    finder = Finder(database, indexer)
    answers = Answers(settings.cache_mb * 1_000_000, database)
    annotating = Annotating(database)
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
        uploads=Uploads(database, settings.about),
        settings=settings,
    )
    v1 = Lazy("lexarium.web.v1.app", lambda module: module.make_v1(site, callers, streams, settings))
    app = Starlette(
        routes=[
            *endpoint.routes(database, callers, answers, limits, finder),
            Suggest(finder).route(),
            *(Route(path, v1) for path in ("/api/v1", "/api/v1/{rest:path}", "/openapi.json", "/docs")),
            *reconcile.routes(settings.about, Reconciler(database, finder), limits),
            *Probes(database, indexer).routes(),
            *addresses.routes(site),
            *Iris(site).routes(),
        ],
        exception_handlers=dict.fromkeys([HTTPException, HttpProblem, LexariumError, Exception], site.handle_error),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return FastPath(Forwarded(app, settings.proxies), answers)
