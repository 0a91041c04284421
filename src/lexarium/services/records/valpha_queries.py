"""Read v-alpha bodies with their position and cache tags."""

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain, islice
from typing import NamedTuple

import orjson

from lexarium.domain import cache_tags
from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import ListQuery, RecordState, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT, MEASUREDBY, SEARCH_HIT_NUMBER_KEY, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.characters import find_unstorable_char, name_key
from lexarium.domain.vocabulary import find_valpha_vocabulary
from lexarium.formats.json import valpha
from lexarium.services.not_found import find_or_raise
from lexarium.services.records.lookup import get_published
from lexarium.store import records, relations, revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position, Snapshot
from lexarium.store.records import BATCH_SIZE, RecordRow
from lexarium.store.revisions import PageKey, RenderedRow


def find_valpha_collection(local_name: str) -> Collection | None:
    """Return a collection of the vocabulary that v-alpha serves, or None if it has no such collection."""
    vocabulary = find_valpha_vocabulary()
    collection = None if vocabulary is None else COLLECTIONS.get(qualify_name(vocabulary.slug, local_name))
    return collection if collection is not None and collection.in_valpha else None


def list_searched_collections() -> list[Collection]:
    """Return the collections whose records v-alpha's search collection has."""
    vocabulary = find_valpha_vocabulary()
    return [] if vocabulary is None else [item for item in vocabulary.collections if item.search_hit_prefix]


def _list_search_tags() -> set[CacheTag]:
    return {cache_tags.collection_tag(collection.name) for collection in list_searched_collections()}


class ValphaRecord(NamedTuple):
    """Body of a record with its position and cache tags."""

    position: Position
    body: bytes
    cache_tags: Set[CacheTag]


