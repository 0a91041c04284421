"""Taking the catalogue out, as it is or as it was, in every format that can be written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lexarium.domain.about import About
from lexarium.domain.changes import Change, State, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.errors import LexariumError
from lexarium.domain.progress import Progress
from lexarium.exchange import jsonl, valpha
from lexarium.exchange.formats import FORMATS, Format
from lexarium.service.looking import revision_of
from lexarium.service.past import Past
from lexarium.store import edges, versions
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.records import BATCH
from lexarium.store.versions import Listing, Place

_PIECE = 1 << 16
"""In bytes: what an export comes in, or a little more, so that little is spent on handing it on."""


def export(  # noqa: PLR0913 (what, how, of when, and who is told meanwhile)
    database: Database,
    about: About,
    format: Format,
    collections: Sequence[Collection] = tuple(COLLECTIONS.values()),
    *,
    release: str | None = None,
    as_of: int | None = None,
    progress: Progress | None = None,
) -> Iterator[bytes]:
    """The records of these collections as one document, in pieces.

    Of a release, or of an earlier revision, to the byte what was exported then. Some records at a time are read, each
    time in a short transaction of its own: it takes constant memory, and however slow the reader, nothing is held.
    What cannot be exported is told at the call, not while the pieces come.
    """
    if not format.writes:
        writable = ", ".join(each.name for each in FORMATS.values() if each.writes)
        raise LexariumError(f"The format {format.name} can only be imported. To export there are {writable}.")
    with database.read() as snapshot:
        revision = revision_of(snapshot, release, as_of)
    source = _Source(database, collections, revision, progress)
    if format.name == "v-alpha":
        return _joined(valpha.join(source.shapes()))
    if format.name == "jsonl":
        return _joined(jsonl.write(about, revision, source.changes()))
    return _joined(format.codec.write(format, about, source.wholes()))


@dataclass(frozen=True)
class _Source:
    """Some collections at a revision, read some records at a time."""

    database: Database
    collections: Sequence[Collection]
    revision: int
    told: Progress | None

    def tell(self, done: int, total: int) -> None:
        """Tell how far it has come."""
        if self.told is not None:
            self.told("writing", done, total)

    def count(self, *states: State) -> int:
        """How many records they have in these states, where anyone is to be told how far it has come."""
        if self.told is None:
            return 0
        with self.database.read() as snapshot:
            tallies = self.database.tallies.at(snapshot, self.revision)
        return sum(tallies[collection.name, state] for collection in self.collections for state in states)

    def shapes(self) -> Iterator[bytes]:
        """Every published record, in order, with its relations, also those that wait for a record."""
        past = Past(self.revision)
        done, total = 0, self.count(State.PUBLISHED)
        with self.database.read() as snapshot:
            # It holds as long as nothing is written, and is not asked after that.
            some = edges.any_there(snapshot)
        for collection in self.collections:
            listing = Listing(collection.name, self.revision)
            after, last = None, ("", "")
            while True:
                with self.database.read() as snapshot:
                    batch = versions.rendered(snapshot, listing, after, BATCH)
                    if not batch:
                        break
                    first, last = last, (batch[-1].key, batch[-1].record)
                    if read_position(snapshot).revision != self.revision:
                        related = past.related(snapshot, [each.record for each in batch])
                    elif some:
                        related = edges.related_between(snapshot, collection.name, first, last)
                    else:
                        related = {}
                for each in batch:
                    yield valpha.shape(collection, each.body, related.get(each.record, ()))
                done += len(batch)
                self.tell(done, total)
                after = Place(*last)

    def wholes(self) -> Iterator[Whole]:
        """Every record of whatever state, collection by collection, in order."""
        done, total = 0, self.count(*State)
        for collection in self.collections:
            listing = Listing(collection.name, self.revision, sort="order", state=None)
            after = None
            while True:
                with self.database.read() as snapshot:
                    batch = versions.page(snapshot, listing, after, BATCH)
                if not batch:
                    break
                for change in batch:
                    whole = change.whole()
                    yield whole
                after = Place(whole.rendering.order_key, whole.id)
                done += len(batch)
                self.tell(done, total)

    def changes(self) -> Iterator[Change | None]:
        """Every change, in the order of the log; None after each read, since many may find nothing that is wanted."""
        names = {collection.name for collection in self.collections}
        seq = 0
        while seq < self.revision:
            with self.database.read() as snapshot:
                batch = versions.since(snapshot, seq, min(BATCH, self.revision - seq))
            yield from (change for change in batch if change.collection in names)
            yield None
            seq = batch[-1].seq
            self.tell(seq, self.revision)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same in fewer pieces. After an empty one comes what there is: whoever waits can let others go first."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE or not piece:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
