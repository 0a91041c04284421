"""Records as v1 shows them."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from lexarium.domain.changes import Change, Whole
from lexarium.domain.collections import Collection
from lexarium.domain.editing import Difference
from lexarium.domain.proposals import Proposal
from lexarium.domain.stamps import text_of
from lexarium.search.annotator import Mention
from lexarium.service.finding import Found, Hit, Suggestion


def record_fields(collection: Collection) -> tuple[str, ...]:
    """The fields of a record of this collection, as `record_view` has them."""
    first = ("id", "collection", "version", "state", "replaced_by")
    own = (name for name in collection.fields if name != "id")
    return (*first, *own, "aliases", "sources", "relations", "updated", "updated_by")


def record_view(change: Change, known: Whole | None = None) -> dict[str, Any]:
    """A record at a version; `known` is what the change made of it, where that need not be read from it."""
    whole = known or change.whole()
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


def annotation_views(mentions: Iterable[Mention]) -> Iterator[dict[str, Any]]:
    """Each mention, once for each term that it may mean; one at a time, since they may be very many."""
    return (
        {"start": start, "end": end, "text": text, "id": term.id, "name": term.name, "collection": term.collection}
        for start, end, text, terms in mentions
        for term in terms
    )


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


def found_view(found: Found) -> dict[str, Any]:
    """What a search found."""
    return {
        "hits": [hit_view(hit) for hit in found.hits],
        "total": found.total,
        "facets": found.facets,
        "class_names": found.class_names,
        "did_you_mean": found.did_you_mean,
    }


def hit_view(hit: Hit) -> dict[str, Any]:
    """A hit of a search."""
    view = {
        "id": hit.id,
        "name": hit.name,
        "collection": hit.collection,
        "state": hit.state,
        "replaced_by": hit.replaced_by,
        "score": hit.score,
        "matched": {"field": hit.field, "text": hit.text, "kind": hit.tier.kind},
        "highlight": [span._asdict() for span in hit.highlight],
    }
    return view if hit.explanation is None else {**view, "explanation": hit.explanation}


def suggestion_view(suggestion: Suggestion) -> dict[str, Any]:
    """A completion."""
    return {
        "id": suggestion.id,
        "name": suggestion.name,
        "collection": suggestion.collection,
        "text": suggestion.text,
        "highlight": [span._asdict() for span in suggestion.highlight],
    }
