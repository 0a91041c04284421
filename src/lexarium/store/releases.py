"""Queries for releases and their files."""

import zlib
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, insert, select

from lexarium.domain.cache_tags import UNLOGGED_TAG
from lexarium.domain.release import Release, ReleaseFile
from lexarium.store.dependencies import depend_on
from lexarium.store.schema import release_chunk_table, release_file_table, release_table
from lexarium.store.transaction import Transaction

# Bytes of a file in one row, before compression.
CHUNK_BYTES = 1 << 16
# Rows that are read at once.
_CHUNK_BATCH = 16

_file, _chunk = release_file_table.c, release_chunk_table.c
_SELECT_RELEASES = select(release_table).order_by(release_table.c.revision.desc(), release_table.c.made.desc())


def add(transaction: Transaction, release: Release) -> None:
    """Add a release. Its name must be free."""
    # In the order of the columns.
    values = (release.name, release.revision, release.note, release.author, release.created_at)
    transaction.execute(insert(release_table).values(values))
    transaction.bump_accounts_revision()


def find(connection: Connection, name: str) -> Release | None:
    """Return the release with a name, or None."""
    with depend_on([UNLOGGED_TAG]):
        row = connection.execute(select(release_table).where(release_table.c.name == name)).one_or_none()
    return None if row is None else _to_release(row)


def list_all(connection: Connection) -> list[Release]:
    """Return all releases, the newest first."""
    with depend_on([UNLOGGED_TAG]):
        return [_to_release(row) for row in connection.execute(_SELECT_RELEASES)]


def find_file(connection: Connection, release: str, format: str) -> ReleaseFile | None:
    """Return the file of a release in a format, or None if it was not rendered yet."""
    query = select(release_file_table).where(_file.release == release, _file.format == format)
    with depend_on([UNLOGGED_TAG]):
        row = connection.execute(query).one_or_none()
    return None if row is None else ReleaseFile(*row)


def list_files(connection: Connection, release: str | None = None) -> list[ReleaseFile]:
    """Return the files that were rendered, of a release or of all."""
    query = select(release_file_table).order_by(_file.release, _file.format)
    if release is not None:
        query = query.where(_file.release == release)
    with depend_on([UNLOGGED_TAG]):
        return [ReleaseFile(*row) for row in connection.execute(query)]


def compress_chunk(chunk: bytes) -> bytes:
    """Return the content of the row of a chunk."""
    return zlib.compress(chunk)


def add_file(transaction: Transaction, file: ReleaseFile, compressed_chunks: Iterable[bytes]) -> None:
    """Add a file that a release does not have yet. All its chunks but the last have CHUNK_BYTES."""
    # In the order of the columns.
    values = (file.release, file.format, file.media_type, file.size, file.sha256, file.created_at)
    transaction.execute(insert(release_file_table).values(values))
    transaction.bump_accounts_revision()
    for number, content in enumerate(compressed_chunks):
        row = {"release": file.release, "format": file.format, "number": number, "content": content}
        transaction.execute(insert(release_chunk_table), row)


def list_chunks(connection: Connection, file: ReleaseFile, start: int) -> list[bytes]:
    """Return the next chunks of a file from a number on; none at its end."""
    query = select(_chunk.content).where(_chunk.release == file.release, _chunk.format == file.format)
    query = query.where(_chunk.number >= start).order_by(_chunk.number).limit(_CHUNK_BATCH)
    return [zlib.decompress(content) for content in connection.execute(query).scalars()]


def _to_release(row: Any) -> Release:
    return Release(row.name, row.revision, row.note, row.author, row.made)
