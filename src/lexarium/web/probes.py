"""For whoever watches the service, and for whoever asks what there is."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lexarium.store.database import Database
from lexarium.web.problems import HttpProblem
from lexarium.web.valpha.resources import PATH, RESOURCES

VERSIONS = {"v-alpha": PATH}


class Probes:
    """Answers about the service itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def routes(self) -> list[Route]:
        """Their addresses."""
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/api", self.versions),
            Route("/api/v-alpha", self.collections),
            Route("/api/v-alpha/{rest:path}", self.unknown_collection, methods=None),
            Route("/api/{version}", self.unknown_version, methods=None),
            Route("/api/{version}/{rest:path}", self.unknown_version, methods=None),
        ]

    async def health(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The process can read its database; a 503 where it cannot."""
        return JSONResponse({"status": "ok", "revision": self._database.position().revision})

    async def versions(self, request: Request) -> Response:
        """The versions of the interface."""
        return JSONResponse({"versions": VERSIONS})

    async def collections(self, request: Request) -> Response:
        """The collections of v-alpha."""
        return JSONResponse({"collections": {name: f"{PATH}/{name}" for name in RESOURCES}})

    async def unknown_collection(self, request: Request) -> Response:
        """There is no such collection."""
        raise HttpProblem(404, f"There is no such collection under {PATH}; there are {', '.join(RESOURCES)}.")

    async def unknown_version(self, request: Request) -> Response:
        """There is no such version."""
        asked = request.path_params["version"]
        raise HttpProblem(404, f"There is no version {asked!r} of the interface; there is {', '.join(VERSIONS)}.")
