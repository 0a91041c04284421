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

from lexarium.domain.changes import State
from lexarium.domain.relations import EXACT, RELATIONS, Edge, Related, Side, in_order
from lexarium.store.backend import POSITION, Position
from lexarium.store.records import BATCH, STREAMED, Stored
from lexarium.store.schema import catalogue, record, relation

Stop = tuple[str, str]
"""Where a record stands in its collection: its key and its identifier."""

_EDGE = (relation.c.source, relation.c.relation, relation.c.target)
_THIS: BindParameter[str] = bindparam("identifier")
_POSITION = len(Position._fields)


def of_sources(connection: Connection, sources: Items[str]) -> dict[str, frozenset[Edge]]:
    """The edges of which these (at most `records.BATCH`) are the source, by source."""
    found: dict[str, set[Edge]] = defaultdict(set)
    for edge in _edges(connection, relation.c.source.in_(sources)):
        found[edge.source].add(edge)
    return {source: frozenset(several) for source, several in found.items()}


def touching(connection: Connection, identifiers: Items[str]) -> set[Edge]:
    """The edges that begin or end at one of these identifiers."""
    edges = set(_edges(connection, relation.c.source.in_(identifiers)))
    edges.update(_edges(connection, relation.c.target.in_(identifiers)))
    return edges


def count_sources(connection: Connection, target: str) -> int:
    """How many published records, other than itself, are related to this one."""
    number: int = connection.execute(select(func.count()).select_from(_sources(target).subquery())).scalar_one()
    return number


def first_sources(connection: Connection, target: str, most: int) -> list[str]:
    """Those records, by name: the first so many."""
    return list(connection.execute(_sources(target).order_by(record.c.name_key, record.c.id).limit(most)).scalars())


def _sources(target: str) -> Select[Any]:
    near = select(relation.c.source).where(relation.c.target == target, relation.c.source != target)
    return select(record.c.id).where(record.c.id.in_(near), record.c.state == State.PUBLISHED)


def inner(connection: Connection, names: Items[str]) -> Iterator[Edge]:
    """The edges of these relations whose source is also the target of one: most records have none below them."""
    below = relation.alias()
    has_below = exists().where(below.c.target == relation.c.source, below.c.relation.in_(names))
    return _edges(connection, relation.c.relation.in_(names) & has_below)


def any_there(connection: Connection) -> bool:
    """Whether there is any edge."""
    return connection.execute(select(relation.c.source).limit(1)).first() is not None


class Match(NamedTuple):
    """A record that is an exact match of something."""

    id: str
    collection: str


def matched(connection: Connection, names: Items[str]) -> dict[str, list[Match]]:
    """The records that have an exact match to these (at most `records.BATCH`), by what it is; published ones first."""
    query = select(relation.c.target, record.c.id, record.c.collection).join(record, record.c.id == relation.c.source)
    query = query.where(relation.c.target.in_(names), relation.c.relation == EXACT.name)
    query = query.where(record.c.state != State.MERGED).order_by(record.c.state != State.PUBLISHED, record.c.id)
    found: dict[str, list[Match]] = defaultdict(list)
    for target, identifier, collection in connection.execute(query):
        found[target].append(Match(identifier, collection))
    return found


def walk(connection: Connection, start: str, relations: Items[str], *, upward: bool, deepest: int) -> dict[str, int]:
    """The records reached from one along these relations, each with the least number of steps, at most so many.

    Level by level, each record once: a cycle ends the walk like any other way.
    """
    near, far = (relation.c.source, relation.c.target) if upward else (relation.c.target, relation.c.source)
    reached: dict[str, int] = {}
    level = [start]
    for depth in range(1, deepest + 1):
        found: set[str] = set()
        for batch in (level[at : at + BATCH] for at in range(0, len(level), BATCH)):
            query = select(far).where(near.in_(batch), relation.c.relation.in_(relations))
            found.update(connection.execute(query).scalars())
        level = sorted(found - reached.keys())
        if not level:
            break
        reached.update(dict.fromkeys(level, depth))
    return reached


def related(connection: Connection, identifiers: Items[str]) -> dict[str, list[Related]]:
    """The records at the other ends of these records' relations, by relation, then by name ignoring case, then by id.

    Also those that are not there (yet) or not published: they have no name.
    """
    return _related(connection, _OF_THESE, {"identifiers": list(identifiers)})


class Whereabouts(NamedTuple):
    """A record, and the other ends of its relations."""

    stored: Stored
    related: list[Related]


