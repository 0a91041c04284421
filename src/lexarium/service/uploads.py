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

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.editions import Preference
from lexarium.domain.errors import Conflict, ImportRefused, LexariumError, NotFound, Stale, StoreError
from lexarium.domain.progress import Progress
from lexarium.exchange.formats import FORMATS
from lexarium.service.access import Caller, Deed
from lexarium.service.importing import import_files
from lexarium.service.reports import notes_view, report_view
from lexarium.store.database import Database

log = logging.getLogger(__name__)

KEPT_SECONDS = 3_600
"""How long files, and what came of them, are kept after the last that was done with them."""
_TOLD_SECONDS = 0.5
_LONGEST_NAME = 150
_STATE, _LOCK, _FILES = "state.json", "lock", "files"


class Stage(StrEnum):
    """How far an upload has come."""

    LOOKING = "looking"
    LOOKED = "looked"
    IMPORTING = "importing"
    IMPORTED = "imported"
    REFUSED = "refused"
    BROKEN = "broken"
    """Something went wrong that is not the files' fault; nothing was imported."""
    UNCERTAIN = "uncertain"
    """It broke off where all of it may have been imported, or nothing: to look at the files again tells."""


_BUSY = (Stage.LOOKING, Stage.IMPORTING)


@dataclass(frozen=True)
class How:
    """How files are to be read, and what is to be done where they and people here have changed the same."""

    format: str = ""
    """Nothing: as each file's name or beginning tells."""
    collection: str = ""
    """Nothing: as the records or the file's name tell."""
    map: Mapping[str, str] = field(default_factory=dict)
    """What columns and predicates mean that are not known by their names."""
    prefer: Preference | None = None


@dataclass(frozen=True)
class Upload:
    """Files that someone has sent, and what has come of them."""

    ticket: str
    names: tuple[str, ...]
    how: How = field(default_factory=How)
    stage: Stage = Stage.LOOKING
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
    def busy(self) -> bool:
        """Whether something is being done to them."""
        return self.stage in _BUSY


class Uploads:
    """The uploads to one catalogue, as one process has them. It imports one at a time."""

    def __init__(self, database: Database, about: About) -> None:
        self._database = database
        self._about = about
        self._turn = threading.Lock()

    def receive(self, caller: Caller, files: Sequence[tuple[str, BinaryIO]], how: How, patience: float = 0) -> Upload:
        """Keep files under their names, and begin to look at what they hold, as `look` does."""
        caller.require(Deed.PUBLISH)
        self.sweep()
        ticket = secrets.token_urlsafe(24)
        folder = self._folder(caller, ticket)
        names = tuple(_harmless(name) for name, _ in files)
        for number, (name, (_, content)) in enumerate(zip(names, files, strict=True)):
            place = folder / _FILES / str(number)
            place.mkdir(parents=True)
            with (place / name).open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
        _write(folder, Upload(ticket, names, how))
        return self.look(caller, ticket, how, patience)

    def look(self, caller: Caller, ticket: str, how: How, patience: float = 0) -> Upload:
        """Find out what an import would do, as `how` says; waits for it no longer than so many seconds."""
        return self._begin(caller, ticket, how, Stage.LOOKING, patience)

    def apply(self, caller: Caller, ticket: str, prefer: Preference | None, patience: float = 0) -> Upload:
        """Import what was looked at; waits for it no longer than so many seconds.

        Where records that it would change are not what they were, nothing is imported: it is to be looked at again.
        """
        how = replace(self.find(caller, ticket).how, prefer=prefer)
        return self._begin(caller, ticket, how, Stage.IMPORTING, patience)

    def find(self, caller: Caller, ticket: str) -> Upload:
        """What has come of an upload. Raises `NotFound` where there is none of this ticket, or it is someone else's."""
        folder = self._folder(caller, ticket)
        found = _read(folder)
        if found.busy and not _is_locked(folder):
            # Read again: it may have ended in between.
            found = _read(folder)
        if found.busy and not _is_locked(folder):
            return _broken_off(found, "The server was stopped in the midst of it.")
        return found

    def discard(self, caller: Caller, ticket: str) -> None:
        """Throw files away. Raises `Conflict` while they are being imported."""
        self.find(caller, ticket)
        folder = self._folder(caller, ticket)
        with _held(folder):
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Throw away what has been kept for long enough."""
        for folder in self._root().iterdir():
            with suppress(OSError, Conflict, NotFound):
                if folder.stat().st_mtime < time.time() - KEPT_SECONDS:
                    with _held(folder):
                        shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, caller: Caller, ticket: str, how: How, stage: Stage, patience: float) -> Upload:
        caller.require(Deed.PUBLISH)
        folder = self._folder(caller, ticket)
        before = self.find(caller, ticket)
        upload = Upload(ticket, before.names, how, stage, looked_at=before.looked_at)
        ended = threading.Event()
        with ExitStack() as holding:
            holding.enter_context(_held(folder))
            if not (folder / _FILES).is_dir():
                raise Conflict("These files were imported already. Send them again to look at them again.")
            _write(folder, upload)
            held = holding.pop_all()

        def work() -> None:
            try:
                with held, self._turn:
                    self._run(folder, upload, caller)
            finally:
                ended.set()

        # A daemon: a server that is stopped does not wait for an import, which is undone then.
        threading.Thread(target=work, name="lexarium-import", daemon=True).start()
        ended.wait(patience)
        return self.find(caller, ticket)

    def _run(self, folder: Path, upload: Upload, caller: Caller) -> None:
        """Look at files or import them, and write down what came of it."""
        try:
            told = self._told(folder, upload)
        except Stale as error:
            again = replace(upload, how=replace(upload.how, prefer=None), stage=Stage.LOOKING)
            self._run(folder, again, caller)
            told = replace(_read(folder), wrong=f"{error} Look at what would change now.")
        except ImportRefused as error:
            told = replace(upload, stage=Stage.REFUSED, wrong=str(error), problems=notes_view(error.problems))
        except Exception as error:
            log.exception("The files of an upload could not be imported.")
            told = _failed(upload, error)
        if told.stage == Stage.IMPORTED:
            shutil.rmtree(folder / _FILES, ignore_errors=True)
            log.info("%s imported %s.", caller.account.id, ", ".join(upload.names))
        _write(folder, _nameless(told, folder))

    def _told(self, folder: Path, upload: Upload) -> Upload:
        """What came of looking at files, or of importing them as they were looked at."""
        dry_run = upload.stage == Stage.LOOKING
        report = import_files(
            self._database,
            [folder / _FILES / str(number) / name for number, name in enumerate(upload.names)],
            about=self._about,
            format=FORMATS.get(upload.how.format),
            collection=COLLECTIONS.get(upload.how.collection),
            map=upload.how.map,
            prefer=upload.how.prefer,
            dry_run=dry_run,
            looked_at=None if dry_run else upload.looked_at,
            progress=_watcher(folder, upload),
        )
        stage = Stage.LOOKED if dry_run else Stage.IMPORTED
        return replace(upload, stage=stage, report=report_view(report), looked_at=report.revision)

    def _folder(self, caller: Caller, ticket: str) -> Path:
        # Both are needed to find it; what is on disk tells neither.
        digest = hashlib.sha256(f"{caller.account.id} {ticket}".encode(errors="replace")).hexdigest()
        return self._root() / digest

    def _root(self) -> Path:
        """The folder of all uploads, which nobody else may look into."""
        root = Path(gettempdir()) / f"lexarium-uploads-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
        found = root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise StoreError(f"{root} is not a folder that only this user may look into. Remove it.")
        return root


def _harmless(name: str) -> str:
    """A file's name without anything that a file system may take for something else; its ending stays."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(each for each in last if each.isprintable() and each != "/").lstrip(".").strip()
    while len(plain.encode(errors="replace")) > _LONGEST_NAME:
        plain = plain[1:]
    return plain.encode(errors="replace").decode() or "file"


