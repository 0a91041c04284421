"""What imports told of records where people have made something else of them: what the next import is compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.store.records import BATCH_SIZE
from lexarium.store.revisions import to_change
from lexarium.store.schema import change_table, import_base_table

IMPORTED_VERSION_KEY = "version"
"""Among what was told: which version an import brought that others, elsewhere, had made."""


def find_unapplied(connection: Connection, record_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What imports told of these (at most BATCH) and was not taken, by record and field."""
    rows = connection.execute(select(import_base_table).where(import_base_table.c.record.in_(record_ids)))
    return {row.record: orjson.loads(row.untaken) for row in rows}


def has_unapplied(connection: Connection) -> bool:
    """Whether there is any such record."""
    return connection.execute(select(import_base_table.c.record).limit(1)).first() is not None


def find_last_imports(connection: Connection, record_ids: Sequence[str]) -> dict[str, Change]:
    """The last change that an import made of each of these; one that none ever touched is left out."""
    changes: dict[str, Change] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        batch = record_ids[start : start + BATCH_SIZE]
        last_versions = select(change_table.c.record, func.max(change_table.c.version).label("version"))
        last_versions = last_versions.where(
            change_table.c.record.in_(batch), change_table.c.actor == SYSTEM_USER_ID
        ).group_by(change_table.c.record)
        latest = last_versions.subquery()
        query = select(change_table).join(
            latest, (latest.c.record == change_table.c.record) & (latest.c.version == change_table.c.version)
        )
        changes |= {row.record: to_change(row) for row in connection.execute(query)}
    return changes


def save_unapplied(connection: Connection, unapplied: Mapping[str, Mapping[str, Any]]) -> None:
    """Set what was told of each of these and was not taken; a record of which all was taken has no row."""
    if not unapplied:
        return
    connection.execute(delete(import_base_table).where(import_base_table.c.record.in_(list(unapplied))))
    rows = [{"record": record_id, "untaken": orjson.dumps(values)} for record_id, values in unapplied.items() if values]
    if rows:
        connection.execute(insert(import_base_table), rows)
