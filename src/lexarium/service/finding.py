"""Finding records: what is asked, what is found, and the use case that finds it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.errors import Invalid, Problem, Unready
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.text import unstorable
from lexarium.search.documents import identifiers_of
from lexarium.search.gathering import Candidate, Search
from lexarium.search.index import Broken, Standing, View
from lexarium.search.queries import Filter, Typed
from lexarium.search.ranking import Grade, Span
from lexarium.search.snippets import snippet
from lexarium.search.tiers import EXACT, Tier
from lexarium.service.indexing import Indexer
from lexarium.store import log, records
from lexarium.store.backend import Position, read_position
from lexarium.store.database import Database

LONGEST_QUERY = 10_000
"""How many characters a query may have."""
DEEPEST = 2_000
"""How far one may page."""
_ALIKE = 6
_LOOKED_AT = 50
"""How many hits are looked through for names that are alike: others may have the words in several labels."""
_NEAR = EXACT - {Tier.ID} | {Tier.TYPO}
"""Where what was asked is a whole name or alias, perhaps with a mistake."""


@dataclass(frozen=True)
class Asked:
    """What is looked for, and where."""

    text: str
    """Any text: words, `"phrases"`, an identifier or a CURIE."""
    collections: tuple[str, ...] = ()
    """None: concept, task and disorder, and all of them for an identifier."""
    class_: str | None = None
    """The identifier or the name of a concept class."""
    states: tuple[State, ...] = (State.PUBLISHED,)
    limit: int = 10
    offset: int = 0
    explain: bool = False


@dataclass(frozen=True)
class Hit:
    """A record that was found, and why."""

    id: str
    name: str
    collection: str
    state: State
    replaced_by: str | None
    """The record that stands in for one that is retired or merged."""
    score: float
    """From 1 for an exact match towards 0. It falls from hit to hit."""
    tier: Tier
    field: str
    """What matched: `id`, `name`, `alias` or `definition`."""
    text: str
    """The text that matched, as it is written: which alias, or the part of the definition."""
    highlight: tuple[Span, ...]
    """The parts of `text` that were asked for."""
    explanation: str | None = None
    """How the score came about, where that was asked."""

    @property
    def exact(self) -> bool:
        """Whether the whole of what was asked is the record's identifier, name or alias, folded."""
        return self.tier in EXACT


@dataclass(frozen=True)
class Found:
    """What a search found."""

    hits: list[Hit]
    total: int
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many hits there are in each `collection`, `class` and `state`."""
    class_names: dict[str, str] = field(default_factory=dict)
    """The names of those classes, by identifier."""
    did_you_mean: str | None = None
    """A name or alias close to what was asked, where no name or alias is it."""
    exact: int = 0
    """How many records have what was asked as their identifier, name or alias: more than one are ambiguous."""


@dataclass(frozen=True)
class Suggestion:
    """A completion of what someone types."""

    id: str
    name: str
    collection: str
    text: str
    """The name or alias that completes it."""
    highlight: tuple[Span, ...] = ()


class Finder:
    """Finds records of one catalogue."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def seen(self) -> Position:
        """Where the catalogue stands, for what is asked next. To be called from the one thread that serves."""
        return self._database.position()

    def search(self, asked: Asked, position: Position | None = None) -> Found:
        """The hits, best first, of the position that was seen or else is looked up. Raises `Invalid`."""
        return self.search_many([asked], position)[0]

    def search_many(self, asked: Sequence[Asked], position: Position | None = None) -> list[Found]:
        """The same for many queries, all of one state of the index."""
        for each in asked:
            _refuse(each)
        with self._trust():
            view = self._view(position)
            return [view.answer(each, partial(self._one, view, each)) for each in asked]

    def facets(self, asked: Sequence[Asked]) -> list[dict[str, dict[str, int]]]:
        """How many hits many queries have, by `collection`, `class` and `state`: for less than the hits cost."""
        for each in asked:
            _refuse(each)
        if not asked:
            return []
        with self._trust():
            view = self._view(None)
            return [view.answer(("facets", each), partial(self._counted, view, each)) for each in asked]

    def alike(self, names: Sequence[str], collection: str, but: str | None = None) -> list[Hit]:
        """Records with one of these names, or but for case, accents or a typing mistake; none while there is no index.

        `but` is the one that is to have them itself.
        """
        asked = [Asked(name, (collection,), limit=_LOOKED_AT) for name in names if 0 < len(name) <= LONGEST_QUERY]
        try:
            hits = [hit for found in self.search_many(asked) for hit in found.hits]
        except Unready:
            return []
        near = {hit.id: hit for hit in hits if hit.tier in _NEAR and hit.id != but}
        return list(near.values())[:_ALIKE]

    def behind(self, position: Position) -> int | None:
        """How many changes the index has yet to take in; None where there is no index."""
        return self._indexer.lag(position)

    def suggest(
        self, prefix: str, collections: Sequence[str] = (), limit: int = 10, position: Position | None = None
    ) -> list[Suggestion]:
        """The few best completions of what someone types, over the names and aliases of these collections, or all."""
        _refuse(Asked(prefix, tuple(collections)), "prefix")
        wanted = Filter(tuple(collections) or tuple(COLLECTIONS))
        with self._trust():
            view = self._view(position)
            return view.answer((prefix, wanted, limit), lambda: _suggested(view, prefix, wanted, limit))

    def every(self, text: str, collections: Sequence[str]) -> tuple[Standing, Iterator[str]]:
        """The identifiers of every hit, best first, and when it was so: a little ago, where the index is behind."""
        view = self._view(None)
        search = Search(view, text[:LONGEST_QUERY], Filter(tuple(collections)))
        return view.standing, self._trusted(search.all())

    def _trusted(self, found: Iterator[str]) -> Iterator[str]:
        with self._trust():
            yield from found

    @contextmanager
    def _trust(self) -> Iterator[None]:
        try:
            yield
        except Broken as error:
            self._indexer.distrust()
            raise Unready("The search index is broken, and is made anew. Try again in a moment.") from error

    def _view(self, position: Position | None) -> View:
        if position is None:
            with self._database.read() as snapshot:
                position = read_position(snapshot)
        return self._indexer.at(position)

    def _search(self, view: View, asked: Asked) -> Search:
        return Search(view, asked.text, Filter(asked.collections, asked.states, self._class_id(asked.class_)))

    def _counted(self, view: View, asked: Asked) -> dict[str, dict[str, int]]:
        return self._search(view, asked).facets().by

    def _one(self, view: View, asked: Asked) -> Found:
        search = self._search(view, asked)
        page = search.page(asked.offset, asked.offset + asked.limit)
        facets = search.facets()
        needy = [each.record for each in page if _needs_more(each)]
        wholes = self._wholes(needy) if needy else {}
        return Found(
            hits=[_hit(each, wholes.get(each.record), search.typed, explain=asked.explain) for each in page],
            total=facets.total,
            facets=facets.by,
            class_names=self._class_names(view, facets.by["class"]),
            did_you_mean=search.did_you_mean,
            exact=sum(each.grade.tier in EXACT for each in search.first),
        )

    def _wholes(self, identifiers: Sequence[str]) -> dict[str, Whole]:
        with self._database.read() as snapshot:
            return {record: change.whole() for record, change in log.latest(snapshot, identifiers).items()}

    def _class_names(self, view: View, classes: Iterable[str]) -> dict[str, str]:
        """The names of classes, each looked up once for a state of the index."""
        unknown = sorted(set(classes) - view.class_names.keys())
        if unknown:
            with self._database.read() as snapshot:
                view.class_names.update({**dict.fromkeys(unknown), **records.names(snapshot, unknown)})
        named = ((each, view.class_names[each]) for each in sorted(classes))
        return {each: name for each, name in named if name is not None}

    def _class_id(self, class_: str | None) -> str | None:
        """The identifier of a class that is told by that or by its name. Raises `Invalid` where it is neither."""
        if class_ is None or has_prefix(class_, CONCEPT_CLASS.prefixes):
            return class_
        with self._database.read() as snapshot:
            found = None if unstorable(class_) else records.find_named(snapshot, CONCEPT_CLASS, class_)
        if found is None:
            raise Invalid(
                "This cannot be looked for.", [Problem("class", "should be the identifier or the name of a class.")]
            )
        return found.id


