"""What it costs a server's memory to send a collection that its cache may not hold."""

from dataclasses import dataclass, replace

from benchmarks.answers import check_collection, fetch
from benchmarks.catalogue import Catalogue
from benchmarks.memory import PeakMemory, used_bytes
from benchmarks.processes import Server, running

CACHE_MB = 1
# A body of at least this size is past that limit, whichever way a server counts.
STREAMED_BODY_BYTES = 2_000_000 * CACHE_MB
_TIMES = 3
# A server that ignores how fast its reader is fills its memory while the reader pauses.
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Streamed:
    """The size of the body, and how far above its level before the reading the server's memory rose."""

    body_bytes: int
    growth_bytes: int


def stream(server: Server, catalogue: Catalogue, core: int | None) -> Streamed:
    """Read the whole collection several times from a server with a small cache, pausing within each body.

    Raises WrongAnswer where a body is not the collection that was loaded.
    """
    small = replace(server, environment={**server.environment, "LEXARIUM_CACHE_MB": str(CACHE_MB)})
    with running(small, core, small.record_path) as started:
        before = used_bytes(started.pid)
        with PeakMemory(started.pid) as memory:
            answers = [fetch(small.port, small.collection_path, pause_seconds=_PAUSE_SECONDS) for _ in range(_TIMES)]
    for answer in answers:
        check_collection(answer, catalogue.concepts)
    return Streamed(len(answers[0].body), memory.peak - before)
