"""Reading relations."""

from collections import defaultdict
from collections.abc import Collection as Items
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from lexarium.domain.changes import State
from lexarium.domain.relations import EXACT, RELATIONS, Edge, Related, Side, in_order
from lexarium.store.records import BATCH, STREAMED
from lexarium.store.schema import record, relation

_EDGE = (relation.c.source, relation.c.relation, relation.c.target)


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
    query = select(func.count(relation.c.source.distinct())).join(record, record.c.id == relation.c.source)
    query = query.where(relation.c.target == target, relation.c.source != target, record.c.state == State.PUBLISHED)
    number: int = connection.execute(query).scalar_one()
    return number


def named(connection: Connection, relations: Items[str]) -> Iterator[Edge]:
    """Every edge of these relations."""
    return _edges(connection, relation.c.relation.in_(relations))


def any_there(connection: Connection) -> bool:
    """Whether there is any edge."""
    return connection.execute(select(relation.c.source).limit(1)).first() is not None


def matched(connection: Connection, names: Items[str]) -> dict[str, list[str]]:
    """The records that have an exact match to these (at most `records.BATCH`), by what it is; published ones first."""
    query = select(relation.c.target, record.c.id).join(record, record.c.id == relation.c.source)
    query = query.where(relation.c.target.in_(names), relation.c.relation == EXACT.name)
    query = query.where(record.c.state != State.MERGED).order_by(record.c.state != State.PUBLISHED, record.c.id)
    found: dict[str, list[str]] = defaultdict(list)
    for target, identifier in connection.execute(query):
        found[target].append(identifier)
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
    found: dict[str, list[Related]] = defaultdict(list)
    ends: tuple[tuple[Side, Side], ...] = (("source", "target"), ("target", "source"))
    for near, far in ends:
        for row in connection.execute(_RELATED[near], {"identifiers": list(identifiers)}):
            expected = getattr(RELATIONS[row.relation], far)
            if row.collection is None or row.collection == expected:
                found[row.near].append(Related(row.far, row.name, row.relation, near))
    return {identifier: in_order(others) for identifier, others in found.items()}


def _ends(near: Side, far: Side) -> Select[Any]:
    there = (record.c.id == relation.c[far]) & (record.c.state == State.PUBLISHED)
    return (
        select(relation.c[near].label("near"), relation.c[far].label("far"), relation.c.relation)
        .add_columns(record.c.name, record.c.collection)
        .where(relation.c[near].in_(bindparam("identifiers", expanding=True)))
        .join(record, there, isouter=True)
    )


# Built once: to build a statement costs more than to run it.
_RELATED: dict[Side, Select[Any]] = {"source": _ends("source", "target"), "target": _ends("target", "source")}


def _edges(connection: Connection, condition: ColumnElement[bool]) -> Iterator[Edge]:
    with connection.execute(select(*_EDGE).where(condition), execution_options=STREAMED) as result:
        for row in result:
            yield Edge(row.source, row.relation, row.target)
