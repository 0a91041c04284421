"""The database of one catalogue: where transactions begin and end."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from sqlalchemy import Connection, bindparam, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from lexarium.domain.errors import SettingError, Unavailable
from lexarium.store.backend import Backend, Position, Watch, read_position
from lexarium.store.schema import catalogue
from lexarium.store.sqlite import SqliteBackend
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Result, Work, Writer

_MOVE = update(catalogue).values(revision=bindparam("to"))


class Database:
    """Gives out transactions and tells where the catalogue stands. Nothing connects before the first use."""

    def __init__(self, url: str) -> None:
        self.backend = _backend(url)
        self._watch: Watch | None = None
        self._writer = Writer(self.write)

    @property
    def place(self) -> str:
        """Where it is, as a person may read it."""
        return self.backend.place

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one unchanging state."""
        with self.errors_explained(), self.backend.reading() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction for much to be written: committed when the block ends, undone when it raises."""
        with self.errors_explained(), self.backend.writing() as connection, connection.begin():
            self.backend.lock(connection)
            before = read_position(connection)
            transaction = Transaction(connection, before)
            yield transaction
            after = Position(before.epoch, transaction.revision)
            if after != before:
                connection.execute(_MOVE, {"to": after.revision})
                self.backend.announce(connection)
        self.notice(after)

    def run(self, work: Work[Result]) -> Result:
        """Do a short piece of work in a writing transaction, perhaps together with others that wait.

        Returns its result once it is committed. What the work raises is raised here, and nothing of it is kept.
        """
        return self._writer.run(work)

    def position(self) -> Position:
        """Where the catalogue stands now. To be called from one thread."""
        if self._watch is None:
            with self.errors_explained():
                self._watch = self.backend.watch()
        return self._watch.current()

    def notice(self, position: Position) -> None:
        """Hear of a position that was read or written: never again is an older one told."""
        if self._watch is not None:
            self._watch.advance(position)

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Errors of the driver become errors for people, where they are not faults of ours."""
        try:
            yield
        except PoolTimeout as error:
            raise Unavailable(f"Every connection to the database {self.place} is in use.") from error
        except DBAPIError as error:
            explained = self.backend.explain(error)
            if explained is None:
                raise
            raise explained from error

    def close(self) -> None:
        """Finish what waits to be written, and let go of every connection."""
        self._writer.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self.backend.engine.dispose()


def _backend(url: str) -> Backend:
    if url.startswith(("postgresql://", "postgres://")):
        # Loaded here and not above: its driver takes long to load, and an embedded catalogue has no use for it.
        backend: Backend = import_module("lexarium.store.postgres").PostgresBackend(url)
        return backend
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername != "sqlite":
        # Not the whole of it: it may hold a password.
        scheme = url.partition(":")[0]
        raise SettingError(f"The database address must begin with sqlite:/// or postgresql:// , not with {scheme!r}.")
    return SqliteBackend(parsed)
