"""The catalogue as it was: the relations of records at a revision, whatever has been written since."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lexarium.domain.record import RecordState, RelatedRecord, Relation, sort_related
from lexarium.domain.schema.relation_types import RELATION_TYPES, Side
from lexarium.store import records, relations, revisions
from lexarium.store.position import Snapshot, read_position
from lexarium.store.records import BATCH_SIZE


class RelationsAsOf:
    """The state at a revision. It holds in memory what has changed since, and nothing else."""

    def __init__(self, revision: int) -> None:
        self._revision = revision
        self._scanned_revision = revision
        """Up to which change it is known what has changed."""
        self._changed_ids: set[str] = set()
        """The records that have changed since."""
        self._old_names: dict[str, tuple[str, str]] = {}
        """Of those, the collection and name of each that was published then."""
        self._old_relations: defaultdict[str, list[Relation]] = defaultdict(list)
        """Of each record, the relations in which it stood and whose source has changed since."""

    def find_related(self, snapshot: Snapshot, record_ids: Sequence[str]) -> dict[str, list[RelatedRecord]]:
        """What `edges.related` would have told then."""
        self._catch_up(snapshot)
        requested_ids = set(record_ids)
        found_relations = {
            relation
            for relation in relations.find_touching(snapshot, record_ids)
            if relation.source not in self._changed_ids
        }
        found_relations.update(
            relation for record_id in record_ids for relation in self._old_relations.get(record_id, ())
        )
        names_by_id = self._load_names(
            snapshot,
            {endpoint_id for relation in found_relations for endpoint_id in (relation.source, relation.target)},
        )
        related_by_id: defaultdict[str, list[RelatedRecord]] = defaultdict(list)
        for relation in found_relations:
            relation_type = RELATION_TYPES[relation.relation]
            sides: list[tuple[Side, str, str, str | None]] = [
                ("source", relation.source, relation.target, relation_type.target_collection),
                ("target", relation.target, relation.source, relation_type.source_collection),
            ]
            for side, near_id, far_id, expected in sides:
                collection, name = names_by_id.get(far_id, (None, None))
                if near_id in requested_ids and (collection is None or collection == expected):
                    related_by_id[near_id].append(RelatedRecord(far_id, name, relation.relation, side))
        return {record_id: sort_related(related_records) for record_id, related_records in related_by_id.items()}

    def _catch_up(self, snapshot: Snapshot) -> None:
        """Learn what has changed since it was last asked."""
        current_revision = read_position(snapshot).revision
        while self._scanned_revision < current_revision:
            self._scanned_revision, changed = revisions.find_changed_ids(snapshot, self._scanned_revision, BATCH_SIZE)
            new_ids = changed - self._changed_ids
            self._changed_ids |= new_ids
            for change in revisions.find_many_at(snapshot, sorted(new_ids), self._revision):
                record = change.to_record()
                if record.state == RecordState.PUBLISHED:
                    self._old_names[record.id] = record.collection.name, record.fields["name"]
                for relation in record.relations:
                    for endpoint_id in {relation.source, relation.target}:
                        self._old_relations[endpoint_id].append(relation)

    def _load_names(self, snapshot: Snapshot, record_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The collection and name of those of these records that were published then."""
        requested_ids = set(record_ids)
        names = records.find_collections_and_names(snapshot, sorted(requested_ids - self._changed_ids))
        return names | {record_id: self._old_names[record_id] for record_id in requested_ids & self._old_names.keys()}
