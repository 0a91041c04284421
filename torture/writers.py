"""What writers ask of a server: records made, changed, related, retired and merged, one by one and in batches.

And what there is besides: see `affairs`.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from threading import Event

from tests.server import Server
from torture.affairs import Affairs
from torture.ledger import Ask, Json, Ledger, asked, definition, unheard_of

_CONCEPTS = "/api/v1/concept"
_CONTESTED = 3
"""How many records all writers change."""
_BESIDES = 0.4
"""The share of what is asked that is about no record, or not at first."""

Then = Callable[[list[Json]], None]


@dataclass
class Term:
    """A record, as a writer knows it."""

    name: str
    id: str = ""
    version: int = 0
    related: set[str] = field(default_factory=set)
    """The ids of the records that it is related to."""

    def heard(self, told: Json) -> None:
        """Hear of a version of it, perhaps not the last."""
        self.id = told["id"]
        self.version = max(self.version, told["version"])


@dataclass
class Writer:
    """One who writes, each time something else, to records of its own and to some that all writers change."""

    chance: random.Random
    token: str
    contested: list[Term]
    """The records that all writers change."""
    affairs: Affairs
    """What it does besides."""
    free: list[Term] = field(default_factory=list)
    """Records of its own that no request is under way for."""
    families: list[tuple[Term, Term]] = field(default_factory=list)
    """Records of its own to be merged, the first into the second."""

    def ask(self) -> Ask:
        """The next thing to ask."""
        kinds = [self._create, self._batch, self._wrong_batch, self._family]
        if len(self.free) > 2:
            kinds += [self._edit, self._edit, self._relate, self._relate, self._retire]
        if self.families:
            kinds += [self._merge, self._merge]
        if self.contested:
            kinds += [self._contest]
        if self.chance.random() < _BESIDES:
            return self.chance.choice(self.affairs.kinds())()
        return self.chance.choice(kinds)()

    def write(self, server: Server, ledger: Ledger, stop: Event, again: list[Ask]) -> None:
        """Write until told to stop: first again what had no answer, then ever new things."""
        while not stop.is_set():
            ask = again.pop() if again else self.ask()
            headers = {"Authorization": f"Bearer {self.token}", **ask.headers}
            status, body = 0, b""
            with suppress(OSError, HTTPException):
                answer = server.request(ask.method, ask.path, headers, ask.body or None)
                status, body = answer.status, answer.body
            ledger.answered(ask, status, body)
        for ask in again:
            ledger.answered(ask, 0)

    def _create(self) -> Ask:
        term = Term(unheard_of())
        place = self.contested if len(self.contested) < _CONTESTED else self.free
        return replace(asked("POST", _CONCEPTS, [_draft(term)], [_is_there(term)]), then=_known([term], place))

    def _edit(self) -> Ask:
        term = self._taken()
        return replace(_edit_of(term), then=_known([term], self.free))

    def _contest(self) -> Ask:
        """Change what another may have changed meanwhile: then it is refused."""
        term = self.chance.choice(self.contested)
        return replace(_edit_of(term), then=_known([term], []), expected=(200, 412))

    def _relate(self) -> Ask:
        term, other = self._taken(), self._taken()
        if other.id in term.related:
            self.free += (term, other)
            return self._edit()
        term.related.add(other.id)

        def then(told: list[Json]) -> None:
            _known([term], self.free)(told)
            self.free.append(other)  # not sooner: it must be there, and not be retired, whenever this is done

        edge = {"relation": "RELATED", "target": other.id}
        return replace(
            _asked_of(term, "PUT", "/relations", edge, [f"{term.name} RELATED {other.name}"]),
            then=then,
        )

    def _retire(self) -> Ask:
        term = self._taken()
        return _asked_of(term, "DELETE", "", None, [f"{term.name} is retired"])

    def _family(self) -> Ask:
        """Make two records that are to be merged, and one that is related to the first."""
        first, second = Term(unheard_of()), Term(unheard_of())
        related = Term(f"{first.name}-related")
        lines = [{**_creation(first), "as": "first"}, _creation(second), _creation(related)]
        lines[2]["record"]["relations"] = {"RELATED": ["$first"]}
        facts = [*map(_is_there, (first, second, related)), f"{related.name} RELATED {first.name}"]

        def then(told: list[Json]) -> None:
            _known([first, second, related], [])(told)
            self.families.append((first, second))

        return replace(_batch(lines, facts), then=then)

    def _merge(self) -> Ask:
        first, second = self.families.pop()
        facts = [
            f"{first.name} is merged into {second.name}",
            f"{second.name} is also called {first.name}",
            f"{first.name}-related RELATED {second.name}",
        ]
        return _asked_of(first, "POST", "/merge", {"into": second.id}, facts)

    def _batch(self) -> Ask:
        terms = [Term(unheard_of()) for _ in range(4)]
        first, second = terms[:2]
        lines, facts = list(map(_creation, terms)), list(map(_is_there, terms))
        lines[0]["as"], lines[1]["as"] = "first", "second"
        if len(self.free) > 2:
            edited, retired, marker = self._taken(), self._taken(), unheard_of()
            lines.append({"op": "update", "id": edited.id, "change": {"definition_text": definition(marker)}})
            lines.append({"op": "retire", "id": retired.id, "version": retired.version})
            facts += [f"{edited.name} says {marker}", f"{retired.name} is retired"]
            terms.append(edited)
        lines.append({"op": "relate", "id": "$first", "relation": "RELATED", "target": "$second"})
        facts.append(f"{first.name} RELATED {second.name}")

        def then(told: list[Json]) -> None:
            _known(terms, self.free)(told[: len(terms)])
            first.heard(told[-1])
            first.related.add(second.id)

        return replace(_batch(lines, facts), then=then)

    def _wrong_batch(self) -> Ask:
        """Nothing of it may be kept: its last line is wrong."""
        term = Term(unheard_of())
        lines, facts = [_creation(term)], [_is_there(term)]
        if self.free:
            edited, marker = self.chance.choice(self.free), unheard_of()
            lines.append({"op": "update", "id": edited.id, "change": {"definition_text": definition(marker)}})
            facts.append(f"{edited.name} says {marker}")
        lines.append({"op": "create", "collection": "concept", "record": {"name": ""}})
        return replace(_batch(lines, facts), expected=(422,))

    def _taken(self) -> Term:
        return self.free.pop(self.chance.randrange(len(self.free)))


def _known(terms: Sequence[Term], place: list[Term]) -> Then:
    """What to do when these records are heard of: they are put into that place."""

    def then(told: list[Json]) -> None:
        for term, each in zip(terms, told, strict=True):
            term.heard(each)
        place.extend(terms)

    return then


def _is_there(term: Term) -> str:
    return f"{term.name} is there"


def _draft(term: Term) -> Json:
    return {"name": term.name, "definition_text": definition(term.name)}


def _creation(term: Term) -> Json:
    return {"op": "create", "collection": "concept", "record": _draft(term)}


def _edit_of(term: Term) -> Ask:
    marker = unheard_of()
    return _asked_of(term, "PATCH", "", {"definition_text": definition(marker)}, [f"{term.name} says {marker}"])


def _asked_of(term: Term, method: str, rest: str, body: Json | None, facts: list[str]) -> Ask:
    """A write to a record, at the version that is known."""
    ask = asked(method, f"{_CONCEPTS}/{term.id}{rest}", [] if body is None else [body], facts)
    ask.headers["If-Match"] = f'"{term.version}"'
    return ask


def _batch(lines: list[Json], facts: list[str]) -> Ask:
    ask = asked("POST", "/api/v1/batch", lines, facts)
    ask.headers["Content-Type"] = "application/x-ndjson"
    return ask
