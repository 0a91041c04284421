"""Exchange: how fast a catalogue comes in and goes out, and in how much memory.

Run it from the repository's root as `python -m benchmarks.exchange`. It prints tables and writes them to
`docs/benchmarks-exchange.md`. It ends with 1 where what came in or went out is not what it should be.
"""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.cores import choose_cores, pinned
from benchmarks.errors import ServerFailed, WrongAnswer
from benchmarks.made import CLASSES, made_records
from benchmarks.records import write_array
from benchmarks.report import TARGETED, Table, page_of, published, verdict_table
from benchmarks.stanzas import write_stanzas
from benchmarks.targets import Verdict

ROOT = Path(__file__).parents[1]
_COMMAND = (sys.executable, "-m", "lexarium")

TERMS = 12_000
"""Of the OBO file."""
SMALLER = 10
"""So many times fewer records show whether memory grows with them."""

_LOOK_SECONDS = 0.02
_LEAST_RECORDS = 20_000
_MOST_IMPORT_MB = 300
_LEAST_MB = 50
_MOST_GROWTH_MB = 10
_MOST_OBO_SECONDS = 10
_FAST = ("v-alpha", "jsonl")
"""The formats that the targets for writing are meant for: one as it is served, one with everything."""
_OTHERS = ("csv", "skos", "obo")
ROUNDS = 3


