"""Killing a server under concurrent writes, over and over: nothing acknowledged is lost, nothing is there in part.

Run it from the repository's root as `python -m torture.crash`. It ends with 1 where the catalogue disagrees.
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

from lexarium.domain.accounts import Role
from lexarium.service.access import add_account, create_token
from lexarium.service.checking import check
from lexarium.service.indexed import compare
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.nursery import Child
from tests.postgres import Postgres
from tests.server import Server
from torture.affairs import Affairs, everything, facts_besides
from torture.ledger import Json, Ledger, by_key
from torture.writers import Term, Writer

ENGINES = ("sqlite", "postgres")
WRITERS = 8
_LONGEST_START = 60
_LIFE, _LONG_LIFE = (0.0, 0.9), (0.9, 10.0)
"""In seconds: how long after its first answer to a writer a server is killed, at the least and at the most."""
_STILLBORN = 0.1
"""The share of servers that are killed as soon as they listen."""
_LONG_LIVED = 0.25
"""The share of servers that live long: merges of the index, and checkpoints, come only after a while."""
_LEAST_ACKNOWLEDGED = 20
"""How many writes are acknowledged for each kill, on average; else too few were under way to show anything."""
_KILLS_OF_ONE = 10
"""How many servers of one catalogue are killed. All of it is looked at after each, so it must stay small."""
_CATCHING_UP = 200
SETTINGS = {
    "LEXARIUM_WRITE_RATE": "1000000",
    "LEXARIUM_WRITE_BURST": "1000000",
    "LEXARIUM_WEBHOOKS_PRIVATE": "yes",
}

NewUrl = Callable[[], str]


class Forked(Server):
    """A server whose processes are forked from one that has everything loaded: it starts in a fraction of a second."""

    def _started(self) -> Child:
        return Child(self._arguments, self._environment)


@dataclass
class Crash:
    """One catalogue whose servers are killed."""

    url: str
    workers: int
    chance: random.Random
    index: Path
    ledger: Ledger = field(default_factory=Ledger)
    writers: list[Writer] = field(default_factory=list)

    def run(self, kills: int) -> list[str]:
        """Kill so many servers: what was wrong with the catalogue once the next had come up."""
        self.writers = writers_of(self.url, self.chance)
        for number in range(kills):
            problems = self.live(killed=True, what=f"after {number} kills")
            if problems:
                return problems
        return self.live(killed=False, what=f"after {kills} kills")

    def live(self, *, killed: bool, what: str) -> list[str]:
        """Start a server and look at the catalogue through it; then write to it until it is killed."""
        options = ("--workers", str(self.workers)) if self.workers > 1 else ()
        with Forked(self.url, *options, LEXARIUM_INDEX=str(self.index), **SETTINGS) as server:
            if killed and self.chance.random() < _STILLBORN:
                _kill(server.pid)
                return []
            problems = [f"{what}: {problem}" for problem in self._problems(server)]
            if killed and not problems:
                self._write_until_killed(server)
            return problems

    def _problems(self, server: Server) -> Iterator[str]:
        """What is wrong, in feed, record, log and index."""
        changes = list(_feed(server))
        things = list(everything(server, self.writers[0].token))
        facts = [fact for thing in things for fact in facts_besides(thing)]
        yield from self.ledger.problems(changes, by_key(things), facts)
        yield from _unlisted(server, changes)
        for writer in self.writers:
            yield from writer.affairs.misjudged(server)
        database = Database(self.url)
        yield from check(database).problems
        yield from self._unindexed(server, database)
        database.close()

    def _unindexed(self, server: Server, database: Database) -> list[str]:
        """What is wrong with the index once it has caught up."""
        end = time.monotonic() + _CATCHING_UP
        while True:
            server.get("/readyz")  # which waits for the index, for a while
            compared = compare(database, self.index)
            if not compared.remarks:
                return compared.problems
            if time.monotonic() > end:
                return compared.problems + compared.remarks

    def _write_until_killed(self, server: Server) -> None:
        """Send again what had no answer, then go on; kill the server at a random moment."""
        self.ledger.heard.clear()
        stop = threading.Event()
        again = self.ledger.again()
        with ThreadPoolExecutor(WRITERS) as threads:
            writing = [
                threads.submit(writer.write, server, self.ledger, stop, again[number::WRITERS])
                for number, writer in enumerate(self.writers)
            ]
            answered = self.ledger.heard.wait(_LONGEST_START)
            time.sleep(self.chance.uniform(*(_LONG_LIFE if self.chance.random() < _LONG_LIVED else _LIFE)))
            _kill(server.pid)
            stop.set()
        for each in writing:
            each.result()
        assert answered, "the server answered no writer"


def writers_of(url: str, chance: random.Random) -> list[Writer]:
    """Those who write to a catalogue, which is made where it is not there."""
    database = open_database(url)
    for role in (Role.CONTRIBUTOR, Role.ADMIN):
        add_account(database, role, role)
    contributor, admin = (create_token(database, role)[1] for role in (Role.CONTRIBUTOR, Role.ADMIN))
    database.close()
    contested: list[Term] = []
    return [Writer(chance, admin, contested, Affairs(chance, contributor)) for _ in range(WRITERS)]


def _feed(server: Server) -> Iterator[Json]:
    since = 0
    while items := server.get(f"/api/v1/changes?since={since}&limit=1000").json["items"]:
        yield from items
        since = items[-1]["seq"]


def _unlisted(server: Server, changes: list[Json]) -> Iterator[str]:
    """How the list of records differs from what the feed says of them."""
    last = {change["id"]: change["record"] for change in changes}
    listed = {record["id"]: record for record in server.get("/api/v-alpha/concept").json}
    published = {each for each, record in last.items() if record["state"] == "published"}
    yield from (f"{each} is listed, or not, against what the feed says" for each in listed.keys() ^ published)
    for each in listed.keys() & published:
        if any(last[each][name] != value for name, value in listed[each].items() if name in last[each]):
            yield f"{each} is listed as it is not in the feed"


def _kill(pid: int) -> None:
    """Kill a process and its children, as a power cut would."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in [pid, *map(int, children)]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextmanager
