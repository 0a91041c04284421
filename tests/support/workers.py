"""List the worker processes of a server."""

from contextlib import suppress
from pathlib import Path

from tests.support.server import Server


def list_worker_pids(server: Server) -> set[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    pids = set()
    for child_pid in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # it may have just ended
            if b"spawn_main" in Path(f"/proc/{child_pid}/cmdline").read_bytes():
                pids.add(int(child_pid))
    return pids
