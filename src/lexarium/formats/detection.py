"""Detect the format of a document by its name, or else by its first bytes."""

import re
from pathlib import PurePath

from lexarium.domain.errors import LexariumError
from lexarium.domain.schema.collections import SCHEMA
from lexarium.formats.registry import FORMATS, Format

# Bytes at the beginning that are looked at.
SNIFF_BYTES = 1 << 16

# The first format with an extension; `.json` may be others too.
_FORMAT_BY_EXTENSION = {extension: entry for entry in reversed(FORMATS.values()) for extension in entry.extensions}
_TABLE_FORMATS = ("csv", "tsv")
_JSONLD_KEYWORD = re.compile(rb'"@(?:context|graph|id|type)"\s*:')
_CONTAINER_NAMES = "|".join(SCHEMA.containers).encode()
_LINKML_START = re.compile(rb'\{\s*"(?:entries"\s*:\s*\[|@type"\s*:\s*"(?:%s)")' % _CONTAINER_NAMES)
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


def detect_format(name: str, head: bytes, *, allow_tables: bool = True) -> Format:
    """Return the format of a document with this name that begins with these bytes in UTF-8.

    Raise UnknownFormatError. Without `allow_tables`, a comma in the first line does not make it a table.
    """
    by_extension = _FORMAT_BY_EXTENSION.get(PurePath(name).suffix.lower())
    if by_extension is not None and by_extension.name != "v-alpha":
        return by_extension
    # JSON-LD often has the extension .json too.
    detect = _detect_by_content if by_extension is None else _detect_json_kind
    detected = detect(name.split(".", 1)[0], head.lstrip())
    if detected is None or (detected in _TABLE_FORMATS and not allow_tables):
        message = "has no format that its name or its beginning tells"
        raise UnknownFormatError(f"{message}; give --format, one of {', '.join(FORMATS)}")
    return FORMATS[detected]


def _detect_by_content(stem: str, head: bytes) -> str | None:
    if head[:1] in (b"[", b"{"):
        return "obo" if _OBO_LINE.match(head) else _detect_json_kind(stem, head)
    if head[:1] == b"<" and not _NTRIPLES_LINE.match(head):
        return _detect_xml_kind(head)
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith((b"#", b"!"))]
    start = lines[0] if lines else b""
    for name, pattern in (("ntriples", _NTRIPLES_LINE), ("skos", _TURTLE_DIRECTIVE), ("obo", _OBO_LINE)):
        if pattern.match(start.lstrip()):
            return name
    if b"\t" in start:
        return "tsv"
    return "csv" if b"," in start or b";" in start else None


def _detect_json_kind(stem: str, head: bytes) -> str:
    is_named_as_container = stem in SCHEMA.containers and head[:1] == b"{" and b'"@context"' not in head
    if is_named_as_container or _LINKML_START.match(head):
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
