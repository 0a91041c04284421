"""Backups: the whole catalogue in one file, taken while others go on writing."""

import fcntl
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
        with _workplace(file) as folder:
            part = folder / file.name
            with _named(part, file):
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
            with _named(copy, file):
                _make_ready(source)
                yield source
        finally:
            source.close()


@contextmanager
def _workplace(file: Path) -> Iterator[Path]:
    """A folder beside the file to make it in. What a backup to the same file has left that was killed is removed."""
    folder = file.parent / f".{file.name}-unfinished"
    if folder.exists():
        with _held(folder, file):
            shutil.rmtree(folder)
    folder.mkdir(0o700)
    try:
        with _held(folder, file):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path, file: Path) -> Iterator[None]:
    """Hold a folder for as long as this process lasts: one that nobody holds was left behind."""
    with (folder / "held").open("w") as sign:
        try:
            fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Another backup to {file} is under way.") from None
        yield


@contextmanager
def _named(hidden: Path, file: Path) -> Iterator[None]:
    """Have errors name the file that a person knows: of the hidden one nobody does."""
    try:
        yield
    except StoreError as error:
        raise type(error)(str(error).replace(str(hidden), str(file))) from error


def _make_ready(source: Database) -> None:
    try:
        refuse_none(source)
    except NotFound:
        raise NotACatalogue(f"{source.place} is empty, and no backup.") from None
    migrate(source)
    _refuse_problems(source, source.place)


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
        raise StoreError(f"The backup {target.place} is not whole: there may be no room for all of it.")
    _check_closed(target.place, source.place)
    return copied


def _check_closed(place: str, source: str) -> None:
    database = Database(f"sqlite:///{place}")
    try:
        # Every row is what was sent: what is wrong with them is wrong in the source.
        _refuse_problems(database, source)
    finally:
        database.close()


def _refuse_problems(database: Database, blamed: str) -> None:
    problems = check(database).problems
    if problems:
        raise StoreError(f"{blamed} does not agree with itself: {problems[0]}; {len(problems)} such in all.")


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
