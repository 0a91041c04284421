"""SSSOM: mappings as a table, with the prefixes and metadata of the set in comments before it."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

import yaml

from lexarium.domain.identifiers import find_target_problem
from lexarium.domain.identity.prefixes import OBO_BASE, PrefixMap, load_bundled
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.domain.schema.predicates import NAMESPACES
from lexarium.domain.schema.yaml_nodes import InvalidYaml, YamlMapping, YamlNode, YamlScalar, YamlSequence, parse_yaml
from lexarium.domain.statement import Node, Reference, Statement, Text, Value
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError, WarningCounter, WriteOptions
from lexarium.formats.resources import ParsedResource, ResourceOptions, SourceDescription
from lexarium.formats.tables.cells import escape_formula
from lexarium.formats.tables.table_file import TableFile, TableRow, parse_id, parse_predicate

_PREFIX = "sssom:"
_SUBJECT, _PREDICATE, _OBJECT, _JUSTIFICATION = "subject_id", "predicate_id", "object_id", "mapping_justification"
_FIRST_COLUMNS = (_SUBJECT, _PREDICATE, _OBJECT, _JUSTIFICATION)
# Justification of mappings that have none. The format needs one, and it says nothing.
_UNSPECIFIED = "semapv:UnspecifiedMatching"
_UNSPECIFIED_LICENCE = "https://w3id.org/sssom/license/unspecified"
_DATATYPES = {
    **dict.fromkeys(("confidence", "similarity_score", "semantic_similarity_score"), "xsd:double"),
    **dict.fromkeys(("mapping_date", "publication_date", "review_date"), "xsd:date"),
}
_FORMS = {"xsd:double": re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"), "xsd:date": re.compile(r"[0-9-]{10}")}
_REFERENCES = frozenset((_JUSTIFICATION, "mapping_source", "subject_source", "object_source", "curation_rule", "issue"))
# Slots with several values, separated by bars.
_MULTIVALUED = frozenset(
    (
        *("author_id", "author_label", "creator_id", "creator_label", "reviewer_id", "reviewer_label", "see_also"),
        *("subject_match_field", "object_match_field", "match_string", "subject_preprocessing", "object_preprocessing"),
        *("curation_rule", "curation_rule_text"),
    )
)
# Metadata of the set that hold for every mapping without a value of its own.
_PROPAGATED = frozenset(
    (
        *("mapping_date", "mapping_provider", "mapping_tool", "mapping_tool_version", "similarity_measure"),
        *("subject_source", "subject_source_version", "subject_type", "subject_match_field", "subject_preprocessing"),
        *("object_source", "object_source_version", "object_type", "object_match_field", "object_preprocessing"),
    )
)
_READ_METADATA = frozenset(("curie_map", "mapping_set_id", "extension_definitions"))
# Mappings that are written as texts.
_TEXT_PREDICATES = frozenset(("oboInOwl:hasDbXref",))
# A mapping that a row denies: a node with predicate, object and the rest of the row.
_DENIED_MAPPING = f"{_PREFIX}mappings"
_PREDICATE_PROPERTY, _OBJECT_PROPERTY, _MODIFIER = (
    f"{_PREFIX}{name}" for name in (_PREDICATE, _OBJECT, "predicate_modifier")
)
_NO_TARGET = "sssom:NoTermFound"
# Type of an extension whose values are references.
_REFERENCE_TYPE = "linkml:Uriorcurie"
# Extension that says what kind of value an object is, if it is not the usual one: a datatype or `_REFERENCE_TYPE`.
_OBJECT_KIND = "lexarium:object_kind"
_STRING = "xsd:string"
# Namespaces of prefixes that nobody knows. The format needs one for each.
_UNKNOWN_NAMESPACE = "urn:lexarium:prefix:"
_CURIE = re.compile(r"([A-Za-z_][\w.-]*):(?!//).+", re.DOTALL)
_BAR = re.compile(r"\\[\\|]|\|")

_MAX_MEMORY_BYTES = 8 << 20


class _Extension(NamedTuple):
    """Column of a qualifier that SSSOM has no slot for."""

    predicate: str
    # Datatype, `_REFERENCE_TYPE`, or empty.
    type: str = ""
    lang: str = ""


def open_document(stream: BufferedReader, options: ResourceOptions) -> "MappingTable":
    """Read the metadata and titles of a mapping set; raise ParseError."""
    return MappingTable(stream)


class MappingTable:
    """Mappings, row by row."""

    def __init__(self, stream: BufferedReader) -> None:
        self.warnings = WarningCounter()
        self._table = TableFile(stream, lambda title: title in _FIRST_COLUMNS, has_comments=True)
        self.close = self._table.close
        self._columns = {title: index for index, title in reversed([*enumerate(self._table.titles)])}
        for title in (_SUBJECT, _PREDICATE, _OBJECT):
            if title not in self._columns:
                raise ParseError(f"there is no column {title}, which SSSOM needs", self._table.title_line, 1)
        try:
            metadata = parse_yaml(self._table.comments)
        except InvalidYaml as error:
            raise ParseError(str(error), error.line, 1) from None
        self._metadata = _to_data(metadata) if isinstance(metadata, YamlMapping) else {}
        curie_map = self._metadata.get("curie_map")
        self._namespaces: dict[str, str] = curie_map if isinstance(curie_map, dict) else {}
        self._extensions = _parse_extensions(self._metadata.get("extension_definitions"))
        ignored = [name for name in self._metadata if name not in _READ_METADATA | _PROPAGATED]
        if ignored:
            self.warnings.add(f"metadata of the mapping set are skipped: {', '.join(ignored)}", is_loss=True)
        self._stated: set[str] = set()

    def describe(self) -> SourceDescription:
        """Return the identity of the set, which is about records that are there already."""
        set_id = self._metadata.get("mapping_set_id")
        return SourceDescription(set_id if isinstance(set_id, str) else "", "", "", "", kind="mapping")

    def covers(self, statement: Statement) -> bool:
        """Return whether the table has mappings by a predicate."""
        return statement.predicate in self._stated

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield a resource for each row."""
        prefixes = load_bundled().extend(vocabulary.prefixes)
        propagated = [
            qualifier
            for name in self._metadata
            if name in _PROPAGATED and name not in self._columns
            for qualifier in self._state_values(name, self._metadata[name], prefixes)
        ]
        for row in self._table.iter_rows():
            yield self._parse_row(row, vocabulary, prefixes, propagated)

    def _parse_row(
        self, row: TableRow, vocabulary: Vocabulary, prefixes: PrefixMap, propagated: list[Statement]
    ) -> ParsedResource:
        subject, predicate_text, target = (row.cells[self._columns[title]].strip() for title in _FIRST_COLUMNS[:3])
        resource = ParsedResource(row.line, parse_id(self._expand(subject), vocabulary), "", is_update=True)
        problems = resource.problems
        predicate = parse_predicate(self._expand(predicate_text), vocabulary)
        if row.problem:
            problems.append((len(self._table.titles) + 1, row.problem))
        if not subject:
            problems.append((self._columns[_SUBJECT] + 1, "the row has no subject_id"))
        if predicate is None:
            message = f"{subject[:100]}: {predicate_text[:100]!r} is not a predicate, such as skos:exactMatch"
            problems.append((self._columns[_PREDICATE] + 1, message))
        if not target:
            problems.append((self._columns[_OBJECT] + 1, f"{subject[:100]} has no object_id"))
        if predicate is None or problems:
            return resource
        qualifiers = [
            qualifier
            for index, title in enumerate(self._table.titles)
            if title and title not in _FIRST_COLUMNS[:3] and row.cells[index]
            for qualifier in self._state_values(title, row.cells[index], prefixes)
        ]
        kind = _STRING if predicate in _TEXT_PREDICATES else _REFERENCE_TYPE
        kind = next((str(item.value[0]) for item in qualifiers if item.predicate == _OBJECT_KIND), kind)
        qualifiers = [item for item in qualifiers if item.predicate != _OBJECT_KIND]
        value: Value = Text(target, "", "" if kind == _STRING else kind)
        if kind == _REFERENCE_TYPE:
            value = Reference(self._resolve(target, vocabulary, prefixes))
        statement = Statement(predicate, value, (*qualifiers, *propagated))
        if target == _NO_TARGET or any(item.predicate == _MODIFIER for item in qualifiers):
            statement = _to_node(statement)
        self._stated.add(statement.predicate)
        resource.statements.append(statement)
        return resource

    def _expand(self, text: str) -> str:
        """Return the IRI of a CURIE by the prefixes of the file, else the text."""
        match = _CURIE.fullmatch(text)
        namespace = self._namespaces.get(match[1], "") if match else ""
        if not match or not isinstance(namespace, str) or not namespace or namespace.startswith(_UNKNOWN_NAMESPACE):
            return text
        return namespace + text[len(match[1]) + 1 :]

    def _resolve(self, text: str, vocabulary: Vocabulary, prefixes: PrefixMap) -> str:
        """Return a target as it is written, unless only the file knows its prefix."""
        match = _CURIE.fullmatch(text)
        if match and (match[1] in NAMESPACES or prefixes.find_namespace(match[1]) is not None):
            return text
        return vocabulary.contract_iri(self._expand(text)) if match else text

    def _state_values(self, title: str, cell: Any, prefixes: PrefixMap) -> list[Statement]:
        if isinstance(cell, dict):
            return []
        extension = self._extensions.get(title)
        is_list = extension is not None or title in _MULTIVALUED
        texts = cell if isinstance(cell, list) else _split(cell) if is_list else [cell]
        if extension is not None:
            return [Statement(extension.predicate, _to_extension_value(extension, text)) for text in texts]
        texts = [
            text for text in texts if isinstance(text, str) and text and (title, text) != (_JUSTIFICATION, _UNSPECIFIED)
        ]
        return [Statement(f"{_PREFIX}{title}", _to_value(title, text)) for text in texts]


