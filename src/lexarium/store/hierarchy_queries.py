"""Queries about whole collections and the levels of a hierarchy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, exists, false, func, select, true, union_all

from lexarium.domain.record import RecordState
from lexarium.store.records import BATCH_SIZE, IS_PUBLISHED, batched, count_rows, page_after
from lexarium.store.schema import change_table, record_table, relation_table

_record, _relation, _change = record_table.c, relation_table.c, change_table.c
_other_record = record_table.alias("other")
_parent_relation, _child_relation = relation_table.alias("up"), relation_table.alias("down")
# Near and far end of the relations to parents and to children.
_UP = _parent_relation.c.source, _parent_relation.c.target
_DOWN = _child_relation.c.target, _child_relation.c.source
_SELECT_NAMES = select(_record.id, _record.name).where(IS_PUBLISHED).order_by(_record.name_key, _record.id)


class RecordName(NamedTuple):
    """Id and name of a record."""

    id: str
    name: str


class TreeNode(NamedTuple):
    """Record in a hierarchy."""

    id: str
    name: str
    # Relation type to the parent; empty for a root.
    type_name: str
    child_count: int


class IdSample(NamedTuple):
    """First ids of a result, and the total number."""

    ids: tuple[str, ...]
    total: int


def find_duplicate_names(connection: Connection, collections: Sequence[str], limit: int) -> list[RecordName]:
    """Return the published records that share a name within their collection, by name, for at most `limit` names."""
    is_searched = _record.collection.in_(collections)
    key_query = select(_record.collection, _record.name_key).where(is_searched, _record.name_key != "")
    key_query = key_query.group_by(_record.collection, _record.name_key).having(func.count() > 1)
    key_query = key_query.order_by(_record.collection, _record.name_key).limit(limit)
    records_by_key: dict[tuple[str, str], list[RecordName]] = {
        (collection, name_key): [] for collection, name_key in connection.execute(key_query)
    }
    for keys in batched(sorted({name_key for _, name_key in records_by_key})):
        query = _SELECT_NAMES.add_columns(_record.collection, _record.name_key)
        for record_id, name, *key in connection.execute(query.where(is_searched, _record.name_key.in_(keys))):
            records_by_key.get((key[0], key[1]), []).append(RecordName(record_id, name))
    return [record for records in records_by_key.values() if len(records) > 1 for record in records]


def find_orphans(connection: Connection, collection: str, type_names: Sequence[str], limit: int) -> IdSample:
    """Return the published records without parents and children in these hierarchies."""
    has_none = ~_has_relation(_UP, type_names) & ~_has_relation(_DOWN, type_names)
    has_only_unpublished = (
        _is_next_to_unpublished(collection, type_names)
        & ~_has_published(_UP, type_names)
        & ~_has_published(_DOWN, type_names)
    )
    return _sample(connection, collection, has_none | has_only_unpublished, limit)


def find_roots(connection: Connection, collection: str, type_names: Sequence[str], limit: int) -> IdSample:
    """Return the published records that have children but no parents in these hierarchies."""
    is_near_unpublished = _is_next_to_unpublished(collection, type_names)
    is_root = ~is_near_unpublished & ~_has_relation(_UP, type_names) & _has_relation(_DOWN, type_names)
    is_published_root = is_near_unpublished & ~_has_published(_UP, type_names) & _has_published(_DOWN, type_names)
    return _sample(connection, collection, is_root | is_published_root, limit)


def find_tree_nodes(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> list[TreeNode]:
    """Return records (at most BATCH_SIZE ids) as the roots of a hierarchy, by name."""
    rows = connection.execute(_SELECT_NAMES.where(_record.id.in_(record_ids))).all()
    child_counts = _count_children(connection, [row.id for row in rows], type_names)
    return [TreeNode(row.id, row.name, "", child_counts.get(row.id, 0)) for row in rows]


def find_children(connection: Connection, parent_id: str, type_names: Sequence[str], limit: int) -> list[TreeNode]:
    """Return the published children of a record by name, among its first `limit` child relations."""
    children = select(_relation.source, _relation.relation).where(
        _relation.target == parent_id, _relation.relation.in_(type_names)
    )
    child = children.limit(limit).subquery().c
    query = _SELECT_NAMES.add_columns(child.relation).where(child.source == _record.id)
    rows = {row.id: row for row in connection.execute(query)}
    child_counts = _count_children(connection, list(rows), type_names)
    return [TreeNode(row.id, row.name, row.relation, child_counts.get(row.id, 0)) for row in rows.values()]


def find_parents(connection: Connection, record_id: str, type_names: Sequence[str]) -> list[RecordName]:
    """Return the published parents of a record by name, at most BATCH_SIZE."""
    query = _SELECT_NAMES.join(relation_table, _relation.target == _record.id).limit(BATCH_SIZE)
    query = query.where(_relation.source == record_id, _relation.relation.in_(type_names))
    return [RecordName._make(row) for row in connection.execute(query)]


def list_relation_kinds(connection: Connection, record_id: str) -> list[tuple[str, bool]]:
    """Return the types of the relations that a record has, each with whether the record is the source."""
    ends = ((_relation.source, true()), (_relation.target, false()))
    queries = (select(_relation.relation, is_source).where(end == record_id).distinct() for end, is_source in ends)
    return [(name, bool(is_source)) for name, is_source in connection.execute(union_all(*queries))]


def find_neighbors(
    connection: Connection, record_id: str, type_name: str, *, outward: bool, limit: int
) -> tuple[list[RecordName], int]:
    """Return the published records related to one by name, and the number of such relations.

    Only the first `limit` relations are read; the number is exact when there are more.
    """
    near, far = (_relation.source, _relation.target) if outward else (_relation.target, _relation.source)
    end_query = select(far.label("far")).where(near == record_id, _relation.relation == type_name)
    ends = end_query.limit(limit).subquery()
    query = _SELECT_NAMES.join(ends, ends.c.far == _record.id)
    neighbors = [RecordName._make(row) for row in connection.execute(query)]
    total = len(neighbors)
    if len(neighbors) >= limit:
        total = count_rows(connection, end_query.subquery())
    return neighbors, total


def list_ids_by_creation(connection: Connection, collection: str) -> list[str]:
    """Return the ids of all records of a small collection, in any state, the oldest first."""
    query = select(_change.record).where(_change.collection == collection, _change.version == 1)
    return list(connection.execute(query.order_by(_change.seq)).scalars())


def list_ids_in_state(
    connection: Connection, collection: str, state: RecordState, after: tuple[str, str] | None, limit: int
) -> list[str]:
    """Return the next ids of the records of a collection that are in a state, in its order."""
    query = select(_record.id).where(_record.collection == collection, _record.state == state)
    return list(connection.execute(page_after(query, _record.order_key, _record.id, after).limit(limit)).scalars())


def _sample(connection: Connection, collection: str, condition: ColumnElement[bool], limit: int) -> IdSample:
    query: Select[Any] = select(_record.id).where(_record.collection == collection, IS_PUBLISHED, condition)
    ids = connection.execute(query.order_by(_record.order_key, _record.id).limit(limit + 1)).scalars().all()
    total = len(ids) if len(ids) <= limit else connection.execute(query.with_only_columns(func.count())).scalar_one()
    return IdSample(tuple(ids[:limit]), total)


def _has_relation(ends: tuple[Any, Any], type_names: Sequence[str]) -> ColumnElement[bool]:
    """Match records with such a relation, whatever is at its far end. An index alone answers this."""
    near, _ = ends
    return exists().where(near == _record.id, near.table.c.relation.in_(type_names))


def _has_published(ends: tuple[Any, Any], type_names: Sequence[str]) -> ColumnElement[bool]:
    """Match records with such a relation that has a published record at its far end."""
    near, far = ends
    return exists().where(
        near == _record.id,
        near.table.c.relation.in_(type_names),
        _other_record.c.id == far,
        _other_record.c.state == RecordState.PUBLISHED,
    )


def _is_next_to_unpublished(collection: str, type_names: Sequence[str]) -> ColumnElement[bool]:
    """Match records related to an unpublished one. They are few, and only they need the slower `_has_published`."""
    unpublished_ids = select(_other_record.c.id).where(
        _other_record.c.collection == collection,
        _other_record.c.state.in_([state for state in RecordState if state != RecordState.PUBLISHED]),
    )
    children, parents = (
        select(near).where(far.in_(unpublished_ids), _relation.relation.in_(type_names))
        for near, far in ((_relation.source, _relation.target), (_relation.target, _relation.source))
    )
    return _record.id.in_(children.union_all(parents))


def _count_children(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for batch in batched(record_ids):
        query = select(_relation.target, func.count()).join(record_table, _record.id == _relation.source)
        query = query.where(_relation.target.in_(batch), _relation.relation.in_(type_names), IS_PUBLISHED)
        counts |= dict(connection.execute(query.group_by(_relation.target)).all())
    return counts
