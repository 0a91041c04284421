"""A transaction that writes."""

from sqlalchemy import Connection

from lexarium.store.backend import Position


class Transaction:
    """A writing transaction: it holds the catalogue's one lock until it ends."""

    def __init__(self, connection: Connection, position: Position) -> None:
        self.connection = connection
        self.revision = position.revision
        """The last seq given out; whoever adds changes to the log counts it up."""
        self.batch = self.revision + 1
        """The first seq of the present write: what its changes have in common."""
