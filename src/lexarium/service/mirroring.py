"""Mirroring another server: all it holds the first time, then what has changed; into the catalogue by one import.

Any v-alpha server is asked for its lists and then, record by record, for relations; a Lexarium for its changes.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from pydantic import TypeAdapter

from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editions import Preference
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import is_too_long
from lexarium.domain.progress import Progress, silent
from lexarium.domain.relations import RELATIONS, Edge
from lexarium.exchange import valpha
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.json_stream import objects
from lexarium.service.importing import import_records
from lexarium.service.reports import Report
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.mirrored import Listed, Mirrored
from lexarium.transport import Reply, Request, Transport

RATE = 5.0
"""How many requests a second are sent, unless told otherwise."""

_VALPHA = "/api/v-alpha"
_V1 = "/api/v1"
_SEARCH = "search"
_LARGEST_LIST = 4 << 30
_LARGEST_PAGE = 256 << 20
_PAGE = 500
_OK, _NOT_MODIFIED = 200, 304
_ABSENT = (404, 410)
_BUSY = (429, 502, 503, 504)
_CONTRASTS = COLLECTIONS["task"].views_by_key["contrasts"]
_ALIASES = TypeAdapter(tuple[Alias, ...])
_TEXTS = TypeAdapter(tuple[str, ...])
_RELATED = TypeAdapter(dict[str, list[str]])


@dataclass(frozen=True)
class Wish:
    """How a mirror is to be made."""

    rate: float = RATE
    everything: bool = False
    """Ask for every record again, not only for those whose list form has changed."""
    prune: bool = False
    """Retire what is gone from the source."""
    prefer: Preference | None = None
    dry_run: bool = False


@dataclass
class Mirroring:
    """What a mirror came to."""

    source: str
    report: Report
    requests: int = 0
    gone: list[str] = field(default_factory=list)
    """Records that came from there and are no longer there."""
    pruned: int = 0


def mirror(database: Database, url: str, wish: Wish, progress: Progress = silent) -> Mirroring:
    """Bring a catalogue up to what another server holds, all or nothing.

    What was fetched is kept beside the catalogue as it comes: after an interruption, or where the import is refused,
    the next call goes on from there. Raises a `LexariumError` where the source does not answer as such servers do.
    """
    with database.read() as snapshot:
        epoch = read_position(snapshot).epoch
    with (
        closing(_Source(url, wish.rate)) as source,
        Mirrored(_beside(database, epoch), epoch, source.url) as fetched,
    ):
        revision = source.revision()
        if revision is None:
            _Lists(source, fetched, progress).fetch(everything=wish.everything)
        else:
            _Changes(source, fetched, progress).fetch(revision)
        gone, spared = fetched.gone(), fetched.emptied()
        pruned = [each for each in gone if wish.prune and each[0] not in spared]
        report = import_records(
            database,
            source.url,
            _incoming(fetched, pruned),
            prefer=wish.prefer,
            dry_run=wish.dry_run,
            progress=progress,
        )
        if not wish.dry_run:
            fetched.taken(pruned)
    for warning in source.warnings:
        report.warnings.add(source.url, warning)
    for name in sorted(spared) if wish.prune else ():
        report.warnings.add(
            source.url, f"it has no {name} any more; an empty list is taken for a mistake, and not pruned"
        )
    return Mirroring(source.url, report, source.requests, [identifier for _, identifier in gone], len(pruned))


def _beside(database: Database, epoch: str) -> Path:
    """Where the file is: beside the catalogue's, else here, by its epoch."""
    file = database.backend.file
    return Path(f"lexarium-mirror-{epoch}") if file is None else file.with_name(f"{file.name}-mirror")


class _Source:
    """A server that is mirrored."""

    def __init__(self, url: str, rate: float) -> None:
        self.url = url.rstrip("/").removesuffix(_VALPHA)
        self.requests = 0
        self.warnings: list[str] = []
        self._transport = Transport(self.url, headers={"Accept": "application/json"}, rate=rate)

    def close(self) -> None:
        """Leave it."""
        self._transport.close()

    def revision(self) -> int | None:
        """Of a Lexarium, which tells its changes, the last one; None of any other server."""
        try:
            told = self.get(_V1).json()
            return int(told["revision"]) if told["service"] == "lexarium" else None
        except (ValueError, KeyError, TypeError, OverflowError):
            return None

    def get(
        self, target: str, etag: str | None = None, into: BinaryIO | None = None, largest: int = _LARGEST_PAGE
    ) -> Reply:
        """What it answers, errors of the asking too; those of the server's own are raised."""
        self.requests += 1
        headers = {"If-None-Match": etag} if etag else {}
        reply = self._transport.send(Request("GET", target, headers, into=into, largest=largest))
        if reply.status in _BUSY:
            raise self.wrong(
                target, f"answers {reply.status}. What was fetched is kept: the same command goes on later"
            )
        return reply

    def wrong(self, target: str, why: str) -> LexariumError:
        """The error of an answer that cannot be used."""
        return LexariumError(f"Nothing was mirrored: {self.url}{target} {why}.")


