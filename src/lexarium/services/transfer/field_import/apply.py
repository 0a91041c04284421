"""Apply a staged import to the catalogue in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain

from lexarium.domain.change import Action, Change
from lexarium.domain.editing import import_merge
from lexarium.domain.editing.edit import list_changed_fields
from lexarium.domain.editing.import_merge import ConflictPreference, ImportedRecord
from lexarium.domain.errors import VersionConflict
from lexarium.domain.hierarchy import find_cycles, format_cycle
from lexarium.domain.identifiers import SYSTEM_USER_ID, get_local_id, qualify_id, split_id
from lexarium.domain.labels import Alias
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState, Relation, build_simple_document
from lexarium.domain.rendering import render_json
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields
from lexarium.domain.statement import load_statements, normalize
from lexarium.domain.text.nouns import add_article
from lexarium.domain.text.numbers import format_count
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.records.lookup import resolve_survivors
from lexarium.services.transfer import import_base
from lexarium.services.transfer.field_import.history import CYCLE_REASON, report_invalid_merges
from lexarium.services.transfer.field_import.matching import match_foreign_ids
from lexarium.services.transfer.import_base import NO_RELATIONS, ImportBase, RelationChanges
from lexarium.services.transfer.import_report import (
    AffectedKind,
    ImportConflict,
    ImportReport,
    ProblemList,
    list_value_changes,
)
from lexarium.services.transfer.name_check import report_relation_names
from lexarium.services.transfer.reference_check import report_missing_targets
from lexarium.store import change_log, records, relations
from lexarium.store.change_log import RecordWrite, VersionRow
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.history_stage import StagedMerge
from lexarium.store.imports.stage import ImportStage, StagedRecord
from lexarium.store.maintenance import integrity
from lexarium.store.records import BATCH_SIZE
from lexarium.store.transaction import Transaction
from lexarium.store.vocabularies import replace_derived_rows, update_derived_rows

# Source of what imports by field have only added.
_ADDITIONS = "lexarium:added"
_PUBLISHED = RecordState.PUBLISHED.value


@dataclass
class ImportApplier:
    """Write staged records and fill the report."""

    database: Database
    transaction: Transaction
    stage: ImportStage
    report: ImportReport
    prefer: ConflictPreference | None
    previewed_revision: int | None
    actor: str = SYSTEM_USER_ID
    # Whether a record of the catalogue becomes one of a further class if the import has it in another collection.
    may_add_classes: bool = True
    # Whether lists are only added to, and single values stay.
    only_adds: bool = False

    def __post_init__(self) -> None:
        self._connection = self.transaction.flush()
        self._class_collections = {name for item in COLLECTIONS.values() for name in item.class_fields.values()}
        self._at = now_ms()
        self._existing_count = records.count(self._connection)
        self._has_relations = relations.has_any(self._connection)
        self._has_local_edits = base_values.has_unapplied(self._connection)
        self._has_sources = base_values.has_statements(self._connection)
        self._is_bulk_load = False
        # Location of the first record that names a class, by class id.
        self._reference_locations: dict[str, str] = {}
        # Survivors of merged relation targets, and of merged classes.
        self._survivors: dict[str, str] = {}
        self._class_survivors: dict[str, str] = {}
        self._replaced_items: dict[str, _ReplacedItem] = {}
        self._problems = ProblemList()
        # Ids of records with several classes, by collections.
        self._ids_by_classes: dict[tuple[str, ...], list[str]] = {}
        # A record that was changed after the preview.
        self._outdated_id = ""

    def apply(self, progress: ProgressCallback) -> None:
        """Apply the import; raise ImportRejected, or VersionConflict if the preview is out of date."""
        if self.stage.has_foreign_ids:
            match_foreign_ids(self._connection, self.stage, self.report)
        self.stage.finish()
        self._merge_duplicates()
        self._redirect_merged_targets()
        self._load_replaced_items()
        if self._has_relations:
            self._remove_missing_relations()
        total = self.stage.count_touched()
        # A small import is fast either way.
        self._is_bulk_load = total > max(self._existing_count, BATCH_SIZE)
        with self.database.bulk_load(self.transaction) if self._is_bulk_load else nullcontext():
            done = 0
            for record_ids in self.stage.iter_touched_ids():
                self._apply_batch(record_ids)
                done += len(record_ids)
                progress("writing", done, total)
        self._warn_several_classes()
        self._warn_missing_targets()
        report_relation_names(self._connection, self.report)
        self._problems.raise_if_any()
        if self._outdated_id:
            raise VersionConflict(
                f"{get_local_id(self._outdated_id)} was changed after the preview. Nothing was imported."
            )

    def _merge_duplicates(self) -> None:
        """Merge records that were staged several times; the values read last win.

        One that was staged in several collections is a record of the first, in the order of the schema, with further
        classes.
        """
        for duplicates in self.stage.iter_duplicates():
            items: dict[str, StagedRecord] = {}
            for item in duplicates:
                earlier = items.get(item.collection)
                items[item.collection] = item if earlier is None else self._merge_items(earlier, item)
            first, *further = (items[name] for name in COLLECTIONS if name in items)
            self.stage.replace_record(self._join_classes(first, further) if further else first)

    def _merge_items(self, earlier: StagedRecord, item: StagedRecord) -> StagedRecord:
        earlier_values = {**earlier.parse_fields(), **earlier.parse_extras()}
        for name, value in sorted({**item.parse_fields(), **item.parse_extras()}.items()):
            if earlier_values.get(name, value) != value:
                message = f"{name} of {item.id} differs from {self._locate(earlier)}; this value is kept"
                self.report.warnings.add(self._locate(item), message)
        fields = {**earlier.parse_fields(), **item.parse_fields()}
        return item.replace_values(fields, {**earlier.parse_extras(), **item.parse_extras()})

    def _join_classes(self, first: StagedRecord, further: Sequence[StagedRecord]) -> StagedRecord:
        """Return one record for items of several collections."""
        collection, extras = COLLECTIONS[first.collection], first.parse_extras()
        for item in further:
            extras = {**item.parse_extras(), **extras}
            # A predicate that both classes have is one relation, such as `skos:broader`.
            for name, predicate in COLLECTIONS[item.collection].relation_predicates.items():
                self.stage.rename_relation(first.id, name, collection.relation_names.get(predicate, name))
        extras["further_fields"] = {item.collection: item.parse_fields() for item in further}
        self._note_classes(first.id, (first.collection, *extras["further_fields"]))
        return first.replace_values(first.parse_fields(), extras)

    def _note_classes(self, record_id: str, collections: tuple[str, ...]) -> None:
        self._ids_by_classes.setdefault(collections, []).append(record_id)

    def _redirect_merged_targets(self) -> None:
        """Redirect relations and classes to the survivors of merged records. Existing relations stay."""
        if self._existing_count:
            for targets in self.stage.iter_targets():
                self._survivors |= resolve_survivors(self._connection, targets)
            for name in self._class_collections:
                merged_classes = records.find_ids_in_state(self._connection, name, RecordState.MERGED)
                self._class_survivors |= resolve_survivors(self._connection, merged_classes)
        if self._survivors:
            merged_ids = sorted(self._survivors)
            existing: set[Relation] = set()
            for batch in records.batched(merged_ids):
                existing |= relations.find_touching(self._connection, batch)
            self.stage.redirect_targets(self._survivors, existing)

    def _load_replaced_items(self) -> None:
        """Load records that the file says are replaced by others. Impossible merges become retirements."""
        for item in self.stage.iter_replaced():
            target = self._resolve_replacement(item)
            state = RecordState(item.parse_extras()["state"])
            # Without their values: there may be many.
            self._replaced_items[item.id] = _ReplacedItem(item._replace(fields=b"", extras=b""), state, target, target)
        targets = {replaced.target for replaced in self._replaced_items.values() if replaced.target is not None}
        survivors = resolve_survivors(self._connection, targets)
        merges = []
        for item_id, replaced in self._replaced_items.items():
            replaced.current_target = survivors.get(replaced.target or "", replaced.target)
            if replaced.state == RecordState.MERGED and replaced.target is not None:
                item = replaced.item
                merges.append(StagedMerge(item_id, replaced.target, item.collection, item.source, item.line))
            elif replaced.state == RecordState.MERGED:
                replaced.state = RecordState.RETIRED
        for item_id, reason in report_invalid_merges(self._connection, self.stage, self.report, merges).items():
            replaced = self._replaced_items[item_id]
            replaced.state = RecordState.RETIRED
            if reason == CYCLE_REASON:
                replaced.target = replaced.current_target = None

    def _resolve_replacement(self, item: StagedRecord) -> str | None:
        extras = item.parse_extras()
        replacement: str = extras["replaced_by"]
        if not extras.get("loosely"):
            return replacement
        record_id = self.stage.find_record_id(replacement)
        if record_id is None:
            missing = f"{replacement}, the replacement of {item.id}, is in neither the import nor the catalogue"
            self.report.warnings.add(self._locate(item), f"{missing}; it is skipped", is_loss=True)
        return record_id

    def _remove_missing_relations(self) -> None:
        """Remove relations that are absent from the complete lists of a file, unless it lacks the other record too."""
        for batch in self.stage.iter_complete_relations():
            complete = set(batch)
            existing = relations.find_touching(self._connection, sorted({record_id for record_id, _, _ in batch}))
            unstated = existing - self.stage.find_staged_relations(existing)
            endpoints = sorted({endpoint for item in unstated for endpoint in (item.source, item.target)})
            known_ids = set(records.find_collections(self._connection, endpoints))
            known_ids |= set(self.stage.iter_staged_ids(endpoints))
            self.stage.add_removed_relations(
                item
                for item in unstated
                if (
                    (item.source, item.relation, "source") in complete
                    and (item.target in known_ids or RELATION_TYPES[item.relation].is_mapping)
                )
                or ((item.target, item.relation, "target") in complete and item.source in known_ids)
            )

    def _apply_batch(self, record_ids: list[str]) -> None:
        bounds = record_ids[0], record_ids[-1]
        staged = self.stage.find_records(*bounds)
        latest = change_log.find_latest(self._connection, record_ids) if self._existing_count else {}
        existing = relations.find_by_sources(self._connection, record_ids) if self._has_relations else {}
        stated = _group_by_source(self.stage.iter_relations(*bounds))
        dropped = _group_by_source(self.stage.iter_removed_relations(*bounds))
        if self._is_bulk_load and not (latest or existing or stated or dropped):
            # New records without relations: most of a bulk load.
            rows = [self._build_new_row(staged[record_id], NO_RELATIONS) for record_id in record_ids]
            change_log.bulk_insert(self.transaction, rows, actor=self.actor, at=self._at)
            return
        bases = self._load_bases(latest)
        others = self._load_others(latest)
        new_rows: list[VersionRow] = []
        writes: list[RecordWrite] = []
        added: list[Relation] = []
        removed: list[Relation] = []
        for record_id in record_ids:
            sides = (group.get(record_id, NO_RELATIONS) for group in (existing, stated, dropped))
            relation_changes = RelationChanges(*sides)
            own_relations = relation_changes.merge()
            item, change = staged.get(record_id), latest.get(record_id)
            if change is not None:
                other = others.get(record_id)
                if other is not None:
                    relation_changes = relation_changes._replace(dropped=relation_changes.dropped - other.relations)
                write = self._merge_existing(item, change, relation_changes, bases.get(record_id), other)
                writes += [write] if write else []
                own_relations = write.record.relations if write else relation_changes.existing
            elif item is not None and self._is_bulk_load:
                new_rows.append(self._build_new_row(item, own_relations))
            elif item is not None:
                writes.append(RecordWrite(self._build_new_record(item, own_relations), 1, Action.CREATE))
            added += own_relations - relation_changes.existing
            removed += relation_changes.existing - own_relations
        change_log.bulk_insert(self.transaction, new_rows, actor=self.actor, at=self._at)
        change_log.save_records(self.transaction, writes, actor=self.actor, at=self._at)
        change_log.update_relations(self.transaction, added, removed)
        replace_derived_rows(self.transaction, [write.record for write in writes])
        self.report.add_relations(added, removed)
        unapplied = {record_id: base.unapplied for record_id, base in bases.items()}
        base_values.save_unapplied(self._connection, unapplied)
        if self.only_adds:
            self._save_additions(latest, writes)

    def _load_bases(self, latest: Mapping[str, Change]) -> dict[str, ImportBase]:
        """Load the merge bases of records that people have created or edited."""
        unapplied = base_values.find_unapplied(self._connection, list(latest)) if self._has_local_edits else {}
        survivors = {**self._survivors, **self._class_survivors}
        return import_base.load_bases(self._connection, latest, unapplied, survivors)

    def _load_others(self, latest: Mapping[str, Change]) -> dict[str, Record]:
        """Load what the import does not remove from records: what was stated or added by others."""
        if self.only_adds:
            return {record_id: change.to_record() for record_id, change in latest.items()}
        if not self._has_sources:
            return {}
        return {
            record_id: Record(COLLECTIONS[latest[record_id].collection], record_id, normalize(chain(*stated.values())))
            for record_id, stated in base_values.find_statements(self._connection, list(latest)).items()
        }

    def _save_additions(self, latest: Mapping[str, Change], writes: Iterable[RecordWrite]) -> None:
        """Keep what was added to lists as that of another source, so that no later import removes it."""
        updated = {write.record.id: write.record for write in writes if write.record.id in latest}
        known = base_values.find_statements(self._connection, list(updated))
        additions = {}
        for record_id, after in updated.items():
            before = latest[record_id].to_record()
            added = Record(after.collection, record_id, known.get(record_id, {}).get(_ADDITIONS, ()))
            added = added.with_aliases(
                (*added.aliases, *(alias for alias in after.aliases if alias not in before.aliases))
            )
            added = added.with_sources(
                (*added.sources, *(item for item in after.sources if item not in before.sources))
            )
            added = added.with_relations(added.relations | (after.relations - before.relations))
            additions[record_id] = added.statements
        base_values.save_statements(self._connection, _ADDITIONS, additions)

    def _build_new_row(self, item: StagedRecord, own_relations: frozenset[Relation]) -> VersionRow:
        """Build the row of a new record, without parsing it if the file gives all of its fields."""
        if item.name is None or item.class_id in self._class_survivors:
            record = self._build_new_record(item, own_relations)
            update_derived_rows(self.transaction, (), [record])
            return change_log.build_row(record, record.to_document())
        self.report.add_record("created", item.id, item.collection, item.name)
        if item.class_id and item.class_id not in self._reference_locations:
            self._reference_locations[item.class_id] = self._locate(item)
        collection = COLLECTIONS[item.collection]
        rendered = render_json(collection, item.id, item.name, item.fields)
        document = build_simple_document(collection, item.fields, own_relations)
        filter_columns = item.class_id, item.owner, bool(item.flagged)
        return VersionRow(item.id, item.collection, _PUBLISHED, item.name, rendered, *filter_columns, document)

    def _build_new_record(self, item: StagedRecord, own_relations: frozenset[Relation]) -> Record:
        record = import_merge.create_imported_record(self._to_imported_record(item), self._at)
        record = record.with_relations(own_relations)
        self.report.add_record("created", item.id, item.collection, record.fields["name"])
        self._collect_references(record.collection, record.fields, item)
        return record

    def _merge_existing(
        self,
        item: StagedRecord | None,
        latest: Change,
        relation_changes: RelationChanges,
        base: ImportBase | None,
        other: Record | None,
    ) -> RecordWrite | None:
        """Merge an import into a record and update its base; return the write, or None if the record stays equal.

        `other` has what stays of the record because others have stated it.
        """
        current = latest.to_record()
        is_outdated = self.previewed_revision is not None and latest.seq > self.previewed_revision
        if is_outdated and self.prefer:  # The preference was given for the conflicts of the preview.
            self._outdated_id = current.id
        if not self._can_update(item, current):
            return None
        if item is not None and current.collection.name not in item.collections:
            relation_changes = self._keep_own_relations(item, current, relation_changes)
        imported = ImportedRecord(current.collection, {}) if item is None else self._to_imported_record(item, current)
        imported = self._keep_others(item, imported, current, other)
        if item is not None and imported.state is None and self._was_import_undone(latest, current):
            imported = replace(imported, state=RecordState.PUBLISHED)
        base_state = None if base is None else base.values
        result = import_merge.merge_import(current, base_state, imported, self.prefer, self._at)
        own_relations = relation_changes.merge(None if base is None or self.prefer == "theirs" else base.relations)
        if base is not None:
            base.update(result.unapplied, relation_changes, own_relations)
        if item is not None:
            location = self._locate(item)
            for diff in result.conflicts:
                conflict = ImportConflict(location, get_local_id(item.id), diff.field, diff.before, diff.after)
                self.report.conflicts.append(conflict)
            self._collect_references(current.collection, result.record.fields, item)
        record = result.record.with_relations(own_relations)
        if record == current:
            self.report.unchanged[current.collection.local_name] += 1
            return None
        if is_outdated:
            self._outdated_id = current.id
        is_retired = record.state == RecordState.RETIRED != current.state
        kind: AffectedKind = "retired" if is_retired else "updated"
        has_room = self.report.has_room(kind)
        changed_fields = list_changed_fields(current, record) if has_room else ()
        changes = list_value_changes(current, record) if has_room else ()
        self.report.add_record(kind, current.id, latest.collection, record.fields["name"], changed_fields, changes)
        return RecordWrite(record, latest.version + 1, Action.RETIRE if is_retired else Action.UPDATE)

    def _keep_others(
        self, item: StagedRecord | None, imported: ImportedRecord, current: Record, other: Record | None
    ) -> ImportedRecord:
        """Return an imported record with what stays of the current one."""
        if item is None or other is None:
            return imported
        if not self.only_adds:
            return import_merge.keep_stated(imported, current, other)
        imported = replace(imported, state=None, replaced_by=None)
        kept = import_merge.keep_stated(imported, current, other, keeps_values=self.prefer != "theirs")
        shown = set(kept.fields).intersection(current.collection.editable_fields) if self.prefer is None else ()
        for name in sorted(shown):
            ours, theirs = kept.fields[name], imported.fields[name]
            if theirs not in ("", ours):
                conflict = ImportConflict(self._locate(item), get_local_id(item.id), name, ours, theirs)
                self.report.conflicts.append(conflict)
        return kept

    def _was_import_undone(self, latest: Change, current: Record) -> bool:
        """Return whether a record is retired only because an import was undone: the next one publishes it again."""
        is_retired = (current.state, latest.action) == (RecordState.RETIRED, Action.REVERT)
        return is_retired and not base_values.find_edits(self._connection, [latest])

    def _keep_own_relations(self, item: StagedRecord, current: Record, changes: RelationChanges) -> RelationChanges:
        """Return the changes without removals that an import of a further class alone cannot mean."""
        further = [collection.name for collection in current.further_collections]
        if item.collection not in further:
            self._note_classes(item.id, (current.collection.name, *further, item.collection))
        own_types = current.collection.relation_types
        return changes._replace(dropped=frozenset(item for item in changes.dropped if item.relation not in own_types))

    def _can_update(self, item: StagedRecord | None, current: Record) -> bool:
        if item is not None and not self.may_add_classes and not _is_in(current, item.collection):
            own, other = add_article(item.collection), add_article(current.collection.name)
            message = f"{item.id} is {own} here, but {other} in the catalogue"
            self._problems.add(self._locate(item), message)
            return False
        if item is not None and current.state == RecordState.MERGED:
            message = f"{item.id} was merged into {current.replaced_by}; its data are skipped"
            self.report.warnings.add(self._locate(item), message, is_loss=True)
            self.report.add_record("refused", item.id, item.collection, current.fields["name"])
        return current.state != RecordState.MERGED

    def _to_imported_record(self, item: StagedRecord, current: Record | None = None) -> ImportedRecord:
        collection = COLLECTIONS[item.collection] if current is None else current.collection
        extras = item.parse_extras()
        further_fields: dict[str, Fields] = {item.collection: item.parse_fields(), **extras.get("further_fields", {})}
        if self._class_survivors:
            for name, values in further_fields.items():
                import_base.redirect_class_fields(COLLECTIONS[name], values, self._class_survivors)
        fields = {**further_fields.pop(collection.name, {}), "id": get_local_id(item.id)}
        if not extras:
            return ImportedRecord(collection, fields, further_fields=further_fields)
        aliases, sources, state = (extras.get(name) for name in ("aliases", "sources", "state"))
        replaced = self._replaced_items.get(item.id)
        if replaced is not None:
            state = replaced.state
        statements = load_statements(extras.get("statements", {}))
        return ImportedRecord(
            collection,
            fields,
            None if aliases is None else tuple(Alias.model_construct(**alias) for alias in aliases),
            None if sources is None else tuple(sources),
            None if state is None else RecordState(state),
            None if replaced is None else replaced.resolve(current),
            further_fields,
            Record(collection, item.id, statements) if statements else None,
        )

    def _collect_references(self, collection: Collection, fields: Fields, item: StagedRecord) -> None:
        for name in collection.class_fields:
            class_id = qualify_id(collection.vocabulary, fields[name] or "")
            if fields[name] and class_id not in self._reference_locations:
                self._reference_locations[class_id] = self._locate(item)

    def _locate(self, item: StagedRecord) -> str:
        return self.stage.format_location(item.source, item.line)

    def _warn_missing_targets(self) -> None:
        """Warn of classes and relation targets that do not exist, and of cycles in hierarchies."""
        warnings = self.report.warnings
        class_ids = sorted(self._reference_locations)
        existing = records.find_collections(self._connection, class_ids)
        for class_id in class_ids:
            if class_id not in existing:
                message = f"the class {get_local_id(class_id)} is not in the catalogue"
                warnings.add(self._reference_locations[class_id], message)
            elif existing[class_id] not in self._class_collections:
                message = f"the class {get_local_id(class_id)} is {add_article(existing[class_id])}"
                warnings.add(self._reference_locations[class_id], message)
        if not self.report.relations_added:
            return
        report_missing_targets(self._connection, self.report, self._is_imported)
        stated_types = self.stage.list_relation_types()
        self._warn_unexpected_targets(stated_types)
        for relation_types in dict.fromkeys(COLLECTIONS.hierarchies.values()):
            if stated_types.intersection(relation_types):
                inner = relations.iter_inner_relations(self._connection, relation_types)
                own = (relation for relation in inner if split_id(relation.source)[0] == self.report.vocabulary)
                for cycle in find_cycles(own):
                    warnings.add("relations", format_cycle(relation_types, list(map(get_local_id, cycle))))

    def _is_imported(self, relation: Relation) -> bool:
        """Return whether the import states a relation, or has versions of its source."""
        has_versions = any(self.stage.history.find_collections([relation.source]))
        return has_versions or bool(self.stage.find_staged_relations([relation]))

    def _warn_several_classes(self) -> None:
        for collections, ids in self._ids_by_classes.items():
            count, names = format_count(len(ids), "record"), " and ".join(collections)
            self.report.warnings.add("records", f"{count} of several classes, {names} (first {ids[0]})")

    def _warn_unexpected_targets(self, relation_types: Iterable[str]) -> None:
        """Warn of relations to records of a class that the schema does not allow."""
        for group in integrity.group_relations(self._connection, sorted(relation_types)):
            if split_id(group.first_source)[0] != self.report.vocabulary:
                continue
            if group.target not in (RELATION_TYPES[group.relation].targets.get(group.source) or COLLECTIONS):
                source, target = add_article(group.source), add_article(group.target)
                message = f"{group.relation} of {source} points to {target}, which the schema does not declare"
                self.report.warnings.add(
                    "relations",
                    f"{message} ({format_count(group.number, 'time')}, first of {get_local_id(group.first_source)})",
                )


@dataclass
class _ReplacedItem:
    """A staged record that is replaced by another: by `target` in the file, which is now `current_target`."""

    item: StagedRecord
    state: RecordState
    target: str | None
    current_target: str | None

    def resolve(self, current: Record | None) -> str | None:
        """Return the id of the replacement. One that the record has already stays."""
        return self.target if current is not None and current.replaced_by == self.target else self.current_target


def _is_in(record: Record, collection: str) -> bool:
    return record.collection.name == collection or COLLECTIONS[collection] in record.further_collections


def _group_by_source(all_relations: Iterable[Relation]) -> dict[str, frozenset[Relation]]:
    groups: dict[str, set[Relation]] = {}
    for relation in all_relations:
        groups.setdefault(relation.source, set()).add(relation)
    return {source: frozenset(group) for source, group in groups.items()}
