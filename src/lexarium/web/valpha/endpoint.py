"""The addresses of v-alpha: which method goes where, and what every answer carries."""

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import Gone, LexariumError, Moved
from lexarium.domain.proposals import Proposal
from lexarium.service import curating
from lexarium.service.access import Callers
from lexarium.service.desk import Saved
from lexarium.service.finding import Finder
from lexarium.service.once import Outcome, once
from lexarium.store.database import Database
from lexarium.web.answers import Answers
from lexarium.web.bodies import read_fields
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem, respond
from lexarium.web.valpha.reads import Reads
from lexarium.web.valpha.resources import PATH, RESOURCES, Resource, describe
from lexarium.web.writes import asked, caller_of, done


def routes(database: Database, callers: Callers, answers: Answers, limits: Limits, finder: Finder) -> list[Route]:
    """The routes of v-alpha."""
    found = []
    for resource in RESOURCES.values():
        path = f"{PATH}/{resource.name}"
        reads = Reads(resource, database, answers, finder)
        found.append(Route(path, ValphaEndpoint(resource, database, callers, reads, limits)))
        found.append(Route(path + "/", WithoutSlash(resource)))
    return found


class ValphaEndpoint:
    """Answers one resource. An ASGI application."""

    def __init__(self, resource: Resource, database: Database, callers: Callers, reads: Reads, limits: Limits) -> None:
        self._resource = resource
        self._database = database
        self._callers = callers
        self._limits = limits
        self._methods = {"GET": reads.get, "HEAD": reads.get, "OPTIONS": self._options}
        if resource.collection:
            self._methods["POST"] = self._post

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            method = self._methods.get(scope["method"])
            if method is None:
                raise HttpProblem(405, f"{scope['method']} is not allowed here; {self._resource.allow} are.")
            response = await method(request)
        except Gone as error:
            response = respond(HttpProblem(404, str(error)), self._resource.headers(scope["method"]))
        except Moved as error:
            moved = HttpProblem(308, str(error), {"location": f"{PATH}/{self._resource.name}?id={error.survivor}"})
            response = respond(moved, self._resource.headers(scope["method"]))
        except (LexariumError, HttpProblem) as error:
            response = respond(error, self._resource.headers(scope["method"]))
        await response(scope, receive, send)

    async def _options(self, request: Request) -> Response:
        headers = self._resource.headers("OPTIONS")
        if "access-control-request-method" in request.headers:
            headers |= {
                "access-control-allow-methods": "GET, HEAD, OPTIONS",
                "access-control-allow-headers": "If-None-Match, Cache-Control",
                "access-control-max-age": "86400",
            }
        return Response(orjson.dumps(describe(self._resource)), 200, headers, media_type="application/json")

    async def _post(self, request: Request) -> Response:
        collection = self._resource.collection
        assert collection is not None
        caller = await caller_of(request, self._callers)
        rate = self._limits.writes.take(caller.token)
        given, text = await read_fields(request, self._limits)
        make = curating.creation(caller, collection, given, text=text)
        ask = asked(request, request.headers.get("idempotency-key"), await self._limits.body(request))
        outcome = await done(self._database, once(caller, ask, lambda transaction: _told(make(transaction))))
        headers = {**self._resource.headers("POST"), **rate, "location": str(outcome.location)}
        return Response(orjson.dumps(outcome.content), outcome.status, headers, media_type="application/json")


def _told(made: Saved | Proposal) -> Outcome:
    if isinstance(made, Proposal):
        proposal = {"proposal": made.id, "state": made.state, "change": orjson.Fragment(made.change)}
        return Outcome(202, proposal, f"/api/v1/proposals/{made.id}")
    location = f"{PATH}/{made.whole.collection.name}?id={made.whole.id}"
    return Outcome(201, orjson.Fragment(made.whole.rendering.body), location)


class WithoutSlash:
    """Redirects to the same address without its last slash."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode("latin-1")
        path = scope["path"].rstrip("/")
        headers = self._resource.headers(scope["method"])
        await RedirectResponse(f"{path}?{query}" if query else path, 308, headers)(scope, receive, send)
