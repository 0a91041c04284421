"""Files that people send to be imported: kept for a short while, looked at first, then imported or thrown away.

They lie in a folder of the machine that all processes of a node share, so that any of them can go on with what
another has begun. Where one lies is told by who sent it and by a ticket that nobody can guess.
"""

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO

import orjson

from lexarium.domain.errors import Conflict, ImportRejected, LexariumError, NotFound, StoreError, VersionConflict
from lexarium.domain.import_merge import ConflictPreference
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.transfer.import_report import serialize_problems, serialize_report
from lexarium.services.transfer.imports import import_files
from lexarium.store.database import Database

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 3_600
"""How long files, and what came of them, are kept after the last that was done with them."""
_PROGRESS_INTERVAL_SECONDS = 0.5
_MAX_NAME_BYTES = 150
_STATE_FILE, _LOCK_FILE, _FILES_DIRECTORY = "state.json", "lock", "files"


class UploadStatus(StrEnum):
    """How far an upload has come."""

    PREVIEWING = "looking"
    PREVIEWED = "looked"
    IMPORTING = "importing"
    IMPORTED = "imported"
    REJECTED = "refused"
    FAILED = "broken"
    """Something went wrong that is not the files' fault; nothing was imported."""
    UNCERTAIN = "uncertain"
    """It broke off where all of it may have been imported, or nothing: to look at the files again tells."""


_RUNNING = (UploadStatus.PREVIEWING, UploadStatus.IMPORTING)


@dataclass(frozen=True)
class ImportOptions:
    """How files are to be read, and what is to be done where they and people here have changed the same."""

    format: str = ""
    """Nothing: as each file's name or beginning tells."""
    collection: str = ""
    """Nothing: as the records or the file's name tell."""
    map: Mapping[str, str] = field(default_factory=dict)
    """What columns and predicates mean that are not known by their names."""
    prefer: ConflictPreference | None = None


@dataclass(frozen=True)
class Upload:
    """Files that someone has sent, and what has come of them."""

    ticket: str
    names: tuple[str, ...]
    how: ImportOptions = field(default_factory=ImportOptions)
    stage: UploadStatus = UploadStatus.PREVIEWING
    doing: str = "waiting"
    """What is being done to them, while something is; how much of it is done, and of how much."""
    done: int = 0
    total: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    """What an import did or, where they were only looked at, would do."""
    wrong: str = ""
    problems: Sequence[Mapping[str, str]] = ()
    looked_at: int | None = None
    """The revision of the catalogue that they were last compared with, for someone to look at."""

    @property
    def is_running(self) -> bool:
        """Whether something is being done to them."""
        return self.stage in _RUNNING


