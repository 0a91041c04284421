"""Write records on behalf of one caller in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.edit import apply_draft, apply_merge_patch, create_record, to_draft
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.merge import build_survivor_draft, list_referenced_ids, mark_merged, redirect_merged_targets
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import RELATION_TYPES, Collection
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation import draft_checks
from lexarium.services.curation.merges import load_merge_effects, require_undoable
from lexarium.services.records import lookup
from lexarium.services.records.lookup import VersionedRecord
from lexarium.store import change_log, relations, revisions, vocabularies
from lexarium.store.transaction import Transaction

# Latest change of a record (None if new), the new record, and the action.
PendingWrite = tuple[Change | None, Record, Action]


class RecordWriter:
    """Writes records on behalf of one caller, who may publish, in one transaction.

    Pass records to change as read in the same transaction. With a `proposal`, new records and the proposed definition
    belong to its author. With an `actor`, the change log names that account instead of the caller.
    """

    def __init__(
        self, transaction: Transaction, caller: Caller, proposal: Proposal | None = None, actor: str | None = None
    ) -> None:
        caller.require_anywhere(Permission.PUBLISH)
        self._caller = caller
        self._transaction = transaction
        self._actor = actor or caller.account.id
        self._proposal = proposal
        self._at = now_ms()

    def create(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a v1 draft."""
        return self.create_records([self.prepare_record(collection, draft)])[0]

    def create_valpha(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a checked v-alpha draft."""
        return self.create_records([self._build_record(collection, draft)])[0]

    def prepare_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        """Build a new record from a v1 draft, to be saved by `create_records`; raise InvalidInput."""
        checked_draft = draft_checks.check_draft(self._transaction, collection, draft)
        record = self._build_record(collection, checked_draft)
        if "id" in checked_draft and lookup.find_existing_ids(self._transaction.flush(), [record.id]):
            raise Conflict(f"There is a record with the id {record.local_id!r} already.")
        return record

    def create_records(self, new_records: Sequence[Record]) -> list[VersionedRecord]:
        """Publish new records together, which is faster than one by one."""
        return self._save_all([(None, record, Action.CREATE) for record in new_records])

    def patch(self, current: VersionedRecord, patch: Mapping[str, Any]) -> VersionedRecord:
        """Apply a JSON merge patch to the draft of a record."""
        return self.update(current, apply_merge_patch(to_draft(current.record), patch))

    def update(self, current: VersionedRecord, draft: Mapping[str, Any]) -> VersionedRecord:
        """Replace the draft of a record; without a difference it keeps its version."""
        record = current.record
        checked_draft = draft_checks.check_draft(self._transaction, record.collection, draft, record)
        return self._save_if_changed(current, self._apply_draft(record, checked_draft), Action.UPDATE)

    def retire(self, current: VersionedRecord, replaced_by: str | None = None) -> VersionedRecord:
        """Retire a record; its id is never used again."""
        draft_checks.require_replacement(self._transaction.flush(), current.record.id, replaced_by)
        record = replace(current.record, state=RecordState.RETIRED, replaced_by=replaced_by)
        warnings = draft_checks.list_retirement_warnings(self._transaction.flush(), current.record)
        return replace(self._save_if_changed(current, record, Action.RETIRE), warnings=tuple(warnings))

    def add_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Add a relation unless the record has it."""
        relation, collection = Relation(current.record.id, type_name, target), current.record.collection
        if relation in current.record.relations:
            return current
        relation_type = collection.relation_types.get(type_name)
        problem: str | None
        if relation_type is None:
            field, problem = "relation", draft_checks.format_unknown_type(collection)
        else:
            field = "target"
            problem = draft_checks.find_relation_problem(
                self._transaction, collection, relation_type, relation.source, target
            )
        if problem:
            raise InvalidInput("The relation cannot be made.", [FieldProblem(field, problem)])
        return self._save_relations(current, current.record.relations | {relation})

    def remove_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Remove a relation; raise NotFound."""
        relation = Relation(current.record.id, type_name, target)
        if relation not in current.record.relations:
            raise NotFound(f"{current.record.local_id} has no relation {type_name} to {get_local_id(target)}.")
        return self._save_relations(current, current.record.relations - {relation})

    def _save_relations(self, current: VersionedRecord, new_relations: frozenset[Relation]) -> VersionedRecord:
        record = self._with_update_time(current.record.with_relations(new_relations))
        return self._save_if_changed(current, record, Action.UPDATE)

    def revert(self, past: Change, version: int) -> VersionedRecord:
        """Restore an earlier version of a record as a new version; a retired record is published again.

        References to merged records go to their survivors. Without a difference the record keeps its version. Raise
        Conflict for a version in which it was merged.
        """
        current = lookup.get_record(self._transaction.flush(), past.record_id)
        lookup.require_version(current.change, version)
        restored = past.to_record()
        if restored.state == RecordState.MERGED:
            raise Conflict(
                f"{get_local_id(past.record_id)} was merged at version {past.version}. To merge it again, merge it."
            )
        if current.record.state == RecordState.MERGED:
            return self._unmerge(current, restored)
        kept_fields = ("creation_time", "event_stamp", "last_updated")
        times = {name: value for name in kept_fields if (value := current.record.fields.get(name)) not in (None, "")}
        after = self._redirect_merged(restored.assign_fields(times))
        if after == current.record:
            return current
        return self._save_all([(current.change, self._with_update_time(after), Action.REVERT)])[0]

    def restore_versions(self, pairs: Iterable[tuple[Change, Change | None]]) -> list[VersionedRecord]:
        """Restore records, given as pairs of latest and earlier change; retire those without an earlier one."""
        writes: list[PendingWrite] = []
        for latest, previous in pairs:
            if previous is None:
                after = replace(latest.to_record(), state=RecordState.RETIRED)
            else:
                after = self._redirect_merged(previous.to_record())
            writes.append((latest, self._with_update_time(after), Action.REVERT))
        return self._save_all(writes)

    def merge(self, merged: VersionedRecord, survivor_id: str) -> VersionedRecord:
        """Merge a record into another, which keeps its fields and gains names and relations; return the survivor.

        Records that refer to the merged one then refer to the survivor.
        """
        merged_id = merged.record.id
        if survivor_id == merged_id:
            raise Conflict("A record cannot be merged into itself.")
        survivor = lookup.get_published(self._transaction.flush(), merged.record.collection, survivor_id)
        # Not validated: an old record may break rules, and nothing of it may be lost.
        survivor_record = self._apply_draft(survivor.record, build_survivor_draft(survivor.record, merged.record))
        writes: list[PendingWrite] = [
            (merged.change, mark_merged(merged.record, survivor_id), Action.MERGE),
            (survivor.change, survivor_record, Action.MERGE),
        ]
        referring_ids = {
            relation.source for relation in relations.find_touching(self._transaction.flush(), [merged_id])
        }
        if survivor.record.collection.is_class_collection:
            referring_ids.update(revisions.list_class_members(self._transaction.flush(), merged_id))
        referring_ids -= {merged_id, survivor_id}
        for change in change_log.find_latest(self._transaction.flush(), sorted(referring_ids)).values():
            record = change.to_record()
            if record.state != RecordState.MERGED:
                redirected = redirect_merged_targets(record, {merged_id: survivor_id})
                writes.append((change, self._with_update_time(redirected), Action.MERGE))
        return self._save_all(writes)[1]

    def _unmerge(self, current: VersionedRecord, restored: Record) -> VersionedRecord:
        """Undo a merge: remove from other records what it added, and keep their later changes."""
        merge = revisions.find_state_change(self._transaction.flush(), current.record.id, RecordState.MERGED)
        effects = load_merge_effects(self._transaction.flush(), merge)
        require_undoable(self._transaction.flush(), merge, effects, restored)
        writes: list[PendingWrite] = [
            (current.change, self._with_update_time(self._redirect_merged(restored)), Action.REVERT)
        ]
        for record_id, change in change_log.find_latest(self._transaction.flush(), sorted(effects)).items():
            effect, latest = effects[record_id], change.to_record()
            after = effect.restore_details(self._apply_draft(latest, effect.build_undo_draft(latest)))
            writes.append((change, after, Action.REVERT))
        return self._save_all(writes)[0]

    def _redirect_merged(self, record: Record) -> Record:
        """Replace references to merged records by their survivors; remove relations to itself."""
        survivors = lookup.resolve_survivors(
            self._transaction.flush(), list_referenced_ids(record), treat_as_active=record.id
        )
        after = redirect_merged_targets(record, survivors)
        kept = frozenset(relation for relation in after.relations if relation.target != record.id)
        return after.with_relations(kept)

    def _build_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        author = self._proposal.author if self._proposal else self._actor
        return create_record(collection, draft, author, self._get_definition_author(draft), self._at)

    def _apply_draft(self, record: Record, draft: Mapping[str, Any]) -> Record:
        return apply_draft(record, draft, self._get_definition_author(draft), self._at)

    def _get_definition_author(self, draft: Mapping[str, Any]) -> str:
        if self._proposal is None:
            return self._actor
        proposed_definition = orjson.loads(self._proposal.change).get("definition_text")
        return self._proposal.author if draft.get("definition_text") == proposed_definition else self._actor

    def _with_update_time(self, record: Record) -> Record:
        if "last_updated" not in record.fields:
            return record
        return record.assign_fields({"last_updated": self._at})

    def _save_if_changed(self, current: VersionedRecord, after: Record, action: Action) -> VersionedRecord:
        if after == current.record:
            return current
        return self._save_all([(current.change, after, action)])[0]

    def _save_all(self, writes: Sequence[PendingWrite]) -> list[VersionedRecord]:
        entries, added, removed = [], set[Relation](), set[Relation]()
        for vocabulary in {after.collection.vocabulary for _, after, _ in writes}:
            self._caller.require(Permission.PUBLISH, vocabulary)
        before = [previous.to_record() for previous, _, _ in writes if previous]
        for previous, after, action in writes:
            previous_relations: frozenset[Relation] = previous.to_record().relations if previous else frozenset()
            added |= after.relations - previous_relations
            removed |= previous_relations - after.relations
            entries.append(change_log.RecordWrite(after, previous.version + 1 if previous else 1, action))
        origin = ProposalOrigin(self._proposal.id, self._proposal.author) if self._proposal else None
        changes = change_log.save_records(self._transaction, entries, actor=self._actor, at=self._at, origin=origin)
        change_log.update_relations(self._transaction, added, removed)
        vocabularies.update_derived_rows(self._transaction, before, [after for _, after, _ in writes])
        if any(action in (Action.MERGE, Action.REVERT) for _, _, action in writes):
            self._require_acyclic(added)
        return [VersionedRecord(entry.record, change) for entry, change in zip(entries, changes, strict=True)]

    def _require_acyclic(self, added: Iterable[Relation]) -> None:
        """Raise Conflict if one of these relations, which are saved already, closes a cycle."""
        for relation in sorted(added):
            if relation.relation in RELATION_TYPES.hierarchical and (
                relation.source == relation.target
                or draft_checks.is_ancestor(self._transaction.flush(), relation.source, relation.target)
            ):
                ends = get_local_id(relation.source), relation.relation, get_local_id(relation.target)
                raise Conflict(f"{' '.join(ends)} would close a circle.")
