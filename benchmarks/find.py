"""Finding: how good the first hits are and how soon they come, beside SQLite's FTS5 over the same records.

Run it from the repository's root as `python -m benchmarks.find`. It prints tables and writes them to
`docs/benchmarks-finding.md`. It ends with 1 where an answer was wrong.
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

from benchmarks.annotate import CHARACTERS, LEAST_MB_PER_SECOND, MENTION_EVERY
from benchmarks.answers import HOST
from benchmarks.cores import choose_cores, pinned
from benchmarks.errors import WrongAnswer
from benchmarks.fts import Fts
from benchmarks.large import command, filled, percentile, percentiles, serving
from benchmarks.made import MadeText
from benchmarks.processes import running
from benchmarks.questions import KINDS, Kind, beginning, flipped, mistyped
from benchmarks.records import Record
from benchmarks.report import TARGETED, Table, page_of, published, verdict_table
from benchmarks.targets import Verdict
from lexarium.search.folding import fold

ROOT = Path(__file__).parents[1]
_MOST_MB = 600
_MOST_BUILD_SECONDS = 150
_MOST_START_SECONDS = 1.5
_MOST_FOLLOW_MS = 100
_BEGUN_RECORDS = 2_000
"""Where the beginning of a name is to tell it: among more records more names begin alike, and none is better."""
_TEXTS = 14
"""How many texts are annotated; those of the first half warm up."""
_MENTION_EVERY = MENTION_EVERY[0]
_NAMES_SECONDS = 600
"""How long the names of the catalogue may take to be read."""
_PREFIXES = ("prefixes",)
LIMITS = (10, 11, 12)
"""How many hits are asked for, in each round."""
_FIRST = "/api/v1/search?q=memory"


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    records: int
    queries: int
    """Of each kind."""
    tries: int
    """Of each kind of quality."""


class Client:
    """One connection that asks one query after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=60)

    def reconnect(self) -> None:
        """Begin a new connection."""
        self._connection.close()

    def get(self, path: str) -> tuple[float, Any]:
        """An answer, and how many milliseconds it took to come."""
        began = time.perf_counter()
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        taken = (time.perf_counter() - began) * 1e3
        if response.status != 200:
            raise WrongAnswer(f"{path[:200]} answered {response.status}: {body[:200]!r}")
        return taken, json.loads(body)

    def search(self, text: str, limit: int = LIMITS[0]) -> tuple[float, Any]:
        """The answer to a search."""
        return self.get(f"/api/v1/search?q={quote(text)}&limit={limit}")

    def suggest(self, text: str, limit: int) -> tuple[float, Any]:
        """What a text may be completed to."""
        return self.get(f"/api/v1/suggest?prefix={quote(text)}&limit={limit}")

    def annotate(self, text: str) -> tuple[float, Any]:
        """The mentions in a text, and how many seconds they took to come; None while the names are being read."""
        began = time.perf_counter()
        self._connection.request("POST", "/api/v1/annotate", text.encode(), {"Content-Type": "text/plain"})
        response = self._connection.getresponse()
        body = response.read()
        taken = time.perf_counter() - began
        if response.status not in (200, 503):
            raise WrongAnswer(f"A text was answered with {response.status}: {body[:200]!r}")
        return taken, json.loads(body)["annotations"] if response.status == 200 else None

    def post(self, path: str, body: object, token: str) -> None:
        """Send a record that must be taken."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 201:
            raise WrongAnswer(f"{path} answered {response.status}: {answer[:200]!r}")


def measure_speed(client: Client, fts: Fts, records: Sequence[Record], scale: Scale) -> tuple[Table, list[Verdict]]:
    """Each kind of query: how soon its answers come, from here and from the peer."""
    drawn = {kind: _drawn(kind, records, scale.queries) for kind in KINDS}
    for texts in drawn.values():
        for text in texts[:50]:
            client.search(text, LIMITS[0] - 1)
    # Each round asks for another number of hits, so that no answer was there already. Kinds take turns: a minute in
    # which the machine is slow is not to be all that one of them gets.
    searches, completions = (
        [{kind: [ask(text, limit)[0] for text in texts] for kind, texts in drawn.items()} for limit in LIMITS]
        for ask in (client.search, client.suggest)
    )
    rows, verdicts = [], []
    for kind, texts in drawn.items():
        rounds = [times[kind] for times in searches]
        ours, complete = _middle(rounds), _middle([times[kind] for times in completions])
        peer = [fts.ask(text, prefixes=kind.name.startswith(_PREFIXES)) * 1e3 for text in texts[: scale.queries // 20]]
        every = percentile([each for times in rounds for each in times], 99)
        rows.append((kind.name, percentiles(ours), f"{every:.1f}", percentiles(complete), percentiles(peer)))
        p99 = percentile(ours, 99)
        verdicts.append(
            Verdict(f"p99 of {kind.name}, at most {kind.most_ms:g} ms", f"{p99:.1f} ms", p99 <= kind.most_ms)
        )
    client.reconnect()  # The peer may have taken so long that the server has hung up.
    columns = ("query", "search, ms", "p99 of every answer", "suggest, ms", "FTS5, ms")
    return Table("p50 and p99", columns, rows), verdicts


def _middle(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The median of each query's times: what only one of its rounds took was the machine's doing."""
    return [median(times) for times in zip(*rounds, strict=True)]


