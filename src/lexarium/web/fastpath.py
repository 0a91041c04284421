"""The hottest reads: an answer that is finished is sent from here, in front of the framework.

No routing table, no model, no JSON, no thread. Whatever has no finished answer falls through.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import StoreError
from lexarium.web.answers import Answers, conditions
from lexarium.web.encodings import chosen


class FastPath:
    """An ASGI application in front of another."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            accept, if_none_match = conditions(scope)
            try:
                answer = self._answers.get((scope["raw_path"], scope["query_string"], chosen(accept)))
            except StoreError:
                answer = None  # The framework's error handler says what is wrong.
            if answer is not None:
                await answer.deliver(send, if_none_match)
                return
        await self._app(scope, receive, send)
