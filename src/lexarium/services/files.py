"""Files that belong to a database, and locks between processes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexarium.domain.errors import Conflict
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position


def sidecar_path(database: Database, purpose: str) -> Path:
    """Return a path beside the database file; in the working directory, with the epoch, if there is no such file."""
    file = database.backend.path
    if file is not None:
        return file.with_name(f"{file.name}-{purpose}")
    return Path(f"lexarium-{purpose}-{database.run_read(read_position).epoch}")


@contextmanager
def lock_file(path: Path, message: str) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing; raise Conflict with a message if it is taken.

    The lock ends with its process.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(message) from None
        yield
