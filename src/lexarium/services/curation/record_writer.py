"""Write records on behalf of one caller in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.edit import apply_draft, apply_merge_patch, fill_record, to_draft
from lexarium.domain.editing.merge import (
    adopt_definition_author,
    adopt_moved_qualifiers,
    build_survivor_draft,
    list_referenced_ids,
    mark_merged,
    redirect_merged_targets,
)
from lexarium.domain.editing.validation import find_size_problem
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import get_local_id, mint_id, qualify_id, split_id
from lexarium.domain.identity.minting import MintingKind, mint
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation, build_relations
from lexarium.domain.schema.collections import EXACT_MATCH, RELATION_TYPES, Collection
from lexarium.domain.text.characters import find_control_char
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import VOCABULARIES, find_defining_id
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation import draft_checks
from lexarium.services.curation.merges import load_merge_effects, require_undoable
from lexarium.services.records import lookup
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.store import change_log, records, relations, revisions, vocabularies
from lexarium.store.transaction import Transaction

_IN_SCHEME = "in_scheme"
# Record as it is (None if new), the new record, and the action.
PendingWrite = tuple[VersionedRecord | None, Record, Action]


class RecordWriter:
    """Writes records on behalf of one caller, who may publish, in one transaction.

    Ids in drafts and arguments are those that records have in their vocabulary. Pass records to change as read in the
    same transaction. With a `proposal`, new records, the proposed definition and the summary belong to its author.
    """

    def __init__(
        self, transaction: Transaction, caller: Caller, proposal: Proposal | None = None, summary: str = ""
    ) -> None:
        caller.require_anywhere(Permission.PUBLISH)
        self._transaction = transaction
        self._caller = caller
        # Numbers of the ids that were minted, by vocabulary: their records may not be saved yet.
        self._last_numbers: dict[str, int | None] = {}
        self._actor = caller.account.id
        self._proposal = proposal
        self._summary = proposal.summary if proposal else summary
        self._at = now_ms()

    def create(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a v1 draft."""
        return self.create_records([self.prepare_record(collection, draft)])[0]

    def create_valpha(self, collection: Collection, draft: Mapping[str, Any]) -> VersionedRecord:
        """Publish a new record from a checked v-alpha draft."""
        self._require_permission(collection)
        return self.create_records([self._build_record(collection, draft)])[0]

    def prepare_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        """Build a new record from a v1 draft, to be saved by `create_records`; raise InvalidInput."""
        self._require_permission(collection)
        return self._build_record(collection, draft_checks.check_new_draft(self._transaction, collection, draft))

    def create_records(self, new_records: Sequence[Record]) -> list[VersionedRecord]:
        """Publish new records together, which is faster than one by one."""
        if any(record.collection.stored_inverses for record in new_records):
            return [self._save_with_inverses(None, record, Action.CREATE) for record in new_records]
        return self._save_all([(None, record, Action.CREATE) for record in new_records])

    def patch(self, current: VersionedRecord, patch: Mapping[str, Any]) -> VersionedRecord:
        """Apply a JSON merge patch to the draft of a record."""
        return self.update(current, apply_merge_patch(to_draft(current.record), patch))

    def update(self, current: VersionedRecord, draft: Mapping[str, Any]) -> VersionedRecord:
        """Replace the draft of a record; without a difference it keeps its version."""
        record = current.record
        self._require_permission(record.collection)
        checked_draft = draft_checks.check_draft(self._transaction, record.collection, draft, record)
        after = self._apply_draft(record, checked_draft)
        return current if after == record else self._save_with_inverses(current, after, Action.UPDATE)

    def retire(self, current: VersionedRecord, replaced_by: str | None = None) -> VersionedRecord:
        """Retire a record; its id is never used again."""
        self._require_permission(current.record.collection)
        replacement = draft_checks.find_replacement(self._transaction.flush(), current.record, replaced_by)
        record = replace(current.record, state=RecordState.RETIRED, replaced_by=replacement)
        warnings = draft_checks.list_retirement_warnings(self._transaction.flush(), current.record)
        return replace(self._save_if_changed(current, record, Action.RETIRE), warnings=tuple(warnings))

    def add_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Add a relation unless the record has it."""
        collection = current.record.collection
        self._require_permission(collection)
        [relation] = build_relations(current.record.id, {type_name: [target]})
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
            raise InvalidInput("Invalid relation.", [FieldProblem(field, problem)])
        record = self._with_update_time(current.record.with_relations(current.record.relations | {relation}))
        return self._save_with_inverses(current, record, Action.UPDATE)

    def remove_relation(self, current: VersionedRecord, type_name: str, target: str) -> VersionedRecord:
        """Remove a relation; raise NotFound."""
        self._require_permission(current.record.collection)
        [relation] = build_relations(current.record.id, {type_name: [target]})
        owner = current
        stored_type = current.record.collection.stored_inverses.get(type_name)
        if relation not in current.record.relations and stored_type:
            relation = Relation(relation.target, stored_type, relation.source)
            change = self._find_latest([relation.source]).get(relation.source)
            owner = current if change is None else VersionedRecord(change.to_record(), change)
        if relation not in owner.record.relations:
            raise NotFound(f"{current.record.local_id} has no relation {type_name} to {target}.")
        record = self._with_update_time(owner.record.with_relations(owner.record.relations - {relation}))
        saved = self._save_if_changed(owner, record, Action.UPDATE)
        return saved if owner is current else current

    def _save_with_inverses(self, current: VersionedRecord | None, after: Record, action: Action) -> VersionedRecord:
        """Save a record; new relations whose inverse is the one that is stored are stored at their targets."""
        known: frozenset[Relation] = current.record.relations if current else frozenset()
        stored_types = after.collection.stored_inverses
        moved = {item for item in after.relations - known if item.relation in stored_types} if stored_types else set()
        if not moved:
            return self._save_all([(current, after, action)])[0]
        after = after.with_relations(after.relations - moved)
        is_same = current is not None and to_draft(after) == to_draft(current.record)
        writes: list[PendingWrite] = [] if is_same else [(current, after, action)]
        inverses = {Relation(item.target, stored_types[item.relation], item.source) for item in moved}
        for target_id, change in self._find_latest(sorted({item.source for item in inverses})).items():
            target = change.to_record()
            added = {relation for relation in inverses if relation.source == target_id} - target.relations
            if added:
                related = self._with_update_time(target.with_relations(target.relations | added))
                writes.append((VersionedRecord(target, change), related, Action.UPDATE))
        saved = self._save_all(writes)
        self._require_acyclic(inverses)
        return current if current and is_same else saved[0]

    def _find_latest(self, record_ids: Sequence[str]) -> dict[str, Change]:
        return change_log.find_latest(self._transaction.flush(), record_ids)

    def revert(self, past: Change, version: int) -> VersionedRecord:
        """Restore an earlier version of a record as a new version; a retired record is published again.

        References to merged records go to their survivors. Without a difference the record keeps its version. Raise
        Conflict for a version in which it was merged.
        """
        current = lookup.get_record(self._transaction.flush(), past.record_id)
        self._require_permission(current.record.collection)
        lookup.require_version(current.change, version)
        restored = past.to_record()
        if restored.state == RecordState.MERGED:
            local_id = get_local_id(past.record_id)
            raise Conflict(f"{local_id} was merged at version {past.version}. Merge it again instead of reverting.")
        if current.record.state == RecordState.MERGED:
            return self._unmerge(current, restored)
        kept_fields = ("creation_time", "event_stamp", "last_updated")
        times = {name: value for name in kept_fields if (value := current.record.fields.get(name)) not in (None, "")}
        after = self._redirect_merged(restored.assign_fields(times))
        if after == current.record:
            return current
        return self._save_all([(current, self._with_update_time(after), Action.REVERT)])[0]

    def restore_versions(self, pairs: Iterable[tuple[Change, Change | None]]) -> list[VersionedRecord]:
        """Restore records, given as pairs of latest and earlier change; retire those without an earlier one."""
        pairs = list(pairs)
        restored = [
            previous.record_id for _, previous in pairs if previous and previous.to_record().state != RecordState.MERGED
        ]
        writes: list[PendingWrite] = []
        for latest, previous in pairs:
            current = VersionedRecord(latest.to_record(), latest)
            if previous is None:
                after = replace(current.record, state=RecordState.RETIRED)
            else:
                after = self._redirect_merged(previous.to_record(), restored)
            writes.append((current, self._with_update_time(after), Action.REVERT))
        return self._save_all(writes)

    def merge(self, merged: VersionedRecord, survivor_id: str) -> VersionedRecord:
        """Merge a record into another, which keeps its fields and gains names and relations; return the survivor.

        Records that refer to the merged one then refer to the survivor.
        """
        collection, merged_id = merged.record.collection, merged.record.id
        self._require_permission(collection)
        survivor_id = self._find_survivor(merged.record, survivor_id)
        survivor = lookup.get_published(self._transaction.flush(), collection, survivor_id)
        # Not validated: an old record may break rules, and nothing of it may be lost.
        survivor_record = self._apply_draft(survivor.record, build_survivor_draft(survivor.record, merged.record))
        survivor_record = adopt_moved_qualifiers(survivor_record, survivor.record, merged.record)
        survivor_record = adopt_definition_author(survivor_record, survivor.record, merged.record)
        writes: list[PendingWrite] = [
            (merged, mark_merged(merged.record, survivor_id), Action.MERGE),
            (survivor, survivor_record, Action.MERGE),
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
                writes.append((VersionedRecord(record, change), self._with_update_time(redirected), Action.MERGE))
        return self._save_all(writes)[1]

    def _find_survivor(self, merged: Record, survivor_id: str) -> str:
        """Return the record that an id in the vocabulary of the merged one means; raise Conflict or NotFound."""
        if find_control_char(survivor_id):
            raise NotFound(f"Record {survivor_id!r} not found.")
        found = qualify_id(merged.collection.vocabulary, survivor_id)
        if found == merged.id:
            raise Conflict("A record cannot be merged into itself.")
        other = find_defining_id(found)
        if other is None or lookup.find_existing_ids(self._transaction.flush(), [found]):
            return found
        slug = split_id(other)[0]
        if slug not in get_read_scope(self._caller).slugs or not lookup.find_existing_ids(
            self._transaction.flush(), [other]
        ):
            return found
        raise Conflict(
            f"{survivor_id} belongs to the vocabulary {slug}. Records can only be merged within a vocabulary; add"
            " a mapping such as exactMatch instead.",
            mapping={"relation": EXACT_MATCH.name, "target": survivor_id},
        )

    def _unmerge(self, current: VersionedRecord, restored: Record) -> VersionedRecord:
        """Undo a merge: remove from other records what it added, and keep their later changes."""
        merge = revisions.find_state_change(self._transaction.flush(), current.record.id, RecordState.MERGED)
        effects = load_merge_effects(self._transaction.flush(), merge)
        require_undoable(self._transaction.flush(), merge, effects, restored)
        writes: list[PendingWrite] = [(current, self._with_update_time(self._redirect_merged(restored)), Action.REVERT)]
        for record_id, change in change_log.find_latest(self._transaction.flush(), sorted(effects)).items():
            effect, latest = effects[record_id], change.to_record()
            after = effect.restore_details(self._apply_draft(latest, effect.build_undo_draft(latest)))
            writes.append((VersionedRecord(latest, change), after, Action.REVERT))
        return self._save_all(writes)[0]

    def _redirect_merged(self, record: Record, restored: Iterable[str] = ()) -> Record:
        """Replace references to merged records, unless they are being restored, by their survivors.

        Relations to itself are removed.
        """
        survivors = lookup.resolve_survivors(
            self._transaction.flush(), list_referenced_ids(record), [record.id, *restored]
        )
        after = redirect_merged_targets(record, survivors)
        kept = frozenset(relation for relation in after.relations if relation.target != record.id)
        return after.with_relations(kept)

    def _build_record(self, collection: Collection, draft: Mapping[str, Any]) -> Record:
        author = self._proposal.author if self._proposal else self._actor
        local_id = self._keep_number(collection, draft["id"]) if "id" in draft else self._mint(collection)
        empty = Record(collection, qualify_id(collection.vocabulary, local_id))
        record = fill_record(empty, draft, author, self._get_definition_author(draft), self._at)
        has_schemes = collection.relation_predicates.get(_IN_SCHEME) == "skos:inScheme"
        return self._join_only_scheme(record) if has_schemes else record

    def _join_only_scheme(self, record: Record) -> Record:
        """Return a new record, in the concept scheme of its vocabulary if it names none and there is only one."""
        collection = record.collection
        schemes = collection.relation_types[_IN_SCHEME].targets[collection.name]
        if collection.name in schemes or any(relation.relation == _IN_SCHEME for relation in record.relations):
            return record
        found = records.list_published_ids(self._transaction.flush(), schemes, "", 2)
        if len(found) != 1:
            return record
        return record.with_relations(record.relations | {Relation(record.id, _IN_SCHEME, found[0])})

    def _mint(self, collection: Collection) -> str:
        """Mint the id of a new record; raise Conflict if the rule of the vocabulary has no number left."""
        vocabulary = collection.vocabulary
        rule = VOCABULARIES[vocabulary].minting_rule
        if rule is None:
            return mint_id((*collection.id_prefixes, collection.local_name)[0])
        if rule.kind is MintingKind.NUMBER and vocabulary not in self._last_numbers:
            self._last_numbers[vocabulary] = change_log.find_last_number(self._transaction, vocabulary, rule)
        local_id = mint(rule, self._last_numbers.get(vocabulary))
        self._last_numbers[vocabulary] = rule.parse_number(local_id)
        return local_id

    def _keep_number(self, collection: Collection, local_id: str) -> str:
        """Return an id that an author gives. Its number is not minted again."""
        rule, last_number = (
            VOCABULARIES[collection.vocabulary].minting_rule,
            self._last_numbers.get(collection.vocabulary),
        )
        number = rule.parse_number(local_id) if rule else None
        if number is not None and last_number is not None:
            self._last_numbers[collection.vocabulary] = max(number, last_number)
        return local_id

    def _require_permission(self, collection: Collection) -> None:
        self._caller.require(Permission.PUBLISH, collection.vocabulary)

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
        return self._save_all([(current, after, action)])[0]

    def _save_all(self, writes: Sequence[PendingWrite]) -> list[VersionedRecord]:
        entries, before, added, removed = [], list[Record](), set[Relation](), set[Relation]()
        for previous, after, action in writes:
            self._require_permission(after.collection)
            previous_relations: frozenset[Relation] = frozenset()
            if previous:
                before.append(previous.record)
                previous_relations = previous.record.relations
            added |= after.relations - previous_relations
            removed |= previous_relations - after.relations
            entries.append(change_log.RecordWrite(after, previous.version + 1 if previous else 1, action))
        origin = ProposalOrigin(self._proposal.id, self._proposal.author) if self._proposal else None
        changes = change_log.save_records(
            self._transaction, entries, actor=self._actor, at=self._at, origin=origin, summary=self._summary
        )
        _require_size(entries, changes)
        change_log.update_relations(self._transaction, added, removed)
        vocabularies.update_derived_rows(self._transaction, before, [entry.record for entry in entries])
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
                source, target = get_local_id(relation.source), get_local_id(relation.target)
                raise Conflict(f"{source} {relation.relation} {target} would create a cycle.")


def _require_size(entries: Sequence[change_log.RecordWrite], changes: Sequence[Change]) -> None:
    """Raise InvalidInput if a record is too large. What was written of it is then rolled back."""
    for entry, change in zip(entries, changes, strict=True):
        problem = find_size_problem(entry.record.statements, change.document)
        if problem:
            raise InvalidInput("Record is too large.", [FieldProblem("", f"{problem}.", subject=entry.record.local_id)])