def measure_quality(client: Client, records: Sequence[Record], tries: int) -> list[Verdict]:
    """How often the right record comes first."""
    random = Random(7)
    some = random.choices(records, k=tries)
    least_typos = 0.95 if len(records) > 100_000 else 0.97

    def share(query: Callable[[str], str], first: int) -> float:
        return sum(_place(client, query(str(each["name"])), str(each["name"])) < first for each in some) / tries

    names = share(flipped, 1)
    typos = share(lambda name: mistyped(random, name), 1)
    begun = share(beginning, 5)
    aliases = [alias.strip() for each in some for alias in str(each["alias"]).split(",") if alias.strip()]
    right = sum(_alias_is_first(client, alias) for alias in aliases) / max(1, len(aliases))
    return [
        Verdict("exact name, case and accents flipped, first in 100 %", f"{names:.1%}", names == 1),
        Verdict("exact alias first but for names, in 100 %", f"{right:.1%}", right == 1),
        Verdict(f"one random edit, first in {least_typos:.0%}", f"{typos:.1%}", typos >= least_typos),
        Verdict(
            f"first 60 % of a name, among the first five (95 % at {_BEGUN_RECORDS:,} records)",
            f"{begun:.1%}",
            begun >= 0.95 if len(records) == _BEGUN_RECORDS else None,
        ),
    ]


def measure_following(client: Client, token: str, writes: int) -> Verdict:
    """How long after a write was acknowledged a search has found it."""
    taken = []
    for number in range(writes):
        name = f"followed {number} zyzzyva"
        client.post("/api/v1/concept", {"name": name}, token)
        milliseconds, answer = client.search(name)
        if not answer["hits"] or answer["hits"][0]["name"] != name:
            raise WrongAnswer(f"{name!r} was written and is not found.")
        taken.append(milliseconds)
    p99 = percentile(taken, 99)
    return Verdict(f"a write is found, p99, at most {_MOST_FOLLOW_MS} ms", f"{p99:.0f} ms", p99 <= _MOST_FOLLOW_MS)


