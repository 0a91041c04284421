"""JSON Lines: every version of every record, in the order of the log, with all that is known of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any, BinaryIO, get_args

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.identifiers import MAX_TARGET_BYTES, is_id_too_long
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, AliasScope, is_language_tag
from lexarium.domain.record import ProposalOrigin, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.json import valpha
from lexarium.formats.parsed import ParsedRecord, ParsedVersion, ParseError, ReadOptions, missing_collection_error

FORMAT_VERSION = 1
"""To be raised when an older Lexarium would misread what is written."""

_MAX_LINE_BYTES = 64 << 20
"""In bytes: a line that does not end by then is no record."""
_MAX_INT64 = 2**63 - 1
_ALIAS_SCOPES: tuple[str, ...] = get_args(AliasScope)


def write(vocabulary: Vocabulary, revision: int, changes: Iterable[Change | None]) -> Iterator[bytes]:
    """A line that says what it is, then a line a change; an empty piece where None stands for a pause."""
    yield (
        orjson.dumps({"lexarium": "jsonl", "format": FORMAT_VERSION, **asdict(vocabulary), "revision": revision})
        + b"\n"
    )
    last_write_id = write_number = 0
    for change in changes:
        if change is None:
            yield b""
            continue
        if change.write_id != last_write_id:
            last_write_id, write_number = change.write_id, write_number + 1
        metadata = {
            "collection": change.collection,
            "id": change.record_id,
            "version": change.version,
            "write": write_number,
            "at": change.at,
            "actor": change.actor,
            "action": change.action,
        }
        # The document is JSON already: to read it and write it again would take most of the time.
        yield orjson.dumps(metadata)[:-1] + b"," + change.document[1:] + b"\n"


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """The versions of records; also records as a v-alpha server gives them, one a line."""
    parser = _LineParser(options)
    line_number = 0
    while line := stream.readline(_MAX_LINE_BYTES):
        line_number += 1
        if line.strip():
            yield _parse_line(parser, line_number, line)
    if not line_number:
        raise ParseError("the file is empty; a record a line was expected", 1, 1)


def _parse_line(parser: "_LineParser", line_number: int, line: bytes) -> ParsedRecord:
    """What a line tells; what is wrong with it, where it is no JSON: the next may be."""
    try:
        document = _load_object(line_number, line)
    except ParseError as error:
        return error.to_parsed_record()
    return parser.parse(line_number, document)


def _load_object(line_number: int, line: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = "the line is too long, or it" if len(line) == _MAX_LINE_BYTES else "the line"
        raise ParseError(f"{message} is not one JSON object: {error.msg}", line_number, error.colno) from None
    if not isinstance(document, dict):
        raise ParseError("an object, one record, was expected on the line", line_number, 1)
    return document


class _LineParser:
    """Makes records of the lines of a document."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._options_by_collection = {
            name: replace(options, collection=collection, column_mapping={}) for name, collection in COLLECTIONS.items()
        }
        """How a record of each collection is read."""

    def parse(self, line_number: int, document: dict[str, Any]) -> ParsedRecord:
        """What a line tells."""
        if "lexarium" in document:
            return self._parse_header(line_number, document)
        if "record" not in document:
            return valpha.parse_object(line_number, document, self._options)
        collection = self._options.collection or self._find_collection(line_number, document)
        if collection is None:
            message = f"its collection is {document['collection']!r}, which is none of {', '.join(COLLECTIONS)}"
            return ParsedRecord(line_number, problems=[message])
        if not isinstance(document["record"], dict):
            return ParsedRecord(line_number, problems=["its record is not an object"])
        record = valpha.parse_object(line_number, document["record"], self._options_by_collection[collection.name])
        if not record.problems:
            _HistoryFields(collection, document, record).parse()
        return record

    def _parse_header(self, line_number: int, document: dict[str, Any]) -> ParsedRecord:
        version = document.get("format")
        if document["lexarium"] != "jsonl" or type(version) is not int:
            raise ParseError(
                "the line does not say which format it begins, as an export's first line does", line_number, 1
            )
        if version > FORMAT_VERSION:
            message = f"a newer Lexarium wrote this: its format is {version}, and this one reads up to {FORMAT_VERSION}"
            raise ParseError(message, line_number, 1)
        language, own_language = document.get("language", ""), self._options.vocabulary.language
        warning = f"its language is {language}, and this catalogue's is {own_language}; names are taken as they are"
        return ParsedRecord(line_number, warnings=[warning] if language and language != own_language else [])

    def _find_collection(self, line_number: int, document: dict[str, Any]) -> Collection | None:
        name = document.get("collection")
        if name is None:
            if self._options.default_collection is None:
                raise missing_collection_error(line_number)
            return self._options.default_collection
        return COLLECTIONS.get(name) if isinstance(name, str) else None


