"""The dictionary of an annotator in one file, which is mapped into memory: what is not used is not read.

Numbers identify the terms. Names stay where they were when a file is written again, so that most of it is copied.
"""

import json
import marshal
import mmap
import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from lexarium.search.documents import INDEX_FORMAT
from lexarium.search.index import IndexedVocabulary, hold_lock

# Raise this when the layout changes, or when names are analyzed in another way.
_FILE_FORMAT = 1
_FORMAT = f"{_FILE_FORMAT} {INDEX_FORMAT} {sys.version_info[:2]} {marshal.version} {unicodedata.unidata_version}"
# A mark, the checksum of all that follows the header, and the position of the table of contents.
_HEADER = Struct("<8sIQ")
_MARK = b"lexarium"
_LENGTH_BYTES = 4
_OFFSET_CODE, _NUMBER_CODE = "Q", "I"
_WORDS_AT_ONCE = 20_000
_READ_BYTES = 1 << 20
_LOCK_SUFFIX, _NEW_SUFFIX = ".lock", ".new"

# The id, the name and the collection of a term, then the names that are looked for.
Entry = tuple[str, ...]


class FileDamaged(Exception):
    """The file cannot be read, or is of another format."""


class AnnotatorState(NamedTuple):
    """The state of the catalogue that a dictionary was built from."""

    epoch: str
    revision: int
    # Changes since it was built from the whole catalogue.
    changes_applied: int
    vocabularies: Mapping[str, IndexedVocabulary]


class AnnotatorFile:
    """A dictionary in a file, open for reading. The file may be replaced meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open a file and read all of it once; raise OSError, or FileDamaged."""
        with path.open("rb") as file:
            contents_position = _verify(file)
            self._view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        contents = self._read_object(contents_position)
        if contents["format"] != _FORMAT:
            raise FileDamaged("The format is another one.")
        self.state = _parse_state(contents["state"])
        self._word_positions: list[int] = contents["words"]
        self._offsets = self._cast(contents["offsets"], _OFFSET_CODE)
        self._sorted_numbers = self._cast(contents["numbers"], _NUMBER_CODE)
        self._entries_end: int = contents["entries_end"]
        self.entry_count = len(self._offsets)

    def __len__(self) -> int:
        return len(self._sorted_numbers)

    def iter_words(self) -> Iterator[dict[str, int]]:
        """Yield the words of all names in parts, each with the position of the names that begin with it, or 0."""
        return map(self._read_object, self._word_positions)

    def read_names(self, position: int) -> Any:
        """Return the names at a position."""
        return self._read_object(position + _LENGTH_BYTES)

    def copy_names(self, position: int) -> memoryview:
        """Return the names at a position as they are written."""
        start = position + _LENGTH_BYTES
        return self._view[start : start + int.from_bytes(self._view[position:start], "little")]

    def read_entry(self, number: int) -> Entry:
        """Return a term by its number."""
        entry: Entry = self._read_object(self._offsets[number])
        return entry

    def find_number(self, record_id: str) -> int | None:
        """Return the number of a term by its id, or None."""
        index = bisect_left(self._sorted_numbers, record_id, key=self._read_id)
        is_found = index < len(self) and self._read_id(self._sorted_numbers[index]) == record_id
        return self._sorted_numbers[index] if is_found else None

    def iter_ids(self) -> Iterator[tuple[str, int]]:
        """Yield the id and number of each term, by id."""
        return ((self._read_id(number), number) for number in self._sorted_numbers)

    def copy_entries(self) -> tuple[memoryview, "array[int]"]:
        """Return all terms as they are written, and where each begins."""
        return self._view[_HEADER.size : self._entries_end], array(_OFFSET_CODE, self._offsets)

    def _read_id(self, number: int) -> str:
        return self.read_entry(number)[0]

    def _read_object(self, position: int) -> Any:
        return marshal.loads(self._view[position:])  # noqa: S302 - our own file, with a checksum

    def _cast(self, span: tuple[int, int], code: str) -> memoryview:
        start, end = span
        return self._view[start:end].cast(code)  # type: ignore[call-overload, no-any-return]


