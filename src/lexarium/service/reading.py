"""Reading the catalogue. Everything read comes with the position at which it was so."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from lexarium.domain.changes import State
from lexarium.domain.collections import HIT_NUMBER, Collection
from lexarium.domain.errors import NotFound
from lexarium.domain.relations import MEASUREDBY
from lexarium.domain.text import fold, unstorable
from lexarium.exchange import valpha
from lexarium.store import edges, records
from lexarium.store.backend import Position, Snapshot, read_position
from lexarium.store.database import Database
from lexarium.store.records import Stored


class Reading:
    """One transaction's view of the catalogue."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.position: Position = read_position(snapshot)

    def whole(self, collection: Collection) -> Iterator[bytes]:
        """A whole collection as one JSON array, in pieces."""
        return _array(records.bodies(self._snapshot, collection))

    def hits(self, query: str = "") -> Iterator[bytes]:
        """The search hits for a query, best first, as one JSON array in pieces; every term where it is empty."""
        batches = records.hits(self._snapshot)
        if query.strip():
            found = _ranked(query, batches)
            batches = iter([found] if found else [])
        return _array(_numbered(batches))

    def one(self, collection: Collection, identifier: str) -> bytes:
        """A published record of this collection with its relations."""
        found = None if unstorable(identifier) else records.find(self._snapshot, identifier)
        if found is None or found.collection != collection.name or found.state != State.PUBLISHED:
            raise NotFound(f"There is no {collection.name} with the id {identifier!r}.")
        return self.shape(collection, found)

    def one_named(self, collection: Collection, name: str) -> bytes:
        """The published record of this collection and name with its relations."""
        found = None if unstorable(name) else records.find_named(self._snapshot, collection, name)
        if found is None:
            raise NotFound(f"There is no {collection.name} with the name {name!r}.")
        return self.shape(collection, found)

    def measured_by(self, contrast: str) -> Iterator[bytes]:
        """The concepts that a contrast measures, as one JSON array in pieces."""
        if unstorable(contrast):
            return _array(iter(()))
        return _array(records.targeted_by(self._snapshot, MEASUREDBY.name, contrast))

    def any(self, identifier: str) -> Stored:
        """The record with this identifier, of whatever collection."""
        found = None if unstorable(identifier) else records.find(self._snapshot, identifier)
        if found is None:
            raise NotFound(f"There is no record with the id {identifier!r}.")
        return found

    def shape(self, collection: Collection, stored: Stored) -> bytes:
        """A record with its relations."""
        related = edges.related(self._snapshot, [stored.id])
        return valpha.shape(collection, stored.body, related.get(stored.id, []))

    def shapes(self, collection: Collection) -> Iterator[bytes]:
        """Every published record of a collection with its relations, in order."""
        for batch in records.published(self._snapshot, collection):
            related = edges.related(self._snapshot, [stored.id for stored in batch])
            for stored in batch:
                yield valpha.shape(collection, stored.body, related.get(stored.id, []))

    def counts(self) -> dict[str, int]:
        """How many published records each collection has."""
        return records.count(self._snapshot)


@contextmanager
def reading(database: Database) -> Iterator[Reading]:
    """A view of the catalogue as it is now, unchanging until the block ends."""
    with database.read() as snapshot:
        now = Reading(snapshot)
        database.notice(now.position)
        yield now


def _array(batches: Iterator[Sequence[bytes]]) -> Iterator[bytes]:
    before = b"["
    for batch in batches:
        # Brackets and commas go inside the join: adding them to a long body would copy it again.
        pieces = list(batch)
        pieces[0] = before + pieces[0]
        before = b","
        yield b",".join(pieces)
    yield b"[]" if before == b"[" else b"]"


def _numbered(batches: Iterator[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    number = 1
    key = orjson.dumps(HIT_NUMBER)
    for batch in batches:
        yield [b"%b,%b:%d}" % (hit, key, place) for place, hit in enumerate(batch, number)]
        number += len(batch)


def _ranked(query: str, batches: Iterator[Sequence[bytes]]) -> list[bytes]:
    """The hits that hold every word of the query, ignoring case and accents: by where, then by name."""
    sought = fold(query).split()
    whole = " ".join(sought)
    found: list[tuple[int, bytes]] = []
    for batch in batches:
        for hit in batch:
            fields = orjson.loads(hit + b"}")
            name = " ".join(fold(fields["name"]).split())
            texts = (name, fold(fields["alias"]), fold(fields["definition_text"]))
            if all(any(word in text for text in texts) for word in sought):
                found.append((_tier(whole, sought, name, texts[1]), hit))
    found.sort(key=lambda item: item[0])
    return [hit for _, hit in found]


def _tier(whole: str, words: list[str], name: str, alias: str) -> int:
    if name == whole:
        return 0
    if name.startswith(whole):
        return 1
    if all(word in name for word in words):
        return 2
    return 3 if all(word in alias for word in words) else 4
