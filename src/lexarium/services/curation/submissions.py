"""What anyone with a token writes: published where the caller may, else a proposal."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.edit import apply_merge_patch, to_draft
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.labels import parse_aliases
from lexarium.domain.proposal import Proposal
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.validation import validate_valpha_draft
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.draft_checks import find_reference_problems
from lexarium.services.curation.proposals import propose_edit, propose_patch, propose_record, propose_retirement
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.lookup import VersionedRecord
from lexarium.store.transaction import Transaction
from lexarium.store.write_queue import WriteTask


def submit_record(
    transaction: Transaction, caller: Caller, collection: Collection, draft: Mapping[str, Any]
) -> VersionedRecord | Proposal:
    """Make a record of a draft of v1."""
    if caller.has_permission(Permission.PUBLISH):
        return RecordWriter(transaction, caller).create(collection, draft)
    return propose_record(transaction, caller, collection, draft)


def submit_update(
    transaction: Transaction, caller: Caller, current: VersionedRecord, draft: Mapping[str, Any]
) -> VersionedRecord | Proposal:
    """Put a whole draft of v1 in place of what a record has that was read just now."""
    if caller.has_permission(Permission.PUBLISH):
        return RecordWriter(transaction, caller).update(current, draft)
    return propose_edit(transaction, caller, current, draft)


def submit_patch(
    transaction: Transaction, caller: Caller, current: VersionedRecord, patch: Mapping[str, Any]
) -> VersionedRecord | Proposal:
    """Apply a JSON merge patch to the draft of a record that was read just now."""
    return submit_update(transaction, caller, current, apply_merge_patch(to_draft(current.record), patch))


def submit_relation(
    transaction: Transaction, caller: Caller, current: VersionedRecord, type_name: str, target: str
) -> VersionedRecord | Proposal:
    """Add a relation to a record that was read just now."""
    if caller.has_permission(Permission.PUBLISH):
        return RecordWriter(transaction, caller).add_relation(current, type_name, target)
    targets = [*current.record.relation_targets.get(type_name, []), target]
    return propose_patch(transaction, caller, current, {"relations": {type_name: targets}})


def submit_relation_removal(
    transaction: Transaction, caller: Caller, current: VersionedRecord, type_name: str, target: str
) -> VersionedRecord | Proposal:
    """Take a relation away from a record that was read just now."""
    if caller.has_permission(Permission.PUBLISH):
        return RecordWriter(transaction, caller).remove_relation(current, type_name, target)
    targets = [existing for existing in current.record.relation_targets.get(type_name, []) if existing != target]
    return propose_patch(transaction, caller, current, {"relations": {type_name: targets or None}})


def submit_retirement(
    transaction: Transaction, caller: Caller, current: VersionedRecord, replaced_by: str | None
) -> VersionedRecord | Proposal:
    """Take a record out of use that was read just now."""
    if caller.has_permission(Permission.PUBLISH):
        return RecordWriter(transaction, caller).retire(current, replaced_by)
    return propose_retirement(transaction, caller, current, replaced_by)


def build_valpha_submission(
    caller: Caller, collection: Collection, values: Mapping[str, Any], *, from_form: bool = False
) -> WriteTask[VersionedRecord | Proposal]:
    """The work that makes a record of what POST of v-alpha was given: published where the caller may, else a proposal.

    It raises `Invalid` with every problem. `text` says that the values come from a form.
    """
    caller.require(Permission.PROPOSE)

    def task(transaction: Transaction) -> VersionedRecord | Proposal:
        draft = _check_valpha_draft(transaction, collection, values, from_form=from_form)
        if caller.has_permission(Permission.PUBLISH):
            return RecordWriter(transaction, caller).create_valpha(collection, draft)
        return propose_record(transaction, caller, collection, _to_v1_draft(draft))

    return task


def _check_valpha_draft(
    transaction: Transaction, collection: Collection, values: Mapping[str, Any], *, from_form: bool
) -> Fields:
    problems: list[FieldProblem] = []
    draft: Fields = {}
    try:
        draft = validate_valpha_draft(collection, values, from_form=from_form)
    except InvalidInput as error:
        problems += error.problems
    invalid_fields = {problem.field for problem in problems}
    problems += find_reference_problems(
        transaction, collection, {name: values[name] for name in values if name not in invalid_fields}, {}
    )
    if problems:
        raise InvalidInput(f"This is not a valid {collection.name}.", problems)
    return draft


def _to_v1_draft(draft: Fields) -> Fields:
    """A draft of v-alpha as one of v1."""
    aliases = [alias.model_dump() for alias in parse_aliases(draft.get("alias", ""))]
    return {**{name: value for name, value in draft.items() if name != "alias"}, "aliases": aliases}
