"""Writing records: what one caller does within one transaction, held to every rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.edit import apply_draft, apply_merge_patch, create_record, to_draft
from lexarium.domain.errors import (
    Conflict,
    FieldProblem,
    InvalidInput,
    NotFound,
)
from lexarium.domain.merge import build_survivor_draft, list_referenced_ids, mark_merged, redirect_merged_targets
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.draft_checks import (
    MAX_HIERARCHY_DEPTH,
    check_draft,
    find_relation_problem,
    format_unknown_type,
    list_retirement_warnings,
    require_replacement,
)
from lexarium.services.curation.merges import load_merge_effects, require_undoable, resolve_survivors
from lexarium.services.records.lookup import VersionedRecord, get_published, get_record, require_version
from lexarium.store import change_log, relations, revisions
from lexarium.store.transaction import Transaction

PendingWrite = tuple[Change | None, Record, Action]
"""A record's last change (None: it is new), what it shall be, and what that does to it."""


class RecordWriter:
    """Where one caller, who needs the role that publishes, writes within one transaction.

    A record that is to be changed is handed over as `current` has read it in the same transaction. Where a `proposal`
    is accepted, what is written is its author's, but for what the caller puts in its place. With an `actor` the log
    names that one in place of the caller.
    """

    def __init__(
        self, transaction: Transaction, caller: Caller, proposal: Proposal | None = None, actor: str | None = None
    ) -> None:
        caller.require(Permission.PUBLISH)
        self._transaction = transaction
        self._actor = actor or caller.account.id
        self._proposal = proposal
        self._at = now_ms()

    def create(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a draft of v1."""
        return self.create_records([self.prepare_record(collection, draft)])[0]

    def create_valpha(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a checked draft of v-alpha."""
        return self.create_records([self._build_record(collection, draft)])[0]

    def prepare_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        """A new record from a draft of v1, held to the rules; it is there once `save_new` has saved it."""
        return self._build_record(collection, check_draft(self._transaction, collection, draft))

    def create_records(self, new_records: Sequence[Record]) -> list[VersionedRecord]:
        """Publish new records, many as fast as one."""
        return self._save_all([(None, record, Action.CREATE) for record in new_records])

    def patch(self, current: VersionedRecord, patch: Mapping[str, Any]) -> VersionedRecord:
        """Apply a JSON merge patch to the draft of a record."""
        return self.update(current, apply_merge_patch(to_draft(current.record), patch))

    def update(self, current: VersionedRecord, draft: Mapping[str, Any]) -> VersionedRecord:
        """Put a whole draft in place of what a record has; one that stays as it is keeps its version."""
        checked_draft = check_draft(self._transaction, current.record.collection, draft, current.record)
        return self._save_if_changed(current, self._apply_draft(current.record, checked_draft), Action.UPDATE)

    def retire(self, current: VersionedRecord, replaced_by: str | None = None) -> VersionedRecord:
        """Take a record out of use; it keeps its history, and its identifier is never used again."""
        require_replacement(self._transaction.connection, current.record.id, replaced_by)
        record = replace(current.record, state=RecordState.RETIRED, replaced_by=replaced_by)
        warnings = list_retirement_warnings(self._transaction.connection, current.record)
        return replace(self._save_if_changed(current, record, Action.RETIRE), warnings=tuple(warnings))

    def add_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Add a relation; one that is there already changes nothing."""
        relation, collection = Relation(current.record.id, type_name, target), current.record.collection
        if relation in current.record.relations:
            return current
        relation_type = collection.relation_types.get(type_name)
        if relation_type is None:
            raise InvalidInput(
                "The relation cannot be made.", [FieldProblem("relation", format_unknown_type(collection))]
            )
        problem = find_relation_problem(self._transaction, relation_type, current.record.id, target)
        if problem:
            raise InvalidInput("The relation cannot be made.", [FieldProblem("target", problem)])
        record = replace(current.record, relations=current.record.relations | {relation})
        return self._save_if_changed(current, self._with_update_time(record), Action.UPDATE)

    def remove_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Take a relation away. Raises `NotFound` where it is not there."""
        relation = Relation(current.record.id, type_name, target)
        if relation not in current.record.relations:
            raise NotFound(f"{relation.source} has no relation {type_name} to {target}.")
        record = replace(current.record, relations=current.record.relations - {relation})
        return self._save_if_changed(current, self._with_update_time(record), Action.UPDATE)

    def revert(self, past: Change, version: int) -> VersionedRecord:
        """Make a record what it was at an earlier version, as a new version. A retired one is published again.

        What it named then and is merged now is named by its survivor. One that is so already keeps its version.
        Raises `Conflict` for a version at which it was merged.
        """
        current = get_record(self._transaction.connection, past.record_id)
        require_version(current.change, version)
        restored = past.to_record()
        if restored.state == RecordState.MERGED:
            raise Conflict(f"{past.record_id} was merged at version {past.version}. To merge it again, merge it.")
        if current.record.state == RecordState.MERGED:
            return self._unmerge(current, restored)
        kept_fields = ("creation_time", "event_stamp", "last_updated")
        fields = {
            name: current.record.fields[name] if name in kept_fields else value
            for name, value in restored.fields.items()
        }
        after = self._redirect_merged(replace(restored, fields=fields))
        return self._save_if_changed(
            current, after if after == current.record else self._with_update_time(after), Action.REVERT
        )

    def restore_versions(self, pairs: Iterable[tuple[Change, Change | None]]) -> list[VersionedRecord]:
        """Make records, each handed over as it is and as it was, what they were; one that was not there is retired."""
        writes: list[PendingWrite] = []
        for latest, previous in pairs:
            after = (
                replace(latest.to_record(), state=RecordState.RETIRED)
                if previous is None
                else self._redirect_merged(previous.to_record())
            )
            writes.append((latest, self._with_update_time(after), Action.REVERT))
        return self._save_all(writes)

    def merge(self, merged_record: VersionedRecord, survivor_id: str) -> VersionedRecord:
        """Merge a record into another, which keeps its fields and gains names and relations; the survivor.

        Records that named the merged one, as what they relate to or as their class, name the survivor from then on.
        """
        merged_id = merged_record.record.id
        if survivor_id == merged_id:
            raise Conflict("A record cannot be merged into itself.")
        survivor_record = self.get_published(merged_record.record.collection, survivor_id)
        writes: list[PendingWrite] = [
            (merged_record.change, mark_merged(merged_record.record, survivor_id), Action.MERGE),
            # Not held to the rules: an old record may break them, and what it has is not to be lost.
            (
                survivor_record.change,
                self._apply_draft(
                    survivor_record.record, build_survivor_draft(survivor_record.record, merged_record.record)
                ),
                Action.MERGE,
            ),
        ]
        connection = self._transaction.connection
        referring_ids = {relation.source for relation in relations.find_touching(connection, [merged_id])}
        if survivor_record.record.collection.is_class_collection:
            referring_ids.update(revisions.list_class_members(connection, merged_id))
        for change in change_log.find_latest(connection, sorted(referring_ids - {merged_id, survivor_id})).values():
            record = change.to_record()
            if record.state != RecordState.MERGED:
                writes.append(
                    (
                        change,
                        self._with_update_time(redirect_merged_targets(record, {merged_id: survivor_id})),
                        Action.MERGE,
                    )
                )
        return self._save_all(writes)[1]

    def get_published(self, collection: Collection, record_id: str, version: int | None = None) -> VersionedRecord:
        """The record as it is; raises where it is not there, gone, moved, or not at this version."""
        return get_published(self._transaction.connection, collection, record_id, version)

    def get_record(self, record_id: str) -> VersionedRecord:
        """The record of this identifier as it is, of whatever collection and state."""
        return get_record(self._transaction.connection, record_id)

    def _unmerge(self, current: VersionedRecord, restored: Record) -> VersionedRecord:
        """Undo a merge: what it added to other records is taken away again, whatever else they have become since."""
        connection = self._transaction.connection
        merge = revisions.find_state_change(connection, current.record.id, RecordState.MERGED)
        effects = load_merge_effects(connection, merge)
        require_undoable(connection, merge, effects, restored)
        writes: list[PendingWrite] = [
            (current.change, self._with_update_time(self._redirect_merged(restored)), Action.REVERT)
        ]
        for record_id, change in change_log.find_latest(connection, sorted(effects)).items():
            effect, latest = effects[record_id], change.to_record()
            after = effect.restore_alias_text(self._apply_draft(latest, effect.build_undo_draft(latest)))
            writes.append((change, after, Action.REVERT))
        return self._save_all(writes)[0]

    def _redirect_merged(self, record: Record) -> Record:
        """The record with survivors in place of the merged ones that it names, and without relations to itself."""
        after = redirect_merged_targets(
            record,
            resolve_survivors(self._transaction.connection, list_referenced_ids(record), treat_as_active=record.id),
        )
        return replace(
            after, relations=frozenset(relation for relation in after.relations if relation.target != record.id)
        )

    def _build_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        author = self._proposal.author if self._proposal else self._actor
        return create_record(collection, draft, author, self._get_definition_author(draft), self._at)

    def _apply_draft(self, record: Record, draft: Mapping[str, Any]) -> Record:
        return apply_draft(record, draft, self._get_definition_author(draft), self._at)

    def _get_definition_author(self, draft: Mapping[str, Any]) -> str:
        """Whose the definition of a draft is, should it be new."""
        if self._proposal is None:
            return self._actor
        proposed_definition = orjson.loads(self._proposal.change).get("definition_text")
        return self._proposal.author if draft.get("definition_text") == proposed_definition else self._actor

    def _with_update_time(self, record: Record) -> Record:
        """The record with the mark of an edit."""
        if "last_updated" not in record.fields:
            return record
        return replace(record, fields={**record.fields, "last_updated": self._at})

    def _save_if_changed(self, current: VersionedRecord, after: Record, action: Action) -> VersionedRecord:
        if after == current.record:
            return current
        return self._save_all([(current.change, after, action)])[0]

    def _save_all(self, writes: Sequence[PendingWrite]) -> list[VersionedRecord]:
        entries, added, removed = [], set[Relation](), set[Relation]()
        for previous, after, action in writes:
            # Of an identifier that was minted just now nobody can have told yet.
            previous_relations: frozenset[Relation] = previous.to_record().relations if previous else frozenset()
            added |= after.relations - previous_relations
            removed |= previous_relations - after.relations
            entries.append(change_log.RecordWrite(after, previous.version + 1 if previous else 1, action))
        origin = ProposalOrigin(self._proposal.id, self._proposal.author) if self._proposal else None
        changes = change_log.save_records(self._transaction, entries, actor=self._actor, at=self._at, origin=origin)
        change_log.update_relations(self._transaction, added, removed)
        if any(action in (Action.MERGE, Action.REVERT) for _, _, action in writes):
            self._require_acyclic(added)
        return [VersionedRecord(entry.record, change) for entry, change in zip(entries, changes, strict=True)]

    def _require_acyclic(self, added: Iterable[Relation]) -> None:
        """Raise where one of these relations, which are written already, closes a circle."""
        for relation in sorted(added):
            if relation.relation in HIERARCHICAL_TYPES:
                ancestors = relations.walk_hierarchy(
                    self._transaction.connection,
                    relation.target,
                    HIERARCHICAL_TYPES,
                    upward=True,
                    max_depth=MAX_HIERARCHY_DEPTH,
                )
                if relation.source in ancestors or relation.source == relation.target:
                    raise Conflict(f"{relation.source} {relation.relation} {relation.target} would close a circle.")
