"""From the start of a server's process to its first answer."""

from benchmarks.processes import Server, running


def slowest_start(server: Server, core: int | None, starts: int) -> float:
    """Seconds to the first byte of a first answer: the slowest of several starts.

    Half of them first ask for one record, half for the whole collection.
    """
    slowest = 0.0
    for path in (server.record_path, server.collection_path):
        for _ in range(starts):
            with running(server, core, path) as started:
                slowest = max(slowest, started.start_seconds)
    return slowest
