"""Annotator that follows the change log in a background thread, and is kept in a file beside the search index."""

import gc
import logging
import time
from concurrent.futures import Future
from pathlib import Path
from sys import intern

from lexarium.search.annotator import Annotator, DictionaryTerm
from lexarium.search.annotator_file import AnnotatorFile, AnnotatorState, FileDamaged
from lexarium.search.index import IndexedVocabulary, IndexLocked
from lexarium.services.daemon_executor import DaemonExecutor
from lexarium.services.search.indexer import describe_vocabularies, index_folder
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position

logger = logging.getLogger(__name__)

_FILE_NAME = "annotator"
# A few milliseconds of work, after which other threads get their turn.
_BATCH_SIZE = 200
# Removed labels leave some memory behind, so that after many changes a rebuild is better.
_MIN_REBUILD_CHANGES = 100_000
# The file is written again after this many changes, or this part of the terms: until then, a start applies them.
_MIN_UNSAVED_CHANGES = 2_000
_UNSAVED_PART = 1 / 50


class AnnotatorCache:
    """Cache of an annotator with all labels of the catalogue. It is empty until first used."""

    def __init__(self, database: Database, index_setting: str) -> None:
        self._database = database
        self._index_setting = index_setting
        self._annotator = Annotator()
        self._position = Position("", 0, 0, 0)
        # Those whose labels it may have. Those of removed ones stay until it is rebuilt, and are not looked for.
        self._vocabularies: dict[str, IndexedVocabulary] = {}
        self._changes_applied = 0
        # The revision of the file; None if there is none of this dictionary.
        self._saved_revision: int | None = None
        self._is_frozen = False
        self._executor = DaemonExecutor("lexarium-annotator", self._catch_up, self._save_if_due)

    def get_current(self) -> Future[Annotator]:
        """Return a future of the up-to-date annotator. Without a file, the first reads all labels: a long while."""
        return self._executor.submit()

    def _catch_up(self) -> Annotator:
        with self._database.read() as snapshot:
            self._database.follow_vocabularies(snapshot)
            current = read_position(snapshot)
            vocabularies = describe_vocabularies(snapshot)
        if self._position.epoch != current.epoch:
            self._load(current)
        self._changes_applied += max(0, current.revision - self._position.revision)
        needs_rebuild = self._changes_applied > max(_MIN_REBUILD_CHANGES, len(self._annotator))
        # A schema says which statements are names. One that was purged may have been created again.
        needs_rebuild |= any(
            slug in self._vocabularies and self._vocabularies[slug] != item for slug, item in vocabularies.items()
        )
        if self._position.epoch != current.epoch or needs_rebuild:
            self._annotator, self._position, self._changes_applied = Annotator(), current._replace(revision=0), 0
            self._saved_revision, self._is_frozen = None, False
        self._vocabularies |= vocabularies
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

    def _load(self, current: Position) -> None:
        """Read the dictionary from its file, if it is one of this catalogue."""
        try:
            file = AnnotatorFile(self._get_path())
        except FileNotFoundError:
            return
        except (OSError, FileDamaged) as error:
            logger.info("Rebuilding the annotator dictionary: %s", error)
            return
        epoch, revision, changes_applied, vocabularies = file.state
        if epoch == current.epoch:
            self._annotator = Annotator(file)
            self._position, self._saved_revision = current._replace(revision=revision), revision
            self._changes_applied, self._vocabularies = changes_applied, dict(vocabularies)

    def _save_if_due(self) -> None:
        """Write the file if there is none, or if it is far behind. A failure only makes the next start slow."""
        revision = self._position.revision
        allowed_lag = max(_MIN_UNSAVED_CHANGES, int(len(self._annotator) * _UNSAVED_PART))
        if self._saved_revision is not None and revision - self._saved_revision <= allowed_lag:
            return
        self._saved_revision = revision
        state = AnnotatorState(self._position.epoch, revision, self._changes_applied, self._vocabularies)
        try:
            self._annotator.save(self._get_path(), state)
        except IndexLocked:
            pass  # Another process writes it.
        except Exception as error:
            logger.warning("Cannot store the annotator dictionary; it will be rebuilt at the next start: %s", error)

    def _get_path(self) -> Path:
        return index_folder(self._database, self._index_setting) / _FILE_NAME
