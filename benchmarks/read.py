"""Reading, side by side: Lexarium, nginx, Django REST framework and Datasette.

Run it from the repository's root as `python -m benchmarks.read`. It prints tables and writes them to
`docs/benchmarks.md`. It ends with 1 where a server's answer was wrong and 2 where it could not run; a target
that is missed is reported, and no error.
"""

import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.catalogue import Catalogue, about_one_megabyte, made
from benchmarks.cores import choose_cores
from benchmarks.errors import BenchmarkError, WrongAnswer
from benchmarks.load import Loader
from benchmarks.processes import Server
from benchmarks.report import Table, markdown, reading_tables, show, verdict_table
from benchmarks.rounds import SERVERS, Plan, best_readings, prepare
from benchmarks.starting import slowest_start
from benchmarks.streaming import STREAMED_BODY_BYTES, stream
from benchmarks.targets import Verdict, read_verdicts, start_verdict, streaming_verdict
from benchmarks.tools import Tools, find_tools, versions

ROOT = Path(__file__).parents[1]
_REAL_CATALOGUE = "LEXARIUM_REAL_CATALOGUE"
_QUICK = {"seconds": 1.0, "rounds": 1, "records": 5_000}


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    options = _options()
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    try:
        # Drawn seldom: drawing takes time from the core that the load runs on.
        with Progress(*columns, console=console, refresh_per_second=1, transient=True) as progress:
            task = progress.add_task("")
            tables, page = _run(options, lambda text: progress.update(task, description=text))
    except BenchmarkError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1 if isinstance(error, WrongAnswer) else 2
    show(tables, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    console.print(f"Written to {options.output}.", highlight=False)
    return 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.read", description="Measure reading, side by side with peers.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of load for each figure of a round (5)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts (3)")
    parser.add_argument("--records", type=int, default=100_000, help="in the made catalogue (100000)")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS), help="all, unless named")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the Markdown page")
    parser.add_argument("--quick", action="store_true", help="one short round and a smaller made catalogue")
    # The quick figures are defaults, so that an option beside --quick still holds.
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**_QUICK)
    return parser.parse_args()


def _run(options: Namespace, tell: Callable[[str], None]) -> tuple[list[Table], str]:
    """The tables for the terminal, and the Markdown page."""
    tell("finding or installing nginx, wrk and the peers")
    tools = find_tools(ROOT / ".bench")
    tell("making the catalogues")
    real = Path(os.environ.get(_REAL_CATALOGUE, ROOT.parent / "shared" / "cognitive-atlas"))
    small = about_one_megabyte(real, ROOT / "src" / "lexarium" / "sample")
    large = made(options.records)
    cores = choose_cores()
    verdicts: list[Verdict] = []
    tables: list[Table] = []
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        plan = Plan(options.rounds, options.seconds, cores, Loader(tools.wrk, cores.load, folder), tell)
        for catalogue, own in ((small, folder / "small"), (large, folder / "large")):
            servers = prepare(options.servers, catalogue, own, tools, plan)
            # Before the rounds: the first start after an import may have more to do than a later one.
            verdicts += _lexarium_verdicts(servers.get("lexarium"), catalogue, plan)
            readings = best_readings(servers.values(), catalogue, plan)
            verdicts += read_verdicts(readings) if catalogue is small else []
            tables += reading_tables(catalogue, readings)
    targets = verdict_table(verdicts)
    # On a page the targets come first; on a terminal the last lines are the ones that are seen.
    return [*tables, targets], markdown([targets, *tables], (small, large), _versions(options, tools))


def _lexarium_verdicts(server: Server | None, catalogue: Catalogue, plan: Plan) -> list[Verdict]:
    """What is measured at Lexarium alone; nothing where it is left out."""
    if server is None:
        return []
    plan.tell(f"{catalogue.title}: starting {server.name}")
    verdicts = [start_verdict(catalogue.title, slowest_start(server, plan.cores.server, plan.rounds))]
    if catalogue.body_bytes > STREAMED_BODY_BYTES:
        plan.tell(f"{catalogue.title}: streaming past the cache limit")
        verdicts.append(streaming_verdict(stream(server, catalogue, plan.cores.server)))
    return verdicts


def _versions(options: Namespace, tools: Tools) -> dict[str, str]:
    own = {"Lexarium": version("lexarium")} if "lexarium" in options.servers else {}
    return {**own, "Python": platform.python_version(), **versions(tools)}


if __name__ == "__main__":
    sys.exit(main())
