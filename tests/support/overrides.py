"""Settings of processes under test that differ from production."""

from typing import Any

from argon2 import PasswordHasher
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from lexarium.services.access import passwords
from lexarium.services.records import statistics
from lexarium.services.search import indexer
from lexarium.web import annotator
from tests.support.polling import DEADLINE_SECONDS


def apply_overrides() -> None:
    """Hash passwords cheaply, let requests wait long, and let idle servers look for changes seldom.

    Index at normal priority: beside busy processes, a thread of low priority takes minutes.
    """
    passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    indexer._WAIT_SECONDS = indexer._FIRST_BUILD_WAIT_SECONDS = DEADLINE_SECONDS / 10
    statistics._WAIT_SECONDS = DEADLINE_SECONDS / 10
    annotator._WAIT_SECONDS = int(DEADLINE_SECONDS / 4)
    # A search wakes the indexer when it needs it.
    indexer._POLL_SECONDS = 0.1
    indexer.lower_priority = lambda: None
    _share_compiled_statements()


def _share_compiled_statements() -> None:
    """Let all databases of a process on one engine share compiled statements: each test opens some."""
    cache: LRUCache[Any, Any] = LRUCache(5_000)
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]

    @event.listens_for(Engine, "engine_connect")
    def share_cache(connection: Connection) -> None:
        connection.engine._compiled_cache = cache