class UploadManager:
    """The uploads to one catalogue, as one process has them. It imports one at a time."""

    def __init__(self, database: Database, vocabulary: Vocabulary) -> None:
        self._database = database
        self._vocabulary = vocabulary
        self._import_lock = threading.Lock()

    def receive(
        self, caller: Caller, files: Sequence[tuple[str, BinaryIO]], options: ImportOptions, wait_seconds: float = 0
    ) -> Upload:
        """Keep files under their names, and begin to look at what they hold, as `look` does."""
        caller.require(Permission.PUBLISH)
        self.delete_expired()
        upload_id = secrets.token_urlsafe(24)
        folder = self._folder(caller, upload_id)
        names = tuple(_sanitize_filename(name) for name, _ in files)
        for index, (name, (_, content)) in enumerate(zip(names, files, strict=True)):
            directory = folder / _FILES_DIRECTORY / str(index)
            directory.mkdir(parents=True)
            with (directory / name).open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
        _save_state(folder, Upload(upload_id, names, options))
        return self.preview(caller, upload_id, options, wait_seconds)

    def preview(self, caller: Caller, upload_id: str, options: ImportOptions, wait_seconds: float = 0) -> Upload:
        """Find out what an import would do, as `how` says; waits for it no longer than so many seconds."""
        return self._start(caller, upload_id, options, UploadStatus.PREVIEWING, wait_seconds)

    def apply(
        self, caller: Caller, upload_id: str, prefer: ConflictPreference | None, wait_seconds: float = 0
    ) -> Upload:
        """Import what was looked at; waits for it no longer than so many seconds.

        Where records that it would change are not what they were, nothing is imported: it is to be looked at again.
        """
        options = replace(self.get(caller, upload_id).how, prefer=prefer)
        return self._start(caller, upload_id, options, UploadStatus.IMPORTING, wait_seconds)

    def get(self, caller: Caller, upload_id: str) -> Upload:
        """What has come of an upload. Raises `NotFound` where there is none of this ticket, or it is someone else's."""
        folder = self._folder(caller, upload_id)
        upload = _load_state(folder)
        if upload.is_running and not _is_locked(folder):
            # Read again: it may have ended in between.
            upload = _load_state(folder)
        if upload.is_running and not _is_locked(folder):
            return _to_interrupted(upload, "The server was stopped in the midst of it.")
        return upload

    def discard(self, caller: Caller, upload_id: str) -> None:
        """Throw files away. Raises `Conflict` while they are being imported."""
        self.get(caller, upload_id)
        folder = self._folder(caller, upload_id)
        with _locked(folder):
            shutil.rmtree(folder, ignore_errors=True)

    def delete_expired(self) -> None:
        """Throw away what has been kept for long enough."""
        for folder in self._root().iterdir():
            with suppress(OSError, Conflict, NotFound):
                if folder.stat().st_mtime < time.time() - RETENTION_SECONDS:
                    with _locked(folder):
                        shutil.rmtree(folder, ignore_errors=True)

    def _start(
        self, caller: Caller, upload_id: str, options: ImportOptions, status: UploadStatus, wait_seconds: float
    ) -> Upload:
        caller.require(Permission.PUBLISH)
        folder = self._folder(caller, upload_id)
        previous = self.get(caller, upload_id)
        upload = Upload(upload_id, previous.names, options, status, looked_at=previous.looked_at)
        finished = threading.Event()
        with ExitStack() as stack:
            stack.enter_context(_locked(folder))
            if not (folder / _FILES_DIRECTORY).is_dir():
                raise Conflict("These files were imported already. Send them again to look at them again.")
            _save_state(folder, upload)
            lock = stack.pop_all()

        def task() -> None:
            try:
                with lock, self._import_lock:
                    self._run(folder, upload, caller)
            finally:
                finished.set()

        # A daemon: a server that is stopped does not wait for an import, which is undone then.
        threading.Thread(target=task, name="lexarium-import", daemon=True).start()
        finished.wait(wait_seconds)
        return self.get(caller, upload_id)

    def _run(self, folder: Path, upload: Upload, caller: Caller) -> None:
        """Look at files or import them, and write down what came of it."""
        try:
            result = self._import_files(folder, upload)
        except VersionConflict as error:
            retry = replace(upload, how=replace(upload.how, prefer=None), stage=UploadStatus.PREVIEWING)
            self._run(folder, retry, caller)
            result = replace(_load_state(folder), wrong=f"{error} Look at what would change now.")
        except ImportRejected as error:
            result = replace(
                upload, stage=UploadStatus.REJECTED, wrong=str(error), problems=serialize_problems(error.problems)
            )
        except Exception as error:
            logger.exception("The files of an upload could not be imported.")
            result = _to_failed(upload, error)
        if result.stage == UploadStatus.IMPORTED:
            shutil.rmtree(folder / _FILES_DIRECTORY, ignore_errors=True)
            logger.info("%s imported %s.", caller.account.id, ", ".join(upload.names))
        _save_state(folder, _strip_paths(result, folder))

    def _import_files(self, folder: Path, upload: Upload) -> Upload:
        """What came of looking at files, or of importing them as they were looked at."""
        dry_run = upload.stage == UploadStatus.PREVIEWING
        report = import_files(
            self._database,
            [folder / _FILES_DIRECTORY / str(index) / name for index, name in enumerate(upload.names)],
            vocabulary=self._vocabulary,
            format=FORMATS.get(upload.how.format),
            collection=COLLECTIONS.get(upload.how.collection),
            column_mapping=upload.how.map,
            prefer=upload.how.prefer,
            dry_run=dry_run,
            previewed_revision=None if dry_run else upload.looked_at,
            progress=_build_progress_writer(folder, upload),
        )
        status = UploadStatus.PREVIEWED if dry_run else UploadStatus.IMPORTED
        return replace(upload, stage=status, report=serialize_report(report), looked_at=report.base_revision)

    def _folder(self, caller: Caller, upload_id: str) -> Path:
        # Both are needed to find it; what is on disk tells neither.
        digest = hashlib.sha256(f"{caller.account.id} {upload_id}".encode(errors="replace")).hexdigest()
        return self._root() / digest

    def _root(self) -> Path:
        """The folder of all uploads, which nobody else may look into."""
        root = Path(gettempdir()) / f"lexarium-uploads-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
        info = root.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise StoreError(f"{root} is not a folder that only this user may look into. Remove it.")
        return root


