"""What there is to tell of a document as a whole: each once, with how often it happened."""

from collections import Counter
from collections.abc import Iterator

from lexarium.exchange.incoming import Incoming


class Remarks:
    """Sentences, counted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, sentence: str, example: str = "") -> None:
        """Something happened (again); the first example is told."""
        self._counts[sentence] += 1
        self._examples.setdefault(sentence, example)

    def incoming(self) -> Iterator[Incoming]:
        """All of it as warnings about the document, where there is anything to tell."""
        warnings = [self._told(sentence, count) for sentence, count in self._counts.items()]
        if warnings:
            yield Incoming(0, warnings=warnings)

    def _told(self, sentence: str, count: int) -> str:
        example = self._examples[sentence]
        first = f", first {example}" if example and count > 1 else f": {example}" if example else ""
        return f"{sentence} ({count:,} times{first})" if count > 1 else f"{sentence}{first}"
