"""Mirroring another server: all it holds the first time, then what has changed; into the catalogue by one import.

Any v-alpha server is asked for its lists and then, record by record, for relations; a Lexarium for its changes.
"""

import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lexarium.domain.import_merge import ConflictPreference
from lexarium.domain.labels import Alias
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.formats.json import valpha
from lexarium.formats.parsed import ParsedRecord, ReadOptions
from lexarium.formats.registry import FORMATS
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.imports import import_records
from lexarium.services.transfer.mirror_source import ChangeFetcher, ListFetcher, MirrorSource, to_canonical_json
from lexarium.store.database import Database
from lexarium.store.imports.mirror_state import MirrorState
from lexarium.store.position import read_position

DEFAULT_RATE = 5.0
"""How many requests a second are sent, unless told otherwise."""

_CONTRAST_LIST = COLLECTIONS["task"].relation_lists_by_key["contrasts"]
_ALIASES_ADAPTER = TypeAdapter(tuple[Alias, ...])
_TEXTS_ADAPTER = TypeAdapter(tuple[str, ...])
_RELATIONS_ADAPTER = TypeAdapter(dict[str, list[str]])


@dataclass(frozen=True)
class MirrorOptions:
    """How a mirror is to be made."""

    rate: float = DEFAULT_RATE
    refetch_all: bool = False
    """Ask for every record again, not only for those whose list form has changed."""
    prune: bool = False
    """Retire what is gone from the source."""
    prefer: ConflictPreference | None = None
    dry_run: bool = False


@dataclass
class MirrorResult:
    """What a mirror came to."""

    source: str
    report: ImportReport
    requests: int = 0
    missing: list[str] = field(default_factory=list)
    """Records that came from there and are no longer there."""
    pruned: int = 0


def mirror(
    database: Database, url: str, options: MirrorOptions, progress: ProgressCallback = ignore_progress
) -> MirrorResult:
    """Bring a catalogue up to what another server holds, all or nothing.

    What was fetched is kept beside the catalogue as it comes: after an interruption, or where the import is refused,
    the next call goes on from there. Raises a `LexariumError` where the source does not answer as such servers do.
    """
    with database.read() as snapshot:
        epoch = read_position(snapshot).epoch
    with (
        closing(MirrorSource(url, options.rate)) as source,
        MirrorState(_state_path(database, epoch), epoch, source.url) as state,
    ):
        revision = source.get_revision()
        if revision is None:
            ListFetcher(source, state, progress).fetch(refetch_all=options.refetch_all)
        else:
            ChangeFetcher(source, state, progress).fetch(revision)
        missing, emptied = state.list_removed(), state.find_emptied_collections()
        pruned = [entry for entry in missing if options.prune and entry[0] not in emptied]
        report = import_records(
            database,
            source.url,
            _iter_parsed(state, pruned),
            prefer=options.prefer,
            dry_run=options.dry_run,
            progress=progress,
        )
        if not options.dry_run:
            state.mark_imported(pruned)
    for warning in source.warnings:
        report.warnings.add(source.url, warning)
    for collection_name in sorted(emptied) if options.prune else ():
        report.warnings.add(
            source.url, f"it has no {collection_name} any more; an empty list is taken for a mistake, and not pruned"
        )
    return MirrorResult(source.url, report, source.requests, [record_id for _, record_id in missing], len(pruned))


def _state_path(database: Database, epoch: str) -> Path:
    """Where the file is: beside the catalogue's, else here, by its epoch."""
    file = database.backend.path
    return Path(f"lexarium-mirror-{epoch}") if file is None else file.with_name(f"{file.name}-mirror")


def _iter_parsed(state: MirrorState, pruned: list[tuple[str, str]]) -> Iterator[ParsedRecord]:
    for collection_name, body in state.iter_pending_records():
        parsed = _parse_valpha(COLLECTIONS[collection_name], body)
        yield parsed
        if not parsed.problems:
            yield from _iter_contrasts(json.loads(body))
    for body in state.iter_pending_changes():
        yield _parse_v1(json.loads(body))
    for collection_name, record_id in pruned:
        yield ParsedRecord(0, collection_name, fields={"id": record_id}, state=RecordState.RETIRED)


def _parse_valpha(collection: Collection, body: bytes) -> ParsedRecord:
    [parsed] = valpha.read(io.BytesIO(body), ReadOptions(FORMATS["v-alpha"], collection=collection))
    parsed.line = 0
    parsed.state = RecordState.PUBLISHED  # else it would not be on the list: one that was pruned is there again
    return parsed


def _iter_contrasts(record: dict[str, Any]) -> Iterator[ParsedRecord]:
    """The contrasts of a task, which no list of v-alpha has: all that is known of them is in the task."""
    for entry in record.get(_CONTRAST_LIST.key, ()):
        if isinstance(entry.get("name"), str):
            yield ParsedRecord(0, "contrast", fields={"id": entry[_CONTRAST_LIST.id_key], "name": entry["name"]})


def _parse_v1(record: dict[str, Any]) -> ParsedRecord:
    """A record as v1 tells it: what v-alpha has of it, and the rest."""
    collection = COLLECTIONS.get(str(record.get("collection")))
    if collection is None:
        return ParsedRecord(
            0, warnings=[f"{record.get('id')} is of a collection that is not known here; it was left out"]
        )
    parsed = _parse_valpha(
        collection,
        to_canonical_json(
            {field_name: record[field_name] for field_name in collection.field_types if field_name in record}
        ),
    )
    if parsed.problems:
        return parsed
    try:
        parsed.aliases = _ALIASES_ADAPTER.validate_python(tuple(record["aliases"]))
        parsed.sources = _TEXTS_ADAPTER.validate_python(tuple(record["sources"]), strict=True)
        parsed.state = RecordState(record["state"])
        parsed.replaced_by = None if record["replaced_by"] is None else str(record["replaced_by"])
        targets_by_type = _RELATIONS_ADAPTER.validate_python(record["relations"], strict=True)
    except (KeyError, TypeError, ValueError):
        parsed.problems.append(f"{parsed.fields['id']} is not told as a Lexarium tells records")
        return parsed
    for type_name, targets in targets_by_type.items():
        if type_name in RELATION_TYPES:
            parsed.relations += [Relation(parsed.fields["id"], type_name, target) for target in targets]
        else:
            parsed.warnings.append(f"{type_name} of {parsed.fields['id']} is not known here; it was left out")
    parsed.complete_relations = [(field_name, "source") for field_name in collection.relation_types]
    return parsed
