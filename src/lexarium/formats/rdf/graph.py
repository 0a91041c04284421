"""Store the triples of a document by subject: on disk, with a small index in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, Self

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
        self.predicate_counts: Counter[str] = Counter()
        self._file = SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 (closed with the store)
        self._last_offset: dict[str, int] = {}
        self._predicate_ids: dict[str, int] = {}
        self._predicates: list[str] = []
        self._end_offset = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, triples: Iterable[ParsedTriple]) -> None:
        """Add triples."""
        subject, line = "", 0
        properties: list[tuple[Any, ...]] = []
        self._file.seek(self._end_offset)
        for triple in triples:
            if triple.subject != subject:
                self._write(subject, line, properties)
                subject, line, properties = triple.subject, triple.line, []
            self.predicate_counts[triple.predicate] += 1
            predicate_id, value = self._intern_predicate(triple.predicate), triple.object
            properties.append((predicate_id, *value) if isinstance(value, RdfLiteral) else (predicate_id, value))
        self._write(subject, line, properties)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the subjects in the order of their first triples."""
        return iter(self._last_offset)

    def get_subject(self, subject: str) -> SubjectTriples:
        """Return the triples of a subject, perhaps none."""
        line, chunks = 0, []
        offset = self._last_offset.get(subject, -1)
        while offset >= 0:
            self._file.seek(offset)
            offset, line, properties = orjson.loads(self._file.readline())
            chunks.append(properties)
        values = [
            (self._predicates[predicate_id], RdfLiteral(*value) if len(value) == 2 else value[0])
            for properties in reversed(chunks)
            for predicate_id, *value in properties
        ]
        return SubjectTriples(line, values)

    def _intern_predicate(self, predicate: str) -> int:
        predicate_id = self._predicate_ids.setdefault(predicate, len(self._predicates))
        if predicate_id == len(self._predicates):
            self._predicates.append(predicate)
        return predicate_id

    def _write(self, subject: str, line: int, properties: list[tuple[Any, ...]]) -> None:
        if not properties:
            return
        chunk = orjson.dumps([self._last_offset.get(subject, -1), line, properties]) + b"\n"
        self._file.write(chunk)
        self._last_offset[subject] = self._end_offset
        self._end_offset += len(chunk)
