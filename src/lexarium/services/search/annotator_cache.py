"""In-memory annotator that follows the change log in a background thread."""

import gc
import time
from concurrent.futures import Future
from sys import intern

from lexarium.search.annotator import Annotator, DictionaryTerm
from lexarium.search.index import IndexedVocabulary
from lexarium.services.daemon_executor import DaemonExecutor
from lexarium.services.search.indexer import describe_vocabularies
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position

# A few milliseconds of work, after which other threads get their turn.
_BATCH_SIZE = 200
# Removed labels leave some memory behind, so that after many changes a rebuild is better.
_MIN_REBUILD_CHANGES = 100_000


class AnnotatorCache:
    """Cache of an annotator with all labels of the catalogue. It is empty until first used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._annotator = Annotator()
        self._position = Position("", 0, 0, 0)
        # Those whose labels it may have. Those of removed ones stay until it is rebuilt, and are not looked for.
        self._vocabularies: dict[str, IndexedVocabulary] = {}
        self._changes_applied = 0
        self._is_frozen = False
        self._executor = DaemonExecutor("lexarium-annotator", self._catch_up)

    def get_current(self) -> Future[Annotator]:
        """Return a future of the up-to-date annotator. The first one reads all labels, which takes a while."""
        return self._executor.submit()

    def _catch_up(self) -> Annotator:
        with self._database.read() as snapshot:
            self._database.follow_vocabularies(snapshot)
            current = read_position(snapshot)
            vocabularies = describe_vocabularies(snapshot)
        self._changes_applied += current.revision - self._position.revision
        needs_rebuild = self._changes_applied > max(_MIN_REBUILD_CHANGES, len(self._annotator))
        # A schema says which statements are names. One that was purged may have been created again.
        needs_rebuild |= any(
            slug in self._vocabularies and self._vocabularies[slug] != item for slug, item in vocabularies.items()
        )
        self._vocabularies |= vocabularies
        if self._position.epoch != current.epoch or needs_rebuild:
            self._annotator, self._position, self._changes_applied = Annotator(), current._replace(revision=0), 0
            self._is_frozen = False
        while self._position.revision < current.revision:
            self._apply_changes(current)
        if self._annotator and not self._is_frozen:
            gc.freeze()  # A collection that visits a million labels would block all threads for a second.
            self._is_frozen = True
        return self._annotator

    def _apply_changes(self, current: Position) -> None:
        """Apply one batch in its own transaction, so that a failure later resumes from here."""
        revision = self._position.revision
        batch = self._database.run_read(revisions.list_changed_labels, revision, current.revision, _BATCH_SIZE)
        for _, record_id, collection, labels in batch:
            if labels:
                self._annotator.add(DictionaryTerm(record_id, labels[0], intern(collection)), labels)
            else:
                self._annotator.remove(record_id)
        self._position = current._replace(revision=batch[-1].seq) if batch else current
        time.sleep(0)
