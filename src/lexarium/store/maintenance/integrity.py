"""Queries of the integrity check."""

import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Row, Select, Table, func, literal, select, tuple_

from lexarium.domain.account import Origin, Role
from lexarium.domain.change import Action, Change, compute_digest
from lexarium.domain.comment import CommentAction
from lexarium.domain.identifiers import MAIN_VOCABULARY, format_record_id, qualify_id
from lexarium.domain.proposal import ProposalState
from lexarium.domain.record import Relation
from lexarium.domain.release import ReleaseFile
from lexarium.domain.rendering import RenderedRecord
from lexarium.domain.schema.collections import RELATION_TYPES, VOCABULARY, list_stored_collections
from lexarium.store import releases, schema
from lexarium.store.change_log import find_latest, to_change_row
from lexarium.store.maintenance.purge import is_own_id
from lexarium.store.records import BATCH_SIZE, IS_PUBLISHED, STREAM_OPTIONS, RecordRow, to_record_row
from lexarium.store.revisions import IS_CURRENT_CHANGE, to_change
from lexarium.store.schema import (
    alternative_id_table,
    change_table,
    label_table,
    proposal_table,
    record_table,
    relation_table,
)
from lexarium.store.vocabularies import list_derived_rows

# What reading a damaged document may raise.
DECODE_ERRORS = (ValueError, KeyError, TypeError, AttributeError)

_change, _proposal, _record = change_table.c, proposal_table.c, record_table.c


@dataclass(frozen=True)
class LogExtent:
    """Number of changes in the log, and the last seq."""

    count: int
    last_seq: int


def find_log_extent(connection: Connection) -> LogExtent:
    """Return the number of changes and the last seq."""
    return LogExtent(*connection.execute(select(func.count(), func.coalesce(func.max(_change.seq), 0))).one())


def count_vocabulary_changes(connection: Connection) -> int:
    """Return the number of changes of vocabularies that are in the log."""
    is_head = _change.record.startswith(qualify_id("", ""), autoescape=True)
    count: int = connection.execute(select(func.count()).select_from(change_table).where(is_head)).scalar_one()
    return count


def iter_corrupt_changes(connection: Connection) -> Iterator[Change]:
    """Yield the changes that cannot be read, or that do not match their digest or their other columns."""
    for row in connection.execute(select(change_table).order_by(_change.seq), execution_options=STREAM_OPTIONS):
        change = to_change(row)
        try:
            record = change.to_record()
            if record.collection.vocabulary == MAIN_VOCABULARY:
                is_valid = to_change_row(change, record) == row._asdict()
            else:
                # Other columns depend on the schema and the language, which may have changed since.
                is_valid = row.digest == compute_digest(change[:8], change.document)
        except (ValueError, KeyError, TypeError, AttributeError):
            is_valid = False
        if not is_valid:
            yield change


def list_records_with_gaps(connection: Connection) -> list[str]:
    """Return the ids of the records that lack a version before the last in the log."""
    query = select(_change.record).group_by(_change.record).having(func.count() != func.max(_change.version))
    return list(connection.execute(query.order_by(_change.record)).scalars())


def iter_record_rows(connection: Connection) -> Iterator[list[tuple[RecordRow, RenderedRecord, str]]]:
    """Yield batches of all records by id, each with its rendering and name."""
    last_id = ""
    while True:
        query = select(record_table).where(_record.id > last_id).order_by(_record.id).limit(BATCH_SIZE)
        rows = connection.execute(query).all()
        if not rows:
            return
        yield [
            (to_record_row(row), RenderedRecord(row.body, row.hit_length, row.order_key, row.name_key), row.name)
            for row in rows
        ]
        last_id = rows[-1].id


def iter_published(connection: Connection, collection: str) -> Iterator[list[Change]]:
    """Yield batches of the last changes of the published records of a collection, in its order."""
    key = tuple_(_record.order_key, _record.id)
    after = ("", "")
    while True:
        query = select(change_table).join(record_table, IS_CURRENT_CHANGE)
        query = query.where(_record.collection == collection, IS_PUBLISHED, key > tuple_(*map(literal, after)))
        rows = connection.execute(query.order_by(_record.order_key, _record.id).limit(BATCH_SIZE)).all()
        if not rows:
            return
        yield [to_change(row) for row in rows]
        after = rows[-1].order_key, rows[-1].record


class RepeatedName(NamedTuple):
    """Name that several published records of a collection have."""

    name: str
    number: int
    # The lowest id among them.
    record_id: str


