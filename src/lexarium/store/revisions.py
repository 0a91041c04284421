"""Reading the log as the catalogue's past: any record, any list, at any revision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Integer,
    Select,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.change import Action, Change
from lexarium.domain.record import RecordState, parse_labels, parse_record
from lexarium.store import records
from lexarium.store.counts import RecordCounts
from lexarium.store.position import SELECT_POSITION, Position, read_position
from lexarium.store.records import BATCH_SIZE
from lexarium.store.schema import catalogue_table, change_table, record_table

_later_change = change_table.alias("later")
IS_CURRENT_CHANGE = (change_table.c.record == record_table.c.id) & (change_table.c.version == record_table.c.version)
"""Whether a change is the last of a record."""

SORT_COLUMNS: dict[str, Any] = {
    "name": change_table.c.name_key,
    "id": change_table.c.record,
    "updated": change_table.c.seq,
    "order": change_table.c.order_key,
}
"""What a list may be sorted by, last the collection's own order; records that are alike in it come by id."""


@dataclass(frozen=True)
class ListQuery:
    """A list of records as it was at a revision; what is None is not asked."""

    collection: str
    revision: int
    sort: str = "name"
    descending: bool = False
    state: RecordState | None = RecordState.PUBLISHED
    ids: tuple[str, ...] | None = None
    name_key: str | None = None
    class_id: str | None = None
    owner: str | None = None
    flagged: bool | None = None
    updated_since: int | None = None

    @property
    def is_unfiltered(self) -> bool:
        """Whether it holds all records of a collection that are in a state."""
        return replace(self, sort="name", descending=False) == ListQuery(
            self.collection, self.revision, state=self.state
        )


@dataclass(frozen=True)
class PageKey:
    """Where a page ends: the sort key and the id of its last record."""

    key: str | int
    record_id: str


def find_at(connection: Connection, record_id: str, revision: int) -> Change | None:
    """The last change of a record up to a revision."""
    query = select(change_table).where(change_table.c.record == record_id, change_table.c.seq <= revision)
    row = connection.execute(query.order_by(change_table.c.version.desc()).limit(1)).one_or_none()
    return None if row is None else to_change(row)


def find_current_with_position(connection: Connection, record_id: str) -> tuple[Position, Change | None]:
    """The last change of a record, and the position: by one statement."""
    row = connection.execute(_SELECT_CURRENT, {"identifier": record_id}).one()
    position, change_row = Position._make(row[:_POSITION_LENGTH]), row[_POSITION_LENGTH:]
    return position, None if change_row[0] is None else to_change(change_row)


_POSITION_LENGTH = len(Position._fields)
_SELECT_CURRENT = (
    SELECT_POSITION.add_columns(*change_table.c)
    .join_from(catalogue_table, record_table, record_table.c.id == bindparam("identifier"), isouter=True)
    .join(change_table, IS_CURRENT_CHANGE, isouter=True)
)


def find_many_at(connection: Connection, record_ids: Sequence[str], revision: int) -> list[Change]:
    """The last change of each of these (at most BATCH) up to a revision; one that was not there yet is left out."""
    query = select(change_table).where(
        change_table.c.record.in_(record_ids), change_table.c.seq <= revision, ~_is_superseded(revision)
    )
    return [to_change(row) for row in connection.execute(query)]


