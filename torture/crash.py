"""Kill servers during concurrent writes; verify that nothing acknowledged is lost and no write is partial.

Run it from the repository's root as `python -m torture.crash`. It exits with 1 if the catalogue is inconsistent.
"""

import os
import random
import signal
import sys
import threading
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from lexarium.domain.account import Role
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.maintenance.index_check import check_index
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.postgres import PostgresServer
from tests.support.server import Server
from torture.expected_state import ExpectedState, Json, index_by_key
from torture.operations import OtherOperations, derive_item_facts, list_all_items
from torture.vocabulary_operations import ImportClient, VocabularyOperations
from torture.write_clients import KnownRecord, WriteClient

ENGINES = ("sqlite", "postgres")
WRITERS = 8
_START_TIMEOUT_SECONDS = 60
# Time between a server's first response to a writer and its end, from and to.
_UPTIME_SECONDS, _LONG_UPTIME_SECONDS = (0.0, 0.9), (0.9, 10.0)
# Share of servers that are killed as soon as they listen.
_KILL_AT_START_SHARE = 0.1
# Share of servers that run long: index merges and checkpoints take a while to begin.
_LONG_UPTIME_SHARE = 0.25
# Average number of acknowledged writes per kill; fewer would prove little.
_MIN_ACKNOWLEDGED = 20
# The whole database is verified after each kill, so it must stay small.
_KILLS_PER_DATABASE = 10
_INDEX_TIMEOUT_SECONDS = 200
SETTINGS = {
    "LEXARIUM_WRITE_RATE": "1000000",
    "LEXARIUM_WRITE_BURST": "1000000",
    "LEXARIUM_WEBHOOKS_PRIVATE": "yes",
}

UrlFactory = Callable[[], str]


@dataclass
class CrashTest:
    """Kill the servers of one catalogue repeatedly."""

    url: str
    workers: int
    rng: random.Random
    # Of the search index and of files to import.
    folder: Path
    expected_state: ExpectedState = field(default_factory=ExpectedState)
    writers: list[WriteClient] = field(default_factory=list)
    importer: ImportClient = field(init=False)

    @property
    def index_path(self) -> Path:
        """Return the folder of the search index."""
        return self.folder / "index"

    def run(self, kills: int) -> list[str]:
        """Kill a number of servers; return the problems found by their successors."""
        self.writers = create_writers(self.url, self.rng)
        self.importer = ImportClient(self.url, self.index_path, self.folder)
        for number in range(kills):
            problems = self.run_server_once(kill=True, label=f"after {number} kills")
            if problems:
                return problems
        return self.run_server_once(kill=False, label=f"after {kills} kills")

    def run_server_once(self, *, kill: bool, label: str) -> list[str]:
        """Start a server and verify the catalogue; then write until the server is killed."""
        options = ("--workers", str(self.workers)) if self.workers > 1 else ()
        with Server(self.url, *options, LEXARIUM_INDEX=str(self.index_path), **SETTINGS) as server:
            if kill and self.rng.random() < _KILL_AT_START_SHARE:
                _kill(server.pid)
                return []
            problems = [f"{label}: {problem}" for problem in self._find_problems(server)]
            if kill and not problems:
                self._write_until_killed(server)
            return problems

    def _find_problems(self, server: Server) -> Iterator[str]:
        """Yield problems in feed, records, log and index."""
        changes = list(_iter_feed(server))
        items = list(list_all_items(server, self.writers[0].token))
        facts = [fact for item in items for fact in derive_item_facts(item)]
        yield from self.expected_state.find_problems(changes, index_by_key(items), facts)
        yield from _compare_list_with_feed(server, changes)
        for writer in self.writers:
            yield from writer.other_operations.find_token_errors(server)
        database = Database(self.url)
        yield from check_database(database).problems
        yield from self._find_index_problems(server, database)
        database.close()

    def _find_index_problems(self, server: Server, database: Database) -> list[str]:
        """Return problems of the index once it has caught up."""
        deadline = time.monotonic() + _INDEX_TIMEOUT_SECONDS
        while True:
            server.get("/readyz")  # waits for the index for a while
            comparison = check_index(database, self.index_path)
            if not comparison.remarks:
                return comparison.problems
            if time.monotonic() > deadline:
                return comparison.problems + comparison.remarks

    def _write_until_killed(self, server: Server) -> None:
        """Repeat unanswered writes, then write more; kill the server at a random time."""
        self.expected_state.any_response.clear()
        stop = threading.Event()
        retryable = self.expected_state.take_retryable()
        with ThreadPoolExecutor(WRITERS + 1) as threads:
            importing = threads.submit(self.importer.write, self.expected_state, stop, self.rng)
            writing = [
                threads.submit(writer.write, server, self.expected_state, stop, retryable[number::WRITERS])
                for number, writer in enumerate(self.writers)
            ]
            has_response = self.expected_state.any_response.wait(_START_TIMEOUT_SECONDS)
            time.sleep(
                self.rng.uniform(*(_LONG_UPTIME_SECONDS if self.rng.random() < _LONG_UPTIME_SHARE else _UPTIME_SECONDS))
            )
            _kill(server.pid)
            stop.set()
        for future in (importing, *writing):
            future.result()
        assert has_response, "the server responded to no writer"


