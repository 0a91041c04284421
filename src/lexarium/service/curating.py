"""What anyone with a token writes: published where the caller may, else a proposal."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.aliases import split
from lexarium.domain.collections import Collection
from lexarium.domain.drafts import checked_valpha
from lexarium.domain.editing import draft_of, merge_patch
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.proposals import Proposal
from lexarium.domain.records import Fields
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, dangling
from lexarium.service.proposals import propose_edit, propose_patch, propose_record, propose_retirement
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Work


def create(
    transaction: Transaction, caller: Caller, collection: Collection, given: Mapping[str, Any]
) -> Saved | Proposal:
    """Make a record of a draft of v1."""
    if caller.may(Deed.PUBLISH):
        return Desk(transaction, caller).create(collection, given)
    return propose_record(transaction, caller, collection, given)


def edit(transaction: Transaction, caller: Caller, before: Saved, given: Mapping[str, Any]) -> Saved | Proposal:
    """Put a whole draft of v1 in place of what a record has that was read just now."""
    if caller.may(Deed.PUBLISH):
        return Desk(transaction, caller).edit(before, given)
    return propose_edit(transaction, caller, before, given)


def patch(transaction: Transaction, caller: Caller, before: Saved, given: Mapping[str, Any]) -> Saved | Proposal:
    """Apply a JSON merge patch to the draft of a record that was read just now."""
    return edit(transaction, caller, before, merge_patch(draft_of(before.whole), given))


def relate(transaction: Transaction, caller: Caller, before: Saved, relation: str, target: str) -> Saved | Proposal:
    """Add a relation to a record that was read just now."""
    if caller.may(Deed.PUBLISH):
        return Desk(transaction, caller).relate(before, relation, target)
    targets = [*before.whole.relations.get(relation, []), target]
    return propose_patch(transaction, caller, before, {"relations": {relation: targets}})


def unrelate(transaction: Transaction, caller: Caller, before: Saved, relation: str, target: str) -> Saved | Proposal:
    """Take a relation away from a record that was read just now."""
    if caller.may(Deed.PUBLISH):
        return Desk(transaction, caller).unrelate(before, relation, target)
    targets = [each for each in before.whole.relations.get(relation, []) if each != target]
    return propose_patch(transaction, caller, before, {"relations": {relation: targets or None}})


def retire(transaction: Transaction, caller: Caller, before: Saved, replaced_by: str | None) -> Saved | Proposal:
    """Take a record out of use that was read just now."""
    if caller.may(Deed.PUBLISH):
        return Desk(transaction, caller).retire(before, replaced_by)
    return propose_retirement(transaction, caller, before, replaced_by)


def creation(
    caller: Caller, collection: Collection, given: Mapping[str, Any], *, text: bool = False
) -> Work[Saved | Proposal]:
    """The work that makes a record of what POST of v-alpha was given: published where the caller may, else a proposal.

    It raises `Invalid` with every problem. `text` says that the values come from a form.
    """
    caller.require(Deed.PROPOSE)

    def work(transaction: Transaction) -> Saved | Proposal:
        draft = _checked(transaction, collection, given, text=text)
        if caller.may(Deed.PUBLISH):
            return Desk(transaction, caller).create_valpha(collection, draft)
        return propose_record(transaction, caller, collection, _as_v1(draft))

    return work


def _checked(transaction: Transaction, collection: Collection, given: Mapping[str, Any], *, text: bool) -> Fields:
    problems: list[Problem] = []
    draft: Fields = {}
    try:
        draft = checked_valpha(collection, given, text=text)
    except Invalid as error:
        problems += error.problems
    wrong = {problem.field for problem in problems}
    problems += dangling(transaction, collection, {name: given[name] for name in given if name not in wrong}, {})
    if problems:
        raise Invalid(f"This is not a valid {collection.name}.", problems)
    return draft


def _as_v1(draft: Fields) -> Fields:
    """A draft of v-alpha as one of v1."""
    aliases = [alias.model_dump() for alias in split(draft.get("alias", ""))]
    return {**{name: value for name, value in draft.items() if name != "alias"}, "aliases": aliases}