@dataclass(frozen=True)
class Run:
    """What a command took, and what it printed."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    printed: list[str]

    @property
    def peak_mb(self) -> float:
        """The most memory it took, in megabytes."""
        return self.peak_bytes / 1e6


@dataclass(frozen=True)
class Written:
    """An export."""

    run: Run
    size: int

    @property
    def mb_per_second(self) -> float:
        """How much came out a second."""
        return self.size / 1e6 / self.run.seconds


class Bench:
    """Runs commands, each on one core, with a catalogue of its own folder."""

    def __init__(self, folder: Path, core: int | None) -> None:
        self._folder = folder
        self._core = core

    def run(self, database: str, *arguments: str) -> Run:
        """Run a command of ours to its end."""
        return self._timed([*_COMMAND, *arguments, "--database", f"sqlite:///{self._folder / database}"])

    def bare(self, file: str) -> Run:
        """Load a file as a bare script does."""
        database = self._folder / "bare.db"
        database.unlink(missing_ok=True)
        return self._timed([sys.executable, "-m", "benchmarks.bare", file, str(database)])

    def _timed(self, command: list[str]) -> Run:
        printed = self._folder / "printed"
        with printed.open("w") as output, pinned(self._core):
            began = time.perf_counter()
            process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=subprocess.STDOUT)
        peak, ended, status = 0, 0, 0
        while not ended:
            time.sleep(_LOOK_SECONDS)
            peak = max(peak, _peak_bytes(process.pid))
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        taken = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise ServerFailed(f"{' '.join(command[:4])} failed: {printed.read_text().strip()[-500:]}")
        return Run(taken, used.ru_utime + used.ru_stime, peak, printed.read_text().splitlines())

    def load(self, database: str, count: int, *files: str) -> Run:
        """Import files that hold so many records into a new catalogue."""
        for path in self._folder.glob(f"{database}*"):
            path.unlink()
        run = self.run(database, "import", *files, "--json")
        report = json.loads(run.printed[-1])
        if sum(report["created"].values()) != count or report["refused"]:
            raise WrongAnswer(f"{report['created']} came in of {count:,} records.")
        return run

    def export(self, database: str, format: str) -> Written:
        """Export a whole catalogue."""
        path = self._folder / f"out.{format}"
        run = self.run(database, "export", "--format", format, "-o", str(path))
        size = path.stat().st_size
        path.unlink()
        return Written(run, size)


def measure(bench: Bench, folder: Path, records: int) -> list[Table]:
    """All of it."""
    sizes = {"small.db": records // SMALLER, "large.db": records}
    loads, bare = {}, {}
    write_array(CLASSES, folder / "concept_class.json")
    for database, count in sizes.items():
        write_array(made_records(count), folder / "concept.json")
        rounds = [
            (
                bench.bare("concept.json"),
                bench.load(database, count + len(CLASSES), "concept_class.json", "concept.json"),
            )
            for _ in range(ROUNDS)
        ]
        bare[database], loads[database] = (min(runs, key=_taken) for runs in zip(*rounds, strict=True))
    again = bench.run("large.db", "import", "concept.json", "--json")
    if json.loads(again.printed[-1])["changed"]:
        raise WrongAnswer("The same file imported again changed something.")
    (folder / "concept.json").unlink()
    write_stanzas(folder / "disorder.obo", TERMS)
    obo = bench.load("obo.db", TERMS, "disorder.obo")
    written = {
        (name, database): min((bench.export(database, name) for _ in range(ROUNDS)), key=lambda each: _taken(each.run))
        for name in _FAST
        for database in sizes
    }
    written |= {(name, "small.db"): bench.export("small.db", name) for name in _OTHERS}
    return [
        verdict_table(_verdicts(records, loads, obo, written)),
        Table(
            "In",
            ("file", "records", "seconds", "of processor", "records/s", "memory MB"),
            _in_rows(sizes, loads, bare, again, obo),
        ),
        Table(
            "Out",
            ("format", "records", "MB", "seconds", "of processor", "MB/s", "memory MB"),
            _out_rows(sizes, written),
        ),
    ]


def _verdicts(records: int, loads: dict[str, Run], obo: Run, written: dict[tuple[str, str], Written]) -> list[Verdict]:
    load = loads["large.db"]
    rate = records / load.seconds
    verdicts = [
        Verdict(f"v-alpha JSON in, at least {_LEAST_RECORDS:,} records/s", f"{rate:,.0f}", rate >= _LEAST_RECORDS),
        Verdict(f"its memory, at most {_MOST_IMPORT_MB} MB", f"{load.peak_mb:.0f} MB", load.peak_mb <= _MOST_IMPORT_MB),
    ]
    for name in _FAST:
        small, large = written[name, "small.db"], written[name, "large.db"]
        growth = large.run.peak_mb - small.run.peak_mb
        speed = large.mb_per_second
        verdicts += [
            Verdict(f"{name} out, at least {_LEAST_MB} MB/s", f"{speed:.0f} MB/s", speed >= _LEAST_MB),
            Verdict(
                f"its memory with {SMALLER} times as many records, at most {_MOST_GROWTH_MB} MB more",
                f"{growth:.0f} MB",
                growth <= _MOST_GROWTH_MB,
            ),
        ]
    target = f"an OBO file of {TERMS:,} terms in, at most {_MOST_OBO_SECONDS} s"
    return [*verdicts, Verdict(target, f"{obo.seconds:.1f} s", obo.seconds <= _MOST_OBO_SECONDS)]


def _in_rows(
    sizes: dict[str, int], loads: dict[str, Run], bare: dict[str, Run], again: Run, obo: Run
) -> list[Sequence[str]]:
    rows = [("v-alpha JSON", sizes[database], run) for database, run in loads.items()]
    rows += [("the same by a bare script", sizes[database], run) for database, run in bare.items()]
    rows += [("the same again, unchanged", sizes["large.db"], again), ("OBO", TERMS, obo)]
    return [
        (name, f"{count:,}", *_seconds(run), f"{count / run.seconds:,.0f}", f"{run.peak_mb:.0f}")
        for name, count, run in rows
    ]


def _out_rows(sizes: dict[str, int], written: dict[tuple[str, str], Written]) -> list[Sequence[str]]:
    return [
        (
            name,
            f"{sizes[database]:,}",
            f"{each.size / 1e6:.0f}",
            *_seconds(each.run),
            f"{each.mb_per_second:.0f}",
            f"{each.run.peak_mb:.0f}",
        )
        for (name, database), each in written.items()
    ]


def _taken(run: Run) -> float:
    return run.seconds


def _seconds(run: Run) -> tuple[str, str]:
    return f"{run.seconds:.1f}", f"{run.processor_seconds:.1f}"


def _peak_bytes(pid: int) -> int:
    """The most memory that a process has had so far, as the kernel counts it; 0 where it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.exchange", description="Measure importing and exporting.")
    parser.add_argument("--records", type=int, default=TARGETED, help="how many there are (1,000,000)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-exchange.md")
    options = parser.parse_args()
    return published(lambda: _run(options.records), lambda tables: _page(tables, options.records), options.output)


def _run(records: int) -> list[Table]:
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        return measure(Bench(Path(name), choose_cores().server), Path(name), records)


def _page(tables: list[Table], records: int) -> str:
    method = (
        f"{records:,} made concepts (every field, names and definitions of words that follow"
        " Zipf's law) as one v-alpha JSON file come into a new catalogue on SQLite, then all of it goes out again; each"
        " is a `lexarium` command on one core, timed from its start to its end, durable commit included; of"
        f" {ROUNDS} rounds the best, since others use the same machine. Memory is the most that was resident at once,"
        " shared libraries included. The bare script is the least that anyone would write: it checks nothing, keeps no"
        " history, finds by id and name alone, and holds the whole file in memory; it runs before each import."
    )
    return page_of("exchange", method, tables, records)


if __name__ == "__main__":
    sys.exit(main())
