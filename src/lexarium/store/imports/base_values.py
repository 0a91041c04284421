"""Queries for base values: imported values that were not applied, with which the next import is compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.statement import Statement, load_statements, pack_statements
from lexarium.store.records import batched
from lexarium.store.revisions import to_change
from lexarium.store.schema import change_table, import_base_table, import_statement_table

# Key among the unapplied values: the version that an import of history brought.
IMPORTED_VERSION_KEY = "version"

_base, _change, _statement = import_base_table.c, change_table.c, import_statement_table.c


def find_unapplied(connection: Connection, record_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the unapplied values of records (at most BATCH_SIZE ids), by id and field."""
    rows = connection.execute(select(import_base_table).where(_base.record.in_(record_ids)))
    return {row.record: orjson.loads(row.untaken) for row in rows}


def has_unapplied(connection: Connection) -> bool:
    """Return whether any record has unapplied values."""
    return connection.execute(select(_base.record).limit(1)).first() is not None


def find_last_imports(connection: Connection, record_ids: Sequence[str]) -> dict[str, Change]:
    """Return the last change of each record that an import made, by id."""
    changes: dict[str, Change] = {}
    for batch in batched(record_ids):
        is_import = _change.record.in_(batch) & (_change.actor == SYSTEM_USER_ID)
        last_versions = select(_change.record, func.max(_change.version).label("version")).where(is_import)
        last = last_versions.group_by(_change.record).subquery()
        is_last = (last.c.record == _change.record) & (last.c.version == _change.version)
        rows = connection.execute(select(change_table).join(last, is_last))
        changes |= {row.record: to_change(row) for row in rows}
    return changes


def find_statements(connection: Connection, record_ids: Sequence[str], source: str) -> dict[str, tuple[Statement, ...]]:
    """Return what a source last stated about records, of those that have a row for it."""
    query = select(_statement.record, _statement.statements)
    statements: dict[str, tuple[Statement, ...]] = {}
    for batch in batched(record_ids):
        rows = connection.execute(query.where(_statement.record.in_(batch), _statement.source == source))
        statements |= {record_id: load_statements(orjson.loads(data)) for record_id, data in rows}
    return statements


def save_statements(
    connection: Connection, source: str, statements: Mapping[str, tuple[Statement, ...] | None]
) -> None:
    """Set what a source last stated about records; None if that is what an import made of them."""
    for batch in batched(list(statements)):
        connection.execute(
            delete(import_statement_table).where(_statement.record.in_(batch), _statement.source == source)
        )
    rows = [
        {"record": record_id, "source": source, "statements": orjson.dumps(pack_statements(stated))}
        for record_id, stated in statements.items()
        if stated is not None
    ]
    if rows:
        connection.execute(insert(import_statement_table), rows)


def save_unapplied(connection: Connection, unapplied: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the unapplied values of records. A record without any has no row."""
    if not unapplied:
        return
    connection.execute(delete(import_base_table).where(_base.record.in_(list(unapplied))))
    rows = [{"record": record_id, "untaken": orjson.dumps(values)} for record_id, values in unapplied.items() if values]
    if rows:
        connection.execute(insert(import_base_table), rows)
