"""Reconciling: which records are meant by names, and by what else is known, in a table from elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from lexarium.domain.aliases import split
from lexarium.domain.changes import State
from lexarium.domain.collections import SEARCHED
from lexarium.domain.errors import Moved, NotFound
from lexarium.domain.text import unstorable
from lexarium.search.documents import LITTLE_WORDS
from lexarium.search.folding import LONGEST_KEY, fold
from lexarium.search.tiers import Tier
from lexarium.service.finding import LONGEST_QUERY, Asked, Finder, Found, Hit, Suggestion
from lexarium.service.properties import ALIAS, DEFINITION, ID, Entity, Property, Value, entities
from lexarium.store.backend import Snapshot
from lexarium.store.database import Database

BATCH_SIZE = 50
"""How many queries may be asked at once."""
MOST_CANDIDATES = 100
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
_NAMELESS = 50.0
"""The score of a record that was found by what else is known of it."""
_SWAY = 0.4
"""How far what else is known can raise or lower a score."""
AGREES, UNKNOWN, CONTRADICTS = 1.0, 0.5, 0.0
_WIDER = 30
"""How many candidates are weighed where more is known than a name, however few are wanted."""
_MOST_SEARCHES = 5
"""How many texts of a query are searched for."""
_MOST_HOPS = 20


class Given:
    """What is known of a property: one of these values, or several."""

    def __init__(self, of: Property, texts: Sequence[str]) -> None:
        self.property = of
        if of is ALIAS:  # several are often written as one
            texts = [*texts, *(alias.text for text in texts for alias in split(text))]
        self.texts = [text for text in dict.fromkeys(text.strip()[:LONGEST_QUERY] for text in texts) if text]
        folded = [fold(text) for text in self.texts]
        self._keys = {each.key for each in folded} - {""}
        self._words = {word for each in folded for word in each.words} - LITTLE_WORDS

    def fit(self, entity: Entity) -> float:
        """How a record agrees: 1 fully, 0 not at all, and a half where it says nothing of it."""
        if self.property is DEFINITION:
            return self._likeness(entity.definition_words)
        values = self.property.values(entity)
        if any(map(self._names, values)) or (self.property is ALIAS and self._names(Value(entity.name))):
            return AGREES
        return CONTRADICTS if values else UNKNOWN

    def _names(self, value: Value) -> bool:
        return value.id in self.texts or fold(value.text).key in self._keys

    def _likeness(self, words: frozenset[str]) -> float:
        """How many words two definitions share. The root of it, since the same is said in other words."""
        if not words or not self._words:
            return UNKNOWN
        return round(sqrt(2 * len(words & self._words) / (len(words) + len(self._words))), 4)


@dataclass(frozen=True)
class Query:
    """What is known of a record that is meant."""

    text: str = ""
    """Its name, more or less. Empty where only other things are known."""
    collections: tuple[str, ...] = SEARCHED
    limit: int = 10
    given: tuple[Given, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A record that may be meant."""

    entity: Entity
    score: float
    """From 100 for the name itself down to 0."""
    match: bool
    """Whether no other can be meant: its label is what was asked, no other record's is, and nothing contradicts."""
    label: float
    """The score of its name or alias alone."""
    also: str
    """The alias by which it was found, if it was one."""
    fits: dict[str, float]
    """How it agrees with what else is known, by property."""


@dataclass(frozen=True)
class Completion:
    """A record that someone who types may mean."""

    suggestion: Suggestion
    entity: Entity


class _Search(NamedTuple):
    asked: Asked
    through: Property | None = None
    """None where the hits themselves are candidates; else those that have a hit as a value of this property are."""


class _Label(NamedTuple):
    score: float
    hit: Hit | None = None
    alone: bool = False
    """Whether no other record has what was asked as its label."""


class Reconciler:
    """Reconciles with one catalogue."""

    def __init__(self, database: Database, finder: Finder) -> None:
        self._database = database
        self._finder = finder

    def candidates(self, queries: Sequence[Query]) -> list[list[Candidate]]:
        """The candidates of each query, the best first."""
        searches = [list(_searches(query)) for query in queries]
        found = iter(self._finder.search_many([search.asked for each in searches for search in each]))
        with self._database.read() as snapshot:
            labels = [
                _labels(snapshot, query, [(search, next(found)) for search in each])
                for query, each in zip(queries, searches, strict=True)
            ]
            identifiers = sorted({identifier for each in labels for identifier in each})
            related = any(given.property.target for query in queries for given in query.given)
            known = entities(snapshot, identifiers, related=related)
        return [_ranked(query, each, known) for query, each in zip(queries, labels, strict=True)]

    def completions(self, prefix: str, collections: Sequence[str], skip: int, limit: int) -> list[Completion]:
        """The records that someone may mean who types, the best first, after the first few."""
        found = self._finder.suggest(prefix[:LONGEST_QUERY], collections, skip + limit)[skip:]
        with self._database.read() as snapshot:
            known = entities(snapshot, [each.id for each in found], related=False)
        return [Completion(each, known[each.id]) for each in found if each.id in known]

    def extended(self, identifiers: Sequence[str], wanted: Sequence[Property]) -> dict[str, dict[str, list[Value]]]:
        """The values of these properties, by record and property. A merged record has its survivor's; others none."""
        related = any(each.target for each in wanted)
        with self._database.read() as snapshot:
            known = _standing_in(snapshot, identifiers, related=related)
        return {
            identifier: {each.id: each.values(known[identifier]) if identifier in known else [] for each in wanted}
            for identifier in identifiers
        }

    def entity(self, identifier: str) -> Entity:
        """A record with what it is related to, also a retired one. Raises where it is not there, or merged."""
        with self._database.read() as snapshot:
            found = {} if unstorable(identifier) else entities(snapshot, [identifier], related=True)
        if identifier not in found:
            raise NotFound(f"There is no record with the id {identifier!r}.")
        whole = found[identifier].whole
        if whole.state == State.MERGED and whole.replaced_by is not None:
            raise Moved(identifier, whole.replaced_by)
        return found[identifier]


