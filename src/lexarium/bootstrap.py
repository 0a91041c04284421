"""The one place that wires settings, store, services and web."""

import logging
import multiprocessing
import os
import signal
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path

from starlette.types import ASGIApp

from lexarium.domain.errors import Unavailable
from lexarium.domain.lengths import Lengths, choose
from lexarium.domain.proposals import Quota, choose_quota
from lexarium.settings import FIGURES, MARK, Settings
from lexarium.store.database import Database
from lexarium.store.mark import Mark
from lexarium.store.migrate import migrate
from lexarium.web.app import make_app

log = logging.getLogger(__name__)


def application() -> ASGIApp:
    """The service with the settings of the environment: what each worker process runs."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=[parent], name="lexarium-parent", daemon=True).start()
    settings = Settings.of(os.environ)
    choose(Lengths(settings.name_limit, settings.alias_limit, settings.definition_limit))
    choose_quota(Quota(settings.proposals, settings.proposals_kb * 1024))
    shared = os.environ.get(MARK)
    database = Database(
        settings.database,
        standbys=settings.database_read,
        seconds=settings.database_seconds,
        mark=Mark(Path(shared)) if shared else None,
    )
    try:
        migrate(database)
    except Unavailable as error:
        if database.embedded:
            raise
        # A worker that takes the place of another while the database is away must not end the whole server.
        log.warning("Serving without the database until it is there: %s", error)
    figures = os.environ.get(FIGURES)
    return make_app(settings, database, Path(figures) if figures else None)


def _end_with(parent: BaseProcess) -> None:
    """End as if told to, should the process that started this one be gone: it would hold the port for good."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
