"""Benchmark search speed and quality against SQLite's FTS5, with the same records.

Run it from the repository's root as `python -m benchmarks.search`. It prints tables and writes them to
`docs/benchmarks/search.md`. It exits with 1 if a response was wrong.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote

from benchmarks.annotate import CHARACTERS, CHARS_PER_MENTION, MIN_MB_PER_SECOND
from benchmarks.data.generated import TextGenerator
from benchmarks.data.records import Record
from benchmarks.data.search_queries import QUERY_KINDS, add_typo, swap_case_and_accents, take_prefix
from benchmarks.harness.api_client import HIT_LIMITS, ApiClient
from benchmarks.harness.command_line import add_records_option, create_parser
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.report import (
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
from benchmarks.vocabulary_search import run_vocabularies
from lexarium.search.analysis.folding import fold

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
_LABELS_TIMEOUT_SECONDS = 600
_PREFIX_KINDS = ("prefixes",)
_FIRST_PATH = "/api/v1/search?q=memory"


@dataclass(frozen=True)
class SearchWorkload:
    """Size of a run."""

    records: int
    # Number of queries of each kind.
    queries: int
    # Queries per kind of quality.
    tries: int


def measure_speed(
    client: ApiClient, fts: SqliteFts, records: Sequence[Record], workload: SearchWorkload
) -> tuple[ReportTable, list[TargetResult]]:
    """Measure response times of each kind of query, on Lexarium and FTS5."""
    queries = {kind: kind.generate_many(records, workload.queries) for kind in QUERY_KINDS}
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
    columns = ("query", "search, ms", "p99 of all responses", "suggest, ms", "FTS5, ms")
    return ReportTable("Response times, p50 / p99", columns, rows), target_results


def _median_per_query(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the median time of each query, which drops outliers of the machine."""
    return [median(times) for times in zip(*rounds, strict=True)]


def measure_quality(client: ApiClient, records: Sequence[Record], tries: int) -> list[TargetResult]:
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
        TargetResult(
            "exact name in other case and with accents: first hit in 100 %", f"{name_share:.1%}", name_share == 1
        ),
        TargetResult("exact alias: first hit after equal names in 100 %", f"{alias_share:.1%}", alias_share == 1),
        TargetResult(
            f"name with one typo: first hit in {min_typo_share:.0%}", f"{typo_share:.1%}", typo_share >= min_typo_share
        ),
        TargetResult(
            f"first 60 % of a name: among the first five hits in 95 % (at {_PREFIX_RECORDS:,} records)",
            f"{prefix_share:.1%}",
            prefix_share >= 0.95 if len(records) == _PREFIX_RECORDS else None,
        ),
    ]


def measure_index_delay(client: ApiClient, token: str, writes: int) -> TargetResult:
    """Measure the time from an acknowledged write until a search finds it."""
    delays = []
    for number in range(writes):
        name = f"followed {number} zyzzyva"
        client.post("/api/v1/concept", {"name": name}, token)
        milliseconds, result = client.search(name)
        if not result["hits"] or result["hits"][0]["name"] != name:
            raise UnexpectedResponse(f"{name!r} was written, but a search does not find it.")
        delays.append(milliseconds)
    p99 = compute_percentile(delays, 99)
    return TargetResult(
        f"p99 until a search finds a write, at most {_MAX_INDEX_DELAY_MS} ms",
        f"{p99:.0f} ms",
        p99 <= _MAX_INDEX_DELAY_MS,
    )