def find_changed_ids(connection: Connection, seq: int, limit: int) -> tuple[int, set[str]]:
    """The records of the changes after a seq, at most so many, and the seq of the last of these."""
    query = (
        select(change_table.c.seq, change_table.c.record)
        .where(change_table.c.seq > seq)
        .order_by(change_table.c.seq)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    return rows[-1].seq, {row.record for row in rows}


def find_version(connection: Connection, record_id: str, version: int) -> Change | None:
    """A version of a record."""
    query = select(change_table).where(change_table.c.record == record_id, change_table.c.version == version)
    row = connection.execute(query).one_or_none()
    return None if row is None else to_change(row)


def find_versions(connection: Connection, keys: Sequence[tuple[str, int]]) -> dict[str, Change]:
    """These versions of records, one of each, by record."""
    changes: dict[str, Change] = {}
    for start in range(0, len(keys), BATCH_SIZE):
        condition = tuple_(change_table.c.record, change_table.c.version).in_(keys[start : start + BATCH_SIZE])
        changes |= {row.record: to_change(row) for row in connection.execute(select(change_table).where(condition))}
    return changes


def find_state_change(connection: Connection, record_id: str, state: RecordState) -> Change:
    """The change that brought a record to the state it is in: not always its last."""
    other = select(func.max(change_table.c.version)).where(
        change_table.c.record == record_id, change_table.c.state != state
    )
    query = select(change_table).where(
        change_table.c.record == record_id, change_table.c.version > func.coalesce(other.scalar_subquery(), 0)
    )
    return to_change(connection.execute(query.order_by(change_table.c.version).limit(1)).one())


def list_later_merges(connection: Connection, merge: Change, record_ids: Sequence[str]) -> list[Change]:
    """The changes that merges after this one made of these records, in order."""
    changes: list[Change] = []
    for start in range(0, len(record_ids), BATCH_SIZE):
        query = select(change_table).where(change_table.c.record.in_(record_ids[start : start + BATCH_SIZE]))
        query = query.where(change_table.c.action == Action.MERGE, change_table.c.batch > merge.write_id)
        changes += [to_change(row) for row in connection.execute(query)]
    return sorted(changes, key=lambda later_merge: later_merge.seq)


def list_class_members(connection: Connection, class_id: str) -> list[str]:
    """The records, of whatever state, whose class this is now."""
    return list(connection.execute(_SELECT_CLASS_MEMBERS, {"class_id": class_id}).scalars())


def count_class_members(connection: Connection, class_id: str) -> int:
    """How many published records have this class now."""
    query = select(func.count()).select_from(
        _SELECT_CLASS_MEMBERS.where(record_table.c.state == RecordState.PUBLISHED).subquery()
    )
    number: int = connection.execute(query, {"class_id": class_id}).scalar_one()
    return number


_SELECT_CLASS_MEMBERS = (
    select(change_table.c.record)
    .join(record_table, IS_CURRENT_CHANGE)
    .where(change_table.c.class_id == bindparam("class_id"))
)


def list_history(connection: Connection, record_id: str, revision: int) -> list[Change]:
    """Every change of a record up to a revision, the newest first."""
    query = select(change_table).where(change_table.c.record == record_id, change_table.c.seq <= revision)
    return [to_change(row) for row in connection.execute(query.order_by(change_table.c.version.desc()))]


def list_by_write(connection: Connection, write_id: int) -> list[Change]:
    """The changes that one write made, in order."""
    return [
        to_change(row)
        for row in connection.execute(
            select(change_table).where(change_table.c.batch == write_id).order_by(change_table.c.seq)
        )
    ]


def list_since(connection: Connection, seq: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The changes after a seq, in order, at most so many."""
    query = select(change_table).where(change_table.c.seq > seq).order_by(change_table.c.seq).limit(limit)
    if collections:
        query = query.where(change_table.c.collection.in_(collections))
    return [to_change(row) for row in connection.execute(query).all()]


def find_invalidated_tags(connection: Connection, seq: int, limit: int) -> set[CacheTag] | None:
    """The grounds that the changes after a seq have shaken; None where there are more changes than so many."""
    rows = connection.execute(_SELECT_DOCUMENTS, {"seq": seq, "most": limit + 1}).all()
    if len(rows) > limit:
        return None
    return {tag for row in rows for tag in parse_record(row.collection, row.document).cache_tags}


_SELECT_DOCUMENTS = select(change_table.c.collection, change_table.c.document).where(
    change_table.c.seq > bindparam("seq")
)
_SELECT_DOCUMENTS = _SELECT_DOCUMENTS.limit(bindparam("most", type_=Integer))


def list_current(connection: Connection, after: str, limit: int) -> list[Change]:
    """The last change of every record, of whatever collection and state, by id: those after an id, at most so many."""
    # Said of both: PostgreSQL may go through both in order, and would begin with the first change of all.
    is_after = (record_table.c.id > after) & (change_table.c.record > after)
    query = (
        select(change_table)
        .join(record_table, IS_CURRENT_CHANGE)
        .where(is_after)
        .order_by(record_table.c.id)
        .limit(limit)
    )
    return [to_change(row) for row in connection.execute(query)]


class ChangedLabels(NamedTuple):
    """A record as a change left it: what it is called by, nothing where it is not published."""

    seq: int
    record_id: str
    collection: str
    labels: list[str]


def list_changed_labels(connection: Connection, seq: int, revision: int, limit: int) -> list[ChangedLabels]:
    """The records that were changed after a seq, each by its last change up to a revision, at most so many."""
    query = select(
        change_table.c.seq,
        change_table.c.record,
        change_table.c.collection,
        change_table.c.state,
        change_table.c.document,
    )
    query = query.where(change_table.c.seq > seq, change_table.c.seq <= revision, ~_is_superseded(revision))
    return [
        ChangedLabels(seq, record_id, collection, parse_labels(document) if state == RecordState.PUBLISHED else [])
        for seq, record_id, collection, state, document in connection.execute(
            query.order_by(change_table.c.seq).limit(limit)
        )
    ]


def list_page(connection: Connection, list_query: ListQuery, after: PageKey | None, limit: int) -> list[Change]:
    """The next records of a list."""
    key = SORT_COLUMNS[list_query.sort]
    query = _select_as_of(list_query, after)
    if after is not None:
        # The bound stands by itself, so that an index begins there: within an alternative it would be read whole.
        is_from, is_after = (
            (key <= after.key, key < after.key) if list_query.descending else (key >= after.key, key > after.key)
        )
        query = query.where(is_from, or_(is_after, change_table.c.record > after.record_id))
    query = query.order_by(key.desc() if list_query.descending else key, change_table.c.record).limit(limit)
    return [to_change(row) for row in connection.execute(query)]


def count_matching(connection: Connection, list_query: ListQuery, counts: RecordCounts) -> int:
    """How many records a list has."""
    if list_query.state is not None and list_query.is_unfiltered:
        return counts.count_at(connection, list_query.revision)[list_query.collection, list_query.state]
    matching = _select_as_of(replace(list_query, sort="name")).subquery()
    number: int = connection.execute(select(func.count()).select_from(matching)).scalar_one()
    return number


class RenderedRow(NamedTuple):
    """A record as rendered, and its place in its collection."""

    key: str
    record_id: str
    body: bytes
    search_hit_length: int


def list_rendered(
    connection: Connection, list_query: ListQuery, after: PageKey | None, limit: int
) -> list[RenderedRow]:
    """The next published records of a collection, as rendered.

    While nothing has changed since the listing's revision they are read as they are kept, which is much faster.
    """
    if read_position(connection).revision == list_query.revision:
        return _list_current_rendered(connection, list_query.collection, after, limit)
    # The document, which is the larger part, is fetched only where it is needed.
    document = case((record_table.c.id.is_(None), change_table.c.document))
    query = _select_as_of(list_query).with_only_columns(
        change_table.c.order_key,
        change_table.c.record,
        document.label("document"),
        record_table.c.body,
        record_table.c.hit_length,
    )
    query = (
        query.join(record_table, IS_CURRENT_CHANGE, isouter=True)
        .order_by(change_table.c.order_key, change_table.c.record)
        .limit(limit)
    )
    if after is not None:
        query = query.where(
            tuple_(change_table.c.order_key, change_table.c.record)
            > tuple_(literal(after.key), literal(after.record_id))
        )
    rows = []
    for key, record_id, past_document, body, search_hit_length in connection.execute(query).all():
        if past_document is None:
            rows.append(RenderedRow(key, record_id, body, search_hit_length))
        else:
            past_rendered = parse_record(list_query.collection, past_document).rendered
            rows.append(RenderedRow(key, record_id, past_rendered.body, past_rendered.search_hit_length))
    return rows


def find_search_hits(connection: Connection, record_ids: Sequence[str], revision: int) -> dict[str, bytes]:
    """Those of these records (at most BATCH) that were search hits at a revision, as rendered, by identifier."""
    if read_position(connection).revision == revision:
        return records.find_search_hits(connection, record_ids)
    past_records = (entry.to_record() for entry in find_many_at(connection, record_ids, revision))
    published = {record.id: record.rendered for record in past_records if record.state == RecordState.PUBLISHED}
    return {
        entry: rendered.body[: rendered.search_hit_length]
        for entry, rendered in published.items()
        if rendered.search_hit_length
    }


def _list_current_rendered(
    connection: Connection, collection: str, after: PageKey | None, limit: int
) -> list[RenderedRow]:
    query = select(record_table.c.order_key, record_table.c.id, record_table.c.body, record_table.c.hit_length)
    query = query.where(record_table.c.collection == collection, record_table.c.state == RecordState.PUBLISHED)
    query = query.order_by(record_table.c.order_key, record_table.c.id).limit(limit)
    if after is not None:
        query = query.where(
            tuple_(record_table.c.order_key, record_table.c.id) > tuple_(literal(after.key), literal(after.record_id))
        )
    return [RenderedRow._make(row) for row in connection.execute(query).all()]


def to_change(row: Any) -> Change:
    """A row of the log as a change."""
    # By place, since many are read: to find a column by its name takes longer than all else.
    seq, at, actor, write_id, action, collection, record_id, version = row[:8]
    return Change(seq, at, actor, write_id, _ACTIONS[action], collection, record_id, version, row[-1])


_ACTIONS = {action.value: action for action in Action}


def _select_as_of(list_query: ListQuery, after: PageKey | None = None) -> Select[Any]:
    is_superseded = _is_superseded(list_query.revision)
    if after is not None and list_query.sort == "id":
        # PostgreSQL goes through both by id, side by side, and would begin with the first of all.
        is_superseded = is_superseded.where(
            _later_change.c.record <= after.record_id
            if list_query.descending
            else _later_change.c.record >= after.record_id
        )
    return select(change_table).where(
        change_table.c.seq <= list_query.revision, ~is_superseded, *_iter_conditions(list_query)
    )


def _is_superseded(revision: int) -> Exists:
    """Whether the record of a change was changed again, up to a revision."""
    return exists().where(
        _later_change.c.record == change_table.c.record,
        _later_change.c.version == change_table.c.version + 1,
        _later_change.c.seq <= revision,
    )


def _iter_conditions(list_query: ListQuery) -> Iterator[ColumnElement[bool]]:
    # Not by an index of the collection where the newest come first, or last: the log is in that order already. Nor
    # where a few records are asked for: all of the collection would be gone through.
    avoid_index = list_query.sort == "updated" or list_query.ids is not None
    collection = change_table.c.collection + literal("") if avoid_index else change_table.c.collection
    yield collection == list_query.collection
    if list_query.ids is not None:
        yield change_table.c.record.in_(list_query.ids)
    for column, value in (
        (change_table.c.state, list_query.state),
        (change_table.c.name_key, list_query.name_key),
        (change_table.c.class_id, list_query.class_id),
        (change_table.c.owner, list_query.owner),
        (change_table.c.flagged, list_query.flagged),
    ):
        if value is not None:
            yield column == value
    if list_query.updated_since is not None:
        yield change_table.c.at >= list_query.updated_since
