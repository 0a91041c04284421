"""Metrics in the Prometheus text format: of the node, and of the catalogue.

Any worker answers for its node: each writes its samples to a file of its own once a second. Counters of workers that
have ended still count; their gauges do not.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lexarium import __version__
from lexarium.domain.errors import StoreError
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.search.indexer import Indexer
from lexarium.services.webhooks.subscriptions import count_backlog
from lexarium.store.database import Database
from lexarium.web.http.limits import BodyMemory
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.admission import ConcurrencyLimit
from lexarium.web.middleware.request_log import DURATION_BUCKETS, RequestStats

METRICS_PATH = "/metrics"
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATM = Path("/proc/self/statm")
_BUCKETS = (*map(str, DURATION_BUCKETS), "+Inf")

# By metric and label values: one value; of a histogram the count of each bucket, and the sum.
Samples = dict[tuple[str, tuple[str, ...]], list[float]]


@dataclass(frozen=True)
class MetricInfo:
    """Type, help text and labels of a metric."""

    type: str
    help: str
    labels: tuple[str, ...] = ()


METRICS = {
    "lexarium_requests_total": MetricInfo("counter", "HTTP requests", ("method", "route", "status")),
    "lexarium_request_seconds": MetricInfo("histogram", "Time until the response starts, in seconds", ("route",)),
    "lexarium_server_errors_total": MetricInfo(
        "counter", "Internal errors: HTTP 500 responses and aborted responses", ("part", "reason")
    ),
    "lexarium_requests_in_progress": MetricInfo("gauge", "Requests in progress"),
    "lexarium_heavy_requests_in_progress": MetricInfo(
        "gauge", "Annotate, export and reconcile requests in progress, not included above"
    ),
    "lexarium_bodies_bytes": MetricInfo("gauge", "Bytes of request bodies in memory"),
    "lexarium_cache_hits_total": MetricInfo("counter", "Cache hits"),
    "lexarium_cache_misses_total": MetricInfo("counter", "Cache misses"),
    "lexarium_cache_bytes": MetricInfo("gauge", "Response cache size, in bytes"),
    "lexarium_writes_waiting": MetricInfo("gauge", "Queued writes"),
    "lexarium_connections_used": MetricInfo("gauge", "Database connections in use"),
    "lexarium_connections_most": MetricInfo("gauge", "Maximum database connections"),
    "lexarium_streams": MetricInfo("gauge", "Live change streams"),
    "lexarium_memory_bytes": MetricInfo("gauge", "Resident memory of all workers, in bytes"),
    "lexarium_workers": MetricInfo("gauge", "Running workers"),
    "lexarium_index_behind": MetricInfo("gauge", "Search index lag, in changes; -1 if there is no index"),
    "lexarium_index_skipped": MetricInfo("gauge", "Records that could not be indexed and are missing from search"),
    "lexarium_database_up": MetricInfo("gauge", "1 if the database can be read, else 0"),
    "lexarium_revision": MetricInfo("gauge", "Current revision"),
    "lexarium_webhook_backlog": MetricInfo("gauge", "Changes not yet processed by webhooks"),
    "lexarium_webhooks_failing": MetricInfo("gauge", "Webhooks whose last delivery failed"),
    "lexarium_webhooks_disabled": MetricInfo("gauge", "Disabled webhooks"),
    "lexarium_info": MetricInfo("gauge", "Always 1", ("version",)),
}


@dataclass(frozen=True)
class MetricsEndpoint:
    """Metrics of a node, from the parts of one of its workers. A collector of `prometheus_client`."""

    database: Database
    indexer: Indexer
    response_cache: ResponseCache
    event_streams: EventStreams
    request_stats: RequestStats
    request_limit: ConcurrencyLimit
    heavy_limit: ConcurrencyLimit
    body_memory: BodyMemory
    # Folder of the files through which workers share their samples; None with a single worker.
    directory: Path | None

    def route(self) -> Route:
        """Return the route of the endpoint."""
        return Route(METRICS_PATH, self.get_metrics)

    async def get_metrics(self, request: Request) -> Response:
        """Return all metrics as of now."""
        headers = {"cache-control": "no-store"}
        return Response(await run_in_threadpool(self._render), 200, headers, media_type=_MEDIA_TYPE)

    def write_worker_file(self) -> None:
        """Share the samples of this worker with the others of the node."""
        if self.directory is not None:
            samples = [(name, labels, values) for (name, labels), values in self._collect_worker().items()]
            temporary_path = self.directory / f"{os.getpid()}.part"
            temporary_path.write_bytes(orjson.dumps(samples))
            temporary_path.replace(self.directory / str(os.getpid()))

    def _render(self) -> bytes:
        from prometheus_client.exposition import generate_latest  # noqa: PLC0415 - loaded with the first scrape

        return generate_latest(cast("Any", self))  # which needs nothing but `collect`

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of the node and of the catalogue."""
        from prometheus_client import metrics_core  # noqa: PLC0415 - loaded with the first scrape

        samples = self._collect_node() | self._collect_database()
        for name, info in METRICS.items():
            own_samples = [(labels, values) for (metric, labels), values in samples.items() if metric == name]
            if info.type == "histogram":
                histogram = metrics_core.HistogramMetricFamily(name, info.help, labels=info.labels)
                for labels, (*counts, total) in own_samples:
                    histogram.add_metric(labels, list(zip(_BUCKETS, accumulate(counts), strict=True)), total)
                yield histogram
            else:
                is_counter = info.type == "counter"
                family = metrics_core.CounterMetricFamily if is_counter else metrics_core.GaugeMetricFamily
                metric_family = family(name, info.help, labels=info.labels)
                for labels, values in own_samples:
                    metric_family.add_metric(labels, values[0])
                yield metric_family

    def _collect_worker(self) -> Samples:
        load = self.database.load
        gauges_and_counters = {
            "lexarium_requests_in_progress": self.request_limit.active,
            "lexarium_heavy_requests_in_progress": self.heavy_limit.active,
            "lexarium_bodies_bytes": self.body_memory.reserved_bytes,
            "lexarium_cache_hits_total": self.response_cache.hits,
            "lexarium_cache_misses_total": self.response_cache.misses,
            "lexarium_cache_bytes": self.response_cache.usage[1],
            "lexarium_writes_waiting": load.queued_writes,
            "lexarium_connections_used": load.connections,
            "lexarium_connections_most": load.max_connections,
            "lexarium_streams": self.event_streams.count,
            "lexarium_memory_bytes": _resident_bytes(),
            "lexarium_workers": 1,
        }
        return _without_labels(gauges_and_counters) | self._collect_requests()

    def _collect_requests(self) -> Samples:
        stats = self.request_stats
        errors = stats.server_errors.items()
        samples: Samples = {("lexarium_server_errors_total", labels): [count] for labels, count in errors}
        for route, durations in list(stats.durations.items()):
            samples["lexarium_request_seconds", (route,)] = list(durations)
        for counter in (stats.counts, stats.cached_counts):
            for (method, route, status), count in list(counter.items()):
                samples.setdefault(("lexarium_requests_total", (method, route, str(status))), [0])[0] += count
                if counter is stats.cached_counts:  # These took next to no time.
                    no_durations = [0.0] * (len(_BUCKETS) + 1)
                    samples.setdefault(("lexarium_request_seconds", (route,)), no_durations)[0] += count
        return samples

    def _collect_node(self) -> Samples:
        totals = self._collect_worker()
        for samples, is_alive in self._read_other_workers():
            for key, values in samples.items():
                if is_alive or METRICS[key[0]].type != "gauge":
                    totals[key] = [a + b for a, b in zip(totals.get(key, [0] * len(values)), values, strict=True)]
        return totals

    def _read_other_workers(self) -> Iterator[tuple[Samples, bool]]:
        """Yield the last samples of each other worker, and whether it is alive."""
        for path in self.directory.iterdir() if self.directory is not None else ():
            if path.name.isdecimal() and int(path.name) != os.getpid():
                with suppress(OSError, ValueError):
                    entries = orjson.loads(path.read_bytes())
                    yield {(name, tuple(labels)): values for name, labels, values in entries}, _is_alive(int(path.name))

    def _collect_database(self) -> Samples:
        info: Samples = {("lexarium_info", (__version__,)): [1]}
        try:
            with self.database.read() as snapshot:
                position, backlog = get_position(snapshot), count_backlog(snapshot)
        except StoreError:
            return info | _without_labels({"lexarium_database_up": 0})
        index_lag = self.indexer.lag(position)
        gauges = {
            "lexarium_database_up": 1,
            "lexarium_revision": position.revision,
            "lexarium_index_behind": -1 if index_lag is None else index_lag,
            "lexarium_index_skipped": self.indexer.count_skipped(),
            "lexarium_webhook_backlog": backlog.pending_changes,
            "lexarium_webhooks_failing": backlog.failing,
            "lexarium_webhooks_disabled": backlog.disabled,
        }
        return info | _without_labels(gauges)


def _without_labels(values: Mapping[str, float]) -> Samples:
    return {(name, ()): [value] for name, value in values.items()}


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # where the system has no such file


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
