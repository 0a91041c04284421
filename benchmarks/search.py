"""Benchmark search speed and quality against SQLite's FTS5, with the same records.

Run it from the repository's root as `python -m benchmarks.search`. It prints tables and writes them to
`docs/benchmarks-search.md`. It exits with 1 if a response was wrong.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from benchmarks.annotate import CHARACTERS, CHARS_PER_MENTION, MIN_MB_PER_SECOND
from benchmarks.data.generated import TextGenerator
from benchmarks.data.records import Record
from benchmarks.data.search_queries import QUERY_KINDS, QueryKind, add_typo, swap_case_and_accents, take_prefix
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.http_client import HOST
from benchmarks.harness.report import (
    TARGET_RECORDS,
    ReportTable,
    build_page,
    build_target_table,
    compute_percentile,
    format_percentiles,
    run_and_publish,
)
from benchmarks.harness.server_process import run_server
from benchmarks.harness.targets import TargetResult
from benchmarks.servers.lexarium import build_server, build_sqlite_url, import_generated, run_cli
from benchmarks.servers.sqlite_fts import SqliteFts
from lexarium.search.analysis.folding import fold

ROOT = Path(__file__).parents[1]
_MAX_INDEX_MB = 600
_MAX_BUILD_SECONDS = 150
_MAX_START_SECONDS = 1.5
_MAX_INDEX_DELAY_MS = 100
# For quality of prefixes: among more records, more names share a prefix and none is better.
_PREFIX_RECORDS = 2_000
# Number of annotated texts; the first half is for warming up.
_TEXT_COUNT = 14
_CHARS_PER_MENTION = CHARS_PER_MENTION[0]
# Time to load the annotator's labels.
_NAMES_TIMEOUT_SECONDS = 600
_PREFIX_KINDS = ("prefixes",)
# Hit limit of each round.
HIT_LIMITS = (10, 11, 12)
_FIRST_PATH = "/api/v1/search?q=memory"


@dataclass(frozen=True)
class SearchWorkload:
    """Size of a run."""

    records: int
    # Number of queries of each kind.
    queries: int
    # Queries per kind of quality.
    tries: int


class SearchClient:
    """Connection that sends one query after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=60)

    def reconnect(self) -> None:
        self._connection.close()

    def get(self, path: str) -> tuple[float, Any]:
        """Return the response time in milliseconds and the JSON body."""
        start = time.perf_counter()
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        milliseconds = (time.perf_counter() - start) * 1e3
        if response.status != 200:
            raise UnexpectedResponse(f"{path[:200]} answered {response.status}: {body[:200]!r}")
        return milliseconds, json.loads(body)

    def search(self, text: str, limit: int = HIT_LIMITS[0]) -> tuple[float, Any]:
        return self.get(f"/api/v1/search?q={quote(text)}&limit={limit}")

    def suggest(self, text: str, limit: int) -> tuple[float, Any]:
        return self.get(f"/api/v1/suggest?prefix={quote(text)}&limit={limit}")

    def annotate(self, text: str) -> tuple[float, Any]:
        """Return the seconds and the mentions in a text; None while labels are being loaded."""
        start = time.perf_counter()
        self._connection.request("POST", "/api/v1/annotate", text.encode(), {"Content-Type": "text/plain"})
        response = self._connection.getresponse()
        body = response.read()
        seconds = time.perf_counter() - start
        if response.status not in (200, 503):
            raise UnexpectedResponse(f"A text was answered with {response.status}: {body[:200]!r}")
        return seconds, json.loads(body)["annotations"] if response.status == 200 else None

    def post(self, path: str, body: object, token: str) -> None:
        """Create a record; it must be accepted."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        response = self._connection.getresponse()
        reply = response.read()
        if response.status != 201:
            raise UnexpectedResponse(f"{path} answered {response.status}: {reply[:200]!r}")


def measure_speed(
    client: SearchClient, fts: SqliteFts, records: Sequence[Record], workload: SearchWorkload
) -> tuple[ReportTable, list[TargetResult]]:
    """Measure response times of each kind of query, on Lexarium and FTS5."""
    queries = {kind: _generate_queries(kind, records, workload.queries) for kind in QUERY_KINDS}
    for texts in queries.values():
        for text in texts[:50]:
            client.search(text, HIT_LIMITS[0] - 1)
    # A different hit limit in each round, so that no response is cached. Kinds take turns, so that a slow minute
    # of the machine does not affect only one of them.
    searches, completions = (
        [{kind: [send(text, limit)[0] for text in texts] for kind, texts in queries.items()} for limit in HIT_LIMITS]
        for send in (client.search, client.suggest)
    )
    rows, target_results = [], []
    for kind, texts in queries.items():
        rounds = [times[kind] for times in searches]
        search_times, completion_times = (
            _median_per_query(rounds),
            _median_per_query([times[kind] for times in completions]),
        )
        fts_times = [
            fts.time_query(text, prefixes=kind.name.startswith(_PREFIX_KINDS)) * 1e3
            for text in texts[: workload.queries // 20]
        ]
        overall_p99 = compute_percentile([milliseconds for times in rounds for milliseconds in times], 99)
        rows.append(
            (
                kind.name,
                format_percentiles(search_times),
                f"{overall_p99:.1f}",
                format_percentiles(completion_times),
                format_percentiles(fts_times),
            )
        )
        p99 = compute_percentile(search_times, 99)
        target_results.append(
            TargetResult(f"p99 of {kind.name}, at most {kind.max_p99_ms:g} ms", f"{p99:.1f} ms", p99 <= kind.max_p99_ms)
        )
    client.reconnect()  # FTS5 may have taken so long that the server has closed the connection.
    columns = ("query", "search, ms", "p99 of every answer", "suggest, ms", "FTS5, ms")
    return ReportTable("p50 and p99", columns, rows), target_results


def _median_per_query(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the median time of each query, which drops outliers of the machine."""
    return [median(times) for times in zip(*rounds, strict=True)]


