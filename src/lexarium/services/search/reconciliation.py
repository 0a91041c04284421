"""Match names and properties to records (W3C Reconciliation API)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple, TypeGuard

from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id, split_id
from lexarium.domain.labels import parse_aliases
from lexarium.domain.record import RecordState
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.search.analysis.folding import MAX_FOLDED_KEY_CHARS, fold
from lexarium.search.analysis.languages import STOP_WORDS
from lexarium.search.ranking import Tier
from lexarium.services.records.lookup import require_unmerged, resolve_survivors
from lexarium.services.search import record_search as search
from lexarium.services.search.properties import ALIAS, DEFINITION, ID, Entity, Property, PropertyValue, load_entities
from lexarium.services.vocabularies.access import ReadScope
from lexarium.store import change_log, records, vocabularies
from lexarium.store.database import Database
from lexarium.store.position import Position, Snapshot
from lexarium.store.records import BATCH_SIZE

MAX_BATCH_QUERIES = 50
MAX_CANDIDATES = 100
MAX_EXTENDED_RECORDS = BATCH_SIZE  # loaded in one batch

# Lowest and highest score of a label, by how it matched.
SCORES: dict[Tier, tuple[float, float]] = {
    Tier.ID: (100, 100),
    Tier.NAME: (100, 100),
    Tier.FOLDED: (97, 97),
    Tier.ALIAS: (93, 93),
    Tier.ACRONYM: (90, 92),
    Tier.BEGINNING: (75, 90),
    Tier.NAME_WORDS: (60, 75),
    Tier.ALIAS_WORDS: (50, 60),
    Tier.TYPO: (35, 50),
    Tier.DEFINITION_WORDS: (20, 35),
    Tier.TYPO_WORDS: (5, 20),
    Tier.PARTIAL: (1, 5),
}
# Score of a record that was found by a related record alone.
_RELATED_SCORE = 50.0
# Share by which properties can raise or lower a score.
_PROPERTY_WEIGHT = 0.4
MATCH, UNKNOWN, MISMATCH = 1.0, 0.5, 0.0
# Candidates to score if there are constraints, which may reorder them.
_MIN_CANDIDATES = 30
_MAX_SEARCHES = 5


class PropertyConstraint:
    """A property and the values that a record should have."""

    def __init__(self, constrained_property: Property, texts: Sequence[str]) -> None:
        self.property = constrained_property
        if constrained_property.id == ALIAS:  # Several are often written in one cell.
            texts = [*texts, *(alias.text for text in texts for alias in parse_aliases(text))]
        self.texts = [text for text in dict.fromkeys(text.strip()[: search.MAX_QUERY_CHARS] for text in texts) if text]
        folded_texts = [fold(text) for text in self.texts]
        self._keys = {folded_text.key for folded_text in folded_texts} - {""}
        self._words = {word for folded_text in folded_texts for word in folded_text.words} - STOP_WORDS

    def score(self, entity: Entity) -> float:
        """Return MATCH, MISMATCH, or UNKNOWN if a record has no value; the similarity in between for a definition."""
        if self.property.id == DEFINITION:
            words = entity.definition_words
            if not words or not self._words:
                return UNKNOWN
            # The square root of the Dice coefficient, since definitions often differ in their words.
            return round(sqrt(2 * len(words & self._words) / (len(words) + len(self._words))), 4)
        values = self.property.values(entity)
        labels = [*values, PropertyValue(entity.name)] if self.property.id == ALIAS else values
        if any(self._has_id(value) or fold(value.text).key in self._keys for value in labels):
            return MATCH
        return MISMATCH if values else UNKNOWN

    def _has_id(self, value: PropertyValue) -> bool:
        if value.id is None:
            return False
        vocabulary, local_id = split_id(value.id)
        return local_id in self.texts or f"{vocabulary}:{local_id}" in self.texts


@dataclass(frozen=True)
class ReconcileQuery:
    """A name to match, or constraints, or both."""

    text: str = ""
    # Unique names.
    collections: tuple[str, ...] = ()
    limit: int = 10
    constraints: tuple[PropertyConstraint, ...] = ()


@dataclass(frozen=True)
class ReconcileCandidate:
    """A record that may match a query.

    `match` means that it is certain: the query is its label and no other's, and no constraint is violated.
    """

    entity: Entity
    score: float
    match: bool
    label_score: float
    # Empty unless the query matched an alias.
    matched_alias: str
    property_scores: dict[str, float]


class _PlannedSearch(NamedTuple):
    query: search.SearchQuery
    # If set, not the hits are candidates but the records that have one as a value of this property.
    via_property: Property | None = None


class _LabelMatch(NamedTuple):
    score: float
    hit: search.RecordHit | None = None
    # No other record has the query as a label.
    is_unique: bool = False


@dataclass(frozen=True)
class EntityIds:
    """Identifiers of records for clients of a service.

    A service of one vocabulary has the ids of that. One of all has those of the main vocabulary as they are, and of
    other records the IRI, or `vocabulary:id` if they have none.
    """

    scope: ReadScope
    # The vocabulary of a service of one.
    vocabulary: str | None = None

    def format(self, record_id: str, iri: str | None = None) -> str:
        """Return the identifier of a record, which has this IRI of its own."""
        vocabulary, local_id = split_id(record_id)
        if vocabulary in (MAIN_VOCABULARY, self.vocabulary):
            return local_id
        return iri or f"{vocabulary}:{local_id}"

    def resolve(self, snapshot: Snapshot, identifiers: Sequence[str]) -> dict[str, str]:
        """Return the ids of the records that exist in the scope, by the identifiers of clients."""
        storable = [identifier for identifier in identifiers if not find_unstorable_char(identifier)]
        candidates = {identifier: list(self._iter_candidates(identifier)) for identifier in storable}
        record_ids = sorted({record_id for group in candidates.values() for record_id in group})
        existing = records.find_existing_ids(snapshot, record_ids)
        alternatives = vocabularies.find_by_alternative_ids(snapshot, storable)
        resolved = {}
        for identifier, group in candidates.items():
            found = [record_id for record_id in group if record_id in existing]
            # An identifier may be written like the id of another vocabulary.
            in_scope = filter(self.scope.includes, (*found, *alternatives.get(identifier, ())))
            if (record_id := next(in_scope, None)) is not None:
                resolved[identifier] = record_id
        return resolved

    def _iter_candidates(self, identifier: str) -> Iterator[str]:
        if self.vocabulary is not None:
            yield qualify_id(self.vocabulary, identifier)
            return
        if MAIN_VOCABULARY in self.scope.slugs:
            yield identifier
        vocabulary, _, local_id = identifier.partition(":")
        if vocabulary in self.scope.slugs and local_id:
            yield qualify_id(vocabulary, local_id)


class Reconciler:
    """Reconciliation with one catalogue."""

    def __init__(self, database: Database, record_search: search.RecordSearch) -> None:
        self._database = database
        self._record_search = record_search

    def get_position(self) -> Position:
        """Return the current position of the catalogue. Call it from the serving thread only."""
        return self._database.get_position()

    def find_candidates(self, queries: Sequence[ReconcileQuery], scope: ReadScope) -> list[list[ReconcileCandidate]]:
        """Return the candidates of each query, best first."""
        plans = [list(_plan_searches(query, scope)) for query in queries]
        results = iter(self._record_search.search_many([planned.query for plan in plans for planned in plan]))
        with self._database.read() as snapshot:
            labels = [
                _score_labels(snapshot, query, [(planned, next(results)) for planned in plan])
                for query, plan in zip(queries, plans, strict=True)
            ]
            record_ids = sorted({record_id for group in labels for record_id in group})
            with_related = any(constraint.property.targets for query in queries for constraint in query.constraints)
            entities_by_id = load_entities(snapshot, record_ids, with_related=with_related)
        return [_rank(query, group, entities_by_id) for query, group in zip(queries, labels, strict=True)]

    def suggest_entities(
        self, prefix: str, collections: Sequence[str], offset: int, limit: int, scope: ReadScope
    ) -> list[tuple[search.LabelSuggestion, Entity]]:
        """Return the labels that complete a prefix, with their records, best first, from an offset on."""
        prefix = prefix[: search.MAX_QUERY_CHARS]
        suggestions = self._record_search.suggest(prefix, collections, offset + limit, scope=scope)[offset:]
        record_ids = [item.id for item in suggestions]
        entities_by_id = self._database.run_read(load_entities, record_ids, with_related=False)
        return [(item, entities_by_id[item.id]) for item in suggestions if item.id in entities_by_id]

    def extend(
        self, identifiers: Sequence[str], properties: Sequence[Property], entity_ids: EntityIds
    ) -> dict[str, dict[str, list[PropertyValue]]]:
        """Return values by identifier and property. A merged record has those of its survivor, a retired one none."""
        with_related = any(item.targets for item in properties)
        with self._database.read() as snapshot:
            resolved = entity_ids.resolve(snapshot, identifiers)
            survivors = resolve_survivors(snapshot, resolved.values())
            current_ids = {survivors.get(record_id, record_id) for record_id in resolved.values()}
            entities = load_entities(snapshot, sorted(current_ids), with_related=with_related)
            rows: dict[str, dict[str, list[PropertyValue]]] = {}
            for identifier in identifiers:
                record_id = resolved.get(identifier, "")
                entity = entities.get(survivors.get(record_id, record_id))
                rows[identifier] = {
                    item.id: item.values(entity) if _is_published(entity) else [] for item in properties
                }
            return _format_ids(snapshot, rows, entity_ids)

    def get_entity(self, identifier: str, entity_ids: EntityIds) -> Entity:
        """Return a published or retired record with its related records; raise NotFound or RecordMerged."""
        with self._database.read() as snapshot:
            record_id = entity_ids.resolve(snapshot, [identifier]).get(identifier)
            if record_id is None:
                raise NotFound(f"Record {identifier!r} not found.")
            entity = load_entities(snapshot, [record_id], with_related=True)[record_id]
        require_unmerged(entity.record)
        return entity


def _format_ids(
    snapshot: Snapshot, rows: dict[str, dict[str, list[PropertyValue]]], entity_ids: EntityIds
) -> dict[str, dict[str, list[PropertyValue]]]:
    """Return the values with the identifiers of records for clients."""
    values = (value for row in rows.values() for column in row.values() for value in column)
    record_ids = {value.id for value in values if value.id is not None}
    shown_with_iri = [item for item in record_ids if entity_ids.format(item) != split_id(item)[1]]
    changes = change_log.find_latest(snapshot, shown_with_iri)
    iris = {record_id: change.to_record().iri for record_id, change in changes.items()}

    def format_value(value: PropertyValue) -> PropertyValue:
        return value if value.id is None else replace(value, id=entity_ids.format(value.id, iris.get(value.id)))

    return {key: {name: [*map(format_value, column)] for name, column in row.items()} for key, row in rows.items()}


def format_description(entity: Entity, matched_alias: str = "", max_chars: int = 200) -> str:
    """Return the beginning of a definition, after the alias that matched."""
    text = " ".join(entity.record.definition.split())
    if len(text) > max_chars:
        text = text[:max_chars].rpartition(" ")[0] + " …"
    return f"Also called {matched_alias}. {text}".strip() if matched_alias else text


def _plan_searches(query: ReconcileQuery, scope: ReadScope) -> Iterator[_PlannedSearch]:
    """Search for the name and identifier; or else for other texts; or else for related records."""
    values = [(item.property, text[: search.MAX_QUERY_CHARS]) for item in query.constraints for text in item.texts]
    texts = [query.text[: search.MAX_QUERY_CHARS]] if query.text.strip() else []
    texts += [text for prop, text in values if prop.id == ID]
    texts = texts or [text for prop, text in values if not prop.targets]
    limit = max(query.limit, _MIN_CANDIDATES) if query.constraints else query.limit
    for text in texts[:_MAX_SEARCHES]:
        yield _PlannedSearch(search.SearchQuery(text, query.collections, limit=limit, scope=scope))
    for prop, text in () if texts else values[:_MAX_SEARCHES]:
        yield _PlannedSearch(search.SearchQuery(text, prop.targets, scope=scope), prop)


def _score_labels(
    snapshot: Snapshot, query: ReconcileQuery, search_results: Sequence[tuple[_PlannedSearch, search.SearchResult]]
) -> dict[str, _LabelMatch]:
    """Return the best match of each record."""
    labels: dict[str, _LabelMatch] = {}
    for planned, result in search_results:
        if planned.via_property is None:
            is_unique = result.exact_count == 1 and planned.query.text == query.text
            matches = {hit.id: _LabelMatch(_score_hit(hit), hit, is_unique) for hit in result.hits}
        else:
            assert planned.via_property.find_holders is not None
            target_ids = [hit.id for hit in result.hits if hit.is_exact]
            holders = planned.via_property.find_holders(snapshot, target_ids) if target_ids else []
            matches = dict.fromkeys(holders, _LabelMatch(_RELATED_SCORE))
        for record_id, label in matches.items():
            if record_id not in labels or labels[record_id].score < label.score:
                labels[record_id] = label
    return labels


def _score_hit(hit: search.RecordHit) -> float:
    min_score, max_score = SCORES[hit.tier]
    quality = hit.score * len(Tier) - (len(Tier) - 1 - hit.tier)
    return round(min_score + (max_score - min_score) * quality, 2)


def _rank(
    query: ReconcileQuery, labels: dict[str, _LabelMatch], entities_by_id: dict[str, Entity]
) -> list[ReconcileCandidate]:
    candidates = []
    for record_id, label in labels.items():
        entity = entities_by_id.get(record_id)
        if _is_published(entity) and entity.record.collection.name in query.collections:
            candidates.append(_build_candidate(query, label, entity))
    return sorted(candidates, key=lambda candidate: -candidate.score)[: query.limit]


def _build_candidate(query: ReconcileQuery, label: _LabelMatch, entity: Entity) -> ReconcileCandidate:
    property_scores: dict[str, float] = {}
    for constraint in query.constraints:
        # The lowest score counts if a property is constrained twice.
        property_id = constraint.property.id
        property_scores[property_id] = min(constraint.score(entity), property_scores.get(property_id, MATCH))
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
    """Raise a score towards 100, or lower it towards 0, by the mean of the property scores."""
    if not property_scores:
        return score
    adjustment = _PROPERTY_WEIGHT * (2 * sum(property_scores.values()) / len(property_scores) - 1)
    return round(score + adjustment * (100 - score if adjustment > 0 else score), 2)


def _is_exact_label(query: ReconcileQuery, hit: search.RecordHit, entity: Entity) -> bool:
    """Return whether the query is the name, an exact synonym or the identifier."""
    if hit.tier is Tier.ID:
        own_ids = (hit.local_id, *entity.record.alternative_ids)
        return query.text.strip().casefold() in map(str.casefold, own_ids)
    key = fold(query.text[: search.MAX_QUERY_CHARS]).key
    if len(key) >= MAX_FOLDED_KEY_CHARS:
        return False  # The keys of very long names are cut: equal ones prove nothing.
    if hit.tier is Tier.ALIAS:
        return any(alias.scope == "exact" and fold(alias.text).key == key for alias in entity.record.aliases)
    return hit.tier in (Tier.NAME, Tier.FOLDED)


def _is_published(entity: Entity | None) -> TypeGuard[Entity]:
    return entity is not None and entity.record.state == RecordState.PUBLISHED
