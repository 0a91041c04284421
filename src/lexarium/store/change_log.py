"""Write records, their relations and their changes. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, Table, bindparam, delete, func, insert, select, update

from lexarium.domain.cache_tags import record_tags
from lexarium.domain.change import Action, Change, compute_digest
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.identity.minting import MintingRule
from lexarium.domain.record import ProposalOrigin, Record, Relation, parse_record
from lexarium.domain.rendering import RenderedRecord, get_filter_columns
from lexarium.store.dependencies import depend_on
from lexarium.store.records import batched
from lexarium.store.revisions import IS_CURRENT_CHANGE, to_change
from lexarium.store.schema import change_table, record_table, relation_table
from lexarium.store.transaction import MAX_TRACKED_CHANGES, Transaction

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


class VersionRow(NamedTuple):
    """Version of a record, ready for a bulk insert."""

    id: str
    collection: str
    state: str
    name: str
    rendered: RenderedRecord
    class_id: str
    owner: str
    flagged: bool
    document: bytes


class ImportedVersion(NamedTuple):
    """Version that was made elsewhere and is missing here."""

    row: VersionRow
    version: int
    action: Action
    at: int
    actor: str
    # Whether it belongs to another write than the version before it.
    starts_write: bool
    is_current: bool
    is_new_record: bool


def build_row(record: Record, document: bytes) -> VersionRow:
    """Return the row of a record, whose document for the log is given."""
    collection, fields = record.collection, record.fields
    filter_columns = get_filter_columns(collection, fields)
    state = record.state.value
    return VersionRow(record.id, collection.name, state, fields["name"], record.rendered, *filter_columns, document)


def save_records(  # noqa: PLR0913 (all that a change states)
    transaction: Transaction,
    writes: Sequence[RecordWrite],
    *,
    actor: str,
    at: int,
    origin: ProposalOrigin | None = None,
    summary: str = "",
) -> list[Change]:
    """Write records and log their changes, which are returned. `update_relations` writes their relations.

    `origin` is the proposal behind the changes, if any, and `summary` what their author says about them.
    """
    changes = [
        _build_change((seq, at, actor, transaction.write_id), write, write.record.to_document(origin, summary))
        for seq, write in enumerate(writes, transaction.revision + 1)
    ]
    if len(writes) > MAX_TRACKED_CHANGES:
        versions = [
            ImportedVersion(
                build_row(write.record, change.document),
                write.version,
                write.action,
                at,
                actor,
                starts_write=False,
                is_current=True,
                is_new_record=write.version == 1,
            )
            for write, change in zip(writes, changes, strict=True)
        ]
        insert_history(transaction, versions)
        return changes
    new = [write for write in writes if write.version == 1]
    _write(transaction, writes, changes, new, [write for write in writes if write.version != 1])
    return changes


def insert_history(transaction: Transaction, versions: Sequence[ImportedVersion]) -> None:
    """Log versions in this order, each with its own time and actor, through the driver itself."""
    change_rows: list[tuple[Any, ...]] = []
    new_rows: list[tuple[Any, ...]] = []
    updated_rows: list[tuple[Any, ...]] = []
    for seq, version in enumerate(versions, transaction.revision + 1):
        if version.starts_write:
            transaction.write_id = seq
        row, header = version.row, (seq, version.at, version.actor, transaction.write_id)
        change_rows.append(_to_change_values(header, version.action, version.version, row))
        if version.is_current:
            rows = new_rows if version.is_new_record else updated_rows
            rows.append(_to_record_values(row, version.version))
    _insert_rows(transaction, record_table, new_rows)
    names = [column.name for column in record_table.c]
    if updated_rows:
        updates = [{"this": values[0], **dict(zip(names, values, strict=True))} for values in updated_rows]
        transaction.execute(_UPDATE_RECORD, updates)
    _insert_rows(transaction, change_table, change_rows)
    records = (parse_record(version.row.collection, version.row.document) for version in versions)
    transaction.add_logged(len(versions), records)


def bulk_insert(transaction: Transaction, new_records: Sequence[VersionRow], *, actor: str, at: int) -> None:
    """Write and log new records through the driver itself, which is much faster than `save_records`."""
    write_id = transaction.write_id
    change_rows = [
        _to_change_values((seq, at, actor, write_id), Action.CREATE, 1, row)
        for seq, row in enumerate(new_records, transaction.revision + 1)
    ]
    _insert_rows(transaction, record_table, [_to_record_values(row, 1) for row in new_records])
    _insert_rows(transaction, change_table, change_rows)
    transaction.add_bulk_loaded(len(new_records))


def _to_record_values(row: VersionRow, version: int) -> tuple[Any, ...]:
    """Return the columns of a record."""
    body, search_hit_length, order_key, name_key = row.rendered
    # Drivers pass bytearrays as they are; for bytes they first check for adapters.
    keys = order_key, name_key, search_hit_length, bytearray(body)
    return row.id, row.collection, row.state, version, row.name, *keys


def _to_change_values(
    header: tuple[int, int, str, int], action: Action, version: int, row: VersionRow
) -> tuple[Any, ...]:
    """Return the columns of a change."""
    record_id, collection, state, _, rendered, class_id, owner, flagged, document = row
    values = (*header, action.value, collection, record_id, version)
    blobs = bytearray(document), bytearray(compute_digest(values, document))
    return *values, state, rendered.order_key, rendered.name_key, class_id, owner, flagged, *blobs


def update_relations(transaction: Transaction, added: Iterable[Relation], removed: Iterable[Relation]) -> None:
    """Add relations that do not exist, and remove others. `save_records` writes the records they belong to."""
    _insert_rows(transaction, relation_table, list(added))
    removed = list(removed)
    transaction.add_invalidated(record_tags(relation.target for relation in removed))
    keys = [{f"this_{name}": value for name, value in relation._asdict().items()} for relation in removed]
    if keys:
        transaction.execute(_DELETE_RELATION, keys)


def find_latest(connection: Connection, record_ids: Sequence[str]) -> dict[str, Change]:
    """Return the last change of each record that exists, by id."""
    changes: dict[str, Change] = {}
    with depend_on(record_tags(record_ids)):
        for batch in batched(record_ids):
            rows = connection.execute(_SELECT_LATEST, {"identifiers": batch})
            changes |= {row.record: to_change(row) for row in rows}
    return changes


def find_last_number(transaction: Transaction, vocabulary: str, rule: MintingRule) -> int | None:
    """Return the highest number that any record of a vocabulary, in any state, has or had by a rule, or None."""
    record_id, start_id = change_table.c.record, qualify_id(vocabulary, rule.before)
    start, length = len(start_id) + 1, func.length(record_id)
    first, last = (qualify_id(vocabulary, rule.format_id(number)) for number in (rule.first, rule.limit))
    digits = func.substr(record_id, start, length - (start + len(rule.after) - 1))
    query = select(record_id).where(
        func.ltrim(digits, "0123456789") == "", func.substr(record_id, length - len(rule.after) + 1) == rule.after
    )
    if rule.width:
        # Ids of one length: their order is that of the numbers, and the index has it.
        query = query.where(record_id >= first, record_id <= last, length == len(first)).order_by(record_id.desc())
        return _find_number(transaction, query, rule)
    is_canonical = (func.substr(record_id, start, 1) != "0") | (record_id == f"{start_id}0{rule.after}")
    query = query.where(is_canonical).order_by(length.desc(), record_id.desc())
    query = query.where((length > len(first)) | (record_id >= first), length >= len(first))
    query = query.where((length < len(last)) | (record_id <= last), length <= len(last))
    # No index has them in the order of the numbers, so later calls read only the changes since.
    position, number = transaction.last_numbers.get((vocabulary, rule), (None, None))
    if position is not None and transaction.position.includes(position):
        # Not a range of ids: its index would be preferred.
        is_own = func.substr(record_id, 1, len(start_id)) == start_id
        later = _find_number(transaction, query.where(change_table.c.seq > position.revision, is_own), rule)
        number = max((item for item in (number, later) if item is not None), default=None)
    else:
        in_range = (record_id >= f"{start_id}0") & (record_id <= f"{start_id}:")
        number = _find_number(transaction, query.where(in_range), rule)
    # What this transaction has logged may be rolled back.
    if transaction.position == transaction.start_position:
        transaction.last_numbers[vocabulary, rule] = transaction.position, number
    return number


def _find_number(transaction: Transaction, query: Select[tuple[str]], rule: MintingRule) -> int | None:
    """Return the number of the first id that a query finds, or None."""
    found = transaction.execute(query.limit(1)).scalar()
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
    transaction.add_logged(len(logged), logged)


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
        statement = f"INSERT INTO {table.name} ({names}) VALUES ({placeholders})"  # noqa: S608 (our own)
        # PostgreSQL counts the rows that are sent together as one statement, for which there is a time limit.
        for batch in batched(rows):
            connection.exec_driver_sql(statement, list(batch))
