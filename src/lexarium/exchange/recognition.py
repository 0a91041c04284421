"""Which format a document has: told by its name, else by how it begins."""

import re
from pathlib import PurePath

from lexarium.domain.errors import LexariumError
from lexarium.exchange.formats import FORMATS, Format

HEAD = 1 << 16
"""How many of its first bytes are looked at."""

_BY_ENDING = {ending: each for each in FORMATS.values() if each.reads for ending in each.extensions}
_GUESSED = ("csv", "tsv")
_LINKED = re.compile(rb'"@(?:context|graph|id|type)"\s*:')
_TRIPLE = re.compile(
    rb'(?:<[^>\s]*>|_:\S+)[ \t]+<[^>\s]*>[ \t]+(?:<[^>\s]*>[ \t]*|_:\S+[ \t]*|"[^\n]*)\.[ \t\r]*$', re.MULTILINE
)
_TURTLE = re.compile(rb"@?(?:prefix|base)\s", re.IGNORECASE)
_TAG_VALUE = re.compile(rb"^(?:format-version:|\[Term\]|\[Typedef\])", re.MULTILINE)


class Unrecognised(LexariumError):
    """Nothing tells the format: the sentence goes on after the document's name."""


def tells(name: str, format: Format | None = None) -> bool:
    """Whether the ending of a name tells a format, or this one."""
    ending = PurePath(name).suffix.lower()
    return ending in (_BY_ENDING if format is None else format.extensions)


def recognise(name: str, head: bytes, *, guess: bool = True) -> Format:
    """The format of a document with this name that begins with these bytes, in UTF-8.

    Without `guess` a comma in its first line does not make a table of it.
    """
    by_ending = _BY_ENDING.get(PurePath(name).suffix.lower())
    if by_ending is not None and by_ending.name != "v-alpha":
        return by_ending
    # A document in JSON-LD is often called .json too.
    found = _by_content(head.lstrip()) if by_ending is None else _json(head.lstrip())
    if found is None or (found in _GUESSED and not guess):
        known = ", ".join(each.name for each in FORMATS.values() if each.reads)
        raise Unrecognised(f"has no format that its name or its beginning tells; give --format, one of {known}")
    return FORMATS[found]


def _by_content(head: bytes) -> str | None:
    if head[:1] in (b"[", b"{"):
        if head[:1] == b"[" and _TAG_VALUE.match(head):
            return "obo"
        return _json(head)
    if head[:1] == b"<" and not _TRIPLE.match(head):
        return _xml(head)
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith((b"#", b"!"))]
    start = lines[0] if lines else b""
    for name, sign in (("ntriples", _TRIPLE), ("skos", _TURTLE), ("obo", _TAG_VALUE)):
        if sign.match(start.lstrip()):
            return name
    if b"\t" in start:
        return "tsv"
    return "csv" if b"," in start or b";" in start else None


def _json(head: bytes) -> str:
    if _LINKED.search(head):
        return "jsonld"
    first, _, rest = head.partition(b"\n")
    several = first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")
    return "jsonl" if head[:1] == b"{" and several else "v-alpha"


def _xml(head: bytes) -> str | None:
    if b"http://www.w3.org/1999/02/22-rdf-syntax-ns#" not in head:
        return None
    return "rdfxml" if b"http://www.w3.org/2004/02/skos/core#" in head and b"owl:Class" not in head else "owl"
