"""Writing: a record, its relations and its row in the change log, together. Nothing else writes records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from lexarium.domain.changes import Action, Change, State, document
from lexarium.domain.collections import Collection
from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge
from lexarium.domain.rendering import Rendering
from lexarium.store.database import Transaction
from lexarium.store.schema import change, record, relation

_UPDATE = update(record).where(record.c.id == bindparam("this"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it shall be from now on."""

    collection: Collection
    fields: Fields
    rendering: Rendering
    state: State
    version: int
    """1 for a new record, else one more than it had."""
    edges: frozenset[Edge]
    """Every relation of which it is the source."""


def save(transaction: Transaction, entries: Sequence[Entry], *, actor: str, at: int) -> None:
    """Write these records and log the changes. Their relations are written by `relate`."""
    rows = [
        {
            "id": entry.fields["id"],
            "collection": entry.collection.name,
            "state": entry.state,
            "version": entry.version,
            "name": entry.fields["name"],
            "order_key": entry.rendering.order_key,
            "name_key": entry.rendering.name_key,
            "hit_length": entry.rendering.hit_length,
            "body": entry.rendering.body,
        }
        for entry in entries
    ]
    _execute(transaction, insert(record), [row for row in rows if row["version"] == 1])
    _execute(transaction, _UPDATE, [{"this": row["id"], **row} for row in rows if row["version"] != 1])
    changes = [
        {
            "seq": seq,
            "at": at,
            "actor": actor,
            "action": Action.CREATE if entry.version == 1 else Action.UPDATE,
            "collection": entry.collection.name,
            "record": entry.fields["id"],
            "version": entry.version,
            "document": document(entry.state, entry.rendering.body, entry.edges),
        }
        for seq, entry in enumerate(entries, transaction.revision + 1)
    ]
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
    query = select(change).where(change.c.record.in_(identifiers)).order_by(change.c.record, change.c.version)
    return {row.record: _change(row) for row in connection.execute(query)}


def _row(edge: Edge) -> dict[str, str]:
    return {"source": edge.source, "relation": edge.relation, "target": edge.target}


def _execute(transaction: Transaction, statement: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        transaction.connection.execute(statement, rows)


def _change(row: Any) -> Change:
    return Change(
        seq=row.seq,
        at=row.at,
        actor=row.actor,
        action=Action(row.action),
        collection=row.collection,
        record=row.record,
        version=row.version,
        document=row.document,
    )
