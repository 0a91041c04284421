"""JSON of records, changes, proposals and search results (v1, webhooks, CLI)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from lexarium.domain.change import Change
from lexarium.domain.edit import FieldDiff, nest_fields
from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.statement import dump_statements
from lexarium.domain.timestamps import format_timestamp
from lexarium.search.annotator import Mention
from lexarium.services.search.record_search import LabelSuggestion, RecordHit, SearchResult


def list_record_fields(collection: Collection) -> tuple[str, ...]:
    """Return the keys of a serialized record of a collection, in order."""
    leading = ("id", "collection", "version", "state", "replaced_by")
    own_fields = (name for name in collection.core_fields if name != "id")
    return (*leading, *own_fields, "fields", "aliases", "sources", "relations", "statements", "updated", "updated_by")


def serialize_record(change: Change, record: Record | None = None) -> dict[str, Any]:
    """Serialize a record at a version; pass the record if it is parsed already."""
    record = record or change.to_record()
    return {
        "id": record.id,
        "collection": change.collection,
        "version": change.version,
        "state": record.state,
        "replaced_by": record.replaced_by,
        **nest_fields(record.collection, record.fields),
        "aliases": [alias.model_dump() for alias in record.aliases],
        "sources": list(record.sources),
        "relations": record.relation_targets,
        "statements": dump_statements(record.other_statements),
        "updated": format_timestamp(change.at),
        "updated_by": change.actor,
    }


def serialize_change(change: Change) -> dict[str, Any]:
    """Serialize a change of the change feed."""
    return {
        "seq": change.seq,
        "at": format_timestamp(change.at),
        "actor": change.actor,
        **_serialize_origin(change),
        "action": change.action,
        "collection": change.collection,
        "id": change.record_id,
        "version": change.version,
        "record": serialize_record(change),
    }


def serialize_version(change: Change) -> dict[str, Any]:
    """Serialize a change of a record's history."""
    return {
        "version": change.version,
        "seq": change.seq,
        "at": format_timestamp(change.at),
        "actor": change.actor,
        **_serialize_origin(change),
        "action": change.action,
        "state": change.to_record().state,
    }


def _serialize_origin(change: Change) -> dict[str, str | None]:
    origin = change.parse_origin()
    return {"proposal": origin.proposal if origin else None, "proposed_by": origin.by if origin else None}


def serialize_difference(diff: FieldDiff) -> dict[str, Any]:
    """Serialize one field that differs."""
    return {"field": diff.field, "from": diff.before, "to": diff.after}


def iter_annotations(mentions: Iterable[Mention]) -> Iterator[dict[str, Any]]:
    """Serialize mentions lazily, one item for each term that a mention may mean."""
    return (
        {
            "start": start,
            "end": end,
            "text": text,
            "id": get_local_id(term.id),
            "name": term.name,
            "vocabulary": split_id(term.id)[0],
            "collection": _get_local_name(term.collection),
        }
        for start, end, text, terms in mentions
        for term in terms
    )


def _get_local_name(collection: str) -> str:
    return collection.rpartition("/")[2]


def serialize_proposal(proposal: Proposal) -> dict[str, Any]:
    """Serialize a proposal."""
    return {
        "id": proposal.id,
        "collection": proposal.collection,
        "record": proposal.record,
        "base_version": proposal.base_version,
        "change": nest_fields(COLLECTIONS[proposal.collection], orjson.loads(proposal.change)),
        "by": proposal.author,
        "at": format_timestamp(proposal.made),
        "state": proposal.state,
        "decided_by": proposal.decider,
        "decided_at": None if proposal.decided is None else format_timestamp(proposal.decided),
        "reason": proposal.reason,
    }


def serialize_search_result(result: SearchResult) -> dict[str, Any]:
    """Serialize the result of a search."""
    return {
        "hits": [serialize_hit(hit) for hit in result.hits],
        "total": result.total,
        "facets": {
            "vocabulary": result.facets["vocabulary"],
            "collection": _add_counts(result.facets["collection"], _get_local_name),
            "class": _add_counts(result.facets["class"], get_local_id),
            "state": result.facets["state"],
        },
        "class_names": {get_local_id(class_id): name for class_id, name in result.class_names.items()},
        "did_you_mean": result.did_you_mean,
    }


def _add_counts(counts: Mapping[str, int], localize: Callable[[str], str]) -> dict[str, int]:
    """Return counts by local names, those of several vocabularies together."""
    local_counts: dict[str, int] = {}
    for name, count in counts.items():
        local_name = localize(name)
        local_counts[local_name] = local_counts.get(local_name, 0) + count
    return local_counts


def serialize_hit(hit: RecordHit) -> dict[str, Any]:
    """Serialize a hit of a search."""
    content = {
        "id": hit.local_id,
        "name": hit.name,
        "vocabulary": hit.vocabulary,
        "collection": _get_local_name(hit.collection),
        "state": hit.state,
        "replaced_by": None if hit.replaced_by is None else get_local_id(hit.replaced_by),
        "score": hit.score,
        "matched": {"field": hit.field, "text": hit.text, "language": hit.language, "kind": hit.tier.api_name},
        "highlight": [span._asdict() for span in hit.highlight],
    }
    return content if hit.explanation is None else {**content, "explanation": hit.explanation}


def serialize_suggestion(suggestion: LabelSuggestion) -> dict[str, Any]:
    """Serialize a suggested completion."""
    vocabulary, local_id = split_id(suggestion.id)
    return {
        "id": local_id,
        "name": suggestion.name,
        "vocabulary": vocabulary,
        "collection": _get_local_name(suggestion.collection),
        "text": suggestion.text,
        "language": suggestion.language,
        "highlight": [span._asdict() for span in suggestion.highlight],
    }
