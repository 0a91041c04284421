"""Queries for what the next import is compared with: the last imports, and imported values that were not applied."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.statement import Statement, load_statements, pack_statements
from lexarium.store.records import batched
from lexarium.store.revisions import to_change
from lexarium.store.schema import change_table, import_base_table, import_statement_table, import_write_table
from lexarium.store.transaction import Transaction

# Key among the unapplied values: the version that an import of history brought.
IMPORTED_VERSION_KEY = "version"

_base, _change = import_base_table.c, change_table.c
_statement, _write = import_statement_table.c, import_write_table.c


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
        is_import = (_change.actor == SYSTEM_USER_ID) | _change.batch.in_(select(import_write_table))
        last_versions = select(_change.record, func.max(_change.version).label("version"))
        last_versions = last_versions.where(_change.record.in_(batch), is_import)
        last = last_versions.group_by(_change.record).subquery()
        is_last = (last.c.record == _change.record) & (last.c.version == _change.version)
        rows = connection.execute(select(change_table).join(last, is_last))
        changes |= {row.record: to_change(row) for row in rows}
    return changes


def find_edits(connection: Connection, changes: Iterable[Change]) -> set[str]:
    """Return the records of those changes that no import has made."""
    by_people = [change for change in changes if change.actor != SYSTEM_USER_ID]
    imports: set[int] = set()
    for batch in batched(sorted({change.write_id for change in by_people})):
        imports |= set(connection.scalars(select(import_write_table).where(_write.batch.in_(batch))))
    return {change.record_id for change in by_people if change.write_id not in imports}


def mark_import(transaction: Transaction, actor: str) -> None:
    """Take note that the changes of the current write are an import, if there are any. Those of the system are."""
    if actor == SYSTEM_USER_ID or transaction.revision < transaction.write_id:
        return
    is_own = _write.batch == transaction.write_id
    if transaction.execute(select(import_write_table).where(is_own)).first() is None:
        transaction.execute(insert(import_write_table), {"batch": transaction.write_id})


def find_statements(connection: Connection, record_ids: Sequence[str]) -> dict[str, dict[str, tuple[Statement, ...]]]:
    """Return what each source last stated about records, by record and source."""
    statements: dict[str, dict[str, tuple[Statement, ...]]] = {}
    for batch in batched(record_ids):
        for row in connection.execute(select(import_statement_table).where(_statement.record.in_(batch))):
            statements.setdefault(row.record, {})[row.source] = load_statements(orjson.loads(row.statements))
    return statements


def has_statements(connection: Connection) -> bool:
    """Return whether any source has stated anything."""
    return connection.execute(select(_statement.record).limit(1)).first() is not None


def forget_statements(connection: Connection, record_ids: Sequence[str]) -> None:
    """Forget what sources have stated about records, so that their next import brings all of it again."""
    for batch in batched(record_ids):
        connection.execute(delete(import_statement_table).where(_statement.record.in_(batch)))


def save_statements(
    connection: Connection, source: str, statements: Mapping[str, tuple[Statement, ...] | None]
) -> None:
    """Set what a source last stated about records; None to forget it."""
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
