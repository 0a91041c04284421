"""Finding the terms of the catalogue in text."""

import threading
from collections.abc import Collection, Iterable, Iterator

from lexarium.domain.changes import Change, State
from lexarium.domain.collections import COLLECTIONS, CONCEPT, DISORDER, TASK
from lexarium.search.annotator import Annotator, Mention, Term
from lexarium.store import versions
from lexarium.store.backend import Position, Snapshot, read_position
from lexarium.store.database import Database

SEARCHED = (CONCEPT.name, TASK.name, DISORDER.name)
"""The collections that are looked in where none is named."""
_AT_ONCE = 1_000
"""How many changes are read at a time."""
_LEAST_FOLLOWED = 100_000
"""So many changes are always followed one by one; what is dropped meanwhile leaves a little memory behind."""


class Annotating:
    """The names of one process's catalogue, kept in memory. Nothing is read before the first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._annotator = Annotator()
        self._position: Position | None = None
        self._followed = 0
        self._following = threading.Lock()

    def mentions(self, pieces: Iterable[str], collections: Collection[str] = SEARCHED) -> Iterator[list[Mention]]:
        """Every mention in a text of a published record of these collections, as of now, in order, some at a time.

        The first call reads all names; every other what has changed since. Nothing happens before the first list is
        asked for. A change that comes while a text is read counts from some place in it on.
        """
        yield from self._current().mentions(pieces, collections)

    def _current(self) -> Annotator:
        """The names as they stand now. One thread at a time brings them there; the others wait."""
        with self._following, self._database.read() as snapshot:
            now = read_position(snapshot)
            if self._position != now:
                if self._position is None or self._position.epoch != now.epoch or self._is_far(now.revision):
                    self._annotator, self._followed = _built(snapshot), 0
                else:
                    self._follow(snapshot, self._position.revision)
                self._position = now
            return self._annotator

    def _is_far(self, revision: int) -> bool:
        """Whether to read all names anew: it takes no longer, and leaves nothing behind of those that are gone."""
        assert self._position is not None
        self._followed += revision - self._position.revision
        return self._followed > max(_LEAST_FOLLOWED, len(self._annotator))

    def _follow(self, snapshot: Snapshot, since: int) -> None:
        while changes := versions.since(snapshot, since, _AT_ONCE):
            for change in changes:
                _put(self._annotator, change)
            since = changes[-1].seq


def _built(snapshot: Snapshot) -> Annotator:
    annotator = Annotator()
    for collection in COLLECTIONS:
        for change in versions.published(snapshot, collection):
            _put(annotator, change)
    return annotator


def _put(annotator: Annotator, change: Change) -> None:
    whole = change.whole()
    if whole.state == State.PUBLISHED:
        term = Term(whole.id, whole.fields["name"], change.collection)
        annotator.put(term, [term.name, *(alias.text for alias in whole.alias_list)])
    else:
        annotator.drop(whole.id)
