"""Reading the catalogue. Everything read comes with the position at which it was so."""

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import orjson

from lexarium.domain import grounds
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, CONCEPT, HIT_NUMBER, Collection
from lexarium.domain.errors import NotFound
from lexarium.domain.grounds import Ground
from lexarium.domain.relations import MEASUREDBY, Related
from lexarium.domain.text import name_key, unstorable
from lexarium.exchange import valpha
from lexarium.service.desk import refuse_gone
from lexarium.store import edges, log, records, versions
from lexarium.store.backend import Position, Snapshot, read_position
from lexarium.store.database import Database
from lexarium.store.records import BATCH, Stored
from lexarium.store.versions import Listing, Place, Rendered


class Reading:
    """One transaction's view of the catalogue."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.position: Position = read_position(snapshot)
        self.grounds: set[Ground] = set()
        """What all that was read rests on."""

    def whole(self, collection: Collection) -> Iterator[bytes]:
        """A whole collection as one JSON array, in pieces."""
        self.grounds.add(grounds.of_collection(collection.name))
        return _array(records.bodies(self._snapshot, collection))

    def hits(self) -> Iterator[bytes]:
        """Every search hit by name, as one JSON array in pieces."""
        self._rests_on_hits()
        return _array(_numbered(records.hits(self._snapshot)))

    def hits_of(self, identifiers: Iterable[str], revision: int) -> Iterator[bytes]:
        """The search hits among these records, in their order and as they were at a revision, likewise."""
        self._rests_on_hits()
        return _array(_numbered(filter(None, self._hits_of(iter(identifiers), revision))))

    def _rests_on_hits(self) -> None:
        self.grounds |= {grounds.of_collection(each.name) for each in COLLECTIONS.values() if each.searched_prefix}

    def _hits_of(self, identifiers: Iterator[str], revision: int) -> Iterator[Sequence[bytes]]:
        while batch := list(islice(identifiers, BATCH)):
            found = versions.hits_of(self._snapshot, batch, revision)
            yield [found[each] for each in batch if each in found]

    def one_named(self, collection: Collection, name: str) -> bytes:
        """The published record of this collection and name with its relations."""
        self.grounds.add(grounds.of_name(collection.name, name_key(name)))
        found = None if unstorable(name) else records.find_named(self._snapshot, collection, name)
        if found is None:
            raise NotFound(f"There is no {collection.name} with the name {name!r}.")
        return self.shape(collection, found)

    def measured_by(self, contrast: str) -> Iterator[bytes]:
        """The concepts that a contrast measures, as one JSON array in pieces."""
        self.grounds |= {grounds.of_record(contrast), grounds.of_collection(CONCEPT.name)}
        if unstorable(contrast):
            return _array(iter(()))
        return _array(records.targeted_by(self._snapshot, MEASUREDBY, contrast))

    def any(self, identifier: str) -> Stored:
        """The record with this identifier, of whatever collection."""
        found = None if unstorable(identifier) else records.find(self._snapshot, identifier)
        if found is None:
            raise NotFound(f"There is no record with the id {identifier!r}.")
        return found

    def shape(self, collection: Collection, stored: Stored) -> bytes:
        """A record with its relations."""
        related = edges.related(self._snapshot, [stored.id]).get(stored.id, [])
        self.grounds |= _grounds_of(stored, related)
        return _shaped(collection, stored, related)


@contextmanager
def reading(database: Database) -> Iterator[Reading]:
    """A view of the catalogue as it is now, unchanging until the block ends."""
    with database.read() as snapshot:
        yield Reading(snapshot)


def read_one(database: Database, collection: Collection, identifier: str) -> "One":
    """A published record of this collection with its relations: by one statement."""
    found = None
    if not unstorable(identifier):
        position, found = database.at_once(lambda connection: edges.with_related(connection, identifier))
    if found is None or found.stored.collection != collection.name:
        raise NotFound(f"There is no {collection.name} with the id {identifier!r}.")
    if found.stored.state == State.PUBLISHED:
        return One(position, _shaped(collection, *found), _grounds_of(*found))
    with database.read() as snapshot:
        refuse_gone(log.latest(snapshot, [identifier])[identifier].whole())
    return read_one(database, collection, identifier)  # it was published meanwhile


class One(NamedTuple):
    """A record as it is served."""

    position: Position
    """At which it is so."""
    body: bytes
    grounds: Set[Ground]
    """What it rests on."""


def _shaped(collection: Collection, stored: Stored, related: Sequence[Related]) -> bytes:
    return valpha.shape(collection, stored.body, [other for other in related if other.name is not None])


def _grounds_of(stored: Stored, related: Sequence[Related]) -> set[Ground]:
    return {grounds.of_record(each) for each in (stored.id, *(other.id for other in related))}


def stream_whole(database: Database, collection: Collection, position: Position) -> Iterator[bytes]:
    """A whole collection as it was at a position, as one JSON array in pieces.

    Each piece is read in a short transaction of its own, from the log where a record has changed since: however slow
    the reader, nothing is held in the meantime.
    """
    return _array([each.body for each in batch] for batch in _batches(database, collection, position.revision))


def stream_hits(database: Database, position: Position) -> Iterator[bytes]:
    """Every search hit as it was at a position, likewise."""
    streams = (
        _flat(_batches(database, collection, position.revision))
        for collection in COLLECTIONS.values()
        if collection.searched_prefix
    )
    merged = heapq.merge(*streams, key=lambda each: (each.key, each.record))
    hits = (each.body[: each.hit_length] for each in merged if each.hit_length)
    return _array(_numbered(iter(lambda: list(islice(hits, BATCH)), [])))


def _batches(database: Database, collection: Collection, revision: int) -> Iterator[list[Rendered]]:
    listing = Listing(collection.name, revision)
    after: Place | None = None
    while True:
        with database.read() as snapshot:
            batch = versions.rendered(snapshot, listing, after, BATCH)
        if not batch:
            return
        yield batch
        after = Place(batch[-1].key, batch[-1].record)


def _flat(batches: Iterator[list[Rendered]]) -> Iterator[Rendered]:
    for batch in batches:
        yield from batch


def _array(batches: Iterable[Sequence[bytes]]) -> Iterator[bytes]:
    before = b"["
    for batch in batches:
        # Brackets and commas go inside the join: adding them to a long body would copy it again.
        pieces = list(batch)
        pieces[0] = before + pieces[0]
        before = b","
        yield b",".join(pieces)
    yield b"[]" if before == b"[" else b"]"


def _numbered(batches: Iterable[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    number = 1
    key = orjson.dumps(HIT_NUMBER)
    for batch in batches:
        yield [b"%b,%b:%d}" % (hit, key, place) for place, hit in enumerate(batch, number)]
        number += len(batch)
