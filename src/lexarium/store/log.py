"""Writing: a record, its relations and its row in the change log, together. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from lexarium.domain.changes import Action, Change, Whole
from lexarium.domain.relations import Edge
from lexarium.store.schema import change, record, relation
from lexarium.store.transaction import Transaction
from lexarium.store.versions import change_of

_UPDATE = update(record).where(record.c.id == bindparam("this"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it shall be from now on."""

    whole: Whole
    version: int
    """1 for a new record, else one more than it had."""
    action: Action


def save(transaction: Transaction, entries: Sequence[Entry], *, actor: str, at: int) -> None:
    """Write these records and log the changes. Their relations are written by `relate`."""
    rows = [_record_row(entry) for entry in entries]
    _execute(transaction, insert(record), [row for row in rows if row["version"] == 1])
    _execute(transaction, _UPDATE, [{"this": row["id"], **row} for row in rows if row["version"] != 1])
    seqs = range(transaction.revision + 1, transaction.revision + 1 + len(entries))
    shared = {"actor": actor, "at": at, "batch": transaction.batch}
    changes = [{"seq": seq, **shared, **_change_row(entry)} for seq, entry in zip(seqs, entries, strict=True)]
    _execute(transaction, insert(change), changes)
    transaction.revision += len(changes)


def relate(transaction: Transaction, added: Iterable[Edge], removed: Iterable[Edge]) -> None:
    """Add and remove relations. Those added must not be there; the records they belong to are saved by `save`."""
    _execute(transaction, insert(relation), [_row(edge) for edge in added])
    gone = delete(relation).where(*(column == bindparam(f"this_{column.name}") for column in relation.c))
    rows = [{f"this_{key}": value for key, value in _row(edge).items()} for edge in removed]
    _execute(transaction, gone, rows)


def latest(connection: Connection, identifiers: Sequence[str]) -> dict[str, Change]:
    """The last change of each of these records (at most `records.BATCH`); one that has none is left out."""
    newest = (change.c.record == record.c.id) & (change.c.version == record.c.version)
    query = select(change).join(record, newest).where(record.c.id.in_(identifiers))
    return {row.record: change_of(row) for row in connection.execute(query)}


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


def _change_row(entry: Entry) -> dict[str, Any]:
    whole = entry.whole
    return {
        "action": entry.action,
        "collection": whole.collection.name,
        "record": whole.id,
        "version": entry.version,
        "state": whole.state,
        "order_key": whole.rendering.order_key,
        "name_key": whole.rendering.name_key,
        "class_id": whole.fields.get("id_concept_class", ""),
        "owner": whole.fields.get("id_user", ""),
        "flagged": bool(whole.fields.get("flag_for_curator")),
        "document": whole.document(),
    }


def _row(edge: Edge) -> dict[str, str]:
    return {"source": edge.source, "relation": edge.relation, "target": edge.target}


def _execute(transaction: Transaction, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        transaction.connection.execute(statement, rows)