def _catalogues(engine: str, folder: Path) -> Iterator[NewUrl]:
    """Gives the addresses of new, empty databases."""
    if engine == "sqlite":
        yield lambda: f"sqlite:///{folder}/{uuid.uuid4().hex}.db"
    else:
        with Postgres().make() as postgres:
            postgres.start(fsync="on")
            yield lambda: postgres.new_database(f"catalogue_{uuid.uuid4().hex}")


@dataclass
class Outcome:
    """What came of killing servers."""

    kills: int = 0
    acknowledged: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)


def run(engine: str, workers: int, kills: int, seed: int) -> Outcome:
    """Kill servers so many times, of a new catalogue every few times: what came of it."""
    outcome = Outcome()
    chance = random.Random(seed)
    told = f"{engine}, {workers} worker{'s' if workers > 1 else ''}"
    with TemporaryDirectory(prefix="lexarium-torture-") as name, _catalogues(engine, Path(name)) as new_url:
        for number in track(range(0, kills, _KILLS_OF_ONE), told, console=Console(stderr=True)):
            crash = Crash(new_url(), workers, chance, Path(name) / f"index-{number}")
            of_one = min(_KILLS_OF_ONE, kills - number)
            outcome.problems += crash.run(of_one)
            outcome.kills += of_one
            outcome.acknowledged += len(crash.ledger.acknowledged)
            outcome.refused += len(crash.ledger.refused)
            if outcome.problems:
                break
    return outcome


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each engine with each number of workers (200)")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="one of them alone")
    parser.add_argument("--workers", type=int, action="append", help="how many a server has (1, and then 3)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of what is asked, and when")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed = False
    for engine in options.engine or ENGINES:
        for workers in options.workers or (1, 3):
            began = time.monotonic()
            done = run(engine, workers, options.kills, options.seed)
            seconds = (time.monotonic() - began) / max(1, done.kills)
            if done.acknowledged < _LEAST_ACKNOWLEDGED * done.kills:
                done.problems.append(f"fewer than {_LEAST_ACKNOWLEDGED} writes were acknowledged for each kill")
            told = f"{done.acknowledged:,} acknowledged, {done.refused:,} refused, {len(done.problems)} problems"
            print(f"{engine}, {workers} workers, {done.kills} kills: {told}; {seconds:.1f} s a kill", flush=True)
            for problem in done.problems[:20]:
                print(f"  {problem}")
            failed = failed or bool(done.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
