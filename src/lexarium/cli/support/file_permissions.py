"""Permissions of the files that a process creates."""

import os
from functools import cache

_PRIVATE_UMASK = 0o077


@cache
def make_files_private() -> int:
    """Make files of this process and its workers private from now on; return the original umask, also later."""
    return os.umask(_PRIVATE_UMASK)


def apply_own_umask(descriptor: int) -> None:
    """Give a file for the user the permissions of their own umask."""
    os.fchmod(descriptor, 0o666 & ~make_files_private())
