"""Run a command in a pseudo-terminal."""

import os
import pty
import select
import subprocess
import sys


def run_in_terminal(*arguments: object, answer: str = "") -> str:
    """Run a command in a terminal of 80 columns, and type an answer; return its output. The command must succeed."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "lexarium", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=side if answer else None, stderr=side, stdout=side, env=environment)
    os.close(side)
    os.write(main, answer.encode())
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