def _suggested(view: View, prefix: str, wanted: Filter, limit: int) -> list[Suggestion]:
    search = Search(view, prefix, wanted, definitions=False)
    return [_suggestion(each, each.shown(search.typed)) for each in search.completions(limit)]


def _suggestion(found: Candidate, given: Grade) -> Suggestion:
    return Suggestion(found.record, found.labels[0], found.collection, given.text, given.highlight)


def _refuse(asked: Asked, text: str = "q") -> None:
    """Raise `Invalid`, with every problem, for what cannot be asked; `text` is what the caller calls that."""
    problems = []
    if len(asked.text) > LONGEST_QUERY:
        problems.append(Problem(text, f"should have at most {LONGEST_QUERY} characters, not {len(asked.text)}."))
    unknown = [name for name in asked.collections if name not in COLLECTIONS]
    if unknown:
        problems.append(Problem("collection", f"should be among {', '.join(COLLECTIONS)}, not {', '.join(unknown)}."))
    if asked.offset + asked.limit > DEEPEST:
        problems.append(Problem("offset", f"should lead to no further than the {DEEPEST:,}th hit, limit included."))
    if problems:
        raise Invalid("This cannot be looked for.", problems)


def _needs_more(found: Candidate) -> bool:
    """Whether a hit needs more of its record than the index holds."""
    return found.grade.field in ("id", "definition") or found.state != State.PUBLISHED


def _hit(found: Candidate, whole: Whole | None, sought: Typed, *, explain: bool) -> Hit:
    given = found.grade
    matched = _matched(found, whole, sought)
    return Hit(
        id=found.record,
        name=found.labels[0],
        collection=found.collection,
        state=State(found.state),
        replaced_by=whole.replaced_by if whole else None,
        score=round(found.score, 4),
        tier=given.tier,
        field=matched.field,
        text=matched.text,
        highlight=matched.highlight,
        explanation=f"{given.tier.kind}: {given.reason}" if explain else None,
    )


class _Matched(NamedTuple):
    field: str
    text: str
    highlight: tuple[Span, ...]


def _matched(found: Candidate, whole: Whole | None, sought: Typed) -> _Matched:
    """The text that shows why a record was found."""
    given = found.grade
    if given.field == "id":
        known = [found.record] if whole is None else identifiers_of(whole)
        text = next((each for each in known if each.casefold() == sought.identifier), found.record)
        return _Matched("id", text, (Span(0, len(text)),))
    if given.field == "definition":
        text, marked = snippet(whole.definition if whole is not None else "", sought)
        if marked:
            return _Matched("definition", text, marked)
    given = found.shown(sought)
    return _Matched(given.field, given.text, given.highlight)
