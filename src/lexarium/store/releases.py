"""Releases in the store: named states of the catalogue."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from lexarium.store.schema import release
from lexarium.store.transaction import Transaction


@dataclass(frozen=True)
class Release:
    """A state of the catalogue that has a name, and can be cited."""

    name: str
    revision: int
    note: str
    author: str
    made: int


def add(transaction: Transaction, new: Release) -> None:
    """Name a state. The name must not be taken."""
    values = {"name": new.name, "revision": new.revision, "note": new.note, "author": new.author, "made": new.made}
    transaction.connection.execute(insert(release).values(values))


def find(connection: Connection, name: str) -> Release | None:
    """The release of this name, or None."""
    row = connection.execute(select(release).where(release.c.name == name)).one_or_none()
    return None if row is None else Release(row.name, row.revision, row.note, row.author, row.made)


def all_releases(connection: Connection) -> list[Release]:
    """Every release, the newest first."""
    rows = connection.execute(select(release).order_by(release.c.revision.desc(), release.c.made.desc()))
    return [Release(row.name, row.revision, row.note, row.author, row.made) for row in rows]
