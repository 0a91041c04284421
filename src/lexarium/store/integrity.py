"""Questions about the database that only a check asks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Row, Select, Table, func, select

from lexarium.domain.account import Origin, Role
from lexarium.domain.change import Action, Change
from lexarium.domain.proposal import ProposalState
from lexarium.domain.rendering import RenderedRecord
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import MAPPING_TYPES
from lexarium.store.change_log import to_change_row
from lexarium.store.records import BATCH_SIZE, STREAM_OPTIONS, RecordRow, to_record_row
from lexarium.store.revisions import to_change
from lexarium.store.schema import (
    account_table,
    change_table,
    delivery_table,
    idempotency_table,
    import_base_table,
    proposal_table,
    record_table,
    relation_table,
    release_table,
    token_table,
    webhook_table,
)


@dataclass(frozen=True)
class LogExtent:
    """How much of a log there is."""

    count: int
    last_seq: int


def find_log_extent(connection: Connection) -> LogExtent:
    """The number of changes and the last seq."""
    row = connection.execute(select(func.count(), func.max(change_table.c.seq))).one()
    return LogExtent(row[0], row[1] or 0)


def iter_corrupt_changes(connection: Connection) -> Iterator[Change]:
    """The changes that cannot be read, were altered, or stand under something else than they say."""
    for row in connection.execute(select(change_table).order_by(change_table.c.seq), execution_options=STREAM_OPTIONS):
        change = to_change(row)
        try:
            is_valid = to_change_row(change, change.to_record()) == row._asdict()
        except (ValueError, KeyError, TypeError, AttributeError):
            is_valid = False
        if not is_valid:
            yield change


def list_records_with_gaps(connection: Connection) -> list[str]:
    """The records of which the log lacks a version before the last."""
    query = (
        select(change_table.c.record)
        .group_by(change_table.c.record)
        .having(func.count() != func.max(change_table.c.version))
    )
    return list(connection.execute(query.order_by(change_table.c.record)).scalars())


def iter_record_rows(connection: Connection) -> Iterator[list[tuple[RecordRow, RenderedRecord, str]]]:
    """Every record with what the store keeps of its rendering and name, by id, some at a time."""
    last_id = ""
    while True:
        query = select(record_table).where(record_table.c.id > last_id).order_by(record_table.c.id).limit(BATCH_SIZE)
        rows = connection.execute(query).all()
        if not rows:
            return
        yield [
            (to_record_row(row), RenderedRecord(row.body, row.hit_length, row.order_key, row.name_key), row.name)
            for row in rows
        ]
        last_id = rows[-1].id


def list_ids_only_in_log(connection: Connection) -> list[str]:
    """The ids that the log knows and the catalogue does not."""
    missing = (
        select(change_table.c.record).distinct().outerjoin(record_table, record_table.c.id == change_table.c.record)
    )
    return list(
        connection.execute(missing.where(record_table.c.id.is_(None)).order_by(change_table.c.record)).scalars()
    )


def count_dangling_relations(connection: Connection) -> int:
    """How many relations name a record that is not there."""
    source, target = record_table.alias(), record_table.alias()
    query = (
        select(func.count())
        .select_from(relation_table)
        .outerjoin(source, source.c.id == relation_table.c.source)
        .outerjoin(target, target.c.id == relation_table.c.target)
        .where(source.c.id.is_(None) | target.c.id.is_(None))
        .where(relation_table.c.relation.not_in([mapping_type.name for mapping_type in MAPPING_TYPES]))
    )
    count: int = connection.execute(query).scalar_one()
    return count


class InvalidRow(NamedTuple):
    """A row that makes no sense: of which table and key, and why."""

    table: str
    key: str
    reason: str


# Engines hold some of these themselves, unless they were told not to, or the file was altered behind their back.
_FOREIGN_KEYS: tuple[tuple[Column[Any], Column[Any]], ...] = (
    (token_table.c.account, account_table.c.id),
    (proposal_table.c.author, account_table.c.id),
    (proposal_table.c.decider, account_table.c.id),
    (proposal_table.c.record, record_table.c.id),
    (release_table.c.author, account_table.c.id),
    (idempotency_table.c.account, account_table.c.id),
    (delivery_table.c.webhook, webhook_table.c.id),
    (import_base_table.c.record, record_table.c.id),
)
"""What names something, and where that must be."""


_ENUM_COLUMNS: tuple[tuple[Column[Any], Collection[str]], ...] = (
    (account_table.c.role, list(Role)),
    (token_table.c.role, list(Role)),
    (token_table.c.origin, list(Origin)),
    (proposal_table.c.state, list(ProposalState)),
    (proposal_table.c.collection, list(COLLECTIONS)),
)
"""What is one of some words."""


_ENUM_LIST_COLUMNS: tuple[tuple[Column[Any], Collection[str]], ...] = (
    (webhook_table.c.collections, list(COLLECTIONS)),
    (webhook_table.c.actions, list(Action)),
)
"""What is some of them, with spaces between."""


_SEQ_COLUMNS = (release_table.c.revision, webhook_table.c.seq, delivery_table.c.seq)
"""What is a place in the log."""


_JSON_COLUMNS = (proposal_table.c.change, idempotency_table.c.answer, import_base_table.c.untaken)
"""What is a JSON object."""


def iter_invalid_rows(connection: Connection, revision: int) -> Iterator[InvalidRow]:
    """Every row that names what is not there, or says what cannot be."""
    for column, referenced in _FOREIGN_KEYS:
        is_missing = referenced.is_(None) & column.is_not(None)
        query = _select_column(column).outerjoin(referenced.table, referenced == column).where(is_missing)
        yield from _to_invalid_rows(connection, column, query, "{value!r} is not there")
    for column, allowed_values in _ENUM_COLUMNS:
        query = _select_column(column).where(column.not_in(allowed_values))
        yield from _to_invalid_rows(connection, column, query, "{value!r} is none that there is")
    for column in _SEQ_COLUMNS:
        query = _select_column(column).where((column > revision) | (column < 0))
        yield from _to_invalid_rows(connection, column, query, "{value} is not in the log")
    yield from _check_base_versions(connection)
    yield from _check_decisions(connection)
    yield from _check_enum_lists(connection)
    yield from _check_json(connection)


def _check_base_versions(connection: Connection) -> Iterator[InvalidRow]:
    """The proposals to change a version that the log does not have."""
    is_base_version = (change_table.c.record == proposal_table.c.record) & (
        change_table.c.version == proposal_table.c.base_version
    )
    query = _select_column(proposal_table.c.base_version).outerjoin(change_table, is_base_version)
    query = query.where(proposal_table.c.base_version.is_not(None), change_table.c.seq.is_(None))
    yield from _to_invalid_rows(connection, proposal_table.c.base_version, query, "{value} is no version of its record")


def _check_decisions(connection: Connection) -> Iterator[InvalidRow]:
    """The proposals of which it is not told who decided them, or that are open and decided."""
    query = _select_column(proposal_table.c.state).where(
        (proposal_table.c.state == ProposalState.OPEN) == proposal_table.c.decider.is_not(None)
    )
    yield from _to_invalid_rows(connection, proposal_table.c.state, query, "{value!r} does not go with its decider")


def _check_enum_lists(connection: Connection) -> Iterator[InvalidRow]:
    for column, allowed_values in _ENUM_LIST_COLUMNS:
        for row in connection.execute(_select_column(column)):
            unknown = set(row.value.split()) - set(allowed_values)
            yield from (
                InvalidRow(column.table.name, _format_key(row), f"{column.name} has {word!r}")
                for word in sorted(unknown)
            )


def _check_json(connection: Connection) -> Iterator[InvalidRow]:
    for column in _JSON_COLUMNS:
        for row in connection.execute(_select_column(column), execution_options=STREAM_OPTIONS):
            try:
                is_readable = isinstance(orjson.loads(row.value), dict)
            except ValueError:
                is_readable = False
            if not is_readable:
                yield InvalidRow(column.table.name, _format_key(row), f"{column.name} cannot be read")


def _select_column(column: Column[Any]) -> Select[Any]:
    """A column of all rows, with their keys."""
    table = column.table
    assert isinstance(table, Table)
    return select(column.label("value"), *table.primary_key.columns).order_by(*table.primary_key.columns)


def _to_invalid_rows(
    connection: Connection, column: Column[Any], query: Select[Any], reason: str
) -> Iterator[InvalidRow]:
    for row in connection.execute(query):
        yield InvalidRow(column.table.name, _format_key(row), f"{column.name} {reason.format(value=row.value)}")


def _format_key(row: Row[Any]) -> str:
    return " ".join(map(str, row[1:]))
