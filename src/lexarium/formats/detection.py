"""Detect the format of a document by its name, or else by its first bytes."""

import re
from functools import lru_cache
from pathlib import PurePath

from lexarium.domain.errors import LexariumError
from lexarium.domain.schema.collections import SCHEMA
from lexarium.domain.schema.model import Schema
from lexarium.formats.reading import SourceDocument
from lexarium.formats.registry import FORMATS, Format
from lexarium.formats.tables.header import detect_kind

# Bytes at the beginning that are looked at.
SNIFF_BYTES = 1 << 16

# The first format with an extension; `.json` may be others too.
_FORMAT_BY_EXTENSION = {extension: entry for entry in reversed(FORMATS.values()) for extension in entry.extensions}
TABLE_FORMATS = ("csv", "tsv")
_JSONLD_KEYWORD = re.compile(rb'"@(?:context|graph|id|type)"\s*:')
_NTRIPLES_LINE = re.compile(
    rb'(?:<[^>\s]*>|_:\S+)[ \t]+<[^>\s]*>[ \t]+(?:<[^>\s]*>[ \t]*|_:\S+[ \t]*|"[^\n]*)\.[ \t\r]*$', re.MULTILINE
)
_TURTLE_DIRECTIVE = re.compile(rb"@?(?:prefix|base)\s", re.IGNORECASE)
_OBO_LINE = re.compile(rb"^(?:format-version:|\[Term\]|\[Typedef\])", re.MULTILINE)


class UnknownFormatError(LexariumError):
    """The format cannot be detected. The message continues after the document's name."""


def has_known_extension(name: str, format: Format | None = None) -> bool:
    """Return whether the extension of a name is that of any format, or of this one."""
    extension = PurePath(name).suffix.lower()
    return extension in (_FORMAT_BY_EXTENSION if format is None else format.extensions)


def detect_format(name: str, head: bytes, *, allow_tables: bool = True, schema: Schema = SCHEMA) -> Format:
    """Return the format of a document with this name that begins with these bytes in UTF-8.

    Raise UnknownFormatError. Without `allow_tables`, a comma in the first line does not make it a table. LinkML data
    are known by the containers of the schema.
    """
    by_extension = _FORMAT_BY_EXTENSION.get(PurePath(name).suffix.lower())
    if by_extension is not None and by_extension.name in TABLE_FORMATS:
        return FORMATS[detect_kind(head) or by_extension.name]
    if by_extension is not None and by_extension.name != "v-alpha":
        return by_extension
    # JSON-LD often has the extension .json too.
    detect = _detect_by_content if by_extension is None else _detect_json_kind
    detected = detect(name.split(".", 1)[0], head.lstrip(), schema)
    if detected is None or (detected in TABLE_FORMATS and not allow_tables):
        message = "has an unknown format"
        raise UnknownFormatError(f"{message}; use --format with one of {', '.join(FORMATS)}")
    return FORMATS[detected]


def detect_document_format(
    document: SourceDocument, head: bytes, format: Format | None, schema: Schema = SCHEMA
) -> Format:
    """Return the format of a document: the one that is given, else as `detect_format`; raise UnknownFormatError.

    A file beside others of a known format in an archive, such as a README, is not read as a table.
    """
    siblings_match = any(has_known_extension(name, format) for name in document.sibling_names)
    if format is None:
        return detect_format(document.file_name, head, allow_tables=not siblings_match, schema=schema)
    if siblings_match and not has_known_extension(document.file_name, format):
        raise UnknownFormatError(f"is not named as {format.name}, and others beside it are")
    return format


def _detect_by_content(stem: str, head: bytes, schema: Schema) -> str | None:
    if head[:1] in (b"[", b"{"):
        return "obo" if _OBO_LINE.match(head) else _detect_json_kind(stem, head, schema)
    if head[:1] == b"<" and not _NTRIPLES_LINE.match(head):
        return _detect_xml_kind(head)
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith((b"#", b"!"))]
    start = lines[0] if lines else b""
    for name, pattern in (("ntriples", _NTRIPLES_LINE), ("skos", _TURTLE_DIRECTIVE), ("obo", _OBO_LINE)):
        if pattern.match(start.lstrip()):
            return name
    if b"\t" in start:
        return detect_kind(head) or "tsv"
    return detect_kind(head) or "csv" if b"," in start or b";" in start else None


@lru_cache(100)
def _build_linkml_start(schema: Schema) -> re.Pattern[bytes]:
    """Return the pattern of the beginning of LinkML data: a list of records, or the name of a container."""
    members = dict.fromkeys(("entries", *(member for ranges in schema.containers.values() for member in ranges)))
    names, start = list(schema.containers), ""
    if schema is not SCHEMA:
        # The classes of the Cognitive Atlas have the names of classes in JSON-LD.
        names += (item.name for item in schema.collections.values())
        start = r"(?:\[\s*)?"
    lists = rf'(?:{"|".join(members)})"\s*:\s*[\[{{]'
    return re.compile(rf'{start}\{{\s*"(?:{lists}|@type"\s*:\s*"(?:{"|".join(names)})")'.encode())


def _detect_json_kind(stem: str, head: bytes, schema: Schema) -> str:
    is_named_as_container = stem in schema.containers and head[:1] == b"{" and b'"@context"' not in head
    if is_named_as_container or _build_linkml_start(schema).match(head):
        return "linkml"
    if _JSONLD_KEYWORD.search(head):
        return "jsonld"
    first, _, rest = head.partition(b"\n")
    has_more_objects = first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")
    return "jsonl" if head[:1] == b"{" and has_more_objects else "v-alpha"


def _detect_xml_kind(head: bytes) -> str | None:
    if b"http://www.w3.org/1999/02/22-rdf-syntax-ns#" not in head:
        return None
    return "rdfxml" if b"http://www.w3.org/2004/02/skos/core#" in head and b"owl:Class" not in head else "owl"
