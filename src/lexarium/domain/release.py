"""A named release of the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """A state of the catalogue that has a name, and can be cited."""

    name: str
    revision: int
    note: str
    author: str
    created_at: int