class _HistoryFields:
    """What a line tells of a record besides its fields, checked for its types."""

    def __init__(self, collection: Collection, document: dict[str, Any], record: ParsedRecord) -> None:
        self._collection = collection
        self._document = document
        self._record = record
        self._id: str = record.fields["id"]

    def parse(self) -> None:
        """Take all of it."""
        record = self._record
        if self._document.get("id", self._id) != self._id:
            self._add_problem("id", f"is not its record's, {self._id}")
        state = self._get_text("state", RecordState.PUBLISHED)
        if state in set(RecordState):
            record.state = RecordState(state)
        else:
            self._add_problem("state", f"is none of {', '.join(RecordState)}")
        record.replaced_by = self._get_text("replaced_by", None)
        record.aliases = self._parse_aliases()
        record.sources = tuple(self._get_texts("sources", self._document.get("sources", [])))
        self._parse_relations()
        if "version" in self._document:
            self._parse_version()

    def _parse_relations(self) -> None:
        targets_by_type = self._document.get("relations", {})
        if not isinstance(targets_by_type, dict):
            self._add_problem("relations", "is not an object")
            return
        relation_types = self._collection.relation_types
        for name, targets in targets_by_type.items():
            if name not in relation_types:
                self._add_problem("relations", f"has {name!r}, which is no relation of a {self._collection.name}")
                continue
            for target in self._get_texts(f"relations/{name}", targets):
                is_internal = relation_types[name].target_collection is not None
                if not target or (is_id_too_long(target) if is_internal else len(target.encode()) > MAX_TARGET_BYTES):
                    self._add_problem(f"relations/{name}", "has a target that is empty or too long")
                self._record.relations.append(Relation(self._id, name, target))
        self._record.complete_relations += [(name, "source") for name in sorted(relation_types)]

    def _parse_aliases(self) -> tuple[Alias, ...] | None:
        """Those told as a list; None where the field `alias` tells them."""
        aliases = self._document.get("aliases")
        if aliases is None:
            return None
        if not isinstance(aliases, list) or not all(map(_is_alias, aliases)):
            self._add_problem("aliases", 'is not a list of other names, each as {"text": …, "lang": "en", "scope": …}')
            return None
        # Not held to the rules for what people write: what was imported once is kept as it is.
        return tuple(Alias.model_construct(**alias) for alias in aliases)

    def _parse_version(self) -> None:
        """Take which version it is, and how it came to be."""
        version_number, write_id, at = (
            self._get_integer(name, minimum) for name, minimum in (("version", 1), ("write", 0), ("at", 0))
        )
        actor, action = self._get_text("actor", "") or "", self._get_text("action", "") or ""
        if not actor or is_id_too_long(actor):
            self._add_problem("actor", "is missing, or too long")
        if action not in set(Action):
            self._add_problem("action", f"is none of {', '.join(Action)}")
        origin = self._parse_origin()
        if not self._record.problems:
            self._record.version = ParsedVersion(version_number, write_id, at, actor, Action(action), origin)

    def _parse_origin(self) -> ProposalOrigin | None:
        origin = self._document.get("proposed")
        if origin is None:
            return None
        if not isinstance(origin, dict) or set(origin) != {"proposal", "by"}:
            self._add_problem("proposed", 'is not as {"proposal": …, "by": …}')
            return None
        return ProposalOrigin(*self._get_texts("proposed", [origin["proposal"], origin["by"]]))

    def _get_integer(self, name: str, minimum: int) -> int:
        value = self._document.get(name)
        if type(value) is not int or not minimum <= value <= _MAX_INT64:
            self._add_problem(name, f"is not a whole number from {minimum} on")
            return minimum
        return value

    def _get_text(self, name: str, default: str | None) -> str | None:
        value = self._document.get(name)
        return default if value is None else next(iter(self._get_texts(name, [value])), default)

    def _get_texts(self, name: str, values: Any) -> list[str]:
        """A list of texts; an empty one where it is none, which is noted."""
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self._add_problem(name, "is not made of texts")
            return []
        char = find_unstorable_char("".join(values))
        if char:
            self._add_problem(name, f"holds the character {char}, which cannot be stored")
            return []
        return values

    def _add_problem(self, name: str, message: str) -> None:
        self._record.problems.append(f"{name} of {self._id} {message}")


def _is_alias(candidate: Any) -> bool:
    is_text_dict = isinstance(candidate, dict) and all(isinstance(value, str) for value in candidate.values())
    if not is_text_dict or not {"text"} <= candidate.keys() <= {"text", "lang", "scope"}:
        return False
    # Formats of RDF write a language as it stands: what is none would break them.
    return candidate.get("scope", "exact") in _ALIAS_SCOPES and is_language_tag(candidate.get("lang", DEFAULT_LANGUAGE))
