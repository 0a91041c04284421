"""What happens often in a file and is told once."""


class Tally:
    """Sentences, each with how often it was so and where first."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def add(self, sentence: str, line: int) -> None:
        """Count one."""
        count, first = self._seen.get(sentence, (0, line))
        self._seen[sentence] = (count + 1, first)

    def sentences(self) -> list[str]:
        """All there are, in the order in which they first were so."""
        return [
            f"{sentence} (on line {first})" if count == 1 else f"{sentence} ({count:,} times, first on line {first})"
            for sentence, (count, first) in self._seen.items()
        ]
