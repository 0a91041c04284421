"""Backups: the whole catalogue in one file, taken while others go on writing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lexarium.domain.errors import Conflict, NotACatalogue, NotFound, StoreError
from lexarium.domain.progress import Progress
from lexarium.service.checking import check
from lexarium.store.copying import Copied, copy_all
from lexarium.store.database import Database
from lexarium.store.migrate import migrate, open_database, refuse_none


def backup(database: Database, file: Path, told: Progress) -> Copied:
    """Write the catalogue as it is at one moment, of either engine, to a new file. It is there whole, or not at all.

    Raises `Conflict` where the file is there already: a backup takes the place of nothing.
    """
    if file.exists():
        raise Conflict(f"{file} is there already. Name another file, or remove it first.")
    try:
        with TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as folder:
            part = Path(folder) / file.name
            copied = _copied(database, f"sqlite:///{part}", told)
            part.chmod(0o600)  # it holds what nobody else should read
            _make_durable(part)
            os.link(part, file)  # unlike a rename, this refuses a file that has come to be meanwhile
            _make_durable(file.parent)
    except OSError as error:
        raise StoreError(f"The backup cannot be written to {file}: {error.strerror or error}.") from None
    return copied


@contextmanager
def opened_backup(file: Path) -> Iterator[Database]:
    """What a backup holds, once it is known to be whole. The file itself is not touched, however old it is."""
    if not file.is_file():
        raise NotFound(f"There is no backup at {file}.")
    with TemporaryDirectory(prefix="lexarium-restore-") as folder:
        copy = Path(folder) / "backup.db"
        try:
            shutil.copyfile(file, copy)
        except OSError as error:
            raise StoreError(f"The backup {file} cannot be read: {error.strerror or error}.") from None
        source = Database(f"sqlite:///{copy}")
        try:
            _make_ready(source)
            yield source
        except StoreError as error:
            # Of the copy nobody knows.
            raise type(error)(str(error).replace(str(copy), str(file))) from error
        finally:
            source.close()


def _make_ready(source: Database) -> None:
    try:
        refuse_none(source)
    except NotFound:
        raise NotACatalogue(f"{source.place} is empty, and no backup.") from None
    migrate(source)
    _refuse_problems(source)


def restore(source: Database, database: Database, told: Progress) -> Copied:
    """Put what a backup holds into an empty database, under a new epoch: what clients keep of the old one is void.

    Raises `Conflict` where the database holds anything.
    """
    return copy_all(source, database, told, new_epoch=True)


def _copied(source: Database, url: str, told: Progress) -> Copied:
    target = open_database(url)
    try:
        copied = copy_all(source, target, told)
    finally:
        target.close()
    # What SQLite could not bring into the file when it was closed, for want of room, lies beside it still.
    if Path(f"{target.place}-wal").exists():
        raise StoreError("The backup is not whole: there may be no room for all of it.")
    _check_closed(target.place)
    return copied


def _check_closed(place: str) -> None:
    database = Database(f"sqlite:///{place}")
    try:
        _refuse_problems(database)
    finally:
        database.close()


def _refuse_problems(database: Database) -> None:
    problems = check(database).problems
    if problems:
        raise StoreError(f"{database.place} does not agree with itself: {problems[0]}; {len(problems)} such in all.")


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
