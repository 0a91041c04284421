"""Fetch records from the server that is mirrored."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from lexarium.client.transport import HttpResponse, Request, Transport
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY, is_id_too_long
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.schema.collections import VOCABULARY
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.json.stream import iter_objects
from lexarium.formats.parsed import ParseError
from lexarium.store.imports.mirror_state import ListedRecord, MirrorState

_VALPHA = "/api/v-alpha"
_V1 = "/api/v1"
_MAX_LIST_BYTES = 4 << 30
_MAX_PAGE_BYTES = 256 << 20
_PAGE_SIZE = 500
_OK, _NOT_MODIFIED = 200, 304
_MISSING_STATUSES = (404, 410)
_RETRY_STATUSES = (429, 502, 503, 504)

_Json = dict[str, Any]


class MirrorSource:
    """HTTP access to a server that is mirrored."""

    def __init__(self, url: str, rate: float) -> None:
        self.url = url.rstrip("/").removesuffix(_VALPHA)
        self.requests = 0
        self.warnings: list[str] = []
        self._transport = Transport(self.url, headers={"Accept": "application/json"}, requests_per_second=rate)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def get_revision(self) -> int | None:
        """Return the revision of a Lexarium server; None for any other server."""
        try:
            service_info = self.get(_V1).json()
            return int(service_info["revision"]) if service_info["service"] == "lexarium" else None
        except (ValueError, KeyError, TypeError, OverflowError):
            return None

    def get(
        self,
        target: str,
        etag: str | None = None,
        destination: BinaryIO | None = None,
        max_bytes: int = _MAX_PAGE_BYTES,
    ) -> HttpResponse:
        """Send a GET request and return the response; raise LexariumError if the server is overloaded."""
        self.requests += 1
        headers = {"If-None-Match": etag} if etag else {}
        reply = self._transport.send(Request("GET", target, headers, output=destination, max_bytes=max_bytes))
        if reply.status in _RETRY_STATUSES:
            reason = f"responds with {reply.status}. Downloaded data is kept; run the same command to resume"
            raise self.build_error(target, reason)
        return reply

    def build_error(self, target: str, reason: str) -> LexariumError:
        """Build the error for a response that cannot be used."""
        return LexariumError(f"Nothing was mirrored: {self.url}{target} {reason}.")


@dataclass(frozen=True)
class Fetcher:
    """Fetch what has changed at a source into the mirror state."""

    source: MirrorSource
    state: MirrorState
    progress: ProgressCallback

    def fetch_lists(self, *, refetch_all: bool) -> None:
        """Fetch the changed lists of a v-alpha server, then the changed records."""
        for collection in VOCABULARIES[MAIN_VOCABULARY].collections:
            if collection.in_valpha:
                self._fetch_list(collection.name, self._save_list)
        self._fetch_list("search", self._check_search_list)
        if refetch_all:
            self.state.mark_all_unfetched()
        requests = self.state.list_unfetched()
        for number, (collection_name, record_id, etag) in enumerate(requests):
            self.progress("fetching", number, len(requests))
            if not self._fetch_record(collection_name, record_id, etag):
                break
        self.progress("fetching", len(requests), len(requests))

    def _fetch_list(self, name: str, save: Callable[[str, str | None, Iterator[tuple[str, _Json]]], None]) -> None:
        """Pass the ETag and the records of a list to a function, unless the list has not changed."""
        target = f"{_VALPHA}/{name}"
        with TemporaryFile() as file:
            etag = self.state.get_list_etag(name)
            reply = self.source.get(target, etag, file, _MAX_LIST_BYTES)
            if not (etag and reply.status == _NOT_MODIFIED):
                self._require_ok(target, reply)
                save(name, reply.headers.get("etag"), self._iter_records(target, file))

    def _save_list(self, name: str, etag: str | None, records: Iterator[tuple[str, _Json]]) -> None:
        bodies = ((record_id, to_canonical_json(record)) for record_id, record in records)
        listed = (ListedRecord(record_id, hashlib.sha256(body).digest(), body) for record_id, body in bodies)
        self.state.save_list(name, etag, listed)

    def _check_search_list(self, name: str, etag: str | None, records: Iterator[tuple[str, _Json]]) -> None:
        """Warn of search results that are in no list."""
        missing = [record_id for record_id, _ in records if not self.state.is_listed(record_id)]
        self.state.set_list_etag(name, etag)
        if missing:
            examples = ", ".join(missing[:5])
            self.source.warnings.append(f"{len(missing)} of {name} are neither concept nor task, such as {examples}")

    def _fetch_record(self, collection: str, record_id: str, etag: str | None) -> bool:
        """Fetch one record; return False if the server has no endpoint for single records."""
        target = f"{_VALPHA}/{collection}?id={quote(record_id, safe='')}"
        reply = self.source.get(target, etag)
        body = None
        if reply.status != _NOT_MODIFIED:
            etag = reply.headers.get("etag")
        if reply.status not in (_NOT_MODIFIED, *_MISSING_STATUSES):
            self._require_ok(target, reply)
            matches = list(self._iter_records(target, io.BytesIO(reply.body)))
            if len(matches) > 1:
                self.state.mark_all_fetched()
                self.source.warnings.append("it does not serve single records, so there are no relations")
                return False
            body = next((to_canonical_json(record) for match_id, record in matches if match_id == record_id), None)
        self.state.save_fetched(collection, record_id, etag, body)
        return True

    def _iter_records(self, target: str, file: BinaryIO) -> Iterator[tuple[str, _Json]]:
        file.seek(0)
        try:
            for line, record in iter_objects(file):
                record_id = record.get("id")
                if not isinstance(record_id, str) or not record_id or is_id_too_long(record_id):
                    raise self.source.build_error(target, f"has a record without a usable id, on line {line}")
                yield record_id, record
        except ParseError as error:
            raise self.source.build_error(target, f"does not respond with records as JSON: {error}") from None

    def _require_ok(self, target: str, reply: HttpResponse) -> None:
        if reply.status != _OK:
            raise self.source.build_error(
                target, f"responds with {reply.status}, which is not valid for a v-alpha server"
            )

    def fetch_changes(self, revision: int) -> None:
        """Fetch the new changes of a Lexarium server; all of them if its history is another than before."""
        last_key = self.state.get_last_change()
        # Fetch the last known change again, to see whether it is the same.
        changes = self._fetch_page(_parse_seq(last_key) - 1)
        if last_key is not None and (not changes or _build_change_key(changes[0]) != last_key):
            self.state.reset_changes()
            changes = self._fetch_page(0)
        elif last_key is not None:
            changes = changes[1:]
        while changes:
            last_key = _build_change_key(changes[-1])
            seq = _parse_seq(last_key)
            bodies = [(change["id"], to_canonical_json(change["record"])) for change in changes if _is_main(change)]
            self.state.save_changes(bodies, last_key)
            self.progress("fetching", seq, max(revision, seq))
            changes = self._fetch_page(seq) if seq < revision else []

    def _fetch_page(self, since: int) -> list[_Json]:
        target = f"{_V1}/changes?since={max(since, 0)}&limit={_PAGE_SIZE}"
        reply = self.source.get(target)
        if reply.status == 422:  # Its revision is lower: it was restored or replaced.
            return []
        try:
            changes: list[_Json] = reply.json()["items"]
            for change in changes:
                if [type(change[key]) for key in ("seq", "id", "record")] != [int, str, dict]:
                    raise TypeError
                _build_change_key(change)
        except (ValueError, KeyError, TypeError):
            raise self.source.build_error(target, "does not respond with changes") from None
        return changes


def _is_main(change: _Json) -> bool:
    """Return whether a change is one of a record of the main vocabulary. Servers with no other do not name it."""
    is_head = change.get("collection") == VOCABULARY.local_name
    return not is_head and change.get("vocabulary", MAIN_VOCABULARY) == MAIN_VOCABULARY


def _build_change_key(change: _Json) -> str:
    """Return a unique key of a change, which starts with its seq."""
    return f"{change['seq']} {change['id']} {change['version']} {change['at']}"


def _parse_seq(change_key: str | None) -> int:
    return int(change_key.partition(" ")[0]) if change_key else 0


def to_canonical_json(value: object) -> bytes:
    """Serialize with sorted keys, so that equal values have equal bytes."""
    return json.dumps(value, sort_keys=True).encode()
