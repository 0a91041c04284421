"""The options of every codec, and the parsed records that it yields."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lexarium.domain.change import Action
from lexarium.domain.errors import LexariumError
from lexarium.domain.labels import Alias
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import Collection, Fields
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import Format


class ParseError(LexariumError):
    """The input is malformed. If it is raised, nothing after this position can be read."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column

    def to_parsed_record(self) -> "ParsedRecord":
        """Return a rejected record, for input that can be read on after the error."""
        return ParsedRecord(self.line, column=self.column, problems=[self.reason])


class ParsedVersion(NamedTuple):
    """A version of a record and its metadata."""

    number: int
    # Versions with the same number are of one write.
    write_id: int
    at: int
    actor: str
    action: Action
    origin: ProposalOrigin | None


@dataclass(slots=True)
class ParsedRecord:
    """A record as a file states it. None means that the file states nothing."""

    # 0: the warnings are about the whole file.
    line: int
    collection: str = ""
    # The IRI or CURIE of a record that is not ours; `fields` has no id then.
    foreign_id: str = ""
    fields: Fields = field(default_factory=dict)
    # Whether values have the types of their fields. If not, one is a text where an integer belongs.
    is_typed: bool = True
    # Also None if the field `alias` states them.
    aliases: tuple[Alias, ...] | None = None
    sources: tuple[str, ...] | None = None
    state: RecordState | None = None
    # An id of ours or of the file.
    replaced_by: str | None = None
    # Their ends are ids of ours or of the file.
    relations: list[Relation] = field(default_factory=list)
    # Relation types, with the side of this record, of which `relations` is the complete list.
    complete_relations: list[tuple[str, Side]] = field(default_factory=list)
    # Written by hand: if a target in `relations` is unknown, it may be misspelt, and the list is not complete.
    is_manual: bool = False
    # Whether `relations` and `replaced_by` contain only ids of ours, whatever they look like.
    targets_are_ids: bool = False
    # The whole record, if the file states it so; the other attributes are views of it.
    record: Record | None = None
    # For a file with history: the version. Each version is a record of its own, complete, the oldest first.
    version: ParsedVersion | None = None
    # Reasons to reject the record.
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # Warnings about the whole file that are counted together with those of other files.
    counted_warnings: "WarningCounter | None" = None
    # The column of the problems; 0: unknown.
    column: int = 0


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file."""

    format: Format
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    # Overrides what the records state.
    collection: Collection | None = None
    # For records that state no collection.
    default_collection: Collection | None = None
    # Fields or relation types by the columns or predicates that the codec does not know.
    column_mapping: Mapping[str, str] = field(default_factory=dict)

    def choose_collection(self, stated: Collection | None, line: int) -> Collection:
        """Return the overriding, stated or default collection; raise ParseError if there is none."""
        collection = self.collection or stated or self.default_collection
        if collection is None:
            first = self.vocabulary.collections[0].local_name
            hint = f"name it with --collection, or in the file's name, as in {first}.json"
            raise ParseError(f"nothing tells which collection the records belong to: {hint}", line, 1)
        return collection

    def parse_collection(self, key: str, stated: object, record: ParsedRecord) -> Collection | None:
        """Return the collection of a record; if the stated one is unknown, add a problem and return None."""
        known = {collection.local_name: collection for collection in self.vocabulary.collections}
        collection = known.get(stated) if isinstance(stated, str) else None
        if self.collection is None and collection is None and stated is not None:
            record.problems.append(f"its {key} is {stated!r}, which is none of {', '.join(known)}")
            return None
        return self.choose_collection(collection, record.line)


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing a file."""

    format: Format
    vocabulary: Vocabulary
    # The exported revision.
    revision: int = 0
    collections: Sequence[Collection] = ()


class WarningCounter:
    """Count warnings by message."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the messages, without counts."""
        return iter(self._counts)

    def add(self, message: str, example: str = "") -> None:
        """Count a warning; only the first example is kept."""
        self._counts[message] += 1
        self._examples.setdefault(message, example)

    def update(self, other: "WarningCounter") -> None:
        """Add the counts of another."""
        self._counts.update(other._counts)
        self._examples = other._examples | self._examples

    def to_parsed_records(self, *other_warnings: str) -> Iterator[ParsedRecord]:
        """Yield all warnings, with their counts, as one record about the whole file, if there are any."""
        messages = [self.format_message(message) for message in self]
        if other_warnings or messages:
            yield ParsedRecord(0, warnings=[*other_warnings, *messages])

    def format_message(self, message: str) -> str:
        """Return a message with its count and example."""
        count, example = self._counts[message], self._examples[message]
        if count > 1:
            return f"{message} ({count:,} times{f', first {example}' if example else ''})"
        return f"{message} ({example})" if example else message
