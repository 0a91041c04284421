"""Routes, methods and errors of v-alpha."""

from dataclasses import dataclass
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged, RecordRetired
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.schema.collections import Collection
from lexarium.services.curation import submissions
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.records.valpha_queries import find_valpha_collection
from lexarium.store.transaction import Transaction
from lexarium.web.http.callers import authenticate_request
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.request_body import read_fields
from lexarium.web.http.write_requests import await_write, build_idempotency_request
from lexarium.web.site import Site
from lexarium.web.valpha.reads import ValphaReads
from lexarium.web.valpha.resources import RESOURCES, VALPHA_PATH, ResourceSpec, build_options_body


def routes(site: Site) -> list[Route]:
    """Return the routes of v-alpha."""
    valpha_routes = []
    for resource in RESOURCES.values():
        path = f"{VALPHA_PATH}/{resource.name}"
        endpoint = ValphaEndpoint(resource, site, ValphaReads(resource, site))
        valpha_routes += [Route(path, endpoint), Route(f"{path}/", endpoint)]
    return valpha_routes


@dataclass(frozen=True)
class ValphaEndpoint:
    """One resource, as an ASGI application."""

    resource: ResourceSpec
    site: Site
    reads: ValphaReads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(Request(scope, receive))
        except (LexariumError, HTTPProblem) as error:
            response = self._build_error(error, self.resource.build_headers(scope["method"]))
        await response(scope, receive, send)

    def _build_error(self, error: LexariumError | HTTPProblem, headers: dict[str, str]) -> Response:
        if isinstance(error, RecordMerged):
            return redirect_merged(error, _build_url(self.resource.name, get_local_id(error.survivor_id)), headers)
        return problem_response(HTTPProblem(404, str(error)) if isinstance(error, RecordRetired) else error, headers)

    async def _respond(self, request: Request) -> ASGIApp:
        if request.scope["path"].endswith("/"):
            query = request.scope["query_string"].decode("latin-1")
            path = request.scope["path"].rstrip("/")
            url = f"{path}?{query}" if query else path
            return RedirectResponse(url, 308, self.resource.build_headers(request.method))
        if request.method in ("GET", "HEAD"):
            return await self.reads.get(request)
        if request.method == "OPTIONS":
            return self._options(request)
        if request.method == "POST" and self.resource.collection:
            collection = find_valpha_collection(self.resource.name)
            if collection is None:
                raise NotFound(f"There is no vocabulary with the collection {self.resource.name} here.")
            return await self._post(request, collection)
        raise HTTPProblem(405, f"{request.method} is not allowed here; {self.resource.allow} are.")

    def _options(self, request: Request) -> Response:
        headers = self.resource.build_headers("OPTIONS")
        if "access-control-request-method" in request.headers:
            headers |= {
                "access-control-allow-methods": "GET, HEAD, OPTIONS",
                "access-control-allow-headers": "If-None-Match, Cache-Control",
                "access-control-max-age": "86400",
            }
        return Response(orjson.dumps(build_options_body(self.resource)), 200, headers, media_type="application/json")

    async def _post(self, request: Request, collection: Collection) -> Response:
        limits = self.site.limits
        caller = await authenticate_request(request, self.site.authenticator)
        rate_limit_headers = limits.write_limiter.acquire(caller.token_id)
        fields, is_form = await read_fields(request, limits)
        body = await limits.read_body(request)
        idempotency = build_idempotency_request(request, request.headers.get("idempotency-key"), body)

        def create(transaction: Transaction) -> WriteResponse:
            return _to_write_response(
                submissions.submit_valpha_record(transaction, caller, collection, fields, from_form=is_form)
            )

        result = await await_write(self.site.database, make_idempotent(caller.account.id, idempotency, create))
        headers = self.resource.build_headers("POST") | rate_limit_headers | {"location": str(result.location)}
        return Response(orjson.dumps(result.content), result.status, headers, media_type="application/json")


def _to_write_response(result: VersionedRecord | Proposal) -> WriteResponse:
    if isinstance(result, Proposal):
        proposal = {"proposal": result.id, "state": result.state, "change": orjson.Fragment(result.change)}
        return WriteResponse(202, proposal, f"/api/v1/proposals/{result.id}")
    record = result.record
    location = _build_url(record.collection.local_name, record.local_id)
    return WriteResponse(201, orjson.Fragment(result.record.rendered.body), location)


def _build_url(resource: str, local_id: str) -> str:
    return f"{VALPHA_PATH}/{resource}?id={quote(local_id, safe=':/')}"
