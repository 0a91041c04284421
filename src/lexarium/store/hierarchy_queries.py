"""Questions about a whole collection, and the levels of a hierarchy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Integer, Select, bindparam, exists, func, or_, select

from lexarium.domain.record import RecordState
from lexarium.store.records import BATCH_SIZE
from lexarium.store.schema import change_table, record_table, relation_table

_parent_relation, _child_relation = relation_table.alias("up"), relation_table.alias("down")
_other_record, _child_record = record_table.alias("other"), record_table.alias("child")
_UNPUBLISHED_STATES = tuple(state for state in RecordState if state != RecordState.PUBLISHED)


class RecordName(NamedTuple):
    """A record by its name."""

    id: str
    name: str


class TreeNode(NamedTuple):
    """A record within a hierarchy."""

    id: str
    name: str
    type_name: str
    """How it stands to what is above it; nothing at the top."""
    child_count: int
    """How many records stand right below it."""


class IdSample(NamedTuple):
    """Some of the records that something holds of, and how many there are."""

    ids: tuple[str, ...]
    total: int


def find_duplicate_names(connection: Connection, collection: str, limit: int) -> list[RecordName]:
    """The published records that share their name with another of their collection, by name; of so many names."""
    key_query = select(record_table.c.name_key).where(record_table.c.collection == collection)
    key_query = (
        key_query.group_by(record_table.c.name_key)
        .having(func.count() > 1)
        .order_by(record_table.c.name_key)
        .limit(limit)
    )
    records_by_key: dict[str, list[RecordName]] = {}
    keys = list(connection.execute(key_query).scalars())
    for start in range(0, len(keys), BATCH_SIZE):
        query = select(record_table.c.id, record_table.c.name, record_table.c.name_key).where(
            record_table.c.collection == collection,
            record_table.c.state == RecordState.PUBLISHED,
            record_table.c.name_key.in_(keys[start : start + BATCH_SIZE]),
        )
        for record_id, name, name_key in connection.execute(query.order_by(record_table.c.name_key, record_table.c.id)):
            records_by_key.setdefault(name_key, []).append(RecordName(record_id, name))
    return [record for records in records_by_key.values() if len(records) > 1 for record in records]


def find_orphans(connection: Connection, collection: str, type_names: Sequence[str], limit: int) -> IdSample:
    """The published records that stand nowhere in these hierarchies, in order: the first so many, and how many."""
    is_near_unpublished = _is_next_to_unpublished(collection, type_names)
    has_none = ~_has_relation(_parent_relation.c.source, _parent_relation, type_names) & ~_has_relation(
        _child_relation.c.target, _child_relation, type_names
    )
    has_only_unpublished = is_near_unpublished & ~_has_published(
        _parent_relation.c.source, _parent_relation, _parent_relation.c.target, type_names
    )
    has_only_unpublished &= ~_has_published(
        _child_relation.c.target, _child_relation, _child_relation.c.source, type_names
    )
    return _sample(connection, _select_published(collection).where(has_none | has_only_unpublished), limit)


def find_roots(connection: Connection, collection: str, type_names: Sequence[str], limit: int) -> IdSample:
    """The published records that have others below them in these hierarchies and none above; likewise."""
    is_near_unpublished = _is_next_to_unpublished(collection, type_names)
    is_root = (
        ~is_near_unpublished
        & ~_has_relation(_parent_relation.c.source, _parent_relation, type_names)
        & _has_relation(_child_relation.c.target, _child_relation, type_names)
    )
    is_published_root = is_near_unpublished & ~_has_published(
        _parent_relation.c.source, _parent_relation, _parent_relation.c.target, type_names
    )
    is_published_root &= _has_published(_child_relation.c.target, _child_relation, _child_relation.c.source, type_names)
    return _sample(connection, _select_published(collection).where(is_root | is_published_root), limit)


def _sample(connection: Connection, query: Select[Any], limit: int) -> IdSample:
    ids = (
        connection.execute(query.order_by(record_table.c.order_key, record_table.c.id).limit(limit + 1)).scalars().all()
    )
    total = len(ids) if len(ids) <= limit else connection.execute(query.with_only_columns(func.count())).scalar_one()
    return IdSample(tuple(ids[:limit]), total)


def find_tree_nodes(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> list[TreeNode]:
    """These records (at most BATCH) as the top of a hierarchy, by name."""
    query = select(record_table.c.id, record_table.c.name).where(
        record_table.c.id.in_(record_ids), record_table.c.state == RecordState.PUBLISHED
    )
    rows = connection.execute(query.order_by(record_table.c.name_key, record_table.c.id)).all()
    child_counts = _count_children(connection, [row.id for row in rows], type_names)
    return [TreeNode(row.id, row.name, "", child_counts.get(row.id, 0)) for row in rows]


def find_children(connection: Connection, parent_id: str, type_names: Sequence[str], limit: int) -> list[TreeNode]:
    """The published records right below one, by name: of the first so many."""
    child_query = select(relation_table.c.source, relation_table.c.relation).where(
        relation_table.c.target == parent_id, relation_table.c.relation.in_(type_names)
    )
    child_relation = child_query.limit(limit).subquery()
    query = select(record_table.c.id, record_table.c.name, child_relation.c.relation).join(
        child_relation, child_relation.c.source == record_table.c.id
    )
    query = query.where(record_table.c.state == RecordState.PUBLISHED).order_by(
        record_table.c.name_key, record_table.c.id
    )
    rows = {row.id: row for row in connection.execute(query)}
    child_counts = _count_children(connection, list(rows), type_names)
    return [TreeNode(row.id, row.name, row.relation, child_counts.get(row.id, 0)) for row in rows.values()]


def find_parents(connection: Connection, record_id: str, type_names: Sequence[str]) -> list[RecordName]:
    """The published records right above one, by name: a few."""
    query = select(record_table.c.id, record_table.c.name).join(
        relation_table, relation_table.c.target == record_table.c.id
    )
    query = query.where(relation_table.c.source == record_id, relation_table.c.relation.in_(type_names))
    query = (
        query.where(record_table.c.state == RecordState.PUBLISHED)
        .order_by(record_table.c.name_key, record_table.c.id)
        .limit(BATCH_SIZE)
    )
    return [RecordName(row.id, row.name) for row in connection.execute(query)]


class Neighbor(NamedTuple):
    """A record at the other end of a relation."""

    id: str
    name: str


def find_neighbors(
    connection: Connection, record_id: str, type_name: str, *, outward: bool, limit: int
) -> tuple[list[Neighbor], int]:
    """The published records at the other end of a relation, by name: of the first so many; and how many ends it has."""
    near, far = (
        (relation_table.c.source, relation_table.c.target)
        if outward
        else (relation_table.c.target, relation_table.c.source)
    )
    end_query = select(far.label("far")).where(near == record_id, relation_table.c.relation == type_name)
    ends = end_query.limit(limit).subquery()
    query = select(record_table.c.id, record_table.c.name).join(ends, ends.c.far == record_table.c.id)
    query = query.where(record_table.c.state == RecordState.PUBLISHED).order_by(
        record_table.c.name_key, record_table.c.id
    )
    neighbors = [Neighbor(row.id, row.name) for row in connection.execute(query)]
    total = len(neighbors)
    if len(neighbors) >= limit:
        total = connection.execute(select(func.count()).select_from(end_query.subquery())).scalar_one()
    return neighbors, total


class LoggedDocument(NamedTuple):
    """A change, as far as it is counted."""

    seq: int
    record_id: str
    version: int
    collection: str
    document: bytes


_SELECT_DOCUMENTS = select(
    change_table.c.seq,
    change_table.c.record,
    change_table.c.version,
    change_table.c.collection,
    change_table.c.document,
)
_SELECT_DOCUMENTS = _SELECT_DOCUMENTS.where(
    change_table.c.seq > bindparam("seq"), change_table.c.seq <= bindparam("revision")
)
_SELECT_DOCUMENTS = _SELECT_DOCUMENTS.order_by(change_table.c.seq).limit(bindparam("most", type_=Integer))


def list_documents_since(connection: Connection, seq: int, revision: int, limit: int) -> list[LoggedDocument]:
    """The changes after a seq and up to a revision, in order, at most so many: less of each than `versions` reads."""
    rows = connection.execute(_SELECT_DOCUMENTS, {"seq": seq, "revision": revision, "most": limit})
    return [LoggedDocument._make(row) for row in rows.all()]


def list_ids_by_creation(connection: Connection, collection: str) -> list[str]:
    """The records of a small collection, whatever their state, in the order in which they came."""
    query = select(change_table.c.record).where(change_table.c.collection == collection, change_table.c.version == 1)
    return list(connection.execute(query.order_by(change_table.c.seq)).scalars())


def list_ids_in_state(
    connection: Connection, collection: str, state: RecordState, after: tuple[str, str] | None, limit: int
) -> list[str]:
    """The next records of a collection that are in a state, in the collection's order."""
    query = select(record_table.c.id).where(record_table.c.collection == collection, record_table.c.state == state)
    if after is not None:
        key, record_id = after
        query = query.where(
            record_table.c.order_key >= key, or_(record_table.c.order_key > key, record_table.c.id > record_id)
        )
    return list(connection.execute(query.order_by(record_table.c.order_key, record_table.c.id).limit(limit)).scalars())


