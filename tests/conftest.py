"""What the tests share: fresh databases on both engines, and real servers over HTTP."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lexarium.services.transfer.sample import sample_files
from lexarium.store.database import Database
from lexarium.store.upgrade import open_database
from tests.support.browser import CHROMIUM, DRIVER, Browser, is_browser_available, open_browser
from tests.support.curated_sample import apply_sample_edits
from tests.support.databases import ENGINES, Databases, DatabaseUrlFactory, run_postgres
from tests.support.overrides import apply_overrides
from tests.support.postgres import ensure_system_user
from tests.support.server import Server

TOOLS = Path(__file__).parents[1] / ".tools"
"""Programs that `make test` unpacks."""
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *(str(TOOLS / "usr" / name) for name in ("bin", "sbin"))])

# Where this is run in the background of a shell, SIGINT is ignored, and would be by all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_CATALOGUE = Path(
    os.environ.get("LEXARIUM_REAL_CATALOGUE", Path(__file__).parents[1] / ".." / "shared" / "cognitive-atlas")
)


# A busy machine is slow, and that is no fault of a test.
settings.register_profile("lexarium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lexarium")


def pytest_configure() -> None:
    apply_overrides()
    ensure_system_user()  # before there are several processes that need it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-all` what runs on PostgreSQL, but for the modules that are marked `both_engines`."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters and "postgres" in parameters.id.split("-") and not item.get_closest_marker("both_engines"):
            item.add_marker("full")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Databases:
    """Makes fresh databases."""
    return Databases(tmp_path_factory.mktemp("databases"), lambda: request.getfixturevalue("postgres_server"))


@pytest.fixture(scope="session")
def new_url(databases: Databases) -> DatabaseUrlFactory:
    """Makes an empty catalogue and returns its URL."""
    return databases.make_migrated


@pytest.fixture(scope="session")
def blank_url(databases: Databases) -> DatabaseUrlFactory:
    """Returns the URL of a database that does not exist yet (SQLite) or has no tables (PostgreSQL)."""
    return databases.make_blank


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> str:
    """The address of a fresh database, on each engine in turn."""
    return new_url(request.param)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """A fresh, empty catalogue, on each engine in turn."""
    new_database = open_database(url)
    yield new_database
    new_database.close()


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    """A server of an empty catalogue, on each engine in turn."""
    with Server(url) as running_server:
        yield running_server


@pytest.fixture(scope="module", params=ENGINES)
def shared_server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """A server that the tests of a module share, on each engine in turn: for what leaves nothing behind."""
    with Server(new_url(request.param)) as server:
        yield server


@pytest.fixture(scope="session")
def sample_paths() -> Iterator[list[Path]]:
    """The files of the sample catalogue."""
    with sample_files() as paths:
        yield paths


@pytest.fixture(scope="session")
def real_catalogue() -> Path:
    """The folder of the real catalogue; tests that use it skip where it is absent."""
    if not REAL_CATALOGUE.is_dir():
        pytest.skip("no real catalogue: LEXARIUM_REAL_CATALOGUE names its folder")
    return REAL_CATALOGUE


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Browser]:
    """The one browser of a process that tests."""
    if not is_browser_available():
        pytest.skip(
            f"no browser: {CHROMIUM} and {DRIVER} are not both there (apt-get install chromium chromium-driver)"
        )
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def curated_server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """A server of the sample catalogue in which a curator has been at work, for tests that leave it as it is."""
    with Server(new_url("sqlite"), "--sample") as server:
        apply_sample_edits(server)
        yield server


@pytest.fixture
def browser(shared_browser: Browser, curated_server: Server) -> Iterator[Browser]:
    """A browser that has never been here, before that catalogue; its console must have had nothing to say."""
    shared_browser.base_url = f"http://127.0.0.1:{curated_server.port}"
    shared_browser.reset()
    yield shared_browser
    assert shared_browser.console_errors() == []
