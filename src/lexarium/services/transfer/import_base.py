"""Last imported state of edited records, the base of a three-way merge."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lexarium.domain.change import Change
from lexarium.domain.editing.import_merge import RecordValues, to_values
from lexarium.domain.editing.merge import redirect_merged_targets
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.record import Record, Relation, build_relations, group_targets
from lexarium.domain.schema.collections import Collection
from lexarium.store import revisions
from lexarium.store.imports import base_values
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_RELATIONS_KEY = "relations"

NO_RELATIONS: frozenset[Relation] = frozenset()


class RelationChanges(NamedTuple):
    """Relations that a record has, that an import states, and that an import no longer states."""

    existing: frozenset[Relation]
    stated: frozenset[Relation]
    dropped: frozenset[Relation]

    def merge(self, base: frozenset[Relation] | None = None) -> frozenset[Relation]:
        """Return the relations afterwards. With a base, those that people have removed or added since stay so."""
        if base is None:
            return (self.existing | self.stated) - self.dropped
        return (self.existing | (self.stated - base)) - (self.dropped & base)


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
        if imported is not None and unapplied.get(base_values.IMPORTED_VERSION_KEY) == imported.version:
            self._history_version[base_values.IMPORTED_VERSION_KEY] = imported.version

    def update(
        self, unapplied: RecordValues, relation_changes: RelationChanges, merged_relations: frozenset[Relation]
    ) -> None:
        """Take the result of a merge as the new base."""
        self.unapplied = {**unapplied, **self._history_version}
        imported_relations = (self.relations - relation_changes.dropped) | relation_changes.stated
        if imported_relations != merged_relations:
            self.unapplied[_RELATIONS_KEY] = group_targets(imported_relations)

    def keep(self, before: Record, after: Record) -> None:
        """Keep the base of what people have changed; of the rest, an import of statements makes `after` the base."""
        old, new = to_values(before), to_values(after)
        # A text that the import has replaced is no edit any more. A list is one still: the import adds to it.
        unapplied = {
            name: value
            for name, value in self.values.items()
            if value not in (old.get(name), new.get(name))
            and (isinstance(value, list) or old.get(name) == new.get(name))
        }
        added, removed = after.relations - before.relations, before.relations - after.relations
        self.update(unapplied, RelationChanges(before.relations, added, removed), after.relations)


def load_bases(
    snapshot: Snapshot,
    latest: Mapping[str, Change],
    unapplied: Mapping[str, RecordValues],
    survivors: Mapping[str, str],
) -> dict[str, ImportBase]:
    """Load the merge bases of those of these records that people have created or edited."""
    edited_ids = base_values.find_edits(snapshot, latest.values()) | unapplied.keys()
    imported = base_values.find_last_imports(snapshot, sorted(edited_ids)) if edited_ids else {}
    imported |= revisions.find_versions(snapshot, _list_history_versions(unapplied, imported))
    return {
        record_id: ImportBase(latest[record_id], imported.get(record_id), unapplied.get(record_id, {}), survivors)
        for record_id in edited_ids
    }


def keep_bases(
    transaction: Transaction,
    latest: Mapping[str, Change],
    before: Mapping[str, Record],
    after: Mapping[str, Record],
    survivors: Mapping[str, str],
) -> None:
    """Keep the merge bases of edited records that an import of statements changes: its change hides the edits."""
    connection = transaction.flush()
    unapplied = base_values.find_unapplied(connection, list(latest))
    bases = load_bases(connection, latest, unapplied, survivors)
    for record_id, base in bases.items():
        base.keep(before[record_id], after[record_id])
    base_values.save_unapplied(connection, {record_id: base.unapplied for record_id, base in bases.items()})


def _list_history_versions(
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
        survivor = survivors.get(qualify_id(collection.vocabulary, fields.get(name) or ""))
        if survivor is not None:
            fields[name] = get_local_id(survivor)
