"""Store what the present schema of a vocabulary makes of its records, without new versions of them."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from lexarium.domain.record import Record
from lexarium.store import relations, vocabularies
from lexarium.store.change_log import to_change_row, to_record_columns, update_relations
from lexarium.store.records import BATCH_SIZE
from lexarium.store.revisions import to_change
from lexarium.store.schema import change_table, record_table
from lexarium.store.transaction import Transaction

_record, _change = record_table.c, change_table.c
_UPDATE_RECORD = update(record_table).where(_record.id == bindparam("this"))
_UPDATE_CHANGE = update(change_table).where(_change.seq == bindparam("this"))
_KEYS = ("order_key", "name_key", "class_id", "owner", "flagged")


def rerender_records(transaction: Transaction, collections: Sequence[str]) -> int:
    """Update the rows of records of these collections, and of their changes, where they differ; return their number."""
    count, last_id = 0, ""
    while rows := _select_batch(transaction.flush(), collections, last_id):
        current = _rerender_changes(transaction, rows)
        changed = [
            {"this": row.id, **columns}
            for row, record in zip(rows, current, strict=True)
            if (columns := to_record_columns(record)).items() - row._asdict().items()
        ]
        if changed:
            transaction.execute(_UPDATE_RECORD, changed)
        _update_derived(transaction, current)
        count, last_id = count + len(changed), rows[-1].id
    return count


def iter_records(connection: Connection, collections: Sequence[str]) -> Iterator[list[Record]]:
    """Yield batches of the current records of these collections, in any state, by id."""
    last_id = ""
    while rows := _select_batch(connection, collections, last_id):
        query = select(change_table).where(_change.record.in_([row.id for row in rows])).order_by(_change.seq)
        latest = {row.record: row for row in connection.execute(query)}
        yield [to_change(latest[row.id]).to_record() for row in rows]
        last_id = rows[-1].id


def _select_batch(connection: Connection, collections: Sequence[str], last_id: str) -> Sequence[Any]:
    query = select(record_table).where(_record.collection.in_(collections), _record.id > last_id)
    return connection.execute(query.order_by(_record.id).limit(BATCH_SIZE)).all()


def _rerender_changes(transaction: Transaction, rows: Sequence[Any]) -> list[Record]:
    """Update the sort keys and filter columns of all changes of records; return the current records."""
    current: dict[str, Record] = {}
    changed = []
    query = select(change_table).where(_change.record.in_([row.id for row in rows])).order_by(_change.seq)
    for row in transaction.execute(query).all():
        change = to_change(row)
        current[row.record] = record = change.to_record()
        columns = to_change_row(change, record)
        if any(columns[name] != getattr(row, name) for name in _KEYS):
            changed.append({"this": row.seq, **{name: columns[name] for name in _KEYS}})
    if changed:
        transaction.execute(_UPDATE_CHANGE, changed)
    return [current[row.id] for row in rows]


def _update_derived(transaction: Transaction, records: Sequence[Record]) -> None:
    record_ids = [record.id for record in records]
    stored = relations.find_by_sources(transaction.flush(), record_ids)
    before = {relation for items in stored.values() for relation in items}
    after = {relation for record in records for relation in record.relations}
    update_relations(transaction, after - before, before - after)
    vocabularies.replace_derived_rows(transaction, records)
