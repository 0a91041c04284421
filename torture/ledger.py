"""What was asked of a server, what it answered, and whether the catalogue agrees."""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Ask:
    """A write: all that it makes true comes to be, or nothing of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    facts: tuple[str, ...]
    """What it makes true; see `facts_of`. No other write makes the same true."""
    expected: tuple[int, ...] = (200, 201)
    """What may be answered."""
    then: Callable[[list[Json]], None] = lambda told: None
    """Is told of what an answer tells of, where the write was taken."""
    repeatable: bool = True
    """Whether it may be sent again where it had no answer."""


@dataclass
class Ledger:
    """The writes of all writers."""

    acknowledged: list[Ask] = field(default_factory=list)
    refused: list[Ask] = field(default_factory=list)
    unanswered: list[Ask] = field(default_factory=list)
    """Had no answer, or that it cannot be done now."""
    wrong: list[str] = field(default_factory=list)
    """Answers that nobody should get."""
    answers: dict[tuple[str, int], Json] = field(default_factory=dict)
    """What was told of versions of records, in answers."""
    made: dict[str, Json] = field(default_factory=dict)
    """What was told of all else, by what it is known by: at first, of all that was told."""
    heard: threading.Event = field(default_factory=threading.Event)
    """Set with every answer."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, ask: Ask, status: int, body: bytes = b"") -> None:
        """Note an answer; 0: there was none."""
        with self._lock:
            if status in (0, 503):
                self.unanswered.append(ask)
            elif status not in ask.expected:
                self.wrong.append(f"{ask.method} {ask.path} answered {status}: {body[:500].decode()}")
            elif status < 400:
                told = [json.loads(line) for line in body.splitlines()]
                self.acknowledged.append(ask)
                for each in told:
                    if "version" in each:
                        self.answers[each["id"], each["version"]] = each
                    else:
                        self.made.setdefault(_key(each), each)
                ask.then(told)
            else:
                self.refused.append(ask)
        if status:
            self.heard.set()

    def again(self) -> list[Ask]:
        """Take away what may be sent again of all that had no answer."""
        again = [ask for ask in self.unanswered if ask.repeatable]
        self.unanswered = [ask for ask in self.unanswered if not ask.repeatable]
        return again

    def problems(self, changes: Iterable[Json], besides: Mapping[str, Json], facts: Iterable[str]) -> Iterator[str]:
        """How the whole feed of the catalogue, and what there is besides, disagree with what was answered.

        `facts` are those that come of what there is besides.
        """
        yield from self.wrong
        true: Counter[str] = Counter(facts)
        yield from self._unmade(besides)
        records: dict[str, Json] = {}
        told = dict(self.answers)
        last = 0
        for change in changes:
            if change["seq"] != last + 1:
                yield f"the feed goes from {last} to {change['seq']}"
            last = change["seq"]
            true.update(facts_of(change, records))
            records[change["id"]] = record = change["record"]
            if not _is_whole(record["definition_text"]):
                yield f"version {change['version']} of {change['id']} is there in part"
            answer = told.pop((change["id"], change["version"]), {})
            if any(record.get(name) != value for name, value in answer.items() if name != "warnings"):
                yield f"version {change['version']} of {change['id']} is not what was answered"
        yield from (f"version {version} of {of} was acknowledged, and is not there" for of, version in told)
        for ask in self.acknowledged:
            yield from (
                f"“{fact}” was acknowledged, and is so {true[fact]} times" for fact in ask.facts if true[fact] != 1
            )
        for ask in self.refused:
            yield from (f"“{fact}” was refused, and is so" for fact in ask.facts if true[fact])
        for ask in self.unanswered:
            times = sorted({true[fact] for fact in ask.facts})
            if times not in ([0], [1]):
                yield f"of “{'”, “'.join(sorted(ask.facts))}”, which had no answer, some is so: {times} times"

    def _unmade(self, besides: Mapping[str, Json]) -> Iterator[str]:
        for key, answer in self.made.items():
            there = besides.get(key)
            if there is None:
                yield f"{key} was acknowledged, and is not there"
            elif any(there[name] != answer[name] for name in _FIXED if name in answer):
                yield f"{key} is not what was answered"


def facts_of(change: Json, before: dict[str, Json]) -> Iterator[str]:
    """What a change made true, given the records as they were; records go by their names, which stay as they are."""
    record = change["record"]
    if change["proposal"] is not None:
        yield f"{change['proposal']} is made so"
    old = before.get(change["id"])
    name = record["name"]
    if old is None:
        yield f"{name} is there"
        old = {"definition_text": record["definition_text"], "relations": {}, "state": "published", "aliases": []}
    if record["definition_text"] != old["definition_text"]:
        yield f"{name} says {marker_of(record['definition_text'])}"
    yield from (
        f"{name} {relation} {before[target]['name']}"
        for relation, targets in record["relations"].items()
        for target in targets
        if target not in old["relations"].get(relation, ())
    )
    if record["state"] != old["state"]:
        survivor = before[record["replaced_by"]]["name"] if record["replaced_by"] else None
        yield f"{name} is {record['state']}" + (f" into {survivor}" if survivor else "")
    yield from (f"{name} is also called {alias['text']}" for alias in record["aliases"] if alias not in old["aliases"])


_FIXED = ("id", "name", "revision", "note", "by", "at", "label", "account", "url", "collections", "change", "created")
"""What stays as it is, of all that is no record."""


def by_key(things: Iterable[Json]) -> dict[str, Json]:
    """Things that are no records, by what they are known by."""
    return {_key(each): each for each in things}


def _key(thing: Json) -> str:
    """What something is known by that is no record: its id, or its name where it has none."""
    key: str = thing.get("id") or thing["name"]
    return key


def asked(method: str, path: str, lines: list[Json], facts: list[str]) -> Ask:
    """A write that is done once, however often it is sent."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
    body = b"\n".join(json.dumps(line).encode() for line in lines)
    return Ask(method, path, headers, body, tuple(facts))


def unheard_of() -> str:
    """A name that nothing has."""
    return uuid.uuid4().hex


def definition(marker: str) -> str:
    """A definition that begins with a marker; some are long enough to lie on several pages of the file."""
    times = 300 if marker.endswith("0") else 10
    return " ".join([marker] * times) + " ."


def marker_of(text: str) -> str:
    """What a definition begins with."""
    return text.partition(" ")[0]


def _is_whole(text: str) -> bool:
    return text == definition(marker_of(text))
