"""Store the triples of a document by subject: on disk, with a small index in memory."""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

import orjson

from lexarium.formats.rdf.parser import ParsedTriple, RdfLiteral

# A smaller document is kept in memory.
_MAX_MEMORY_BYTES = 8 << 20


class SubjectTriples(NamedTuple):
    """The predicates and objects of a subject in order, and the line of the first."""

    line: int
    properties: list[tuple[str, str | RdfLiteral]]


class TripleStore:
    """The triples of a document. The index takes about 250 bytes per subject.

    Adjacent triples of one subject are written as one chunk. A chunk contains the offset of the previous chunk of the
    same subject, so that the index needs only the last.
    """

    def __init__(self) -> None:
        # Numbers of the predicates, in the order of their first triples.
        self.predicate_numbers: dict[str, int] = {}
        self._file = SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 (closed with the store)
        self._last_offset: dict[str, int] = {}
        self._predicates: list[str] = []
        self._end_offset = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def add(self, triples: Iterable[ParsedTriple]) -> None:
        """Add triples."""
        subject, line, numbers = "", 0, self.predicate_numbers
        properties: list[tuple[Any, ...]] = []
        self._file.seek(self._end_offset)
        for triple_line, triple_subject, predicate, value in triples:
            if triple_subject != subject:
                self._write(subject, line, properties)
                subject, line, properties = triple_subject, triple_line, []
            number = numbers.setdefault(predicate, len(numbers))
            properties.append((number, *value) if isinstance(value, RdfLiteral) else (number, value))
        self._write(subject, line, properties)
        self._predicates = list(numbers)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the subjects in the order of their first triples."""
        return iter(self._last_offset)

    def __contains__(self, subject: str) -> bool:
        """Return whether there are triples of a subject."""
        return subject in self._last_offset

    def get_subject(self, subject: str) -> SubjectTriples:
        """Return the triples of a subject, perhaps none."""
        line, chunks = 0, []
        offset = self._last_offset.get(subject, -1)
        while offset >= 0:
            self._file.seek(offset)
            offset, line, properties = orjson.loads(self._file.readline())
            chunks.append(properties)
        values = [
            (self._predicates[number], value[0] if len(value) == 1 else RdfLiteral(*value))
            for properties in reversed(chunks)
            for number, *value in properties
        ]
        return SubjectTriples(line, values)

    def _write(self, subject: str, line: int, properties: list[tuple[Any, ...]]) -> None:
        if not properties:
            return
        chunk = orjson.dumps([self._last_offset.get(subject, -1), line, properties]) + b"\n"
        self._file.write(chunk)
        self._last_offset[subject] = self._end_offset
        self._end_offset += len(chunk)
