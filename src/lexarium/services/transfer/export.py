"""Export collections at any revision as a stream of bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lexarium.domain.change import Change
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.record import TYPE, ListQuery, Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.formats.json import valpha
from lexarium.formats.json.linkml_statements import sort_collections
from lexarium.formats.parsed import WarningCounter, WriteOptions
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records.queries import resolve_revision
from lexarium.services.records.relations_as_of import RelationsAsOf
from lexarium.services.records.valpha_queries import iter_rendered
from lexarium.store import relations, revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.records import BATCH_SIZE
from lexarium.store.revisions import PageKey

# Part of the document of a record with further classes.
_TYPE_KEY = f'"{TYPE}":'.encode()
# Larger chunks than those of the writers, to spend less on passing them on.
_CHUNK_BYTES = 1 << 16


def export_records(  # noqa: PLR0913
    database: Database,
    vocabulary: Vocabulary,
    format: Format,
    collections: Sequence[Collection] | None = None,
    *,
    release: str | None = None,
    as_of: int | None = None,
    progress: ProgressCallback | None = None,
    losses: WarningCounter | None = None,
    address: str = "",
) -> Iterator[bytes]:
    """Return the records of collections as one document, in chunks; raise LexariumError before the first one.

    Default: all collections of the vocabulary. IRIs of records that have none begin with its base, else with the
    address, else with the base of the main vocabulary.

    The export of a release or an earlier revision has the same bytes as one made then. Records are read in batches,
    each in a short transaction: this takes constant memory, and a slow reader blocks nothing.

    What OBO or XML cannot express is counted in `losses` while the chunks are read.
    """
    if not format.can_write:
        writable = ", ".join(item.name for item in FORMATS.values() if item.can_write)
        raise LexariumError(f"The format {format.name} can only be imported; export formats: {writable}.")
    collections = vocabulary.collections if collections is None else collections
    collections = sorted(collections, key=lambda item: item.local_name not in format.leading_collections)
    revision = database.run_read(resolve_revision, release, as_of, vocabulary.slug)
    items = format.items
    if items == "members" and vocabulary.slug != MAIN_VOCABULARY:
        # Each record is written once, with everything it states.
        items, collections = "records", sort_collections(vocabulary.schema, collections)
    reader = _ExportReader(database, collections, revision, progress or ignore_progress)
    readers = {
        "documents": reader.iter_documents,
        "changes": reader.iter_changes,
        "records": reader.iter_records,
        "members": reader.iter_members,
    }
    # The metadata of the main vocabulary are written from its settings.
    is_main = vocabulary.slug == MAIN_VOCABULARY
    head = None if is_main else database.run_read(revisions.find_at, qualify_id("", vocabulary.slug), revision)
    head_record = None if head is None else head.to_record()
    if not is_main or format.names_vocabulary:
        # Readers find out what such IRIs stand for. Those of others in the main vocabulary are the same everywhere.
        vocabulary = replace(vocabulary, address=address or VOCABULARIES[MAIN_VOCABULARY].base)
    options = WriteOptions(
        format, vocabulary, revision, collections, head_record, WarningCounter() if losses is None else losses
    )
    return _coalesce_chunks(format.codec.write(readers[items](), options))


@dataclass(frozen=True)
class _ExportReader:
    database: Database
    collections: Sequence[Collection]
    revision: int
    progress: ProgressCallback

    def _count(self, *states: RecordState) -> int:
        if self.progress is ignore_progress:
            return 0
        counts = self.database.run_read(self.database.counts.count_at, self.revision)
        return sum(counts[collection.name, state] for collection in self.collections for state in states)

    def iter_documents(self) -> Iterator[bytes]:
        """Yield all published records as v-alpha documents, with their relations, also to missing records."""
        relations_as_of = RelationsAsOf(self.revision)
        done, total = 0, self._count(RecordState.PUBLISHED)
        # Only used as long as the database is at the exported revision.
        has_relations = self.database.run_read(relations.has_any)
        for collection in self.collections:
            last_key = "", ""
            for batch in iter_rendered(self.database, collection, self.revision):
                first_key, last_key = last_key, (batch[-1].key, batch[-1].record_id)
                with self.database.read() as snapshot:
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

    def iter_records(self) -> Iterator[Record]:
        """Yield all records, in any state."""
        done, total = 0, self._count(*RecordState)
        for collection in self.collections:
            for batch in self._iter_pages(collection, None):
                yield from (change.to_record() for change in batch)
                done += len(batch)
                self.progress("writing", done, total)

    def iter_members(self) -> Iterator[Record]:
        """Yield the published records of the collections, and those of other collections with further classes."""
        done, total = 0, self._count(RecordState.PUBLISHED)
        vocabularies = {collection.vocabulary for collection in self.collections}
        for collection in [item for item in COLLECTIONS.values() if item.vocabulary in vocabularies]:
            is_exported = collection in self.collections
            for batch in self._iter_pages(collection, RecordState.PUBLISHED):
                # Few records have further classes: the others need not be parsed.
                yield from (change.to_record() for change in batch if is_exported or _TYPE_KEY in change.document)
                done += len(batch) if is_exported else 0
                self.progress("writing", done, total)

    def _iter_pages(self, collection: Collection, state: RecordState | None) -> Iterator[list[Change]]:
        listing = ListQuery(collection.name, self.revision, sort="order", state=state)
        after = None
        while batch := self.database.run_read(revisions.list_page, listing, after, BATCH_SIZE):
            yield batch
            last = batch[-1].to_record()
            after = PageKey(last.rendered.order_key, last.id)

    def iter_changes(self) -> Iterator[Change | None]:
        """Yield all changes in log order, and None after each batch, which may hold no change of these collections.

        Those of head records, without which the others cannot be read elsewhere, come first.
        """
        for slug in dict.fromkeys(collection.vocabulary for collection in self.collections):
            if slug != MAIN_VOCABULARY:
                head_id = qualify_id("", slug)
                yield from reversed(self.database.run_read(revisions.list_history, head_id, self.revision))
        names = {collection.name for collection in self.collections}
        seq = 0
        while seq < self.revision:
            batch = self.database.run_read(revisions.list_since, seq, BATCH_SIZE)
            yield from (change for change in batch if change.collection in names and change.seq <= self.revision)
            yield None
            # Changes may have been deleted with their vocabulary.
            seq = batch[-1].seq if len(batch) == BATCH_SIZE else self.revision
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