def iter_repeated_names(connection: Connection, collection: str) -> Iterator[RepeatedName]:
    """Yield the names that several published records of a collection have, ignoring case."""
    query = (
        select(func.min(_record.name), func.count(), func.min(_record.id))
        .where(_record.collection == collection, IS_PUBLISHED, _record.name_key != "")
        .group_by(_record.name_key)
        .having(func.count() > 1)
        .order_by(_record.name_key)
    )
    with connection.execute(query, execution_options=STREAM_OPTIONS) as result:
        for row in result:
            yield RepeatedName(*row)


def list_ids_only_in_log(connection: Connection) -> list[str]:
    """Return the ids that are in the log but have no record."""
    query = select(_change.record).distinct().outerjoin(record_table, _record.id == _change.record)
    return list(connection.execute(query.where(_record.id.is_(None)).order_by(_change.record)).scalars())


def iter_wrong_derived_rows(connection: Connection) -> Iterator[str]:
    """Yield the ids of records whose alternative ids or translated names are not those of their last version."""
    for batch in iter_record_rows(connection):
        record_ids = [row.id for row, _, _ in batch]
        stored: dict[str, set[tuple[str, ...]]] = {record_id: set() for record_id in record_ids}
        for table in (alternative_id_table, label_table):
            for row in connection.execute(select(table).where(table.c.record.in_(record_ids))):
                stored[row.record].add(tuple(row))
        for change in find_latest(connection, record_ids).values():
            try:
                ids, labels = list_derived_rows([change.to_record()])
            except DECODE_ERRORS:
                continue  # which is a finding of its own
            if stored[change.record_id] != ids | labels:
                yield change.record_id


def iter_dangling_relations(connection: Connection, vocabulary: str | None = None) -> Iterator[Relation]:
    """Yield the relations, other than mappings, with an end that does not exist: all, or those of a vocabulary."""
    source, target = record_table.alias(), record_table.alias()
    query = (
        select(relation_table.c.source, relation_table.c.relation, relation_table.c.target)
        .outerjoin(source, source.c.id == relation_table.c.source)
        .outerjoin(target, target.c.id == relation_table.c.target)
        .where(source.c.id.is_(None) | target.c.id.is_(None))
        .where(relation_table.c.relation.not_in([name for name, item in RELATION_TYPES.items() if item.is_mapping]))
    )
    if vocabulary is not None:
        query = query.where(is_own_id(relation_table.c.source, vocabulary))
    with connection.execute(query, execution_options=STREAM_OPTIONS) as result:
        for row in result:
            yield Relation(*row)


class RelationCount(NamedTuple):
    """Relations of one type between records of two collections."""

    source: str
    relation: str
    target: str
    number: int
    # Id of a record.
    first_source: str


def group_relations(connection: Connection, relation_types: Sequence[str]) -> list[RelationCount]:
    """Return the relations of some types, counted by the collections of both ends. Both exist."""
    source, target = record_table.alias(), record_table.alias()
    key = source.c.collection, relation_table.c.relation, target.c.collection
    query = (
        select(*key, func.count(), func.min(relation_table.c.source))
        .select_from(relation_table)
        .join(source, source.c.id == relation_table.c.source)
        .join(target, target.c.id == relation_table.c.target)
        .where(relation_table.c.relation.in_(relation_types))
    )
    return [RelationCount._make(row) for row in connection.execute(query.group_by(*key).order_by(*key))]


# Columns and the columns they refer to. Engines enforce some of these, unless the file was altered from outside.
_FOREIGN_KEYS: tuple[tuple[Column[Any], Column[Any]], ...] = (
    (schema.token_table.c.account, schema.account_table.c.id),
    (schema.membership_table.c.account, schema.account_table.c.id),
    (_proposal.author, schema.account_table.c.id),
    (_proposal.decider, schema.account_table.c.id),
    (_proposal.record, _record.id),
    (schema.comment_table.c.record, _record.id),
    (schema.comment_table.c.thread, schema.comment_table.alias().c.id),
    (schema.release_table.c.author, schema.account_table.c.id),
    (schema.release_file_table.c.release, schema.release_table.c.name),
    (schema.release_chunk_table.c.release, schema.release_table.c.name),
    (schema.idempotency_table.c.account, schema.account_table.c.id),
    (schema.delivery_table.c.webhook, schema.webhook_table.c.id),
    (schema.import_base_table.c.record, _record.id),
    (schema.import_statement_table.c.record, _record.id),
    (schema.import_write_table.c.batch, _change.batch),
    (schema.alternative_id_table.c.record, _record.id),
    (schema.label_table.c.record, _record.id),
)
_ENUM_COLUMNS: tuple[tuple[Column[Any], Callable[[], Collection[str]]], ...] = (
    (schema.account_table.c.role, lambda: list(Role)),
    (schema.membership_table.c.role, lambda: list(Role)),
    (schema.token_table.c.role, lambda: list(Role)),
    (schema.token_table.c.origin, lambda: list(Origin)),
    (_proposal.state, lambda: list(ProposalState)),
    (_proposal.collection, list_stored_collections),
    (schema.comment_table.c.action, lambda: list(CommentAction)),
)
# Columns that hold several values, separated by spaces.
_ENUM_LIST_COLUMNS: tuple[tuple[Column[Any], Callable[[], Collection[str]]], ...] = (
    (schema.webhook_table.c.collections, lambda: [*list_stored_collections(), VOCABULARY.local_name]),
    (schema.webhook_table.c.actions, lambda: list(Action)),
)
_SEQ_COLUMNS = (schema.release_table.c.revision, schema.webhook_table.c.seq, schema.delivery_table.c.seq)
# Columns that hold a JSON object.
_JSON_COLUMNS = (_proposal.change, schema.idempotency_table.c.answer, schema.import_base_table.c.untaken)


