"""For whoever watches the service, and for whoever asks what there is."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import Damaged, Unready
from lexarium.service.indexing import FAR_BEHIND, Indexer
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.migrate import version_of
from lexarium.store.migrations import HEAD
from lexarium.web.problems import DAMAGED, NO_ROOM, HttpProblem, respond
from lexarium.web.valpha.resources import PATH, RESOURCES

VERSIONS = {"v-alpha": PATH, "v1": "/api/v1"}
_OPEN = {"access-control-allow-origin": "*"}


class Probes:
    """Answers about the service itself."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def routes(self) -> list[Route]:
        """Their addresses; last of all that begin alike, since the last two match everything."""
        no_collection = f"There is no such collection under {PATH}; there are {', '.join(RESOURCES)}."
        no_version = f"There is no such version of the interface; there is {', '.join(VERSIONS)}."
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            *(Route(f"/api{slash}", self.versions) for slash in ("", "/")),
            *(Route(f"{PATH}{slash}", self.collections) for slash in ("", "/")),
            Route(PATH + "/{rest:path}", NotThere(no_collection)),
            Route("/api/{rest:path}", NotThere(no_version)),
        ]

    async def health(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether the process can serve all there is; a 503 that says why where it cannot."""
        try:
            await run_in_threadpool(self._check)
        except Damaged:
            raise HttpProblem(503, DAMAGED, {"Retry-After": "1"}, reads=False, writes=False) from None
        return JSONResponse({"status": "ok"})

    def _check(self) -> None:
        with self._database.read() as snapshot:
            if self._database.backend.is_upgraded(snapshot):
                raise Unready("The catalogue's database is being upgraded.")
            if version_of(snapshot) != HEAD:
                raise Unready("The catalogue's database is not of this version: a newer Lexarium has upgraded it.")
            position = read_position(snapshot)
        if not self._database.has_room():
            raise HttpProblem(503, NO_ROOM, {"Retry-After": "1"}, reads=True, writes=False)
        self._indexer.at(position)
        if self._indexer.trouble is not None:
            raise Unready(self._indexer.trouble)
        behind = self._indexer.lag(position)
        if behind is None or behind > FAR_BEHIND:
            raise Unready("The search index is far behind, and catching up.")

    async def versions(self, request: Request) -> Response:
        """The versions of the interface."""
        return JSONResponse({"versions": VERSIONS}, headers=_OPEN)

    async def collections(self, request: Request) -> Response:
        """The collections of v-alpha."""
        return JSONResponse({"collections": {name: f"{PATH}/{name}" for name in RESOURCES}}, headers=_OPEN)


class NotThere:
    """Answers, to every method, that there is nothing, and what there is instead."""

    def __init__(self, detail: str) -> None:
        self._detail = detail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(HttpProblem(404, self._detail), _OPEN)(scope, receive, send)
