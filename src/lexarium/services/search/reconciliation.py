"""Reconciling: which records are meant by names, and by what else is known, in a table from elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from lexarium.domain.errors import NotFound, RecordMerged
from lexarium.domain.labels import parse_aliases
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import DEFAULT_SEARCH_COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.search.analysis.folding import MAX_FOLDED_KEY_CHARS, fold
from lexarium.search.documents import STOP_WORDS
from lexarium.search.ranking import Tier
from lexarium.services.search.properties import ALIAS, DEFINITION, ID, Entity, Property, PropertyValue, load_entities
from lexarium.services.search.record_search import (
    MAX_QUERY_CHARS,
    LabelSuggestion,
    RecordHit,
    RecordSearch,
    SearchQuery,
    SearchResult,
)
from lexarium.store.database import Database
from lexarium.store.position import Snapshot

MAX_BATCH_QUERIES = 50
"""How many queries may be asked at once."""
MAX_CANDIDATES = 100
"""How many candidates of a query are told."""

SCORES: dict[Tier, tuple[float, float]] = {
    Tier.ID: (100, 100),
    Tier.NAME: (100, 100),
    Tier.FOLDED: (97, 97),
    Tier.ALIAS: (93, 93),
    Tier.BEGINNING: (75, 90),
    Tier.NAME_WORDS: (60, 75),
    Tier.ALIAS_WORDS: (50, 60),
    Tier.TYPO: (35, 50),
    Tier.DEFINITION_WORDS: (20, 35),
    Tier.TYPO_WORDS: (5, 20),
}
"""The scores that a name can have, by how it matched: from the worst to the best of the tier."""
_RELATED_SCORE = 50.0
"""The score of a record that was found by what else is known of it."""
_PROPERTY_WEIGHT = 0.4
"""How far what else is known can raise or lower a score."""
MATCH, UNKNOWN, MISMATCH = 1.0, 0.5, 0.0
_MIN_CANDIDATES = 30
"""How many candidates are weighed where more is known than a name, however few are wanted."""
_MAX_SEARCHES = 5
"""How many texts of a query are searched for."""
_MAX_HOPS = 20


class PropertyConstraint:
    """What is known of a property: one of these values, or several."""

    def __init__(self, constrained_property: Property, texts: Sequence[str]) -> None:
        self.property = constrained_property
        if constrained_property is ALIAS:  # several are often written as one
            texts = [*texts, *(alias.text for text in texts for alias in parse_aliases(text))]
        self.texts = [text for text in dict.fromkeys(text.strip()[:MAX_QUERY_CHARS] for text in texts) if text]
        folded_texts = [fold(text) for text in self.texts]
        self._keys = {folded_text.key for folded_text in folded_texts} - {""}
        self._words = {word for folded_text in folded_texts for word in folded_text.words} - STOP_WORDS

    def score(self, entity: Entity) -> float:
        """How a record agrees: 1 fully, 0 not at all, and a half where it says nothing of it."""
        if self.property is DEFINITION:
            return self._compare_definitions(entity.definition_words)
        values = self.property.values(entity)
        if any(map(self._matches_value, values)) or (
            self.property is ALIAS and self._matches_value(PropertyValue(entity.name))
        ):
            return MATCH
        return MISMATCH if values else UNKNOWN

    def _matches_value(self, value: PropertyValue) -> bool:
        return value.id in self.texts or fold(value.text).key in self._keys

    def _compare_definitions(self, words: frozenset[str]) -> float:
        """How many words two definitions share. The root of it, since the same is said in other words."""
        if not words or not self._words:
            return UNKNOWN
        return round(sqrt(2 * len(words & self._words) / (len(words) + len(self._words))), 4)


@dataclass(frozen=True)
class ReconcileQuery:
    """What is known of a record that is meant."""

    text: str = ""
    """Its name, more or less. Empty where only other things are known."""
    collections: tuple[str, ...] = DEFAULT_SEARCH_COLLECTIONS
    limit: int = 10
    constraints: tuple[PropertyConstraint, ...] = ()


@dataclass(frozen=True)
class ReconcileCandidate:
    """A record that may be meant."""

    entity: Entity
    score: float
    """From 100 for the name itself down to 0."""
    match: bool
    """Whether no other can be meant: its label is what was asked, no other record's is, and nothing contradicts."""
    label_score: float
    """The score of its name or alias alone."""
    matched_alias: str
    """The alias by which it was found, if it was one."""
    property_scores: dict[str, float]
    """How it agrees with what else is known, by property."""


@dataclass(frozen=True)
class EntitySuggestion:
    """A record that someone who types may mean."""

    suggestion: LabelSuggestion
    entity: Entity


