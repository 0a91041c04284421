"""Python client of a catalogue: read, search and write over its `/api/v1`.

with Catalogue("http://127.0.0.1:8000") as catalogue:
    for concept in catalogue.concepts():
        print(concept["name"])

Results are plain dictionaries, typed in `lexarium.answers`. Requests are repeated where the service is busy or the
connection is lost; writes carry an idempotency key, so that they are done once.
"""

import json
import os
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote, urlencode

from lexarium.client.models import (
    Annotation,
    Change,
    Hit,
    Proposal,
    Reached,
    Record,
    Related,
    Suggestion,
    Version,
    Vocabulary,
)
from lexarium.client.transport import HttpResponse, Request, Transport, Unreachable
from lexarium.compression import get_compressor
from lexarium.domain.errors import LexariumError

_PAGE_SIZE = 1_000
_CACHE_BYTES = 16 << 20
_UNLIMITED = 1 << 62
_MAX_ATTEMPTS = 5

RowT = TypeVar("RowT", bound=Mapping[str, Any])


class Refused(LexariumError):
    """The service refused a request: its message, problem document, and messages by field."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"The server responded with {status}."))
        self.status = status
        self.problem = dict(problem)
        self.fields = {str(error["pointer"]).lstrip("/"): str(error["detail"]) for error in problem.get("errors", [])}


class NotFound(Refused):
    """There is no such record, or it is retired: `problem["replaced_by"]` may name its replacement."""


class Stale(Refused):
    """The record has changed since it was read: `problem["record"]` is its current version."""


_ERROR_TYPES: dict[int, type[Refused]] = {404: NotFound, 410: NotFound, 412: Stale}


class Rows(list[RowT], Generic[RowT]):
    """A list of results that converts to a table."""

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return _to_dataframe(self)


@dataclass(frozen=True)
class Records:
    """Records of a list, fetched page by page during iteration, all as of the first page."""

    _catalogue: "Catalogue"
    _path: str
    _filters: Mapping[str, Any]

    def __iter__(self) -> Iterator[Record]:
        return _iter_pages(self._catalogue, self._path, "cursor", self._filters)

    @property
    def total(self) -> int:
        """Return the number of records."""
        return self._catalogue.read(self._path, **self._filters, limit=1)["total"]

    def to_frame(self) -> Any:
        """Return the records as a pandas DataFrame."""
        return _to_dataframe(list(self))


class Catalogue:
    """A catalogue at a URL. Not thread-safe: use one per thread."""

    def __init__(self, base_url: str, token: str | None = None, *, seconds: float = 30) -> None:
        """Connect with a token, if any; `seconds` is the timeout of each network operation."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._transport = Transport(base_url, headers=headers, timeout=seconds)
        self._etag_cache: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._cached_bytes = 0

    def __repr__(self) -> str:
        return f"Catalogue({self._transport.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    # Reading

    def about(self) -> dict[str, Any]:
        """Return the description of the service: revision, counts, limits and links."""
        return self.read("")

    def vocabularies(self) -> Rows[Vocabulary]:
        """Return the vocabularies that the token may read, the default one first."""
        return Rows(self.read("/vocabularies")["items"])

    def get(
        self,
        id: str,
        *,
        vocabulary: str | None = None,
        lang: str | None = None,
        release: str | None = None,
        as_of: int | None = None,
    ) -> Record:
        """Return a record of any collection, the survivor of a merged one; raise `NotFound`.

        Without `vocabulary`, raise `Refused` with `problem["candidates"]` if several have a record of this id.
        """
        path = f"/records/{_quote(id)}"
        return self.read(path, vocabulary=vocabulary, lang=lang, release=release, as_of=as_of)

    def records(self, collection: str, *, vocabulary: str | None = None, **filters: Any) -> Records:
        """Return the records of a collection, by default of the default vocabulary, sorted by name.

        Filters: `name`, `ids`, `class_`, `user`, `state`, `flagged`, `updated_since`. Also `sort`, `release`, `as_of`.
        """
        return Records(self, _build_collection_path(collection, vocabulary), filters)

    def concepts(self, **filters: Any) -> Records:
        """Return concepts, as `records` does."""
        return self.records("concept", **filters)

    def tasks(self, **filters: Any) -> Records:
        """Return tasks, as `records` does."""
        return self.records("task", **filters)

    def disorders(self, **filters: Any) -> Records:
        """Return disorders, as `records` does."""
        return self.records("disorder", **filters)

    def search(self, query: str, **filters: Any) -> Rows[Hit]:
        """Return the best hits.

        Filters: `collection`, `class_`, `language`, `state`; `limit` (10, at most 100) and `offset`.
        """
        return Rows(self.read("/search", q=query, **filters)["hits"])

    def suggest(self, prefix: str, *, collection: str | None = None, limit: int = 10) -> Rows[Suggestion]:
        """Return the best completions of a prefix."""
        return Rows(self.read("/suggest", prefix=prefix, collection=collection, limit=limit)["suggestions"])

    def annotate(self, text: str, *, collection: str | None = None) -> Rows[Annotation]:
        """Return every mention of a term in a text of up to 10 MiB."""
        target = _build_target("/annotate", {"collection": collection})
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        return Rows(_parse_json(self._send("POST", target, headers=headers, body=text.encode()))["annotations"])

    def relations(self, record: Record | str) -> Rows[Related]:
        """Return the relations of a record, in both directions."""
        return Rows(self.read(f"{self._path(record)}/relations")["items"])

    def ancestors(self, record: Record | str, *, relation: str | None = None) -> Rows[Reached]:
        """Return the ancestors of a record, the nearest first; with `relation`, along one hierarchy only."""
        return Rows(self.read(f"{self._path(record)}/ancestors", relation=relation)["items"])

    def descendants(self, record: Record | str, *, relation: str | None = None) -> Rows[Reached]:
        """Return the descendants of a record, the nearest first; with `relation`, along one hierarchy only."""
        return Rows(self.read(f"{self._path(record)}/descendants", relation=relation)["items"])

    def history(self, record: Record | str) -> Rows[Version]:
        """Return every version of a record, the newest first."""
        return Rows(self.read(f"{self._path(record)}/history")["items"])

    def changes(self, since: int = 0, *, collection: str | None = None) -> Iterator[Change]:
        """Yield the changes after one, in order. Keep the last `seq` to continue from there another time."""
        while True:
            page = self.read("/changes", since=since, collection=collection, limit=_PAGE_SIZE)
            yield from page["items"]
            if not page["items"]:
                return
            since = page["next"]

    def export(self, format: str, path: str | os.PathLike[str], **filters: Any) -> Path:
        """Export the catalogue to a file, which appears only when complete; return its path.

        A file whose name ends in .gz, .bz2, .xz or .zst is compressed.
        """
        target_path = Path(path)
        compress = get_compressor(target_path.name)
        temporary_path = target_path.with_name(f".{target_path.name}.{os.getpid()}.unfinished")
        target = "/api/v1" + _build_target("/export", {"format": format, **filters})
        try:
            with temporary_path.open("xb") as file:
                request = Request("GET", target, output=file, transform=compress, max_bytes=_UNLIMITED)
                _raise_for_status(self._transport.send(request))
            return temporary_path.replace(target_path)
        finally:
            temporary_path.unlink(missing_ok=True)

    # Writing

    def create(self, collection: str, /, *, vocabulary: str | None = None, **fields: Any) -> Record | Proposal:
        """Create a record, by default in the default vocabulary; with a contributor's token, a proposal."""
        return self._write("POST", _build_collection_path(collection, vocabulary), fields)

    def update(self, record: Record | str, /, **change: Any) -> Record | Proposal:
        """Change fields of a record, and leave the others.

        Given a record that was read, raise `Stale` if it has changed since; given an id, change the current version.
        """
        return self._write_with_if_match(record, "PATCH", "", change)

    def retire(self, record: Record | str, *, replaced_by: str | None = None) -> Record | Proposal:
        """Retire a record; `replaced_by` is the id of its replacement."""
        return self._write_with_if_match(record, "DELETE", _build_target("", {"replaced_by": replaced_by}))

    def relate(self, record: Record | str, relation: str, target: str) -> Record:
        """Add a relation to another record, or a mapping to an IRI or CURIE."""
        return self._write_with_if_match(record, "PUT", "/relations", {"relation": relation, "target": target})

    def unrelate(self, record: Record | str, relation: str, target: str) -> Record:
        """Remove a relation."""
        suffix = _build_target("/relations", {"relation": relation, "target": target})
        return self._write_with_if_match(record, "DELETE", suffix)

    def batch(self, lines: Iterable[Mapping[str, Any]]) -> Rows[dict[str, Any]]:
        """Write many lines such as `{"op": "create", "collection", "record"}`, all or nothing; return their results."""
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        response = self._send("POST", "/batch", headers=_idempotent_headers("application/x-ndjson"), body=body)
        return Rows(json.loads(line) for line in response.body.splitlines())

    def propose(self, collection: str, change: Mapping[str, Any], *, record: str | None = None) -> Proposal:
        """Propose a new record, or a change of one."""
        return self._write("POST", "/proposals", {"collection": collection, "record": record, "change": change})

    def proposals(self, state: str | None = None) -> Rows[Proposal]:
        """Return the proposals, the oldest first: all for a curator, their own for a contributor."""
        return Rows(_iter_pages(self, "/proposals", "after", {"state": state}))

    def accept(self, proposal: str, **change: Any) -> Record:
        """Accept a proposal, with `change` on top of it."""
        return self._write("POST", f"/proposals/{_quote(proposal)}/accept", {"change": change} if change else {})

    def reject(self, proposal: str, reason: str) -> Proposal:
        """Reject a proposal."""
        return self._write("POST", f"/proposals/{_quote(proposal)}/reject", {"reason": reason})

    def withdraw(self, proposal: str) -> Proposal:
        """Withdraw one's own proposal."""
        return self._write("POST", f"/proposals/{_quote(proposal)}/withdraw", {})

    # Requests

    def read(self, path: str, **parameters: Any) -> Any:
        """Return the JSON at a path below `/api/v1`, using a cache that is revalidated by ETag."""
        target = _build_target(path, parameters)
        etag, cached_body = self._etag_cache.get(target, (None, b""))
        response = self._send("GET", target, headers={"If-None-Match": etag} if etag else {})
        body = cached_body if response.status == 304 else response.body
        self._cache(target, response.headers.get("etag"), body)
        return _parse_json(HttpResponse(response.status, response.headers, body))

    def _cache(self, target: str, etag: str | None, body: bytes) -> None:
        self._cached_bytes -= len(self._etag_cache.pop(target, ("", b""))[1])
        if etag:
            self._etag_cache[target] = (etag, body)
            self._cached_bytes += len(body)
        while self._cached_bytes > _CACHE_BYTES:
            _, (_, oldest) = self._etag_cache.popitem(last=False)
            self._cached_bytes -= len(oldest)

    def _path(self, record: Record | str) -> str:
        if isinstance(record, str):
            record = self.get(record)
        return f"/vocabularies/{_quote(record['vocabulary'])}/records/{_quote(record['id'])}"

    def _write_with_if_match(
        self, record: Record | str, method: str, suffix: str, change: Mapping[str, Any] | None = None
    ) -> Any:
        for _ in range(_MAX_ATTEMPTS if isinstance(record, str) else 1):
            current = self.get(record) if isinstance(record, str) else record
            if_match = {"If-Match": f'"{current["version"]}"'}
            try:
                return self._write(method, self._path(current) + suffix, change, if_match)
            except Stale as error:
                conflict = error
        raise conflict

    def _write(
        self, method: str, target: str, content: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
    ) -> Any:
        body = None if content is None else json.dumps(content).encode()
        all_headers = {**_idempotent_headers("application/json"), **(headers or {})}
        return _parse_json(self._send(method, target, headers=all_headers, body=body))

    def _send(self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None = None) -> HttpResponse:
        return _raise_for_status(self._transport.send(Request(method, "/api/v1" + target, headers, body)))