def description(entity: Entity, also: str = "", longest: int = 200) -> str:
    """What a record is, in few words; first the alias by which it was found."""
    text = " ".join(entity.whole.definition.split())
    if len(text) > longest:
        text = text[:longest].rpartition(" ")[0] + " …"
    return f"Also called {also}. {text}".strip() if also else text


def _searches(query: Query) -> Iterator[_Search]:
    """What is searched for: the name and the identifier; else other texts; else what it is related to."""
    texts = [query.text] if query.text.strip() else []
    texts += [text for given in query.given if given.property is ID for text in given.texts]
    texts = texts or [text for given in query.given if given.property.target is None for text in given.texts]
    limit = max(query.limit, _WIDER) if query.given else query.limit
    for text in texts[:_MOST_SEARCHES]:
        yield _Search(Asked(text[:LONGEST_QUERY], query.collections, limit=limit))
    if not texts:
        ends = [(given.property, text) for given in query.given for text in given.texts]
        for through, text in ends[:_MOST_SEARCHES]:
            assert through.target is not None
            yield _Search(Asked(text[:LONGEST_QUERY], (through.target,)), through)


def _labels(snapshot: Snapshot, query: Query, searched: Sequence[tuple[_Search, Found]]) -> dict[str, _Label]:
    """Every record that was found, with the best that was found of it."""
    labels: dict[str, _Label] = {}
    for search, found in searched:
        if search.through is None:
            alone = found.exact == 1 and search.asked.text == query.text
            each = {hit.id: _Label(_score(hit), hit, alone) for hit in found.hits}
        else:
            each = dict.fromkeys(_holders(snapshot, search.through, found), _Label(_NAMELESS))
        for identifier, label in each.items():
            if identifier not in labels or labels[identifier].score < label.score:
                labels[identifier] = label
    return labels


def _holders(snapshot: Snapshot, through: Property, found: Found) -> list[str]:
    assert through.holders is not None
    targets = [hit.id for hit in found.hits if hit.exact]
    return through.holders(snapshot, targets) if targets else []


def _score(hit: Hit) -> float:
    least, most = SCORES[hit.tier]
    quality = hit.score * len(Tier) - (len(Tier) - 1 - hit.tier)
    return round(least + (most - least) * quality, 2)


def _ranked(query: Query, labels: dict[str, _Label], known: dict[str, Entity]) -> list[Candidate]:
    found = [
        _candidate(query, label, known[identifier])
        for identifier, label in labels.items()
        if identifier in known and _is_asked(query, known[identifier])
    ]
    return sorted(found, key=lambda each: -each.score)[: query.limit]


def _is_asked(query: Query, entity: Entity) -> bool:
    return entity.whole.state == State.PUBLISHED and entity.whole.collection.name in query.collections


def _candidate(query: Query, label: _Label, entity: Entity) -> Candidate:
    fits: dict[str, float] = {}
    for given in query.given:
        # Of a property that is given twice, the worse counts: it holds for both.
        fits[given.property.id] = min(given.fit(entity), fits.get(given.property.id, AGREES))
    hit = label.hit
    return Candidate(
        entity=entity,
        score=_swayed(label.score, fits),
        match=label.alone and hit is not None and _is_label(query, hit, entity) and CONTRADICTS not in fits.values(),
        label=label.score,
        also=hit.text if hit is not None and hit.field == "alias" else "",
        fits=fits,
    )


def _swayed(score: float, fits: dict[str, float]) -> float:
    """A score, raised towards 100 or lowered towards 0 by what else is known."""
    if not fits:
        return score
    sway = _SWAY * (2 * sum(fits.values()) / len(fits) - 1)
    return round(score + sway * (100 - score if sway > 0 else score), 2)


def _is_label(query: Query, hit: Hit, entity: Entity) -> bool:
    """Whether what was asked is the name, an alias that means the same, or the identifier itself."""
    if hit.tier is Tier.ID:
        return hit.id.casefold() == query.text.strip().casefold()
    key = fold(query.text[:LONGEST_QUERY]).key
    if len(key) >= LONGEST_KEY:
        return False  # Of a very long name only the beginning is compared.
    if hit.tier is Tier.ALIAS:
        return any(alias.scope == "exact" and fold(alias.text).key == key for alias in entity.whole.alias_list)
    return hit.tier in (Tier.NAME, Tier.FOLDED)


def _standing_in(snapshot: Snapshot, identifiers: Sequence[str], *, related: bool) -> dict[str, Entity]:
    """For each identifier the published record that it is, or that it was merged into."""
    ends = {identifier: identifier for identifier in identifiers if not unstorable(identifier)}
    found: dict[str, Entity] = {}
    for _ in range(_MOST_HOPS):
        missing = sorted(set(ends.values()) - found.keys())
        if not missing:
            break
        found |= entities(snapshot, missing, related=related)
        for identifier, end in list(ends.items()):
            whole = found[end].whole if end in found else None
            if whole is None or whole.state == State.RETIRED:
                del ends[identifier]
            elif whole.state == State.MERGED and whole.replaced_by is not None:
                ends[identifier] = whole.replaced_by
    return {identifier: found[end] for identifier, end in ends.items() if _is_published(found.get(end))}


def _is_published(entity: Entity | None) -> bool:
    return entity is not None and entity.whole.state == State.PUBLISHED
