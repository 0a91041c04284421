"""Forks `lexarium` from a process that has everything loaded already: a process a test, without the second of loading.

The test's process starts this one and talks to it over a socket: see `Child`.
"""

import atexit
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from typing import NoReturn

import uvicorn._subprocess

from lexarium.cli.main import COMMANDS, run
from lexarium.web.pages.site import templates
from lexarium.web.v1 import history, records, relations
from tests.passwords import use_cheap_hashes

_LOADED = ("lexarium.bootstrap", "lexarium.web.v1.app", "lexarium.store.upgrade", "lexarium.store.postgres", "uvloop")
_LONGEST = 1 << 20
_ROOT = Path(__file__).parents[1]
_asking = threading.Lock()


class Child:
    """A process of ours, as `subprocess` would have it, as far as tests need that."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        out, theirs_out = os.pipe()
        err, theirs_err = os.pipe()
        ask = {"arguments": list(arguments), "environment": dict(environment), "folder": os.getcwd()}
        self.pid = _ask(ask, [theirs_out, theirs_err])
        os.close(theirs_out)
        os.close(theirs_err)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)
        self.returncode: int | None = None
        self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._ended(0)

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end, and give the rest of what it said: nothing, the second time."""
        if self.stdout.closed:
            return "", ""
        if self.stderr.closed:
            return "", ""
        until = time.monotonic() + timeout
        said: dict[int, bytes] = {stream.fileno(): b"" for stream in (self.stdout, self.stderr)}
        open_still = set(said)
        while open_still:
            ready, _, _ = select(open_still, [], [], max(0, until - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired("lexarium", timeout)
            for each in ready:
                piece = os.read(each, _LONGEST)
                said[each] += piece
                if not piece:
                    open_still.remove(each)
        if self._ended(until - time.monotonic()) is None:
            raise subprocess.TimeoutExpired("lexarium", timeout)
        out, err = (said[stream.fileno()].decode() for stream in (self.stdout, self.stderr))
        self.stdout.close()
        self.stderr.close()
        return out, err

    def _ended(self, timeout: float) -> int | None:
        if self.returncode is None and select([self._handle], [], [], max(0, timeout))[0]:
            self.returncode = _ask({"ended": self.pid})
            os.close(self._handle)
        return self.returncode


@cache
def _nursery() -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.nursery", str(theirs.fileno())]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(_end, ours, process)
    return ours, process


def _end(ours: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    ours.close()
    process.wait()


def _ask(what: Mapping[str, object], descriptors: Sequence[int] = ()) -> int:
    with _asking:
        nursery, _ = _nursery()
        socket.send_fds(nursery, [json.dumps(what).encode()], descriptors)
        return int(nursery.recv(100))


def _serve(asked: socket.socket) -> None:
    """Fork whenever asked, until whoever asks is gone."""
    for name in (*COMMANDS.values(), *_LOADED):
        import_module(name)
    use_cheap_hashes()
    for module in (records, history, relations):
        module.routers()
    for name in templates().list_templates():
        templates().get_template(name)
    # Workers too are forked: uvicorn would start each anew, and so load everything again.
    setattr(uvicorn._subprocess, "spawn", multiprocessing.get_context("fork"))  # noqa: B010
    while True:
        told, descriptors, _, _ = socket.recv_fds(asked, _LONGEST, 2)
        if not told:
            return
        ask = json.loads(told)
        if "ended" in ask:
            _, status = os.waitpid(ask["ended"], 0)
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            asked.close()
            _become(ask, descriptors)
        for each in descriptors:
            os.close(each)
        asked.send(str(pid).encode())


def _become(ask: dict[str, object], descriptors: list[int]) -> NoReturn:
    """Run the command in this process, as if it had been started for it."""
    for descriptor, standard in zip(descriptors, (1, 2), strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(ask["environment"])  # type: ignore[call-overload]
    os.chdir(str(ask["folder"]))
    sys.argv = ["lexarium", *ask["arguments"]]  # type: ignore[misc]
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
