"""What imports told of records where people have made something else of them: what the next import is compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select

from lexarium.domain.changes import Change
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.store.records import BATCH
from lexarium.store.schema import change, upstream
from lexarium.store.versions import change_of

BROUGHT = "version"
"""Among what was told: which version an import brought that others, elsewhere, had made."""


def untaken(connection: Connection, identifiers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What imports told of these (at most BATCH) and was not taken, by record and field."""
    rows = connection.execute(select(upstream).where(upstream.c.record.in_(identifiers)))
    return {row.record: orjson.loads(row.untaken) for row in rows}


def any_untaken(connection: Connection) -> bool:
    """Whether there is any such record."""
    return connection.execute(select(upstream.c.record).limit(1)).first() is not None


def last_imported(connection: Connection, identifiers: Sequence[str]) -> dict[str, Change]:
    """The last change that an import made of each of these; one that none ever touched is left out."""
    found: dict[str, Change] = {}
    for start in range(0, len(identifiers), BATCH):
        some = identifiers[start : start + BATCH]
        last = select(change.c.record, func.max(change.c.version).label("version"))
        last = last.where(change.c.record.in_(some), change.c.actor == SYSTEM_USER).group_by(change.c.record)
        those = last.subquery()
        query = select(change).join(those, (those.c.record == change.c.record) & (those.c.version == change.c.version))
        found |= {row.record: change_of(row) for row in connection.execute(query)}
    return found


def remember(connection: Connection, told: Mapping[str, Mapping[str, Any]]) -> None:
    """Set what was told of each of these and was not taken; a record of which all was taken has no row."""
    if not told:
        return
    connection.execute(delete(upstream).where(upstream.c.record.in_(list(told))))
    rows = [{"record": identifier, "untaken": orjson.dumps(values)} for identifier, values in told.items() if values]
    if rows:
        connection.execute(insert(upstream), rows)
