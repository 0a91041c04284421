"""Pages: how soon the first byte of each comes, of a large catalogue.

Run it from the repository's root as `python -m benchmarks.pages`. It prints tables and writes them to
`docs/benchmarks-pages.md`. It ends with 1 where a page was not there.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import quote

from benchmarks.answers import HOST, connect, request
from benchmarks.cores import choose_cores, pinned
from benchmarks.errors import ServerFailed, WrongAnswer
from benchmarks.large import command, filled, percentile, percentiles, serving
from benchmarks.processes import running
from benchmarks.records import Record
from benchmarks.report import TARGETED, Table, page_of, published, verdict_table
from benchmarks.targets import Verdict
from lexarium.web.pages.session import COOKIE
from lexarium.web.pages.site import STATIC

ROOT = Path(__file__).parents[1]
MOST_MS = 50
MOST_KB = 60
_FIGURES = "/statistics"
_COUNTED = b"As of revision"
"""What the page of the figures says once there are any."""
_COUNT_LIMIT_SECONDS = 600
_POLL_SECONDS = 0.1

Draw = Callable[[Random, Sequence[Record]], str]
"""The address of a page, drawn at random."""


def _of_record(form: str) -> Draw:
    return lambda random, records: form.format(id=random.choice(records)["id"])


def _of_name(form: str) -> Draw:
    return lambda random, records: form.format(name=quote(str(random.choice(records)["name"])))


def _of_class(form: str) -> Draw:
    return lambda random, records: form.format(id=random.choice(records)["id_concept_class"])


def _of_name_in_its_class(form: str) -> Draw:
    def draw(random: Random, records: Sequence[Record]) -> str:
        record = random.choice(records)
        return form.format(name=quote(str(record["name"])), id=record["id_concept_class"])

    return draw


def _always(address: str) -> Draw:
    return lambda random, records: address


PAGES: dict[str, Draw] = {
    "home": _always("/"),
    "a collection": _always("/browse/concept"),
    "a collection, from some name on": _of_name("/browse/concept?from={name}"),
    "a collection, one class": _of_class("/browse/concept?class={id}"),
    "a hierarchy": _always("/browse/concept/tree"),
    "a term": _of_record("/id/{id}"),
    "its history": _of_record("/id/{id}/history"),
    "results": _of_name("/search?q={name}"),
    "results, one collection": _of_name("/search?q={name}&collection=concept"),
    "results, one class": _of_name_in_its_class("/search?q={name}&class={id}"),
    "annotate": _always("/annotate"),
    "statistics": _always("/statistics"),
    "records without a definition": _always("/statistics/gaps/undefined"),
    "changes": _always("/changes"),
    "guide": _always("/guide"),
    "reference": _always("/docs"),
    "propose": _always("/propose/concept"),
    "edit": _of_record("/edit/{id}"),
    "relate": _of_record("/edit/{id}/relations"),
    "merge": _of_record("/merge/{id}"),
    "retire": _of_record("/retire/{id}"),
    "review": _always("/review"),
    "import": _always("/import"),
    "administration": _always("/admin"),
    "people": _always("/admin/people"),
    "tokens": _always("/admin/tokens"),
    "webhooks": _always("/admin/webhooks"),
}


def await_figures(port: int) -> None:
    """Wait until the catalogue is counted: that is done once, after the first page, and takes a core meanwhile."""
    connection = connect(port)
    deadline = time.monotonic() + _COUNT_LIMIT_SECONDS
    while _COUNTED not in request(connection, _FIGURES).read():
        if time.monotonic() > deadline:
            raise ServerFailed(f"The catalogue was not counted within {_COUNT_LIMIT_SECONDS} s.")
        time.sleep(_POLL_SECONDS)
    connection.close()


def measure(port: int, token: str, records: Sequence[Record], times: int) -> dict[str, list[float]]:
    """How many milliseconds the first byte of each page took to come, each so many times, warm."""
    connection = HTTPConnection(HOST, port, timeout=60)
    random = Random(1)
    measured = {}
    for name, draw in PAGES.items():
        taken = [_first_byte(connection, draw(random, records), token) for _ in range(times + 10)]
        measured[name] = taken[10:]
    connection.close()
    return measured


def _first_byte(connection: HTTPConnection, address: str, token: str) -> float:
    headers = {"Accept": "text/html", "Cookie": f"{COOKIE}={token}"}
    began = time.perf_counter()
    connection.request("GET", address, headers=headers)
    response = connection.getresponse()
    taken = (time.perf_counter() - began) * 1e3
    body = response.read()
    if response.status != 200:
        raise WrongAnswer(f"{address} answered {response.status}: {body[:200]!r}")
    return taken


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.pages", description="Measure pages.")
    parser.add_argument("--records", type=int, default=TARGETED, help="how many there are (1,000,000)")
    parser.add_argument("--times", type=int, default=100, help="that each page is asked for (100)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-pages.md")
    options = parser.parse_args()
    return published(
        lambda: _run(options.records, options.times),
        lambda tables: _page(tables, options.records, options.times),
        options.output,
    )


def _run(count: int, times: int) -> list[Table]:
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = f"sqlite:///{folder / 'catalogue.db'}"
        records, token = filled(folder, database, count, "admin")
        command(database, "reindex")
        server = serving(folder, database)
        with running(server, cores.server, _FIGURES), pinned(cores.load):
            await_figures(server.port)
            measured = measure(server.port, token, records, times)
    slowest = max(measured, key=lambda each: percentile(measured[each], 99))
    p99 = percentile(measured[slowest], 99)
    kilobytes = sum(path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".css", ".js")) / 1e3
    verdicts = [
        Verdict(f"first byte of each page, p99, at most {MOST_MS} ms", f"{p99:.1f} ms ({slowest})", p99 <= MOST_MS),
        Verdict(f"CSS and JavaScript together, at most {MOST_KB} KB", f"{kilobytes:.0f} KB", kilobytes <= MOST_KB),
    ]
    rows = [(page, percentiles(taken)) for page, taken in measured.items()]
    return [verdict_table(verdicts), Table("Milliseconds to the first byte, p50 and p99", ("page", ""), rows)]


def _page(tables: list[Table], count: int, times: int) -> str:
    method = (
        f"{count:,} made records on SQLite; one worker on one core, warm and with its figures counted, and one client"
        f" on another, signed in as an admin, that asks for each page {times} times, of other records each time, one"
        " after another."
    )
    return page_of("pages", method, tables, count)


if __name__ == "__main__":
    sys.exit(main())
