"""v1 as one FastAPI application. Loaded with the first request for it, so that starting stays fast."""

from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium import __version__
from lexarium.domain.errors import InvalidInput, LexariumError, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.authentication import Authenticator
from lexarium.settings import Settings
from lexarium.web.http.problems import HTTPProblem, handle_error, problem_response
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.access_gate import AccessGate
from lexarium.web.pages.site import Site
from lexarium.web.v1 import (
    accounts,
    annotate,
    answers,
    batch,
    changes,
    export,
    history,
    methods,
    proposals,
    records,
    reference,
    relations,
    releases,
    search,
    service,
    webhooks,
)
from lexarium.web.v1.envelope import Envelope
from lexarium.web.v1.requests import check_parameters, parameter_problems

_PLACE_OF_ID = len(f"{answers.PATH}/collection/".split("/")) - 1
"""Which part of an address names the record."""


def make_v1(site: Site, callers: Authenticator, gate: AccessGate, streams: EventStreams, settings: Settings) -> ASGIApp:
    """The application, with every address of v1 and its OpenAPI document."""
    app = FastAPI(
        title=settings.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        dependencies=[Depends(check_parameters)],
        exception_handlers={
            **dict.fromkeys([HTTPProblem, LexariumError, Exception], handle_error),
            HTTPException: _handle_http,
            RecordMerged: _handle_moved,
            RequestValidationError: _handle_invalid,
        },
    )
    app.state.database = site.database
    app.state.callers = callers
    app.state.gate = gate
    app.state.limits = site.limits
    app.state.streams = streams
    app.state.settings = settings
    app.state.finder = site.record_search
    app.state.annotating = site.annotator_cache
    app.state.site = site
    app.router.redirect_slashes = False
    # The records first: they are asked for most, and every route before takes its time to say no.
    others = (service, changes, batch, annotate, proposals, releases, accounts, webhooks, search, export)
    named = [module.router for module in others]
    routers = [*records.routers(), *named, *history.routers(), *relations.routers()]
    for router in routers:
        app.include_router(router, prefix=answers.PATH)
    app.include_router(reference.router)
    app.openapi = cache(lambda: _document(app, routers))  # type: ignore[method-assign]
    return Envelope(_Swift(app))


class _Swift:
    """Creating goes past FastAPI, which takes longer to hand a handler its parts than that to use them."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._routes = {("POST", route.path): route for route in records.swift_routes()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            await self._app(scope, receive, send)
        else:
            scope.update(app=self._app, route=route)
            await route.app(scope, receive, send)


def _operation_id(route: APIRoute) -> str:
    """What programs call an operation: by its collection too, where each has one like it."""
    tag = str(route.tags[0]) if route.tags else ""
    return f"{tag}_{route.name}" if tag in COLLECTIONS else route.name


def _document(app: FastAPI, routers: list[APIRouter]) -> dict[str, Any]:
    # Loaded here and not above: few ask for it, and all that it describes takes long to build.
    document: dict[str, Any] = import_module("lexarium.web.v1.document").make_document(app, routers, answers.PATH)
    return document


async def _handle_http(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return methods.answer(request)
    return await handle_error(request, error)


async def _handle_moved(request: Request, error: Exception) -> Response:
    """To who reads, the same address with the survivor in place of the record; who writes must see what they change."""
    assert isinstance(error, RecordMerged)
    if request.method != "GET":
        return problem_response(error)
    parts = request.scope["raw_path"].decode("ascii").split("/")
    parts[_PLACE_OF_ID] = quote(error.survivor_id, safe="")
    query = request.scope["query_string"].decode("latin-1")
    there = {"location": "/".join(parts) + (f"?{query}" if query else ""), "cache-control": "no-cache"}
    return problem_response(HTTPProblem(308, str(error), there, merged_into=error.survivor_id))


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(InvalidInput("The request is not valid.", parameter_problems(error.errors())))
