"""Backups: the whole catalogue in one file, taken while others go on writing."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from lexarium.domain.errors import Conflict, DiskFull, InvalidDatabase, NotFound, StoreError
from lexarium.domain.progress import ProgressCallback
from lexarium.services.maintenance.database_check import CheckReport, check_database
from lexarium.store.copy import CopyResult, copy_tables
from lexarium.store.database import Database
from lexarium.store.engine.sqlite import build_url
from lexarium.store.upgrade import open_database, require_catalogue, upgrade_schema

_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_NO_HARD_LINK_ERRNOS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
"""What file systems say that know one name a file."""


def create_backup(database: Database, file: Path, progress: ProgressCallback) -> CopyResult:
    """Write the catalogue as it is at one moment, of either engine, to a new file. It is there whole, or not at all.

    Raises `Conflict` where the file is there already: a backup takes the place of nothing.
    """
    if file.exists():
        raise Conflict(f"{file} is there already. Name another file, or remove it first.")
    return _write_file(database, file, progress)


@contextmanager
def open_backup(file: Path) -> Iterator[Database]:
    """What a backup holds, once it is known to be whole. The file itself is not touched, however old it is."""
    if not file.is_file():
        raise NotFound(f"There is no backup at {file}.")
    with _temporary_copy(file) as copy:
        source = Database(build_url(copy))
        try:
            with _translate_paths(copy, file):
                try:
                    _prepare(source)
                except DiskFull:
                    raise _build_no_room_error(file) from None
                yield source
        finally:
            source.close()


@contextmanager
def _temporary_copy(file: Path) -> Iterator[Path]:
    """A copy of a backup, in a temporary folder: to be opened, a file must be writable."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryDirectory(prefix="lexarium-restore-"))
            copy = Path(shutil.copyfile(file, Path(folder) / "backup.db"))
        except OSError as error:
            if error.errno in _DISK_FULL_ERRNOS:
                raise _build_no_room_error(file) from None
            raise StoreError(f"The backup {file} cannot be read: {error.strerror or error}.") from None
        yield copy


def _build_no_room_error(file: Path) -> DiskFull:
    return DiskFull(
        f"There is no room in {gettempdir()} for a copy of {file}, which is needed to restore it: nothing was"
        " changed. The variable TMPDIR names another folder."
    )


@contextmanager
def _staging_directory(file: Path) -> Iterator[Path]:
    """A folder beside the file to make it in. What was left by a process that was killed at it is removed."""
    folder = file.parent / f".{file.name}-unfinished"
    if folder.exists():
        with _locked(folder, file):
            shutil.rmtree(folder)
    folder.mkdir(0o700)
    try:
        with _locked(folder, file):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, file: Path) -> Iterator[None]:
    """Hold a folder for as long as this process lasts: one that nobody holds was left behind."""
    with (folder / "held").open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Another backup or restore to {file} is under way.") from None
        yield


@contextmanager
def _translate_paths(temporary: Path, file: Path) -> Iterator[None]:
    """Have errors name the file that a person knows: of the hidden one nobody does."""
    try:
        yield
    except StoreError as error:
        raise type(error)(str(error).replace(str(temporary), str(file))) from error


def _prepare(source: Database) -> None:
    try:
        require_catalogue(source)
    except NotFound:
        raise InvalidDatabase(f"{source.location} is empty, and no backup.") from None
    upgrade_schema(source)
    _require_consistent(source, source.location)


def restore_backup(source: Database, database: Database, progress: ProgressCallback) -> CopyResult:
    """Put what a backup holds into an empty database, under a new epoch: what clients keep of the old one is void.

    A file is made where there is none, or an empty one, and is there whole or not at all. A database that is there has
    the present schema. Raises `Conflict` where there is anything in it.
    """
    file = database.backend.path
    if file is not None and not database.backend.exists():
        return _write_file(source, file, progress, new_epoch=True)
    return copy_tables(source, database, progress, new_epoch=True)


def _write_file(source: Database, file: Path, progress: ProgressCallback, *, new_epoch: bool = False) -> CopyResult:
    """Write all that a database holds to a file that is not there, or empty; a link is followed to what it names."""
    file = file.resolve()
    replaces_empty = file.exists()
    for journal in (Path(f"{file}-wal"), Path(f"{file}-journal")):
        if journal.exists():
            # SQLite would take it for the new file's own.
            raise Conflict(f"{journal} is there still, of a database that is not. Move it away first.")
    try:
        with _staging_directory(file) as folder:
            temporary = folder / file.name
            with _translate_paths(temporary, file):
                result = _copy_to_file(source, build_url(temporary), progress, new_epoch=new_epoch)
            temporary.chmod(0o600)  # it holds what nobody else should read
            _fsync(temporary)
            if replaces_empty:
                temporary.replace(file)
            else:
                _publish_file(temporary, file)
            Path(f"{file}-damaged").unlink(missing_ok=True)  # the mark of a database that was here before
            _fsync(file.parent)
    except OSError as error:
        error_class = DiskFull if error.errno in _DISK_FULL_ERRNOS else StoreError
        raise error_class(f"{file} cannot be written: {error.strerror or error}.") from None
    return result


def _copy_to_file(source: Database, url: str, progress: ProgressCallback, *, new_epoch: bool) -> CopyResult:
    target = open_database(url)
    try:
        result = copy_tables(source, target, progress, new_epoch=new_epoch)
    finally:
        target.close()
    # What SQLite could not bring into the file when it was closed, for want of room, lies beside it still.
    if Path(f"{target.location}-wal").exists():
        raise StoreError(f"{target.location} is not whole: there may be no room for all of it.")
    _verify_file(target.location, source.location)
    return result


def _verify_file(location: str, source_location: str) -> None:
    database = Database(build_url(Path(location)))
    try:
        # Every row is what was sent: what is wrong with them is wrong in the source.
        _require_consistent(database, source_location)
    finally:
        database.close()


def copy_database(source: Database, target: Database, progress: ProgressCallback) -> tuple[CopyResult, CheckReport]:
    """Copy everything into an empty database, then check it.

    Raise `Conflict`, and keep nothing, if the target holds anything or the source is written to meanwhile.
    """
    result = copy_tables(source, target, progress, require_idle=True)
    return result, check_database(target)


def _require_consistent(database: Database, location: str) -> None:
    problems = check_database(database).problems
    if problems:
        raise StoreError(f"{location} does not agree with itself: {problems[0]}; {len(problems)} such in all.")


def _publish_file(temporary: Path, file: Path) -> None:
    """Give what is finished its name. A file that has come to be there meanwhile is refused, as a rename would not."""
    try:
        os.link(temporary, file)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK_ERRNOS:
            raise
        file.touch(mode=0o600, exist_ok=False)
        temporary.replace(file)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