def _failed(upload: Upload, error: Exception) -> Upload:
    """What is known of an upload after an error that is not the files' fault."""
    if isinstance(error, StoreError):
        return _broken_off(upload, "The catalogue's database could not be used at this moment.")
    known = isinstance(error, LexariumError)
    return replace(upload, stage=Stage.BROKEN, wrong=str(error) if known else "The server made a mistake.")


def _broken_off(upload: Upload, why: str) -> Upload:
    """An upload at which work has ended before its end; a commit may have been the last that was done."""
    if upload.stage == Stage.IMPORTING:
        sure = "Whether the files were imported is not known: all of them were, or nothing. Look again to see."
        return replace(upload, stage=Stage.UNCERTAIN, wrong=f"{why} {sure}")
    return replace(upload, stage=Stage.BROKEN, wrong=f"{why} Nothing was imported; look again.")


def _watcher(folder: Path, upload: Upload) -> Progress:
    """Progress that is written down now and then, for whoever looks."""
    told_at = 0.0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= _TOLD_SECONDS:
            told_at = time.monotonic()
            _write(folder, replace(upload, doing=what, done=done, total=total))

    return progress


def _nameless(upload: Upload, folder: Path) -> Upload:
    """What there is to tell, with files called by their names and not by where they lie here."""

    def plain(note: Mapping[str, Any]) -> dict[str, Any]:
        own = dict(note)
        for name in ("where", "what"):
            for number in range(len(upload.names)) if name in own else ():
                own[name] = own[name].replace(f"{folder / _FILES / str(number)}/", "")
        return own

    report = dict(upload.report)
    for name in ("warnings", "conflicts"):
        if name in report:
            report[name] = [plain(each) for each in report[name]]
    return replace(upload, report=report, problems=[plain(each) for each in upload.problems])


def _write(folder: Path, upload: Upload) -> None:
    part = folder / f"{_STATE}.part"
    part.write_bytes(orjson.dumps(upload))
    part.replace(folder / _STATE)


def _read(folder: Path) -> Upload:
    try:
        values = orjson.loads((folder / _STATE).read_bytes())
    except FileNotFoundError:
        kept = f"They are kept for {KEPT_SECONDS // 60} minutes, for whoever sent them, on the server that got them."
        raise NotFound(f"There are no such files here. {kept} Send them again.") from None
    exact = {"names": tuple(values["names"]), "how": How(**values["how"]), "stage": Stage(values["stage"])}
    return Upload(**{**values, **exact})


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Let nobody else do anything to an upload meanwhile. Raises `Conflict` where someone does."""
    with (folder / _LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("These files are being read or imported at this moment.") from None
        yield


def _is_locked(folder: Path) -> bool:
    try:
        with _held(folder):
            return False
    except Conflict:
        return True
    except OSError:
        return False
