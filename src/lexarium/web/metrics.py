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
from lexarium.services.search.indexer import Indexer
from lexarium.store import webhooks
from lexarium.store.database import Database
from lexarium.store.position import read_position
from lexarium.web.http.limits import BodyMemory
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.admission import ConcurrencyLimit
from lexarium.web.middleware.request_log import DURATION_BUCKETS, RequestStats

METRICS_PATH = "/metrics"
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATM = Path("/proc/self/statm")

SampleKey = tuple[str, tuple[str, ...]]
"""Of a figure: its name, and the values of its labels."""
Samples = dict[SampleKey, float]


@dataclass(frozen=True)
class MetricDefinition:
    """A kind of figure."""

    type: str
    help: str
    labels: tuple[str, ...] = ()


METRICS = {
    "lexarium_requests_total": MetricDefinition(
        "counter", "Requests that were answered", ("method", "route", "status")
    ),
    "lexarium_request_seconds": MetricDefinition("histogram", "Seconds until an answer began", ("route", "le")),
    "lexarium_faults_total": MetricDefinition(
        "counter", "Mistakes of the server's own, told from 0", ("part", "reason")
    ),
    "lexarium_requests_in_work": MetricDefinition("gauge", "Requests that are worked on"),
    "lexarium_heavy_requests_in_work": MetricDefinition(
        "gauge", "Requests to annotate, export or reconcile, beside those"
    ),
    "lexarium_bodies_bytes": MetricDefinition("gauge", "Bytes that are held of what clients send"),
    "lexarium_cache_hits_total": MetricDefinition("counter", "Finished answers that were there"),
    "lexarium_cache_misses_total": MetricDefinition("counter", "Finished answers that had to be made"),
    "lexarium_cache_bytes": MetricDefinition("gauge", "Bytes of finished answers that are kept"),
    "lexarium_writes_waiting": MetricDefinition("gauge", "Writes that wait for their turn"),
    "lexarium_connections_used": MetricDefinition("gauge", "Connections to the database that are in use"),
    "lexarium_connections_most": MetricDefinition("gauge", "Connections to the database that there may be"),
    "lexarium_streams": MetricDefinition("gauge", "Live streams of changes"),
    "lexarium_memory_bytes": MetricDefinition("gauge", "Memory that the workers have, in bytes"),
    "lexarium_workers": MetricDefinition("gauge", "Workers that serve"),
    "lexarium_index_behind": MetricDefinition("gauge", "Changes that the search index lacks; -1 without one"),
    "lexarium_database_up": MetricDefinition("gauge", "1 where the database can be read, else 0"),
    "lexarium_revision": MetricDefinition("gauge", "The last change of the catalogue"),
    "lexarium_webhook_backlog": MetricDefinition(
        "gauge", "Changes that webhooks have still to look at, of the catalogue"
    ),
    "lexarium_webhooks_failing": MetricDefinition("gauge", "Webhooks whose last delivery failed, of the catalogue"),
    "lexarium_webhooks_disabled": MetricDefinition("gauge", "Webhooks that are disabled, of the catalogue"),
    "lexarium_info": MetricDefinition("gauge", "Always 1", ("version",)),
}
"""Every figure that is told."""
_HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
"""What the names of a histogram's figures end in."""


