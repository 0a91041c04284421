"""JSON Lines: every version of every record with all its metadata, in the order of the change log."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, get_args

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.identifiers import MAIN_VOCABULARY, MAX_TARGET_BYTES, get_local_id, is_id_too_long, qualify_id
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, AliasScope, is_language_tag
from lexarium.domain.plain_record import parse_plain_record
from lexarium.domain.record import ProposalOrigin, Record, RecordState, Relation
from lexarium.domain.schema.collections import VOCABULARY, Collection, get_collection
from lexarium.domain.statement import normalize, parse_statements
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.nouns import add_article
from lexarium.domain.vocabulary import SERVER_CHOICES, VOCABULARIES, Vocabulary
from lexarium.formats.json import valpha
from lexarium.formats.parsed import ParsedRecord, ParsedVersion, ParseError, ReadOptions, WriteOptions

# Raise this when an older Lexarium would misread the output.
FORMAT_VERSION = 3
# Version of an export of one vocabulary.
_SINGLE_VERSION = 2

_MAX_LINE_BYTES = 64 << 20
_MAX_INT64 = 2**63 - 1
_STATES = frozenset(RecordState)
_ACTIONS = {action.value: action for action in Action}
_ALIAS_SCOPES: tuple[str, ...] = get_args(AliasScope)


def _describe(vocabulary: Vocabulary) -> dict[str, str]:
    names = ("title", "licence", "publisher", "language", "base")
    return {name: getattr(vocabulary, name) for name in names}


def write(changes: Iterable[Change | None], options: WriteOptions) -> Iterator[bytes]:
    """Yield a header line, then a line per change; for None, an empty chunk, so that the caller can pause.

    If there are several vocabularies, the header names them, and each line its own.
    """
    slug = options.vocabulary.slug
    slugs = list(dict.fromkeys(collection.vocabulary for collection in options.collections))
    is_single = len(slugs) < 2
    header: dict[str, Any] = {"lexarium": "jsonl", "format": _SINGLE_VERSION if is_single else FORMAT_VERSION}
    if is_single:
        header |= {} if slug == MAIN_VOCABULARY else {"vocabulary": slug}
        header |= _describe(options.vocabulary)
        # Elsewhere another vocabulary has other revisions, and its export should be the same.
        header |= {"revision": options.revision} if slug == MAIN_VOCABULARY else {}
    else:
        header |= {"vocabularies": slugs}
    yield orjson.dumps(header) + b"\n"
    last_write, write_number = (False, 0), 0
    for change in changes:
        if change is None:
            yield b""
            continue
        is_head = change.collection == VOCABULARY.name
        if (is_head, change.write_id) != last_write:
            last_write, write_number = (is_head, change.write_id), write_number + 1
        local_id = get_local_id(change.record_id)
        collection = get_collection(change.collection)
        subject = {"collection": collection.local_name, "id": local_id}
        if not is_single:
            subject = {"vocabulary": collection.vocabulary, **subject}
        metadata = {
            **({"vocabulary": local_id} if is_head else subject),
            "version": change.version,
            "write": write_number,
            "at": change.at,
            "actor": change.actor,
            "action": change.action,
        }
        # The document is JSON already. Parsing and serializing it again would take most of the time.
        document = _strip_choices(change) if is_head else change.document
        yield orjson.dumps(metadata)[:-1] + b"," + document[1:] + b"\n"


def _strip_choices(change: Change) -> bytes:
    """Return the document of a head record without what only this server has chosen."""
    record = change.to_record()
    kept = [statement for statement in record.statements if statement.predicate not in SERVER_CHOICES]
    return replace(record, statements=tuple(kept)).to_document(change.parse_origin(), change.parse_summary())


def find_vocabularies(head: bytes) -> list[str]:
    """Return the vocabularies that the first line of a document names: none, one, or several."""
    try:
        header = orjson.loads(head.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return []
    if not isinstance(header, dict) or "lexarium" not in header:
        return []
    slugs = header.get("vocabularies", [header.get("vocabulary")])
    return [slug for slug in slugs if isinstance(slug, str)] if isinstance(slugs, list) else []


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield the versions of records, or records in the v-alpha shape, one a line.

    If the first line names several vocabularies, each line goes into its own; else all into that of the options.
    """
    line_number, follows_head = 0, False
    slugs: list[str] = []
    while line := stream.readline(_MAX_LINE_BYTES):
        line_number += 1
        if line.isspace():
            continue
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            message = "the line is too long, or it" if len(line) == _MAX_LINE_BYTES else "the line"
            problem = f"{message} is not one JSON object: {error.msg}"
            yield ParsedRecord(line_number, column=error.colno, problems=[problem])
            continue
        is_head = _is_head(document)
        if follows_head and not is_head:
            # The caller registers the vocabulary before its first record is parsed.
            yield ParsedRecord(line_number)
        follows_head = is_head
        if line_number == 1:
            named = find_vocabularies(line)
            slugs = named if len(named) > 1 else []
        elif slugs:
            slug = document.get("vocabulary") if isinstance(document, dict) else None
            if slug not in slugs:
                message = f"its vocabulary is not one of {', '.join(slugs)}, which the first line names"
                yield ParsedRecord(line_number, problems=[message])
                continue
            options = replace(options, vocabulary=VOCABULARIES.get(slug) or Vocabulary(slug))
        yield _parse_line(line_number, document, options)
    if not line_number:
        raise ParseError("the file is empty; one record per line was expected", 1, 1)


