"""Taking the catalogue out, as it is or as it was, in every format that can be written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.errors import LexariumError
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.json import jsonl, valpha
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records.queries import resolve_revision
from lexarium.services.records.relations_as_of import RelationsAsOf
from lexarium.store import relations, revisions
from lexarium.store.database import Database
from lexarium.store.position import read_position
from lexarium.store.records import BATCH_SIZE
from lexarium.store.revisions import ListQuery, PageKey

_CHUNK_BYTES = 1 << 16
"""In bytes: what an export comes in, or a little more, so that little is spent on handing it on."""


def export_records(  # noqa: PLR0913 (what, how, of when, and who is told meanwhile)
    database: Database,
    vocabulary: Vocabulary,
    format: Format,
    collections: Sequence[Collection] = tuple(COLLECTIONS.values()),
    *,
    release: str | None = None,
    as_of: int | None = None,
    progress: ProgressCallback | None = None,
) -> Iterator[bytes]:
    """The records of these collections as one document, in pieces.

    Of a release, or of an earlier revision, to the byte what was exported then. Some records at a time are read, each
    time in a short transaction of its own: it takes constant memory, and however slow the reader, nothing is held.
    What cannot be exported is told at the call, not while the pieces come.
    """
    if not format.can_write:
        writable = ", ".join(known_format.name for known_format in FORMATS.values() if known_format.can_write)
        raise LexariumError(f"The format {format.name} can only be imported. To export there are {writable}.")
    with database.read() as snapshot:
        revision = resolve_revision(snapshot, release, as_of)
    reader = _ExportReader(database, collections, revision, progress)
    if format.name == "v-alpha":
        return _coalesce_chunks(valpha.join_array(reader.iter_valpha()))
    if format.name == "jsonl":
        return _coalesce_chunks(jsonl.write(vocabulary, revision, reader.iter_changes()))
    return _coalesce_chunks(format.codec.write(format, vocabulary, reader.iter_records()))


@dataclass(frozen=True)
class _ExportReader:
    """Some collections at a revision, read some records at a time."""

    database: Database
    collections: Sequence[Collection]
    revision: int
    progress: ProgressCallback | None

    def _report_progress(self, done: int, total: int) -> None:
        """Tell how far it has come."""
        if self.progress is not None:
            self.progress("writing", done, total)

    def count(self, *states: RecordState) -> int:
        """How many records they have in these states, where anyone is to be told how far it has come."""
        if self.progress is None:
            return 0
        with self.database.read() as snapshot:
            counts = self.database.counts.count_at(snapshot, self.revision)
        return sum(counts[collection.name, state] for collection in self.collections for state in states)

    def iter_valpha(self) -> Iterator[bytes]:
        """Every published record, in order, with its relations, also those that wait for a record."""
        relations_as_of = RelationsAsOf(self.revision)
        done, total = 0, self.count(RecordState.PUBLISHED)
        with self.database.read() as snapshot:
            # It holds as long as nothing is written, and is not asked after that.
            has_relations = relations.has_any(snapshot)
        for collection in self.collections:
            listing = ListQuery(collection.name, self.revision)
            after, last_key = None, ("", "")
            while True:
                with self.database.read() as snapshot:
                    batch = revisions.list_rendered(snapshot, listing, after, BATCH_SIZE)
                    if not batch:
                        break
                    first_key, last_key = last_key, (batch[-1].key, batch[-1].record_id)
                    if read_position(snapshot).revision != self.revision:
                        related = relations_as_of.find_related(snapshot, [row.record_id for row in batch])
                    elif has_relations:
                        related = relations.find_related_in_range(snapshot, collection.name, first_key, last_key)
                    else:
                        related = {}
                for row in batch:
                    yield valpha.render_detail(collection, row.body, related.get(row.record_id, ()))
                done += len(batch)
                self._report_progress(done, total)
                after = PageKey(*last_key)

    def iter_records(self) -> Iterator[Record]:
        """Every record of whatever state, collection by collection, in order."""
        done, total = 0, self.count(*RecordState)
        for collection in self.collections:
            listing = ListQuery(collection.name, self.revision, sort="order", state=None)
            after = None
            while True:
                with self.database.read() as snapshot:
                    batch = revisions.list_page(snapshot, listing, after, BATCH_SIZE)
                if not batch:
                    break
                for change in batch:
                    record = change.to_record()
                    yield record
                after = PageKey(record.rendered.order_key, record.id)
                done += len(batch)
                self._report_progress(done, total)

    def iter_changes(self) -> Iterator[Change | None]:
        """Every change, in the order of the log; None after each read, since many may find nothing that is wanted."""
        names = {collection.name for collection in self.collections}
        seq = 0
        while seq < self.revision:
            with self.database.read() as snapshot:
                batch = revisions.list_since(snapshot, seq, min(BATCH_SIZE, self.revision - seq))
            yield from (change for change in batch if change.collection in names)
            yield None
            seq = batch[-1].seq
            self._report_progress(seq, self.revision)


def _coalesce_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same in fewer pieces. After an empty one comes what there is: whoever waits can let others go first."""
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= _CHUNK_BYTES or not chunk:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)
