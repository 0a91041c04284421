"""Application factory: wires settings, store and web."""

import logging
import multiprocessing
import os
import signal
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path

from starlette.types import ASGIApp

from lexarium.domain.errors import DatabaseUnavailable
from lexarium.domain.text.limits import InputLimits, set_input_limits
from lexarium.settings import METRICS_DIR_VARIABLE, NODE_STATE_VARIABLE, Settings
from lexarium.store.database import Database
from lexarium.store.engine.node_state import NodeState
from lexarium.store.maintenance.upgrade import upgrade_schema
from lexarium.web.app import create_app

logger = logging.getLogger(__name__)


def create_application() -> ASGIApp:
    """Return the service with the settings of the environment, as each worker process runs it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with_parent, args=[parent], name="lexarium-parent", daemon=True).start()
    settings = Settings.from_environment()
    text_limits = settings.name_limit, settings.alias_limit, settings.definition_limit
    set_input_limits(InputLimits(*text_limits, settings.proposals, settings.proposals_kb * 1024))
    node_state_path = os.environ.get(NODE_STATE_VARIABLE)
    database = Database(
        settings.database,
        standbys=settings.database_read,
        statement_timeout=settings.database_seconds,
        node_state=NodeState(Path(node_state_path)) if node_state_path else None,
    )
    try:
        upgrade_schema(database)
    except DatabaseUnavailable as error:
        if database.is_embedded:
            raise
        # A worker that is restarted while the database is unavailable must not stop the whole server.
        logger.warning("Serving without the database until it is available: %s", error)
    metrics_dir = os.environ.get(METRICS_DIR_VARIABLE)
    return create_app(settings, database, Path(metrics_dir) if metrics_dir else None)


def _exit_with_parent(parent: BaseProcess) -> None:
    """Terminate this worker when its parent process is gone: otherwise it would keep the port."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
