"""Run a command in a pseudo-terminal."""

import os
import pty
import select
from collections.abc import Iterator

from tests.support.fork_server import ForkedProcess
from tests.support.polling import DEADLINE_SECONDS
from tests.support.server import build_environment


class TerminalCommand:
    """A `lexarium` command in a terminal of 80 columns."""

    def __init__(self, *arguments: object, answer: str = "") -> None:
        """Start it, and type an answer."""
        self._main, side = pty.openpty()
        environment = {**build_environment(), "TERM": "xterm-256color"}
        self.process = ForkedProcess([*map(str, arguments)], environment, side if answer else None, side)
        os.close(side)
        os.write(self._main, answer.encode())

    def iter_output(self) -> Iterator[str]:
        """Yield what it prints, until it ends."""
        while select.select([self._main], [], [], DEADLINE_SECONDS)[0]:
            try:
                chunk = os.read(self._main, 65536)
            except OSError:  # the other end is closed
                return
            yield chunk.decode(errors="replace")

    def wait(self) -> int:
        """Wait for its end and return the exit code."""
        self.process.communicate(DEADLINE_SECONDS)
        os.close(self._main)
        assert self.process.returncode is not None
        return self.process.returncode


def run_in_terminal(*arguments: object, answer: str = "") -> str:
    """Run a command in a terminal and return its output. The command must succeed."""
    command = TerminalCommand(*arguments, answer=answer)
    output = "".join(command.iter_output())
    assert command.wait() == 0
    return output
