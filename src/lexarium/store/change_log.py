"""Write records, their relations and their changes. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, update

from lexarium.domain.change import Action, Change, compute_digest
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.identity.minting import MintingRule
from lexarium.domain.record import ProposalOrigin, Record, Relation
from lexarium.domain.rendering import RenderedRecord, get_filter_columns
from lexarium.store.records import batched
from lexarium.store.revisions import IS_CURRENT_CHANGE, to_change
from lexarium.store.schema import change_table, record_table, relation_table
from lexarium.store.transaction import Transaction

# Built once: building a statement costs more than running it.
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
    """New version of a record. A new record has version 1."""

    record: Record
    version: int
    action: Action


@dataclass(frozen=True, slots=True)
class ImportedVersion(RecordWrite):
    """Version that was made elsewhere and is missing here."""

    at: int
    actor: str
    document: bytes
    # Whether it belongs to another write than the version before it.
    starts_write: bool
    is_current: bool
    is_new_record: bool


class NewRecordRow(NamedTuple):
    """New record, ready for a bulk insert."""

    id: str
    collection: str
    state: str
    name: str
    rendered: RenderedRecord
    class_id: str
    owner: str
    flagged: bool
    document: bytes


def save_records(
    transaction: Transaction,
    writes: Sequence[RecordWrite],
    *,
    actor: str,
    at: int,
    origin: ProposalOrigin | None = None,
) -> list[Change]:
    """Write records and log their changes, which are returned. `update_relations` writes their relations.

    `origin` is the proposal behind the changes, if any.
    """
    changes = [
        _build_change((seq, at, actor, transaction.write_id), write, write.record.to_document(origin))
        for seq, write in enumerate(writes, transaction.revision + 1)
    ]
    new = [write for write in writes if write.version == 1]
    _write(transaction, writes, changes, new, [write for write in writes if write.version != 1])
    return changes


def insert_history(transaction: Transaction, versions: Sequence[ImportedVersion]) -> None:
    """Log missing versions in this order, each with its own time and actor."""
    changes = []
    for seq, version in enumerate(versions, transaction.revision + 1):
        if version.starts_write:
            transaction.write_id = seq
        header = (seq, version.at, version.actor, transaction.write_id)
        changes.append(_build_change(header, version, version.document))
    current = [version for version in versions if version.is_current]
    new = [version for version in current if version.is_new_record]
    _write(transaction, versions, changes, new, [version for version in current if not version.is_new_record])


def bulk_insert(transaction: Transaction, new_records: Sequence[NewRecordRow], *, actor: str, at: int) -> None:
    """Write and log new records through the driver itself, which is much faster than `save_records`."""
    write_id, action = transaction.write_id, Action.CREATE.value
    record_rows, change_rows = [], []
    for seq, new_record in enumerate(new_records, transaction.revision + 1):
        record_id, collection, state, name, rendered, class_id, owner, flagged, document = new_record
        body, search_hit_length, order_key, name_key = rendered
        header = (seq, at, actor, write_id, action, collection, record_id, 1)
        # Drivers pass bytearrays as they are; for bytes they first check for adapters.
        record_rows.append(
            (record_id, collection, state, 1, name, order_key, name_key, search_hit_length, bytearray(body))
        )
        blobs = bytearray(document), bytearray(compute_digest(header, document))
        change_rows.append((*header, state, order_key, name_key, class_id, owner, flagged, *blobs))
    _insert_rows(transaction, record_table, record_rows)
    _insert_rows(transaction, change_table, change_rows)
    transaction.add_bulk_loaded(len(new_records))


def update_relations(transaction: Transaction, added: Iterable[Relation], removed: Iterable[Relation]) -> None:
    """Add relations that do not exist, and remove others. `save_records` writes the records they belong to."""
    _insert_rows(transaction, relation_table, list(added))
    keys = [{f"this_{name}": value for name, value in relation._asdict().items()} for relation in removed]
    if keys:
        transaction.execute(_DELETE_RELATION, keys)


def find_latest(connection: Connection, record_ids: Sequence[str]) -> dict[str, Change]:
    """Return the last change of each record that exists, by id."""
    changes: dict[str, Change] = {}
    for batch in batched(record_ids):
        changes |= {row.record: to_change(row) for row in connection.execute(_SELECT_LATEST, {"identifiers": batch})}
    return changes


def find_last_number(connection: Connection, vocabulary: str, rule: MintingRule) -> int | None:
    """Return the highest number that any record of a vocabulary, in any state, has or had by a rule, or None."""
    record_id, start = change_table.c.record, len(qualify_id(vocabulary, rule.before)) + 1
    length = func.length(record_id)
    first, last = (qualify_id(vocabulary, rule.format_id(number)) for number in (rule.first, rule.limit))
    digits = func.substr(record_id, start, length - (start + len(rule.after) - 1))
    query = select(record_id).where(
        func.ltrim(digits, "0123456789") == "", func.substr(record_id, length - len(rule.after) + 1) == rule.after
    )
    if rule.width:
        # Ids of one length: their order is that of the numbers, and the index has it.
        query = query.where(record_id >= first, record_id <= last, length == len(first)).order_by(record_id.desc())
    else:
        start_id = qualify_id(vocabulary, rule.before)
        is_canonical = (func.substr(record_id, start, 1) != "0") | (record_id == f"{start_id}0{rule.after}")
        query = query.where(record_id >= f"{start_id}0", record_id <= f"{start_id}:", is_canonical)
        query = query.where((length > len(first)) | (record_id >= first), length >= len(first))
        query = query.where((length < len(last)) | (record_id <= last), length <= len(last))
        query = query.order_by(length.desc(), record_id.desc())
    found = connection.execute(query.limit(1)).scalar()
    return None if found is None else rule.parse_number(get_local_id(found))


def _build_change(header: tuple[int, int, str, int], write: RecordWrite, document: bytes) -> Change:
    record = write.record
    return Change(*header, write.action, record.collection.name, record.id, write.version, document)


def _write(
    transaction: Transaction,
    writes: Sequence[RecordWrite],
    changes: Sequence[Change],
    new: Sequence[RecordWrite],
    updated: Sequence[RecordWrite],
) -> None:
    # Ids of new records are unused, so their rows can wait and be written together with others.
    transaction.defer(_INSERT_RECORD, map(_to_record_row, new))
    if updated:
        rows = [{"this": write.record.id, **_to_record_row(write)} for write in updated]
        transaction.execute(_UPDATE_RECORD, rows)
    logged = [write.record for write in writes]
    transaction.defer(_INSERT_CHANGE, map(to_change_row, changes, logged))
    transaction.add_logged(logged)


def _to_record_row(write: RecordWrite) -> dict[str, Any]:
    record = write.record
    return {
        "id": record.id,
        "collection": record.collection.name,
        "state": record.state,
        "version": write.version,
        **to_record_columns(record),
    }


def to_record_columns(record: Record) -> dict[str, Any]:
    """Return the columns of a record that depend on the schema."""
    rendered = record.rendered
    return {
        "name": record.fields["name"],
        "order_key": rendered.order_key,
        "name_key": rendered.name_key,
        "hit_length": rendered.search_hit_length,
        "body": rendered.body,
    }


def to_change_row(change: Change, record: Record) -> dict[str, Any]:
    """Return the row of a change, with the filter columns of its record."""
    class_id, owner, flagged = get_filter_columns(record.collection, record.fields)
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
        "digest": compute_digest(change[:8], change.document),
        "document": change.document,
    }


def _insert_rows(transaction: Transaction, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows that have a value for every column, in order."""
    if rows:
        connection = transaction.flush()
        placeholder = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        names = ", ".join(f'"{column.name}"' for column in table.c)
        placeholders = ", ".join(placeholder for _ in table.c)
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({placeholders})", rows)  # noqa: S608 (our own)
