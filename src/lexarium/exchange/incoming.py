"""What every codec makes of its input."""

from dataclasses import dataclass, field

from lexarium.domain.errors import LexariumError
from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge, Side


class Malformed(LexariumError):
    """The input does not follow its format; nothing after this place can be read."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


@dataclass(slots=True)
class Incoming:
    """A record as a file gives it: only the fields that it holds, checked for their types."""

    line: int
    collection: str = ""
    fields: Fields = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    told: list[tuple[str, Side]] = field(default_factory=list)
    """Relations, and the end at which the record stands in them, of which `edges` holds all there are."""
    problems: list[str] = field(default_factory=list)
    """Why it cannot be taken."""
    warnings: list[str] = field(default_factory=list)
    """What is odd about it, though it is taken."""
