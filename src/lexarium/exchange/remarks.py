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

    def sentences(self) -> list[str]:
        """All of it, in the order in which it first happened."""
        return [self._told(sentence, count) for sentence, count in self._counts.items()]

    def incoming(self) -> Iterator[Incoming]:
        """All of it as warnings about the document, where there is anything to tell."""
        if self._counts:
            yield Incoming(0, warnings=self.sentences())

    def _told(self, sentence: str, count: int) -> str:
        example = self._examples[sentence]
        if count > 1:
            return f"{sentence} ({count:,} times{f', first {example}' if example else ''})"
        return f"{sentence} ({example})" if example else sentence
