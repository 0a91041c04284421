"""Uploaded files: preview, import and discard them.

Files and state are kept in a temporary directory that the processes of a node share, so that any of them can continue.
"""

import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO

import orjson
from pydantic import TypeAdapter, ValidationError

from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.errors import (
    Conflict,
    ImportRejected,
    InvalidInput,
    LexariumError,
    NotFound,
    StoreError,
    VersionConflict,
)
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.files import lock_file
from lexarium.services.transfer.import_report import serialize_problems, serialize_report
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.store.database import Database

logger = logging.getLogger(__name__)

# Counted from the last change of the state.
RETENTION_SECONDS = 3_600
_PROGRESS_INTERVAL_SECONDS = 0.5
# Records of each kind on the page.
_MAX_LISTED = 100
_MAX_NAME_BYTES = 150
_STATE_FILE, _LOCK_FILE, _FILES_DIRECTORY = "state.json", "lock", "files"


class UploadStatus(StrEnum):
    """Status of an upload."""

    PREVIEWING = "previewing"
    PREVIEWED = "previewed"
    IMPORTING = "importing"
    IMPORTED = "imported"
    REJECTED = "rejected"
    # An error of the server; nothing was imported.
    FAILED = "failed"
    # Interrupted during the commit: everything was imported, or nothing.
    UNCERTAIN = "uncertain"


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import. An empty vocabulary, format or collection is detected for each file."""

    vocabulary: str = ""
    format: str = ""
    collection: str = ""
    map: Mapping[str, str] = field(default_factory=dict)
    mode: ImportMode = ImportMode.UPDATE
    # Language of texts that have none.
    language: str = ""
    prefer: ConflictPreference | None = None


@dataclass(frozen=True)
class Upload:
    """Uploaded files and the state of their import. The fields are those of the state file."""

    id: str
    names: tuple[str, ...]
    options: ImportOptions = field(default_factory=ImportOptions)
    status: UploadStatus = UploadStatus.PREVIEWING
    # Current step and its progress.
    step: str = "waiting"
    done: int = 0
    total: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    problems: Sequence[Mapping[str, str]] = ()
    # Revision of the last preview.
    previewed_revision: int | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a preview or import is in progress."""
        return self.status in (UploadStatus.PREVIEWING, UploadStatus.IMPORTING)


_UPLOAD_ADAPTER = TypeAdapter(Upload)


