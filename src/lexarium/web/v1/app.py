"""v1 as one FastAPI application. Loaded with the first request for it, so that starting stays fast."""

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium import __version__
from lexarium.domain.errors import Invalid, LexariumError, Problem
from lexarium.service.annotating import Annotating
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem, handle_error, respond
from lexarium.web.v1 import (
    accounts,
    annotate,
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
from lexarium.web.v1.schemas import components, problems


def make_v1(database: Database, limits: Limits, settings: Settings) -> ASGIApp:
    """The application, with every address of v1 and its OpenAPI document."""
    app = FastAPI(
        title=settings.title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses=problems(),
        dependencies=[Depends(refuse_unknown_parameters)],
        exception_handlers={
            **dict.fromkeys([HTTPException, HttpProblem, LexariumError, Exception], handle_error),
            RequestValidationError: _handle_invalid,
        },
    )
    app.state.database = database
    app.state.limits = limits
    app.state.settings = settings
    app.state.annotating = Annotating(database)
    app.router.redirect_slashes = False
    # The fixed names first: `records` and the like must not be taken for a collection's.
    named = [module.router for module in (service, changes, batch, annotate, proposals, releases, accounts, webhooks)]
    for router in (*named, *history.routers(), *relations.routers(), *records.routers()):
        app.include_router(router, prefix=answers.PATH)
    app.include_router(reference.router)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
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


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas |= components()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [
        Problem(str(item["loc"][-1]), f"{item['msg'][0].lower()}{item['msg'][1:]}.".replace("input should", "should"))
        for item in error.errors()
    ]
    return respond(Invalid("The request is not valid.", found))
