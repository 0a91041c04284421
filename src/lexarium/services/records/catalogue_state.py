"""Position and schema version of the catalogue."""

from lexarium.store.engine.position_queries import read_position, remember_position
from lexarium.store.maintenance.upgrade import read_schema_version
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import Position, Snapshot


def get_position(snapshot: Snapshot) -> Position:
    """Return the position that a snapshot sees. It is read once."""
    position = read_position(snapshot)
    remember_position(snapshot, position)
    return position


def get_schema_version(snapshot: Snapshot) -> str | None:
    """Return the schema version of the database, or None if it has none."""
    return read_schema_version(snapshot)


def is_schema_current(snapshot: Snapshot) -> bool:
    """Return whether the database has the schema version of this Lexarium."""
    return read_schema_version(snapshot) == SCHEMA_VERSION
