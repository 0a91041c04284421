"""Benchmark import and export: speed and memory.

Run it from the repository's root as `python -m benchmarks.import_export`. It prints tables and writes them to
`docs/benchmarks/import-export.md`. It exits with 1 if an import or export is wrong.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data.generated import CLASSES, generate_records
from benchmarks.data.obo_file import write_obo_file
from benchmarks.data.records import write_array
from benchmarks.harness.command_line import add_records_option, create_parser
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import SetupError, UnexpectedResponse
from benchmarks.harness.report import ReportTable, build_page, build_target_table, run_and_publish
from benchmarks.harness.targets import TargetResult
from benchmarks.servers.lexarium import COMMAND

_BASELINE_SCRIPT = Path(__file__).with_name("baseline_import.py")

OBO_TERMS = 12_000
# Factor between two sizes that show whether memory grows with the number of records.
SIZE_RATIO = 10

_POLL_SECONDS = 0.02
_MIN_RECORDS_PER_SECOND = 20_000
_MAX_IMPORT_MB = 300
_MIN_MB_PER_SECOND = 50
_MAX_GROWTH_MB = 10
_MAX_OBO_SECONDS = 10
# Formats that the export targets apply to: one served as stored, one with everything.
_TARGET_FORMATS = ("v-alpha", "jsonl")
_OTHER_FORMATS = ("csv", "skos", "obo")
ROUNDS = 3


@dataclass(frozen=True)
class CommandResult:
    """Resources and output of a command."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output_lines: list[str]

    @property
    def peak_mb(self) -> float:
        """Peak memory in megabytes."""
        return self.peak_bytes / 1e6


@dataclass(frozen=True)
class ExportResult:
    """Command result with the size of the exported file."""

    command_result: CommandResult
    size: int

    @property
    def mb_per_second(self) -> float:
        return self.size / 1e6 / self.command_result.seconds


class CommandRunner:
    """Run commands on one core, with databases in one folder."""

    def __init__(self, folder: Path, core: int | None) -> None:
        self._folder = folder
        self._core = core

    def run(self, database: str, *arguments: str) -> CommandResult:
        """Run a `lexarium` command."""
        return self._run_timed([*COMMAND, *arguments, "--database", f"sqlite:///{self._folder / database}"])

    def run_baseline(self, file: str) -> CommandResult:
        """Import a file with the baseline script."""
        database = self._folder / "baseline.db"
        database.unlink(missing_ok=True)
        return self._run_timed([sys.executable, str(_BASELINE_SCRIPT), file, str(database)])

    def _run_timed(self, command: list[str]) -> CommandResult:
        output_path = self._folder / "output"
        with output_path.open("w") as output, pin_to_core(self._core):
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=subprocess.STDOUT)
        peak, exited_pid, status = 0, 0, 0
        while not exited_pid:
            time.sleep(_POLL_SECONDS)
            peak = max(peak, _get_peak_bytes(process.pid))
            exited_pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SetupError(f"{' '.join(command[:4])} failed: {output_path.read_text().strip()[-500:]}")
        return CommandResult(seconds, usage.ru_utime + usage.ru_stime, peak, output_path.read_text().splitlines())

    def import_files(self, database: str, count: int, *files: str) -> CommandResult:
        """Import files into a new catalogue and check the number of records."""
        for path in self._folder.glob(f"{database}*"):
            path.unlink()
        run = self.run(database, "import", *files, "--json")
        report = json.loads(run.output_lines[-1])
        if sum(report["created"].values()) != count or report["refused"]:
            raise UnexpectedResponse(f"{report['created']} of {count:,} records were imported.")
        return run

    def export(self, database: str, format: str) -> ExportResult:
        """Export a whole catalogue."""
        path = self._folder / f"out.{format}"
        run = self.run(database, "export", "--format", format, "-o", str(path))
        size = path.stat().st_size
        path.unlink()
        return ExportResult(run, size)


