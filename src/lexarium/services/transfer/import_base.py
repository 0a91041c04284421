"""Last imported state of edited records, the base of a three-way merge."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.import_merge import ConflictPreference, RecordValues, build_empty_base, to_values
from lexarium.domain.merge import redirect_merged_targets
from lexarium.domain.record import Relation, build_relations, group_targets
from lexarium.domain.schema.collections import Collection
from lexarium.store.imports import base_values

_RELATIONS_KEY = "relations"
"""Under which name relations stand among what imports told."""


NO_RELATIONS: frozenset[Relation] = frozenset()


class RelationChanges:
    """How the relations of one record move."""

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
        """What it comes to."""
        return (self._existing | self.added) - self.removed

    def keep_local_edits(self, base: frozenset[Relation]) -> None:
        """What people took away since the last import does not come back, and what they added stays."""
        self.added -= base
        self.removed &= base

    def cancel(self) -> None:
        """Leave all as it is."""
        self.added = self.removed = NO_RELATIONS


NO_CHANGES = RelationChanges(NO_RELATIONS, NO_RELATIONS, NO_RELATIONS)


class ImportBase:
    """What imports told of a record that people have edited since, or made."""

    def __init__(
        self, latest: Change, imported: Change | None, unapplied: Mapping[str, Any], survivors: Mapping[str, str]
    ) -> None:
        record = build_empty_base(latest.to_record()) if imported is None else imported.to_record()
        relation_targets = unapplied.get(_RELATIONS_KEY)
        self.relations = record.relations if relation_targets is None else build_relations(record.id, relation_targets)
        self.relations = redirect_merged_targets(replace(record, relations=self.relations), survivors).relations
        other_values = {
            name: value
            for name, value in unapplied.items()
            if name not in (_RELATIONS_KEY, base_values.IMPORTED_VERSION_KEY)
        }
        self.values: RecordValues = to_values(record) | other_values
        redirect_class_fields(record.collection, self.values, survivors)
        self.unapplied = dict(unapplied)
        """Where the record is something else."""
        self._history_version: RecordValues = {}
        if imported is not None and imported.actor != SYSTEM_USER_ID:
            self._history_version[base_values.IMPORTED_VERSION_KEY] = imported.version

    def update(
        self, unapplied: RecordValues, relation_changes: RelationChanges, prefer: ConflictPreference | None
    ) -> None:
        """Hear what an import told, and move the relations but for what people made of them."""
        imported_relations = (self.relations - relation_changes.dropped) | relation_changes.stated
        if prefer != "theirs":
            relation_changes.keep_local_edits(self.relations)
        self.unapplied = {**unapplied, **self._history_version}
        if imported_relations != relation_changes.relations:
            self.unapplied[_RELATIONS_KEY] = group_targets(imported_relations)


def list_history_versions(
    unapplied: Mapping[str, RecordValues], imported: Mapping[str, Change]
) -> list[tuple[str, int]]:
    """The versions, made elsewhere, that an import brought with a record's history and none has followed since."""
    history_versions = {
        record_id: values[base_values.IMPORTED_VERSION_KEY]
        for record_id, values in unapplied.items()
        if base_values.IMPORTED_VERSION_KEY in values
    }
    return [
        (record_id, version)
        for record_id, version in history_versions.items()
        if record_id not in imported or imported[record_id].version < version
    ]


def redirect_class_fields(collection: Collection, fields: RecordValues, survivors: Mapping[str, str]) -> None:
    """Put survivors in place of the merged records that fields name."""
    for name in collection.class_fields:
        if fields.get(name) in survivors:
            fields[name] = survivors[fields[name]]
