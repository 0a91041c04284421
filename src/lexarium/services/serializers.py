"""JSON of records, changes, proposals and search results (v1, webhooks, CLI)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from lexarium.domain.change import Change
from lexarium.domain.comment import CommentThread
from lexarium.domain.editing.edit import FieldDiff, nest_fields
from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.schema.collections import get_collection
from lexarium.domain.text.languages import format_tag
from lexarium.domain.text.timestamps import format_timestamp
from lexarium.search.annotator import Mention
from lexarium.services.record_serializer import DEFAULT_PRESENTATION, Presentation, serialize_record
from lexarium.services.search.record_search import LabelSuggestion, RecordHit, SearchResult


def _localize(record_id: str | None) -> str | None:
    return None if record_id is None else get_local_id(record_id)


def serialize_change(change: Change, presentation: Presentation = DEFAULT_PRESENTATION) -> dict[str, Any]:
    """Serialize a change of the change feed."""
    return {
        "seq": change.seq,
        "at": format_timestamp(change.at),
        "actor": change.actor,
        **_serialize_origin(change),
        "summary": change.parse_summary(),
        "action": change.action,
        "vocabulary": change.vocabulary,
        "collection": get_collection(change.collection).local_name,
        "id": get_local_id(change.record_id),
        "version": change.version,
        "record": serialize_record(change, presentation),
    }


def serialize_version(change: Change) -> dict[str, Any]:
    """Serialize a change of a record's history."""
    return {
        "version": change.version,
        "seq": change.seq,
        "at": format_timestamp(change.at),
        "actor": change.actor,
        **_serialize_origin(change),
        "summary": change.parse_summary(),
        "action": change.action,
        "state": change.to_record().state,
    }


def _serialize_origin(change: Change) -> dict[str, str | None]:
    origin = change.parse_origin()
    return {"proposal": origin.proposal if origin else None, "proposed_by": origin.by if origin else None}


def _serialize_place(collection_name: str) -> dict[str, str]:
    collection = get_collection(collection_name)
    return {"vocabulary": collection.vocabulary, "collection": collection.local_name}


def serialize_difference(diff: FieldDiff) -> dict[str, Any]:
    """Serialize one field that differs."""
    return {"field": diff.field, "from": diff.before, "to": diff.after}


def iter_annotations(mentions: Iterable[Mention]) -> Iterator[dict[str, Any]]:
    """Serialize mentions lazily, one item for each term that a mention may mean."""
    places: dict[str, dict[str, str]] = {}
    for start, end, text, terms in mentions:
        for term_id, name, collection in terms:
            place = places.get(collection) or places.setdefault(collection, _serialize_place(collection))
            yield {"start": start, "end": end, "text": text, "id": get_local_id(term_id), "name": name, **place}


def _get_local_name(collection: str) -> str:
    return collection.rpartition("/")[2]


def serialize_proposal(proposal: Proposal) -> dict[str, Any]:
    """Serialize a proposal."""
    return {
        "id": proposal.id,
        **_serialize_place(proposal.collection),
        "record": _localize(proposal.record),
        "base_version": proposal.base_version,
        "change": nest_fields(get_collection(proposal.collection), orjson.loads(proposal.change)),
        "by": proposal.author,
        "at": format_timestamp(proposal.made),
        "state": proposal.state,
        "decided_by": proposal.decider,
        "decided_at": None if proposal.decided is None else format_timestamp(proposal.decided),
        "summary": proposal.summary,
        "reason": proposal.reason,
        "amended": proposal.amended,
    }


def serialize_thread(thread: CommentThread) -> dict[str, Any]:
    """Serialize a thread of comments."""
    slug, local_id = split_id(thread.record)
    return {
        "id": thread.id,
        "vocabulary": slug,
        "record": local_id,
        "closed": thread.is_closed,
        "comments": [
            {
                "id": comment.id,
                "by": comment.author,
                "at": format_timestamp(comment.at),
                "action": comment.action,
                "text": comment.text,
            }
            for comment in thread.comments
        ],
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
            "language": _add_counts(result.facets["language"], format_tag),
            "state": result.facets["state"],
        },
        "class_names": {get_local_id(class_id): name for class_id, name in result.class_names.items()},
        "did_you_mean": result.did_you_mean,
        "partial": result.is_partial,
        "nearest": [
            {"id": local_id, "name": name, "vocabulary": slug}
            for name, (slug, local_id) in ((item.name, split_id(item.record_id)) for item in result.nearest)
        ],
    }


HIT_COLUMNS = (
    *("vocabulary", "collection", "id", "name", "state", "replaced_by"),
    *("matched_field", "matched_text", "matched_language", "matched_kind", "score"),
)
"""Columns of a table of hits."""


def list_hit_rows(result: SearchResult) -> Iterator[list[object]]:
    """Yield the rows of a table of hits, the first with the names of the columns."""
    yield [*HIT_COLUMNS]
    for hit in map(serialize_hit, result.hits):
        values = {**hit, **{f"matched_{name}": value for name, value in hit["matched"].items()}}
        yield ["" if values[name] is None else values[name] for name in HIT_COLUMNS]


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
        "id": get_local_id(hit.id),
        "name": hit.name,
        **_serialize_place(hit.collection),
        "state": hit.state,
        "replaced_by": _localize(hit.replaced_by),
        "score": hit.score,
        "matched": {"field": hit.field, "text": hit.text, "language": hit.language, "kind": hit.tier.api_name},
        "highlight": [span._asdict() for span in hit.highlight],
    }
    return content if hit.explanation is None else {**content, "explanation": hit.explanation}


def serialize_suggestion(suggestion: LabelSuggestion) -> dict[str, Any]:
    """Serialize a suggested completion."""
    return {
        "id": get_local_id(suggestion.id),
        "name": suggestion.name,
        **_serialize_place(suggestion.collection),
        "text": suggestion.text,
        "language": suggestion.language,
        "highlight": [span._asdict() for span in suggestion.highlight],
    }