def _to_node(statement: Statement) -> Statement:
    """Return a statement about a row that denies a mapping, which the predicate itself would assert."""
    parts = Statement(_PREDICATE_PROPERTY, Reference(statement.predicate)), Statement(_OBJECT_PROPERTY, statement.value)
    return Statement(_DENIED_MAPPING, Node((*parts, *statement.qualifiers)))


def _from_node(statement: Statement) -> Statement:
    """Return the mapping that a node denies, with what else it states as qualifiers; any other statement as it is."""
    node = statement.value
    if statement.predicate != _DENIED_MAPPING or not isinstance(node, Node):
        return statement
    parts = {item.predicate: item.value for item in node.statements}
    predicate, value = parts.get(_PREDICATE_PROPERTY), parts.get(_OBJECT_PROPERTY)
    if not isinstance(predicate, Reference) or value is None:
        return statement
    others = (item for item in node.statements if item.predicate not in (_PREDICATE_PROPERTY, _OBJECT_PROPERTY))
    return Statement(predicate.target, value, (*statement.qualifiers, *others))


def _to_value(slot: str, text: str) -> Value:
    """Return the value of a slot, as the API states it too."""
    datatype = _DATATYPES.get(slot, "")
    if datatype:
        return Text(text, "", datatype if _FORMS[datatype].fullmatch(text) else "")
    is_reference = (slot in _REFERENCES or slot.endswith("_id")) and find_target_problem(text) is None
    return Reference(text) if is_reference else Text(text)


