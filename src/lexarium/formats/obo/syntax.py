"""The syntax of OBO: stanzas, clauses, and escaping.

The parser is lenient, since published files are not all valid: unescaped quotes and braces, missing lists.
The output follows version 1.4.
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

from lexarium.domain.schema.predicates import contract_predicate
from lexarium.domain.statement import Statement, Text
from lexarium.formats.parsed import ParseError

MAX_LINE_CHARS = 16 << 20

# All patterns are linear in the length of the line, also of a malicious one: their parts do not overlap, or are
# possessive.
_STANZA = re.compile(r"\[([^\[\]]++)\]\s*+(!.*)?")
_TAG = re.compile(r"[ \t]*([^\s:!\"\[\]{}]+)\s*:[ \t]*")
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(?=\s|\[|$)')
_LENIENT_QUOTED = re.compile(r'"(.*)"(?=(?:\s+[^\s"\[]+){0,2}\s*\[)')
_LIST = re.compile(r'\[((?:[^\]\\"]++|\\.|"[^"\\]*(?:\\.[^"\\]*)*")*+)\]')
_ITEM = re.compile(r'((?:[^,"\\]++|\\.)*+)((?:"[^"\\]*(?:\\.[^"\\]*)*")?)[^,]*,?')
_TOKEN = re.compile(r"[ \t]*((?:[^ \t\\]|\\.)+)")
_COMMENT = re.compile(r"(?:(?<=\s)|^)!.*")
_QUALIFIER_START = re.compile(r'\{\s*+[^\s{}="]++\s*+=\s*+"')
_QUALIFIER = re.compile(r'(?<![^\s={},"])([^\s={},"]++)\s*+=\s*+"([^"\\]*(?:\\.[^"\\]*)*)"')
# Qualifiers and a comment, as the end of a clause should be.
_TRAILER = re.compile(r'\s*+(\{(?:[^"{}\\]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|\\.)*+\}|)\s*+(?:!.*)?', re.DOTALL)
_ESCAPE_SEQUENCE = re.compile(r"\\(.)", re.DOTALL)

# Qualifier, after all others, for the rest of a clause that is none of its parts.
UNREAD = "lexarium:unread"

_ESCAPE_CHARS = {"n": "\n", "r": "\r", "f": "\f", "t": "\t", "W": " "}
_CONTROL_ESCAPES = {char: f"\\{letter}" for letter, char in _ESCAPE_CHARS.items() if letter != "W"}
_QUOTED_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", **_CONTROL_ESCAPES})
_UNQUOTED_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "{": r"\{", "}": r"\}", "!": r"\!", **_CONTROL_ESCAPES})
_IDENTIFIER_ESCAPES = str.maketrans({char: f"\\{char}" for char in '\\"{}!,[] '} | _CONTROL_ESCAPES)
# Most texts have none of these, and a search is several times as fast as a translation.
_QUOTED_SPECIAL, _UNQUOTED_SPECIAL, _IDENTIFIER_SPECIAL = (
    re.compile(f"[{re.escape(''.join(map(chr, escapes)))}]")
    for escapes in (_QUOTED_ESCAPES, _UNQUOTED_ESCAPES, _IDENTIFIER_ESCAPES)
)


@dataclass(slots=True)
class Clause:
    """A tag and its raw value."""

    line: int
    # Of the value.
    column: int
    tag: str
    value: str

    def error(self, expected: str) -> ParseError:
        """Return the error of a value that is not valid for its tag."""
        return ParseError(f"{expected} was expected after `{self.tag}:`", self.line, self.column)


@dataclass(slots=True)
class Stanza:
    """The clauses after a line like [Term]; without a type, the header."""

    line: int
    stanza_type: str
    clauses: list[Clause] = field(default_factory=list)


def iter_stanzas(file: IO[bytes]) -> Iterator[Stanza | ParseError]:
    """Yield the header, the stanzas, and the errors of invalid lines; raise ParseError if a line is too long."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig")
    stanza = Stanza(1, "")
    try:
        for line_number, line in enumerate(iter(lambda: text.readline(MAX_LINE_CHARS), ""), 1):
            if len(line) == MAX_LINE_CHARS:
                raise ParseError("the line does not end; a clause, like `name: memory`, was expected", line_number, 1)
            stripped = line.strip(" \t\n\ufeff")
            if not stripped or stripped[0] == "!":
                continue
            try:
                if stripped[0] == "[":
                    yield stanza
                    stanza = Stanza(line_number, stripped)
                    stanza = _parse_stanza_line(stripped, line_number)
                else:
                    stanza.clauses.append(_parse_clause(line.rstrip("\n"), line_number))
            except ParseError as error:
                yield error
        yield stanza
    finally:
        text.detach()


def _parse_stanza_line(line: str, line_number: int) -> Stanza:
    match = _STANZA.fullmatch(line)
    stanza_type = match.group(1).strip() if match else ""
    if not stanza_type:
        raise ParseError("the name of a stanza in brackets, like [Term], was expected", line_number, 1)
    return Stanza(line_number, stanza_type)


def _parse_clause(line: str, line_number: int) -> Clause:
    match = _TAG.match(line)
    if match is None:
        column = len(line) - len(line.lstrip(" \t")) + 1
        raise ParseError("a clause, like `name: memory`, was expected", line_number, column)
    start = match.end()
    return Clause(line_number, start + 1, match[1], _strip_unescaped(line[start:]))


def _strip_unescaped(text: str) -> str:
    """Strip spaces, but not an escaped space at the end."""
    stripped = text.strip(" \t")
    if stripped[-1:] != "\\" or not text.endswith(" "):
        return stripped
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 else stripped


