"""Records for tests, from fields, relations, aliases and sources."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, Relation, build_record
from lexarium.domain.schema.collections import Collection


def make_record(  # noqa: PLR0917 (in the order of a record)
    collection: Collection,
    fields: dict[str, Any],
    relations: Iterable[Relation] = (),
    state: RecordState = RecordState.PUBLISHED,
    replaced_by: str | None = None,
    aliases: Iterable[Alias] | None = None,
    sources: Iterable[str] = (),
) -> Record:
    record = build_record(collection, fields, relations, aliases, sources)
    return replace(record, state=state, replaced_by=replaced_by)


def to_views(record: Record) -> dict[str, Any]:
    """Return the visible content of a record, without the sources and the order of its statements."""
    return {
        "collection": record.collection.name,
        "fields": record.fields,
        "relations": record.relations,
        "state": record.state,
        "replaced_by": record.replaced_by,
        "aliases": sorted(record.aliases, key=repr),
        "sources": sorted(record.sources),
    }
