"""The one place that wires settings, store, services and web."""

import os

from starlette.types import ASGIApp

from lexarium.domain.lengths import Lengths, choose
from lexarium.settings import Settings
from lexarium.store.migrate import open_database
from lexarium.web.app import make_app


def application() -> ASGIApp:
    """The service with the settings of the environment: what each worker process runs."""
    settings = Settings.read(os.environ)
    choose(Lengths(settings.name_limit, settings.alias_limit, settings.definition_limit))
    return make_app(settings, open_database(settings.database))
