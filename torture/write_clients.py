"""Clients that send random record writes, singly and in batches, and those of `operations`."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from threading import Event

from tests.support.server import Server
from torture.expected_state import ExpectedState, Json, WriteRequest, build_definition, build_write, new_name
from torture.operations import OtherOperations
from torture.vocabulary_operations import VocabularyOperations

_CONCEPTS = "/api/v1/concept"
_SHARED_RECORDS = 3
# Share of writes other than records.
_OTHER_SHARE = 0.4

ResponseHandler = Callable[[list[Json]], None]


@dataclass
class KnownRecord:
    """Record as a client knows it."""

    name: str
    id: str = ""
    version: int = 0
    related_ids: set[str] = field(default_factory=set)

    def update_from(self, response: Json) -> None:
        """Update from a response, which may be about an older version."""
        self.id = response["id"]
        self.version = max(self.version, response["version"])


@dataclass
class WriteClient:
    """Send random writes to records of its own and to shared ones."""

    rng: random.Random
    token: str
    # Records that all clients edit.
    shared_records: list[KnownRecord]
    other_operations: OtherOperations
    vocabulary_operations: VocabularyOperations
    # Own records without a pending request.
    idle_records: list[KnownRecord] = field(default_factory=list)
    # Own records to merge, the first into the second.
    merge_pairs: list[tuple[KnownRecord, KnownRecord]] = field(default_factory=list)

    def build_next(self) -> WriteRequest:
        """Build the next write."""
        operations = [self._create, self._create_batch, self._build_invalid_batch, self._create_merge_pair]
        if len(self.idle_records) > 2:
            operations += [self._edit, self._edit, self._relate, self._relate, self._retire]
        if self.merge_pairs:
            operations += [self._merge, self._merge]
        if self.shared_records:
            operations += [self._edit_shared]
        if self.rng.random() < _OTHER_SHARE:
            others = self.other_operations.list_possible() + self.vocabulary_operations.list_possible()
            return self.rng.choice(others)()
        return self.rng.choice(operations)()

    def write(self, server: Server, expected_state: ExpectedState, stop: Event, retryable: list[WriteRequest]) -> None:
        """Repeat unanswered writes, then send new ones until stopped."""
        while not stop.is_set():
            request = retryable.pop() if retryable else self.build_next()
            headers = {"Authorization": f"Bearer {self.token}", **request.headers}
            status, body = 0, b""
            with suppress(OSError, HTTPException):
                response = server.request(request.method, request.path, headers, request.body or None)
                status, body = response.status, response.body
            expected_state.record_response(request, status, body)
        for request in retryable:
            expected_state.record_response(request, 0)

    def _create(self) -> WriteRequest:
        record = KnownRecord(new_name())
        target = self.shared_records if len(self.shared_records) < _SHARED_RECORDS else self.idle_records
        return replace(
            build_write("POST", _CONCEPTS, [_build_draft(record)], [_format_created_fact(record)]),
            on_success=_remember([record], target),
        )

    def _edit(self) -> WriteRequest:
        record = self._pop_random()
        return replace(_build_edit(record), on_success=_remember([record], self.idle_records))

    def _edit_shared(self) -> WriteRequest:
        """Edit a shared record, with a conflict if another client has changed it."""
        record = self.rng.choice(self.shared_records)
        return replace(_build_edit(record), on_success=_remember([record], []), expected=(200, 412))

    def _relate(self) -> WriteRequest:
        record, target = self._pop_random(), self._pop_random()
        if target.id in record.related_ids:
            self.idle_records += (record, target)
            return self._edit()
        record.related_ids.add(target.id)

        def on_success(results: list[Json]) -> None:
            _remember([record], self.idle_records)(results)
            self.idle_records.append(target)  # not sooner: it must exist, not retired, when this write is applied

        relation = {"relation": "RELATED", "target": target.id}
        return replace(
            _build_record_write(record, "PUT", "/relations", relation, [f"{record.name} RELATED {target.name}"]),
            on_success=on_success,
        )

    def _retire(self) -> WriteRequest:
        record = self._pop_random()
        return _build_record_write(record, "DELETE", "", None, [f"{record.name} is retired"])

    def _create_merge_pair(self) -> WriteRequest:
        """Create two records to be merged, and one related to the first."""
        first, second = KnownRecord(new_name()), KnownRecord(new_name())
        related = KnownRecord(f"{first.name}-related")
        lines = [{**_build_create_line(first), "as": "first"}, _build_create_line(second), _build_create_line(related)]
        lines[2]["record"]["relations"] = {"RELATED": ["$first"]}
        facts = [*map(_format_created_fact, (first, second, related)), f"{related.name} RELATED {first.name}"]

        def on_success(results: list[Json]) -> None:
            _remember([first, second, related], [])(results)
            self.merge_pairs.append((first, second))

        return replace(_build_batch(lines, facts), on_success=on_success)

    def _merge(self) -> WriteRequest:
        first, second = self.merge_pairs.pop()
        facts = [
            f"{first.name} is merged into {second.name}",
            f"{second.name} is also called {first.name}",
            f"{first.name}-related RELATED {second.name}",
        ]
        return _build_record_write(first, "POST", "/merge", {"into": second.id}, facts)

    def _create_batch(self) -> WriteRequest:
        records = [KnownRecord(new_name()) for _ in range(4)]
        first, second = records[:2]
        lines, facts = list(map(_build_create_line, records)), list(map(_format_created_fact, records))
        lines[0]["as"], lines[1]["as"] = "first", "second"
        if len(self.idle_records) > 2:
            edited, retired, marker = self._pop_random(), self._pop_random(), new_name()
            lines.append({"op": "update", "id": edited.id, "change": {"definition_text": build_definition(marker)}})
            lines.append({"op": "retire", "id": retired.id, "version": retired.version})
            facts += [f"{edited.name} says {marker}", f"{retired.name} is retired"]
            records.append(edited)
        lines.append({"op": "relate", "id": "$first", "relation": "RELATED", "target": "$second"})
        facts.append(f"{first.name} RELATED {second.name}")

        def on_success(results: list[Json]) -> None:
            _remember(records, self.idle_records)(results[: len(records)])
            first.update_from(results[-1])
            first.related_ids.add(second.id)

        return replace(_build_batch(lines, facts), on_success=on_success)

    def _build_invalid_batch(self) -> WriteRequest:
        """Build a batch with an invalid last line, of which nothing may be stored."""
        record = KnownRecord(new_name())
        lines, facts = [_build_create_line(record)], [_format_created_fact(record)]
        if self.idle_records:
            edited, marker = self.rng.choice(self.idle_records), new_name()
            lines.append({"op": "update", "id": edited.id, "change": {"definition_text": build_definition(marker)}})
            facts.append(f"{edited.name} says {marker}")
        lines.append({"op": "create", "collection": "concept", "record": {"name": ""}})
        return replace(_build_batch(lines, facts), expected=(422,))

    def _pop_random(self) -> KnownRecord:
        return self.idle_records.pop(self.rng.randrange(len(self.idle_records)))


def _remember(records: Sequence[KnownRecord], target: list[KnownRecord]) -> ResponseHandler:
    """Return a handler that updates records and adds them to a list."""

    def on_success(results: list[Json]) -> None:
        for record, result in zip(records, results, strict=True):
            record.update_from(result)
        target.extend(records)

    return on_success


def _format_created_fact(record: KnownRecord) -> str:
    return f"{record.name} exists"


def _build_draft(record: KnownRecord) -> Json:
    return {"name": record.name, "definition_text": build_definition(record.name)}


def _build_create_line(record: KnownRecord) -> Json:
    return {"op": "create", "collection": "concept", "record": _build_draft(record)}


def _build_edit(record: KnownRecord) -> WriteRequest:
    marker = new_name()
    return _build_record_write(
        record, "PATCH", "", {"definition_text": build_definition(marker)}, [f"{record.name} says {marker}"]
    )


def _build_record_write(
    record: KnownRecord, method: str, suffix: str, body: Json | None, facts: list[str]
) -> WriteRequest:
    """Build a write to the known version of a record."""
    request = build_write(method, f"{_CONCEPTS}/{record.id}{suffix}", [] if body is None else [body], facts)
    request.headers["If-Match"] = f'"{record.version}"'
    return request


def _build_batch(lines: list[Json], facts: list[str]) -> WriteRequest:
    request = build_write("POST", "/api/v1/batch", lines, facts)
    request.headers["Content-Type"] = "application/x-ndjson"
    return request
