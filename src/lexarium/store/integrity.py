"""Questions about the database that only a check asks."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from lexarium.domain.relations import MAPPINGS
from lexarium.domain.rendering import Rendering
from lexarium.store.records import BATCH, Stored, stored_of
from lexarium.store.schema import change, record, relation


@dataclass(frozen=True)
class Extent:
    """How much of a log there is."""

    count: int
    last: int


def log_extent(connection: Connection) -> Extent:
    """The number of changes and the last seq."""
    row = connection.execute(select(func.count(), func.max(change.c.seq))).one()
    return Extent(row[0], row[1] or 0)


def all_records(connection: Connection) -> Iterator[list[tuple[Stored, Rendering, str]]]:
    """Every record with what the store keeps of its rendering and name, by id, some at a time."""
    last = ""
    while True:
        query = select(record).where(record.c.id > last).order_by(record.c.id).limit(BATCH)
        rows = connection.execute(query).all()
        if not rows:
            return
        yield [
            (stored_of(row), Rendering(row.body, row.hit_length, row.order_key, row.name_key), row.name) for row in rows
        ]
        last = rows[-1].id


def only_in_log(connection: Connection) -> list[str]:
    """The ids that the log knows and the catalogue does not."""
    gone = select(change.c.record).distinct().outerjoin(record, record.c.id == change.c.record)
    return list(connection.execute(gone.where(record.c.id.is_(None)).order_by(change.c.record)).scalars())


def dangling(connection: Connection) -> int:
    """How many relations name a record that is not there."""
    source, target = record.alias(), record.alias()
    query = (
        select(func.count())
        .select_from(relation)
        .outerjoin(source, source.c.id == relation.c.source)
        .outerjoin(target, target.c.id == relation.c.target)
        .where(source.c.id.is_(None) | target.c.id.is_(None))
        .where(relation.c.relation.not_in([mapping.name for mapping in MAPPINGS]))
    )
    number: int = connection.execute(query).scalar_one()
    return number
