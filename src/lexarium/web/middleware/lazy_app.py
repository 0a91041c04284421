"""An application that is loaded with the first request for it."""

import asyncio
import gc
from collections.abc import Callable
from importlib import import_module
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send


class LazyApp:
    """Stands for the application that a function of a module makes."""

    def __init__(self, module: str, build: Callable[[Any], ASGIApp]) -> None:
        self._module = module
        self._build = build
        self._app: ASGIApp | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._lock:
                if self._app is None:
                    self._app = await run_in_threadpool(lambda: self._build(import_module(self._module)))
                    gc.freeze()  # as at the start: it stays
        await self._app(scope, receive, send)
