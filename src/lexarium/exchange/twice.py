"""Reading a file twice: once for what is to be known beforehand, and once for its records."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lexarium.exchange.decoding import Readable

_IN_MEMORY = 8 << 20
_CHUNK = 1 << 20


@contextmanager
def kept(stream: Readable) -> Iterator[IO[bytes]]:
    """The stream as a file that can be gone back in; past a few megabytes it is on disk."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        shutil.copyfileobj(stream, file, _CHUNK)
        file.seek(0)
        yield file
