"""Files of releases: rendered when they are first requested, and kept."""

import errno
from collections.abc import Iterable, Iterator
from hashlib import sha256
from tempfile import TemporaryFile, gettempdir

from lexarium.domain.errors import DiskFull, StoreError
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.release import Release, ReleaseFile
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import Format
from lexarium.services.records.releases import get_release
from lexarium.services.transfer.export import export_records
from lexarium.store import releases
from lexarium.store.database import Database
from lexarium.store.releases import CHUNK_BYTES

find_file = releases.find_file


def iter_rendering(
    database: Database, release: Release, format: Format, progress: ProgressCallback | None = None
) -> Iterator[ReleaseFile | None]:
    """Render the file of a release and store it; yield None after each step, and the file at the end.

    If another process has stored the file meanwhile, that one counts. Raise LexariumError.
    """
    vocabulary = VOCABULARIES[release.vocabulary]
    document = export_records(
        database, vocabulary, format, vocabulary.collections, as_of=release.revision, progress=progress
    )
    digest, size, lengths = sha256(), 0, []
    # Rendering takes long and storing does not: nobody else can write meanwhile.
    with TemporaryFile() as spool:
        for chunk in _split_chunks(document):
            digest.update(chunk)
            size += len(chunk)
            try:
                lengths.append(spool.write(releases.compress_chunk(chunk)))
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise DiskFull(f"Not enough disk space in {gettempdir()} for the file of a release.") from None
            yield None
        spool.seek(0)
        file = ReleaseFile(release.name, format.name, format.media_type, size, digest.hexdigest(), now_ms())
        with database.write() as transaction:
            get_release(transaction.flush(), release.local_name, release.vocabulary)  # which may have been purged
            stored = find_file(transaction.flush(), release.name, format.name)
            if stored is None:
                releases.add_file(transaction, file, map(spool.read, lengths))
    yield stored or file


def iter_content(database: Database, file: ReleaseFile) -> Iterator[bytes]:
    """Yield the bytes of a file in chunks. They are read in short transactions: a slow reader blocks nothing."""
    number = size = 0
    while chunks := database.run_read(releases.list_chunks, file, number):
        yield from chunks
        number += len(chunks)
        size += sum(map(len, chunks))
    if size != file.size:
        raise StoreError("The file was deleted together with its vocabulary.")


def export_release(
    database: Database, release: Release, format: Format, progress: ProgressCallback | None = None
) -> Iterator[bytes]:
    """Yield the file of a release in chunks; render and store it first if needed. Raise LexariumError."""
    file = database.run_read(find_file, release.name, format.name)
    if file is None:
        *_, file = iter_rendering(database, release, format, progress)
        assert file is not None
    yield from iter_content(database, file)


def _split_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in chunks of CHUNK_BYTES; only the last may be shorter."""
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        while len(pending) >= CHUNK_BYTES:
            yield bytes(pending[:CHUNK_BYTES])
            del pending[:CHUNK_BYTES]
    if pending:
        yield bytes(pending)