def measure_annotating(client: Client, records: Sequence[Record]) -> Verdict:
    """How fast texts are read that mention names of the catalogue here and there."""
    deadline = time.monotonic() + _NAMES_SECONDS
    while client.annotate("")[1] is None:
        if time.monotonic() > deadline:
            raise WrongAnswer(f"The names were not there after {_NAMES_SECONDS} s.")
        time.sleep(1)
    texts = MadeText(sorted({str(each["name"]) for each in records}))
    speeds = []
    for _ in range(_TEXTS):
        text = texts.text(CHARACTERS, _MENTION_EVERY)
        seconds, found = client.annotate(text)
        if any(text[each["start"] : each["end"]] != each["text"] for each in found):
            raise WrongAnswer("A text does not say what was found in it.")
        if len({each["start"] for each in found}) < CHARACTERS // _MENTION_EVERY - 1:
            raise WrongAnswer("A text has more names than were found in it.")
        speeds.append(len(text.encode()) / 1e6 / seconds)
    speed = median(speeds[len(speeds) // 2 :])
    return Verdict(
        f"a text of 1 MB, a mention every {_MENTION_EVERY} characters, at least {LEAST_MB_PER_SECOND:g} MB/s",
        f"{speed:.1f} MB/s (the first of all {speeds[0]:.1f})",
        speed >= LEAST_MB_PER_SECOND,
    )


def _place(client: Client, text: str, name: str) -> int:
    """Where a record of this name is among the hits; past all of them where it is not."""
    key = fold(name).key
    hits = client.search(text)[1]["hits"]
    return next((place for place, hit in enumerate(hits) if fold(hit["name"]).key == key), len(hits) + 100)


def _alias_is_first(client: Client, alias: str) -> bool:
    key = fold(alias).key
    hits = client.get(f"/api/v1/search?limit=100&q={quote(flipped(alias))}")[1]["hits"]
    others = [hit for hit in hits if fold(hit["name"]).key != key]
    # Where more records have it as their name than a page holds, there is no other to look at.
    return (
        not others
        if len(hits) == 100 and not others
        else bool(others) and fold(others[0]["matched"]["text"]).key == key
    )


def _drawn(kind: Kind, records: Sequence[Record], count: int) -> list[str]:
    random = Random(kind.name)
    return [kind.draw(random, records) for _ in range(count)]


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.find", description="Measure searching.")
    parser.add_argument("--records", type=int, default=TARGETED, help="how many there are (1,000,000)")
    parser.add_argument("--queries", type=int, default=400, help="of each kind (400)")
    parser.add_argument("--tries", type=int, default=1_000, help="of each kind of quality (1,000)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-finding.md")
    options = parser.parse_args()
    scale = Scale(options.records, options.queries, options.tries)
    return published(lambda: _run(scale), lambda tables: _page(tables, scale), options.output)


def _run(scale: Scale) -> list[Table]:
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = f"sqlite:///{folder / 'catalogue.db'}"
        records, token = filled(folder, database, scale.records)
        began = time.perf_counter()
        command(database, "reindex")
        build = time.perf_counter() - began
        size = sum(path.stat().st_size for path in (folder / "catalogue.db-search").rglob("*") if path.is_file())
        fts = Fts(folder / "fts.db")
        fts_build = fts.build(records)
        server = serving(folder, database)
        starts = []
        for _ in LIMITS[1:]:
            with running(server, cores.server, _FIRST) as started:
                starts.append(started.start_seconds)
        with running(server, cores.server, _FIRST) as started, pinned(cores.load):
            starts.append(started.start_seconds)
            client = Client(server.port)
            speed, verdicts = measure_speed(client, fts, records, scale)
            client.reconnect()
            verdicts += measure_quality(client, records, scale.tries)
            verdicts += [measure_following(client, token, 100), measure_annotating(client, records)]
        fts.close()
    verdicts += [
        Verdict(f"index, at most {_MOST_MB} MB", f"{size / 1e6:.0f} MB", size <= _MOST_MB * 1e6),
        Verdict(f"to build it, at most {_MOST_BUILD_SECONDS} s", f"{build:.0f} s", build <= _MOST_BUILD_SECONDS),
        Verdict(
            f"first answer to a search after start, at most {_MOST_START_SECONDS} s",
            f"{median(starts):.2f} s",
            median(starts) <= _MOST_START_SECONDS,
        ),
    ]
    peer = Table("The peer's index", ("", "seconds to build"), [("FTS5", f"{fts_build:.0f}")])
    return [verdict_table(verdicts), speed, peer]


def _page(tables: list[Table], scale: Scale) -> str:
    method = (
        f"{scale.records:,} made records (names of one to four words that follow Zipf's law,"
        " two in five with aliases, most with a definition) on SQLite; one worker on one core, warm, and one client on"
        f" another that asks {scale.queries:,} queries of each kind over HTTP, one after another,"
        f" in {len(LIMITS)} rounds of all kinds, each for another number of hits, so that none was finished."
        " What a query takes is the median of its times, since others use the same machine; the p99 of every single"
        " answer stands beside it; of as many starts the median counts. FTS5 with bm25 holds"
        " the same records and is asked within the client's process, without HTTP; it does not forgive mistakes, so"
        f" that there it finds nothing. Quality is of {scale.tries:,} records drawn at random; a record of the same"
        " name, folded, counts as the right one. Texts have ordinary words among names of the catalogue, each as likely"
        f" as any other; the median of {_TEXTS // 2} counts."
    )
    return page_of("finding", method, tables, scale.records)


if __name__ == "__main__":
    sys.exit(main())
