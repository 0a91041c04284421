"""Last imported state of edited records, the base of a three-way merge."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.import_merge import ConflictPreference, RecordValues, to_values
from lexarium.domain.merge import redirect_merged_targets
from lexarium.domain.record import Record, Relation, build_relations, group_targets
from lexarium.domain.schema.collections import Collection
from lexarium.store.imports import base_values

_RELATIONS_KEY = "relations"

NO_RELATIONS: frozenset[Relation] = frozenset()


class RelationChanges:
    """Relations of one record that an import adds and removes."""

    def __init__(
        self, existing: frozenset[Relation], stated: frozenset[Relation], dropped: frozenset[Relation]
    ) -> None:
        self.stated = stated
        self.dropped = dropped
        self.added = stated - existing
        self.removed = dropped & existing
        self._existing = existing

    @property
    def relations(self) -> frozenset[Relation]:
        """Relations of the record afterwards."""
        return (self._existing | self.added) - self.removed

    def keep_local_edits(self, base: frozenset[Relation]) -> None:
        """Do not restore relations that people removed, nor remove those they added, since the last import."""
        self.added -= base
        self.removed &= base

    def cancel(self) -> None:
        """Leave the relations as they are."""
        self.added = self.removed = NO_RELATIONS


NO_CHANGES = RelationChanges(NO_RELATIONS, NO_RELATIONS, NO_RELATIONS)


class ImportBase:
    """Merge base of a record that people have created or edited.

    `unapplied` are the imported values that differ from those of the record.
    """

    def __init__(
        self, latest: Change, imported: Change | None, unapplied: Mapping[str, Any], survivors: Mapping[str, str]
    ) -> None:
        record = Record(latest.to_record().collection, latest.record_id) if imported is None else imported.to_record()
        self.unapplied = values = dict(unapplied)
        if _RELATIONS_KEY in values:
            record = record.with_relations(build_relations(record.id, values[_RELATIONS_KEY]))
        self.relations = redirect_merged_targets(record, survivors).relations
        special_keys = (_RELATIONS_KEY, base_values.IMPORTED_VERSION_KEY)
        self.values = to_values(record) | {key: value for key, value in values.items() if key not in special_keys}
        redirect_class_fields(record.collection, self.values, survivors)
        self._history_version: RecordValues = {}
        if imported is not None and imported.actor != SYSTEM_USER_ID:
            self._history_version[base_values.IMPORTED_VERSION_KEY] = imported.version

    def update(
        self, unapplied: RecordValues, relation_changes: RelationChanges, prefer: ConflictPreference | None
    ) -> None:
        """Take the result of a merge as the new base, and keep people's changes of relations."""
        imported_relations = (self.relations - relation_changes.dropped) | relation_changes.stated
        if prefer != "theirs":
            relation_changes.keep_local_edits(self.relations)
        self.unapplied = {**unapplied, **self._history_version}
        if imported_relations != relation_changes.relations:
            self.unapplied[_RELATIONS_KEY] = group_targets(imported_relations)


def list_history_versions(
    unapplied: Mapping[str, RecordValues], imported: Mapping[str, Change]
) -> list[tuple[str, int]]:
    """Return the id and version of records last imported with their history, by people elsewhere."""
    return [
        (record_id, version)
        for record_id, values in unapplied.items()
        if (version := values.get(base_values.IMPORTED_VERSION_KEY)) is not None
        and (record_id not in imported or imported[record_id].version < version)
    ]


def redirect_class_fields(collection: Collection, fields: RecordValues, survivors: Mapping[str, str]) -> None:
    """Replace merged classes by their survivors."""
    for name in collection.class_fields:
        if fields.get(name) in survivors:
            fields[name] = survivors[fields[name]]
