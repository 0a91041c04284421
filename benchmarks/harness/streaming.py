"""What it costs a server's memory to send a collection that its cache may not hold."""

from dataclasses import dataclass, replace

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.http_client import check_collection, fetch
from benchmarks.harness.memory import PeakMemory, get_memory_bytes
from benchmarks.harness.server_process import ServerSpec, run_server

CACHE_MB = 1
# A body of at least this size is past that limit, whichever way a server counts.
STREAMED_BODY_BYTES = 2_000_000 * CACHE_MB
_READ_COUNT = 3
# A server that ignores how fast its reader is fills its memory while the reader pauses.
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class StreamingResult:
    """The size of the body, and how far above its level before the reading the server's memory rose."""

    body_bytes: int
    growth_bytes: int


def measure_streaming(server: ServerSpec, catalogue: BenchmarkCatalogue, core: int | None) -> StreamingResult:
    """Read the whole collection several times from a server with a small cache, pausing within each body.

    Raises WrongAnswer where a body is not the collection that was loaded.
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