def create_writers(url: str, rng: random.Random) -> list[WriteClient]:
    """Create the catalogue if necessary, with the accounts of its writers."""
    database = open_database(url)
    for role in (Role.CONTRIBUTOR, Role.ADMIN):
        add_account(database, role, role)
    contributor, admin = (create_token(database, role)[1] for role in (Role.CONTRIBUTOR, Role.ADMIN))
    database.close()
    shared_records: list[KnownRecord] = []
    return [
        WriteClient(rng, admin, shared_records, OtherOperations(rng, contributor), VocabularyOperations(rng))
        for _ in range(WRITERS)
    ]


def _iter_feed(server: Server) -> Iterator[Json]:
    since = 0
    while items := server.get(f"/api/v1/changes?since={since}&limit=1000").json["items"]:
        yield from items
        since = items[-1]["seq"]


def _compare_list_with_feed(server: Server, changes: list[Json]) -> Iterator[str]:
    """Yield differences between the list of records and the feed."""
    latest = {change["id"]: change["record"] for change in changes if change["vocabulary"] == MAIN_VOCABULARY}
    listed_records = {record["id"]: record for record in server.get("/api/v-alpha/concept").json}
    published = {record_id for record_id, record in latest.items() if record["state"] == "published"}
    yield from (f"{record_id} is in only one of list and feed" for record_id in listed_records.keys() ^ published)
    for record_id in listed_records.keys() & published:
        if any(
            latest[record_id][name] != value
            for name, value in listed_records[record_id].items()
            if name in latest[record_id]
        ):
            yield f"{record_id} differs between list and feed"


def _kill(pid: int) -> None:
    """Kill a process and its children, as a power cut would."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for process_id in [pid, *map(int, children)]:
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)


@contextmanager
def _provide_databases(engine: str, folder: Path) -> Iterator[UrlFactory]:
    """Yield a function that returns the URLs of new, empty databases."""
    if engine == "sqlite":
        yield lambda: f"sqlite:///{folder}/{uuid.uuid4().hex}.db"
    else:
        with PostgresServer().init_cluster() as postgres:
            postgres.start(fsync="on")
            yield lambda: postgres.create_database(f"catalogue_{uuid.uuid4().hex}")


@dataclass
class CrashOutcome:
    """Counts and problems of a run."""

    kills: int = 0
    acknowledged: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)


def run(engine: str, workers: int, kills: int, seed: int) -> CrashOutcome:
    """Kill servers, with a new catalogue every few kills."""
    outcome = CrashOutcome()
    rng = random.Random(seed)
    description = f"{engine}, {workers} worker{'s' if workers > 1 else ''}"
    with TemporaryDirectory(prefix="lexarium-torture-") as name, _provide_databases(engine, Path(name)) as new_url:
        for number in track(range(0, kills, _KILLS_PER_DATABASE), description, console=Console(stderr=True)):
            folder = Path(name) / str(number)
            folder.mkdir()
            crash_test = CrashTest(new_url(), workers, rng, folder)
            batch_kills = min(_KILLS_PER_DATABASE, kills - number)
            outcome.problems += crash_test.run(batch_kills)
            outcome.kills += batch_kills
            outcome.acknowledged += len(crash_test.expected_state.acknowledged)
            outcome.refused += len(crash_test.expected_state.refused)
            if outcome.problems:
                break
    return outcome


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills per engine and number of workers (200)")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="run this engine only; may be repeated")
    parser.add_argument("--workers", type=int, action="append", help="number of workers; may be repeated (1 and 3)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**9), help="seed of the random requests and times"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed = False
    for engine in options.engine or ENGINES:
        for workers in options.workers or (1, 3):
            start = time.monotonic()
            outcome = run(engine, workers, options.kills, options.seed)
            seconds = (time.monotonic() - start) / max(1, outcome.kills)
            if outcome.acknowledged < _MIN_ACKNOWLEDGED * outcome.kills:
                outcome.problems.append(f"fewer than {_MIN_ACKNOWLEDGED} writes were acknowledged per kill")
            counts = (
                f"{outcome.acknowledged:,} acknowledged, {outcome.refused:,} refused, {len(outcome.problems)} problems"
            )
            print(f"{engine}, {workers} workers, {outcome.kills} kills: {counts}; {seconds:.1f} s per kill", flush=True)
            for problem in outcome.problems[:20]:
                print(f"  {problem}")
            failed = failed or bool(outcome.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
