"""Writing records, as people do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lexarium.domain import drafts
from lexarium.domain.accounts import Proposal
from lexarium.domain.changes import Action, State
from lexarium.domain.collections import Collection
from lexarium.domain.editing import created
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.identifiers import mint
from lexarium.domain.records import Fields
from lexarium.domain.stamps import now
from lexarium.service.access import Caller, Deed
from lexarium.store import accounts, log, records
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction


@dataclass(frozen=True)
class Created:
    """A record that is published from now on."""

    id: str
    body: bytes


@dataclass(frozen=True)
class Proposed:
    """A proposal that waits for a curator."""

    id: str
    fields: Fields


def create(
    database: Database, caller: Caller, collection: Collection, given: Mapping[str, Any], *, text: bool = False
) -> Created | Proposed:
    """Make a record of what was given: published where the caller may, else a proposal.

    Raises `Invalid` with every problem. `text` says that the values come from a form.
    """
    caller.require(Deed.PROPOSE)

    def work(transaction: Transaction) -> Created | Proposed:
        draft = _checked(transaction, collection, given, text=text)
        at = now()
        if not caller.may(Deed.PUBLISH):
            return _propose(transaction, caller, collection, draft, at)
        whole = created(collection, draft, caller.account.id, at)
        log.save(transaction, [log.Entry(whole, 1, Action.CREATE)], actor=caller.account.id, at=at)
        return Created(whole.id, whole.rendering.body)

    return database.run(work)


def _checked(transaction: Transaction, collection: Collection, given: Mapping[str, Any], *, text: bool) -> Fields:
    """The draft, held to the rules, with every record it refers to looked up. All problems at once."""
    problems: list[Problem] = []
    draft: Fields = {}
    try:
        draft = drafts.checked_valpha(collection, given, text=text)
    except Invalid as error:
        problems += error.problems
    for name, refers in collection.references.items():
        # What is not even text has been found wrong above.
        value = given.get(name)
        if not refers.collection or not isinstance(value, str) or not value or name in {p.field for p in problems}:
            continue
        found = records.find(transaction.connection, value)
        if found is None or found.collection != refers.collection or found.state != State.PUBLISHED:
            problems.append(Problem(name, f"names no {refers.collection} that is in the catalogue."))
    if problems:
        raise Invalid(f"This is not a valid {collection.name}.", problems)
    return draft


def _propose(transaction: Transaction, caller: Caller, collection: Collection, draft: Fields, at: int) -> Proposed:
    proposal = Proposal(mint("prp"), collection.name, orjson.dumps(draft), caller.account.id, at)
    accounts.add_proposal(transaction, proposal)
    return Proposed(proposal.id, draft)
