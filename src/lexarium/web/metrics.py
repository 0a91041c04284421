"""Figures for whoever watches, as Prometheus reads them: of the node, or of the catalogue.

Any worker can be asked for those of its node: each tells the others how it stands, in a file of its own, once a second.
What a worker counted that has ended counts on; what it held is gone.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lexarium import __version__
from lexarium.domain.errors import StoreError
from lexarium.service.indexing import Indexer
from lexarium.store import webhooks
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.web.admission import Work
from lexarium.web.answers import Answers
from lexarium.web.limits import Bodies
from lexarium.web.streams import Streams
from lexarium.web.traffic import BOUNDS, Traffic

PATH = "/metrics"
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATM = Path("/proc/self/statm")

Key = tuple[str, tuple[str, ...]]
"""Of a figure: its name, and the values of its labels."""
Figures = dict[Key, float]


@dataclass(frozen=True)
class Metric:
    """A kind of figure."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()


METRICS = {
    "lexarium_requests_total": Metric("counter", "Requests that were answered", ("method", "route", "status")),
    "lexarium_request_seconds": Metric("histogram", "Seconds until an answer began", ("route", "le")),
    "lexarium_faults_total": Metric("counter", "Mistakes of the server's own, told from 0", ("part", "reason")),
    "lexarium_requests_in_work": Metric("gauge", "Requests that are worked on"),
    "lexarium_heavy_requests_in_work": Metric("gauge", "Requests to annotate, export or reconcile, beside those"),
    "lexarium_bodies_bytes": Metric("gauge", "Bytes that are held of what clients send"),
    "lexarium_cache_hits_total": Metric("counter", "Finished answers that were there"),
    "lexarium_cache_misses_total": Metric("counter", "Finished answers that had to be made"),
    "lexarium_cache_bytes": Metric("gauge", "Bytes of finished answers that are kept"),
    "lexarium_writes_waiting": Metric("gauge", "Writes that wait for their turn"),
    "lexarium_connections_used": Metric("gauge", "Connections to the database that are in use"),
    "lexarium_connections_most": Metric("gauge", "Connections to the database that there may be"),
    "lexarium_streams": Metric("gauge", "Live streams of changes"),
    "lexarium_memory_bytes": Metric("gauge", "Memory that the workers have, in bytes"),
    "lexarium_workers": Metric("gauge", "Workers that serve"),
    "lexarium_index_behind": Metric("gauge", "Changes that the search index lacks; -1 without one"),
    "lexarium_database_up": Metric("gauge", "1 where the database can be read, else 0"),
    "lexarium_revision": Metric("gauge", "The last change of the catalogue"),
    "lexarium_webhook_backlog": Metric("gauge", "Changes that webhooks have still to look at, of the catalogue"),
    "lexarium_webhooks_failing": Metric("gauge", "Webhooks whose last delivery failed, of the catalogue"),
    "lexarium_webhooks_disabled": Metric("gauge", "Webhooks that are disabled, of the catalogue"),
    "lexarium_info": Metric("gauge", "Always 1", ("version",)),
}
"""Every figure that is told."""
_PARTS = ("_bucket", "_sum", "_count")
"""What the names of a histogram's figures end in."""


