"""Queries for releases."""

from typing import Any

from sqlalchemy import Connection, insert, select

from lexarium.domain.release import Release
from lexarium.store.schema import release_table
from lexarium.store.transaction import Transaction


def add(transaction: Transaction, release: Release) -> None:
    """Add a release. Its name must be free."""
    # In the order of the columns.
    values = (release.name, release.revision, release.note, release.author, release.created_at)
    transaction.execute(insert(release_table).values(values))


def find(connection: Connection, name: str) -> Release | None:
    """Return the release with a name, or None."""
    row = connection.execute(select(release_table).where(release_table.c.name == name)).one_or_none()
    return None if row is None else _to_release(row)


def list_all(connection: Connection) -> list[Release]:
    """Return all releases, the newest first."""
    query = select(release_table).order_by(release_table.c.revision.desc(), release_table.c.made.desc())
    return [_to_release(row) for row in connection.execute(query)]


def _to_release(row: Any) -> Release:
    return Release(row.name, row.revision, row.note, row.author, row.made)
