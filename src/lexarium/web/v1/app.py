"""v1 as one FastAPI application. Loaded with the first request for it, so that starting stays fast."""

from functools import cache
from importlib import import_module
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium import __version__
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, LexariumError, Problem
from lexarium.service.access import Callers
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem, handle_error, respond
from lexarium.web.v1 import (
    accounts,
    answers,
    batch,
    changes,
    history,
    proposals,
    records,
    reference,
    relations,
    releases,
    service,
    webhooks,
)
from lexarium.web.v1.requests import refuse_unknown_parameters


def make_v1(database: Database, callers: Callers, limits: Limits, settings: Settings) -> ASGIApp:
    """The application, with every address of v1 and its OpenAPI document."""
    app = FastAPI(
        title=settings.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        dependencies=[Depends(refuse_unknown_parameters)],
        exception_handlers={
            **dict.fromkeys([HTTPException, HttpProblem, LexariumError, Exception], handle_error),
            RequestValidationError: _handle_invalid,
        },
    )
    app.state.database = database
    app.state.callers = callers
    app.state.limits = limits
    app.state.settings = settings
    app.router.redirect_slashes = False
    # The fixed names first: `records` and the like must not be taken for a collection's.
    named = [module.router for module in (service, changes, batch, proposals, releases, accounts, webhooks)]
    routers = [*named, *history.routers(), *relations.routers(), *records.routers()]
    for router in routers:
        app.include_router(router, prefix=answers.PATH)
    app.include_router(reference.router)
    app.openapi = cache(lambda: _document(app, routers))  # type: ignore[method-assign]
    return RateTold(app)


class RateTold:
    """Adds to an answer what its request was told of its rate.

    And has HEAD answered as GET is: the server sends no body then.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}

        async def tell(message: Message) -> None:
            rate = scope.get("state", {}).get("rate")
            if rate and message["type"] == "http.response.start":
                told = [(name.lower().encode(), value.encode()) for name, value in rate.items()]
                message = {**message, "headers": [*message["headers"], *told]}
            await send(message)

        await self._app(scope, receive, tell)


def _operation_id(route: APIRoute) -> str:
    """What programs call an operation: by its collection too, where each has one like it."""
    tag = str(route.tags[0]) if route.tags else ""
    return f"{tag}_{route.name}" if tag in COLLECTIONS else route.name


def _document(app: FastAPI, routers: list[APIRouter]) -> dict[str, Any]:
    # Loaded here and not above: few ask for it, and all that it describes takes long to build.
    document: dict[str, Any] = import_module("lexarium.web.v1.document").make_document(app, routers, answers.PATH)
    return document


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [
        Problem(str(item["loc"][-1]), f"{item['msg'][0].lower()}{item['msg'][1:]}.".replace("input should", "should"))
        for item in error.errors()
    ]
    return respond(Invalid("The request is not valid.", found))
