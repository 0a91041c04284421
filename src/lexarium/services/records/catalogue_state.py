"""Position and schema version of the catalogue."""

from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import read_schema_version
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import Position, Snapshot


def get_position(snapshot: Snapshot) -> Position:
    """Return the position that a snapshot sees."""
    return read_position(snapshot)


def get_schema_version(snapshot: Snapshot) -> str | None:
    """Return the schema version of the database, or None if it has none."""
    return read_schema_version(snapshot)


def is_schema_current(snapshot: Snapshot) -> bool:
    """Return whether the database has the schema version of this Lexarium."""
    return read_schema_version(snapshot) == SCHEMA_VERSION
