"""JSON Lines: every version of every record, in the order of the log, with all that is known of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any, BinaryIO, get_args

import orjson

from lexarium.domain.about import About
from lexarium.domain.aliases import DEFAULT_LANGUAGE, Alias, Scope, is_language
from lexarium.domain.changes import Action, Change, Proposed, State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.identifiers import is_too_long
from lexarium.domain.relations import LONGEST_TARGET, Edge
from lexarium.domain.text import unstorable
from lexarium.exchange import valpha
from lexarium.exchange.incoming import Incoming, Malformed, Reading, Version, no_collection

FORMAT = 1
"""To be raised when an older Lexarium would misread what is written."""

_LONGEST_LINE = 64 << 20
"""In bytes: a line that does not end by then is no record."""
_MOST = 2**63 - 1
_SCOPES: tuple[str, ...] = get_args(Scope)


def write(about: About, revision: int, changes: Iterable[Change | None]) -> Iterator[bytes]:
    """A line that says what it is, then a line a change; an empty piece where None stands for a pause."""
    yield orjson.dumps({"lexarium": "jsonl", "format": FORMAT, **asdict(about), "revision": revision}) + b"\n"
    batch = write = 0
    for change in changes:
        if change is None:
            yield b""
            continue
        if change.batch != batch:
            batch, write = change.batch, write + 1
        told = {
            "collection": change.collection,
            "id": change.record,
            "version": change.version,
            "write": write,
            "at": change.at,
            "actor": change.actor,
            "action": change.action,
        }
        # The document is JSON already: to read it and write it again would take most of the time.
        yield orjson.dumps(told)[:-1] + b"," + change.document[1:] + b"\n"


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The versions of records; also records as a v-alpha server gives them, one a line."""
    lines = _Lines(reading)
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if line.strip():
            yield _taken(lines, number, line)
    if not number:
        raise Malformed("the file is empty; a record a line was expected", 1, 1)


def _taken(lines: "_Lines", number: int, line: bytes) -> Incoming:
    """What a line tells; what is wrong with it, where it is no JSON: the next may be."""
    try:
        given = _object(number, line)
    except Malformed as error:
        return error.incoming()
    return lines.taken(number, given)


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        what = "the line is too long, or it" if len(line) == _LONGEST_LINE else "the line"
        raise Malformed(f"{what} is not one JSON object: {error.msg}", number, error.colno) from None
    if not isinstance(given, dict):
        raise Malformed("an object, one record, was expected on the line", number, 1)
    return given


