"""Measure all servers in rounds and keep the best results."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.cpu_pinning import CoreAssignment
from benchmarks.harness.read_scenarios import ReadResult, ReadScenario, measure_server
from benchmarks.harness.server_process import ServerSpec
from benchmarks.harness.tools import Tools
from benchmarks.harness.wrk import WrkRunner
from benchmarks.servers.datasette import prepare_datasette
from benchmarks.servers.drf import prepare_drf
from benchmarks.servers.lexarium import prepare_lexarium
from benchmarks.servers.nginx import prepare_nginx

SERVERS: dict[str, Callable[[BenchmarkCatalogue, Path, Tools], ServerSpec]] = {
    "lexarium": prepare_lexarium,
    "nginx": prepare_nginx,
    "drf": prepare_drf,
    "datasette": prepare_datasette,
}


@dataclass(frozen=True)
class BenchmarkPlan:
    """Size of a run; `report_progress` is called before each step."""

    rounds: int
    seconds: float
    cores: CoreAssignment
    loader: WrkRunner
    report_progress: Callable[[str], None]


def prepare_servers(
    names: Sequence[str], catalogue: BenchmarkCatalogue, folder: Path, tools: Tools, plan: BenchmarkPlan
) -> dict[str, ServerSpec]:
    """Load the catalogue into each server, each in a new folder."""
    servers = {}
    for name in names:
        plan.report_progress(f"{catalogue.title}: loading into {name}")
        server_folder = folder / name
        server_folder.mkdir(parents=True)
        servers[name] = SERVERS[name](catalogue, server_folder, tools)
    return servers


def measure_best(
    servers: Collection[ServerSpec], catalogue: BenchmarkCatalogue, plan: BenchmarkPlan
) -> dict[tuple[str, ReadScenario], ReadResult]:
    """Return the fastest result of each server and scenario, with the highest memory of any round."""
    best: dict[tuple[str, ReadScenario], ReadResult] = {}
    for number in range(1, plan.rounds + 1):
        for server in servers:
            plan.report_progress(f"{catalogue.title}: round {number} of {plan.rounds}, {server.name}")
            for scenario, result in measure_server(server, catalogue, plan.loader, plan.cores.server, plan.seconds):
                key = server.name, scenario
                best[key] = _pick_better(best.get(key, result), result)
    return best


def _pick_better(first: ReadResult, second: ReadResult) -> ReadResult:
    fastest = max(first, second, key=lambda result: result.speed.requests_per_second)
    return ReadResult(fastest.speed, max(first.memory_bytes, second.memory_bytes))