@dataclass(frozen=True)
class MetricsEndpoint:
    """The figures of a node, from the parts of one of its workers."""

    database: Database
    indexer: Indexer
    response_cache: ResponseCache
    event_streams: EventStreams
    request_stats: RequestStats
    request_limit: ConcurrencyLimit
    heavy_limit: ConcurrencyLimit
    body_memory: BodyMemory
    directory: Path | None
    """Where the workers of the node tell each other; None: there is one alone."""

    def route(self) -> Route:
        """Its address."""
        return Route(METRICS_PATH, self.get_metrics)

    async def get_metrics(self, request: Request) -> Response:
        """All figures, as of now."""
        headers = {"cache-control": "no-store"}
        return Response(await run_in_threadpool(self._render), 200, headers, media_type=_MEDIA_TYPE)

    def write_worker_file(self) -> None:
        """Tell the other workers of the node how this one stands."""
        if self.directory is not None:
            samples = [(name, labels, value) for (name, labels), value in self._collect_worker().items()]
            temporary_path = self.directory / f"{os.getpid()}.part"
            temporary_path.write_bytes(orjson.dumps(samples))
            temporary_path.replace(self.directory / str(os.getpid()))

    def _render(self) -> bytes:
        lines_by_metric: defaultdict[str, list[str]] = defaultdict(list)
        for (name, labels), value in (self._collect_node() | self._collect_database()).items():
            lines_by_metric[_find_metric(name)].append(_format_sample(name, labels, value))
        lines = []
        for name, metric in METRICS.items():
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.type}", *lines_by_metric[name]]
        return "\n".join([*lines, ""]).encode()

    def _collect_worker(self) -> Samples:
        """How this worker stands."""
        load = self.database.load
        samples: Samples = {
            ("lexarium_requests_in_work", ()): self.request_limit.active,
            ("lexarium_heavy_requests_in_work", ()): self.heavy_limit.active,
            ("lexarium_bodies_bytes", ()): self.body_memory.reserved_bytes,
            ("lexarium_cache_hits_total", ()): self.response_cache.hits,
            ("lexarium_cache_misses_total", ()): self.response_cache.misses,
            ("lexarium_cache_bytes", ()): self.response_cache.size,
            ("lexarium_writes_waiting", ()): load.queued_writes,
            ("lexarium_connections_used", ()): load.connections,
            ("lexarium_connections_most", ()): load.max_connections,
            ("lexarium_streams", ()): self.event_streams.count,
            ("lexarium_memory_bytes", ()): _resident_bytes(),
            ("lexarium_workers", ()): 1,
        }
        samples |= self._collect_requests()
        return samples

    def _collect_requests(self) -> Samples:
        """What this worker has been asked."""
        samples: Samples = defaultdict(float)
        samples |= {
            ("lexarium_faults_total", error_labels): count
            for error_labels, count in self.request_stats.server_errors.items()
        }
        durations_by_route = {route: list(durations) for route, durations in list(self.request_stats.durations.items())}
        for counter in (self.request_stats.counts, self.request_stats.cached_counts):
            for (method, route, status), count in list(counter.items()):
                samples["lexarium_requests_total", (method, route, str(status))] += count
        for (_, route, _), count in list(self.request_stats.cached_counts.items()):
            durations_by_route.setdefault(route, [0] * (len(DURATION_BUCKETS) + 2))[0] += count
        for route, durations in durations_by_route.items():
            cumulative_counts = list(accumulate(durations[:-1]))
            for bound, within in zip((*map(str, DURATION_BUCKETS), "+Inf"), cumulative_counts, strict=True):
                samples["lexarium_request_seconds_bucket", (route, bound)] = within
            samples["lexarium_request_seconds_sum", (route,)] = durations[-1]
            samples["lexarium_request_seconds_count", (route,)] = cumulative_counts[-1]
        return samples

    def _collect_node(self) -> Samples:
        """All workers together."""
        totals = self._collect_worker()
        for samples, is_alive in self._read_other_workers():
            for key, value in samples.items():
                metric = METRICS[_find_metric(key[0])]
                if is_alive or metric.type != "gauge":
                    totals[key] = totals.get(key, 0) + value
        return totals

    def _read_other_workers(self) -> Iterator[tuple[Samples, bool]]:
        """What each other worker told last, and whether it is alive."""
        for path in self.directory.iterdir() if self.directory is not None else ():
            if path.name.isdecimal() and int(path.name) != os.getpid():
                with suppress(OSError, ValueError):
                    entries = orjson.loads(path.read_bytes())
                    yield {(name, tuple(labels)): value for name, labels, value in entries}, _is_alive(int(path.name))

    def _collect_database(self) -> Samples:
        """What is the same whoever is asked, but for how far this worker's index is."""
        samples: Samples = {("lexarium_info", (__version__,)): 1}
        try:
            with self.database.read() as snapshot:
                position, backlog = read_position(snapshot), webhooks.count_backlog(snapshot)
        except StoreError:
            return samples | {("lexarium_database_up", ()): 0}
        index_lag = self.indexer.lag(position)
        return samples | {
            ("lexarium_database_up", ()): 1,
            ("lexarium_revision", ()): position.revision,
            ("lexarium_index_behind", ()): -1 if index_lag is None else index_lag,
            ("lexarium_webhook_backlog", ()): backlog.pending_changes,
            ("lexarium_webhooks_failing", ()): backlog.failing,
            ("lexarium_webhooks_disabled", ()): backlog.disabled,
        }


def _find_metric(name: str) -> str:
    """The metric that a figure is of."""
    return (
        name
        if name in METRICS
        else next(name.removesuffix(suffix) for suffix in _HISTOGRAM_SUFFIXES if name.endswith(suffix))
    )


def _format_sample(name: str, values: tuple[str, ...], value: float) -> str:
    names = METRICS[_find_metric(name)].labels
    labels = ",".join(f'{label}="{_escape(text)}"' for label, text in zip(names, values, strict=False))
    return f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _resident_bytes() -> int:
    """What is resident; where the system does not tell, nothing."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
