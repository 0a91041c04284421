"""Reading relations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as Items
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    exists,
    func,
    literal_column,
    null,
    select,
    true,
    tuple_,
    union_all,
)

from lexarium.domain.record import RecordState, RelatedRecord, Relation, sort_related
from lexarium.domain.schema.relation_types import EXACT_MATCH, RELATION_TYPES, Side
from lexarium.store.position import SELECT_POSITION, Position
from lexarium.store.records import BATCH_SIZE, STREAM_OPTIONS, RecordRow
from lexarium.store.schema import catalogue_table, record_table, relation_table

SortKey = tuple[str, str]
"""Where a record stands in its collection: its key and its identifier."""

_COLUMNS = (relation_table.c.source, relation_table.c.relation, relation_table.c.target)
_ID_PARAM: BindParameter[str] = bindparam("identifier")
_POSITION_LENGTH = len(Position._fields)


def find_by_sources(connection: Connection, source_ids: Items[str]) -> dict[str, frozenset[Relation]]:
    """The edges of which these (at most `records.BATCH`) are the source, by source."""
    relations_by_source: dict[str, set[Relation]] = defaultdict(set)
    for relation in _iter_relations(connection, relation_table.c.source.in_(source_ids)):
        relations_by_source[relation.source].add(relation)
    return {source_id: frozenset(relations) for source_id, relations in relations_by_source.items()}


def find_touching(connection: Connection, record_ids: Items[str]) -> set[Relation]:
    """The edges that begin or end at one of these identifiers."""
    relations = set(_iter_relations(connection, relation_table.c.source.in_(record_ids)))
    relations.update(_iter_relations(connection, relation_table.c.target.in_(record_ids)))
    return relations


def count_referrers(connection: Connection, target_id: str) -> int:
    """How many published records, other than itself, are related to this one."""
    count: int = connection.execute(
        select(func.count()).select_from(_select_referrers(target_id).subquery())
    ).scalar_one()
    return count


def list_referrers(connection: Connection, target_id: str, limit: int) -> list[str]:
    """Those records, by name: the first so many."""
    return list(
        connection.execute(
            _select_referrers(target_id).order_by(record_table.c.name_key, record_table.c.id).limit(limit)
        ).scalars()
    )


def _select_referrers(target_id: str) -> Select[Any]:
    source_ids = select(relation_table.c.source).where(
        relation_table.c.target == target_id, relation_table.c.source != target_id
    )
    return select(record_table.c.id).where(
        record_table.c.id.in_(source_ids), record_table.c.state == RecordState.PUBLISHED
    )


def iter_inner_relations(connection: Connection, type_names: Items[str]) -> Iterator[Relation]:
    """The edges of these relations whose source is also the target of one: most records have none below them."""
    child_relation = relation_table.alias()
    has_children = exists().where(
        child_relation.c.target == relation_table.c.source, child_relation.c.relation.in_(type_names)
    )
    return _iter_relations(connection, relation_table.c.relation.in_(type_names) & has_children)


def has_any(connection: Connection) -> bool:
    """Whether there is any edge."""
    return connection.execute(select(relation_table.c.source).limit(1)).first() is not None


class ExactMatch(NamedTuple):
    """A record that is an exact match of something."""

    id: str
    collection: str


def find_exact_matches(connection: Connection, targets: Items[str]) -> dict[str, list[ExactMatch]]:
    """The records that have an exact match to these (at most `records.BATCH`), by what it is; published ones first."""
    query = select(relation_table.c.target, record_table.c.id, record_table.c.collection).join(
        record_table, record_table.c.id == relation_table.c.source
    )
    query = query.where(relation_table.c.target.in_(targets), relation_table.c.relation == EXACT_MATCH.name)
    query = query.where(record_table.c.state != RecordState.MERGED).order_by(
        record_table.c.state != RecordState.PUBLISHED, record_table.c.id
    )
    matches: dict[str, list[ExactMatch]] = defaultdict(list)
    for target, record_id, collection in connection.execute(query):
        matches[target].append(ExactMatch(record_id, collection))
    return matches


def walk_hierarchy(
    connection: Connection, start: str, type_names: Items[str], *, upward: bool, max_depth: int
) -> dict[str, int]:
    """The records reached from one along these relations, each with the least number of steps, at most so many.

    Level by level, each record once: a cycle ends the walk like any other way.
    """
    near, far = (
        (relation_table.c.source, relation_table.c.target)
        if upward
        else (relation_table.c.target, relation_table.c.source)
    )
    reached: dict[str, int] = {}
    level = [start]
    for depth in range(1, max_depth + 1):
        next_ids: set[str] = set()
        for batch in (level[offset : offset + BATCH_SIZE] for offset in range(0, len(level), BATCH_SIZE)):
            query = select(far).where(near.in_(batch), relation_table.c.relation.in_(type_names))
            next_ids.update(connection.execute(query).scalars())
        level = sorted(next_ids - reached.keys())
        if not level:
            break
        reached.update(dict.fromkeys(level, depth))
    return reached


def find_related(connection: Connection, record_ids: Items[str]) -> dict[str, list[RelatedRecord]]:
    """The records at the other ends of these records' relations, by relation, then by name ignoring case, then by id.

    Also those that are not there (yet) or not published: they have no name.
    """
    return _find_related(connection, _RELATED_BY_IDS, {"identifiers": list(record_ids)})


class RecordWithRelated(NamedTuple):
    """A record, and the other ends of its relations."""

    row: RecordRow
    related: list[RelatedRecord]


def find_with_related(connection: Connection, record_id: str) -> tuple[Position, RecordWithRelated | None]:
    """A record, in whatever collection and state, and its `related`; None where there is none. And the position."""
    rows = connection.execute(_SELECT_WITH_POSITION, {"identifier": record_id}).all()
    record_row, ends = None, []
    for row in rows:
        *end, state, version, body = row[_POSITION_LENGTH:]
        if body is not None:
            record_row = RecordRow(record_id, end[-1], state, version, body)
        elif end[0] is not None:
            ends.append(end)
    position = Position._make(rows[0][:_POSITION_LENGTH])
    return position, None if record_row is None else RecordWithRelated(
        record_row, _group_related(ends).get(record_id, [])
    )


def find_related_in_range(
    connection: Connection, collection: str, after: SortKey, last: SortKey
) -> dict[str, list[RelatedRecord]]:
    """The same, of the published records of a collection that come after one in its order, up to another.

    Much faster than by their identifiers, each of which would have to be handed over.
    """
    bounds = {"after_key": after[0], "after_id": after[1], "until_key": last[0], "until_id": last[1]}
    return _find_related(connection, _RELATED_IN_RANGE, {"collection": collection, **bounds})


def _find_related(
    connection: Connection, query: CompoundSelect[Any], values: dict[str, Any]
) -> dict[str, list[RelatedRecord]]:
    return _group_related(connection.execute(query, values).all())


def _group_related(rows: Iterable[Sequence[Any]]) -> dict[str, list[RelatedRecord]]:
    related_by_id: dict[str, list[RelatedRecord]] = defaultdict(list)
    for side, near, far, type_name, name, collection in rows:
        if collection is None or collection == _OTHER_COLLECTION[side][type_name]:
            related_by_id[near].append(RelatedRecord(far, name, type_name, side))
    return {record_id: sort_related(related) for record_id, related in related_by_id.items()}


def _select_ends(near: Side, far: Side) -> Select[Any]:
    is_published = (record_table.c.id == relation_table.c[far]) & (record_table.c.state == RecordState.PUBLISHED)
    side: ColumnElement[str] = literal_column(f"'{near}'")
    columns = relation_table.c[near], relation_table.c[far], relation_table.c.relation
    return select(side, *columns, record_table.c.name, record_table.c.collection).join_from(
        relation_table, record_table, is_published, isouter=True
    )


def _select_by_ids(near: Side, far: Side) -> Select[Any]:
    return _select_ends(near, far).where(relation_table.c[near].in_(bindparam("identifiers", expanding=True)))


def _select_by_range(near: Side, far: Side) -> Select[Any]:
    sort_key = tuple_(_own_record.c.order_key, _own_record.c.id)
    return (
        _select_ends(near, far)
        .join(_own_record, _own_record.c.id == relation_table.c[near])
        .where(_own_record.c.collection == bindparam("collection"), _own_record.c.state == RecordState.PUBLISHED)
        .where(sort_key > tuple_(bindparam("after_key"), bindparam("after_id")))
        .where(sort_key <= tuple_(bindparam("until_key"), bindparam("until_id")))
    )


_own_record = record_table.alias("own")
_BOTH_SIDES: tuple[tuple[Side, Side], ...] = (("source", "target"), ("target", "source"))
_OTHER_COLLECTION: dict[Side, dict[str, str | None]] = {
    "source": {name: relation_type.target_collection for name, relation_type in RELATION_TYPES.items()},
    "target": {name: relation_type.source_collection for name, relation_type in RELATION_TYPES.items()},
}
"""Of which collection the record at the other end is, by the side on which one stands."""


def _union_both_sides(select_ends: Callable[[Side, Side], Select[Any]]) -> CompoundSelect[Any]:
    """One statement: where the database is a server, each is a trip."""
    return union_all(*(select_ends(near, far) for near, far in _BOTH_SIDES))


# Built once: to build a statement costs more than to run it.
_RELATED_BY_IDS = _union_both_sides(_select_by_ids)
_RELATED_IN_RANGE = _union_both_sides(_select_by_range)
_RECORD_AND_RELATED = union_all(
    select(
        *(null().label(name) for name in ("side", "near", "far", "relation", "name")),
        *(record_table.c.collection, record_table.c.state, record_table.c.version, record_table.c.body),
    ).where(record_table.c.id == _ID_PARAM),
    *(
        _select_ends(near, far).add_columns(null(), null(), null()).where(relation_table.c[near] == _ID_PARAM)
        for near, far in _BOTH_SIDES
    ),
).subquery()
_SELECT_WITH_POSITION = SELECT_POSITION.add_columns(*_RECORD_AND_RELATED.c).join_from(
    catalogue_table, _RECORD_AND_RELATED, true(), isouter=True
)
"""At least one row, which tells the position."""


def _iter_relations(connection: Connection, condition: ColumnElement[bool]) -> Iterator[Relation]:
    with connection.execute(select(*_COLUMNS).where(condition), execution_options=STREAM_OPTIONS) as result:
        for row in result:
            yield Relation(row.source, row.relation, row.target)