class ValphaReader:
    """Reads v-alpha bodies in one snapshot, and collects the cache tags of what it reads."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.position: Position = read_position(snapshot)
        self.cache_tags: set[CacheTag] = set()

    def iter_collection(self, collection: Collection) -> Iterator[bytes]:
        """Yield the JSON array of a collection in chunks."""
        self.cache_tags.add(cache_tags.collection_tag(collection.name))
        return _join_json_array(records.iter_bodies(self._snapshot, collection))

    def iter_search_hits(self) -> Iterator[bytes]:
        """Yield the JSON array of all search hits, by name, in chunks."""
        self.cache_tags |= _list_search_tags()
        names = [collection.name for collection in list_searched_collections()]
        return _join_json_array(_number_hits(records.iter_search_hits(self._snapshot, names)))

    def iter_hits_for(self, record_ids: Iterable[str], revision: int) -> Iterator[bytes]:
        """Yield the JSON array of the search hits among these records at a revision, in their order, in chunks."""
        self.cache_tags |= _list_search_tags()
        return _join_json_array(_number_hits(filter(None, self._load_hits(iter(record_ids), revision))))

    def _load_hits(self, record_ids: Iterator[str], revision: int) -> Iterator[Sequence[bytes]]:
        while batch := list(islice(record_ids, BATCH_SIZE)):
            hits = revisions.find_search_hits(self._snapshot, batch, revision)
            yield [hits[record_id] for record_id in batch if record_id in hits]

    def render_by_name(self, collection: Collection, name: str) -> bytes:
        """Return the published record with a name and its relations; raise NotFound."""
        self.cache_tags.add(cache_tags.name_tag(collection.name, name_key(name)))
        message = f"There is no {collection.local_name} with the name {name!r}."
        row = find_or_raise(lambda: records.find_by_name(self._snapshot, collection, name), name, message)
        return self.render(collection, row)

    def iter_measured_concepts(self, local_contrast_id: str) -> Iterator[bytes]:
        """Yield the JSON array of the concepts that a contrast measures, in chunks."""
        concepts = find_valpha_collection(CONCEPT.local_name)
        if concepts is None or find_unstorable_char(local_contrast_id):
            return _join_json_array(iter(()))
        contrast_id = qualify_id(concepts.vocabulary, local_contrast_id)
        self.cache_tags |= {cache_tags.record_tag(contrast_id), cache_tags.collection_tag(concepts.name)}
        return _join_json_array(records.iter_bodies_by_target(self._snapshot, concepts, MEASUREDBY, contrast_id))

    def get_row(self, record_id: str) -> RecordRow:
        """Return a record of any collection and state; raise NotFound."""
        message = f"There is no record with the id {record_id!r}."
        return find_or_raise(lambda: records.find(self._snapshot, record_id), record_id, message)

    def render(self, collection: Collection, row: RecordRow) -> bytes:
        """Return the body of a record with its relations."""
        _, result = relations.find_with_related(self._snapshot, row.id)
        assert result is not None
        self.cache_tags |= _build_cache_tags(*result)
        return _render(collection, *result)


@contextmanager
def open_valpha_reader(database: Database) -> Iterator[ValphaReader]:
    """Open a reader of the current state of the catalogue."""
    with database.read() as snapshot:
        yield ValphaReader(snapshot)


def read_record(database: Database, collection: Collection, local_id: str) -> ValphaRecord:
    """Return a published record with its relations, read by one statement; raise if not found or unpublished."""
    result = None
    record_id = qualify_id(collection.vocabulary, local_id)
    if not find_unstorable_char(local_id):
        position, result = database.read_with_position(
            lambda connection: relations.find_with_related(connection, record_id)
        )
    if result is None or result.row.collection != collection.name:
        raise NotFound(f"There is no {collection.local_name} with the id {local_id!r}.")
    if result.row.state == RecordState.PUBLISHED:
        return ValphaRecord(position, _render(collection, *result), _build_cache_tags(*result))
    with database.read() as snapshot:
        get_published(snapshot, collection, record_id)
    return read_record(database, collection, local_id)  # published meanwhile


def _render(collection: Collection, row: RecordRow, related: Sequence[RelatedRecord]) -> bytes:
    return valpha.render_detail(collection, row.body, [other for other in related if other.name is not None])


def _build_cache_tags(row: RecordRow, related: Sequence[RelatedRecord]) -> set[CacheTag]:
    return {cache_tags.record_tag(record_id) for record_id in (row.id, *(other.id for other in related))}


def stream_collection(database: Database, collection: Collection, position: Position) -> Iterator[bytes]:
    """Yield the JSON array of a collection at a position, in chunks.

    Each chunk is read in a short transaction, and changed records from the log: a slow client holds no transaction.
    """
    return _join_json_array(
        [row.body for row in batch] for batch in iter_rendered(database, collection, position.revision)
    )


def stream_search_hits(database: Database, position: Position) -> Iterator[bytes]:
    """Yield the JSON array of all search hits at a position, in chunks, as `stream_collection`."""
    streams = (
        chain.from_iterable(iter_rendered(database, collection, position.revision))
        for collection in list_searched_collections()
    )
    rows = heapq.merge(*streams, key=lambda row: (row.key, row.record_id))
    hits = (row.body[: row.search_hit_length] for row in rows if row.search_hit_length)
    return _join_json_array(_number_hits(iter(lambda: list(islice(hits, BATCH_SIZE)), [])))


def iter_rendered(database: Database, collection: Collection, revision: int) -> Iterator[list[RenderedRow]]:
    """Yield batches of the published records of a collection at a revision, each read in a short transaction."""
    listing = ListQuery(collection.name, revision)
    after: PageKey | None = None
    while batch := database.run_read(revisions.list_rendered, listing, after, BATCH_SIZE):
        yield batch
        after = PageKey(batch[-1].key, batch[-1].record_id)


def _join_json_array(batches: Iterable[Sequence[bytes]]) -> Iterator[bytes]:
    prefix = b"["
    for batch in batches:
        # The bracket is part of the join: adding it to a long chunk would copy that again.
        chunks = list(batch)
        chunks[0] = prefix + chunks[0]
        prefix = b","
        yield b",".join(chunks)
    yield b"[]" if prefix == b"[" else b"]"


def _number_hits(batches: Iterable[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    number = 1
    key = orjson.dumps(SEARCH_HIT_NUMBER_KEY)
    for batch in batches:
        yield [b"%b,%b:%d}" % (hit, key, hit_number) for hit_number, hit in enumerate(batch, number)]
        number += len(batch)