def iter_invalid_rows(connection: Connection, revision: int) -> Iterator[str]:
    """Describe the rows that refer to something that does not exist, or hold an impossible value."""
    for column, query, reason in _build_checks(revision):
        for row in connection.execute(query):
            value: Any = format_record_id(row.value) if isinstance(row.value, str) else row.value
            yield _describe(column, row, reason.format(value=value))
    yield from _check_enum_lists(connection)
    yield from _check_json(connection)


def iter_corrupt_files(connection: Connection) -> Iterator[ReleaseFile]:
    """Yield the files of releases that do not match their checksum."""
    for file in releases.list_files(connection):
        digest, number = sha256(), 0
        with suppress(zlib.error):  # The checksum does not match then.
            while chunks := releases.list_chunks(connection, file, number):
                number += len(chunks)
                for chunk in chunks:
                    digest.update(chunk)
        if digest.hexdigest() != file.sha256:
            yield file


def _build_checks(revision: int) -> Iterator[tuple[Column[Any], Select[Any], str]]:
    """Yield columns, each with a query for its invalid values and the reason why these are invalid."""
    for column, referenced in _FOREIGN_KEYS:
        query = _select_column(column).outerjoin(referenced.table, referenced == column)
        yield column, query.where(referenced.is_(None), column.is_not(None)), "{value!r} is missing"
    for column, list_values in _ENUM_COLUMNS:
        yield column, _select_column(column).where(column.not_in(list_values())), "{value!r} does not exist"
    for column in _SEQ_COLUMNS:
        is_outside = (column > revision) | (column < 0)
        yield column, _select_column(column).where(is_outside), "{value} is not in the log"
    is_base = (_change.record == _proposal.record) & (_change.version == _proposal.base_version)
    query = _select_column(_proposal.base_version).outerjoin(change_table, is_base)
    query = query.where(_proposal.base_version.is_not(None), _change.seq.is_(None))
    yield _proposal.base_version, query, "{value} is not a version of its record"
    # Open proposals have no decider, all others have one.
    is_open_and_decided = (_proposal.state == ProposalState.OPEN) == _proposal.decider.is_not(None)
    query = _select_column(_proposal.state).where(is_open_and_decided)
    yield _proposal.state, query, "{value!r} does not match its decider"


def _check_enum_lists(connection: Connection) -> Iterator[str]:
    for column, list_values in _ENUM_LIST_COLUMNS:
        allowed_values = set(list_values())
        for row in connection.execute(_select_column(column)):
            # A name with a vocabulary is that of a collection which may be gone, and no change has it then.
            words = {word for word in row.value.split() if "/" not in word}
            for word in sorted(words - allowed_values):
                yield _describe(column, row, f"has {word!r}")


def _check_json(connection: Connection) -> Iterator[str]:
    for column in _JSON_COLUMNS:
        for row in connection.execute(_select_column(column), execution_options=STREAM_OPTIONS):
            try:
                is_readable = isinstance(orjson.loads(row.value), dict)
            except ValueError:
                is_readable = False
            if not is_readable:
                yield _describe(column, row, "cannot be read")


def _select_column(column: Column[Any]) -> Select[Any]:
    table = column.table
    assert isinstance(table, Table)
    return select(column.label("value"), *table.primary_key.columns).order_by(*table.primary_key.columns)


def _describe(column: Column[Any], row: Row[Any], reason: str) -> str:
    key = " ".join(map(format_record_id, map(str, row[1:])))
    return f"{column.table.name} {key}: {column.name} {reason}"