def _to_extension_value(extension: _Extension, text: str) -> Value:
    if extension.type == _REFERENCE_TYPE:
        return Reference(text)
    return Text(text, extension.lang, extension.type)


def _parse_extensions(data: Any) -> dict[str, _Extension]:
    definitions = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    return {
        item["slot_name"]: _Extension(item["property"], item.get("type_hint", ""), _parse_tag(item.get("language", "")))
        for item in definitions
        if all(isinstance(value, str) for value in item.values()) and item.get("slot_name") and item.get("property")
    }


def _parse_tag(tag: str) -> str:
    return "" if not tag or find_tag_problem(tag) else format_tag(tag)


def _to_data(node: YamlNode) -> Any:
    """Return texts, lists and dictionaries; a number or a date is a text too."""
    if isinstance(node, YamlScalar):
        return "" if node.is_null else node.text
    if isinstance(node, YamlSequence):
        return [_to_data(item) for item in node.items]
    return {key.text: _to_data(value) for key, value in node.entries}


def _split(cell: str) -> list[str]:
    parts, start = [], 0
    for match in _BAR.finditer(cell):
        if match[0] == "|":
            parts.append(cell[start : match.start()])
            start = match.end()
    return [re.sub(r"\\([\\|])", r"\1", part) for part in (*parts, cell[start:]) if part]


