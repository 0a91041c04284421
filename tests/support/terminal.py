"""Run a command in a pseudo-terminal."""

import os
import pty
import select
import subprocess
import sys


def run_in_terminal(*arguments: object) -> str:
    """Run a command in a terminal of 80 columns; return its output. The command must succeed."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "lexarium", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=side, stdout=side, env={**os.environ, "TERM": "xterm-256color"})
    os.close(side)
    output = b""
    while select.select([main], [], [], 30)[0]:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        output += chunk
        if not chunk:
            break
    os.close(main)
    assert process.wait(30) == 0
    return output.decode()
