"""Releases in the store: named states of the catalogue."""

from sqlalchemy import Connection, insert, select

from lexarium.domain.release import Release
from lexarium.store.schema import release_table
from lexarium.store.transaction import Transaction


def add(transaction: Transaction, release: Release) -> None:
    """Name a state. The name must not be taken."""
    values = {
        "name": release.name,
        "revision": release.revision,
        "note": release.note,
        "author": release.author,
        "made": release.created_at,
    }
    transaction.connection.execute(insert(release_table).values(values))


def find(connection: Connection, name: str) -> Release | None:
    """The release of this name, or None."""
    row = connection.execute(select(release_table).where(release_table.c.name == name)).one_or_none()
    return None if row is None else Release(row.name, row.revision, row.note, row.author, row.made)


def list_all(connection: Connection) -> list[Release]:
    """Every release, the newest first."""
    rows = connection.execute(
        select(release_table).order_by(release_table.c.revision.desc(), release_table.c.made.desc())
    )
    return [Release(row.name, row.revision, row.note, row.author, row.made) for row in rows]