class _Lists:
    """The way to mirror any v-alpha server."""

    def __init__(self, source: _Source, fetched: Mirrored, progress: Progress) -> None:
        self._source = source
        self._fetched = fetched
        self._progress = progress

    def fetch(self, *, everything: bool) -> None:
        """Fetch the lists that have changed, then the records that have."""
        for collection in COLLECTIONS.values():
            if collection.on_valpha:
                self._list(collection)
        self._look_for_unlisted()
        if everything:
            self._fetched.ask_all()
        asked = self._fetched.to_ask()
        for number, (name, identifier, etag) in enumerate(asked):
            self._progress("fetching", number, len(asked))
            if not self._ask(name, identifier, etag):
                break
        self._progress("fetching", len(asked), len(asked))

    def _list(self, collection: Collection) -> None:
        target = f"{_VALPHA}/{collection.name}"
        with TemporaryFile() as file:
            etag = self._fetched.etag(collection.name)
            reply = self._source.get(target, etag, file, _LARGEST_LIST)
            if etag and reply.status == _NOT_MODIFIED:
                return
            self._refuse_other(target, reply)
            self._fetched.keep_list(collection.name, reply.headers.get("etag"), self._listed(target, file))

    def _listed(self, target: str, file: BinaryIO) -> Iterator[Listed]:
        for identifier, record in self._records(target, file):
            body = _json(record)
            yield Listed(identifier, hashlib.sha256(body).digest(), body)

    def _look_for_unlisted(self) -> None:
        """Warn where the search has terms that neither list has."""
        target = f"{_VALPHA}/{_SEARCH}"
        with TemporaryFile() as file:
            etag = self._fetched.etag(_SEARCH)
            reply = self._source.get(target, etag, file, _LARGEST_LIST)
            if etag and reply.status == _NOT_MODIFIED:
                return
            self._refuse_other(target, reply)
            missing = [
                identifier for identifier, _ in self._records(target, file) if not self._fetched.holds(identifier)
            ]
        self._fetched.keep_etag(_SEARCH, reply.headers.get("etag"))
        if missing:
            some = ", ".join(missing[:5])
            self._source.warnings.append(f"{len(missing)} of {_SEARCH} are neither concept nor task, as {some}")

    def _ask(self, collection: str, identifier: str, etag: str | None) -> bool:
        """Ask for one record. False where the source does not tell single ones."""
        target = f"{_VALPHA}/{collection}?id={quote(identifier, safe='')}"
        reply = self._source.get(target, etag)
        body = None
        if reply.status != _NOT_MODIFIED:
            etag = reply.headers.get("etag")
        if reply.status not in (_NOT_MODIFIED, *_ABSENT):
            self._refuse_other(target, reply)
            found = list(self._records(target, io.BytesIO(reply.body)))
            if len(found) > 1:
                self._fetched.keep_no_answers()
                self._source.warnings.append("it does not tell single records, and so nothing of relations")
                return False
            body = next((_json(record) for told, record in found if told == identifier), None)
        self._fetched.keep_answer(collection, identifier, etag, body)
        return True

    def _records(self, target: str, file: BinaryIO) -> Iterator[tuple[str, dict[str, Any]]]:
        file.seek(0)
        try:
            for line, record in objects(file):
                identifier = record.get("id")
                if not isinstance(identifier, str) or not identifier or is_too_long(identifier):
                    raise self._source.wrong(target, f"has a record without a usable id, on line {line}")
                yield identifier, record
        except Malformed as error:
            raise self._source.wrong(target, f"does not answer with records as JSON: {error}") from None

    def _refuse_other(self, target: str, reply: Reply) -> None:
        if reply.status != _OK:
            raise self._source.wrong(target, f"answers {reply.status}, which no v-alpha server should")