def measure_quality(client: SearchClient, records: Sequence[Record], tries: int) -> list[TargetResult]:
    """Measure how often the right record comes first."""
    rng = Random(7)
    sample = rng.choices(records, k=tries)
    min_typo_share = 0.95 if len(records) > 100_000 else 0.97

    def measure_share(query: Callable[[str], str], first: int) -> float:
        return (
            sum(_find_rank(client, query(str(record["name"])), str(record["name"])) < first for record in sample)
            / tries
        )

    name_share = measure_share(swap_case_and_accents, 1)
    typo_share = measure_share(lambda name: add_typo(rng, name), 1)
    prefix_share = measure_share(take_prefix, 5)
    aliases = [alias.strip() for record in sample for alias in str(record["alias"]).split(",") if alias.strip()]
    alias_share = sum(_alias_is_first(client, alias) for alias in aliases) / max(1, len(aliases))
    return [
        TargetResult("exact name, case and accents flipped, first in 100 %", f"{name_share:.1%}", name_share == 1),
        TargetResult("exact alias first but for names, in 100 %", f"{alias_share:.1%}", alias_share == 1),
        TargetResult(
            f"one random edit, first in {min_typo_share:.0%}", f"{typo_share:.1%}", typo_share >= min_typo_share
        ),
        TargetResult(
            f"first 60 % of a name, among the first five (95 % at {_PREFIX_RECORDS:,} records)",
            f"{prefix_share:.1%}",
            prefix_share >= 0.95 if len(records) == _PREFIX_RECORDS else None,
        ),
    ]


def measure_index_delay(client: SearchClient, token: str, writes: int) -> TargetResult:
    """Measure the time from an acknowledged write until a search finds it."""
    delays = []
    for number in range(writes):
        name = f"followed {number} zyzzyva"
        client.post("/api/v1/concept", {"name": name}, token)
        milliseconds, result = client.search(name)
        if not result["hits"] or result["hits"][0]["name"] != name:
            raise UnexpectedResponse(f"{name!r} was written and is not found.")
        delays.append(milliseconds)
    p99 = compute_percentile(delays, 99)
    return TargetResult(
        f"a write is found, p99, at most {_MAX_INDEX_DELAY_MS} ms", f"{p99:.0f} ms", p99 <= _MAX_INDEX_DELAY_MS
    )