def parse_unquoted(clause: Clause) -> str:
    """Return a value without quotes, comment and qualifiers."""
    return unescape(split_qualifiers(clause)[0])


def split_qualifiers(clause: Clause) -> tuple[str, tuple[Statement, ...]]:
    """Return a value without its comment, still escaped, and the qualifiers in braces at its end."""
    value = clause.value
    start = _QUALIFIER_START.search(value) if "{" in value else None
    if start and not _COMMENT.search(value, 0, start.start()) and _TRAILER.fullmatch(value, start.start()):
        return _strip_unescaped(value[: start.start()]), parse_qualifiers(value[start.start() :])
    if "!" in value:
        value = _strip_unescaped(_COMMENT.sub("", value))
    content = value[:-1].rstrip() if value.endswith("}") else ""
    opening = _QUALIFIER_START.search(content, 0, len(content) - 1) if content.endswith('"') else None
    if opening is None:
        return value, ()
    return _strip_unescaped(value[: opening.start()]), parse_qualifiers(value[opening.start() :])


def parse_qualifiers(text: str) -> tuple[Statement, ...]:
    """Return the qualifiers in braces in a text, before any comment."""
    return state_qualifiers(_parse_qualifiers(text)) if text else ()


def state_qualifiers(qualifiers: Iterable[tuple[str, str]]) -> tuple[Statement, ...]:
    """Return qualifiers as statements."""
    return tuple(
        Statement(contract_predicate(name) if ":" in name else f"oboInOwl:{name}", Text(value))
        for name, value in qualifiers
    )


def parse_identifier(clause: Clause) -> tuple[str, str]:
    """Return the identifier at the start of a value, and the rest."""
    match = _TOKEN.match(clause.value)
    if match is None or match.group(1)[0] in "!{":
        raise clause.error("an identifier")
    return unescape(match.group(1)), clause.value[match.end() :].lstrip(" \t")


def parse_only_identifier(clause: Clause) -> tuple[str, tuple[Statement, ...]]:
    """Return the identifier that is a value, and its qualifiers. One without a prefix may have spaces."""
    name, rest = parse_identifier(clause)
    if not rest or rest[0] in "!{" or ":" in name:
        return name, parse_qualifiers(rest)
    value, qualifiers = split_qualifiers(clause)
    return unescape(value), qualifiers


def parse_quoted(clause: Clause) -> tuple[str, str]:
    """Return the quoted text at the start of a value, and the rest."""
    match = _QUOTED.match(clause.value) or _LENIENT_QUOTED.match(clause.value)
    if match is None:
        expected = "a quote that closes the text" if clause.value.startswith('"') else "text in quotes"
        raise clause.error(expected)
    return unescape(match.group(1)), clause.value[match.end() :].strip(" \t")


def parse_trailer(rest: str) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the words, the dbxrefs with their descriptions and the qualifiers that follow a quoted text."""
    opening = rest.find("[")
    if opening < 0:
        words, brace, remainder = rest.partition("{")
        return words.partition("!")[0], [], _parse_qualifiers(brace + remainder)
    match = _LIST.match(rest, opening)
    if match is None:
        return rest[:opening], _parse_xref_list(rest[opening + 1 :].rpartition("]")[0]), []
    return rest[:opening], _parse_xref_list(match.group(1)), _parse_qualifiers(rest[match.end() :])


def _parse_xref_list(text: str) -> list[tuple[str, str]]:
    items = []
    for match in _ITEM.finditer(text):
        name, description = unescape(_strip_unescaped(match.group(1))), unescape(match.group(2)[1:-1])
        if name or description:
            items.append((name, description) if name else (description, ""))
    return items


def _parse_qualifiers(text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    match = _TRAILER.fullmatch(text)
    content = match[1] if match else _COMMENT.sub("", text)
    qualifiers = [(name, unescape(value)) for name, value in _QUALIFIER.findall(content)]
    unread = _QUALIFIER.sub("", content).strip(" \t\r\n{},")
    return [*qualifiers, (UNREAD, unread)] if unread else qualifiers


def unescape(text: str) -> str:
    """Replace escape sequences; an unknown letter keeps its backslash, as in a regular expression."""
    return _ESCAPE_SEQUENCE.sub(_unescape_match, text) if "\\" in text else text


def _unescape_match(match: re.Match[str]) -> str:
    char = match.group(1)
    return _ESCAPE_CHARS.get(char, match.group() if char.isalnum() else char)


def format_quoted(text: str) -> str:
    """Quote a text."""
    return f'"{text.translate(_QUOTED_ESCAPES) if _QUOTED_SPECIAL.search(text) else text}"'


def format_unquoted(text: str) -> str:
    """Escape a text without quotes, also the spaces at its ends."""
    escaped = text.translate(_UNQUOTED_ESCAPES) if _UNQUOTED_SPECIAL.search(text) else text
    if escaped.endswith(" "):
        escaped = f"{escaped[:-1]}\\ "
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def format_xref(identifier: str) -> str:
    """Escape an identifier in a list of dbxrefs."""
    if _IDENTIFIER_SPECIAL.search(identifier):
        identifier = identifier.translate(_IDENTIFIER_ESCAPES)
    prefix, colon, local = identifier.partition(":")
    return prefix + colon + local.replace(":", r"\:")


def format_identifier(identifier: str) -> str:
    """Escape an identifier; leave an IRI as it is, as other programs expect."""
    if not _IDENTIFIER_SPECIAL.search(identifier):
        return identifier
    is_iri = "://" in identifier and not any(char in identifier for char in '\\"{} \n\r\t\f')
    return identifier if is_iri else identifier.translate(_IDENTIFIER_ESCAPES)
