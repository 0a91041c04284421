"""Runs the queries of a search, the best first, and gathers what they find.

The order of hits depends on what was typed alone, never on how many are wanted: so many of the first are put in
order by how they match, always the same; the others follow as their queries find them. A page is a part of that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from tantivy import DocAddress, Order, Query

from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.search.documents import SEPARATOR
from lexarium.search.index import View, explained
from lexarium.search.queries import Filter, Queries, Typed, allowed, allowed_in_key, some, typed
from lexarium.search.ranking import Grade, Source, grade, in_labels
from lexarium.search.tiers import Tier

_RANKED = 30
"""How many of the first hits are put in order by how they match: the queries themselves tell nearly all of it."""
_FEW = 100
"""Where fewer hits in labels are expected, all of them are looked for before the best."""
_MOST_VALUES = 100
"""How many values of a facet are told."""
_MOST_CLOSE_WORDS = 8
"""Up to how many words typing mistakes are looked for in each of them: it takes milliseconds a word."""


class Candidate(NamedTuple):
    """A record that was found, and how it matched."""

    record: str
    collection: str
    state: str
    labels: tuple[str, ...]
    grade: Grade
    score: float

    @property
    def order(self) -> tuple[float, int, str, str]:
        """Best first; of equals the shorter name."""
        name = self.labels[0]
        return -self.score, len(name), name.casefold(), self.record

    @property
    def completing_order(self) -> tuple[Tier, bool, tuple[float, int, str, str]]:
        """Best first, and of a tier those that are usually searched."""
        return self.grade.tier, self.collection not in SEARCHED, self.order

    def shown(self, sought: Typed) -> Grade:
        """How it matched, with the label that shows it best."""
        return self.grade if self.grade.in_one_label else in_labels(self.grade, sought, self.labels)


class Facets(NamedTuple):
    """How many hits there are."""

    total: int
    by: dict[str, dict[str, int]]
    """By collection, class and state, and each of their values."""


class _Stage(NamedTuple):
    """One way to match, and the query for it."""

    tier: Tier
    """What it finds, or nearly so."""
    source: Source
    query: Query

    @property
    def weighs(self) -> bool:
        """Whether BM25 tells what is better; else all match alike, and the shorter name goes first."""
        return self.source is Source.TEXT or self.tier is Tier.TYPO_WORDS

    def score(self, given: Grade) -> float:
        """The score of what it finds, where that falls from one to the next: else the least of its tier."""
        return given.score if self.source is Source.TEXT else (len(Tier) - 1 - self.tier) / len(Tier)


_Place = tuple[int, int]


class _Found(NamedTuple):
    address: DocAddress
    weight: float
    stage: _Stage


class Search:
    """One search in one state of an index."""

    def __init__(self, view: View, text: str, wanted: Filter, *, definitions: bool = True) -> None:
        """`definitions`: whether these are searched too, or only names and aliases."""
        self._searcher = view.searcher
        self.typed: Typed = typed(text)
        self._wanted = wanted
        self._queries = Queries(view.schema, view.searcher, self.typed, wanted)
        self._definitions = definitions

    @cached_property
    def first(self) -> list[Candidate]:
        """The hits that are put in order by how their names and aliases match."""
        _, mistyped = self._close
        close = [self._candidate(each) for place, each in mistyped.items() if place not in self._labelled]
        return sorted([*self._by_labels, *close], key=lambda candidate: candidate.order)

    @property
    def did_you_mean(self) -> str | None:
        """The name or alias that comes first among those that were meant perhaps, where none has all words."""
        close = (each.grade.text for each in self.first if each.grade.tier in (Tier.TYPO, Tier.TYPO_WORDS))
        return next((" ".join(text.split()) for text in close), None)

    def page(self, start: int, end: int) -> list[Candidate]:
        """The hits from `start` up to `end`."""
        least = self._head[-1].score if self._head else 1.0
        return [
            hit if isinstance(hit, Candidate) else self._candidate(hit, least) for hit in self._hits(end)[start:end]
        ]

    def completions(self, count: int) -> list[Candidate]:
        """The first hits for someone who is typing: what is usually searched goes before others that match as well."""
        ordered = sorted(self.first, key=lambda candidate: candidate.completing_order)
        return ordered[:count] + self.page(len(ordered), count)

    def all(self) -> Iterator[str]:
        """The records of every hit, the best first."""
        for hit in self._hits(self._searcher.num_docs):
            if isinstance(hit, Candidate):
                yield hit.record
            else:
                with explained():
                    document = self._searcher.doc(hit.address)
                yield str(document.get_first("record"))

    def facets(self) -> Facets:
        """How many hits there are, and how many by collection, class and state."""
        # A facet that can have but one value is not counted: counting is most of what a search costs.
        known = {"collection": self._held(), "class": (), "state": self._wanted.states}
        wanted = {name: {"terms": {"field": name, "size": _MOST_VALUES}} for name in known if len(known[name]) != 1}
        with explained():
            counted: dict[str, Any] = self._searcher.aggregate(some(self._everything()), wanted)
        total = _total(counted["class"])
        facets = {}
        for name, values in known.items():
            if name in counted:
                facets[name] = {str(each["key"]): int(each["doc_count"]) for each in counted[name]["buckets"]}
            else:
                facets[name] = {values[0]: total}
        return Facets(total, {name: _told(counts) for name, counts in facets.items()})

    def _held(self) -> tuple[str, ...]:
        """The collections that are looked at and of which the index holds any: mostly a large catalogue has one."""
        best = next(iter(self._labelled.values()), None)
        by_identifier = best is not None and best.stage.source is Source.ID
        looked_at = self._wanted.collections or (tuple(COLLECTIONS) if by_identifier else SEARCHED)
        with explained():
            return tuple(name for name in looked_at if self._searcher.doc_freq("collection", name))

    @cached_property
    def _head(self) -> list[Candidate]:
        """The hits put in order that go before those in definitions."""
        return [candidate for candidate in self.first if candidate.grade.tier < Tier.DEFINITION_WORDS]

    def _hits(self, count: int) -> list[Candidate | _Found]:
        """So many of the hits, in order: those put in order, and the others as their queries find them."""
        if len(self._head) >= count:
            return [*self._head[:count]]
        close, mistyped = self._close
        stages = [*self._whole, *self._words()] if len(self._labelled) == _RANKED else []
        stages += close if len(mistyped) == _RANKED else []
        seen = self._labelled.keys() | mistyped.keys()
        hits: list[Candidate | _Found] = [*self._head]

        def go_on(stages: Sequence[_Stage]) -> None:
            if len(hits) < count and stages:
                found = self._run(stages, count + len(seen))
                hits.extend(each for place, each in found.items() if place not in seen)
                seen.update(found)

        go_on([stage for stage in stages if stage.tier < Tier.DEFINITION_WORDS])
        go_on(self._text)
        hits += self.first[len(self._head) :]
        go_on([stage for stage in stages if stage.tier > Tier.DEFINITION_WORDS])
        return hits[:count]

    @cached_property
    def _by_labels(self) -> list[Candidate]:
        return [*map(self._candidate, self._labelled.values())]

    @cached_property
    def _labelled(self) -> dict[_Place, _Found]:
        """The first hits that have all words in name and aliases."""
        found = self._run(self._whole, _RANKED)
        if self._queries.expected(self.typed.telling) < _FEW:
            # Where these are few, each is looked at for how it matched.
            every = self._run(self._all_words, _RANKED, found)
            if len(every) < _RANKED:
                return every
        return self._run(self._words(), _RANKED, found)

    @cached_property
    def _close(self) -> tuple[list[_Stage], dict[_Place, _Found]]:
        """What allows for typing mistakes, where no name or alias has all words, and the first hits of it."""
        if not self.typed.quoted and not any(each.grade.in_one_label for each in self._by_labels):
            for stages in self._close_steps():
                found = self._run(stages, _RANKED)
                if found:
                    return stages, found
        return [], {}

    @cached_property
    def _text(self) -> list[_Stage]:
        query = self._queries.text() if self._definitions else None
        return [] if query is None else [_Stage(Tier.DEFINITION_WORDS, Source.TEXT, query)]

    @cached_property
    def _whole(self) -> list[_Stage]:
        """By the whole of an identifier or a label."""
        queries = self._queries
        stages = [_Stage(Tier.ID, Source.ID, queries.identifier())]
        if self.typed.key:
            stages.append(_Stage(Tier.FOLDED, Source.WHOLE, queries.key("name_key")))
            stages.append(_Stage(Tier.ALIAS, Source.WHOLE, queries.key("alias_key")))
        return stages

    @cached_property
    def _all_words(self) -> list[_Stage]:
        """By words of labels: all that has them."""
        words = self.typed.telling
        make = self._queries.label
        return [_Stage(Tier.ALIAS_WORDS, Source.WORDS, make("label", words, whole=False))] if words else []

    def _words(self) -> Iterator[_Stage]:
        """The same, the best first."""
        queries, known = self._queries, self.typed
        if not known.words:
            return
        # Those that have the little words too go before those that do without.
        several = [known.words] if known.telling == known.words else [known.words, known.telling]
        tiers = (
            (Tier.BEGINNING, queries.beginning),
            (Tier.NAME_WORDS, partial(queries.label, "name")),
            (Tier.ALIAS_WORDS, partial(queries.label, "alias")),
        )
        for tier, make in tiers:
            for words in several:
                for whole in (True, False):
                    yield _Stage(tier, Source.WORDS, make(words, whole=whole))
        yield from self._all_words

    def _close_steps(self) -> Iterator[list[_Stage]]:
        key, words = self.typed.key, self.typed.telling
        if allowed_in_key(key):
            yield self._close_keys(1)
        if self._labelled:  # Name and aliases together have all words as they are: what is less close was hardly meant.
            return
        if len(words) <= _MOST_CLOSE_WORDS and any(allowed(word.forms[0]) for word in words):
            yield [_Stage(Tier.TYPO_WORDS, Source.CLOSE, self._queries.close_words())]
        if allowed_in_key(key) > 1:
            yield self._close_keys(2)

    def _close_keys(self, distance: int) -> list[_Stage]:
        fields = ("name_key", "alias_key")
        return [_Stage(Tier.TYPO, Source.CLOSE, self._queries.close_key(field, distance)) for field in fields]

    def _everything(self) -> list[Query]:
        """Queries that find all hits between them."""
        close, _ = self._close
        return [stage.query for stage in (*self._whole, *self._all_words, *close, *self._text)]

    def _run(
        self, stages: Iterable[_Stage], most: int, before: Mapping[_Place, _Found] | None = None
    ) -> dict[_Place, _Found]:
        """What was found before, and what the stages find, in order, at most so many."""
        found = dict(before or {})
        for stage in stages if len(found) < most else ():
            with explained():
                if stage.weighs:
                    hits = self._searcher.search(stage.query, most, count=False).hits
                else:
                    order: dict[str, Any] = {"order_by_field": "order", "order": Order.Asc}
                    hits = self._searcher.search(stage.query, most, count=False, **order).hits
            for weight, address in hits:
                found.setdefault((address.segment_ord, address.doc), _Found(address, weight, stage))
                if len(found) >= most:
                    return found
        return found

    def _candidate(self, found: _Found, most: float | None = None) -> Candidate:
        """A hit; where `most` is given it is not put in order by how it matches, and scores no more than that."""
        with explained():
            document = self._searcher.doc(found.address)
        labels = tuple(str(document.get_first("labels")).split(SEPARATOR))
        record = str(document.get_first("record"))
        source = found.stage.source
        given = grade(self.typed, (record,) if source is Source.ID else labels, found.weight, source)
        return Candidate(
            record=record,
            collection=str(document.get_first("collection")),
            state=str(document.get_first("state")),
            labels=labels,
            grade=given,
            score=given.score if most is None else min(most, found.stage.score(given)),
        )


def _total(counted: dict[str, Any]) -> int:
    """How many were counted: every record has one class, if only the empty one."""
    return sum(int(each["doc_count"]) for each in counted["buckets"]) + int(counted["sum_other_doc_count"])


def _told(counts: dict[str, int]) -> dict[str, int]:
    return {str(value): count for value, count in counts.items() if value and count}
