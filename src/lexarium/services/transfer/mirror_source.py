"""Fetch records from the server that is mirrored."""

import hashlib
import io
import json
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from lexarium.client.transport import HttpResponse, Request, Transport
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import is_id_too_long
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.formats.json.stream import iter_objects
from lexarium.formats.parsed import ParseError
from lexarium.store.imports.mirror_state import ListedRecord, MirrorState

_VALPHA = "/api/v-alpha"


_V1 = "/api/v1"


_SEARCH_LIST = "search"


_MAX_LIST_BYTES = 4 << 30


_MAX_PAGE_BYTES = 256 << 20


_PAGE_SIZE = 500


_OK, _NOT_MODIFIED = 200, 304


_MISSING_STATUSES = (404, 410)


_RETRY_STATUSES = (429, 502, 503, 504)


class MirrorSource:
    """A server that is mirrored."""

    def __init__(self, url: str, rate: float) -> None:
        self.url = url.rstrip("/").removesuffix(_VALPHA)
        self.requests = 0
        self.warnings: list[str] = []
        self._transport = Transport(self.url, headers={"Accept": "application/json"}, requests_per_second=rate)

    def close(self) -> None:
        """Leave it."""
        self._transport.close()

    def get_revision(self) -> int | None:
        """Of a Lexarium, which tells its changes, the last one; None of any other server."""
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
        """What it answers, errors of the asking too; those of the server's own are raised."""
        self.requests += 1
        headers = {"If-None-Match": etag} if etag else {}
        reply = self._transport.send(Request("GET", target, headers, output=destination, max_bytes=max_bytes))
        if reply.status in _RETRY_STATUSES:
            raise self.build_error(
                target, f"answers {reply.status}. What was fetched is kept: the same command goes on later"
            )
        return reply

    def build_error(self, target: str, reason: str) -> LexariumError:
        """The error of an answer that cannot be used."""
        return LexariumError(f"Nothing was mirrored: {self.url}{target} {reason}.")


class ListFetcher:
    """The way to mirror any v-alpha server."""

    def __init__(self, source: MirrorSource, state: MirrorState, progress: ProgressCallback) -> None:
        self._source = source
        self._state = state
        self._progress = progress

    def fetch(self, *, refetch_all: bool) -> None:
        """Fetch the lists that have changed, then the records that have."""
        for collection in COLLECTIONS.values():
            if collection.in_valpha:
                self._fetch_list(collection)
        self._warn_unlisted()
        if refetch_all:
            self._state.mark_all_unfetched()
        requests = self._state.list_unfetched()
        for number, (collection_name, record_id, etag) in enumerate(requests):
            self._progress("fetching", number, len(requests))
            if not self._fetch_record(collection_name, record_id, etag):
                break
        self._progress("fetching", len(requests), len(requests))

    def _fetch_list(self, collection: Collection) -> None:
        target = f"{_VALPHA}/{collection.name}"
        with TemporaryFile() as file:
            etag = self._state.get_list_etag(collection.name)
            reply = self._source.get(target, etag, file, _MAX_LIST_BYTES)
            if etag and reply.status == _NOT_MODIFIED:
                return
            self._require_ok(target, reply)
            self._state.save_list(collection.name, reply.headers.get("etag"), self._parse_list(target, file))

    def _parse_list(self, target: str, file: BinaryIO) -> Iterator[ListedRecord]:
        for record_id, record in self._iter_records(target, file):
            body = to_canonical_json(record)
            yield ListedRecord(record_id, hashlib.sha256(body).digest(), body)

    def _warn_unlisted(self) -> None:
        """Warn where the search has terms that neither list has."""
        target = f"{_VALPHA}/{_SEARCH_LIST}"
        with TemporaryFile() as file:
            etag = self._state.get_list_etag(_SEARCH_LIST)
            reply = self._source.get(target, etag, file, _MAX_LIST_BYTES)
            if etag and reply.status == _NOT_MODIFIED:
                return
            self._require_ok(target, reply)
            missing = [
                record_id for record_id, _ in self._iter_records(target, file) if not self._state.is_listed(record_id)
            ]
        self._state.set_list_etag(_SEARCH_LIST, reply.headers.get("etag"))
        if missing:
            examples = ", ".join(missing[:5])
            self._source.warnings.append(
                f"{len(missing)} of {_SEARCH_LIST} are neither concept nor task, as {examples}"
            )

    def _fetch_record(self, collection: str, record_id: str, etag: str | None) -> bool:
        """Ask for one record. False where the source does not tell single ones."""
        target = f"{_VALPHA}/{collection}?id={quote(record_id, safe='')}"
        reply = self._source.get(target, etag)
        body = None
        if reply.status != _NOT_MODIFIED:
            etag = reply.headers.get("etag")
        if reply.status not in (_NOT_MODIFIED, *_MISSING_STATUSES):
            self._require_ok(target, reply)
            matches = list(self._iter_records(target, io.BytesIO(reply.body)))
            if len(matches) > 1:
                self._state.mark_all_fetched()
                self._source.warnings.append("it does not tell single records, and so nothing of relations")
                return False
            body = next((to_canonical_json(record) for found_id, record in matches if found_id == record_id), None)
        self._state.save_fetched(collection, record_id, etag, body)
        return True

    def _iter_records(self, target: str, file: BinaryIO) -> Iterator[tuple[str, dict[str, Any]]]:
        file.seek(0)
        try:
            for line, record in iter_objects(file):
                record_id = record.get("id")
                if not isinstance(record_id, str) or not record_id or is_id_too_long(record_id):
                    raise self._source.build_error(target, f"has a record without a usable id, on line {line}")
                yield record_id, record
        except ParseError as error:
            raise self._source.build_error(target, f"does not answer with records as JSON: {error}") from None

    def _require_ok(self, target: str, reply: HttpResponse) -> None:
        if reply.status != _OK:
            raise self._source.build_error(target, f"answers {reply.status}, which no v-alpha server should")


