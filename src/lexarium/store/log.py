"""Writing: a record, its relations and its row in the change log, together. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from lexarium.domain.changes import Action, Change, Proposed, Whole, digest_of
from lexarium.domain.relations import Edge
from lexarium.domain.rendering import Rendering, filed_under
from lexarium.store.records import BATCH
from lexarium.store.schema import change, record, relation
from lexarium.store.transaction import Transaction
from lexarium.store.versions import IS_LAST, change_of

# Built once: to build a statement costs more than to run it.
_INSERT = insert(record)
_UPDATE = update(record).where(record.c.id == bindparam("this"))
_LOG = insert(change)
_UNRELATE = delete(relation).where(*(column == bindparam(f"this_{column.name}") for column in relation.c))
_LATEST = select(change).join(record, IS_LAST).where(record.c.id.in_(bindparam("identifiers", expanding=True)))


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it shall be from now on."""

    whole: Whole
    version: int
    """1 for a new record, else one more than it had."""
    action: Action


def save(
    transaction: Transaction, entries: Sequence[Entry], *, actor: str, at: int, proposed: Proposed | None = None
) -> list[Change]:
    """Write these records and log the changes, which are returned. Their relations are written by `relate`.

    `proposed` is what the changes go back to, where that is a proposal.
    """
    rows = [_record_row(entry) for entry in entries]
    changes = [
        Change(
            seq=seq,
            at=at,
            actor=actor,
            batch=transaction.batch,
            action=entry.action,
            collection=entry.whole.collection.name,
            record=entry.whole.id,
            version=entry.version,
            document=entry.whole.document(proposed),
        )
        for seq, entry in enumerate(entries, transaction.revision + 1)
    ]
    # What is new comes under an identifier that nobody has used: that can wait, and be written with more of its kind.
    transaction.put_off(_INSERT, (row for row in rows if row["version"] == 1))
    _execute(transaction, _UPDATE, [{"this": row["id"], **row} for row in rows if row["version"] != 1])
    transaction.put_off(_LOG, (change_row(made, entry.whole) for made, entry in zip(changes, entries, strict=True)))
    transaction.logged([entry.whole for entry in entries])
    return changes


class New(NamedTuple):
    """A new record, ready to be written."""

    id: str
    collection: str
    state: str
    name: str
    rendering: Rendering
    class_id: str
    owner: str
    flagged: bool
    document: bytes


def append(transaction: Transaction, news: Sequence[New], *, actor: str, at: int) -> None:
    """Write new records and log them, of a load: by the driver itself, which is much faster than `save`."""
    batch, action = transaction.batch, Action.CREATE.value
    records, changes = [], []
    for seq, new in enumerate(news, transaction.revision + 1):
        identifier, collection, state, name, (body, hit_length, order, key), class_id, owner, flagged, document = new
        told = (seq, at, actor, batch, action, collection, identifier, 1)
        # Arrays of bytes, since a driver takes them as they are; for bytes it looks first whether it should.
        records.append((identifier, collection, state, 1, name, order, key, hit_length, bytearray(body)))
        kept = bytearray(digest_of(told, document)), bytearray(document)
        changes.append((*told, state, order, key, class_id, owner, flagged, *kept))
    _insert(transaction, record, records)
    _insert(transaction, change, changes)
    transaction.loaded(len(news))


@dataclass(frozen=True, slots=True)
class Retold:
    """A version that is new here, as it was made elsewhere."""

    whole: Whole
    version: int
    action: Action
    at: int
    actor: str
    document: bytes
    begins: bool
    """Whether another write made it than made the one before."""
    last: bool
    """Whether it is what the record is now."""
    new: bool
    """Whether the record was not there before."""


def retell(transaction: Transaction, told: Sequence[Retold]) -> None:
    """Log versions that were not there, each with when and by whom it was made, in this order."""
    changes = []
    for seq, each in enumerate(told, transaction.revision + 1):
        if each.begins:
            transaction.batch = seq
        made = Change(
            seq=seq,
            at=each.at,
            actor=each.actor,
            batch=transaction.batch,
            action=each.action,
            collection=each.whole.collection.name,
            record=each.whole.id,
            version=each.version,
            document=each.document,
        )
        changes.append(change_row(made, each.whole))
    last = [(each.new, _record_row(Entry(each.whole, each.version, each.action))) for each in told if each.last]
    transaction.put_off(_INSERT, (row for new, row in last if new))
    _execute(transaction, _UPDATE, [{"this": row["id"], **row} for new, row in last if not new])
    transaction.put_off(_LOG, changes)
    transaction.logged([each.whole for each in told])


def relate(transaction: Transaction, added: Iterable[Edge], removed: Iterable[Edge]) -> None:
    """Add and remove relations. Those added must not be there; the records they belong to are saved by `save`."""
    _insert(transaction, relation, [(edge.source, edge.relation, edge.target) for edge in added])
    _execute(
        transaction,
        _UNRELATE,
        [{"this_source": each.source, "this_relation": each.relation, "this_target": each.target} for each in removed],
    )


def latest(connection: Connection, identifiers: Sequence[str]) -> dict[str, Change]:
    """The last change of each of these records; one that has none is left out."""
    found: dict[str, Change] = {}
    for start in range(0, len(identifiers), BATCH):
        rows = connection.execute(_LATEST, {"identifiers": identifiers[start : start + BATCH]})
        found |= {row.record: change_of(row) for row in rows}
    return found


def _record_row(entry: Entry) -> dict[str, Any]:
    whole, rendering = entry.whole, entry.whole.rendering
    return {
        "id": whole.id,
        "collection": whole.collection.name,
        "state": whole.state,
        "version": entry.version,
        "name": whole.fields["name"],
        "order_key": rendering.order_key,
        "name_key": rendering.name_key,
        "hit_length": rendering.hit_length,
        "body": rendering.body,
    }


def change_row(made: Change, whole: Whole) -> dict[str, Any]:
    """A change as its row in the log, filed under what the record is from then on."""
    class_id, owner, flagged = filed_under(whole.fields)
    return {
        "seq": made.seq,
        "at": made.at,
        "actor": made.actor,
        "batch": made.batch,
        "action": made.action,
        "collection": made.collection,
        "record": made.record,
        "version": made.version,
        "state": whole.state,
        "order_key": whole.rendering.order_key,
        "name_key": whole.rendering.name_key,
        "class_id": class_id,
        "owner": owner,
        "flagged": flagged,
        "digest": made.digest(),
        "document": made.document,
    }


def _insert(transaction: Transaction, table: Table, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows that have a value for every column, in the order of columns."""
    if rows:
        connection = transaction.connection
        mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        names, marks = ", ".join(f'"{column.name}"' for column in table.c), ", ".join(mark for _ in table.c)
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", rows)  # noqa: S608 (our own)


def _execute(transaction: Transaction, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        transaction.connection.execute(statement, rows)
