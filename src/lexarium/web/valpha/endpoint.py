"""The addresses of v-alpha: which method goes where, and what every answer carries."""

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import LexariumError, RecordMerged, RecordRetired
from lexarium.domain.proposal import Proposal
from lexarium.services.access.authentication import Authenticator
from lexarium.services.curation import submissions
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.search.record_search import RecordSearch
from lexarium.store.database import Database
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem, problem_response
from lexarium.web.http.request_body import read_fields
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.write_requests import authenticate_request, await_write, build_idempotency_request
from lexarium.web.valpha.reads import ValphaReads
from lexarium.web.valpha.resources import RESOURCES, VALPHA_PATH, ValphaResource, build_options_body


def routes(
    database: Database,
    authenticator: Authenticator,
    response_cache: ResponseCache,
    limits: Limits,
    record_search: RecordSearch,
) -> list[Route]:
    """The routes of v-alpha."""
    valpha_routes = []
    for resource in RESOURCES.values():
        path = f"{VALPHA_PATH}/{resource.name}"
        reads = ValphaReads(resource, database, response_cache, record_search)
        valpha_routes.append(Route(path, ValphaEndpoint(resource, database, authenticator, reads, limits)))
        valpha_routes.append(Route(path + "/", TrailingSlashRedirect(resource)))
    return valpha_routes


class ValphaEndpoint:
    """Answers one resource. An ASGI application."""

    def __init__(
        self,
        resource: ValphaResource,
        database: Database,
        authenticator: Authenticator,
        reads: ValphaReads,
        limits: Limits,
    ) -> None:
        self._resource = resource
        self._database = database
        self._authenticator = authenticator
        self._limits = limits
        self._methods = {"GET": reads.get, "HEAD": reads.get, "OPTIONS": self._options}
        if resource.collection:
            self._methods["POST"] = self._post

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            method = self._methods.get(scope["method"])
            if method is None:
                raise HTTPProblem(405, f"{scope['method']} is not allowed here; {self._resource.allow} are.")
            response = await method(request)
        except RecordRetired as error:
            response = problem_response(HTTPProblem(404, str(error)), self._resource.build_headers(scope["method"]))
        except RecordMerged as error:
            redirect = HTTPProblem(
                308, str(error), {"location": f"{VALPHA_PATH}/{self._resource.name}?id={error.survivor_id}"}
            )
            response = problem_response(redirect, self._resource.build_headers(scope["method"]))
        except (LexariumError, HTTPProblem) as error:
            response = problem_response(error, self._resource.build_headers(scope["method"]))
        await response(scope, receive, send)

    async def _options(self, request: Request) -> Response:
        headers = self._resource.build_headers("OPTIONS")
        if "access-control-request-method" in request.headers:
            headers |= {
                "access-control-allow-methods": "GET, HEAD, OPTIONS",
                "access-control-allow-headers": "If-None-Match, Cache-Control",
                "access-control-max-age": "86400",
            }
        return Response(orjson.dumps(build_options_body(self._resource)), 200, headers, media_type="application/json")

    async def _post(self, request: Request) -> Response:
        collection = self._resource.collection
        assert collection is not None
        caller = await authenticate_request(request, self._authenticator)
        rate_limit_headers = self._limits.write_limiter.acquire(caller.token_id)
        fields, is_form = await read_fields(request, self._limits)
        create = submissions.build_valpha_submission(caller, collection, fields, from_form=is_form)
        idempotency = build_idempotency_request(
            request, request.headers.get("idempotency-key"), await self._limits.read_body(request)
        )
        write_response = await await_write(
            self._database,
            make_idempotent(
                caller.account.id, idempotency, lambda transaction: _to_write_response(create(transaction))
            ),
        )
        headers = {
            **self._resource.build_headers("POST"),
            **rate_limit_headers,
            "location": str(write_response.location),
        }
        return Response(
            orjson.dumps(write_response.content), write_response.status, headers, media_type="application/json"
        )


def _to_write_response(result: VersionedRecord | Proposal) -> WriteResponse:
    if isinstance(result, Proposal):
        proposal = {"proposal": result.id, "state": result.state, "change": orjson.Fragment(result.change)}
        return WriteResponse(202, proposal, f"/api/v1/proposals/{result.id}")
    location = f"{VALPHA_PATH}/{result.record.collection.name}?id={result.record.id}"
    return WriteResponse(201, orjson.Fragment(result.record.rendered.body), location)


class TrailingSlashRedirect:
    """Redirects to the same address without its last slash."""

    def __init__(self, resource: ValphaResource) -> None:
        self._resource = resource

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode("latin-1")
        path = scope["path"].rstrip("/")
        headers = self._resource.build_headers(scope["method"])
        await RedirectResponse(f"{path}?{query}" if query else path, 308, headers)(scope, receive, send)