def _is_head(document: Any) -> bool:
    """Return whether a line is a version of the head record of a vocabulary."""
    if not isinstance(document, dict) or "vocabulary" not in document:
        return False
    return "collection" not in document and "lexarium" not in document


def _parse_line(line_number: int, document: Any, options: ReadOptions) -> ParsedRecord:
    if not isinstance(document, dict):
        return ParsedRecord(line_number, column=1, problems=["an object, one record, was expected on the line"])
    if "lexarium" in document:
        return _parse_header(line_number, document, options)
    if _is_head(document):
        return _parse_version_line(line_number, {**document, "id": options.vocabulary.slug}, options, VOCABULARY)
    if "statements" not in document and options.vocabulary.slug != MAIN_VOCABULARY:
        return ParsedRecord(line_number, problems=["it has no statements"])
    is_version = "statements" in document or "record" in document
    return (_parse_version_line if is_version else valpha.parse_object)(line_number, document, options)


def _parse_header(line_number: int, document: dict[str, Any], options: ReadOptions) -> ParsedRecord:
    version = document.get("format")
    if document["lexarium"] != "jsonl" or type(version) is not int:
        message = "the line does not say which format it begins, as an export's first line does"
        raise ParseError(message, line_number, 1)
    if version > FORMAT_VERSION:
        message = f"a newer Lexarium wrote this: its format is {version}, and this one reads up to {FORMAT_VERSION}"
        raise ParseError(message, line_number, 1)
    language, own_language = document.get("language", ""), options.vocabulary.language
    parsed = ParsedRecord(line_number)
    if options.vocabulary.slug in VOCABULARIES and language and language != own_language:
        parsed.warn(f"its language is {language}, and this catalogue's is {own_language}; names are taken as they are")
    return parsed


def _parse_version_line(
    line_number: int, document: dict[str, Any], options: ReadOptions, collection: Collection | None = None
) -> ParsedRecord:
    record = ParsedRecord(line_number, targets_are_ids=True)
    collection = (
        collection or options.collection or options.parse_collection("collection", document.get("collection"), record)
    )
    if collection is None:
        return record
    record.collection = collection.name
    if "version" in document and "statements" in document and collection is not VOCABULARY:
        plain_record = parse_plain_record(collection, document)
        if plain_record is not None:
            record.plain_record, record.fields = plain_record, plain_record.fields
            _VersionParser(collection, document, record).parse_version()
            return record
    if "statements" in document:
        _parse_statements(collection, document, record)
    elif isinstance(document["record"], dict):
        valpha.parse_fields(collection, document["record"], record)
    else:
        record.problems.append("its record is not an object")
    if not record.problems:
        _VersionParser(collection, document, record).parse()
    return record


def _parse_statements(collection: Collection, document: dict[str, Any], record: ParsedRecord) -> None:
    record_id, assigned = document.get("id"), document.get("assigned", {})
    if not isinstance(record_id, str) or not record_id:
        record.problems.append("it has no id")
        return
    types = collection.field_types
    if not isinstance(assigned, dict) or not all(type(value) is types.get(name) for name, value in assigned.items()):
        record.problems.append(f"assigned of {record_id} is not an object of fields of {add_article(collection.name)}")
        return
    try:
        statements = normalize(parse_statements(document["statements"]))
    except ValueError as error:
        record.problems.append(f"statements of {record_id} {error}")
        return
    iri = document.get("iri")
    if iri is not None and not isinstance(iri, str):
        record.problems.append(f"the iri of {record_id} is not a text")
        return
    stated = Record(collection, qualify_id(collection.vocabulary, record_id), statements, iri=iri, assigned=assigned)
    targets = [relation.target for relation in stated.relations]
    if not all(targets) or any(len(target.encode()) > MAX_TARGET_BYTES for target in targets):
        record.problems.append(f"relations of {record_id} have a target that is empty or too long")
        return
    record.record, record.fields = stated, stated.fields
    if "version" not in document:
        stated_values = {statement.predicate: statement.value[0] for statement in stated.own_statements}
        record.fields = {"id": stated.fields["id"]}
        for name, predicate in collection.field_predicates.items():
            if predicate in stated_values:
                text = stated_values[predicate]
                # A text where an integer belongs is kept.
                is_misplaced = isinstance(text, str) and stated.has_text(name, text)
                record.fields[name] = text if is_misplaced else stated.fields[name]