def measure_annotation(client: SearchClient, records: Sequence[Record]) -> TargetResult:
    """Measure the speed of annotation."""
    deadline = time.monotonic() + _NAMES_TIMEOUT_SECONDS
    while client.annotate("")[1] is None:
        if time.monotonic() > deadline:
            raise UnexpectedResponse(f"The names were not there after {_NAMES_TIMEOUT_SECONDS} s.")
        time.sleep(1)
    texts = TextGenerator(sorted({str(mention["name"]) for mention in records}))
    speeds = []
    for _ in range(_TEXT_COUNT):
        text = texts.generate(CHARACTERS, _CHARS_PER_MENTION)
        seconds, mentions = client.annotate(text)
        if any(text[mention["start"] : mention["end"]] != mention["text"] for mention in mentions):
            raise UnexpectedResponse("A text does not say what was found in it.")
        if len({mention["start"] for mention in mentions}) < CHARACTERS // _CHARS_PER_MENTION - 1:
            raise UnexpectedResponse("A text has more names than were found in it.")
        speeds.append(len(text.encode()) / 1e6 / seconds)
    speed = median(speeds[len(speeds) // 2 :])
    return TargetResult(
        f"a text of 1 MB, a mention every {_CHARS_PER_MENTION} characters, at least {MIN_MB_PER_SECOND:g} MB/s",
        f"{speed:.1f} MB/s (the first of all {speeds[0]:.1f})",
        speed >= MIN_MB_PER_SECOND,
    )


def _find_rank(client: SearchClient, text: str, name: str) -> int:
    """Return the rank of a record with this name among the hits, or one past all of them."""
    key = fold(name).key
    hits = client.search(text)[1]["hits"]
    return next((rank for rank, hit in enumerate(hits) if fold(hit["name"]).key == key), len(hits) + 100)


def _alias_is_first(client: SearchClient, alias: str) -> bool:
    key = fold(alias).key
    hits = client.get(f"/api/v1/search?limit=100&q={quote(swap_case_and_accents(alias))}")[1]["hits"]
    others = [hit for hit in hits if fold(hit["name"]).key != key]
    if not others:
        return len(hits) == 100  # More records have it as their name than a page holds.
    return fold(others[0]["matched"]["text"]).key == key


def _generate_queries(kind: QueryKind, records: Sequence[Record], count: int) -> list[str]:
    rng = Random(kind.name)
    return [kind.generate(rng, records) for _ in range(count)]


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.search", description="Measure searching.")
    parser.add_argument("--records", type=int, default=TARGET_RECORDS, help="how many there are (1,000,000)")
    parser.add_argument("--queries", type=int, default=400, help="of each kind (400)")
    parser.add_argument("--tries", type=int, default=1_000, help="of each kind of quality (1,000)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-search.md")
    options = parser.parse_args()
    workload = SearchWorkload(options.records, options.queries, options.tries)
    return run_and_publish(lambda: _run(workload), options.output)


def _run(workload: SearchWorkload) -> tuple[list[ReportTable], str]:
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = build_sqlite_url(folder)
        records, token = import_generated(folder, database, workload.records)
        start = time.perf_counter()
        run_cli("reindex", "--database", database)
        build_seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in (folder / "catalogue.db-search").rglob("*") if path.is_file())
        fts = SqliteFts(folder / "fts.db")
        fts_build = fts.build(records)
        server = build_server(folder, database)
        starts = []
        for _ in HIT_LIMITS[1:]:
            with run_server(server, cores.server, _FIRST_PATH) as running_server:
                starts.append(running_server.start_seconds)
        with run_server(server, cores.server, _FIRST_PATH) as running_server, pin_to_core(cores.load):
            starts.append(running_server.start_seconds)
            client = SearchClient(server.port)
            speed, target_results = measure_speed(client, fts, records, workload)
            client.reconnect()
            target_results += measure_quality(client, records, workload.tries)
            target_results += [measure_index_delay(client, token, 100), measure_annotation(client, records)]
        fts.close()
    target_results += [
        TargetResult(f"index, at most {_MAX_INDEX_MB} MB", f"{size / 1e6:.0f} MB", size <= _MAX_INDEX_MB * 1e6),
        TargetResult(
            f"to build it, at most {_MAX_BUILD_SECONDS} s",
            f"{build_seconds:.0f} s",
            build_seconds <= _MAX_BUILD_SECONDS,
        ),
        TargetResult(
            f"first answer to a search after start, at most {_MAX_START_SECONDS} s",
            f"{median(starts):.2f} s",
            median(starts) <= _MAX_START_SECONDS,
        ),
    ]
    peer_table = ReportTable("The peer's index", ("", "seconds to build"), [("FTS5", f"{fts_build:.0f}")])
    tables = [build_target_table(target_results), speed, peer_table]
    return tables, _build_page(tables, workload)


def _build_page(tables: list[ReportTable], workload: SearchWorkload) -> str:
    method = (
        f"{workload.records:,} made records (names of one to four words that follow Zipf's law,"
        " two in five with aliases, most with a definition) on SQLite; one worker on one core, warm, and one client on"
        f" another that asks {workload.queries:,} queries of each kind over HTTP, one after another,"
        f" in {len(HIT_LIMITS)} rounds of all kinds, each for another number of hits, so that none was finished."
        " What a query takes is the median of its times, since others use the same machine; the p99 of every single"
        " answer stands beside it; of as many starts the median counts. FTS5 with bm25 holds"
        " the same records and is asked within the client's process, without HTTP; it does not forgive mistakes, so"
        f" that there it finds nothing. Quality is of {workload.tries:,} records drawn at random; a record of the same"
        " name, folded, counts as the right one. Texts have ordinary words among names of the catalogue, each as likely"
        f" as any other; the median of {_TEXT_COUNT // 2} counts."
    )
    return build_page("finding", method, tables, workload.records)


if __name__ == "__main__":
    sys.exit(main())