def _join(texts: Iterable[str]) -> str:
    return "|".join(re.sub(r"[\\|]", r"\\\g<0>", text) for text in texts)


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield the mappings of all records as one set."""
    writer = _MappingWriter(options.vocabulary)
    with SpooledTemporaryFile(_MAX_MEMORY_BYTES, "w+", encoding="utf-8", newline="") as rows:
        for record in records:
            for row in writer.iter_rows(record):
                rows.write(json.dumps(row) + "\n")
        rows.seek(0)
        yield writer.format_metadata(options.revision).encode()
        columns = (*_FIRST_COLUMNS, *sorted(writer.columns - {*_FIRST_COLUMNS}))
        yield _format_line(columns)
        for line in rows:
            row = json.loads(line)
            yield _format_line(escape_formula(row.get(column, "")) for column in columns)


def _format_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO(newline="")
    # Only characters of the line terminator are quoted, and a cell may have either.
    csv.writer(line, delimiter="\t", lineterminator="\r\n").writerow(cells)
    return f"{line.getvalue()[:-2]}\n".encode()


def _is_target(value: Value) -> bool:
    """Return whether a cell can hold a value as the object of a mapping."""
    if isinstance(value, Node) or (isinstance(value, Text) and value.lang):
        return False
    return bool(value[0]) and value[0] == value[0].strip()


class _MappingWriter:
    """Format mappings; collect the columns, prefixes and extensions that they need."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._prefixes = load_bundled().extend(vocabulary.prefixes)
        self.columns: set[str] = set()
        self._curie_map: dict[str, str] = {}
        self._extensions: dict[_Extension, str] = {}

    def iter_rows(self, record: Record) -> Iterator[dict[str, str]]:
        """Yield the cells of each mapping of a record, by column."""
        names = record.collection.relation_names
        for statement in map(_from_node, record.own_statements):
            predicate, value, qualifiers = statement
            is_mapping = RELATION_TYPES[names.get(predicate, predicate)].is_mapping
            is_described = any(item.predicate.startswith(_PREFIX) for item in qualifiers)
            if (is_mapping or is_described) and _is_target(value):
                row = self._format_row(record, statement)
                self.columns |= row.keys()
                yield row

    def _format_row(self, record: Record, statement: Statement) -> dict[str, str]:
        local_id, target = record.local_id, str(statement.value[0])
        subject = local_id if _CURIE.fullmatch(local_id) or "://" in local_id else self._vocabulary.record_iri(local_id)
        for text in (subject, statement.predicate, target):
            self._add_prefix(text)
        values: dict[str, list[str]] = {}
        for qualifier in (*statement.qualifiers, *self._state_kind(statement)):
            if not isinstance(qualifier.value, Node) and qualifier.value[0]:
                column = self._choose_column(qualifier, values)
                values.setdefault(column, []).append(str(qualifier.value[0]))
                if isinstance(qualifier.value, Reference):
                    self._add_prefix(qualifier.value.target)
        extensions = self._extensions.values()
        cells = {
            name: _join(texts) if name in _MULTIVALUED or name in extensions else texts[0]
            for name, texts in values.items()
        }
        if _JUSTIFICATION not in cells:
            cells[_JUSTIFICATION] = _UNSPECIFIED
            self._add_prefix(_UNSPECIFIED)
        return {_SUBJECT: subject, _PREDICATE: statement.predicate, _OBJECT: target, **cells}

    @staticmethod
    def _state_kind(statement: Statement) -> list[Statement]:
        kind = (statement.value.datatype or _STRING) if isinstance(statement.value, Text) else _REFERENCE_TYPE
        usual = _STRING if statement.predicate in _TEXT_PREDICATES else _REFERENCE_TYPE
        return [] if kind == usual else [Statement(_OBJECT_KIND, Text(kind))]

    def _choose_column(self, qualifier: Statement, taken: Mapping[str, list[str]]) -> str:
        predicate, value, _ = qualifier
        assert not isinstance(value, Node)
        slot = predicate.removeprefix(_PREFIX)
        is_slot = predicate.startswith(_PREFIX) and slot not in (*_FIRST_COLUMNS[:3],) and slot.isidentifier()
        is_free = slot in _MULTIVALUED or slot not in taken
        is_unspecified = (slot, value[0]) == (_JUSTIFICATION, _UNSPECIFIED)
        if is_slot and is_free and _to_value(slot, value[0]) == value and not is_unspecified:
            return slot
        lang, datatype = (value.lang, value.datatype) if isinstance(value, Text) else ("", _REFERENCE_TYPE)
        extension = _Extension(predicate, datatype, lang)
        if extension not in self._extensions:
            stem = re.sub(r"\W+", "_", re.split(r"[:/#]", predicate)[-1]).strip("_").lower() or "property"
            self._extensions[extension] = f"ext_{stem}_{len(self._extensions) + 1}"
            self._add_prefix(predicate)
            self._add_prefix(datatype)
        return self._extensions[extension]

    def _add_prefix(self, text: str) -> None:
        match = _CURIE.fullmatch(text)
        if not match or match[1] in self._curie_map or match[1].lower() in ("http", "https", "urn"):
            return
        namespace = self._vocabulary.prefixes.get(match[1]) or NAMESPACES.get(match[1])
        namespace = namespace or self._prefixes.find_namespace(match[1])
        if namespace is None:
            is_obo = self._vocabulary.expand_id(text).startswith(OBO_BASE)
            namespace = f"{OBO_BASE}{match[1]}_" if is_obo else f"{_UNKNOWN_NAMESPACE}{match[1]}:"
        self._curie_map[match[1]] = namespace

    def format_metadata(self, revision: int) -> str:
        """Return the comments before the table."""
        vocabulary = self._vocabulary
        metadata: dict[str, Any] = {
            "curie_map": dict(sorted(self._curie_map.items())),
            "mapping_set_id": f"{vocabulary.iri_start}vocabularies/{vocabulary.slug}/mappings",
            "mapping_set_title": vocabulary.title,
            "mapping_set_version": str(revision),
            "license": vocabulary.licence or _UNSPECIFIED_LICENCE,
        }
        definitions = [
            {"slot_name": name, "property": item.predicate}
            | ({"type_hint": item.type} if item.type else {})
            | ({"language": item.lang} if item.lang else {})
            for item, name in self._extensions.items()
        ]
        if definitions:
            metadata["extension_definitions"] = definitions
        text = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True, width=10_000_000)
        return "".join(f"#{line}\n" for line in text.removesuffix("\n").split("\n"))
