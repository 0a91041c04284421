"""Benchmark reads against nginx, Django REST framework and Datasette.

Run it from the repository's root as `python -m benchmarks.read`. It prints tables and writes them to
`docs/benchmarks/read.md`. It exits with 1 if a response was wrong and with 2 if it could not run. A missed target is
reported and is not an error.
"""

import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.data.catalogue import BenchmarkCatalogue, generate_catalogue, load_small_catalogue
from benchmarks.harness.cpu_pinning import choose_cores
from benchmarks.harness.report import (
    ReportTable,
    build_read_page,
    build_read_tables,
    build_target_table,
    run_and_publish,
)
from benchmarks.harness.rounds import SERVERS, BenchmarkPlan, measure_best, prepare_servers
from benchmarks.harness.server_process import ServerSpec, run_server
from benchmarks.harness.streaming import STREAMED_BODY_BYTES, measure_streaming
from benchmarks.harness.targets import TargetResult, check_read_targets, check_startup_target, check_streaming_target
from benchmarks.harness.tools import Tools, find_tools, get_versions
from benchmarks.harness.wrk import WrkRunner

ROOT = Path(__file__).parents[1]
_REAL_CATALOGUE = "LEXARIUM_REAL_CATALOGUE"
_QUICK_DEFAULTS = {"seconds": 1.0, "rounds": 1, "records": 5_000}


def main() -> int:
    """Parse the command line, run and return the exit code."""
    options = _parse_options()
    return run_and_publish(lambda: _run_with_progress(options), options.output)


def _parse_options() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.read", description="Measure reads, compared with other servers.")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each load (5)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the best counts (3)")
    parser.add_argument("--records", type=int, default=100_000, help="size of the generated catalogue (100,000)")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS), help="servers to measure (all)")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "docs" / "benchmarks" / "read.md",
        help="Markdown page (docs/benchmarks/read.md)",
    )
    parser.add_argument("--quick", action="store_true", help="one short round with a smaller catalogue")
    # The quick values are defaults, so that an option beside --quick still applies.
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**_QUICK_DEFAULTS)
    return parser.parse_args()


def _run_with_progress(options: Namespace) -> tuple[list[ReportTable], str]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Refresh rarely: drawing takes time from the core of the load.
    with Progress(*columns, refresh_per_second=1, transient=True) as progress:
        task = progress.add_task("")
        return _run(options, lambda text: progress.update(task, description=text))


def _run(options: Namespace, report_progress: Callable[[str], None]) -> tuple[list[ReportTable], str]:
    """Return the tables for the terminal, and the Markdown page."""
    report_progress("finding or installing nginx, wrk and the compared servers")
    tools = find_tools(ROOT / ".bench")
    report_progress("generating the catalogues")
    real = Path(os.environ.get(_REAL_CATALOGUE, ROOT.parent / "shared" / "cognitive-atlas"))
    small = load_small_catalogue(real, ROOT / "src" / "lexarium" / "sample")
    large = generate_catalogue(options.records)
    cores = choose_cores()
    target_results: list[TargetResult] = []
    tables: list[ReportTable] = []
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        plan = BenchmarkPlan(
            options.rounds, options.seconds, cores, WrkRunner(tools.wrk, cores.load, folder), report_progress
        )
        for catalogue, catalogue_folder in ((small, folder / "small"), (large, folder / "large")):
            servers = prepare_servers(options.servers, catalogue, catalogue_folder, tools, plan)
            # Before the rounds: the first start after an import may have more to do than later ones.
            target_results += _measure_lexarium_only(servers.get("lexarium"), catalogue, plan)
            results = measure_best(servers.values(), catalogue, plan)
            target_results += check_read_targets(results) if catalogue is small else []
            tables += build_read_tables(catalogue, results)
    targets = build_target_table(target_results)
    # On a page the targets come first; on a terminal, last, where they are seen.
    return [*tables, targets], build_read_page([targets, *tables], (small, large), _collect_versions(options, tools))


def _measure_lexarium_only(
    server: ServerSpec | None, catalogue: BenchmarkCatalogue, plan: BenchmarkPlan
) -> list[TargetResult]:
    """Measure what concerns Lexarium alone; return nothing if it is left out."""
    if server is None:
        return []
    plan.report_progress(f"{catalogue.title}: starting {server.name}")
    target_results = [check_startup_target(catalogue.title, measure_startup(server, plan.cores.server, plan.rounds))]
    if catalogue.body_bytes > STREAMED_BODY_BYTES:
        plan.report_progress(f"{catalogue.title}: streaming past the cache limit")
        target_results.append(check_streaming_target(measure_streaming(server, catalogue, plan.cores.server)))
    return target_results


def measure_startup(server: ServerSpec, core: int | None, starts: int) -> float:
    """Return the seconds to the first byte of the first response: the slowest of several starts.

    Half of the starts request one record, half the whole collection.
    """
    slowest = 0.0
    for path in (server.record_path, server.collection_path):
        for _ in range(starts):
            with run_server(server, core, path) as running_server:
                slowest = max(slowest, running_server.start_seconds)
    return slowest


def _collect_versions(options: Namespace, tools: Tools) -> dict[str, str]:
    lexarium_version = {"Lexarium": version("lexarium")} if "lexarium" in options.servers else {}
    return {**lexarium_version, "Python": platform.python_version(), **get_versions(tools)}


if __name__ == "__main__":
    sys.exit(main())