def with_related(connection: Connection, identifier: str) -> tuple[Position, Whereabouts | None]:
    """A record, in whatever collection and state, and its `related`; None where there is none. And the position."""
    rows = connection.execute(_WITH_RELATED, {"identifier": identifier}).all()
    stored, ends = None, []
    for row in rows:
        *end, state, version, body = row[_POSITION:]
        if body is not None:
            stored = Stored(identifier, end[-1], state, version, body)
        elif end[0] is not None:
            ends.append(end)
    position = Position._make(rows[0][:_POSITION])
    return position, None if stored is None else Whereabouts(stored, _gathered(ends).get(identifier, []))


def related_between(connection: Connection, collection: str, after: Stop, until: Stop) -> dict[str, list[Related]]:
    """The same, of the published records of a collection that come after one in its order, up to another.

    Much faster than by their identifiers, each of which would have to be handed over.
    """
    ends = {"after_key": after[0], "after_id": after[1], "until_key": until[0], "until_id": until[1]}
    return _related(connection, _OF_THOSE_BETWEEN, {"collection": collection, **ends})


def _related(connection: Connection, query: CompoundSelect[Any], values: dict[str, Any]) -> dict[str, list[Related]]:
    return _gathered(connection.execute(query, values).all())


def _gathered(rows: Iterable[Sequence[Any]]) -> dict[str, list[Related]]:
    found: dict[str, list[Related]] = defaultdict(list)
    for side, near, far, relation_name, name, collection in rows:
        if collection is None or collection == _EXPECTED[side][relation_name]:
            found[near].append(Related(far, name, relation_name, side))
    return {identifier: in_order(others) for identifier, others in found.items()}


def _ends(near: Side, far: Side) -> Select[Any]:
    there = (record.c.id == relation.c[far]) & (record.c.state == State.PUBLISHED)
    side: ColumnElement[str] = literal_column(f"'{near}'")
    edge = relation.c[near], relation.c[far], relation.c.relation
    return select(side, *edge, record.c.name, record.c.collection).join_from(relation, record, there, isouter=True)


def _of_these(near: Side, far: Side) -> Select[Any]:
    return _ends(near, far).where(relation.c[near].in_(bindparam("identifiers", expanding=True)))


def _of_those_between(near: Side, far: Side) -> Select[Any]:
    place = tuple_(_own.c.order_key, _own.c.id)
    return (
        _ends(near, far)
        .join(_own, _own.c.id == relation.c[near])
        .where(_own.c.collection == bindparam("collection"), _own.c.state == State.PUBLISHED)
        .where(place > tuple_(bindparam("after_key"), bindparam("after_id")))
        .where(place <= tuple_(bindparam("until_key"), bindparam("until_id")))
    )


_own = record.alias("own")
_BOTH_SIDES: tuple[tuple[Side, Side], ...] = (("source", "target"), ("target", "source"))
_EXPECTED: dict[Side, dict[str, str | None]] = {
    "source": {name: each.target for name, each in RELATIONS.items()},
    "target": {name: each.source for name, each in RELATIONS.items()},
}
"""Of which collection the record at the other end is, by the side on which one stands."""


def _from_both_sides(select_ends: Callable[[Side, Side], Select[Any]]) -> CompoundSelect[Any]:
    """One statement: where the database is a server, each is a trip."""
    return union_all(*(select_ends(near, far) for near, far in _BOTH_SIDES))


# Built once: to build a statement costs more than to run it.
_OF_THESE = _from_both_sides(_of_these)
_OF_THOSE_BETWEEN = _from_both_sides(_of_those_between)
_THIS_RELATED = union_all(
    select(
        *(null().label(name) for name in ("side", "near", "far", "relation", "name")),
        *(record.c.collection, record.c.state, record.c.version, record.c.body),
    ).where(record.c.id == _THIS),
    *(
        _ends(near, far).add_columns(null(), null(), null()).where(relation.c[near] == _THIS)
        for near, far in _BOTH_SIDES
    ),
).subquery()
_WITH_RELATED = POSITION.add_columns(*_THIS_RELATED.c).join_from(catalogue, _THIS_RELATED, true(), isouter=True)
"""At least one row, which tells the position."""


def _edges(connection: Connection, condition: ColumnElement[bool]) -> Iterator[Edge]:
    with connection.execute(select(*_EDGE).where(condition), execution_options=STREAMED) as result:
        for row in result:
            yield Edge(row.source, row.relation, row.target)
