"""Records as v1 shows them."""

from typing import Any

import orjson

from lexarium.domain.changes import Change
from lexarium.domain.editing import Difference
from lexarium.domain.proposals import Proposal
from lexarium.domain.stamps import text_of


def record_view(change: Change) -> dict[str, Any]:
    """A record at a version."""
    whole = change.whole()
    return {
        "id": whole.id,
        "collection": change.collection,
        "version": change.version,
        "state": whole.state,
        "replaced_by": whole.replaced_by,
        **whole.fields,
        "aliases": [alias.model_dump() for alias in whole.alias_list],
        "sources": list(whole.sources),
        "relations": whole.relations,
        "updated": text_of(change.at),
        "updated_by": change.actor,
    }


def change_view(change: Change) -> dict[str, Any]:
    """A change, as the feed tells it."""
    return {
        "seq": change.seq,
        "at": text_of(change.at),
        "actor": change.actor,
        **_proposed(change),
        "action": change.action,
        "collection": change.collection,
        "id": change.record,
        "version": change.version,
        "record": record_view(change),
    }


def version_view(change: Change) -> dict[str, Any]:
    """A change, as a record's history lists it."""
    return {
        "version": change.version,
        "seq": change.seq,
        "at": text_of(change.at),
        "actor": change.actor,
        **_proposed(change),
        "action": change.action,
        "state": change.whole().state,
    }


def _proposed(change: Change) -> dict[str, str | None]:
    """The proposal that a change goes back to, and whose it was."""
    proposed = change.proposed()
    if proposed is None:
        return {"proposal": None, "proposed_by": None}
    return {"proposal": proposed.proposal, "proposed_by": proposed.by}


def difference_view(difference: Difference) -> dict[str, Any]:
    """One field that differs."""
    return {"field": difference.field, "from": difference.before, "to": difference.after}


def proposal_view(proposal: Proposal) -> dict[str, Any]:
    """A proposal."""
    return {
        "id": proposal.id,
        "collection": proposal.collection,
        "record": proposal.record,
        "base_version": proposal.base_version,
        "change": orjson.loads(proposal.change),
        "by": proposal.author,
        "at": text_of(proposal.made),
        "state": proposal.state,
        "decided_by": proposal.decider,
        "decided_at": None if proposal.decided is None else text_of(proposal.decided),
        "reason": proposal.reason,
    }
