"""Damage SQLite files."""

from pathlib import Path

PAGE_BYTES = 4096


def corrupt_pages(file: Path, text: bytes) -> None:
    """Overwrite the header of every page that contains a text."""
    with file.open("r+b") as stream:
        for start in range(0, file.stat().st_size, PAGE_BYTES):
            stream.seek(start)
            if text in stream.read(PAGE_BYTES):
                stream.seek(start)
                stream.write(b"\xff" * 64)