class _PlannedSearch(NamedTuple):
    query: SearchQuery
    via_property: Property | None = None
    """None where the hits themselves are candidates; else those that have a hit as a value of this property are."""


class _LabelMatch(NamedTuple):
    score: float
    hit: RecordHit | None = None
    is_unique: bool = False
    """Whether no other record has what was asked as its label."""


class Reconciler:
    """Reconciles with one catalogue."""

    def __init__(self, database: Database, record_search: RecordSearch) -> None:
        self._database = database
        self._record_search = record_search

    def find_candidates(self, queries: Sequence[ReconcileQuery]) -> list[list[ReconcileCandidate]]:
        """The candidates of each query, the best first."""
        searches = [list(_plan_searches(query)) for query in queries]
        results = iter(self._record_search.search_many([search.query for group in searches for search in group]))
        with self._database.read() as snapshot:
            labels = [
                _score_labels(snapshot, query, [(search, next(results)) for search in group])
                for query, group in zip(queries, searches, strict=True)
            ]
            record_ids = sorted({record_id for group in labels for record_id in group})
            with_related = any(constraint.property.target for query in queries for constraint in query.constraints)
            entities_by_id = load_entities(snapshot, record_ids, with_related=with_related)
        return [_rank(query, group, entities_by_id) for query, group in zip(queries, labels, strict=True)]

    def suggest_entities(
        self, prefix: str, collections: Sequence[str], offset: int, limit: int
    ) -> list[EntitySuggestion]:
        """The records that someone may mean who types, the best first, after the first few."""
        suggestions = self._record_search.suggest(prefix[:MAX_QUERY_CHARS], collections, offset + limit)[offset:]
        with self._database.read() as snapshot:
            entities_by_id = load_entities(snapshot, [suggestion.id for suggestion in suggestions], with_related=False)
        return [
            EntitySuggestion(suggestion, entities_by_id[suggestion.id])
            for suggestion in suggestions
            if suggestion.id in entities_by_id
        ]

    def extend(
        self, record_ids: Sequence[str], properties: Sequence[Property]
    ) -> dict[str, dict[str, list[PropertyValue]]]:
        """The values of these properties, by record and property. A merged record has its survivor's; others none."""
        with_related = any(prop.target for prop in properties)
        with self._database.read() as snapshot:
            entities_by_id = _resolve_merged(snapshot, record_ids, with_related=with_related)
        return {
            record_id: {
                prop.id: prop.values(entities_by_id[record_id]) if record_id in entities_by_id else []
                for prop in properties
            }
            for record_id in record_ids
        }

    def get_entity(self, record_id: str) -> Entity:
        """A record with what it is related to, also a retired one. Raises where it is not there, or merged."""
        with self._database.read() as snapshot:
            entities_by_id = (
                {} if find_unstorable_char(record_id) else load_entities(snapshot, [record_id], with_related=True)
            )
        if record_id not in entities_by_id:
            raise NotFound(f"There is no record with the id {record_id!r}.")
        record = entities_by_id[record_id].record
        if record.state == RecordState.MERGED and record.replaced_by is not None:
            raise RecordMerged(record_id, record.replaced_by)
        return entities_by_id[record_id]


def format_description(entity: Entity, matched_alias: str = "", max_chars: int = 200) -> str:
    """What a record is, in few words; first the alias by which it was found."""
    text = " ".join(entity.record.definition.split())
    if len(text) > max_chars:
        text = text[:max_chars].rpartition(" ")[0] + " …"
    return f"Also called {matched_alias}. {text}".strip() if matched_alias else text


def _plan_searches(query: ReconcileQuery) -> Iterator[_PlannedSearch]:
    """What is searched for: the name and the identifier; else other texts; else what it is related to."""
    texts = [query.text] if query.text.strip() else []
    texts += [text for constraint in query.constraints if constraint.property is ID for text in constraint.texts]
    texts = texts or [
        text for constraint in query.constraints if constraint.property.target is None for text in constraint.texts
    ]
    limit = max(query.limit, _MIN_CANDIDATES) if query.constraints else query.limit
    for text in texts[:_MAX_SEARCHES]:
        yield _PlannedSearch(SearchQuery(text[:MAX_QUERY_CHARS], query.collections, limit=limit))
    if not texts:
        values = [(constraint.property, text) for constraint in query.constraints for text in constraint.texts]
        for via_property, text in values[:_MAX_SEARCHES]:
            assert via_property.target is not None
            yield _PlannedSearch(SearchQuery(text[:MAX_QUERY_CHARS], (via_property.target,)), via_property)


