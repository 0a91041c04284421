"""Kill imports at random moments; verify that each has stored all of its file or nothing.

Run it from the repository's root as `python -m torture.import_crash [FILE...]`. Files are imported in their order, so
that a translation finds its terms; without a file, a generated thesaurus is. It exits with 1 if the catalogue is
inconsistent.
"""

import random
import shutil
import signal
import sys
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database
from tests.support.fork_server import ForkedProcess
from tests.support.polling import DEADLINE_SECONDS
from tests.support.postgres import PostgresServer
from tests.support.server import build_environment, run_cli

ENGINES = ("sqlite", "postgres")
# Longest wait before a kill, in durations of the whole import.
_LONGEST_WAIT = 1.1
_TRANSLATIONS = (".tsv",)
_NAMESPACE = "https://example.org/t"

# Takes the URL of a database, or None for an empty one; returns that of a copy.
DatabaseCopier = Callable[[str | None], str]


@dataclass
class ImportCrashOutcome:
    """Counts and problems of the killed imports of one file."""

    kills: int = 0
    # Imports that had stored all before the kill.
    stored: int = 0
    problems: list[str] = field(default_factory=list)


def run(url: str, file: Path, kills: int, rng: random.Random, copy_database: DatabaseCopier) -> ImportCrashOutcome:
    """Kill imports of a file into copies of a catalogue, then import it there."""
    outcome = ImportCrashOutcome()
    arguments = ["import", str(file), *([] if file.suffix in _TRANSLATIONS else ["--vocabulary", file.stem])]
    original, (before, _) = copy_database(url), _inspect(url)
    start = time.monotonic()
    _import(url, arguments)
    seconds = time.monotonic() - start
    after, problems = _inspect(url)
    outcome.problems += problems
    for _ in track(range(kills), f"{url.partition(':')[0]}, {file.name}", console=Console(stderr=True)):
        copy = copy_database(original)
        process = ForkedProcess([*arguments, "--database", copy], build_environment())
        wait = rng.uniform(0, seconds * _LONGEST_WAIT)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate(DEADLINE_SECONDS)
        count, problems = _inspect(copy)
        outcome.kills += 1
        outcome.stored += count == after
        outcome.problems += problems
        if count not in (before, after):
            outcome.problems.append(f"after {wait:.2f} s {count - before} of {after - before} changes were stored")
        _import(copy, arguments)
        if _inspect(copy)[0] != after:
            outcome.problems.append(f"after {wait:.2f} s a second import stored other changes than the first would")
        if outcome.problems:
            break
    return outcome


def _import(url: str, arguments: list[str]) -> None:
    result = run_cli(*arguments, "--database", url)
    assert result.returncode == 0, result.stderr


def _inspect(url: str) -> tuple[int, list[str]]:
    """Return the number of changes in the log, and the problems that the check of the catalogue finds."""
    database = Database(url)
    try:
        return database.run_read(read_position).revision, check_database(database).problems
    finally:
        database.close()


def write_thesaurus(folder: Path, terms: int) -> Path:
    """Write a thesaurus in Turtle and return its path."""
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> .", f"<{_NAMESPACE}> a skos:ConceptScheme ."]
    for number in range(terms):
        properties = f'skos:inScheme <{_NAMESPACE}> ; skos:prefLabel "term {number}"'
        lines.append(f"<{_NAMESPACE}/{number}> a skos:Concept ; {properties} .")
    path = folder / "thesaurus.ttl"
    path.write_text("\n".join(lines))
    return path


@contextmanager
def provide_databases(engine: str, folder: Path) -> Iterator[DatabaseCopier]:
    """Yield a function that copies databases."""
    if engine == "sqlite":

        def copy_file(url: str | None) -> str:
            path = folder / uuid.uuid4().hex / "catalogue.db"
            path.parent.mkdir()
            if url is not None:
                shutil.copyfile(url.removeprefix("sqlite:///"), path)
            return f"sqlite:///{path}"

        yield copy_file
        return
    with PostgresServer().init_cluster() as server:
        server.start()

        def copy_database(url: str | None) -> str:
            name = f"catalogue_{uuid.uuid4().hex}"
            template = "template0" if url is None else url.partition("?")[0].rpartition("/")[2]
            server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            return server.url(name)

        yield copy_database


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.import_crash", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="(a generated thesaurus of 5,000 terms)")
    parser.add_argument("--kills", type=int, default=100, help="kills per engine and file (100)")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="run this engine only; may be repeated")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="seed of the random moments")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    failed = False
    for engine in options.engine or ENGINES:
        with TemporaryDirectory(prefix="lexarium-torture-") as name, provide_databases(engine, Path(name)) as copy:
            url = copy(None)
            open_database(url).close()
            for file in options.files or [write_thesaurus(Path(name), 5_000)]:
                outcome = run(url, file, options.kills, rng, copy)
                counts = f"{outcome.stored} stored all, {outcome.kills - outcome.stored} nothing"
                print(f"{engine}, {file.name}, {outcome.kills} kills: {counts}; {len(outcome.problems)} problems")
                for problem in outcome.problems[:20]:
                    print(f"  {problem}")
                failed = failed or bool(outcome.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
