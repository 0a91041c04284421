"""Permissions of the files that a process makes."""

import os
from functools import cache

_PRIVATE_UMASK = 0o077


@cache
def make_files_private() -> int:
    """Let only their owner use what this process and its workers make from now on; return the umask of before.

    Calling it again changes nothing and returns the same.
    """
    return os.umask(_PRIVATE_UMASK)


def apply_own_umask(descriptor: int) -> None:
    """Give a file that a person asked for the permissions that their own umask leaves."""
    os.fchmod(descriptor, 0o666 & ~make_files_private())