def _iter_pages(catalogue: Catalogue, path: str, cursor_name: str, parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the items of a list, fetched page by page."""
    cursor = None
    while True:
        page = catalogue.read(path, **parameters, limit=_PAGE_SIZE, **{cursor_name: cursor})
        yield from page["items"]
        cursor = page["next"]
        if cursor is None:
            return


def _build_collection_path(collection: str, vocabulary: str | None) -> str:
    start = "" if vocabulary is None else f"/vocabularies/{_quote(vocabulary)}/collections"
    return f"{start}/{quote(collection)}"


def _idempotent_headers(media_type: str) -> dict[str, str]:
    return {"Content-Type": media_type, "Idempotency-Key": uuid.uuid4().hex}


def _quote(identifier: str) -> str:
    return quote(identifier, safe="")


def _build_target(path: str, parameters: Mapping[str, Any]) -> str:
    """Return a path with the parameters that have a value; lists are joined by commas, `class_` becomes `class`."""
    query = {name.rstrip("_"): _format_parameter(value) for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(query)}" if query else path


def _format_parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) or not isinstance(value, Iterable) else ",".join(value)


def _raise_for_status(response: HttpResponse) -> HttpResponse:
    """Return a successful response; raise `Refused` for others."""
    if response.status < 300 or response.status == 304:
        return response
    try:
        problem = response.json()
    except ValueError:
        problem = None
    raise _ERROR_TYPES.get(response.status, Refused)(response.status, problem if isinstance(problem, dict) else {})


def _parse_json(response: HttpResponse) -> Any:
    try:
        return response.json()
    except ValueError:
        raise Unreachable("The server is not a Lexarium: its response is not JSON.") from None


def _to_dataframe(rows: Iterable[Mapping[str, Any]]) -> Any:
    try:
        import pandas  # noqa: PLC0415 - optional, and takes long to load
    except ImportError:
        raise LexariumError("Tables need pandas; run: pip install pandas.") from None
    return pandas.DataFrame(list(rows))