class UploadManager:
    """Uploads of one catalogue. Each process imports one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._import_lock = threading.Lock()

    def receive(
        self, caller: Caller, files: Sequence[tuple[str, BinaryIO]], options: ImportOptions, wait_seconds: float = 0
    ) -> Upload:
        """Store files and start their preview."""
        caller.require_anywhere(Permission.PUBLISH)
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
        """Start a dry run of the import, and wait for it at most a number of seconds."""
        return self._start(caller, upload_id, options, UploadStatus.PREVIEWING, wait_seconds)

    def apply(
        self, caller: Caller, upload_id: str, prefer: ConflictPreference | None, wait_seconds: float = 0
    ) -> Upload:
        """Start the import of previewed files, and wait for it at most a number of seconds.

        If records that it would change have changed since the preview, preview it again instead.
        """
        options = replace(self.get(caller, upload_id).options, prefer=prefer)
        return self._start(caller, upload_id, options, UploadStatus.IMPORTING, wait_seconds)

    def get(self, caller: Caller, upload_id: str) -> Upload:
        """Return an upload of the caller; raise NotFound."""
        folder = self._folder(caller, upload_id)
        for _ in range(2):  # It may have finished between the two checks.
            upload = _load_state(folder)
            if not upload.is_running or _is_locked(folder):
                return upload
        return _to_interrupted(upload, "The server stopped during the import.")

    def discard(self, caller: Caller, upload_id: str) -> None:
        """Delete an upload; raise Conflict while it is running."""
        self.get(caller, upload_id)
        folder = self._folder(caller, upload_id)
        with _lock(folder):
            shutil.rmtree(folder, ignore_errors=True)

    def delete_expired(self) -> None:
        """Delete the uploads whose retention time is over."""
        for folder in self._root().iterdir():
            with suppress(OSError, Conflict, NotFound):
                if folder.stat().st_mtime < time.time() - RETENTION_SECONDS:
                    with _lock(folder):
                        shutil.rmtree(folder, ignore_errors=True)

    def _start(
        self, caller: Caller, upload_id: str, options: ImportOptions, status: UploadStatus, wait_seconds: float
    ) -> Upload:
        caller.require_anywhere(Permission.PUBLISH)
        folder = self._folder(caller, upload_id)
        previous = self.get(caller, upload_id)
        upload = Upload(upload_id, previous.names, options, status, previewed_revision=previous.previewed_revision)
        finished = threading.Event()
        with ExitStack() as stack:
            stack.enter_context(_lock(folder))
            if not (folder / _FILES_DIRECTORY).is_dir():
                raise Conflict("These files were already imported. Upload them again to preview them.")
            _save_state(folder, upload)
            lock = stack.pop_all()

        def task() -> None:
            try:
                with lock, self._import_lock:
                    self._run(folder, upload, caller)
            finally:
                finished.set()

        # A daemon, so that the server can stop during an import, which is then rolled back.
        threading.Thread(target=task, name="lexarium-import", daemon=True).start()
        finished.wait(wait_seconds)
        return self.get(caller, upload_id)

    def _run(self, folder: Path, upload: Upload, caller: Caller) -> None:
        """Preview or import files, and save the result."""
        try:
            result = self._import_files(folder, upload, caller)
        except VersionConflict as error:
            retry = replace(upload, options=replace(upload.options, prefer=None), status=UploadStatus.PREVIEWING)
            self._run(folder, retry, caller)
            result = replace(_load_state(folder), error=f"{error} Preview again.")
        except ImportRejected as error:
            problems = serialize_problems(error.problems)
            result = replace(upload, status=UploadStatus.REJECTED, error=str(error), problems=problems)
        except StoreError:
            logger.exception("Import of uploaded files failed.")
            result = _to_interrupted(upload, "Database unavailable.")
        except LexariumError as error:
            problems = serialize_problems(error.problems) if isinstance(error, InvalidInput) else []
            result = replace(upload, status=UploadStatus.REJECTED, error=str(error), problems=problems)
        except Exception:
            logger.exception("Import of uploaded files failed.")
            result = replace(upload, status=UploadStatus.FAILED, error="Internal server error.")
        if result.status == UploadStatus.IMPORTED:
            shutil.rmtree(folder / _FILES_DIRECTORY, ignore_errors=True)
            logger.info("%s imported %s.", caller.account.id, ", ".join(upload.names))
        _save_state(folder, result)

    def _import_files(self, folder: Path, upload: Upload, caller: Caller) -> Upload:
        from lexarium.services.transfer.file_import import run_import  # noqa: PLC0415 - with all formats, takes long to load

        last_written_at = 0.0

        def save_progress(step: str, done: int, total: int) -> None:
            nonlocal last_written_at
            if time.monotonic() - last_written_at >= _PROGRESS_INTERVAL_SECONDS:
                last_written_at = time.monotonic()
                _save_state(folder, replace(upload, step=step, done=done, total=total))

        dry_run, options = upload.status == UploadStatus.PREVIEWING, upload.options
        # A vocabulary that the import creates is seen by nobody else before it is committed.
        with self._database.isolate_vocabularies():
            request = ImportRequest(
                [folder / _FILES_DIRECTORY / str(index) / name for index, name in enumerate(upload.names)],
                vocabulary=options.vocabulary,
                format=FORMATS.get(options.format),
                collection=options.collection,
                column_mapping=options.map,
                language=options.language,
                mode=options.mode,
                prefer=options.prefer,
                dry_run=dry_run,
                previewed_revision=None if dry_run else upload.previewed_revision,
                caller=caller,
            )
            report = run_import(self._database, request, save_progress)
        status = UploadStatus.PREVIEWED if dry_run else UploadStatus.IMPORTED
        # The kinds of warnings are enough to show, and there may be very many warnings.
        summary = {**serialize_report(report, _MAX_LISTED), "warnings": []}
        return replace(upload, status=status, report=summary, previewed_revision=report.base_revision)

    def _folder(self, caller: Caller, upload_id: str) -> Path:
        # Neither the account nor the id can be read from the name.
        digest = hashlib.sha256(f"{caller.account.id} {upload_id}".encode(errors="replace")).hexdigest()
        return self._root() / digest

    def _root(self) -> Path:
        """Return the directory of all uploads, which only this user can read."""
        root = Path(gettempdir()) / f"lexarium-uploads-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
        info = root.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise StoreError(f"{root} can be read by other users. Remove it.")
        return root


def _sanitize_filename(name: str) -> str:
    """Remove folders, unprintable characters and leading dots from a file name, and shorten it at the front."""
    basename = name.replace("\\", "/").rpartition("/")[2]
    safe = "".join(filter(str.isprintable, basename)).strip().lstrip(". ")
    while len(safe.encode(errors="replace")) > _MAX_NAME_BYTES:
        safe = safe[1:]
    return safe.encode(errors="replace").decode() or "file"


def _to_interrupted(upload: Upload, reason: str) -> Upload:
    if upload.status == UploadStatus.IMPORTING:
        advice = "Import status unknown: all files were imported, or none. Preview again to check."
        return replace(upload, status=UploadStatus.UNCERTAIN, error=f"{reason} {advice}")
    return replace(upload, status=UploadStatus.FAILED, error=f"{reason} Nothing was imported. Preview again.")


def _save_state(folder: Path, upload: Upload) -> None:
    # File names in messages are shown without the storage directory.
    directory = orjson.dumps(f"{folder / _FILES_DIRECTORY}/").strip(b'"')
    state = re.sub(re.escape(directory) + rb"\d+/", b"", orjson.dumps(upload))
    temporary = folder / f"{_STATE_FILE}.part"
    temporary.write_bytes(state)
    temporary.replace(folder / _STATE_FILE)


def _load_state(folder: Path) -> Upload:
    try:
        return _UPLOAD_ADAPTER.validate_json((folder / _STATE_FILE).read_bytes())
    except (FileNotFoundError, ValidationError):  # or written by another version
        kept = f"Files are kept for {RETENTION_SECONDS // 60} minutes, only for their owner and only on one server."
        raise NotFound(f"Upload not found or expired. {kept} Upload the files again.") from None


def _lock(folder: Path) -> AbstractContextManager[None]:
    return lock_file(folder / _LOCK_FILE, "These files are currently being read or imported.")


def _is_locked(folder: Path) -> bool:
    try:
        with _lock(folder):
            return False
    except Conflict:
        return True
    except OSError:
        return False
