"""What was asked of a server, what it answered, and whether the catalogue agrees."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
    """Is told of the records that an answer tells of, where the write was taken."""


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
                self.answers |= {(each["id"], each["version"]): each for each in told}
                ask.then(told)
            else:
                self.refused.append(ask)
        if status:
            self.heard.set()

    def problems(self, changes: Iterable[Json]) -> Iterator[str]:
        """How the whole feed of the catalogue disagrees with what was answered."""
        yield from self.wrong
        true: Counter[str] = Counter()
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


def facts_of(change: Json, before: dict[str, Json]) -> Iterator[str]:
    """What a change made true, given the records as they were; records go by their names, which stay as they are."""
    record = change["record"]
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


def definition(marker: str) -> str:
    """A definition that begins with a marker; some are long enough to lie on several pages of the file."""
    times = 300 if marker.endswith("0") else 10
    return " ".join([marker] * times) + " ."


def marker_of(text: str) -> str:
    """What a definition begins with."""
    return text.partition(" ")[0]


def _is_whole(text: str) -> bool:
    return text == definition(marker_of(text))
