"""Measure the three read scenarios on one server."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.http_client import FetchedResponse, check_collection, check_not_modified, check_record, fetch
from benchmarks.harness.memory import get_memory_bytes
from benchmarks.harness.server_process import RunningServer, ServerSpec, run_server
from benchmarks.harness.wrk import LoadRequest, LoadResult, WrkRunner


class ReadScenario(Enum):
    """Kind of read; the value is its name in the report."""

    COLLECTION = "whole collection"
    RECORD = "one record"
    NOT_MODIFIED = "304 for the whole collection"


@dataclass(frozen=True)
class ReadResult:
    """Result of one scenario on one server; memory is that of all its processes right after the load."""

    speed: LoadResult
    memory_bytes: int


def measure_server(
    server: ServerSpec, catalogue: BenchmarkCatalogue, loader: WrkRunner, core: int | None, seconds: float
) -> Iterator[tuple[ReadScenario, ReadResult]]:
    """Start a server, verify its responses, measure each scenario under load, and stop the server.

    Raise UnexpectedResponse, with the server's name, at the first wrong response.
    """
    with run_server(server, core, server.record_path) as running_server:
        try:
            for scenario, request in _build_requests(running_server, catalogue):
                speed = loader.measure(request, seconds)
                yield scenario, ReadResult(speed, get_memory_bytes(running_server.pid))
        except UnexpectedResponse as error:
            raise UnexpectedResponse(f"{server.name}: {error}") from error


def _build_requests(
    running_server: RunningServer, catalogue: BenchmarkCatalogue
) -> Iterator[tuple[ReadScenario, LoadRequest]]:
    server = running_server.server
    collection, request = _build_request(
        server, server.collection_path, {}, lambda response: check_collection(response, catalogue.concepts)
    )
    yield ReadScenario.COLLECTION, request
    _, request = _build_request(
        server, server.record_path, {}, lambda response: check_record(response, catalogue.sample_record)
    )
    yield ReadScenario.RECORD, request
    if server.supports_304:
        if collection.etag is None:
            raise UnexpectedResponse("The whole collection has no ETag.")
        headers = {"If-None-Match": collection.etag}
        _, request = _build_request(server, server.collection_path, headers, check_not_modified)
        yield ReadScenario.NOT_MODIFIED, request


def _build_request(
    server: ServerSpec, path: str, headers: dict[str, str], check: Callable[[FetchedResponse], None]
) -> tuple[FetchedResponse, LoadRequest]:
    start = time.perf_counter()
    response = fetch(server.port, path, headers)
    seconds = time.perf_counter() - start
    check(response)
    return response, LoadRequest(server.port, path, headers, response.status, response.body, seconds)
