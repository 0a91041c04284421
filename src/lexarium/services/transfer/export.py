"""Export collections at any revision as a stream of bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.errors import LexariumError
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.record import ListQuery, Record, RecordState
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
from lexarium.store.revisions import PageKey

# Larger chunks than those of the writers, to spend less on passing them on.
_CHUNK_BYTES = 1 << 16


def export_records(  # noqa: PLR0913
    database: Database,
    vocabulary: Vocabulary,
    format: Format,
    collections: Sequence[Collection] = tuple(COLLECTIONS.values()),
    *,
    release: str | None = None,
    as_of: int | None = None,
    progress: ProgressCallback | None = None,
) -> Iterator[bytes]:
    """Return the records of collections as one document, in chunks; raise LexariumError before the first one.

    The export of a release or an earlier revision has the same bytes as one made then. Records are read in batches,
    each in a short transaction: this takes constant memory, and a slow reader blocks nothing.
    """
    if not format.can_write:
        writable = ", ".join(item.name for item in FORMATS.values() if item.can_write)
        raise LexariumError(f"The format {format.name} can only be imported. To export there are {writable}.")
    with database.read() as snapshot:
        revision = resolve_revision(snapshot, release, as_of)
    reader = _ExportReader(database, collections, revision, progress or ignore_progress)
    if format.name == "v-alpha":
        chunks = valpha.join_array(reader.iter_valpha())
    elif format.name == "jsonl":
        chunks = jsonl.write(vocabulary, revision, reader.iter_changes())
    else:
        chunks = format.codec.write(format, vocabulary, reader.iter_records())
    return _coalesce_chunks(chunks)


@dataclass(frozen=True)
class _ExportReader:
    database: Database
    collections: Sequence[Collection]
    revision: int
    progress: ProgressCallback

    def _count(self, *states: RecordState) -> int:
        if self.progress is ignore_progress:
            return 0
        with self.database.read() as snapshot:
            counts = self.database.counts.count_at(snapshot, self.revision)
        return sum(counts[collection.name, state] for collection in self.collections for state in states)

    def iter_valpha(self) -> Iterator[bytes]:
        """Yield all published records, with their relations, also to missing records."""
        relations_as_of = RelationsAsOf(self.revision)
        done, total = 0, self._count(RecordState.PUBLISHED)
        with self.database.read() as snapshot:
            # Only used as long as the database is at the exported revision.
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
                self.progress("writing", done, total)
                after = PageKey(*last_key)

    def iter_records(self) -> Iterator[Record]:
        """Yield all records, in any state."""
        done, total = 0, self._count(*RecordState)
        for collection in self.collections:
            listing = ListQuery(collection.name, self.revision, sort="order", state=None)
            after = None
            while batch := self._load_page(listing, after):
                for change in batch:
                    record = change.to_record()
                    yield record
                after = PageKey(record.rendered.order_key, record.id)
                done += len(batch)
                self.progress("writing", done, total)

    def _load_page(self, listing: ListQuery, after: PageKey | None) -> list[Change]:
        with self.database.read() as snapshot:
            return revisions.list_page(snapshot, listing, after, BATCH_SIZE)

    def iter_changes(self) -> Iterator[Change | None]:
        """Yield all changes in log order, and None after each batch, which may hold no change of these collections."""
        names = {collection.name for collection in self.collections}
        seq = 0
        while seq < self.revision:
            with self.database.read() as snapshot:
                batch = revisions.list_since(snapshot, seq, min(BATCH_SIZE, self.revision - seq))
            yield from (change for change in batch if change.collection in names)
            yield None
            seq = batch[-1].seq
            self.progress("writing", seq, self.revision)


def _coalesce_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Join chunks into fewer ones. An empty chunk flushes the buffer, so that the server can switch tasks."""
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
