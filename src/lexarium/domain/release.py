"""A named release of the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """Named revision of the catalogue, for citation."""

    name: str
    revision: int
    note: str
    author: str
    created_at: int
