"""Queries of record pages. Each is one statement, so that a page runs few, however much it shows."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Integer, Select, String, bindparam, exists, literal_column, select, union_all

from lexarium.domain.cache_tags import (
    UNLOGGED_TAG,
    CacheTag,
    alternative_id_tag,
    collection_tag,
    name_tag,
    record_tag,
    record_tags,
)
from lexarium.domain.change import Change
from lexarium.domain.record import RecordState
from lexarium.domain.text.characters import name_key
from lexarium.store.dependencies import add_cache_tags, depend_on
from lexarium.store.engine.position_queries import SELECT_POSITION
from lexarium.store.position import Position
from lexarium.store.records import IS_PUBLISHED
from lexarium.store.revisions import IS_CURRENT_CHANGE, to_change
from lexarium.store.schema import (
    account_table,
    alternative_id_table,
    catalogue_table,
    change_table,
    record_table,
    relation_table,
)

_record, _relation, _change = record_table.c, relation_table.c, change_table.c
_alternative, _account = alternative_id_table.c, account_table.c
_child_relation, _child = relation_table.alias("down"), record_table.alias("child")
_POSITION_LENGTH = len(Position._fields)
# Names sent in one statement.
_BATCH_SIZE = 5_000
_MAX_EDGES = 1_000
_NAMES_KEPT = 12

MentionKind = Literal["id", "alternative", "account", "name"]


class RecordMention(NamedTuple):
    """Record or account that a page mentions, and the id or name by which it was found."""

    kind: MentionKind
    key: str
    id: str
    name: str
    # Of a record.
    collection: str
    is_published: bool
    # Class of a record that was found by its name.
    class_id: str


class Edge(NamedTuple):
    """Relation between a record and a published one."""

    near: str
    type_name: str
    is_outgoing: bool
    far: str
    far_name: str
    far_collection: str


class ParentEdge(NamedTuple):
    """Relation to a published parent."""

    child: str
    parent: str
    type_name: str
    parent_name: str


class LevelNode(NamedTuple):
    """Child in a hierarchy."""

    id: str
    name: str
    type_name: str
    has_children: bool


_SELECT_VERSIONS = (
    SELECT_POSITION.add_columns(*change_table.c)
    .join_from(catalogue_table, record_table, _record.id.in_(bindparam("ids", expanding=True)), isouter=True)
    .join(
        change_table,
        (_change.record == _record.id)
        & (_change.version > _record.version - bindparam("count", type_=_record.version.type)),
        isouter=True,
    )
    .order_by(_change.version.desc())
)


def find_last_versions(
    connection: Connection, record_ids: Sequence[str], count: int
) -> tuple[Position, dict[str, list[Change]]]:
    """Return the position, and the last versions of records by id, the newest first."""
    with depend_on(record_tags(record_ids)):
        rows = connection.execute(_SELECT_VERSIONS, {"ids": list(record_ids), "count": count}).all()
    versions: dict[str, list[Change]] = {}
    for row in rows:
        change_row = row[_POSITION_LENGTH:]
        if change_row[0] is not None:
            change = to_change(change_row)
            versions.setdefault(change.record_id, []).append(change)
    return Position._make(rows[0][:_POSITION_LENGTH]), versions


def _select_mentions(kind: MentionKind, key: Any) -> Select[Any]:
    return select(
        literal_column(f"'{kind}'", String).label("kind"),
        key.label("key"),
        _record.id,
        _record.name,
        _record.collection,
        _record.state,
        literal_column("''", String).label("class_id"),
    )


_NAMESAKES = (
    _select_mentions("name", _record.name_key)
    .with_only_columns(
        literal_column("'name'", String).label("kind"),
        _record.name_key.label("key"),
        _record.id,
        _record.name,
        _record.collection,
        _record.state,
        _change.class_id,
    )
    .join(change_table, IS_CURRENT_CHANGE)
    .where(
        _record.collection.in_(bindparam("collections", expanding=True)),
        _record.name_key == bindparam("name_key"),
        IS_PUBLISHED,
    )
    .limit(_NAMES_KEPT)
    .subquery()
)
_SELECT_MENTIONS = union_all(
    _select_mentions("id", _record.id).where(_record.id.in_(bindparam("ids", expanding=True))),
    _select_mentions("alternative", _alternative.name)
    .join(alternative_id_table, _alternative.record == _record.id)
    .where(_alternative.name.in_(bindparam("alternative_ids", expanding=True))),
    select(
        literal_column("'account'", String),
        _account.id,
        _account.id,
        _account.name,
        *(literal_column("''", String) for _ in range(3)),
    ).where(_account.id.in_(bindparam("account_ids", expanding=True))),
    select(*_NAMESAKES.c),
)


def find_mentions(  # noqa: PLR0913, PLR0917 (all that one statement looks up)
    connection: Connection,
    record_ids: Sequence[str],
    alternative_ids: Sequence[str] = (),
    account_ids: Sequence[str] = (),
    name: str = "",
    collections: Sequence[str] = (),
) -> list[RecordMention]:
    """Return the records in any state that have these ids or alternative ids, accounts, and records of a name.

    Of records of collections that have a name, only some are returned.
    """
    starts = range(0, max(len(record_ids), len(alternative_ids), 1), _BATCH_SIZE)
    mentions = []
    for start in starts:
        end = start + _BATCH_SIZE
        parameters = {
            "ids": record_ids[start:end],
            "alternative_ids": alternative_ids[start:end],
            "account_ids": account_ids if start == 0 else (),
            "collections": collections if start == 0 and name else (),
            "name_key": name_key(name),
        }
        with depend_on(_list_mention_tags(parameters)):
            rows = connection.execute(_SELECT_MENTIONS, parameters).all()
        add_cache_tags(record_tags(row.id for row in rows))
        for kind, key, found_id, found_name, collection, state, class_id in rows:
            is_published = state == RecordState.PUBLISHED
            mentions.append(RecordMention(kind, key, found_id, found_name, collection, is_published, class_id))
    return mentions


def _list_mention_tags(parameters: Mapping[str, Any]) -> Iterator[CacheTag]:
    yield from record_tags(parameters["ids"])
    yield from map(alternative_id_tag, parameters["alternative_ids"])
    yield from (name_tag(collection, parameters["name_key"]) for collection in parameters["collections"])
    if parameters["account_ids"]:
        yield UNLOGGED_TAG


def _select_edges(near: Any, far: Any, is_outgoing: str, types: str) -> Select[Any]:
    return (
        select(near, _relation.relation, literal_column(is_outgoing), _record.id, _record.name, _record.collection)
        .join(record_table, (_record.id == far) & IS_PUBLISHED)
        .where(
            near.in_(bindparam("ids", expanding=True)),
            _relation.relation.in_(bindparam(types, expanding=True)),
        )
    )


_SELECT_EDGES = union_all(
    _select_edges(_relation.source, _relation.target, "1", "outgoing"),
    _select_edges(_relation.target, _relation.source, "0", "incoming"),
).limit(_MAX_EDGES)


def find_edges(
    connection: Connection, record_ids: Sequence[str], outgoing_types: Sequence[str], incoming_types: Sequence[str]
) -> list[Edge]:
    """Return the relations of records to published ones, of these types in each direction; of very many, some."""
    parameters = {"ids": record_ids, "outgoing": outgoing_types, "incoming": incoming_types}
    with depend_on(record_tags(record_ids)):
        rows = connection.execute(_SELECT_EDGES, parameters).all()
    add_cache_tags(record_tags(row.id for row in rows))
    return [Edge(near, type_name, bool(is_outgoing), *far) for near, type_name, is_outgoing, *far in rows]


def _select_ancestor_edges() -> Select[Any]:
    columns = _relation.source, _relation.target, _relation.relation
    is_of_type = _relation.relation.in_(bindparam("types", expanding=True))
    first = select(*columns).where(_relation.source == bindparam("id"), is_of_type)
    above = first.cte("above", recursive=True)
    # A union, not `union_all`: relations may form a cycle.
    above = above.union(select(*columns).join(above, above.c.target == _relation.source).where(is_of_type))
    query = select(*above.c, _record.name, _record.state).join(record_table, _record.id == above.c.target)
    return query.limit(_MAX_EDGES)


_SELECT_ANCESTOR_EDGES = _select_ancestor_edges()


def find_ancestor_edges(connection: Connection, record_id: str, type_names: Sequence[str]) -> list[ParentEdge]:
    """Return the relations of a record and its ancestors to their published parents; of very many, some."""
    with depend_on([record_tag(record_id)]):
        rows = connection.execute(_SELECT_ANCESTOR_EDGES, {"id": record_id, "types": type_names}).all()
    # Those of ancestors that are not published too: they may be again.
    add_cache_tags(record_tags(chain.from_iterable(row[:2] for row in rows)))
    return [ParentEdge._make(edge) for *edge, state in rows if state == RecordState.PUBLISHED]


@cache
def _select_levels(parent_count: int) -> Select[Any]:
    types: Any = bindparam("types", expanding=True)
    parts = [
        select(_relation.target, _relation.source, _relation.relation)
        .where(_relation.target == bindparam(f"parent_{place}"), _relation.relation.in_(types))
        .limit(bindparam("limit", type_=Integer))
        .subquery()
        for place in range(parent_count)
    ]
    ends = union_all(*(select(*part.c) for part in parts)).subquery().c
    has_children = exists().where(
        _child_relation.c.target == _record.id,
        _child_relation.c.relation.in_(types),
        _child.c.id == _child_relation.c.source,
        _child.c.state == RecordState.PUBLISHED,
    )
    query = select(ends.target, _record.id, _record.name, ends.relation, has_children)
    return query.where(_record.id == ends.source, IS_PUBLISHED).order_by(_record.name_key, _record.id)


def find_levels(
    connection: Connection, parent_ids: Sequence[str], type_names: Sequence[str], limit: int
) -> dict[str, list[LevelNode]]:
    """Return the published children of records by name, among the first `limit` child relations of each."""
    parameters = {f"parent_{place}": parent_id for place, parent_id in enumerate(parent_ids)}
    levels: dict[str, dict[str, LevelNode]] = {parent_id: {} for parent_id in parent_ids}
    with depend_on(record_tags(parent_ids)):
        rows = connection.execute(
            _select_levels(len(parent_ids)), {**parameters, "types": type_names, "limit": limit}
        ).all()
    add_cache_tags(record_tags(row.id for row in rows))
    for parent_id, child_id, name, type_name, has_any in rows:
        levels[parent_id].setdefault(child_id, LevelNode(child_id, name, type_name, bool(has_any)))
    return {parent_id: list(level.values()) for parent_id, level in levels.items()}


def list_members(
    connection: Connection, collections: Sequence[str], class_id: str, limit: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the ids and names of the first published records of a class by name, by collection."""
    parts = [
        select(_record.collection, _record.id, _record.name, _record.name_key)
        .join(change_table, IS_CURRENT_CHANGE)
        .where(_change.collection == collection, _change.class_id == class_id, IS_PUBLISHED)
        .order_by(_change.name_key, _change.record)
        .limit(limit)
        .subquery()
        for collection in collections
    ]
    members: dict[str, list[tuple[str, str]]] = {}
    ordered = union_all(*(select(*part.c) for part in parts)).order_by("collection", "name_key", "id")
    with depend_on(map(collection_tag, collections)):
        rows = connection.execute(ordered).all()
    for collection, record_id, name, _ in rows:
        members.setdefault(collection, []).append((record_id, name))
    return members
