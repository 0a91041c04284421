"""For whoever watches the service, and for whoever asks what there is."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import DatabaseDamaged, IndexNotReady
from lexarium.services.search.indexer import MAX_WAIT_LAG, Indexer
from lexarium.store.database import Database
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import read_position
from lexarium.store.upgrade import read_schema_version
from lexarium.web.http.problems import (
    CORS_HEADERS,
    DAMAGED_MESSAGE,
    DISK_FULL_MESSAGE,
    HTTPProblem,
    NotFoundApp,
)
from lexarium.web.valpha.resources import RESOURCES, VALPHA_PATH

API_VERSIONS = {"v-alpha": VALPHA_PATH, "v1": "/api/v1"}


class HealthEndpoints:
    """Answers about the service itself."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def routes(self) -> list[Route]:
        """Their addresses; last of all that begin alike, since the last two match everything."""
        unknown_collection = f"There is no such collection under {VALPHA_PATH}; there are {', '.join(RESOURCES)}."
        unknown_version = f"There is no such version of the interface; there is {', '.join(API_VERSIONS)}."
        return [
            Route("/healthz", self.get_health),
            Route("/readyz", self.get_readiness),
            *(Route(f"/api{slash}", self.list_versions) for slash in ("", "/")),
            *(Route(f"{VALPHA_PATH}{slash}", self.list_collections) for slash in ("", "/")),
            Route(VALPHA_PATH + "/{rest:path}", NotFoundApp(unknown_collection)),
            Route("/api/{rest:path}", NotFoundApp(unknown_version)),
        ]

    async def get_health(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def get_readiness(self, request: Request) -> Response:
        """Whether the process can serve all there is; a 503 that says why where it cannot."""
        try:
            await run_in_threadpool(self._require_ready)
        except DatabaseDamaged:
            raise HTTPProblem(503, DAMAGED_MESSAGE, {"Retry-After": "1"}, reads=False, writes=False) from None
        return JSONResponse({"status": "ok"})

    def _require_ready(self) -> None:
        with self._database.read() as snapshot:
            if self._database.backend.is_upgrading(snapshot):
                raise IndexNotReady("The catalogue's database is being upgraded.")
            if read_schema_version(snapshot) != SCHEMA_VERSION:
                raise IndexNotReady(
                    "The catalogue's database is not of this version: a newer Lexarium has upgraded it."
                )
            position = read_position(snapshot)
        if not self._database.has_disk_space():
            raise HTTPProblem(503, DISK_FULL_MESSAGE, {"Retry-After": "1"}, reads=True, writes=False)
        self._indexer.get_snapshot(position)
        if self._indexer.error is not None:
            raise IndexNotReady(self._indexer.error)
        index_lag = self._indexer.lag(position)
        if index_lag is None or index_lag > MAX_WAIT_LAG:
            raise IndexNotReady("The search index is far behind, and catching up.")

    async def list_versions(self, request: Request) -> Response:
        """The versions of the interface."""
        return JSONResponse({"versions": API_VERSIONS}, headers=CORS_HEADERS)

    async def list_collections(self, request: Request) -> Response:
        """The collections of v-alpha."""
        return JSONResponse(
            {"collections": {name: f"{VALPHA_PATH}/{name}" for name in RESOURCES}}, headers=CORS_HEADERS
        )
