"""Compare cached responses with uncached ones after random writes to two nodes.

Run it from the repository's root as `python -m torture.cached_responses`. It exits with 1 if a cached response is
outdated, or not what a server without a cache sends.
"""

import random
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lexarium.store.maintenance.upgrade import open_database
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path
from torture.crash import ENGINES, SETTINGS
from torture.import_crash import provide_databases

HTML = "text/html"
_ACCEPTED = (HTML, "application/json", "text/turtle")
# Depend on the index or on statistics, which follow the log in the background.
_FOLLOWING_PATHS = (
    "/",
    "/statistics",
    "/browse/concept",
    "/browse/concept/tree",
    "/search?q=a",
    "/api/v1/suggest?prefix=a",
)
_PATHS_PER_STEP = 15
# Changes to one catalogue: its lists, which are compared after each, must stay short.
_STEPS_PER_DATABASE = 200


def get(server: Server, path: str, accept: str = HTML, **headers: str) -> HttpResponse:
    """Return a response; the host is part of pages."""
    return server.get(path, **{"Accept": accept, "Host": "catalogue.example", **headers})


class RandomEditor:
    """Make random valid changes to a catalogue."""

    def __init__(self, clients: Sequence[V1Client], rng: random.Random) -> None:
        """Make each change by one of the clients."""
        self._clients = clients
        self._admin = clients[0]
        self._rng = rng
        self._records: dict[str, dict[str, Any]] = {}
        for name in ("a", "ab", "b"):
            self._create(name)

    @property
    def paths(self) -> list[str]:
        """Paths of responses that the changes may affect."""
        ids = list(self._records)
        own_paths = [
            path
            for record_id in ids
            for path in (
                f"/id/{record_id}",
                f"/id/{record_id}/history",
                f"/api/v1/concept/{record_id}",
                f"/api/v1/records/{record_id}/relations",
                f"/api/v1/records/{record_id}/history",
                f"/api/v1/records/{record_id}/ancestors",
                f"/api/v-alpha/concept?id={record_id}",
            )
        ]
        return [
            *own_paths,
            "/changes",
            "/api/v1/releases",
            "/api/v1/concept",
            "/api/v1",
            "/api/v-alpha/concept",
            "/vocabularies",
        ]

    def change(self) -> None:
        """Make one change."""
        self._admin = self._rng.choice(self._clients)
        changes = (self._create, self._rename, self._rename, self._relate, self._relate, self._unrelate, self._retire)
        self._rng.choice((*changes, self._merge, self._revert, self._set_title, self._release))()

    def _pick(self) -> dict[str, Any]:
        return self._records[self._rng.choice(list(self._records))]

    def _create(self, name: str | None = None) -> None:
        record = self._admin.create(name=name or self._rng.choice(("a", "b", "ab c")))
        self._records[record["id"]] = record

    def _send(self, method: str, record: dict[str, Any], *segments: str, **fields: Any) -> None:
        # A change may be rejected, such as one of a retired record.
        current = self._admin.send("GET", build_path(record))
        headers = {"If_Match": current.headers.get("etag", "*").partition("-")[0].rstrip('"') + '"'}
        self._admin.send(method, build_path(record, *segments), fields or None, **headers)

    def _rename(self) -> None:
        self._send("PATCH", self._pick(), name=self._rng.choice(("a", "A", "b", "c")), definition_text="Text.")

    def _relate(self) -> None:
        relation = self._rng.choice(("KINDOF", "PARTOF", "exactMatch"))
        target = "https://example.org/1" if relation == "exactMatch" else self._pick()["id"]
        self._send("PUT", self._pick(), "relations", relation=relation, target=target)

    def _unrelate(self) -> None:
        record = self._pick()
        relations = self._admin.send("GET", build_path(record)).json.get("relations", {})
        if relations:
            self._send("PATCH", record, relations={self._rng.choice(list(relations)): []})

    def _retire(self) -> None:
        self._send("DELETE", self._pick())

    def _merge(self) -> None:
        self._send("POST", self._pick(), "merge", into=self._pick()["id"])

    def _revert(self) -> None:
        record = self._pick()
        versions = self._admin.send("GET", build_path(record, "history")).json["items"]
        self._admin.send("POST", build_path(record, "revert"), {"version": 1}, If_Match=f'"{versions[0]["version"]}"')

    def _set_title(self) -> None:
        etag = self._admin.send("GET", "vocabularies/main").headers["etag"]
        title = f"Title {self._rng.random()}"
        self._admin.send("PATCH", "vocabularies/main", {"title": title}, If_Match=etag)

    def _release(self) -> None:
        self._admin.send("POST", "releases", {"name": f"r{self._rng.randrange(10**9)}"})


@dataclass(frozen=True)
class Nodes:
    """Two servers of one catalogue, one of them without a cache."""

    cached: Server
    fresh: Server
    # Requests for each path, so that each worker has answered some.
    repetitions: int

    def compare(self, path: str, accept: str) -> str | None:
        """Return how a cached response differs, or None."""
        expected = get(self.fresh, path, accept)
        for _ in range(self.repetitions):
            found = get(self.cached, path, accept)
            if (found.status, found.body) != (expected.status, expected.body):
                return f"{path} as {accept} is {found.status} and not as without a cache, {expected.status}"
            if found.headers.get("vary") != expected.headers.get("vary"):
                return f"{path} as {accept} varies by {found.headers.get('vary')}, not {expected.headers.get('vary')}"
        return None

    def agree(self, *paths: str) -> bool:
        """Return whether the pages of some paths are the same."""
        return all(get(self.cached, path).body == get(self.fresh, path).body for path in paths)


def run(url: str, workers: int, rng: random.Random, steps: int) -> list[str]:
    """Make random changes; return the differences found after one of them."""
    options = ("--workers", str(workers)) if workers > 1 else ()
    with ExitStack() as stack:
        cached = stack.enter_context(Server(url, *options, **SETTINGS))
        fresh = stack.enter_context(Server(url, LEXARIUM_CACHE_MB="0", **SETTINGS))
        nodes = Nodes(cached, fresh, 2 * workers)
        editor = RandomEditor([V1Client(cached, "admin"), V1Client(fresh, "admin")], rng)
        for _ in range(steps):
            editor.change()
            # On PostgreSQL, another node learns of a change within milliseconds.
            wait_until(lambda: nodes.agree("/api/v1", "/api/v1/releases"))
            accept = rng.choice(_ACCEPTED)
            paths = rng.sample(editor.paths, min(len(editor.paths), _PATHS_PER_STEP))
            differences = [item for path in paths if (item := nodes.compare(path, accept))]
            if differences:
                return differences
            following = rng.choice(_FOLLOWING_PATHS)
            wait_until(lambda path=following: nodes.agree(path))
    return []


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.cached_responses", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3_600, help="duration for each engine (3,600)")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="run this engine only; may be repeated")
    parser.add_argument("--workers", type=int, default=2, help="workers of the node with a cache (2)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="seed of the changes")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    failed = False
    for engine in options.engine or ENGINES:
        with TemporaryDirectory(prefix="lexarium-torture-") as name, provide_databases(engine, Path(name)) as copy:
            template = copy(None)
            open_database(template).close()
            end, changes, differences = time.monotonic() + options.seconds, 0, list[str]()
            while time.monotonic() < end and not differences:
                differences = run(copy(template), options.workers, rng, _STEPS_PER_DATABASE)
                changes += _STEPS_PER_DATABASE
        print(f"{engine}, {changes:,} changes: {len(differences)} differences")
        for difference in differences:
            print(f"  {difference}")
        failed = failed or bool(differences)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
