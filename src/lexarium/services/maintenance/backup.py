"""Back up the catalogue to one file, restore it, and copy it between databases."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TypeVar

from lexarium.domain.errors import Conflict, DiskFull, InvalidDatabase, NotFound, StoreError
from lexarium.domain.progress import ProgressCallback
from lexarium.services.files import lock_file
from lexarium.services.maintenance.database_check import CheckReport, check_database
from lexarium.store.database import Database
from lexarium.store.engine.sqlite import build_url
from lexarium.store.maintenance.copy import CopyResult, copy_tables
from lexarium.store.maintenance.upgrade import BACKUP_VERSION, open_database, require_catalogue, upgrade_schema
from lexarium.store.maintenance.upgrade_backup import copy_old_database, measure_size
from lexarium.store.position import Snapshot

T = TypeVar("T")

_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
# Errors of file systems without hard links.
_NO_HARD_LINK_ERRNOS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)


def create_backup(database: Database, file: Path, progress: ProgressCallback) -> CopyResult:
    """Write the catalogue, as of one moment, to a new file; raise Conflict if the file exists.

    The file appears complete or not at all. Others may go on writing to the database.
    """
    _require_missing(file)
    return _write_file(file, lambda temporary: _copy_to_file(database, temporary, progress))


@dataclass(frozen=True)
class UpgradeBackup:
    """Backup that was made before an upgrade."""

    file: Path
    rows: dict[str, int]
    size: int
    seconds: float


def create_upgrade_backup(database: Database, snapshot: Snapshot, file: Path | None = None) -> UpgradeBackup:
    """Write a database, as it is before its upgrade, to a new file; by default beside it or in the current folder.

    Raises Conflict if the file exists, DiskFull if there is no room, StoreError if the copy differs.
    """
    default = database.backend.path or Path(database.location.partition(" ")[0] or "lexarium")
    file = file or default.with_name(f"{default.name}.before-{BACKUP_VERSION}")
    _require_missing(file)
    needed, start = measure_size(database, snapshot), time.monotonic()
    free = shutil.disk_usage(file.resolve().parent).free
    if free < needed:
        raise DiskFull(
            f"Not enough disk space for the backup {file}: it may need {needed / 1e6:,.0f} MB, and"
            f" {free / 1e6:,.0f} MB are free. Nothing was changed. Choose another file with --backup."
        )
    rows = _write_file(file, lambda temporary: copy_old_database(database, snapshot, temporary))
    return UpgradeBackup(file, rows, file.stat().st_size, time.monotonic() - start)


def _require_missing(file: Path) -> None:
    if file.exists():
        raise Conflict(f"{file} already exists. Choose another file.")


@contextmanager
def open_backup(file: Path) -> Iterator[Database]:
    """Open a copy of a backup, upgraded and checked. The file itself is not changed."""
    if not file.is_file():
        raise NotFound(f"Backup {file} not found.")
    no_room = DiskFull(
        f"Not enough disk space in {gettempdir()} for a copy of {file}, which is needed to restore it. Nothing was"
        " changed. Choose another folder with the variable TMPDIR."
    )
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryDirectory(prefix="lexarium-restore-"))
            copy = Path(shutil.copyfile(file, Path(folder) / "backup.db"))
        except OSError as error:
            if error.errno in _DISK_FULL_ERRNOS:
                raise no_room from None
            raise StoreError(f"Cannot read the backup {file}: {error.strerror or error}.") from None
        source = stack.enter_context(closing(Database(build_url(copy))))
        stack.enter_context(_translate_paths(copy, file))
        try:
            require_catalogue(source)
            upgrade_schema(source, lambda _: None)  # It is a copy.
            _require_consistent(source, source.location)
        except NotFound:
            raise InvalidDatabase(f"{source.location} is empty; it is not a backup.") from None
        except DiskFull:
            raise no_room from None
        yield source


def restore_backup(source: Database, database: Database, progress: ProgressCallback) -> CopyResult:
    """Copy an opened backup into an empty database, under a new epoch; raise Conflict if it is not empty.

    A missing or empty SQLite file is written complete or not at all. Any other database must have the current schema.
    """
    file = database.backend.path
    if file is not None and not database.backend.exists():
        return _write_file(file, lambda temporary: _copy_to_file(source, temporary, progress, new_epoch=True))
    return copy_tables(source, database, progress, new_epoch=True)


def copy_database(source: Database, target: Database, progress: ProgressCallback) -> tuple[CopyResult, CheckReport]:
    """Copy everything into an empty database, then check it.

    Raise Conflict, and keep nothing, if the target holds anything or the source is written to meanwhile.
    """
    result = copy_tables(source, target, progress, require_idle=True)
    return result, check_database(target)


def _write_file(file: Path, write: Callable[[Path], T]) -> T:
    """Write a database to a file that is missing or empty, given a temporary path. A symbolic link is followed."""
    file = file.resolve()
    replaces_empty = file.exists()
    for journal in (Path(f"{file}-wal"), Path(f"{file}-journal")):
        if journal.exists():
            # SQLite would apply it to the new file.
            raise Conflict(f"{journal} is left over from a missing database. Move it away first.")
    try:
        with _staging_directory(file) as folder:
            temporary = folder / file.name
            with _translate_paths(temporary, file):
                result = write(temporary)
            temporary.chmod(0o600)  # It holds password hashes.
            _fsync(temporary)
            if replaces_empty:
                temporary.replace(file)
            else:
                _publish_file(temporary, file)
            Path(f"{file}-damaged").unlink(missing_ok=True)  # The mark of an earlier database.
            _fsync(file.parent)
    except OSError as error:
        error_class = DiskFull if error.errno in _DISK_FULL_ERRNOS else StoreError
        raise error_class(f"Cannot write {file}: {error.strerror or error}.") from None
    return result


def _copy_to_file(source: Database, file: Path, progress: ProgressCallback, *, new_epoch: bool = False) -> CopyResult:
    url = build_url(file)
    with closing(open_database(url)) as target:
        result = copy_tables(source, target, progress, new_epoch=new_epoch)
    # If the disk is full, SQLite cannot move the journal into the file on closing.
    if Path(f"{target.location}-wal").exists():
        raise StoreError(f"{target.location} is incomplete; the disk may be full.")
    with closing(Database(url)) as database:
        # The rows are equal, so that an inconsistency is one of the source.
        _require_consistent(database, source.location)
    return result


@contextmanager
def _staging_directory(file: Path) -> Iterator[Path]:
    """Create a folder beside a file. Remove one that a killed process left behind."""
    folder = file.parent / f".{file.name}-unfinished"
    lock, message = folder / "held", f"Another backup or restore to {file} is in progress."
    if folder.exists():
        with lock_file(lock, message):
            shutil.rmtree(folder)
    folder.mkdir(0o700)
    try:
        with lock_file(lock, message):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _translate_paths(temporary: Path, file: Path) -> Iterator[None]:
    """Name the user's file in errors, instead of the temporary one."""
    try:
        yield
    except StoreError as error:
        raise type(error)(str(error).replace(str(temporary), str(file))) from error


def _require_consistent(database: Database, location: str) -> None:
    problems = check_database(database).problems
    if problems:
        raise StoreError(f"{location} is inconsistent: {problems[0]}; {len(problems)} problems in total.")


def _publish_file(temporary: Path, file: Path) -> None:
    """Move a finished file to its name; fail if another file has appeared there, which a rename would replace."""
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
