"""Queries for the change log: any record and any list at any revision."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Select,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)

from lexarium.domain.cache_tags import CacheTag, record_tag, record_tags
from lexarium.domain.change import Action, Change, ChangeFilter
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import ListQuery, RecordState, parse_labels, parse_record
from lexarium.store import records
from lexarium.store.counts import RecordCounts
from lexarium.store.dependencies import depend_on
from lexarium.store.engine.position_queries import SELECT_POSITION, read_position
from lexarium.store.position import Position
from lexarium.store.records import IS_PUBLISHED, batched, count_rows, page_after
from lexarium.store.schema import catalogue_table, change_table, record_table

_change, _record = change_table.c, record_table.c
_later_change = change_table.alias("later").c
_ACTIONS = {action.value: action for action in Action}
_POSITION_LENGTH = len(Position._fields)
# Matches the last change of a record.
IS_CURRENT_CHANGE = (_change.record == _record.id) & (_change.version == _record.version)

# Sort orders of lists; `order` is that of the collection. Equal records are sorted by id.
SORT_COLUMNS: dict[str, Any] = {
    "name": _change.name_key,
    "id": _change.record,
    "updated": _change.seq,
    "order": _change.order_key,
}


class PageKey(NamedTuple):
    """Sort key and id of the last record of a page."""

    key: str | int
    record_id: str


def find_at(connection: Connection, record_id: str, revision: int) -> Change | None:
    """Return the last change of a record up to a revision, or None."""
    query = select(change_table).where(_change.record == record_id, _change.seq <= revision)
    with depend_on([record_tag(record_id)]):
        return _find_one(connection, query.order_by(_change.version.desc()).limit(1))


def find_current_with_position(connection: Connection, record_id: str) -> tuple[Position, Change | None]:
    """Return the position, and the last change of a record or None, with one statement."""
    with depend_on([record_tag(record_id)]):
        row = connection.execute(_SELECT_CURRENT, {"identifier": record_id}).one()
    position, change_row = Position._make(row[:_POSITION_LENGTH]), row[_POSITION_LENGTH:]
    return position, None if change_row[0] is None else to_change(change_row)


_SELECT_CURRENT = (
    SELECT_POSITION.add_columns(*change_table.c)
    .join_from(catalogue_table, record_table, _record.id == bindparam("identifier"), isouter=True)
    .join(change_table, IS_CURRENT_CHANGE, isouter=True)
)


def find_many_at(connection: Connection, record_ids: Sequence[str], revision: int) -> list[Change]:
    """Return the last change of each record (at most BATCH_SIZE ids) up to a revision."""
    condition = _change.record.in_(record_ids) & (_change.seq <= revision) & ~_is_superseded(revision)
    return _list(connection, select(change_table).where(condition))


def find_changed_ids(connection: Connection, seq: int, limit: int) -> tuple[int, set[str]]:
    """Return the ids of the records of the next changes after a seq, and the seq of the last one.

    After the last change it is the revision, since changes may have been deleted with their vocabulary.
    """
    query = select(_change.seq, _change.record).where(_change.seq > seq).order_by(_change.seq).limit(limit)
    rows = connection.execute(query).all()
    last_seq = rows[-1].seq if len(rows) == limit else read_position(connection).revision
    return last_seq, {row.record for row in rows}


def find_version(connection: Connection, record_id: str, version: int) -> Change | None:
    """Return the change that made a version of a record, or None."""
    query = select(change_table).where(_change.record == record_id, _change.version == version)
    with depend_on([record_tag(record_id)]):
        return _find_one(connection, query)


def find_versions(connection: Connection, keys: Sequence[tuple[str, int]]) -> dict[str, Change]:
    """Return the changes that made these versions, one of each record, by record id."""
    changes: dict[str, Change] = {}
    for batch in batched(keys):
        query = select(change_table).where(tuple_(_change.record, _change.version).in_(batch))
        changes |= {change.record_id: change for change in _list(connection, query)}
    return changes


def find_state_change(connection: Connection, record_id: str, state: RecordState) -> Change:
    """Return the change that brought a record to its state, which may not be its last."""
    other = select(func.max(_change.version)).where(_change.record == record_id, _change.state != state)
    is_since = _change.version > func.coalesce(other.scalar_subquery(), 0)
    query = select(change_table).where(_change.record == record_id, is_since)
    return to_change(connection.execute(query.order_by(_change.version).limit(1)).one())


def list_later_merges(connection: Connection, merge: Change, record_ids: Sequence[str]) -> list[Change]:
    """Return the changes that merges after this one made to these records, in order."""
    changes: list[Change] = []
    for batch in batched(record_ids):
        is_later_merge = (_change.action == Action.MERGE) & (_change.batch > merge.write_id)
        changes += _list(connection, select(change_table).where(_change.record.in_(batch), is_later_merge))
    return sorted(changes, key=lambda change: change.seq)


def list_class_members(connection: Connection, class_id: str) -> list[str]:
    """Return the ids of the records, in any state, that have a class now."""
    return list(connection.execute(_select_class_members(class_id)).scalars())


def count_class_members(connection: Connection, class_id: str) -> int:
    """Return the number of published records that have a class now."""
    return count_rows(connection, _select_class_members(class_id).where(IS_PUBLISHED).subquery())


def _select_class_members(class_id: str) -> Select[Any]:
    return select(_change.record).join(record_table, IS_CURRENT_CHANGE).where(_change.class_id == class_id)


def list_history(connection: Connection, record_id: str, revision: int) -> list[Change]:
    """Return all changes of a record up to a revision, the newest first."""
    query = select(change_table).where(_change.record == record_id, _change.seq <= revision)
    with depend_on([record_tag(record_id)]):
        return _list(connection, query.order_by(_change.version.desc()))


def list_versions(connection: Connection, record_id: str, newest_version: int, limit: int) -> list[Change]:
    """Return up to `limit` versions of a record from one down, the newest first."""
    is_listed = (_change.version <= newest_version) & (_change.version > newest_version - limit)
    query = select(change_table).where(_change.record == record_id, is_listed)
    with depend_on([record_tag(record_id)]):
        return _list(connection, query.order_by(_change.version.desc()))


def list_by_write(connection: Connection, write_id: int) -> list[Change]:
    """Return the changes of one write, in order."""
    return _list(connection, select(change_table).where(_change.batch == write_id).order_by(_change.seq))


def list_since(connection: Connection, seq: int, limit: int, shown: ChangeFilter | None = None) -> list[Change]:
    """Return the next changes after a seq, in order: all, or those of a filter."""
    query = select(change_table).where(_change.seq > seq).order_by(_change.seq).limit(limit)
    if shown is not None:
        query = query.where(_is_shown(shown))
    return _list(connection, query)


def list_latest(connection: Connection, last_seq: int, limit: int, after_seq: int, shown: ChangeFilter) -> list[Change]:
    """Return the last changes of a filter between two sequence numbers, the newest first."""
    is_between = (_change.seq > after_seq) & (_change.seq <= last_seq)
    query = select(change_table).where(is_between, _is_shown(shown))
    return _list(connection, query.order_by(_change.seq.desc()).limit(limit))


def list_changed(
    connection: Connection, collections: Sequence[str], after: int, until: int, limit: int
) -> list[Change]:
    """Return the records of collections that changed after one revision and up to another, each by its last change.

    They are in the order of these changes, so the next ones are those after the last one's sequence number.
    """
    query = _select_changed(collections, after, until).order_by(_change.seq)
    return _list(connection, query.limit(limit))


def count_changed(
    connection: Connection, collections: Sequence[str], since: int, until: int, limit: int
) -> Counter[tuple[bool, bool]] | None:
    """Return the numbers of the same by whether they were published at each revision, or None beyond a limit."""
    before = change_table.alias("before").c
    state_before = select(before.state).where(before.record == _change.record, before.seq <= since)
    state_before = state_before.order_by(before.version.desc()).limit(1)
    query = _select_changed(collections, since, until).limit(limit + 1)
    states = query.with_only_columns(state_before.scalar_subquery(), _change.state)
    rows = connection.execute(states).all()
    if len(rows) > limit:
        return None
    published = RecordState.PUBLISHED
    return Counter((old == published, new == published) for old, new in rows)


def _select_changed(collections: Sequence[str], after: int, until: int) -> Select[Any]:
    is_between = (_change.seq > after) & (_change.seq <= until)
    # Without the index of the collection, which has more records than have changed.
    is_in_collection = (_change.collection + literal("")).in_(collections)
    return select(change_table).where(is_between, is_in_collection, ~_is_superseded(until))


# Changes that are sorted for each write of a list at most.
_MAX_SORTED = 1_000
# A literal as in the partial index: the planner does not match a parameter against it.
_BY_SYSTEM: sa.ColumnClause[str] = literal_column(f"'{SYSTEM_USER_ID}'")


def list_last_of_writes(connection: Connection, last_seq: int, limit: int, shown: ChangeFilter) -> list[Change]:
    """Return the last change of each of the latest writes up to a sequence number, the newest first."""
    has_actor, has_record = shown.actor is not None, shown.record_id is not None
    # The filters of a person and a record have indexes of their own.
    is_narrow = not (has_actor or has_record) and _is_narrow(connection, shown.collections, last_seq // limit)
    query = _select_last_of_writes(bool(shown.head_ids), has_actor, has_record, is_narrow)
    return _list(connection, query, {**shown._asdict(), "last_seq": last_seq, "limit": limit})


def _is_narrow(connection: Connection, collections: Sequence[str], limit: int) -> bool:
    """Return whether collections have at most so many changes, and few enough to sort them for each write."""
    most = min(limit, _MAX_SORTED)
    found = select(_change.collection).where(_change.collection.in_(collections)).limit(most + 1).subquery()
    count: int = connection.execute(select(func.count()).select_from(found)).scalar_one()
    return count <= most


@cache
def _select_last_of_writes(has_heads: bool, has_actor: bool, has_record: bool, is_narrow: bool) -> Select[Any]:
    # With the indexes of both, all changes in scope are sorted for each write. Without them, the whole log is read if
    # there are fewer writes than wanted.
    def is_in(column: Any, values: str) -> ColumnElement[bool]:
        value: ColumnElement[str] = column if is_narrow else column + literal("")
        return value.in_(bindparam(values, expanding=True))

    def is_shown(change: Any) -> ColumnElement[bool]:
        is_in_scope = is_in(change.collection, "collections")
        if has_heads:
            is_in_scope |= is_in(change.record, "head_ids")
        actor, record_id = (
            bindparam("actor", type_=_change.actor.type),
            bindparam("record_id", type_=_change.record.type),
        )
        by_actor = (change.actor == actor, change.actor != _BY_SYSTEM) if has_actor else ()
        return and_(is_in_scope, *by_actor, *((change.record == record_id,) if has_record else ()))

    last_seq, limit = bindparam("last_seq", type_=sa.BigInteger), bindparam("limit", type_=sa.Integer)
    latest = select(_change.seq).where(_change.seq <= last_seq, is_shown(_change)).order_by(_change.seq.desc()).limit(1)
    first = select(_change.seq, _change.batch, literal(1).label("place")).where(_change.seq == latest.scalar_subquery())
    write = first.cte("write", recursive=True)
    earlier = change_table.alias("earlier")
    previous = select(earlier.c.seq).where(earlier.c.seq < write.c.batch, is_shown(earlier.c))
    previous_seq = previous.order_by(earlier.c.seq.desc()).limit(1).correlate(write).scalar_subquery()
    step = select(_change.seq, _change.batch, write.c.place + 1)
    step = step.join_from(write, change_table, _change.seq == previous_seq).where(write.c.place < limit)
    write = write.union_all(step)
    return select(change_table).join(write, write.c.seq == _change.seq).order_by(_change.seq.desc())


def _is_shown(shown: ChangeFilter) -> ColumnElement[bool]:
    is_in_collection = _change.collection.in_(shown.collections)
    is_in_scope = is_in_collection | _change.record.in_(shown.head_ids) if shown.head_ids else is_in_collection
    conditions = []
    if shown.actor is not None:
        conditions += [_change.actor == shown.actor, _change.actor != _BY_SYSTEM]
    if shown.record_id is not None:
        conditions.append(_change.record == shown.record_id)
    return and_(is_in_scope, *conditions)


def find_invalidated_tags(connection: Connection, seq: int, limit: int) -> set[CacheTag] | None:
    """Return the cache tags that changes after a seq invalidated, or None if there are more than `limit` changes."""
    rows = connection.execute(_SELECT_DOCUMENTS, {"seq": seq, "most": limit + 1}).all()
    if len(rows) > limit:
        return None
    tags: set[CacheTag] = set()
    for collection, document, previous_document in rows:
        record = parse_record(collection, document)
        tags |= record.cache_tags
        if previous_document is not None:
            previous = parse_record(collection, previous_document)
            tags.update(record_tags(relation.target for relation in previous.relations - record.relations))
    return tags


_previous_table = change_table.alias("previous")
_is_previous = (_previous_table.c.record == _change.record) & (_previous_table.c.version == _change.version - 1)
_SELECT_DOCUMENTS = (
    select(_change.collection, _change.document, _previous_table.c.document)
    .join(_previous_table, _is_previous, isouter=True)
    .where(_change.seq > bindparam("seq"))
    .limit(bindparam("most", type_=sa.Integer))
)


def list_current(connection: Connection, after: str, limit: int) -> list[Change]:
    """Return the last changes of the next records after an id, in any collection and state, by id."""
    # The bound is on both tables: PostgreSQL may merge-join them, and would start at the first change.
    is_after = (_record.id > after) & (_change.record > after)
    query = select(change_table).join(record_table, IS_CURRENT_CHANGE).where(is_after)
    return _list(connection, query.order_by(_record.id).limit(limit))


class ChangedLabels(NamedTuple):
    """Labels of a record after a change; none if it is not published."""

    seq: int
    record_id: str
    collection: str
    labels: list[str]


def list_changed_labels(connection: Connection, seq: int, revision: int, limit: int) -> list[ChangedLabels]:
    """Return the next records changed after a seq, each by its last change up to a revision."""
    query = select(_change.seq, _change.record, _change.collection, _change.state, _change.document)
    query = query.where(_change.seq > seq, _change.seq <= revision, ~_is_superseded(revision))
    rows = connection.execute(query.order_by(_change.seq).limit(limit))
    return [
        ChangedLabels(
            seq, record_id, collection, parse_labels(collection, document) if state == RecordState.PUBLISHED else []
        )
        for seq, record_id, collection, state, document in rows
    ]


def list_page(connection: Connection, list_query: ListQuery, after: PageKey | None, limit: int) -> list[Change]:
    """Return the next records of a list."""
    key = SORT_COLUMNS[list_query.sort]
    query = _select_as_of(list_query, after)
    if after is not None:
        # A condition of its own, so that an index scan starts there; within the OR it would not.
        is_from, is_after = (
            (key <= after.key, key < after.key) if list_query.descending else (key >= after.key, key > after.key)
        )
        query = query.where(is_from, sa.or_(is_after, _change.record > after.record_id))
    query = query.order_by(key.desc() if list_query.descending else key, _change.record)
    return _list(connection, query.limit(limit))


def count_matching(connection: Connection, list_query: ListQuery, counts: RecordCounts) -> int:
    """Return the number of records in a list."""
    if list_query.state is not None and list_query.is_unfiltered:
        return counts.count_at(connection, list_query.revision)[list_query.collection, list_query.state]
    return count_rows(connection, _select_as_of(replace(list_query, sort="name")).subquery())


class RenderedRow(NamedTuple):
    """Rendered record, with its sort key."""

    key: str
    record_id: str
    body: bytes
    search_hit_length: int


def list_rendered(
    connection: Connection, list_query: ListQuery, after: PageKey | None, limit: int
) -> list[RenderedRow]:
    """Return the next published records of a collection, rendered.

    At the current revision the stored bytes are read, which is much faster.
    """
    if read_position(connection).revision == list_query.revision:
        return _list_current_rendered(connection, list_query.collection, after, limit)
    # The document is the larger part, and needed only for past versions.
    document = sa.case((_record.id.is_(None), _change.document))
    columns = _change.order_key, _change.record, document.label("document"), _record.body, _record.hit_length
    query = _select_as_of(list_query).with_only_columns(*columns).join(record_table, IS_CURRENT_CHANGE, isouter=True)
    query = page_after(query, _change.order_key, _change.record, after).limit(limit)
    rows = []
    row: Any
    for row in connection.execute(query).all():
        key, record_id, past_document, body, search_hit_length = row
        if past_document is not None:
            body, search_hit_length, *_ = parse_record(list_query.collection, past_document).rendered
        rows.append(RenderedRow(key, record_id, body, search_hit_length))
    return rows


def find_search_hits(connection: Connection, record_ids: Sequence[str], revision: int) -> dict[str, bytes]:
    """Return the records (at most BATCH_SIZE ids) that were search hits at a revision, rendered, by id."""
    if read_position(connection).revision == revision:
        return records.find_search_hits(connection, record_ids)
    past_records = (change.to_record() for change in find_many_at(connection, record_ids, revision))
    return {
        record.id: record.rendered.body[: record.rendered.search_hit_length]
        for record in past_records
        if record.state == RecordState.PUBLISHED and record.rendered.search_hit_length
    }


def _list_current_rendered(
    connection: Connection, collection: str, after: PageKey | None, limit: int
) -> list[RenderedRow]:
    query = select(_record.order_key, _record.id, _record.body, _record.hit_length)
    query = query.where(_record.collection == collection, IS_PUBLISHED)
    rows = connection.execute(page_after(query, _record.order_key, _record.id, after).limit(limit))
    return [RenderedRow._make(row) for row in rows.all()]


def _find_one(connection: Connection, query: Select[Any]) -> Change | None:
    row = connection.execute(query).one_or_none()
    return None if row is None else to_change(row)


def _list(connection: Connection, query: Select[Any], parameters: Mapping[str, Any] | None = None) -> list[Change]:
    return [to_change(row) for row in connection.execute(query, parameters).all()]


def to_change(row: Any) -> Change:
    """Convert a row of the change table."""
    # By index, since many rows are read: access by name dominates the time otherwise.
    seq, at, actor, write_id, action, collection, record_id, version = row[:8]
    return Change(seq, at, actor, write_id, _ACTIONS[action], collection, record_id, version, row[-2])


def _select_as_of(list_query: ListQuery, after: PageKey | None = None) -> Select[Any]:
    is_superseded = _is_superseded(list_query.revision)
    if after is not None and list_query.sort == "id":
        # PostgreSQL may merge-join both by id, and would start at the first change.
        is_superseded = is_superseded.where(
            _later_change.record <= after.record_id
            if list_query.descending
            else _later_change.record >= after.record_id
        )
    return select(change_table).where(_change.seq <= list_query.revision, ~is_superseded, *_iter_conditions(list_query))


def _is_superseded(revision: int) -> Exists:
    """Match changes of records that were changed again up to a revision."""
    return sa.exists().where(
        _later_change.record == _change.record,
        _later_change.version == _change.version + 1,
        _later_change.seq <= revision,
    )


def _iter_conditions(list_query: ListQuery) -> Iterator[ColumnElement[bool]]:
    # Avoid the index of the collection when sorting by time, since the log has that order, and for a few ids, since it
    # would read the whole collection.
    avoid_index = list_query.sort == "updated" or list_query.ids is not None
    collection = _change.collection + literal("") if avoid_index else _change.collection
    yield collection == list_query.collection
    if list_query.ids is not None:
        yield _change.record.in_(list_query.ids)
    for name in ("state", "name_key", "class_id", "owner", "flagged"):
        if (value := getattr(list_query, name)) is not None:
            yield _change[name] == value
    if list_query.updated_since is not None:
        yield _change.at >= list_query.updated_since