class _Changes:
    """The way to mirror a Lexarium."""

    def __init__(self, source: _Source, fetched: Mirrored, progress: Progress) -> None:
        self._source = source
        self._fetched = fetched
        self._progress = progress

    def fetch(self, revision: int) -> None:
        """Fetch the changes after the last one that is known, or all where the source has another past by now."""
        last = self._fetched.last_change()
        # The last one is asked for again, to see whether it is still the same.
        items = self._page(_seq(last) - 1)
        if last is not None and (not items or _name(items[0]) != last):
            self._fetched.forget_changes()
            items = self._page(0)
        elif last is not None:
            items = items[1:]
        while items:
            last = _name(items[-1])
            self._fetched.keep_changes([(item["id"], _json(item["record"])) for item in items], last)
            self._progress("fetching", _seq(last), max(revision, _seq(last)))
            items = self._page(_seq(last)) if _seq(last) < revision else []

    def _page(self, since: int) -> list[dict[str, Any]]:
        target = f"{_V1}/changes?since={max(since, 0)}&limit={_PAGE}"
        reply = self._source.get(target)
        if reply.status == 422:
            # It has not come so far: it is not what it was.
            return []
        try:
            items: list[dict[str, Any]] = reply.json()["items"]
            for item in items:
                if type(item["seq"]) is not int or type(item["id"]) is not str or type(item["record"]) is not dict:
                    raise TypeError
                _name(item)
        except (ValueError, KeyError, TypeError):
            raise self._source.wrong(target, "does not answer with changes") from None
        return items


def _name(change: dict[str, Any]) -> str:
    """What tells a change from any other, beginning with its seq."""
    return f"{change['seq']} {change['id']} {change['version']} {change['at']}"


def _seq(name: str | None) -> int:
    return int(name.partition(" ")[0]) if name else 0


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _incoming(fetched: Mirrored, pruned: list[tuple[str, str]]) -> Iterator[Incoming]:
    for name, body in fetched.waiting():
        incoming = _one(COLLECTIONS[name], body)
        yield incoming
        if not incoming.problems:
            yield from _contrasts(json.loads(body))
    for body in fetched.changed():
        yield _of_change(json.loads(body))
    for name, identifier in pruned:
        yield Incoming(0, name, fields={"id": identifier}, state=State.RETIRED)


def _one(collection: Collection, body: bytes) -> Incoming:
    [incoming] = valpha.read(io.BytesIO(body), Reading(FORMATS["v-alpha"], collection=collection))
    incoming.line = 0
    incoming.state = State.PUBLISHED  # else it would not be on the list: one that was pruned is there again
    return incoming


def _contrasts(record: dict[str, Any]) -> Iterator[Incoming]:
    """The contrasts of a task, which no list of v-alpha has: all that is known of them is in the task."""
    for entry in record.get(_CONTRASTS.key, ()):
        if isinstance(entry.get("name"), str):
            yield Incoming(0, "contrast", fields={"id": entry[_CONTRASTS.id_key], "name": entry["name"]})


def _of_change(record: dict[str, Any]) -> Incoming:
    """A record as v1 tells it: what v-alpha has of it, and the rest."""
    collection = COLLECTIONS.get(str(record.get("collection")))
    if collection is None:
        return Incoming(0, warnings=[f"{record.get('id')} is of a collection that is not known here; it was left out"])
    incoming = _one(collection, _json({name: record[name] for name in collection.types if name in record}))
    if incoming.problems:
        return incoming
    try:
        incoming.aliases = _ALIASES.validate_python(tuple(record["aliases"]))
        incoming.sources = _TEXTS.validate_python(tuple(record["sources"]), strict=True)
        incoming.state = State(record["state"])
        incoming.replaced_by = None if record["replaced_by"] is None else str(record["replaced_by"])
        related = _RELATED.validate_python(record["relations"], strict=True)
    except (KeyError, TypeError, ValueError):
        incoming.problems.append(f"{incoming.fields['id']} is not told as a Lexarium tells records")
        return incoming
    for relation, targets in related.items():
        if relation in RELATIONS:
            incoming.edges += [Edge(incoming.fields["id"], relation, target) for target in targets]
        else:
            incoming.warnings.append(f"{relation} of {incoming.fields['id']} is not known here; it was left out")
    incoming.told = [(name, "source") for name in collection.relations]
    return incoming
