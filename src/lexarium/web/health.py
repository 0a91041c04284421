"""Health and readiness probes, and the lists of API versions and collections."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import DatabaseDamaged, IndexNotReady
from lexarium.services.records.catalogue_state import get_position, is_schema_current
from lexarium.services.search.indexer import MAX_WAIT_LAG, Indexer
from lexarium.store.database import Database
from lexarium.web.http.problems import CORS_HEADERS, DAMAGED_MESSAGE, DISK_FULL_MESSAGE, HTTPProblem, problem_response
from lexarium.web.valpha.resources import RESOURCES, VALPHA_PATH

API_VERSIONS = {"v-alpha": VALPHA_PATH, "v1": "/api/v1"}


def build_routes(database: Database, indexer: Indexer) -> list[Route]:
    """Return the routes. They must come last, because two of them match everything below /api."""

    async def get_readiness(request: Request) -> Response:
        try:
            await run_in_threadpool(_require_ready, database, indexer)
        except DatabaseDamaged:
            raise HTTPProblem(503, DAMAGED_MESSAGE, {"Retry-After": "1"}, reads=False, writes=False) from None
        skipped = indexer.count_skipped()
        return JSONResponse({"status": "ok", "unindexed_records": skipped} if skipped else {"status": "ok"})

    unknown_collection = f"Unknown collection under {VALPHA_PATH}; available: {', '.join(RESOURCES)}."
    unknown_version = f"Unknown API version; available: {', '.join(API_VERSIONS)}."
    return [
        Route("/healthz", _get_health),
        Route("/readyz", get_readiness),
        *(Route(f"/api{slash}", _list_versions) for slash in ("", "/")),
        *(Route(f"{VALPHA_PATH}{slash}", _list_collections) for slash in ("", "/")),
        Route(VALPHA_PATH + "/{rest:path}", _build_not_found(unknown_collection)),
        Route("/api/{rest:path}", _build_not_found(unknown_version)),
    ]


def _build_not_found(detail: str) -> Response:
    """Return a response for every method. A route takes it as an ASGI application."""
    return problem_response(HTTPProblem(404, detail), CORS_HEADERS)


async def _get_health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _list_versions(request: Request) -> Response:
    return JSONResponse({"versions": API_VERSIONS}, headers=CORS_HEADERS)


async def _list_collections(request: Request) -> Response:
    collections = {name: f"{VALPHA_PATH}/{name}" for name in RESOURCES}
    return JSONResponse({"collections": collections}, headers=CORS_HEADERS)


def _require_ready(database: Database, indexer: Indexer) -> None:
    with database.read() as snapshot:
        if database.backend.is_upgrading(snapshot):
            raise IndexNotReady("Database is being upgraded.")
        if not is_schema_current(snapshot):
            raise IndexNotReady("Database schema does not match this version of Lexarium.")
        position = get_position(snapshot)
    if not database.has_disk_space():
        raise HTTPProblem(503, DISK_FULL_MESSAGE, {"Retry-After": "1"}, reads=True, writes=False)
    indexer.get_snapshot(position)
    if indexer.error is not None:
        raise IndexNotReady(indexer.error)
    index_lag = indexer.lag(position)
    if index_lag is None or index_lag > MAX_WAIT_LAG:
        raise IndexNotReady("Search index is catching up.")
