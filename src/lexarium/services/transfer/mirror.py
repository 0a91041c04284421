"""Mirror another server by one import: everything the first time, later what has changed.

A Lexarium server is read by its change feed; any other v-alpha server by its lists and then record by record, since
lists have no relations.
"""

import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.labels import Alias
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.relation_types import RelationList
from lexarium.formats.json import valpha
from lexarium.formats.parsed import ParsedRecord, ReadOptions
from lexarium.formats.registry import FORMATS
from lexarium.services.files import sidecar_path
from lexarium.services.transfer.field_import.importer import import_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.mirror_source import Fetcher, MirrorSource, to_canonical_json
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.imports.mirror_state import MirrorState

# Requests per second.
DEFAULT_RATE = 5.0

_ALIASES_ADAPTER = TypeAdapter(tuple[Alias, ...])
_TEXTS_ADAPTER = TypeAdapter(tuple[str, ...])
_RELATIONS_ADAPTER = TypeAdapter(dict[str, list[str]])
_FIELDS_ADAPTER = TypeAdapter(dict[str, str | int | None])


@dataclass(frozen=True)
class MirrorOptions:
    """Options of a mirror run."""

    rate: float = DEFAULT_RATE
    # Fetch all records, not only those that have changed in a list.
    refetch_all: bool = False
    # Retire records that are missing at the source.
    prune: bool = False
    prefer: ConflictPreference | None = None
    dry_run: bool = False


@dataclass
class MirrorResult:
    """Result of a mirror run; `missing` are the ids of mirrored records that the source no longer has."""

    source: str
    report: ImportReport
    requests: int = 0
    missing: list[str] = field(default_factory=list)
    pruned: int = 0


def mirror(
    database: Database, url: str, options: MirrorOptions, progress: ProgressCallback = ignore_progress
) -> MirrorResult:
    """Bring a catalogue up to date with another server, completely or not at all.

    Fetched records are kept beside the catalogue, so that an interrupted or rejected run can be continued. Raise
    LexariumError if the source does not answer like such a server.
    """
    epoch = database.run_read(read_position).epoch
    with (
        closing(MirrorSource(url, options.rate)) as source,
        MirrorState(sidecar_path(database, "mirror"), epoch, source.url) as state,
    ):
        fetcher = Fetcher(source, state, progress)
        revision = source.get_revision()
        if revision is None:
            fetcher.fetch_lists(refetch_all=options.refetch_all)
        else:
            fetcher.fetch_changes(revision)
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
        message = f"it no longer has any {collection_name}; an empty list is considered an error and not pruned"
        report.warnings.add(source.url, message)
    return MirrorResult(source.url, report, source.requests, [record_id for _, record_id in missing], len(pruned))


def _iter_parsed(state: MirrorState, pruned: list[tuple[str, str]]) -> Iterator[ParsedRecord]:
    for collection_name, body in state.iter_pending_records():
        collection = COLLECTIONS[collection_name]
        parsed = _parse_valpha(collection, body)
        yield parsed
        if not parsed.problems:
            yield from _iter_details(collection, json.loads(body))
    for body in state.iter_pending_changes():
        yield _parse_v1(json.loads(body))
    for collection_name, record_id in pruned:
        yield ParsedRecord(0, collection_name, fields={"id": record_id}, state=RecordState.RETIRED)


def _parse_valpha(collection: Collection, body: bytes) -> ParsedRecord:
    [parsed] = valpha.read(io.BytesIO(body), ReadOptions(FORMATS["v-alpha"], collection=collection))
    parsed.line = 0
    parsed.state = RecordState.PUBLISHED  # Pruned records may be listed again.
    return parsed


def _iter_details(collection: Collection, record: dict[str, Any]) -> Iterator[ParsedRecord]:
    """Yield the records in the lists of one that v-alpha has no collection of, such as contrasts, by id and name."""
    for relation_list, target_collection in _list_details(collection):
        for entry in record.get(relation_list.key, ()):
            if entry.get("name") and isinstance(entry["name"], str):
                fields = {"id": entry[relation_list.id_key], "name": entry["name"]}
                yield ParsedRecord(0, target_collection, fields=fields)


def _list_details(collection: Collection) -> Iterator[tuple[RelationList, str]]:
    """Yield the lists of related records that v-alpha has no collection of, with their collection."""
    for relation_list in collection.relation_lists.values():
        for path in () if relation_list.is_derived else relation_list.paths.values():
            if not COLLECTIONS[path.collections[0]].in_valpha:
                yield relation_list, path.collections[0]


def _parse_v1(record: dict[str, Any]) -> ParsedRecord:
    collection = COLLECTIONS.get(str(record.get("collection")))
    if collection is None:
        unknown = ParsedRecord(0)
        unknown.warn(f"{record.get('id')} is of an unknown collection; it was skipped", is_loss=True)
        return unknown
    fields = {name: record[name] for name in collection.core_fields if name in record}
    parsed = _parse_valpha(collection, to_canonical_json(fields))
    if parsed.problems:
        return parsed
    try:
        others = _FIELDS_ADAPTER.validate_python(record.get("fields", {}), strict=True)
        parsed.fields |= others
        if record.get("statements"):
            message = f"statements of {parsed.fields['id']} that no slot declares were skipped"
            parsed.warn(message, is_loss=True)
        parsed.aliases = _ALIASES_ADAPTER.validate_python(tuple(record["aliases"]))
        parsed.sources = _TEXTS_ADAPTER.validate_python(tuple(record["sources"]), strict=True)
        parsed.state = RecordState(record["state"])
        parsed.replaced_by = None if record["replaced_by"] is None else str(record["replaced_by"])
        targets_by_type = _RELATIONS_ADAPTER.validate_python(record["relations"], strict=True)
    except (KeyError, TypeError, ValueError):
        parsed.problems.append(f"{parsed.fields['id']} is not in the format of Lexarium")
        return parsed
    for type_name, targets in targets_by_type.items():
        if type_name in RELATION_TYPES:
            parsed.relations += [Relation(parsed.fields["id"], type_name, target) for target in targets]
        else:
            parsed.warn(f"{type_name} of {parsed.fields['id']} is unknown; it was skipped", is_loss=True)
    parsed.complete_relations = [(name, "source") for name in collection.relation_types]
    return parsed
