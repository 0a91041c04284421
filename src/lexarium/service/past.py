"""The catalogue as it was: whole records with their relations at a revision, from the log."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from lexarium.domain.changes import Change, State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.relations import RELATIONS, Edge, Related, Side, in_order
from lexarium.exchange import valpha
from lexarium.store import versions
from lexarium.store.backend import Snapshot
from lexarium.store.records import BATCH
from lexarium.store.versions import Listing, Place


class Past:
    """The state at a revision. It holds every name and relation of then in memory, but no record."""

    def __init__(self, snapshot: Snapshot, revision: int) -> None:
        self._snapshot = snapshot
        self._revision = revision
        self._named: dict[str, tuple[str, str]] = {}
        """The collection and name of each published record."""
        self._edges: defaultdict[str, list[Edge]] = defaultdict(list)
        """Of each record, the relations in which it stands."""
        for change in chain.from_iterable(self._changes(each) for each in COLLECTIONS.values()):
            whole = change.whole()
            if whole.state == State.PUBLISHED:
                self._named[whole.id] = whole.collection.name, whole.fields["name"]
            for edge in whole.edges:
                for end in {edge.source, edge.target}:
                    self._edges[end].append(edge)

    def shapes(self, collection: Collection) -> Iterator[bytes]:
        """Every published record of a collection, in order, with its relations, as it was exported then."""
        listing = Listing(collection.name, self._revision)
        after: Place | None = None
        while batch := versions.rendered(self._snapshot, listing, after, BATCH):
            for each in batch:
                yield valpha.shape(collection, each.body, self._related(each.record))
            after = Place(batch[-1].key, batch[-1].record)

    def _changes(self, collection: Collection) -> Iterator[Change]:
        listing = Listing(collection.name, self._revision, sort="id", state=None)
        after: Place | None = None
        while batch := versions.page(self._snapshot, listing, after, BATCH):
            yield from batch
            after = Place(batch[-1].record, batch[-1].record)

    def _related(self, identifier: str) -> list[Related]:
        found = []
        for edge in self._edges[identifier]:
            ends: list[tuple[Side, str]] = [("source", edge.target)] if edge.source == identifier else []
            ends += [("target", edge.source)] if edge.target == identifier else []
            for side, other in ends:
                kind, name = self._named.get(other, (None, None))
                expected = getattr(RELATIONS[edge.relation], "target" if side == "source" else "source")
                if kind is None or kind == expected:
                    found.append(Related(other, name, edge.relation, side))
        return in_order(found)
