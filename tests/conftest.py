"""Fixtures: new databases on both engines, servers, a browser."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lexarium.domain.vocabulary import register_vocabularies
from lexarium.services.transfer.sample import sample_files
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.browser import CHROMIUM, DRIVER, Browser, is_browser_available, open_browser
from tests.support.curated_sample import apply_sample_edits
from tests.support.databases import ENGINES, Databases, DatabaseUrlFactory, run_postgres
from tests.support.fork_server import start_fork_server
from tests.support.overrides import apply_overrides
from tests.support.postgres import ensure_system_user
from tests.support.server import Server

TESTS = Path(__file__).parent
# `make test` unpacks programs here.
TOOLS = TESTS.parent / ".tools"
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *(str(TOOLS / "usr" / name) for name in ("bin", "sbin"))])

# Tests create some hundred thousand files, most of them of databases, which costs much less in memory than on a disk.
MEMORY = Path("/dev/shm")
OWN_FOLDER = ""
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    OWN_FOLDER = os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="lexarium-", dir=MEMORY)

# A shell ignores SIGINT in background jobs, and the processes that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_CATALOGUE = Path(os.environ.get("LEXARIUM_REAL_CATALOGUE", TESTS.parent / ".." / "shared" / "cognitive-atlas"))
REAL_VOCABULARIES = Path(os.environ.get("LEXARIUM_REAL_VOCABULARIES", TESTS.parent / ".." / "shared" / "vocabularies"))

# Modules that take longest.
LONG_MODULES = {
    "tests/access/test_roles.py",
    "tests/access/test_security.py",
    "tests/cluster/test_next_request.py",
    "tests/cluster/test_outages.py",
    "tests/formats/test_export.py",
    "tests/formats/test_import.py",
    "tests/formats/test_other_programs.py",
    "tests/formats/test_rdf_round_trip.py",
    "tests/formats/test_real_vocabularies.py",
    "tests/formats/test_vocabulary_fuzz.py",
    "tests/http/test_fuzzing.py",
    "tests/http/test_shared_responses.py",
    "tests/http/test_slow_clients.py",
    "tests/pages/test_browser.py",
    "tests/pages/test_browser_admin.py",
    "tests/pages/test_browser_curate.py",
    "tests/project/test_docs.py",
    "tests/store/test_faults.py",
    "tests/store/test_full_disk.py",
    "tests/store/test_upgrade.py",
    "tests/v1/test_v1.py",
    "tests/v1/test_v1_model.py",
    "tests/v1/test_v1_schema.py",
    "tests/v1/test_webhooks.py",
}

# Fixtures of data that take long to import.
REAL_DATA = {"real_catalogue", "real_vocabularies"}

# Collecting thousands of tests leaves little garbage, and the collector would visit all of them each time.
gc.disable()

# Tests also run on busy machines.
settings.register_profile("lexarium", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lexarium")


# What all test processes share until the end of the session.
shared_stack = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    apply_overrides()
    ensure_system_user()  # before there are several test processes
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    start_fork_server()
    if config.getoption("numprocesses", None):
        os.environ["LEXARIUM_TEST_POSTGRES"] = shared_stack.enter_context(run_postgres())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    shared_stack.close()
    if OWN_FOLDER and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(OWN_FOLDER, ignore_errors=True)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests on PostgreSQL as `full`, except in modules marked `both_engines`, and those on real data.

    Run the modules that take longest first: else one process would still run them when the others have ended.
    """
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONG_MODULES)
    for item in items:
        if not REAL_DATA.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("full")
        parameters = getattr(item, "callspec", None)
        if parameters and "postgres" in parameters.id.split("-") and not item.get_closest_marker("both_engines"):
            item.add_marker("full")


@pytest.fixture(autouse=True, scope="module")
def forget_vocabularies() -> Iterator[None]:
    """Leave no vocabulary of this process to the tests of another module."""
    yield
    register_vocabularies([])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a PostgreSQL server."""
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Databases:
    base = tmp_path_factory.getbasetemp()
    return Databases(
        tmp_path_factory.mktemp("databases"),
        base.parent if hasattr(request.config, "workerinput") else base,
        lambda: request.getfixturevalue("postgres_server"),
    )


@pytest.fixture(autouse=True, scope="module")
def drop_databases(databases: Databases) -> Iterator[None]:
    """Drop the databases on PostgreSQL after each module."""
    yield
    databases.drop()


@pytest.fixture(scope="session")
def new_url(databases: Databases) -> DatabaseUrlFactory:
    """Function that creates an empty catalogue and returns its URL."""
    return databases.make_migrated


@pytest.fixture(scope="session")
def sample_url(databases: Databases) -> DatabaseUrlFactory:
    """Function that creates a copy of the sample catalogue and returns its URL."""
    return databases.make_sample


@pytest.fixture(scope="session")
def blank_url(databases: Databases) -> DatabaseUrlFactory:
    """Function that returns the URL of a database without tables (PostgreSQL) or without a file (SQLite)."""
    return databases.make_blank


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> str:
    """URL of an empty catalogue, on each engine."""
    return new_url(request.param)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """Empty catalogue, on each engine."""
    new_database = open_database(url)
    yield new_database
    new_database.close()


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    """Server of an empty catalogue, on each engine."""
    with Server(url) as running_server:
        yield running_server


@pytest.fixture(scope="module", params=ENGINES)
def shared_server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server shared by the tests of a module, on each engine: for tests that leave nothing behind."""
    with Server(new_url(request.param)) as server:
        yield server


@pytest.fixture(scope="module", params=ENGINES)
def sample(request: pytest.FixtureRequest, sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of the sample catalogue shared by the tests of a module, on each engine."""
    with Server(sample_url(request.param)) as server:
        server.wait_until_ready()
        yield server


@pytest.fixture(scope="module")
def sqlite_sample(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of the sample catalogue shared by the tests of a module, on SQLite."""
    with Server(sample_url("sqlite")) as server:
        yield server


@pytest.fixture(scope="session")
def sample_paths() -> Iterator[list[Path]]:
    """Files of the sample catalogue."""
    with sample_files() as paths:
        yield paths


@pytest.fixture(scope="session")
def real_catalogue() -> Path:
    """Folder of the real catalogue; tests that use it are skipped without it."""
    if not REAL_CATALOGUE.is_dir():
        pytest.skip("no real catalogue: LEXARIUM_REAL_CATALOGUE names its folder")
    return REAL_CATALOGUE


@pytest.fixture(scope="session")
def real_vocabularies() -> Path:
    """Folder of real vocabularies; tests that use them are skipped without it."""
    if not REAL_VOCABULARIES.is_dir():
        pytest.skip("no real vocabularies: LEXARIUM_REAL_VOCABULARIES names their folder")
    return REAL_VOCABULARIES


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Browser]:
    """Browser shared by the tests of a process."""
    if not is_browser_available():
        pytest.skip(
            f"no browser: {CHROMIUM} and {DRIVER} are not both there (apt-get install chromium chromium-driver)"
        )
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def curated_server(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of the sample catalogue with some edits, for tests that do not change it."""
    with Server(sample_url("sqlite")) as server:
        apply_sample_edits(server)
        yield server


@pytest.fixture
def browser(shared_browser: Browser, curated_server: Server) -> Iterator[Browser]:
    """Fresh browser on the curated sample; fails the test if its console shows an error."""
    shared_browser.base_url = f"http://127.0.0.1:{curated_server.port}"
    shared_browser.reset()
    yield shared_browser
    assert shared_browser.console_errors() == []
