"""Expected state after all writes, compared with the catalogue."""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lexarium.domain.identifiers import MAIN_VOCABULARY

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class WriteRequest:
    """A write, which must be applied completely or not at all."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    # Facts that the write makes true (see `derive_facts`), different for each write.
    facts: tuple[str, ...]
    expected: tuple[int, ...] = (200, 201)
    # Called with the results of a successful response.
    on_success: Callable[[list[Json]], None] = lambda results: None
    # It may be sent again if it got no response.
    is_repeatable: bool = True


@dataclass
class ExpectedState:
    """Writes of all clients and their responses."""

    acknowledged: list[WriteRequest] = field(default_factory=list)
    refused: list[WriteRequest] = field(default_factory=list)
    # No response, or 503.
    unanswered: list[WriteRequest] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    # Responses by record id and version.
    responses: dict[tuple[str, int], Json] = field(default_factory=dict)
    # First response about each other item, by its key.
    created_items: dict[str, Json] = field(default_factory=dict)
    # Set by every response.
    any_response: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_response(self, request: WriteRequest, status: int, body: bytes = b"") -> None:
        """Record the response to a write; status 0 means none."""
        with self._lock:
            if status in (0, 503):
                self.unanswered.append(request)
            elif status not in request.expected:
                self.unexpected.append(f"{request.method} {request.path} answered {status}: {body[:500].decode()}")
            elif status < 400:
                results = [json.loads(line) for line in body.splitlines()]
                self.acknowledged.append(request)
                for result in results:
                    if "slug" in result:
                        continue
                    if "version" in result:
                        self.responses[result["id"], result["version"]] = result
                    else:
                        self.created_items.setdefault(_get_key(result), result)
                request.on_success(results)
            else:
                self.refused.append(request)
        if status:
            self.any_response.set()

    def record_import(self, request: WriteRequest, exit_code: int | None, errors: str) -> None:
        """Record the end of an import, which is negative if it was killed."""
        with self._lock:
            if exit_code == 0:
                self.acknowledged.append(request)
            elif exit_code is not None and exit_code < 0:
                self.unanswered.append(request)
            else:
                self.unexpected.append(f"import into {request.path} exited with {exit_code}: {errors[-500:]}")

    def take_retryable(self) -> list[WriteRequest]:
        """Remove and return the unanswered writes that may be repeated."""
        retryable = [request for request in self.unanswered if request.is_repeatable]
        self.unanswered = [request for request in self.unanswered if not request.is_repeatable]
        return retryable

    def find_problems(self, changes: Iterable[Json], items: Mapping[str, Json], facts: Iterable[str]) -> Iterator[str]:
        """Yield differences between the responses and the catalogue: its feed, its other items and their facts."""
        yield from self.unexpected
        fact_counts: Counter[str] = Counter(facts)
        yield from self._find_missing_items(items)
        records: dict[str, Json] = {}
        heads: dict[str, Json] = {}
        responses = dict(self.responses)
        last_seq = 0
        for change in changes:
            if change["seq"] != last_seq + 1:
                yield f"the feed has no changes between {last_seq} and {change['seq']}"
            last_seq = change["seq"]
            if change["vocabulary"] != MAIN_VOCABULARY:
                fact_counts.update(_derive_vocabulary_facts(change, heads))
                continue
            fact_counts.update(derive_facts(change, records))
            records[change["id"]] = record = change["record"]
            if not _is_complete(record["definition_text"]):
                yield f"version {change['version']} of {change['id']} is incomplete"
            response = responses.pop((change["id"], change["version"]), {})
            if any(record.get(name) != value for name, value in response.items() if name not in _VARYING):
                yield f"version {change['version']} of {change['id']} differs from the response"
        yield from (
            f"version {version} of {record_id} was acknowledged, but is missing" for record_id, version in responses
        )
        for request in self.acknowledged:
            yield from (
                f"“{fact}” was acknowledged, but is true {fact_counts[fact]} times"
                for fact in request.facts
                if fact_counts[fact] != 1
            )
        for request in self.refused:
            yield from (f"“{fact}” was rejected, but is true" for fact in request.facts if fact_counts[fact])
        for request in self.unanswered:
            fact_totals = sorted({fact_counts[fact] for fact in request.facts})
            if fact_totals not in ([0], [1]):
                yield f"“{'”, “'.join(sorted(request.facts))}” had no response and is partly true: {fact_totals} times"

    def _find_missing_items(self, items: Mapping[str, Json]) -> Iterator[str]:
        for key, response in self.created_items.items():
            item = items.get(key)
            if item is None:
                yield f"{key} was acknowledged, but is missing"
            elif any(item[name] != response[name] for name in _IMMUTABLE_FIELDS if name in response):
                yield f"{key} differs from the response"


def derive_facts(change: Json, records: dict[str, Json]) -> Iterator[str]:
    """Yield the facts that a change made true and update the records; records are named by their constant names."""
    record = change["record"]
    if change["proposal"] is not None:
        yield f"{change['proposal']} is applied"
    previous = records.get(change["id"])
    name = record["name"]
    if previous is None:
        yield f"{name} exists"
        previous = {"definition_text": record["definition_text"], "relations": {}, "state": "published", "aliases": []}
    if record["definition_text"] != previous["definition_text"]:
        yield f"{name} says {get_marker(record['definition_text'])}"
    yield from (
        f"{name} {relation} {records[target]['name']}"
        for relation, targets in record["relations"].items()
        for target in targets
        if target not in previous["relations"].get(relation, ())
    )
    if record["state"] != previous["state"]:
        survivor = records[record["replaced_by"]]["name"] if record["replaced_by"] else None
        yield f"{name} is {record['state']}" + (f" into {survivor}" if survivor else "")
    yield from (
        f"{name} is also called {alias['text']}" for alias in record["aliases"] if alias not in previous["aliases"]
    )


def _derive_vocabulary_facts(change: Json, heads: dict[str, Json]) -> Iterator[str]:
    """Yield the facts that a change of a vocabulary or of its records made true and update the head records."""
    record, slug = change["record"], change["vocabulary"]
    if change["collection"] != "vocabulary":
        yield f"{record['name']} is imported"
        return
    previous = heads.get(slug)
    if previous is None:
        yield f"vocabulary {slug} exists"
    if previous is None or record["name"] != previous["name"]:
        yield f"vocabulary {slug} is called {record['name']}"
    schema = record["fields"]["schema"]
    if previous is not None and schema != previous["fields"]["schema"]:
        yield format_schema_fact(slug, schema.partition("\nname: ")[2].partition("\n")[0])
    heads[slug] = record


def format_schema_fact(slug: str, name: str) -> str:
    """Return the fact that a vocabulary has a schema."""
    return f"vocabulary {slug} has the schema {name}"


# Fields of a response that a record does not have, and that begin with the URL of the server.
_VARYING = ("warnings", "iri")
# Fields of other items that never change.
_IMMUTABLE_FIELDS = (
    "id",
    "name",
    "revision",
    "note",
    "by",
    "at",
    "label",
    "account",
    "url",
    "collections",
    "change",
    "created",
)


def index_by_key(items: Iterable[Json]) -> dict[str, Json]:
    """Return items by their keys."""
    return {_get_key(item): item for item in items}


def _get_key(item: Json) -> str:
    """Return the key of an item that is not a record: its id, else its name."""
    key: str = item.get("id") or item["name"]
    return key


def build_write(method: str, path: str, lines: list[Json], facts: list[str]) -> WriteRequest:
    """Build a write with an idempotency key."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
    body = b"\n".join(json.dumps(line).encode() for line in lines)
    return WriteRequest(method, path, headers, body, tuple(facts))


def new_name() -> str:
    """Return a unique name."""
    return uuid.uuid4().hex


def build_definition(marker: str) -> str:
    """Build a definition that begins with a marker; some span several database pages."""
    repetitions = 300 if marker.endswith("0") else 10
    return " ".join([marker] * repetitions) + " ."


def get_marker(text: str) -> str:
    """Return the marker at the beginning of a definition."""
    return text.partition(" ")[0]


def _is_complete(text: str) -> bool:
    return text == build_definition(get_marker(text))
