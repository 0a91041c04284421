"""Reading the catalogue. Everything read comes with the position at which it was so."""

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import orjson

from lexarium.domain import cache_tags
from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import NotFound
from lexarium.domain.record import RecordState, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT, SEARCH_HIT_NUMBER_KEY, Collection
from lexarium.domain.schema.relation_types import MEASUREDBY
from lexarium.domain.text.characters import find_unstorable_char, name_key
from lexarium.formats.json import valpha
from lexarium.services.records.lookup import require_published
from lexarium.store import change_log, records, relations, revisions
from lexarium.store.database import Database
from lexarium.store.position import Position, Snapshot, read_position
from lexarium.store.records import BATCH_SIZE, RecordRow
from lexarium.store.revisions import ListQuery, PageKey, RenderedRow


class ValphaReader:
    """One transaction's view of the catalogue."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.position: Position = read_position(snapshot)
        self.cache_tags: set[CacheTag] = set()
        """What all that was read rests on."""

    def iter_collection(self, collection: Collection) -> Iterator[bytes]:
        """A whole collection as one JSON array, in pieces."""
        self.cache_tags.add(cache_tags.collection_tag(collection.name))
        return _join_json_array(records.iter_bodies(self._snapshot, collection))

    def iter_search_hits(self) -> Iterator[bytes]:
        """Every search hit by name, as one JSON array in pieces."""
        self._tag_search_hits()
        return _join_json_array(_number_hits(records.iter_search_hits(self._snapshot)))

    def iter_hits_for(self, record_ids: Iterable[str], revision: int) -> Iterator[bytes]:
        """The search hits among these records, in their order and as they were at a revision, likewise."""
        self._tag_search_hits()
        return _join_json_array(_number_hits(filter(None, self._load_hits(iter(record_ids), revision))))

    def _tag_search_hits(self) -> None:
        self.cache_tags |= {
            cache_tags.collection_tag(collection.name)
            for collection in COLLECTIONS.values()
            if collection.search_hit_prefix
        }

    def _load_hits(self, record_ids: Iterator[str], revision: int) -> Iterator[Sequence[bytes]]:
        while batch := list(islice(record_ids, BATCH_SIZE)):
            hits = revisions.find_search_hits(self._snapshot, batch, revision)
            yield [hits[record_id] for record_id in batch if record_id in hits]

    def render_by_name(self, collection: Collection, name: str) -> bytes:
        """The published record of this collection and name with its relations."""
        self.cache_tags.add(cache_tags.name_tag(collection.name, name_key(name)))
        row = None if find_unstorable_char(name) else records.find_by_name(self._snapshot, collection, name)
        if row is None:
            raise NotFound(f"There is no {collection.name} with the name {name!r}.")
        return self.render(collection, row)

    def iter_measured_concepts(self, contrast_id: str) -> Iterator[bytes]:
        """The concepts that a contrast measures, as one JSON array in pieces."""
        self.cache_tags |= {cache_tags.record_tag(contrast_id), cache_tags.collection_tag(CONCEPT.name)}
        if find_unstorable_char(contrast_id):
            return _join_json_array(iter(()))
        return _join_json_array(records.iter_bodies_by_target(self._snapshot, MEASUREDBY, contrast_id))

    def get_row(self, record_id: str) -> RecordRow:
        """The record with this identifier, of whatever collection."""
        row = None if find_unstorable_char(record_id) else records.find(self._snapshot, record_id)
        if row is None:
            raise NotFound(f"There is no record with the id {record_id!r}.")
        return row

    def render(self, collection: Collection, row: RecordRow) -> bytes:
        """A record with its relations."""
        related = relations.find_related(self._snapshot, [row.id]).get(row.id, [])
        self.cache_tags |= _build_cache_tags(row, related)
        return _render(collection, row, related)


@contextmanager
def open_valpha_reader(database: Database) -> Iterator[ValphaReader]:
    """A view of the catalogue as it is now, unchanging until the block ends."""
    with database.read() as snapshot:
        yield ValphaReader(snapshot)


def read_record(database: Database, collection: Collection, record_id: str) -> "ValphaRecord":
    """A published record of this collection with its relations: by one statement."""
    result = None
    if not find_unstorable_char(record_id):
        position, result = database.read_with_position(
            lambda connection: relations.find_with_related(connection, record_id)
        )
    if result is None or result.row.collection != collection.name:
        raise NotFound(f"There is no {collection.name} with the id {record_id!r}.")
    if result.row.state == RecordState.PUBLISHED:
        return ValphaRecord(position, _render(collection, *result), _build_cache_tags(*result))
    with database.read() as snapshot:
        require_published(change_log.find_latest(snapshot, [record_id])[record_id].to_record())
    return read_record(database, collection, record_id)  # it was published meanwhile


class ValphaRecord(NamedTuple):
    """A record as it is served."""

    position: Position
    """At which it is so."""
    body: bytes
    cache_tags: Set[CacheTag]
    """What it rests on."""


def _render(collection: Collection, row: RecordRow, related: Sequence[RelatedRecord]) -> bytes:
    return valpha.render_detail(collection, row.body, [other for other in related if other.name is not None])


def _build_cache_tags(row: RecordRow, related: Sequence[RelatedRecord]) -> set[CacheTag]:
    return {cache_tags.record_tag(record_id) for record_id in (row.id, *(other.id for other in related))}


def stream_collection(database: Database, collection: Collection, position: Position) -> Iterator[bytes]:
    """A whole collection as it was at a position, as one JSON array in pieces.

    Each piece is read in a short transaction of its own, from the log where a record has changed since: however slow
    the reader, nothing is held in the meantime.
    """
    return _join_json_array(
        [row.body for row in batch] for batch in _iter_batches(database, collection, position.revision)
    )


def stream_search_hits(database: Database, position: Position) -> Iterator[bytes]:
    """Every search hit as it was at a position, likewise."""
    streams = (
        _flatten(_iter_batches(database, collection, position.revision))
        for collection in COLLECTIONS.values()
        if collection.search_hit_prefix
    )
    rows = heapq.merge(*streams, key=lambda row: (row.key, row.record_id))
    hits = (row.body[: row.search_hit_length] for row in rows if row.search_hit_length)
    return _join_json_array(_number_hits(iter(lambda: list(islice(hits, BATCH_SIZE)), [])))


def _iter_batches(database: Database, collection: Collection, revision: int) -> Iterator[list[RenderedRow]]:
    listing = ListQuery(collection.name, revision)
    after: PageKey | None = None
    while True:
        with database.read() as snapshot:
            batch = revisions.list_rendered(snapshot, listing, after, BATCH_SIZE)
        if not batch:
            return
        yield batch
        after = PageKey(batch[-1].key, batch[-1].record_id)


def _flatten(batches: Iterator[list[RenderedRow]]) -> Iterator[RenderedRow]:
    for batch in batches:
        yield from batch


def _join_json_array(batches: Iterable[Sequence[bytes]]) -> Iterator[bytes]:
    prefix = b"["
    for batch in batches:
        # Brackets and commas go inside the join: adding them to a long body would copy it again.
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
