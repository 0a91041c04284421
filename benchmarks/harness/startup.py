"""From the start of a server's process to its first answer."""

from benchmarks.harness.server_process import ServerSpec, run_server


def measure_startup(server: ServerSpec, core: int | None, starts: int) -> float:
    """Seconds to the first byte of a first answer: the slowest of several starts.

    Half of them first ask for one record, half for the whole collection.
    """
    slowest = 0.0
    for path in (server.record_path, server.collection_path):
        for _ in range(starts):
            with run_server(server, core, path) as running_server:
                slowest = max(slowest, running_server.start_seconds)
    return slowest
