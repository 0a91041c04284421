"""Rounds: every server one after another, several times over, and the best of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.catalogue import Catalogue
from benchmarks.cores import Cores
from benchmarks.load import Loader
from benchmarks.processes import Server
from benchmarks.reads import Read, Reading, visit
from benchmarks.servers.datasette import datasette
from benchmarks.servers.drf import drf
from benchmarks.servers.lexarium import lexarium
from benchmarks.servers.nginx import nginx
from benchmarks.tools import Tools

SERVERS: dict[str, Callable[[Catalogue, Path, Tools], Server]] = {
    "lexarium": lexarium,
    "nginx": nginx,
    "drf": drf,
    "datasette": datasette,
}


@dataclass(frozen=True)
class Plan:
    """How much is measured; `tell` is called with what happens next."""

    rounds: int
    seconds: float
    cores: Cores
    loader: Loader
    tell: Callable[[str], None]


def prepare(names: Sequence[str], catalogue: Catalogue, folder: Path, tools: Tools, plan: Plan) -> dict[str, Server]:
    """Load the catalogue into each server, in a new folder of its own under `folder`."""
    servers = {}
    for name in names:
        plan.tell(f"{catalogue.title}: loading into {name}")
        own = folder / name
        own.mkdir(parents=True)
        servers[name] = SERVERS[name](catalogue, own, tools)
    return servers


def best_readings(servers: Collection[Server], catalogue: Catalogue, plan: Plan) -> dict[tuple[str, Read], Reading]:
    """The fastest reading of each server and read, with the highest memory of any round."""
    best: dict[tuple[str, Read], Reading] = {}
    for number in range(1, plan.rounds + 1):
        for server in servers:
            plan.tell(f"{catalogue.title}: round {number} of {plan.rounds}, {server.name}")
            for read, reading in visit(server, catalogue, plan.loader, plan.cores.server, plan.seconds):
                key = server.name, read
                best[key] = _better(best.get(key, reading), reading)
    return best


def _better(one: Reading, other: Reading) -> Reading:
    fastest = max(one, other, key=lambda reading: reading.speed.requests_per_second)
    return Reading(fastest.speed, max(one.memory_bytes, other.memory_bytes))
