"""The hottest reads: an answer that is finished is sent from here, in front of the framework; so are refusals.

No routing table, no model, no JSON, no thread. Whatever has no finished answer falls through, unless there is too much
in work already: who refuses many must do so with little work.
"""

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import StoreError
from lexarium.web.admission import HEAVY, PROBES, REFUSAL, Work
from lexarium.web.answers import Answers, Reply, conditions
from lexarium.web.encodings import chosen
from lexarium.web.traffic import REQUEST_ID, Traffic


class FastPath:
    """An ASGI application in front of another."""

    def __init__(self, app: ASGIApp, answers: Answers | None, traffic: Traffic, work: Work) -> None:
        """`answers` are those that everyone may have; without any, every request goes on that can be taken."""
        self._traffic = traffic
        self._work = work
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = self.finished(scope) if scope["type"] == "http" else None
        if reply is not None:
            await reply.deliver(send)
            return
        await self._app(scope, receive, send)

    def finished(self, scope: Mapping[str, Any]) -> Reply | None:
        """The reply to an HTTP request, where it is finished, or is that there is too much to do."""
        return self._kept(scope) or self._refused(scope)

    def _kept(self, scope: Mapping[str, Any]) -> Reply | None:
        if self._answers is None or scope["method"] not in ("GET", "HEAD"):
            return None
        accept, if_none_match, brought = conditions(scope)
        try:
            answer = self._answers.find(scope["raw_path"], scope["query_string"], chosen(accept))
        except StoreError:
            return None  # The framework's error handler says what is wrong.
        if answer is None:
            return None
        reply = answer.reply(if_none_match)
        request = None if brought is None else self._traffic.identify(brought)
        self._traffic.note_finished(scope, reply.status, request)
        return reply if request is None else reply.told((REQUEST_ID, request))

    def _refused(self, scope: Mapping[str, Any]) -> Reply | None:
        if scope["path"] in PROBES or (scope["method"], scope["path"]) in HEAVY or not self._work.is_full():
            return None
        brought = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
        request = self._traffic.identify(brought)
        self._traffic.note(scope, REFUSAL.status, 0.0, request)
        return REFUSAL.told((REQUEST_ID, request))