class _VersionParser:
    """Parse the state, labels, relations and metadata of a version; check their types."""

    def __init__(self, collection: Collection, document: dict[str, Any], record: ParsedRecord) -> None:
        self._collection = collection
        self._document = document
        self._record = record
        self._id: str = record.fields["id"]

    def parse(self) -> None:
        record = self._record
        if self._document.get("id", self._id) != self._id:
            self._add_problem("id", f"is not its record's, {self._id}")
        state = self._get_text("state", RecordState.PUBLISHED)
        if state in _STATES:
            record.state = RecordState(state)
        else:
            self._add_problem("state", f"is not one of {', '.join(RecordState)}")
        replaced_by = self._get_text("replaced_by", None)
        record.replaced_by = None if replaced_by is None else qualify_id(self._collection.vocabulary, replaced_by)
        if record.record is None:
            record.aliases = self._parse_aliases()
            record.sources = tuple(self._get_texts("sources", self._document.get("sources", [])))
            self._parse_relations()
        else:
            record.record = record.record.with_state(record.state or RecordState.PUBLISHED, record.replaced_by)
        if "version" in self._document:
            self.parse_version()
        elif record.record is not None:
            record.aliases, record.sources = record.record.stored_aliases or None, record.record.sources
            record.relations = sorted(record.record.relations)
            record.complete_relations = [(name, "source") for name in sorted(self._collection.relation_types)]

    def _parse_relations(self) -> None:
        targets_by_type = self._document.get("relations", {})
        if not isinstance(targets_by_type, dict):
            self._add_problem("relations", "is not an object")
            return
        relation_types = self._collection.relation_types
        for name, targets in targets_by_type.items():
            if name not in relation_types:
                self._add_problem(
                    "relations", f"has {name!r}, which is not a relation of {add_article(self._collection.name)}"
                )
                continue
            for target in self._get_texts(f"relations/{name}", targets):
                is_internal = not relation_types[name].is_mapping
                if not target or (is_id_too_long(target) if is_internal else len(target.encode()) > MAX_TARGET_BYTES):
                    self._add_problem(f"relations/{name}", "has a target that is empty or too long")
                self._record.relations.append(Relation(self._id, name, target))
        self._record.complete_relations += [(name, "source") for name in sorted(relation_types)]

    def _parse_aliases(self) -> tuple[Alias, ...] | None:
        """Return the list of aliases; None if the field `alias` states them."""
        aliases = self._document.get("aliases")
        if aliases is None:
            return None
        if not isinstance(aliases, list) or not all(map(_is_alias, aliases)):
            self._add_problem("aliases", 'is not a list of other names, each as {"text": …, "lang": "en", "scope": …}')
            return None
        # Not validated like user input: imported aliases are kept as they are.
        return tuple(Alias.model_construct(**alias) for alias in aliases)

    def parse_version(self) -> None:
        """Parse the metadata."""
        version_number = self._get_integer("version", 1)
        write_id, at = self._get_integer("write", 0), self._get_integer("at", 0)
        actor, action = self._get_text("actor", "") or "", self._get_text("action", "") or ""
        if not actor or is_id_too_long(actor):
            self._add_problem("actor", "is missing, or too long")
        if action not in _ACTIONS:
            self._add_problem("action", f"is not one of {', '.join(Action)}")
        origin, summary = self._parse_origin(), self._get_text("summary", "") or ""
        if not self._record.problems:
            self._record.version = ParsedVersion(version_number, write_id, at, actor, _ACTIONS[action], origin, summary)

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
        if value is None:
            return default
        is_valid = isinstance(value, str) and not find_unstorable_char(value)
        return value if is_valid or self._get_texts(name, [value]) else default

    def _get_texts(self, name: str, values: Any) -> list[str]:
        """Return a list of texts; if it is not valid, add a problem and return an empty list."""
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self._add_problem(name, "is not made of texts")
            return []
        char = find_unstorable_char("".join(values))
        if char:
            self._add_problem(name, f"contains the character {char}, which cannot be stored")
            return []
        return values

    def _add_problem(self, name: str, message: str) -> None:
        self._record.problems.append(f"{name} of {self._id} {message}")


def _is_alias(candidate: Any) -> bool:
    is_text_dict = isinstance(candidate, dict) and all(isinstance(value, str) for value in candidate.values())
    if not is_text_dict or not {"text"} <= candidate.keys() <= {"text", "lang", "scope"}:
        return False
    # The RDF writers do not escape language tags, so an invalid one would break their output.
    return candidate.get("scope", "exact") in _ALIAS_SCOPES and is_language_tag(candidate.get("lang", DEFAULT_LANGUAGE))