def _select_published(collection: str) -> Select[Any]:
    return select(record_table.c.id).where(
        record_table.c.collection == collection, record_table.c.state == RecordState.PUBLISHED
    )


def _has_relation(near: ColumnElement[str], relation_alias: Any, type_names: Sequence[str]) -> ColumnElement[bool]:
    """Whether a record has an edge of these, whatever stands at its other end: told by an index alone."""
    return exists().where(near == record_table.c.id, relation_alias.c.relation.in_(type_names))


def _has_published(
    near: ColumnElement[str], relation_alias: Any, far: ColumnElement[str], type_names: Sequence[str]
) -> ColumnElement[bool]:
    """Whether a record has an edge of these with a published record at its other end."""
    return exists().where(
        near == record_table.c.id,
        relation_alias.c.relation.in_(type_names),
        _other_record.c.id == far,
        _other_record.c.state == RecordState.PUBLISHED,
    )


def _is_next_to_unpublished(collection: str, type_names: Sequence[str]) -> ColumnElement[bool]:
    """Whether a record has an edge to one that is gone: few have, and only they need a closer look."""
    unpublished_ids = select(_other_record.c.id).where(
        _other_record.c.collection == collection, _other_record.c.state.in_(_UNPUBLISHED_STATES)
    )
    children = select(relation_table.c.source).where(
        relation_table.c.target.in_(unpublished_ids), relation_table.c.relation.in_(type_names)
    )
    parents = select(relation_table.c.target).where(
        relation_table.c.source.in_(unpublished_ids), relation_table.c.relation.in_(type_names)
    )
    return record_table.c.id.in_(children.union_all(parents))


def _count_children(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        query = select(relation_table.c.target, func.count()).join(
            _child_record, _child_record.c.id == relation_table.c.source
        )
        query = query.where(
            relation_table.c.target.in_(record_ids[start : start + BATCH_SIZE]),
            relation_table.c.relation.in_(type_names),
            _child_record.c.state == RecordState.PUBLISHED,
        )
        counts |= dict(connection.execute(query.group_by(relation_table.c.target)).all())
    return counts