class ChangeFetcher:
    """The way to mirror a Lexarium."""

    def __init__(self, source: MirrorSource, state: MirrorState, progress: ProgressCallback) -> None:
        self._source = source
        self._state = state
        self._progress = progress

    def fetch(self, revision: int) -> None:
        """Fetch the changes after the last one that is known, or all where the source has another past by now."""
        last_key = self._state.get_last_change()
        # The last one is asked for again, to see whether it is still the same.
        changes = self._fetch_page(_parse_seq(last_key) - 1)
        if last_key is not None and (not changes or _build_change_key(changes[0]) != last_key):
            self._state.reset_changes()
            changes = self._fetch_page(0)
        elif last_key is not None:
            changes = changes[1:]
        while changes:
            last_key = _build_change_key(changes[-1])
            self._state.save_changes(
                [(change["id"], to_canonical_json(change["record"])) for change in changes], last_key
            )
            self._progress("fetching", _parse_seq(last_key), max(revision, _parse_seq(last_key)))
            changes = self._fetch_page(_parse_seq(last_key)) if _parse_seq(last_key) < revision else []

    def _fetch_page(self, since: int) -> list[dict[str, Any]]:
        target = f"{_V1}/changes?since={max(since, 0)}&limit={_PAGE_SIZE}"
        reply = self._source.get(target)
        if reply.status == 422:
            # It has not come so far: it is not what it was.
            return []
        try:
            changes: list[dict[str, Any]] = reply.json()["items"]
            for change in changes:
                if (
                    type(change["seq"]) is not int
                    or type(change["id"]) is not str
                    or type(change["record"]) is not dict
                ):
                    raise TypeError
                _build_change_key(change)
        except (ValueError, KeyError, TypeError):
            raise self._source.build_error(target, "does not answer with changes") from None
        return changes


def _build_change_key(change: dict[str, Any]) -> str:
    """What tells a change from any other, beginning with its seq."""
    return f"{change['seq']} {change['id']} {change['version']} {change['at']}"


def _parse_seq(change_key: str | None) -> int:
    return int(change_key.partition(" ")[0]) if change_key else 0


def to_canonical_json(value: object) -> bytes:
    """Serialize with sorted keys, so that equal values have equal bytes."""
    return json.dumps(value, sort_keys=True).encode()
