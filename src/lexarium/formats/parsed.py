"""What every codec is told, and what it makes of its input."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lexarium.domain.change import Action
from lexarium.domain.errors import LexariumError
from lexarium.domain.labels import Alias
from lexarium.domain.record import ProposalOrigin, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import Format


class ParseError(LexariumError):
    """The input does not follow its format; where it is raised, nothing after this place can be read."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column

    def to_parsed_record(self) -> "ParsedRecord":
        """The same as one mistake among others, where what comes after it can be read."""
        return ParsedRecord(self.line, column=self.column, problems=[self.reason])


def missing_collection_error(line: int) -> ParseError:
    """Nothing tells what the records are."""
    message = "nothing tells which collection the records belong to: name it with --collection, or in the file's name"
    return ParseError(f"{message}, as in {next(iter(COLLECTIONS))}.json", line, 1)


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read."""

    format: Format
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    collection: Collection | None = None
    """What its records are, whatever they say."""
    default_collection: Collection | None = None
    """What they are where they do not say."""
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    """What a column or predicate of the file means that the codec does not know: the name of a field or relation."""


class ParsedVersion(NamedTuple):
    """A version of a record, and how it came to be."""

    number: int
    write_id: int
    """Versions with the same number were made by one write."""
    at: int
    actor: str
    action: Action
    origin: ProposalOrigin | None


@dataclass(slots=True)
class ParsedRecord:
    """A record as a file gives it: only what the file holds of it, checked for its types."""

    line: int
    """0: what it says is of the file as a whole."""
    collection: str = ""
    foreign_id: str = ""
    """What the file calls the record where that is no id of ours: an IRI or a CURIE. `fields` has no id then."""
    fields: Fields = field(default_factory=dict)
    aliases: tuple[Alias, ...] | None = None
    """None: not told, or told by the field `alias`."""
    sources: tuple[str, ...] | None = None
    """None: not told."""
    state: RecordState | None = None
    """None: not told."""
    replaced_by: str | None = None
    """An id, or what the file calls that record."""
    relations: list[Relation] = field(default_factory=list)
    """Ends are ids, or what the file calls those records."""
    complete_relations: list[tuple[str, Side]] = field(default_factory=list)
    """Relations, and the end at which the record stands in them, of which `edges` holds all there are."""
    is_manual: bool = False
    """Whether people may have misspelt what `edges` name: where one is not known, `told` does not hold of its kind."""
    targets_are_ids: bool = False
    """Whether `edges` and `replaced_by` name records by nothing but ids, whatever these look like."""
    version: ParsedVersion | None = None
    """Where the file tells history: which version this is. Then each comes by itself, whole, the oldest first."""
    problems: list[str] = field(default_factory=list)
    """Why it cannot be taken."""
    warnings: list[str] = field(default_factory=list)
    """What is odd about it, though it is taken."""
    column: int = 0
    """Where on the line its problems are; 0: anywhere."""


class WarningCounter:
    """Sentences, counted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, message: str, example: str = "") -> None:
        """Something happened (again); the first example is told."""
        self._counts[message] += 1
        self._examples.setdefault(message, example)

    def messages(self) -> list[str]:
        """All of it, in the order in which it first happened."""
        return [self._format_message(message, count) for message, count in self._counts.items()]

    def to_parsed_records(self) -> Iterator[ParsedRecord]:
        """All of it as warnings about the document, where there is anything to tell."""
        if self._counts:
            yield ParsedRecord(0, warnings=self.messages())

    def _format_message(self, message: str, count: int) -> str:
        example = self._examples[message]
        if count > 1:
            return f"{message} ({count:,} times{f', first {example}' if example else ''})"
        return f"{message} ({example})" if example else message
