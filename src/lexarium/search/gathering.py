"""Runs the queries of a search, the best first, and gathers what they find until there is enough."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tantivy import DocAddress, Query

from lexarium.search.documents import SEPARATOR
from lexarium.search.index import View, explained
from lexarium.search.queries import Filter, Queries, some, typed
from lexarium.search.ranking import Grade, Source, grade
from lexarium.search.tiers import Tier

RERANKED = 60
"""How many of the first hits are put in order of their words."""
_MOST_VALUES = 100
"""How many values of a facet are told."""
_FEW = 30
_MOST_CLOSE_WORDS = 8
"""Up to how many words typing mistakes are looked for in each of them: it takes milliseconds a word."""
_LONG_KEY = 8
"""From how many letters on a name may have two mistakes."""


@dataclass(frozen=True)
class Candidate:
    """A record that was found, and how it matched."""

    record: str
    collection: str
    state: str
    labels: tuple[str, ...]
    grade: Grade

    @property
    def order(self) -> tuple[float, int, str, str]:
        """Best first; of equals the shorter name."""
        name = self.labels[0]
        return -self.grade.score, len(name), name.casefold(), self.record


class Facets(NamedTuple):
    """How many hits there are."""

    total: int
    by: dict[str, dict[str, int]]
    """By collection, class and state, and each of their values."""


_Place = tuple[int, int]


class _Found(NamedTuple):
    address: DocAddress
    weight: float
    source: Source


class Search:
    """One search in one state of an index."""

    def __init__(self, view: View, text: str, wanted: Filter) -> None:
        self._searcher = view.searcher
        self._typed = typed(text)
        self._wanted = wanted
        self._queries = Queries(view.schema, self._typed, wanted)
        self._found: dict[_Place, _Found] = {}
        self._close: list[Query] = []
        """The queries that allow for typing mistakes, where they were needed."""

    def best(self, count: int) -> list[Candidate]:
        """The best hits, in order; at least so many where there are so many."""
        found = self._labels(max(count, _FEW if len(self._typed.words) < 2 else RERANKED))
        if len(found) < count:
            self._run(self._queries.text(), count, Source.TEXT)
            found += self._graded(Source.TEXT)
        return sorted(found, key=lambda candidate: candidate.order)

    def completions(self, count: int) -> list[Candidate]:
        """The best hits among names and aliases, in order."""
        return sorted(self._labels(max(count, _FEW)), key=lambda candidate: candidate.order)

    def all(self) -> Iterator[str]:
        """The records of every hit, the best first."""
        best = [candidate.record for candidate in self.best(RERANKED)]
        yield from best
        seen = set(best)
        if len(self._found) < RERANKED:
            return
        most = self._searcher.num_docs
        self._run_labels(most)
        self._run(self._queries.text(), most, Source.TEXT)
        for found in self._found.values():
            record = str(self._searcher.doc(found.address).get_first("record"))
            if record not in seen:
                yield record

    def facets(self) -> Facets:
        """How many hits there are, and how many by collection, class and state. After `best`."""
        # A facet that can have but one value is not counted: counting is most of what a search costs.
        known = {"collection": self._wanted.collections, "class": (), "state": self._wanted.states}
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

    @property
    def close(self) -> bool:
        """Whether typing mistakes were allowed for, since no name or alias had all that was asked."""
        return bool(self._close)

    def _everything(self) -> list[Query]:
        """Queries that find all hits between them."""
        queries, typed_words = self._queries, self._typed.words
        found = [queries.identifier(), *self._close]
        if self._typed.folded.key:
            found += [queries.key("name_key"), queries.key("alias_key")]
        if typed_words:
            found += [queries.label("name_grams"), queries.label("alias_grams")]
        text = queries.text()
        return [*found, text] if text is not None else found

    def _labels(self, enough: int) -> list[Candidate]:
        """The records whose name or alias matches; with typing mistakes, where none does without."""
        self._run_labels(enough)
        found = self._graded(Source.ID, Source.KEY, Source.WORDS)
        if not found:
            self._run_close()
            found = self._graded(Source.CLOSE)
        return found

    def _run_labels(self, enough: int) -> None:
        queries = self._queries
        self._run(queries.identifier(), enough, Source.ID)
        if self._typed.folded.key:
            self._run(queries.key("name_key"), enough, Source.KEY)
            self._run(queries.key("alias_key"), enough, Source.KEY)
        if not self._typed.words:
            return
        steps: list[Callable[[], Query]] = [
            lambda: queries.beginning(whole=True),
            lambda: queries.beginning(whole=False),
            lambda: queries.label("name_grams", whole=True),
            lambda: queries.label("name_grams"),
            lambda: queries.label("alias_grams", whole=True),
            lambda: queries.label("alias_grams"),
        ]
        for step in steps:
            if len(self._found) >= enough:
                return
            self._run(step(), enough)

    def _run_close(self) -> None:
        self._found.clear()
        queries, key, words = self._queries, self._typed.folded.key, self._typed.words
        if not words or self._typed.phrases:
            return  # Whoever quotes wants it so and not otherwise.
        steps: list[Callable[[], list[Query]]] = [
            lambda: [queries.close_key("name_key", 1), queries.close_key("alias_key", 1)]
        ]
        if len(words) <= _MOST_CLOSE_WORDS:
            steps.append(lambda: [queries.close_words()])
        if len(key) >= _LONG_KEY:
            steps.append(lambda: [queries.close_key("name_key", 2), queries.close_key("alias_key", 2)])
        for step in steps:
            self._close = step()
            for query in self._close:
                self._run(query, _FEW, Source.CLOSE)
            if self._found:
                return

    def _run(self, query: Query | None, count: int, source: Source = Source.WORDS) -> None:
        if query is None:
            return
        with explained():
            hits = self._searcher.search(query, count, count=False).hits
        for weight, address in hits:
            place = (address.segment_ord, address.doc)
            if place not in self._found:
                self._found[place] = _Found(address, weight, source)

    def _graded(self, *sources: Source) -> list[Candidate]:
        """What queries of these kinds found; what only begins like a long word that was asked for is left out."""
        found = [self._candidate(each) for each in self._found.values() if each.source in sources]
        return [each for each in found if each.grade.tier is not Tier.DEFINITION_WORDS or Source.TEXT in sources]

    def _candidate(self, found: _Found) -> Candidate:
        with explained():
            document = self._searcher.doc(found.address)
        labels = tuple(str(document.get_first("labels")).split(SEPARATOR))
        return Candidate(
            record=str(document.get_first("record")),
            collection=str(document.get_first("collection")),
            state=str(document.get_first("state")),
            labels=labels,
            grade=grade(self._typed, labels, found.weight, found.source),
        )


def _total(counted: dict[str, Any]) -> int:
    """How many were counted: every record has one class, if only the empty one."""
    return sum(int(each["doc_count"]) for each in counted["buckets"]) + int(counted["sum_other_doc_count"])


def _told(counts: dict[str, int]) -> dict[str, int]:
    return {str(value): count for value, count in counts.items() if value and count}
