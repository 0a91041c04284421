"""Questions about the database that only a check asks."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from lexarium.domain.changes import Change
from lexarium.domain.relations import MAPPINGS
from lexarium.domain.rendering import Rendering
from lexarium.store.log import change_row
from lexarium.store.records import BATCH, STREAMED, Stored, stored_of
from lexarium.store.schema import change, record, relation
from lexarium.store.versions import change_of


@dataclass(frozen=True)
class Extent:
    """How much of a log there is."""

    count: int
    last: int


def log_extent(connection: Connection) -> Extent:
    """The number of changes and the last seq."""
    row = connection.execute(select(func.count(), func.max(change.c.seq))).one()
    return Extent(row[0], row[1] or 0)


def misfiled(connection: Connection) -> Iterator[Change]:
    """The changes that cannot be read, were altered, or stand under something else than they say."""
    for row in connection.execute(select(change).order_by(change.c.seq), execution_options=STREAMED):
        made = change_of(row)
        try:
            right = change_row(made, made.whole()) == row._asdict()
        except (ValueError, KeyError, TypeError, AttributeError):
            right = False
        if not right:
            yield made


def lacking_versions(connection: Connection) -> list[str]:
    """The records of which the log lacks a version before the last."""
    counted = select(change.c.record).group_by(change.c.record).having(func.count() != func.max(change.c.version))
    return list(connection.execute(counted.order_by(change.c.record)).scalars())


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
