"""Backups: the whole catalogue in one file, taken while others go on writing."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from lexarium.domain.errors import Conflict, NoRoom, NotACatalogue, NotFound, StoreError
from lexarium.domain.progress import Progress
from lexarium.service.checking import check
from lexarium.store.copying import Copied, copy_all
from lexarium.store.database import Database
from lexarium.store.migrate import migrate, open_database, refuse_none
from lexarium.store.sqlite import address_of

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
"""What file systems say that know one name a file."""


def backup(database: Database, file: Path, told: Progress) -> Copied:
    """Write the catalogue as it is at one moment, of either engine, to a new file. It is there whole, or not at all.

    Raises `Conflict` where the file is there already: a backup takes the place of nothing.
    """
    if file.exists():
        raise Conflict(f"{file} is there already. Name another file, or remove it first.")
    return _written(database, file, told)


@contextmanager
def opened_backup(file: Path) -> Iterator[Database]:
    """What a backup holds, once it is known to be whole. The file itself is not touched, however old it is."""
    if not file.is_file():
        raise NotFound(f"There is no backup at {file}.")
    with _copied_backup(file) as copy:
        source = Database(address_of(copy))
        try:
            with _named(copy, file):
                try:
                    _make_ready(source)
                except NoRoom:
                    raise _no_room_to_copy(file) from None
                yield source
        finally:
            source.close()


@contextmanager
def _copied_backup(file: Path) -> Iterator[Path]:
    """A copy of a backup, in a temporary folder: to be opened, a file must be writable."""
    with ExitStack() as ending:
        try:
            folder = ending.enter_context(TemporaryDirectory(prefix="lexarium-restore-"))
            copy = Path(shutil.copyfile(file, Path(folder) / "backup.db"))
        except OSError as error:
            if error.errno in _FULL:
                raise _no_room_to_copy(file) from None
            raise StoreError(f"The backup {file} cannot be read: {error.strerror or error}.") from None
        yield copy


def _no_room_to_copy(file: Path) -> NoRoom:
    return NoRoom(
        f"There is no room in {gettempdir()} for a copy of {file}, which is needed to restore it: nothing was"
        " changed. The variable TMPDIR names another folder."
    )


@contextmanager
def _workplace(file: Path) -> Iterator[Path]:
    """A folder beside the file to make it in. What was left by a process that was killed at it is removed."""
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
            raise Conflict(f"Another backup or restore to {file} is under way.") from None
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

    A file is made where there is none, or an empty one, and is there whole or not at all. A database that is there has
    the present schema. Raises `Conflict` where there is anything in it.
    """
    file = database.backend.file
    if file is not None and not database.backend.exists():
        return _written(source, file, told, new_epoch=True)
    return copy_all(source, database, told, new_epoch=True)


def _written(source: Database, file: Path, told: Progress, *, new_epoch: bool = False) -> Copied:
    """Write all that a database holds to a file that is not there, or empty; a link is followed to what it names."""
    file = file.resolve()
    empty = file.exists()
    for journal in (Path(f"{file}-wal"), Path(f"{file}-journal")):
        if journal.exists():
            # SQLite would take it for the new file's own.
            raise Conflict(f"{journal} is there still, of a database that is not. Move it away first.")
    try:
        with _workplace(file) as folder:
            part = folder / file.name
            with _named(part, file):
                copied = _copied(source, address_of(part), told, new_epoch=new_epoch)
            part.chmod(0o600)  # it holds what nobody else should read
            _make_durable(part)
            if empty:
                part.replace(file)
            else:
                _name(part, file)
            Path(f"{file}-damaged").unlink(missing_ok=True)  # the mark of a database that was here before
            _make_durable(file.parent)
    except OSError as error:
        kind = NoRoom if error.errno in _FULL else StoreError
        raise kind(f"{file} cannot be written: {error.strerror or error}.") from None
    return copied


def _copied(source: Database, url: str, told: Progress, *, new_epoch: bool) -> Copied:
    target = open_database(url)
    try:
        copied = copy_all(source, target, told, new_epoch=new_epoch)
    finally:
        target.close()
    # What SQLite could not bring into the file when it was closed, for want of room, lies beside it still.
    if Path(f"{target.place}-wal").exists():
        raise StoreError(f"{target.place} is not whole: there may be no room for all of it.")
    _check_closed(target.place, source.place)
    return copied


def _check_closed(place: str, source: str) -> None:
    database = Database(address_of(Path(place)))
    try:
        # Every row is what was sent: what is wrong with them is wrong in the source.
        _refuse_problems(database, source)
    finally:
        database.close()


def _refuse_problems(database: Database, blamed: str) -> None:
    problems = check(database).problems
    if problems:
        raise StoreError(f"{blamed} does not agree with itself: {problems[0]}; {len(problems)} such in all.")


def _name(part: Path, file: Path) -> None:
    """Give what is finished its name. A file that has come to be there meanwhile is refused, as a rename would not."""
    try:
        os.link(part, file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        file.touch(mode=0o600, exist_ok=False)
        part.replace(file)


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
