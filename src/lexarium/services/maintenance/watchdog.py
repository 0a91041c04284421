"""Watch the database for damage in the background."""

import logging
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from lexarium.domain.errors import Conflict, StoreError
from lexarium.services.files import lock_file
from lexarium.services.search.indexer import lower_priority
from lexarium.store.database import Database

logger = logging.getLogger(__name__)

_REFRESH_SECONDS = 0.5
# Pause between the steps of a check, so that other threads get their turn.
_PAUSE_SECONDS = 0.05
_STOP_SECONDS = 5.0


class Watchdog:
    """Thread that reads the damage mark, and checks the database at intervals.

    Of several worker processes, the one that holds the lock checks.
    """

    def __init__(self, database: Database, interval_seconds: float, folder: Path | None) -> None:
        """Check after the start and at each interval; never if that is 0. Worker processes share the folder."""
        self._database = database
        self._interval_seconds = interval_seconds
        # None if there are no other workers, or once this process holds the lock.
        self._lock_path = None if folder is None else folder / "watchdog.lock"
        self._lock = ExitStack()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-watchdog", daemon=True)

    def start(self) -> None:
        """Read the damage mark and start the thread."""
        self._refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait a few seconds for the current step of a check."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._lock.close()

    def check(self) -> None:
        """Check the database once, step by step, and mark it as damaged if it is."""
        with self._database.translate_errors():
            for damage in self._database.backend.quick_check():
                if damage is not None:
                    self._database.mark_damaged(damage)
                    return
                if self._stopping.wait(_PAUSE_SECONDS):
                    return

    def _run(self) -> None:
        lower_priority()
        next_check_at = time.monotonic()
        while not self._stopping.wait(_REFRESH_SECONDS):
            self._refresh()
            if self._interval_seconds and time.monotonic() >= next_check_at and self._acquire_lock():
                next_check_at = time.monotonic() + self._interval_seconds
                try:
                    self.check()
                except StoreError as error:
                    logger.warning("Database check failed: %s", error)
                except Exception:
                    logger.exception("Database check failed")

    def _refresh(self) -> None:
        try:
            self._database.refresh_damage()
        except StoreError:
            pass  # The next round tries again.
        except Exception:
            logger.exception("Cannot read the damage mark")

    def _acquire_lock(self) -> bool:
        """Return whether this process checks. It keeps the lock until it ends."""
        if self._lock_path is not None:
            try:
                self._lock.enter_context(lock_file(self._lock_path, "Another process is checking the database."))
            except (Conflict, OSError):
                return False
            self._lock_path = None
        return True
