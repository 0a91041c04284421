"""Collect what a response depends on while it is made.

Every statement that runs meanwhile makes the response depend on the whole catalogue, unless its function declares
narrower cache tags by `depend_on`. So a function that declares nothing can never make a response stale.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Engine, event

from lexarium.domain.cache_tags import CATALOGUE_TAG, UNLOGGED_TAG, CacheTag


class Dependencies:
    """What a response depends on."""

    def __init__(self) -> None:
        self.cache_tags: set[CacheTag] = set()
        # Revision of the search index that was read, if one was.
        self.index_revision: int | None = None
        # False if the response depends on something that cache tags do not cover.
        self.is_cacheable = True


# Copied to the threads that a request uses.
_current: ContextVar[Dependencies | None] = ContextVar("dependencies", default=None)


@contextmanager
def collect_dependencies() -> Iterator[Dependencies]:
    """Collect what is read within the block, in this thread and in those that it waits for."""
    dependencies = Dependencies()
    token = _current.set(dependencies)
    try:
        yield dependencies
    finally:
        _current.reset(token)


@contextmanager
def depend_on(cache_tags: Iterable[CacheTag] = ()) -> Iterator[None]:
    """Declare the cache tags of the statements within the block."""
    dependencies = _current.get()
    if dependencies is None:
        yield
        return
    dependencies.cache_tags.update(cache_tags)
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def add_cache_tags(cache_tags: Iterable[CacheTag]) -> None:
    """Add cache tags, such as those of the records that a declared statement has found."""
    dependencies = _current.get()
    if dependencies is not None:
        dependencies.cache_tags.update(cache_tags)


def depend_on_index(revision: int) -> None:
    """Note the revision of the search index that was read."""
    dependencies = _current.get()
    if dependencies is not None:
        dependencies.index_revision = revision
        dependencies.cache_tags.add(CATALOGUE_TAG)


def forbid_caching() -> None:
    """Note that the response depends on something that cache tags do not cover."""
    dependencies = _current.get()
    if dependencies is not None:
        dependencies.is_cacheable = False


def watch_statements(engine: Engine) -> None:
    """Let undeclared statements of an engine depend on everything that is counted."""
    event.listen(engine, "before_cursor_execute", _add_catalogue_tag)


def _add_catalogue_tag(*_: Any) -> None:
    add_cache_tags((CATALOGUE_TAG, UNLOGGED_TAG))