class AnnotatorFileWriter:
    """Write a dictionary: its terms, then the names by their first word, then the words and ids."""

    def __init__(self, file: BinaryIO, base: AnnotatorFile | None) -> None:
        """Begin with the terms of another file, if there is one, under the numbers that they have."""
        self._file = file
        self._checksum = 0
        self._position = _HEADER.size
        self._offsets = array(_OFFSET_CODE)
        self._words: dict[str, int] = {}
        file.write(bytes(_HEADER.size))
        if base is not None:
            entries, self._offsets = base.copy_entries()
            for start in range(0, len(entries), _READ_BYTES):
                self._write(entries[start : start + _READ_BYTES])

    def add_entry(self, entry: Entry) -> None:
        """Add a term, under the next number."""
        self._offsets.append(self._write(marshal.dumps(entry)))

    def end_entries(self) -> None:
        """Mark that all terms were added."""
        self._entries_end = self._position

    def add_word(self, word: str, names: "bytes | memoryview | None") -> None:
        """Add a word with the names that begin with it, if there are any."""
        position = 0
        if names is not None:
            position = self._write(len(names).to_bytes(_LENGTH_BYTES, "little"))
            self._write(names)
        self._words[word] = position

    def finish(self, numbers: Iterable[int], state: AnnotatorState) -> None:
        """Write the numbers of the terms, sorted by id, and the table of contents."""
        words = iter(self._words.items())
        word_positions = []
        while part := dict(islice(words, _WORDS_AT_ONCE)):
            word_positions.append(self._write(marshal.dumps(part)))
        contents = {
            "format": _FORMAT,
            "state": json.dumps(state),
            "entries_end": self._entries_end,
            "words": word_positions,
            "offsets": self._write_array(self._offsets),
            "numbers": self._write_array(array(_NUMBER_CODE, numbers)),
        }
        contents_position = self._write(marshal.dumps(contents))
        self._file.seek(0)
        self._file.write(_HEADER.pack(_MARK, self._checksum, contents_position))

    def _write_array(self, items: "array[int]") -> tuple[int, int]:
        start = self._write(memoryview(items).cast("B"))
        return start, self._position

    def _write(self, data: "bytes | memoryview") -> int:
        """Write data; return its position."""
        position = self._position
        self._file.write(data)
        self._checksum = crc32(data, self._checksum)
        self._position += len(data)
        return position


@contextmanager
def replace_file(path: Path, base: AnnotatorFile | None) -> Iterator[AnnotatorFileWriter]:
    """Write a file that takes its place when the block ends; raise OSError, or IndexLocked if another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new_path = path.with_name(path.name + _NEW_SUFFIX)
    with hold_lock(path.with_name(path.name + _LOCK_SUFFIX)):
        try:
            with new_path.open("wb") as file:
                yield AnnotatorFileWriter(file, base)
            new_path.replace(path)
        finally:
            new_path.unlink(missing_ok=True)


def _verify(file: BinaryIO) -> int:
    """Return the position of the table of contents; raise FileDamaged if the file is not as it was written."""
    header = file.read(_HEADER.size)
    mark, expected, contents_position = _HEADER.unpack(header) if len(header) == _HEADER.size else (b"", 0, 0)
    checksum = 0
    # Not through the map, which would count as memory of the process.
    while mark == _MARK and (data := file.read(_READ_BYTES)):
        checksum = crc32(data, checksum)
    if mark != _MARK or checksum != expected or not contents_position:
        raise FileDamaged("The checksum is another one.")
    return int(contents_position)


def _parse_state(text: str) -> AnnotatorState:
    epoch, revision, changes_applied, vocabularies = json.loads(text)
    indexed = {slug: IndexedVocabulary(version, tuple(names)) for slug, (version, names) in vocabularies.items()}
    return AnnotatorState(epoch, revision, changes_applied, indexed)
