"""All statements of a document by their subject, wherever it makes them: on disk, with a small index in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, Self

import orjson

from lexarium.exchange.rdf import Statement, Text

_IN_MEMORY = 8 << 20
"""In bytes: a small document is not put on disk at all."""


class Subject(NamedTuple):
    """What a document says of something."""

    line: int
    """Where it first does."""
    said: list[tuple[str, str | Text]]
    """Predicates and their objects, in the order in which they are said."""


class Graph:
    """The statements of a document. The index takes some 250 bytes a subject, and nothing else grows with it.

    Statements that follow each other and have one subject are written as one piece. A piece says where the one before
    it is that has the same subject, so that the index needs to know only the last.
    """

    def __init__(self) -> None:
        self.uses: Counter[str] = Counter()
        """How often each predicate is used."""
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed with the graph)
        self._last: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._predicates: list[str] = []
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, statements: Iterable[Statement]) -> None:
        """Take all that is said."""
        subject, line = "", 0
        said: list[tuple[Any, ...]] = []
        self._file.seek(self._end)
        for statement in statements:
            if statement.subject != subject:
                self._write(subject, line, said)
                subject, line, said = statement.subject, statement.line, []
            self.uses[statement.predicate] += 1
            number, value = self._number(statement.predicate), statement.object
            said.append((number, *value) if isinstance(value, Text) else (number, value))
        self._write(subject, line, said)

    def __iter__(self) -> Iterator[str]:
        """Every subject, in the order in which they first come."""
        return iter(self._last)

    def __contains__(self, subject: str) -> bool:
        return subject in self._last

    def about(self, subject: str) -> Subject:
        """What is said of something, perhaps nothing."""
        line, pieces = 0, []
        place = self._last.get(subject, -1)
        while place >= 0:
            self._file.seek(place)
            place, line, said = orjson.loads(self._file.readline())
            pieces.append(said)
        return Subject(
            line,
            [
                (self._predicates[number], Text(*value) if len(value) == 2 else value[0])
                for said in reversed(pieces)
                for number, *value in said
            ],
        )

    def _number(self, predicate: str) -> int:
        number = self._numbers.setdefault(predicate, len(self._predicates))
        if number == len(self._predicates):
            self._predicates.append(predicate)
        return number

    def _write(self, subject: str, line: int, said: list[tuple[Any, ...]]) -> None:
        if not said:
            return
        piece = orjson.dumps([self._last.get(subject, -1), line, said]) + b"\n"
        self._file.write(piece)
        self._last[subject] = self._end
        self._end += len(piece)
