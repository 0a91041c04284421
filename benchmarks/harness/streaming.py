"""Measure server memory while streaming a collection larger than the cache limit."""

from dataclasses import dataclass, replace

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.http_client import check_collection, fetch
from benchmarks.harness.memory import PeakMemory, get_memory_bytes
from benchmarks.harness.server_process import ServerSpec, run_server

CACHE_MB = 1
# A body of this size exceeds that limit, however a server counts.
STREAMED_BODY_BYTES = 2_000_000 * CACHE_MB
_READ_COUNT = 3
# A server that ignores backpressure fills its memory while the client pauses.
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class StreamingResult:
    """Size of the body, and growth of the server's memory while it was read."""

    body_bytes: int
    growth_bytes: int


def measure_streaming(server: ServerSpec, catalogue: BenchmarkCatalogue, core: int | None) -> StreamingResult:
    """Read the whole collection several times from a server with a small cache, pausing within each body.

    Raise UnexpectedResponse if a body is not the collection that was loaded.
    """
    limited_server = replace(server, environment={**server.environment, "LEXARIUM_CACHE_MB": str(CACHE_MB)})
    with run_server(limited_server, core, limited_server.record_path) as running_server:
        before = get_memory_bytes(running_server.pid)
        with PeakMemory(running_server.pid) as memory:
            responses = [
                fetch(limited_server.port, limited_server.collection_path, pause_seconds=_PAUSE_SECONDS)
                for _ in range(_READ_COUNT)
            ]
    for response in responses:
        check_collection(response, catalogue.concepts)
    return StreamingResult(len(responses[0].body), memory.peak - before)
