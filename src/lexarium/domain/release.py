"""A named release of a vocabulary."""

from dataclasses import dataclass

from lexarium.domain.identifiers import get_local_id, split_id


@dataclass(frozen=True)
class Release:
    """Named revision of a vocabulary, for citation."""

    # Unique in the database.
    name: str
    revision: int
    note: str
    author: str
    created_at: int

    @property
    def local_name(self) -> str:
        """Name in its vocabulary."""
        return get_local_id(self.name)

    @property
    def vocabulary(self) -> str:
        """Slug of its vocabulary."""
        return split_id(self.name)[0]


@dataclass(frozen=True)
class ReleaseFile:
    """File of a release in a format. Its bytes never change."""

    # Name that is unique in the database.
    release: str
    format: str
    media_type: str
    size: int
    # Checksum in hexadecimal.
    sha256: str
    created_at: int
