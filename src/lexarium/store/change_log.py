"""Writing: a record, its relations and its row in the change log, together. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from lexarium.domain.change import Action, Change, compute_digest
from lexarium.domain.record import ProposalOrigin, Record, Relation
from lexarium.domain.rendering import RenderedRecord, get_filter_columns
from lexarium.store.records import BATCH_SIZE
from lexarium.store.revisions import IS_CURRENT_CHANGE, to_change
from lexarium.store.schema import change_table, record_table, relation_table
from lexarium.store.transaction import Transaction

# Built once: to build a statement costs more than to run it.
_INSERT_RECORD = insert(record_table)
_UPDATE_RECORD = update(record_table).where(record_table.c.id == bindparam("this"))
_INSERT_CHANGE = insert(change_table)
_DELETE_RELATION = delete(relation_table).where(
    *(column == bindparam(f"this_{column.name}") for column in relation_table.c)
)
_SELECT_LATEST = (
    select(change_table)
    .join(record_table, IS_CURRENT_CHANGE)
    .where(record_table.c.id.in_(bindparam("identifiers", expanding=True)))
)


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """A record as it shall be from now on."""

    record: Record
    version: int
    """1 for a new record, else one more than it had."""
    action: Action


def save_records(
    transaction: Transaction,
    writes: Sequence[RecordWrite],
    *,
    actor: str,
    at: int,
    origin: ProposalOrigin | None = None,
) -> list[Change]:
    """Write these records and log the changes, which are returned. Their relations are written by `relate`.

    `proposed` is what the changes go back to, where that is a proposal.
    """
    rows = [_to_record_row(write) for write in writes]
    changes = [
        Change(
            seq=seq,
            at=at,
            actor=actor,
            write_id=transaction.write_id,
            action=write.action,
            collection=write.record.collection.name,
            record_id=write.record.id,
            version=write.version,
            document=write.record.to_document(origin),
        )
        for seq, write in enumerate(writes, transaction.revision + 1)
    ]
    # What is new comes under an identifier that nobody has used: that can wait, and be written with more of its kind.
    transaction.defer(_INSERT_RECORD, (row for row in rows if row["version"] == 1))
    _execute_many(transaction, _UPDATE_RECORD, [{"this": row["id"], **row} for row in rows if row["version"] != 1])
    transaction.defer(
        _INSERT_CHANGE, (to_change_row(change, write.record) for change, write in zip(changes, writes, strict=True))
    )
    transaction.add_logged([write.record for write in writes])
    return changes


class NewRecordRow(NamedTuple):
    """A new record, ready to be written."""

    id: str
    collection: str
    state: str
    name: str
    rendered: RenderedRecord
    class_id: str
    owner: str
    flagged: bool
    document: bytes


def bulk_insert(transaction: Transaction, new_records: Sequence[NewRecordRow], *, actor: str, at: int) -> None:
    """Write new records and log them, of a load: by the driver itself, which is much faster than `save`."""
    write_id, action = transaction.write_id, Action.CREATE.value
    record_rows, change_rows = [], []
    for seq, new_record in enumerate(new_records, transaction.revision + 1):
        (
            record_id,
            collection,
            state,
            name,
            (body, search_hit_length, order_key, name_key),
            class_id,
            owner,
            flagged,
            document,
        ) = new_record
        header = (seq, at, actor, write_id, action, collection, record_id, 1)
        # Arrays of bytes, since a driver takes them as they are; for bytes it looks first whether it should.
        record_rows.append(
            (record_id, collection, state, 1, name, order_key, name_key, search_hit_length, bytearray(body))
        )
        blobs = bytearray(compute_digest(header, document)), bytearray(document)
        change_rows.append((*header, state, order_key, name_key, class_id, owner, flagged, *blobs))
    _insert_rows(transaction, record_table, record_rows)
    _insert_rows(transaction, change_table, change_rows)
    transaction.add_bulk_loaded(len(new_records))


@dataclass(frozen=True, slots=True)
class ImportedVersion:
    """A version that is new here, as it was made elsewhere."""

    record: Record
    version: int
    action: Action
    at: int
    actor: str
    document: bytes
    starts_write: bool
    """Whether another write made it than made the one before."""
    is_current: bool
    """Whether it is what the record is now."""
    is_new_record: bool
    """Whether the record was not there before."""


def insert_history(transaction: Transaction, versions: Sequence[ImportedVersion]) -> None:
    """Log versions that were not there, each with when and by whom it was made, in this order."""
    change_rows = []
    for seq, version in enumerate(versions, transaction.revision + 1):
        if version.starts_write:
            transaction.write_id = seq
        change = Change(
            seq=seq,
            at=version.at,
            actor=version.actor,
            write_id=transaction.write_id,
            action=version.action,
            collection=version.record.collection.name,
            record_id=version.record.id,
            version=version.version,
            document=version.document,
        )
        change_rows.append(to_change_row(change, version.record))
    current = [
        (version.is_new_record, _to_record_row(RecordWrite(version.record, version.version, version.action)))
        for version in versions
        if version.is_current
    ]
    transaction.defer(_INSERT_RECORD, (row for is_new, row in current if is_new))
    _execute_many(transaction, _UPDATE_RECORD, [{"this": row["id"], **row} for is_new, row in current if not is_new])
    transaction.defer(_INSERT_CHANGE, change_rows)
    transaction.add_logged([version.record for version in versions])


def update_relations(transaction: Transaction, added: Iterable[Relation], removed: Iterable[Relation]) -> None:
    """Add and remove relations. Those added must not be there; the records they belong to are saved by `save`."""
    _insert_rows(
        transaction, relation_table, [(relation.source, relation.relation, relation.target) for relation in added]
    )
    _execute_many(
        transaction,
        _DELETE_RELATION,
        [
            {"this_source": relation.source, "this_relation": relation.relation, "this_target": relation.target}
            for relation in removed
        ],
    )


def find_latest(connection: Connection, record_ids: Sequence[str]) -> dict[str, Change]:
    """The last change of each of these records; one that has none is left out."""
    changes: dict[str, Change] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        rows = connection.execute(_SELECT_LATEST, {"identifiers": record_ids[start : start + BATCH_SIZE]})
        changes |= {row.record: to_change(row) for row in rows}
    return changes


def _to_record_row(write: RecordWrite) -> dict[str, Any]:
    record, rendered = write.record, write.record.rendered
    return {
        "id": record.id,
        "collection": record.collection.name,
        "state": record.state,
        "version": write.version,
        "name": record.fields["name"],
        "order_key": rendered.order_key,
        "name_key": rendered.name_key,
        "hit_length": rendered.search_hit_length,
        "body": rendered.body,
    }


def to_change_row(change: Change, record: Record) -> dict[str, Any]:
    """A change as its row in the log, filed under what the record is from then on."""
    class_id, owner, flagged = get_filter_columns(record.fields)
    return {
        "seq": change.seq,
        "at": change.at,
        "actor": change.actor,
        "batch": change.write_id,
        "action": change.action,
        "collection": change.collection,
        "record": change.record_id,
        "version": change.version,
        "state": record.state,
        "order_key": record.rendered.order_key,
        "name_key": record.rendered.name_key,
        "class_id": class_id,
        "owner": owner,
        "flagged": flagged,
        "digest": change.compute_digest(),
        "document": change.document,
    }


def _insert_rows(transaction: Transaction, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows that have a value for every column, in the order of columns."""
    if rows:
        connection = transaction.connection
        placeholder = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        names, placeholders = (
            ", ".join(f'"{column.name}"' for column in table.c),
            ", ".join(placeholder for _ in table.c),
        )
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({placeholders})", rows)  # noqa: S608 (our own)


def _execute_many(transaction: Transaction, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        transaction.connection.execute(statement, rows)