def measure(runner: CommandRunner, folder: Path, records: int) -> list[ReportTable]:
    """Run all measurements."""
    sizes = {"small.db": records // SIZE_RATIO, "large.db": records}
    imports, baselines = {}, {}
    write_array(CLASSES, folder / "concept_class.json")
    for database, count in sizes.items():
        write_array(generate_records(count), folder / "concept.json")
        rounds = [
            (
                runner.run_baseline("concept.json"),
                runner.import_files(database, count + len(CLASSES), "concept_class.json", "concept.json"),
            )
            for _ in range(ROUNDS)
        ]
        baselines[database], imports[database] = (min(runs, key=_get_seconds) for runs in zip(*rounds, strict=True))
    repeat = runner.run("large.db", "import", "concept.json", "--json")
    if json.loads(repeat.output_lines[-1])["changed"]:
        raise UnexpectedResponse("Importing the same file again changed records.")
    (folder / "concept.json").unlink()
    write_obo_file(folder / "disorder.obo", OBO_TERMS)
    obo = runner.import_files("obo.db", OBO_TERMS, "disorder.obo")
    exports = {
        (name, database): min(
            (runner.export(database, name) for _ in range(ROUNDS)),
            key=lambda result: _get_seconds(result.command_result),
        )
        for name in _TARGET_FORMATS
        for database in sizes
    }
    exports |= {(name, "small.db"): runner.export("small.db", name) for name in _OTHER_FORMATS}
    return [
        build_target_table(_check_targets(records, imports, obo, exports)),
        ReportTable(
            "Import",
            ("file", "records", "time, s", "CPU time, s", "records/s", "memory, MB"),
            _build_import_rows(sizes, imports, baselines, repeat, obo),
        ),
        ReportTable(
            "Export",
            ("format", "records", "MB", "time, s", "CPU time, s", "MB/s", "memory, MB"),
            _build_export_rows(sizes, exports),
        ),
    ]


def _check_targets(
    records: int, imports: dict[str, CommandResult], obo: CommandResult, exports: dict[tuple[str, str], ExportResult]
) -> list[TargetResult]:
    large_import = imports["large.db"]
    rate = records / large_import.seconds
    target_results = [
        TargetResult(
            f"import of v-alpha JSON, at least {_MIN_RECORDS_PER_SECOND:,} records/s",
            f"{rate:,.0f}",
            rate >= _MIN_RECORDS_PER_SECOND,
        ),
        TargetResult(
            f"memory of this import, at most {_MAX_IMPORT_MB} MB",
            f"{large_import.peak_mb:.0f} MB",
            large_import.peak_mb <= _MAX_IMPORT_MB,
        ),
    ]
    for name in _TARGET_FORMATS:
        small, large = exports[name, "small.db"], exports[name, "large.db"]
        growth = large.command_result.peak_mb - small.command_result.peak_mb
        speed = large.mb_per_second
        target_results += [
            TargetResult(
                f"export of {name}, at least {_MIN_MB_PER_SECOND} MB/s",
                f"{speed:.0f} MB/s",
                speed >= _MIN_MB_PER_SECOND,
            ),
            TargetResult(
                f"growth of its memory with {SIZE_RATIO} times as many records, at most {_MAX_GROWTH_MB} MB",
                f"{growth:.0f} MB",
                growth <= _MAX_GROWTH_MB,
            ),
        ]
    target = f"import of an OBO file with {OBO_TERMS:,} terms, at most {_MAX_OBO_SECONDS} s"
    return [*target_results, TargetResult(target, f"{obo.seconds:.1f} s", obo.seconds <= _MAX_OBO_SECONDS)]


def _build_import_rows(
    sizes: dict[str, int],
    imports: dict[str, CommandResult],
    baselines: dict[str, CommandResult],
    repeat: CommandResult,
    obo: CommandResult,
) -> list[Sequence[str]]:
    rows = [("v-alpha JSON", sizes[database], run) for database, run in imports.items()]
    rows += [("v-alpha JSON, by the baseline script", sizes[database], run) for database, run in baselines.items()]
    rows += [("v-alpha JSON, again without changes", sizes["large.db"], repeat), ("OBO", OBO_TERMS, obo)]
    return [
        (name, f"{count:,}", *_format_seconds(run), f"{count / run.seconds:,.0f}", f"{run.peak_mb:.0f}")
        for name, count, run in rows
    ]


def _build_export_rows(sizes: dict[str, int], exports: dict[tuple[str, str], ExportResult]) -> list[Sequence[str]]:
    return [
        (
            name,
            f"{sizes[database]:,}",
            f"{result.size / 1e6:.0f}",
            *_format_seconds(result.command_result),
            f"{result.mb_per_second:.0f}",
            f"{result.command_result.peak_mb:.0f}",
        )
        for (name, database), result in exports.items()
    ]


def _get_seconds(run: CommandResult) -> float:
    return run.seconds


def _format_seconds(run: CommandResult) -> tuple[str, str]:
    return f"{run.seconds:.1f}", f"{run.cpu_seconds:.1f}"


def _get_peak_bytes(pid: int) -> int:
    """Return the peak memory of a process as counted by the kernel; 0 if it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("import_export", "Measure imports and exports.", "import-export.md")
    add_records_option(parser)
    options = parser.parse_args()
    return run_and_publish(lambda: _run(options.records), options.output)


def _run(records: int) -> tuple[list[ReportTable], str]:
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        tables = measure(CommandRunner(Path(name), choose_cores().server), Path(name), records)
    return tables, _build_page(tables, records)


def _build_page(tables: list[ReportTable], records: int) -> str:
    method = (
        f"{records:,} generated concepts (all fields; the words of names and definitions follow Zipf's law) in one"
        " v-alpha JSON file are imported into a new catalogue on SQLite, then exported. Each is a `lexarium` command"
        " on one core, timed from its start to its end, including the durable commit; the best of"
        f" {ROUNDS} rounds counts, because other programs use the same machine. Memory is the peak resident set,"
        " including shared libraries. The baseline is a minimal script: it validates nothing, keeps no history, indexes"
        " records by id and name only, and holds the whole file in memory; it runs before each import."
    )
    return build_page("import and export", method, tables, records)


if __name__ == "__main__":
    sys.exit(main())