def _score_labels(
    snapshot: Snapshot, query: ReconcileQuery, search_results: Sequence[tuple[_PlannedSearch, SearchResult]]
) -> dict[str, _LabelMatch]:
    """Every record that was found, with the best that was found of it."""
    labels: dict[str, _LabelMatch] = {}
    for search, result in search_results:
        if search.via_property is None:
            is_unique = result.exact_count == 1 and search.query.text == query.text
            matches = {hit.id: _LabelMatch(_score_hit(hit), hit, is_unique) for hit in result.hits}
        else:
            matches = dict.fromkeys(_find_holders(snapshot, search.via_property, result), _LabelMatch(_RELATED_SCORE))
        for record_id, label in matches.items():
            if record_id not in labels or labels[record_id].score < label.score:
                labels[record_id] = label
    return labels


def _find_holders(snapshot: Snapshot, via_property: Property, result: SearchResult) -> list[str]:
    assert via_property.find_holders is not None
    target_ids = [hit.id for hit in result.hits if hit.is_exact]
    return via_property.find_holders(snapshot, target_ids) if target_ids else []


def _score_hit(hit: RecordHit) -> float:
    min_score, max_score = SCORES[hit.tier]
    quality = hit.score * len(Tier) - (len(Tier) - 1 - hit.tier)
    return round(min_score + (max_score - min_score) * quality, 2)


def _rank(
    query: ReconcileQuery, labels: dict[str, _LabelMatch], entities_by_id: dict[str, Entity]
) -> list[ReconcileCandidate]:
    candidates = [
        _build_candidate(query, label, entities_by_id[record_id])
        for record_id, label in labels.items()
        if record_id in entities_by_id and _matches_filter(query, entities_by_id[record_id])
    ]
    return sorted(candidates, key=lambda candidate: -candidate.score)[: query.limit]


def _matches_filter(query: ReconcileQuery, entity: Entity) -> bool:
    return entity.record.state == RecordState.PUBLISHED and entity.record.collection.name in query.collections


def _build_candidate(query: ReconcileQuery, label: _LabelMatch, entity: Entity) -> ReconcileCandidate:
    property_scores: dict[str, float] = {}
    for constraint in query.constraints:
        # Of a property that is given twice, the worse counts: it holds for both.
        property_scores[constraint.property.id] = min(
            constraint.score(entity), property_scores.get(constraint.property.id, MATCH)
        )
    hit = label.hit
    return ReconcileCandidate(
        entity=entity,
        score=_adjust_score(label.score, property_scores),
        match=label.is_unique
        and hit is not None
        and _is_exact_label(query, hit, entity)
        and MISMATCH not in property_scores.values(),
        label_score=label.score,
        matched_alias=hit.text if hit is not None and hit.field == "alias" else "",
        property_scores=property_scores,
    )


def _adjust_score(score: float, property_scores: dict[str, float]) -> float:
    """A score, raised towards 100 or lowered towards 0 by what else is known."""
    if not property_scores:
        return score
    adjustment = _PROPERTY_WEIGHT * (2 * sum(property_scores.values()) / len(property_scores) - 1)
    return round(score + adjustment * (100 - score if adjustment > 0 else score), 2)


def _is_exact_label(query: ReconcileQuery, hit: RecordHit, entity: Entity) -> bool:
    """Whether what was asked is the name, an alias that means the same, or the identifier itself."""
    if hit.tier is Tier.ID:
        return hit.id.casefold() == query.text.strip().casefold()
    key = fold(query.text[:MAX_QUERY_CHARS]).key
    if len(key) >= MAX_FOLDED_KEY_CHARS:
        return False  # Of a very long name only the beginning is compared.
    if hit.tier is Tier.ALIAS:
        return any(alias.scope == "exact" and fold(alias.text).key == key for alias in entity.record.aliases)
    return hit.tier in (Tier.NAME, Tier.FOLDED)


def _resolve_merged(snapshot: Snapshot, record_ids: Sequence[str], *, with_related: bool) -> dict[str, Entity]:
    """For each identifier the published record that it is, or that it was merged into."""
    targets = {record_id: record_id for record_id in record_ids if not find_unstorable_char(record_id)}
    entities_by_id: dict[str, Entity] = {}
    for _ in range(_MAX_HOPS):
        missing_ids = sorted(set(targets.values()) - entities_by_id.keys())
        if not missing_ids:
            break
        entities_by_id |= load_entities(snapshot, missing_ids, with_related=with_related)
        for record_id, target in list(targets.items()):
            record = entities_by_id[target].record if target in entities_by_id else None
            if record is None or record.state == RecordState.RETIRED:
                del targets[record_id]
            elif record.state == RecordState.MERGED and record.replaced_by is not None:
                targets[record_id] = record.replaced_by
    return {
        record_id: entities_by_id[target]
        for record_id, target in targets.items()
        if _is_published(entities_by_id.get(target))
    }


def _is_published(entity: Entity | None) -> bool:
    return entity is not None and entity.record.state == RecordState.PUBLISHED