def measure_annotation(client: ApiClient, records: Sequence[Record]) -> TargetResult:
    """Measure the speed of annotation."""
    deadline = time.monotonic() + _LABELS_TIMEOUT_SECONDS
    while client.annotate("")[1] is None:
        if time.monotonic() > deadline:
            raise UnexpectedResponse(f"The labels were not loaded within {_LABELS_TIMEOUT_SECONDS} s.")
        time.sleep(1)
    texts = TextGenerator(sorted({str(mention["name"]) for mention in records}))
    speeds = []
    for _ in range(_TEXT_COUNT):
        text = texts.generate(CHARACTERS, _CHARS_PER_MENTION)
        seconds, mentions = client.annotate(text)
        if any(text[mention["start"] : mention["end"]] != mention["text"] for mention in mentions):
            raise UnexpectedResponse("An annotation differs from the text at its position.")
        if len({mention["start"] for mention in mentions}) < CHARACTERS // _CHARS_PER_MENTION - 1:
            raise UnexpectedResponse("Some names in a text were not found.")
        speeds.append(len(text.encode()) / 1e6 / seconds)
    speed = median(speeds[len(speeds) // 2 :])
    return TargetResult(
        f"annotation of 1 MB with a mention every {_CHARS_PER_MENTION} characters, at least {MIN_MB_PER_SECOND:g} MB/s",
        f"{speed:.1f} MB/s (first text: {speeds[0]:.1f})",
        speed >= MIN_MB_PER_SECOND,
    )


def _find_rank(client: ApiClient, text: str, name: str) -> int:
    """Return the rank of a record with this name among the hits, or one past all of them."""
    key = fold(name).key
    hits = client.search(text)[1]["hits"]
    return next((rank for rank, hit in enumerate(hits) if fold(hit["name"]).key == key), len(hits) + 100)


def _alias_is_first(client: ApiClient, alias: str) -> bool:
    key = fold(alias).key
    hits = client.get(f"/api/v1/search?limit=100&q={quote(swap_case_and_accents(alias))}")[1]["hits"]
    others = [hit for hit in hits if fold(hit["name"]).key != key]
    if not others:
        return len(hits) == 100  # More records have it as their name than a page holds.
    return fold(others[0]["matched"]["text"]).key == key


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("search", "Measure the speed and quality of searches.", "search.md")
    add_records_option(parser)
    parser.add_argument("--queries", type=int, default=400, help="queries of each kind (400)")
    parser.add_argument("--tries", type=int, default=1_000, help="queries for each measure of quality (1,000)")
    parser.add_argument(
        "--vocabularies", type=int, default=0, help="instead, compare searches over so many with those over one"
    )
    options = parser.parse_args()
    if options.vocabularies:
        return run_and_publish(
            lambda: run_vocabularies(options.records, options.vocabularies, options.queries), options.output
        )
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
            client = ApiClient(server.port)
            speed, target_results = measure_speed(client, fts, records, workload)
            client.reconnect()
            target_results += measure_quality(client, records, workload.tries)
            target_results += [measure_index_delay(client, token, 100), measure_annotation(client, records)]
        fts.close()
    target_results += [
        TargetResult(
            f"size of the index, at most {_MAX_INDEX_MB} MB", f"{size / 1e6:.0f} MB", size <= _MAX_INDEX_MB * 1e6
        ),
        TargetResult(
            f"time to build the index, at most {_MAX_BUILD_SECONDS} s",
            f"{build_seconds:.0f} s",
            build_seconds <= _MAX_BUILD_SECONDS,
        ),
        TargetResult(
            f"time from start to the first search response, at most {_MAX_START_SECONDS} s",
            f"{median(starts):.2f} s",
            median(starts) <= _MAX_START_SECONDS,
        ),
    ]
    peer_table = ReportTable("Index of the baseline", ("", "build time, s"), [("FTS5", f"{fts_build:.0f}")])
    tables = [build_target_table(target_results), speed, peer_table]
    return tables, _build_page(tables, workload)


def _build_page(tables: list[ReportTable], workload: SearchWorkload) -> str:
    method = (
        f"{workload.records:,} generated records (names of one to four words that follow Zipf's law, 40 % with"
        " aliases, most with a definition) on SQLite. One worker runs on one core, warmed up, and one client on another"
        f" core. The client sends {workload.queries:,} queries of each kind over HTTP, one after another, in"
        f" {len(HIT_LIMITS)} rounds with different hit limits, so that no response is cached. The time of a query is"
        " the median of the rounds, because other programs use the same machine; the p99 of all single responses is"
        " shown beside it. The start-up time is the median of as many starts. FTS5 with bm25 has the same records and"
        " runs in the client's process, without HTTP; it does not tolerate typos, so such queries find nothing."
        f" Quality is measured with {workload.tries:,} random records; any record with the same folded name counts as"
        " correct. Annotated texts consist of ordinary words and uniformly chosen names of the catalogue; the speed is"
        f" the median of {_TEXT_COUNT // 2} texts."
    )
    return build_page("search", method, tables, workload.records)


if __name__ == "__main__":
    sys.exit(main())