class _Lines:
    """Makes records of the lines of a document."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._of = {name: replace(reading, collection=each, map={}) for name, each in COLLECTIONS.items()}
        """How a record of each collection is read."""

    def taken(self, number: int, given: dict[str, Any]) -> Incoming:
        """What a line tells."""
        if "lexarium" in given:
            return self._header(number, given)
        if "record" not in given:
            return valpha.taken(number, given, self._reading)
        collection = self._reading.collection or self._told(number, given)
        if collection is None:
            what = f"its collection is {given['collection']!r}, which is none of {', '.join(COLLECTIONS)}"
            return Incoming(number, problems=[what])
        if not isinstance(given["record"], dict):
            return Incoming(number, problems=["its record is not an object"])
        incoming = valpha.taken(number, given["record"], self._of[collection.name])
        if not incoming.problems:
            _Rest(collection, given, incoming).take()
        return incoming

    def _header(self, number: int, given: dict[str, Any]) -> Incoming:
        told = given.get("format")
        if given["lexarium"] != "jsonl" or type(told) is not int:
            raise Malformed("the line does not say which format it begins, as an export's first line does", number, 1)
        if told > FORMAT:
            what = f"a newer Lexarium wrote this: its format is {told}, and this one reads up to {FORMAT}"
            raise Malformed(what, number, 1)
        language, ours = given.get("language", ""), self._reading.about.language
        differs = f"its language is {language}, and this catalogue's is {ours}; names are taken as they are"
        return Incoming(number, warnings=[differs] if language and language != ours else [])

    def _told(self, number: int, given: dict[str, Any]) -> Collection | None:
        told = given.get("collection")
        if told is None:
            if self._reading.fallback is None:
                raise no_collection(number)
            return self._reading.fallback
        return COLLECTIONS.get(told) if isinstance(told, str) else None


class _Rest:
    """What a line tells of a record besides its fields, checked for its types."""

    def __init__(self, collection: Collection, given: dict[str, Any], incoming: Incoming) -> None:
        self._collection = collection
        self._given = given
        self._incoming = incoming
        self._id: str = incoming.fields["id"]

    def take(self) -> None:
        """Take all of it."""
        incoming = self._incoming
        if self._given.get("id", self._id) != self._id:
            self._wrong("id", f"is not its record's, {self._id}")
        state = self._text("state", State.PUBLISHED)
        if state in set(State):
            incoming.state = State(state)
        else:
            self._wrong("state", f"is none of {', '.join(State)}")
        incoming.replaced_by = self._text("replaced_by", None)
        incoming.aliases = self._aliases()
        incoming.sources = tuple(self._texts("sources", self._given.get("sources", [])))
        self._relate()
        if "version" in self._given:
            self._date()

    def _relate(self) -> None:
        relations = self._given.get("relations", {})
        if not isinstance(relations, dict):
            self._wrong("relations", "is not an object")
            return
        usable = self._collection.relations
        for name, targets in relations.items():
            if name not in usable:
                self._wrong("relations", f"has {name!r}, which is no relation of a {self._collection.name}")
                continue
            for target in self._texts(f"relations/{name}", targets):
                inside = usable[name].target is not None
                if not target or (is_too_long(target) if inside else len(target.encode()) > LONGEST_TARGET):
                    self._wrong(f"relations/{name}", "has a target that is empty or too long")
                self._incoming.edges.append(Edge(self._id, name, target))
        self._incoming.told += [(name, "source") for name in sorted(usable)]

    def _aliases(self) -> tuple[Alias, ...] | None:
        """Those told as a list; None where the field `alias` tells them."""
        told = self._given.get("aliases")
        if told is None:
            return None
        if not isinstance(told, list) or not all(map(_is_alias, told)):
            self._wrong("aliases", 'is not a list of other names, each as {"text": …, "lang": "en", "scope": …}')
            return None
        # Not held to the rules for what people write: what was imported once is kept as it is.
        return tuple(Alias.model_construct(**alias) for alias in told)

    def _date(self) -> None:
        """Take which version it is, and how it came to be."""
        number, write, at = (self._number(name, least) for name, least in (("version", 1), ("write", 0), ("at", 0)))
        actor, action = self._text("actor", "") or "", self._text("action", "") or ""
        if not actor or is_too_long(actor):
            self._wrong("actor", "is missing, or too long")
        if action not in set(Action):
            self._wrong("action", f"is none of {', '.join(Action)}")
        proposed = self._proposed()
        if not self._incoming.problems:
            self._incoming.version = Version(number, write, at, actor, Action(action), proposed)

    def _proposed(self) -> Proposed | None:
        told = self._given.get("proposed")
        if told is None:
            return None
        if not isinstance(told, dict) or set(told) != {"proposal", "by"}:
            self._wrong("proposed", 'is not as {"proposal": …, "by": …}')
            return None
        return Proposed(*self._texts("proposed", [told["proposal"], told["by"]]))

    def _number(self, name: str, least: int) -> int:
        value = self._given.get(name)
        if type(value) is not int or not least <= value <= _MOST:
            self._wrong(name, f"is not a whole number from {least} on")
            return least
        return value

    def _text(self, name: str, otherwise: str | None) -> str | None:
        value = self._given.get(name)
        return otherwise if value is None else next(iter(self._texts(name, [value])), otherwise)

    def _texts(self, name: str, values: Any) -> list[str]:
        """A list of texts; an empty one where it is none, which is noted."""
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self._wrong(name, "is not made of texts")
            return []
        char = unstorable("".join(values))
        if char:
            self._wrong(name, f"holds the character {char}, which cannot be stored")
            return []
        return values

    def _wrong(self, name: str, what: str) -> None:
        self._incoming.problems.append(f"{name} of {self._id} {what}")


def _is_alias(told: Any) -> bool:
    texts = isinstance(told, dict) and all(isinstance(value, str) for value in told.values())
    if not texts or not {"text"} <= told.keys() <= {"text", "lang", "scope"}:
        return False
    # Formats of RDF write a language as it stands: what is none would break them.
    return told.get("scope", "exact") in _SCOPES and is_language(told.get("lang", DEFAULT_LANGUAGE))
