"""The catalogue as it was: the relations of records at a revision, whatever has been written since."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lexarium.domain.changes import State
from lexarium.domain.relations import RELATIONS, Edge, Related, Side, in_order
from lexarium.store import edges, records, versions
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.records import BATCH


class Past:
    """The state at a revision. It holds in memory what has changed since, and nothing else."""

    def __init__(self, revision: int) -> None:
        self._revision = revision
        self._followed = revision
        """Up to which change it is known what has changed."""
        self._changed: set[str] = set()
        """The records that have changed since."""
        self._named: dict[str, tuple[str, str]] = {}
        """Of those, the collection and name of each that was published then."""
        self._edges: defaultdict[str, list[Edge]] = defaultdict(list)
        """Of each record, the relations in which it stood and whose source has changed since."""

    def related(self, snapshot: Snapshot, identifiers: Sequence[str]) -> dict[str, list[Related]]:
        """What `edges.related` would have told then."""
        self._follow(snapshot)
        wanted = set(identifiers)
        found = {edge for edge in edges.touching(snapshot, identifiers) if edge.source not in self._changed}
        found.update(edge for identifier in identifiers for edge in self._edges.get(identifier, ()))
        named = self._names(snapshot, {end for edge in found for end in (edge.source, edge.target)})
        others: defaultdict[str, list[Related]] = defaultdict(list)
        for edge in found:
            relation = RELATIONS[edge.relation]
            ends: list[tuple[Side, str, str, str | None]] = [
                ("source", edge.source, edge.target, relation.target),
                ("target", edge.target, edge.source, relation.source),
            ]
            for side, near, far, expected in ends:
                kind, name = named.get(far, (None, None))
                if near in wanted and (kind is None or kind == expected):
                    others[near].append(Related(far, name, edge.relation, side))
        return {identifier: in_order(several) for identifier, several in others.items()}

    def _follow(self, snapshot: Snapshot) -> None:
        """Learn what has changed since it was last asked."""
        present = read_position(snapshot).revision
        while self._followed < present:
            self._followed, changed = versions.touched(snapshot, self._followed, BATCH)
            new = changed - self._changed
            self._changed |= new
            for change in versions.at(snapshot, sorted(new), self._revision):
                whole = change.whole()
                if whole.state == State.PUBLISHED:
                    self._named[whole.id] = whole.collection.name, whole.fields["name"]
                for edge in whole.edges:
                    for end in {edge.source, edge.target}:
                        self._edges[end].append(edge)

    def _names(self, snapshot: Snapshot, identifiers: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The collection and name of those of these records that were published then."""
        asked = set(identifiers)
        found = records.named(snapshot, sorted(asked - self._changed))
        return found | {each: self._named[each] for each in asked & self._named.keys()}
