"""Applying what is staged to the catalogue, within one transaction."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.edit import list_changed_fields
from lexarium.domain.hierarchy import find_cycles, format_cycle
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.import_merge import (
    ConflictPreference,
    ImportedRecord,
    ImportMergeResult,
    create_imported_record,
    merge_import,
)
from lexarium.domain.labels import Alias
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState, Relation, build_simple_document
from lexarium.domain.rendering import get_filter_columns, render_json
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION, RELATION_TYPES
from lexarium.domain.timestamps import now_ms
from lexarium.services.curation.merges import CYCLE_REASON, find_invalid_merges, format_invalid_merge, resolve_survivors
from lexarium.services.transfer.import_base import (
    NO_CHANGES,
    NO_RELATIONS,
    ImportBase,
    RelationChanges,
    list_history_versions,
    redirect_class_fields,
)
from lexarium.services.transfer.import_history import apply_history
from lexarium.services.transfer.import_matching import match_foreign_ids
from lexarium.services.transfer.import_report import ImportConflict, ImportReport, ProblemList
from lexarium.store import change_log, integrity, records, relations, revisions
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.stage import ImportStage, StagedRecord
from lexarium.store.records import BATCH_SIZE
from lexarium.store.transaction import Transaction

_PUBLISHED = RecordState.PUBLISHED.value
_CLASS_COLLECTIONS = {
    id_field.collection
    for collection in COLLECTIONS.values()
    for id_field in collection.id_fields.values()
    if id_field.collection
}


class ImportApplier:
    """One import, being applied."""

    def __init__(  # noqa: PLR0913 (what is applied, to what, and how)
        self,
        database: Database,
        transaction: Transaction,
        stage: ImportStage,
        report: ImportReport,
        prefer: ConflictPreference | None,
        *,
        previewed_revision: int | None = None,
    ) -> None:
        self._database = database
        self._transaction = transaction
        self._stage = stage
        self._report = report
        self._prefer = prefer
        self._previewed_revision = previewed_revision
        self._at = now_ms()
        self._existing_count = 0
        """How many records there were before."""
        self._has_relations = False
        """Whether any of them had a relation."""
        self._has_local_edits = False
        """Whether people have made something else of any of them than imports told."""
        self._is_bulk_load = False
        """Whether more comes in than was there."""
        self._reference_locations: dict[str, str] = {}
        self._survivors: dict[str, str] = {}
        """Of those records that relations are told to, and that are merged here, what each has come to be."""
        self._class_survivors: dict[str, str] = {}
        """The same of those that fields may name."""
        self._replaced_items: dict[str, _ReplacedItem] = {}
        """How those records are gone that are told to have another in their place."""
        self.problems = ProblemList()
        """Why it cannot be applied: then the transaction is to be undone."""
        self.changed_since_preview = ""
        """A record that someone has changed since this was looked at, so that nobody has seen what becomes of it."""

    def apply(self, progress: ProgressCallback) -> None:
        """Apply all of it."""
        apply_history(self._transaction, self._stage, self._report, progress)
        self._load_context()
        if self._stage.has_foreign_ids:
            match_foreign_ids(self._transaction.connection, self._stage, self._report)
        self._stage.finish()
        self._merge_duplicates()
        self._redirect_merged_targets()
        if self._has_relations:
            self._remove_missing_relations()
        total = self._stage.count_touched()
        # What is little is written so soon that it does not matter how.
        self._is_bulk_load = total > max(self._existing_count, BATCH_SIZE)
        with self._database.bulk_load(self._transaction) if self._is_bulk_load else nullcontext():
            done = 0
            for record_ids in self._stage.iter_touched_ids(BATCH_SIZE):
                self._apply_batch(record_ids)
                done += len(record_ids)
                progress("writing", done, total)
        self._warn_missing_references()
        if self._report.relations_added:
            self._warn_dangling_relations()
            self._warn_cycles()
        listed = (*self._report.added_relations, *self._report.removed_relations)
        endpoints = {endpoint_id for relation in listed for endpoint_id in (relation.source, relation.target)}
        self._report.names = records.find_names(self._transaction.connection, sorted(endpoints))

    def _load_context(self) -> None:
        """See what there is: of what is not there, nothing is asked for later."""
        connection = self._transaction.connection
        self._existing_count = records.count(connection)
        self._has_relations = relations.has_any(connection)
        self._has_local_edits = base_values.has_unapplied(connection)

    def _merge_duplicates(self) -> None:
        """Make one of all that several files, or one several times, tell of a record; what was read last goes first."""
        for duplicates in self._stage.iter_duplicates():
            merged = duplicates[0]
            for item in duplicates[1:]:
                location, merged_location = self._locate(item), self._locate(merged)
                if item.collection != merged.collection:
                    message = f"{item.id} is a {item.collection} here, but a {merged.collection} in {merged_location}"
                    self.problems.add(location, message)
                    continue
                for name in _list_differing_fields(merged, item):
                    message = f"{name} of {item.id} is not what it is in {merged_location}; this one is kept"
                    self._report.warnings.add(location, message)
                fields = {**merged.parse_fields(), **item.parse_fields()}
                extras = {**merged.parse_extras(), **item.parse_extras()}
                extras_json = orjson.dumps(extras) if extras else b""
                merged = item._replace(fields=orjson.dumps(fields), rest=extras_json, name=None)
            self._stage.replace_record(merged)

    def _remove_missing_relations(self) -> None:
        """An edge goes where a record of the import tells all its relations of that kind, and no record tells it."""
        for batch in self._stage.iter_complete_relations():
            complete_sides = {(type_name, side, record_id) for record_id, type_name, side in batch}
            existing = relations.find_touching(
                self._transaction.connection, sorted({record_id for record_id, _, _ in batch})
            )
            unstated = existing - self._stage.find_staged_relations(existing)
            known_ids = self._find_existing(
                {relation.source for relation in unstated} | {relation.target for relation in unstated}
            )
            self._stage.add_removed_relations(
                relation
                for relation in unstated
                # Of a record that is not there, its teller could not have told.
                if (
                    (relation.relation, "source", relation.source) in complete_sides
                    and (relation.target in known_ids or _is_mapping(relation))
                )
                or ((relation.relation, "target", relation.target) in complete_sides and relation.source in known_ids)
            )

    def _redirect_merged_targets(self) -> None:
        """Have relations and classes lead to what is merged here no more, and look into told merges.

        Relations that lead there already do so still.
        """
        connection = self._transaction.connection
        if self._existing_count:
            for targets in self._stage.iter_targets(BATCH_SIZE):
                self._survivors |= resolve_survivors(connection, targets, treat_as_active="")
            for name in _CLASS_COLLECTIONS:
                merged_classes = records.find_ids_in_state(connection, name, RecordState.MERGED)
                self._class_survivors |= resolve_survivors(connection, merged_classes, treat_as_active="")
        if self._survivors:
            merged_ids = sorted(self._survivors)
            batches = (merged_ids[start : start + BATCH_SIZE] for start in range(0, len(merged_ids), BATCH_SIZE))
            self._stage.redirect_targets(
                self._survivors,
                {relation for batch in batches for relation in relations.find_touching(connection, batch)},
            )
        self._replaced_items = {
            item.id: _ReplacedItem(item, self._resolve_replacement(item)) for item in self._stage.iter_replaced()
        }
        self._check_merge_targets()

    def _check_merge_targets(self) -> None:
        """Where a record is told to be merged into what it cannot be, it is only retired."""
        connection = self._transaction.connection
        current_targets = resolve_survivors(
            connection,
            {replaced.target for replaced in self._replaced_items.values() if replaced.target is not None},
            treat_as_active="",
        )
        merge_targets: dict[str, str] = {}
        for record_id, replaced in self._replaced_items.items():
            replaced.current_target = current_targets.get(replaced.target or "", replaced.target)
            if replaced.state == RecordState.MERGED and replaced.target is not None:
                merge_targets[record_id] = replaced.target
            elif replaced.state == RecordState.MERGED:
                replaced.state = RecordState.RETIRED
        target_ids = sorted(set(merge_targets.values()))
        target_collections = records.find_collections(connection, target_ids) | dict(
            self._stage.find_collections(target_ids)
        )
        source_collections = {record_id: self._replaced_items[record_id].item.collection for record_id in merge_targets}
        for record_id, reason in find_invalid_merges(
            connection, merge_targets, source_collections, target_collections
        ).items():
            replaced = self._replaced_items[record_id]
            replaced.state = RecordState.RETIRED
            if reason == CYCLE_REASON:
                replaced.target = replaced.current_target = None
            self._report.warnings.add(self._locate(replaced.item), format_invalid_merge(record_id, reason))

    def _find_existing(self, record_ids: set[str]) -> set[str]:
        """Which of these records the catalogue or the import holds."""
        sorted_ids = sorted(record_ids)
        known_ids = set(self._stage.iter_staged_ids(sorted_ids))
        for start in range(0, len(sorted_ids), BATCH_SIZE):
            known_ids |= records.find_existing_ids(self._transaction.connection, sorted_ids[start : start + BATCH_SIZE])
        return known_ids

    def _apply_batch(self, record_ids: list[str]) -> None:
        first_id, last_id = record_ids[0], record_ids[-1]
        connection = self._transaction.connection
        staged = self._stage.find_records(first_id, last_id)
        latest = change_log.find_latest(connection, record_ids) if self._existing_count else {}
        existing = relations.find_by_sources(connection, record_ids) if self._has_relations else {}
        stated, dropped = (
            _group_by_source(self._stage.iter_relations(first_id, last_id)),
            _group_by_source(self._stage.iter_removed_relations(first_id, last_id)),
        )
        if self._is_bulk_load and not (latest or existing or stated or dropped):
            # Nothing but new records that no relation touches, as most of what is loaded.
            rows = [self._build_new_row(staged[record_id], NO_CHANGES) for record_id in record_ids]
            change_log.bulk_insert(self._transaction, rows, actor=SYSTEM_USER_ID, at=self._at)
            return
        bases = self._load_bases(latest)
        new_rows: list[change_log.NewRecordRow] = []
        entries: list[change_log.RecordWrite] = []
        all_relation_changes: list[RelationChanges] = []
        for record_id in record_ids:
            sides = (
                existing.get(record_id, NO_RELATIONS),
                stated.get(record_id, NO_RELATIONS),
                dropped.get(record_id, NO_RELATIONS),
            )
            relation_changes = RelationChanges(*sides) if any(sides) else NO_CHANGES
            item, change = staged.get(record_id), latest.get(record_id)
            if change is not None:
                updates = self._merge_existing(item, change, relation_changes, bases.get(record_id))
                # Whose value stands was said of those conflicts that were shown.
                if (
                    (updates or self._prefer)
                    and self._previewed_revision is not None
                    and change.seq > self._previewed_revision
                ):
                    self.changed_since_preview = record_id
                entries += updates
            elif item is not None and self._is_bulk_load:
                new_rows.append(self._build_new_row(item, relation_changes))
            elif item is not None:
                entries.append(change_log.RecordWrite(self._build_new_record(item, relation_changes), 1, Action.CREATE))
            if relation_changes is not NO_CHANGES:
                all_relation_changes.append(relation_changes)
        change_log.bulk_insert(self._transaction, new_rows, actor=SYSTEM_USER_ID, at=self._at)
        change_log.save_records(self._transaction, entries, actor=SYSTEM_USER_ID, at=self._at)
        added = [relation for relation_changes in all_relation_changes for relation in relation_changes.added]
        removed = [relation for relation_changes in all_relation_changes for relation in relation_changes.removed]
        change_log.update_relations(self._transaction, added, removed)
        self._report.count_relations(added, removed)
        base_values.save_unapplied(
            self._transaction.connection, {record_id: base.unapplied for record_id, base in bases.items()}
        )

    def _load_bases(self, latest: Mapping[str, Change]) -> dict[str, "ImportBase"]:
        """What imports told of those records that people have edited since, or made."""
        connection = self._transaction.connection
        unapplied = base_values.find_unapplied(connection, list(latest)) if self._has_local_edits else {}
        edited_ids = {
            record_id for record_id, change in latest.items() if change.actor != SYSTEM_USER_ID
        } | unapplied.keys()
        imported = base_values.find_last_imports(connection, sorted(edited_ids)) if edited_ids else {}
        imported |= revisions.find_versions(connection, list_history_versions(unapplied, imported))
        return {
            record_id: ImportBase(
                latest[record_id],
                imported.get(record_id),
                unapplied.get(record_id, {}),
                {**self._survivors, **self._class_survivors},
            )
            for record_id in edited_ids
        }

    def _build_new_row(self, item: StagedRecord, relation_changes: "RelationChanges") -> change_log.NewRecordRow:
        """A record that is not there, ready to be written. One whose fields are all told is as it was read."""
        if item.name is None or item.class_id in self._class_survivors:
            record = self._build_new_record(item, relation_changes)
            name, filter_columns = record.fields["name"], get_filter_columns(record.fields)
            return change_log.NewRecordRow(
                item.id,
                item.collection,
                record.state.value,
                name,
                record.rendered,
                *filter_columns,
                record.to_document(),
            )
        self._report.created[item.collection] += 1
        self._report.add_record("created", item.id, item.collection, item.name)
        if item.class_id and item.class_id not in self._reference_locations:
            self._reference_locations[item.class_id] = self._locate(item)
        rendered = render_json(COLLECTIONS[item.collection], item.id, item.name, item.fields)
        document = build_simple_document(
            item.fields, NO_RELATIONS if relation_changes is NO_CHANGES else relation_changes.relations
        )
        filter_columns = item.class_id, item.owner, bool(item.flagged)
        return change_log.NewRecordRow(
            item.id, item.collection, _PUBLISHED, item.name, rendered, *filter_columns, document
        )

    def _build_new_record(self, item: StagedRecord, relation_changes: "RelationChanges") -> Record:
        record = create_imported_record(self._to_imported_record(item), self._at)
        self._report.created[item.collection] += 1
        self._report.add_record("created", item.id, item.collection, record.fields["name"])
        if relation_changes is not NO_CHANGES:
            record = replace(record, relations=relation_changes.relations)
        self._collect_references(record.collection, record.fields, item)
        return record

    def _merge_existing(
        self, item: StagedRecord | None, latest: Change, relation_changes: "RelationChanges", base: "ImportBase | None"
    ) -> list[change_log.RecordWrite]:
        """The record as it shall be, unless it stays as it is. What `base` says is brought up to date."""
        current = latest.to_record()
        if not self._can_update(item, current):
            relation_changes.cancel()
            return []
        imported = ImportedRecord(current.collection, {}) if item is None else self._to_imported_record(item, current)
        if item is not None and imported.state is None and _was_import_undone(latest, current):
            imported = replace(imported, state=RecordState.PUBLISHED)
        result = merge_import(current, None if base is None else base.values, imported, self._prefer, self._at)
        if base is not None:
            base.update(result.unapplied, relation_changes, self._prefer)
        if item is not None:
            self._report_conflicts(result, item)
            self._collect_references(current.collection, result.record.fields, item)
        record = replace(result.record, relations=relation_changes.relations)
        if record == current:
            self._report.unchanged[latest.collection] += 1
            return []
        is_retired = record.state == RecordState.RETIRED != current.state
        kind, counter = ("retired", self._report.retired) if is_retired else ("updated", self._report.updated)
        counter[latest.collection] += 1
        if self._report.has_room(kind):
            self._report.add_record(
                kind, current.id, latest.collection, record.fields["name"], list_changed_fields(current, record)
            )
        return [change_log.RecordWrite(record, latest.version + 1, Action.RETIRE if is_retired else Action.UPDATE)]

    def _can_update(self, item: StagedRecord | None, current: Record) -> bool:
        if item is not None and item.collection != current.collection.name:
            message = f"{item.id} is a {item.collection} here, but a {current.collection.name} in the catalogue"
            self.problems.add(self._locate(item), message)
            return False
        if current.state == RecordState.MERGED:
            if item is not None:
                message = f"{item.id} was merged into {current.replaced_by}; what is told of it is left out"
                self._report.warnings.add(self._locate(item), message)
                self._report.skipped += 1
                self._report.add_record("refused", item.id, item.collection, current.fields["name"])
            return False
        return True

    def _to_imported_record(self, item: StagedRecord, current: Record | None = None) -> ImportedRecord:
        collection = COLLECTIONS[item.collection]
        fields = {**item.parse_fields(), "id": item.id}
        if self._class_survivors:
            redirect_class_fields(collection, fields, self._class_survivors)
        if not item.rest:
            return ImportedRecord(collection, fields)
        extras = item.parse_extras()
        aliases, sources, state = (extras.get(name) for name in ("aliases", "sources", "state"))
        replaced = self._replaced_items.get(item.id)
        if replaced is not None:
            state = replaced.state
        return ImportedRecord(
            collection,
            fields,
            None if aliases is None else tuple(Alias.model_construct(**alias) for alias in aliases),
            None if sources is None else tuple(sources),
            None if state is None else RecordState(state),
            None if replaced is None else replaced.resolve(current),
        )

    def _resolve_replacement(self, item: StagedRecord) -> str | None:
        """What replaces a record, as an id."""
        extras = item.parse_extras()
        replacement: str = extras["replaced_by"]
        if not extras.get("loosely"):
            return replacement
        record_id = self._stage.find_record_id(replacement)
        if record_id is None:
            message = (
                f"{replacement}, which stands in for {item.id}, is in neither the import nor the"
                f" catalogue; it is left out"
            )
            self._report.warnings.add(self._locate(item), message)
        return record_id

    def _report_conflicts(self, result: ImportMergeResult, item: StagedRecord) -> None:
        for conflict in result.conflicts:
            self._report.conflicts.add(
                ImportConflict(self._locate(item), item.id, conflict.field, conflict.before, conflict.after)
            )

    def _collect_references(self, collection: Collection, fields: Fields, item: StagedRecord) -> None:
        for name in collection.class_fields:
            value = fields[name]
            if value and value not in self._reference_locations:
                self._reference_locations[value] = self._locate(item)

    def _locate(self, item: StagedRecord) -> str:
        return self._stage.format_location(item.source, item.line)

    def _warn_missing_references(self) -> None:
        class_ids = sorted(self._reference_locations)
        for start in range(0, len(class_ids), BATCH_SIZE):
            batch = class_ids[start : start + BATCH_SIZE]
            existing = records.find_existing_ids(self._transaction.connection, batch)
            for class_id in batch:
                if class_id not in existing:
                    self._report.warnings.add(
                        self._reference_locations[class_id], f"the class {class_id} is not in the catalogue"
                    )

    def _warn_dangling_relations(self) -> None:
        dangling_count = integrity.count_dangling_relations(self._transaction.connection)
        if dangling_count:
            self._report.warnings.add("relations", f"{dangling_count:,} wait for a record that is not in the catalogue")

    def _warn_cycles(self) -> None:
        stated_types = self._stage.list_relation_types()
        for relation_types in HIERARCHICAL_TYPES_BY_COLLECTION.values():
            if stated_types.intersection(relation_types):
                for cycle in find_cycles(relations.iter_inner_relations(self._transaction.connection, relation_types)):
                    self._report.warnings.add("relations", format_cycle(relation_types, cycle))


class _ReplacedItem:
    """How a record is gone that is told to have another in its place."""

    def __init__(self, item: StagedRecord, target: str | None) -> None:
        # Not its fields: there may be many.
        self.item = item._replace(fields=b"", rest=b"")
        self.state = RecordState(item.parse_extras()["state"])
        self.target = self.current_target = target
        """What is told to be in its place; what that has come to be here."""

    def resolve(self, current: Record | None) -> str | None:
        """What is in its place from now on; what was in it already stays."""
        return self.target if current is not None and current.replaced_by == self.target else self.current_target


def _was_import_undone(latest: Change, current: Record) -> bool:
    """Whether a record is retired only because the import that brought it was undone: the next may bring it again."""
    return current.state == RecordState.RETIRED and (latest.actor, latest.action) == (SYSTEM_USER_ID, Action.REVERT)


def _list_differing_fields(first: StagedRecord, second: StagedRecord) -> Iterator[str]:
    """What both tell of a record, and not alike."""
    first_values = {**first.parse_fields(), **first.parse_extras()}
    for name, value in sorted({**second.parse_fields(), **second.parse_extras()}.items()):
        if first_values.get(name, value) != value:
            yield name


def _is_mapping(relation: Relation) -> bool:
    return RELATION_TYPES[relation.relation].target_collection is None


def _group_by_source(all_relations: Iterable[Relation]) -> dict[str, frozenset[Relation]]:
    groups: dict[str, set[Relation]] = {}
    for relation in all_relations:
        groups.setdefault(relation.source, set()).add(relation)
    return {source: frozenset(group) for source, group in groups.items()}
