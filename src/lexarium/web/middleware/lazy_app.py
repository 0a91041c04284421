"""ASGI application that is built with the first request for it."""

import asyncio
import gc
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send


class LazyApp:
    """Build an application in a thread when the first request arrives, and pass all requests to it."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._app: ASGIApp | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._lock:
                if self._app is None:
                    self._app = await run_in_threadpool(self._build)
                    gc.freeze()  # as after start-up: these objects stay
        await self._app(scope, receive, send)