@dataclass(frozen=True)
class Metrics:
    """The figures of a node, from the parts of one of its workers."""

    database: Database
    indexer: Indexer
    answers: Answers
    streams: Streams
    traffic: Traffic
    work: Work
    heavy: Work
    bodies: Bodies
    folder: Path | None
    """Where the workers of the node tell each other; None: there is one alone."""

    def route(self) -> Route:
        """Its address."""
        return Route(PATH, self.get)

    async def get(self, request: Request) -> Response:
        """All figures, as of now."""
        headers = {"cache-control": "no-store"}
        return Response(await run_in_threadpool(self._text), 200, headers, media_type=_MEDIA_TYPE)

    def publish(self) -> None:
        """Tell the other workers of the node how this one stands."""
        if self.folder is not None:
            own = [(name, labels, value) for (name, labels), value in self._own().items()]
            part = self.folder / f"{os.getpid()}.part"
            part.write_bytes(orjson.dumps(own))
            part.replace(self.folder / str(os.getpid()))

    def _text(self) -> bytes:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for (name, labels), value in (self._node() | self._catalogue()).items():
            found[_metric_of(name)].append(_line(name, labels, value))
        lines = []
        for name, metric in METRICS.items():
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}", *found[name]]
        return "\n".join([*lines, ""]).encode()

    def _own(self) -> Figures:
        """How this worker stands."""
        load = self.database.load
        figures: Figures = {
            ("lexarium_requests_in_work", ()): self.work.requests,
            ("lexarium_heavy_requests_in_work", ()): self.heavy.requests,
            ("lexarium_bodies_bytes", ()): self.bodies.held,
            ("lexarium_cache_hits_total", ()): self.answers.hits,
            ("lexarium_cache_misses_total", ()): self.answers.misses,
            ("lexarium_cache_bytes", ()): self.answers.size,
            ("lexarium_writes_waiting", ()): load.waiting,
            ("lexarium_connections_used", ()): load.connections,
            ("lexarium_connections_most", ()): load.most,
            ("lexarium_streams", ()): self.streams.open,
            ("lexarium_memory_bytes", ()): _memory(),
            ("lexarium_workers", ()): 1,
        }
        figures |= self._requests()
        return figures

    def _requests(self) -> Figures:
        """What this worker has been asked."""
        figures: Figures = defaultdict(float)
        figures |= {("lexarium_faults_total", fault): count for fault, count in self.traffic.faults.items()}
        times = {route: list(each) for route, each in list(self.traffic.times.items())}
        for asked in (self.traffic.counts, self.traffic.finished):
            for (method, route, status), count in list(asked.items()):
                figures["lexarium_requests_total", (method, route, str(status))] += count
        for (_, route, _), count in list(self.traffic.finished.items()):
            times.setdefault(route, [0] * (len(BOUNDS) + 2))[0] += count
        for route, each in times.items():
            counted = list(accumulate(each[:-1]))
            for bound, within in zip((*map(str, BOUNDS), "+Inf"), counted, strict=True):
                figures["lexarium_request_seconds_bucket", (route, bound)] = within
            figures["lexarium_request_seconds_sum", (route,)] = each[-1]
            figures["lexarium_request_seconds_count", (route,)] = counted[-1]
        return figures

    def _node(self) -> Figures:
        """All workers together."""
        together = self._own()
        for figures, alive in self._others():
            for key, value in figures.items():
                metric = METRICS[_metric_of(key[0])]
                if alive or metric.kind != "gauge":
                    together[key] = together.get(key, 0) + value
        return together

    def _others(self) -> Iterator[tuple[Figures, bool]]:
        """What each other worker told last, and whether it is alive."""
        for path in self.folder.iterdir() if self.folder is not None else ():
            if path.name.isdecimal() and int(path.name) != os.getpid():
                with suppress(OSError, ValueError):
                    told = orjson.loads(path.read_bytes())
                    yield {(name, tuple(labels)): value for name, labels, value in told}, _alive(int(path.name))

    def _catalogue(self) -> Figures:
        """What is the same whoever is asked, but for how far this worker's index is."""
        figures: Figures = {("lexarium_info", (__version__,)): 1}
        try:
            with self.database.read() as snapshot:
                position, backlog = read_position(snapshot), webhooks.backlog(snapshot)
        except StoreError:
            return figures | {("lexarium_database_up", ()): 0}
        behind = self.indexer.lag(position)
        return figures | {
            ("lexarium_database_up", ()): 1,
            ("lexarium_revision", ()): position.revision,
            ("lexarium_index_behind", ()): -1 if behind is None else behind,
            ("lexarium_webhook_backlog", ()): backlog.waiting,
            ("lexarium_webhooks_failing", ()): backlog.failing,
            ("lexarium_webhooks_disabled", ()): backlog.disabled,
        }


def _metric_of(name: str) -> str:
    """The metric that a figure is of."""
    return name if name in METRICS else next(name.removesuffix(each) for each in _PARTS if name.endswith(each))


def _line(name: str, values: tuple[str, ...], value: float) -> str:
    names = METRICS[_metric_of(name)].labels
    labels = ",".join(f'{each}="{_escaped(text)}"' for each, text in zip(names, values, strict=False))
    return f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _memory() -> int:
    """What is resident; where the system does not tell, nothing."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
