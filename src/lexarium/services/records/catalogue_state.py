"""Position and schema version of the catalogue."""

from lexarium.store.engine.catalogue import read_position
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import Snapshot
from lexarium.store.upgrade import read_schema_version

get_position = read_position
get_schema_version = read_schema_version


def is_schema_current(snapshot: Snapshot) -> bool:
    """Return whether the database has the schema version of this Lexarium."""
    return read_schema_version(snapshot) == SCHEMA_VERSION
