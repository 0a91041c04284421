"""Relations of records at an earlier revision."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from lexarium.domain.record import RecordState, RelatedRecord, Relation, sort_related
from lexarium.domain.schema.collections import DERIVED_PATHS
from lexarium.domain.schema.relation_types import Side
from lexarium.store import records, relations, revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot
from lexarium.store.records import BATCH_SIZE


class RelationsAsOf:
    """Relations at a revision; holds in memory only what has changed since."""

    def __init__(self, revision: int) -> None:
        self._revision = revision
        self._scanned_revision = revision
        self._changed_ids: set[str] = set()
        # Collection and name of each changed record that was published.
        self._old_names: dict[str, tuple[str, str]] = {}
        # Relations whose source has changed, by either end.
        self._old_relations: defaultdict[str, list[Relation]] = defaultdict(list)

    def find_related(self, snapshot: Snapshot, record_ids: Sequence[str]) -> dict[str, list[RelatedRecord]]:
        """Return the related records of v-alpha at the revision."""
        related_by_id = self._find_related(snapshot, record_ids)
        for path in DERIVED_PATHS:
            first, second = path.split("/")
            middle_ids = {
                record_id: [
                    item.id
                    for item in related
                    if (item.type_name, item.side) == (first, "source") and item.name is not None
                ]
                for record_id, related in related_by_id.items()
            }
            far_by_id = self._find_related(snapshot, sorted(set(chain.from_iterable(middle_ids.values()))))
            for record_id, ids in middle_ids.items():
                far = {
                    item._replace(type_name=path)
                    for middle_id in ids
                    for item in far_by_id.get(middle_id, ())
                    if (item.type_name, item.side) == (second, "source")
                }
                related_by_id[record_id] = sort_related([*related_by_id[record_id], *far])
        return related_by_id

    def _find_related(self, snapshot: Snapshot, record_ids: Sequence[str]) -> dict[str, list[RelatedRecord]]:
        self._catch_up(snapshot)
        requested_ids = set(record_ids)
        current_relations = relations.find_touching(snapshot, record_ids)
        old_relations = {relation for relation in current_relations if relation.source not in self._changed_ids}
        for record_id in record_ids:
            old_relations.update(self._old_relations.get(record_id, ()))
        endpoint_ids = {endpoint_id for relation in old_relations for endpoint_id in (relation.source, relation.target)}
        names_by_id = records.find_collections_and_names(snapshot, sorted(endpoint_ids - self._changed_ids))
        names_by_id |= {record_id: self._old_names[record_id] for record_id in endpoint_ids & self._old_names.keys()}
        related_by_id: defaultdict[str, list[RelatedRecord]] = defaultdict(list)
        for relation in old_relations:
            sides: list[tuple[Side, str, str]] = [
                ("source", relation.source, relation.target),
                ("target", relation.target, relation.source),
            ]
            for side, near_id, far_id in sides:
                if near_id in requested_ids:
                    collection, name = names_by_id.get(far_id, (None, None))
                    related_by_id[near_id].append(RelatedRecord(far_id, name, relation.relation, side, collection))
        return {record_id: sort_related(related_records) for record_id, related_records in related_by_id.items()}

    def _catch_up(self, snapshot: Snapshot) -> None:
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
