"""Turns: what takes long goes one at a time, so that what is short gets in between."""

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send


class InTurn:
    """An ASGI application whose writes take turns."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            await self._turns.take()
        await self._app(scope, receive, send)


class Turns:
    """One turn for each round of the event loop.

    Many writers who are answered together write again together. Taken up all at once, they would hold every reader up
    for as long as all of them take.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def take(self) -> None:
        """Wait for a turn, in the order of asking."""
        loop = asyncio.get_running_loop()
        if self._taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._taken = True
            loop.call_soon(self._pass_on, loop)

    def _pass_on(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                loop.call_soon(self._pass_on, loop)
                return
        self._taken = False
