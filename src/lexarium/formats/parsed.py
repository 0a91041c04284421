"""The options of every codec, and the parsed records that it yields."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lexarium.domain.change import Action
from lexarium.domain.errors import LexariumError
from lexarium.domain.labels import Alias
from lexarium.domain.plain_record import PlainRecord
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, Collection, Fields
from lexarium.domain.schema.relation_types import Side, qualify_name
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import Format


class ParseError(LexariumError):
    """The input is malformed. If it is raised, nothing after this position can be read."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


class ParseWarning(NamedTuple):
    """What is doubtful about a file, or a loss: what is in the file, but not read."""

    message: str
    is_loss: bool = False


class ParsedVersion(NamedTuple):
    """A version of a record and its metadata."""

    number: int
    # Versions with the same number are of one write.
    write_id: int
    at: int
    actor: str
    action: Action
    origin: ProposalOrigin | None
    summary: str


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
    # Instead of it, if a version has only plain values.
    plain_record: PlainRecord | None = None
    # For a file with history: the version. Each version is a record of its own, complete, the oldest first.
    version: ParsedVersion | None = None
    # Reasons to reject the record.
    problems: list[str] = field(default_factory=list)
    warnings: list[ParseWarning] = field(default_factory=list)
    # Warnings about the whole file that are counted together with those of other files.
    counted_warnings: "WarningCounter | None" = None
    # The column of the problems; 0: unknown.
    column: int = 0

    def warn(self, message: str, *, is_loss: bool = False) -> None:
        """Add a warning."""
        self.warnings.append(ParseWarning(message, is_loss))


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
            # A vocabulary that does not exist has none.
            names = [f", or in the file's name, as in {item.local_name}.json" for item in self.vocabulary.collections]
            hint = f"choose it with --collection{next(iter(names), '')}"
            raise ParseError(f"the collection of the records is unknown: {hint}", line, 1)
        return collection

    def parse_collection(self, key: str, stated: object, record: ParsedRecord) -> Collection | None:
        """Return the collection of a record; if the stated one is unknown, add a problem and return None."""
        slug = self.vocabulary.slug
        collection = COLLECTIONS.get(qualify_name(slug, stated)) if isinstance(stated, str) else None
        if collection is not None and collection.vocabulary != slug:
            collection = None
        if self.collection is None and collection is None and stated is not None:
            names = ", ".join(item.local_name for item in self.vocabulary.collections)
            record.problems.append(f"its {key} is {stated!r}, which is not one of {names}")
            return None
        return self.choose_collection(collection, record.line)


# Of each message.
_MAX_EXAMPLES = 100_000


class WarningCounter:
    """Count warnings by message."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._losses: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the messages, without counts."""
        return iter(self._counts)

    def add(self, message: str, example: str = "", *, is_loss: bool = False) -> None:
        """Count a warning about an example."""
        self._counts[message] += 1
        if is_loss:
            self._losses.add(message)
        examples = self._examples.setdefault(message, [])
        if len(examples) < _MAX_EXAMPLES:
            examples.append(example)

    def update(self, other: "WarningCounter") -> None:
        """Add the counts of another."""
        self._counts.update(other._counts)
        self._examples = other._examples | self._examples
        self._losses |= other._losses

    def get_examples(self, message: str) -> list[str]:
        """Return what a message is about, of as many warnings as are kept."""
        return self._examples[message]

    def is_loss(self, message: str) -> bool:
        """Return whether a message is about a loss."""
        return message in self._losses

    def to_parsed_records(self) -> Iterator[ParsedRecord]:
        """Yield all warnings, with their counts, as one record about the whole file, if there are any."""
        warnings = [ParseWarning(self.format_message(message), self.is_loss(message)) for message in self]
        if warnings:
            yield ParsedRecord(0, warnings=warnings)

    def format_message(self, message: str) -> str:
        """Return a message with its count and example."""
        count, example = self._counts[message], self._examples[message][0]
        if count > 1:
            return f"{message} ({count:,} times{f', first {example}' if example else ''})"
        return f"{message} ({example})" if example else message


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing a file."""

    format: Format
    vocabulary: Vocabulary
    # The exported revision.
    revision: int = 0
    collections: Sequence[Collection] = ()
    # Metadata of the vocabulary, if it has any.
    head: Record | None = None
    # What the format cannot express, counted while the document is written.
    losses: WarningCounter = field(default_factory=WarningCounter)
