"""Queries about whole collections and the levels of a hierarchy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    bindparam,
    exists,
    false,
    func,
    literal,
    select,
    true,
    union_all,
)

from lexarium.domain.cache_tags import record_tag, record_tags
from lexarium.domain.record import RecordState
from lexarium.store.dependencies import add_cache_tags, depend_on
from lexarium.store.records import BATCH_SIZE, IS_PUBLISHED, batched, page_after
from lexarium.store.schema import change_table, label_table, record_table, relation_table

_record, _relation, _change, _label = record_table.c, relation_table.c, change_table.c, label_table.c
_other_record = record_table.alias("other")
_parent_relation, _child_relation = relation_table.alias("up"), relation_table.alias("down")
# Near and far end of the relations to parents and to children.
_UP = _parent_relation.c.source, _parent_relation.c.target
_DOWN = _child_relation.c.target, _child_relation.c.source
_SELECT_NAMES = select(_record.id, _record.name).where(IS_PUBLISHED).order_by(_record.name_key, _record.id)
_SELECT_NAMES_BY_ID = _SELECT_NAMES.where(_record.id.in_(bindparam("ids", expanding=True)))
_COUNT_CHILDREN = (
    select(_relation.target, func.count())
    .join(record_table, _record.id == _relation.source)
    .where(
        _relation.target.in_(bindparam("parents", expanding=True)),
        _relation.relation.in_(bindparam("types", expanding=True)),
        IS_PUBLISHED,
    )
    .group_by(_relation.target)
)
_SELECT_CLASS_IDS = (
    select(_record.id, _change.class_id)
    .join(change_table, (_change.record == _record.id) & (_change.version == _record.version))
    .where(_record.id.in_(bindparam("ids", expanding=True)), IS_PUBLISHED)
)
# Types of relations that are read by one query: engines limit the parts of a union.
_MAX_KINDS = 100


class RecordName(NamedTuple):
    """Id and name of a record."""

    id: str
    name: str


class Neighbor(NamedTuple):
    """Record that is related to another."""

    id: str
    name: str
    collection: str


class TreeNode(NamedTuple):
    """Record in a hierarchy."""

    id: str
    name: str
    # Relation type to the parent; empty for a root.
    type_name: str
    child_count: int


class TreeEdge(NamedTuple):
    """Record below a parent."""

    id: str
    name: str
    parent_id: str
    type_name: str


class RecordGroup(NamedTuple):
    """Record that others belong to, such as a subset, and the number of those."""

    id: str
    name: str
    collection: str
    total: int


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


def find_orphans(
    connection: Connection, collection: str, type_names: Sequence[str], top_types: Sequence[str], limit: int
) -> IdSample:
    """Return the published records without parents and children in these hierarchies that `find_roots` leaves out."""
    has_none = ~_has_relation(_UP, type_names) & ~_has_relation(_DOWN, type_names)
    has_only_unpublished = (
        _is_next_to_unpublished(collection, type_names)
        & ~_has_published(_UP, type_names)
        & ~_has_published(_DOWN, type_names)
    )
    return _sample(connection, collection, (has_none | has_only_unpublished) & ~_is_top(top_types), limit)


def find_roots(
    connection: Connection, collection: str, type_names: Sequence[str], top_types: Sequence[str], limit: int
) -> IdSample:
    """Return the published records without parents in these hierarchies that have children.

    Relations of `top_types` state that a record is at the top even if it has no children.
    """
    is_near_unpublished, is_top = _is_next_to_unpublished(collection, type_names), _is_top(top_types)
    is_root = ~is_near_unpublished & ~_has_relation(_UP, type_names) & (_has_relation(_DOWN, type_names) | is_top)
    is_published_root = (
        is_near_unpublished & ~_has_published(_UP, type_names) & (_has_published(_DOWN, type_names) | is_top)
    )
    return _sample(connection, collection, is_root | is_published_root, limit)


def _is_top(type_names: Sequence[str]) -> ColumnElement[bool]:
    return _has_relation(_UP, type_names) if type_names else false()


def find_tree_nodes(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> list[TreeNode]:
    """Return records (at most BATCH_SIZE ids) as the roots of a hierarchy, by name."""
    with depend_on(record_tags(record_ids)):
        rows = connection.execute(_SELECT_NAMES_BY_ID, {"ids": record_ids}).all()
    child_counts = _count_children(connection, [row.id for row in rows], type_names)
    return [TreeNode(row.id, row.name, "", child_counts.get(row.id, 0)) for row in rows]


def find_children(connection: Connection, parent_id: str, type_names: Sequence[str], limit: int) -> list[TreeNode]:
    """Return the published children of a record by name, among its first `limit` child relations."""
    children = select(_relation.source, _relation.relation).where(
        _relation.target == parent_id, _relation.relation.in_(type_names)
    )
    child = children.limit(limit).subquery().c
    query = _SELECT_NAMES.add_columns(child.relation).where(child.source == _record.id)
    with depend_on([record_tag(parent_id)]):
        rows = {row.id: row for row in connection.execute(query)}
    child_counts = _count_children(connection, list(rows), type_names)
    return [TreeNode(row.id, row.name, row.relation, child_counts.get(row.id, 0)) for row in rows.values()]


def list_edges(connection: Connection, collection: str, type_names: Sequence[str], limit: int) -> list[TreeEdge]:
    """Return the relations of published records of a collection to their parents, by name."""
    query = _SELECT_NAMES.add_columns(_relation.target, _relation.relation)
    query = query.join(relation_table, _relation.source == _record.id)
    query = query.where(_record.collection == collection, _relation.relation.in_(type_names)).limit(limit)
    return [TreeEdge._make(row) for row in connection.execute(query)]


def find_edges_below(
    connection: Connection, parent_ids: Sequence[str], type_names: Sequence[str], limit: int
) -> list[TreeEdge]:
    """Return the relations of published records to these parents (at most BATCH_SIZE), by name."""
    query = _SELECT_NAMES.add_columns(_relation.target, _relation.relation)
    query = query.join(relation_table, _relation.source == _record.id)
    query = query.where(_relation.target.in_(parent_ids), _relation.relation.in_(type_names)).limit(limit)
    return [TreeEdge._make(row) for row in connection.execute(query)]


def find_edges_above(connection: Connection, record_ids: Sequence[str], type_names: Sequence[str]) -> list[TreeEdge]:
    """Return the relations to parents of published records (at most BATCH_SIZE) and of all above them, by name."""
    start = select(_relation.source.label("id")).where(_relation.source.in_(record_ids))
    reached = start.cte("reached", recursive=True)
    upward = relation_table.alias("upward").c
    above = select(upward.target).where(upward.source == reached.c.id, upward.relation.in_(type_names))
    reached = reached.union(above)
    query = _SELECT_NAMES.add_columns(_relation.target, _relation.relation)
    query = query.join(relation_table, _relation.source == _record.id)
    query = query.where(_record.id.in_(select(reached.c.id)), _relation.relation.in_(type_names))
    return [TreeEdge._make(row) for row in connection.execute(query)]


def find_parents(connection: Connection, record_id: str, type_names: Sequence[str]) -> list[RecordName]:
    """Return the published parents of a record by name, at most BATCH_SIZE."""
    query = select(_record.id, _record.name, _record.state).order_by(_record.name_key, _record.id)
    query = query.join(relation_table, _relation.target == _record.id).limit(BATCH_SIZE)
    query = query.where(_relation.source == record_id, _relation.relation.in_(type_names))
    with depend_on([record_tag(record_id)]):
        rows = connection.execute(query).all()
    # Those that are not published too: they may be again.
    add_cache_tags(record_tags(row.id for row in rows))
    return [RecordName(row.id, row.name) for row in rows if row.state == RecordState.PUBLISHED]


_SELECT_COUNTS = union_all(
    *(
        select(_relation.relation, is_source, func.count()).where(end == bindparam("id")).group_by(_relation.relation)
        for end, is_source in ((_relation.source, true()), (_relation.target, false()))
    )
)


def count_relations(connection: Connection, record_id: str) -> dict[tuple[str, bool], int]:
    """Return the number of relations of a record, by type and whether the record is the source."""
    with depend_on([record_tag(record_id)]):
        rows = connection.execute(_SELECT_COUNTS, {"id": record_id}).all()
    return {(name, bool(is_source)): total for name, is_source, total in rows}


def find_neighbors(
    connection: Connection, record_id: str, kinds: Sequence[tuple[str, bool]], limit: int
) -> dict[tuple[str, bool], list[Neighbor]]:
    """Return the published records related to one by name, by type and direction of the first `limit` relations."""
    neighbors: dict[tuple[str, bool], list[Neighbor]] = {kind: [] for kind in kinds}
    for start in range(0, len(kinds), _MAX_KINDS):
        batch = kinds[start : start + _MAX_KINDS]
        parameters = {f"type_{place}": type_name for place, (type_name, _) in enumerate(batch)}
        query = _select_neighbors(tuple(is_source for _, is_source in batch))
        with depend_on([record_tag(record_id)]):
            rows = connection.execute(query, {**parameters, "id": record_id, "limit": limit}).all()
        add_cache_tags(record_tags(row.id for row in rows))
        for *neighbor, place in rows:
            neighbors[batch[place]].append(Neighbor._make(neighbor))
    return neighbors


@lru_cache(maxsize=100)
def _select_neighbors(directions: tuple[bool, ...]) -> Select[Any]:
    """Select the records at the far ends of relations, each of the type `type_N`; the first `limit` of each."""
    parts = []
    for place, is_source in enumerate(directions):
        near, far = (_relation.source, _relation.target) if is_source else (_relation.target, _relation.source)
        ends = select(far.label("far")).where(near == bindparam("id"), _relation.relation == bindparam(f"type_{place}"))
        part = ends.limit(bindparam("limit", type_=Integer)).subquery()
        parts.append(select(literal(place).label("place"), part.c.far))
    all_ends = union_all(*parts).subquery()
    query = _SELECT_NAMES.add_columns(_record.collection, all_ends.c.place)
    return query.join(all_ends, all_ends.c.far == _record.id)


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


@dataclass(frozen=True)
class MemberFilter:
    """Records of a group, or with or without a name in another language than the default one."""

    group_id: str | None = None
    group_types: Sequence[str] = ()
    language: str | None = None
    has_language: bool = True


def list_members(
    connection: Connection, collection: str, member_filter: MemberFilter, after: tuple[str, str] | None, limit: int
) -> list[str]:
    """Return the next ids of the published records of a collection that match a filter, by name."""
    query = select(_record.id).where(_record.collection == collection, IS_PUBLISHED)
    if member_filter.group_id is not None:
        is_member = _relation.target == member_filter.group_id, _relation.relation.in_(member_filter.group_types)
        query = query.where(_record.id.in_(select(_relation.source).where(*is_member)))
    if member_filter.language is not None:
        is_named = exists().where(_label.record == _record.id, _label.language == member_filter.language)
        query = query.where(is_named if member_filter.has_language else ~is_named)
    return list(connection.execute(page_after(query, _record.name_key, _record.id, after).limit(limit)).scalars())


def find_groups(
    connection: Connection, collection: str, type_names: Sequence[str], group_collection: str
) -> list[RecordGroup]:
    """Return the groups that records of a collection belong to, the largest first.

    One that no record describes has no name, and counts as one of `group_collection`.
    """
    members = select(_relation.target, func.count(_relation.source.distinct()).label("total"))
    members = members.join(record_table, _record.id == _relation.source)
    members = members.where(_record.collection == collection, IS_PUBLISHED, _relation.relation.in_(type_names))
    counted = members.group_by(_relation.target).subquery().c
    group = _other_record.c
    name, group_kind = func.coalesce(group.name, ""), func.coalesce(group.collection, group_collection)
    query = select(counted.target, name, group_kind, counted.total)
    query = query.outerjoin(_other_record, group.id == counted.target).order_by(counted.total.desc(), counted.target)
    query = query.where(group.id.is_(None) | (group.state == RecordState.PUBLISHED))
    return [RecordGroup._make(row) for row in connection.execute(query)]


def find_class_ids(connection: Connection, record_ids: Sequence[str]) -> dict[str, str]:
    """Return the classes of published records (at most BATCH_SIZE ids), by record."""
    return dict(connection.execute(_SELECT_CLASS_IDS, {"ids": record_ids}).tuples().all())


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
        with depend_on(record_tags(batch)):
            counts |= dict(connection.execute(_COUNT_CHILDREN, {"parents": batch, "types": type_names}).all())
    return counts