def _sanitize_filename(name: str) -> str:
    """A file's name without anything that a file system may take for something else; its ending stays."""
    basename = name.replace("\\", "/").rpartition("/")[2]
    safe = (
        "".join(character for character in basename if character.isprintable() and character != "/").lstrip(".").strip()
    )
    while len(safe.encode(errors="replace")) > _MAX_NAME_BYTES:
        safe = safe[1:]
    return safe.encode(errors="replace").decode() or "file"


def _to_failed(upload: Upload, error: Exception) -> Upload:
    """What is known of an upload after an error that is not the files' fault."""
    if isinstance(error, StoreError):
        return _to_interrupted(upload, "The catalogue's database could not be used at this moment.")
    is_expected = isinstance(error, LexariumError)
    return replace(upload, stage=UploadStatus.FAILED, wrong=str(error) if is_expected else "The server made a mistake.")


def _to_interrupted(upload: Upload, reason: str) -> Upload:
    """An upload at which work has ended before its end; a commit may have been the last that was done."""
    if upload.stage == UploadStatus.IMPORTING:
        advice = "Whether the files were imported is not known: all of them were, or nothing. Look again to see."
        return replace(upload, stage=UploadStatus.UNCERTAIN, wrong=f"{reason} {advice}")
    return replace(upload, stage=UploadStatus.FAILED, wrong=f"{reason} Nothing was imported; look again.")


def _build_progress_writer(folder: Path, upload: Upload) -> ProgressCallback:
    """Progress that is written down now and then, for whoever looks."""
    last_written_at = 0.0

    def progress(step: str, done: int, total: int) -> None:
        nonlocal last_written_at
        if time.monotonic() - last_written_at >= _PROGRESS_INTERVAL_SECONDS:
            last_written_at = time.monotonic()
            _save_state(folder, replace(upload, doing=step, done=done, total=total))

    return progress


def _strip_paths(upload: Upload, folder: Path) -> Upload:
    """What there is to tell, with files called by their names and not by where they lie here."""

    def strip(item: Mapping[str, Any]) -> dict[str, Any]:
        cleaned = dict(item)
        for key in ("where", "what"):
            for index in range(len(upload.names)) if key in cleaned else ():
                cleaned[key] = cleaned[key].replace(f"{folder / _FILES_DIRECTORY / str(index)}/", "")
        return cleaned

    report = dict(upload.report)
    for section in ("warnings", "conflicts"):
        if section in report:
            report[section] = [strip(item) for item in report[section]]
    return replace(upload, report=report, problems=[strip(item) for item in upload.problems])


def _save_state(folder: Path, upload: Upload) -> None:
    temporary = folder / f"{_STATE_FILE}.part"
    temporary.write_bytes(orjson.dumps(upload))
    temporary.replace(folder / _STATE_FILE)


def _load_state(folder: Path) -> Upload:
    try:
        values = orjson.loads((folder / _STATE_FILE).read_bytes())
    except FileNotFoundError:
        hint = (
            f"They are kept for {RETENTION_SECONDS // 60} minutes, for whoever sent them, on the server that got them."
        )
        raise NotFound(f"There are no such files here. {hint} Send them again.") from None
    typed = {
        "names": tuple(values["names"]),
        "how": ImportOptions(**values["how"]),
        "stage": UploadStatus(values["stage"]),
    }
    return Upload(**{**values, **typed})


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let nobody else do anything to an upload meanwhile. Raises `Conflict` where someone does."""
    with (folder / _LOCK_FILE).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("These files are being read or imported at this moment.") from None
        yield


def _is_locked(folder: Path) -> bool:
    try:
        with _locked(folder):
            return False
    except Conflict:
        return True
    except OSError:
        return False
