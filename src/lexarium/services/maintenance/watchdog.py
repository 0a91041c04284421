"""Watch the database for damage: a check in the background, and the mark that all processes share."""

import fcntl
import logging
import threading
import time
from pathlib import Path
from typing import IO

from lexarium.domain.errors import StoreError
from lexarium.services.search.indexer import lower_priority
from lexarium.store.database import Database

logger = logging.getLogger(__name__)

_REFRESH_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
"""How long the check rests after each of its steps, so that others get their turn."""
_STOP_SECONDS = 5.0
"""How long a step that is under way is waited for. It ends with the process."""


class Watchdog:
    """A thread that refreshes what a process knows of damage, and checks the database now and then.

    Of several worker processes, the one that holds the lock checks.
    """

    def __init__(self, database: Database, interval_seconds: float, folder: Path | None) -> None:
        """Check after the start and every so many seconds; never where that is 0. Workers share the folder."""
        self._database = database
        self._interval_seconds = interval_seconds
        self._folder = folder
        self._lock: IO[str] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-watchdog", daemon=True)

    def start(self) -> None:
        """Find out whether the database is known to be damaged, and begin to watch it."""
        self._refresh()
        self._thread.start()

    def stop(self) -> None:
        """End the check that is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        if self._lock is not None:
            self._lock.close()

    def check(self) -> None:
        """Check the database once, step by step; damage is noted in the database."""
        with self._database.translate_errors():
            for damage in self._database.backend.quick_check():
                if damage is not None:
                    self._database.mark_damaged(damage)
                    return
                if self._stopping.wait(_PAUSE_SECONDS):
                    return

    def _run(self) -> None:
        """Never ends by an error: a database that cannot be checked now can be later."""
        lower_priority()
        next_check_at = time.monotonic()
        while not self._stopping.wait(_REFRESH_SECONDS):
            self._refresh()
            if self._interval_seconds and time.monotonic() >= next_check_at and self._acquire_lock():
                next_check_at = time.monotonic() + self._interval_seconds
                try:
                    self.check()
                except StoreError as error:
                    logger.warning("The database could not be checked: %s", error)
                except Exception:
                    logger.exception("The database could not be checked")

    def _refresh(self) -> None:
        try:
            self._database.refresh_damage()
        except StoreError:
            pass  # It is tried again.
        except Exception:
            logger.exception("The damage mark could not be read")

    def _acquire_lock(self) -> bool:
        """Whether this process is the one that checks. The lock is free again when its holder has ended."""
        if self._folder is None or self._lock is not None:
            return True
        try:
            file = (self._folder / "watchdog.lock").open("a")
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._lock = file
        return True
