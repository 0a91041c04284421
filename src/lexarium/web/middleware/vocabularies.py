"""Middleware that makes known what has changed of the vocabularies."""

from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import StoreError
from lexarium.store.database import Database


class VocabulariesMiddleware:
    """Look at the position of the database before a request is answered, so that its vocabularies are the present ones.

    A change by any process or node is seen by the next request.
    """

    def __init__(self, app: ASGIApp, database: Database) -> None:
        self._app = app
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            with suppress(StoreError):  # The request itself is answered with the error.
                self._database.get_position()
        await self._app(scope, receive, send)
