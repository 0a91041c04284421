r"""The syntax of OBO: stanzas of clauses, a clause a line, and how text stands in them.

It is read forgivingly, since published files break it: quotes and braces that are not escaped, lists that are left out.
What is written follows version 1.4.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from lexarium.formats.parsed import ParseError

MAX_LINE_CHARS = 16 << 20
"""In characters: past this a line that does not end is taken to be no line of text."""

# In lines that are made to harm every pattern takes steps as the line is long, and no more: each part of one ends where
# the next begins, and is not tried again shorter.
_STANZA = re.compile(r"\[([^\[\]]++)\]\s*+(!.*)?")
_TAG = re.compile(r"[ \t]*([^\s:!\"\[\]{}]+)\s*:[ \t]*")
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(?=\s|\[|$)')
_LENIENT_QUOTED = re.compile(r'"(.*)"(?=(?:\s+[^\s"\[]+){0,2}\s*\[)')
_LIST = re.compile(r'\[((?:[^\]\\"]++|\\.|"[^"\\]*(?:\\.[^"\\]*)*")*+)\]')
_ITEM = re.compile(r'((?:[^,"\\]++|\\.)*+)((?:"[^"\\]*(?:\\.[^"\\]*)*")?)[^,]*,?')
_TOKEN = re.compile(r"[ \t]*((?:[^ \t\\]|\\.)+)")
_XREF_NAME = re.compile(r'((?:[^\s"{\\]|\\.|\s+(?![!{"\s]))*)')
_COMMENT = re.compile(r"(?:(?<=\s)|^)!.*")
_QUALIFIER_START = re.compile(r'\{\s*+[^\s{}="]++\s*+=\s*+"')
_QUALIFIER = re.compile(r'(?<![^\s={},"])([^\s={},"]++)\s*+=\s*+"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE_SEQUENCE = re.compile(r"\\(.)", re.DOTALL)

_ESCAPE_CHARS = {"n": "\n", "r": "\r", "f": "\f", "t": "\t", "W": " "}
_CONTROL_ESCAPES = {char: f"\\{letter}" for letter, char in _ESCAPE_CHARS.items() if letter != "W"}
_QUOTED_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", **_CONTROL_ESCAPES})
_UNQUOTED_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "{": r"\{", "}": r"\}", "!": r"\!", **_CONTROL_ESCAPES})
_IDENTIFIER_ESCAPES = str.maketrans({char: f"\\{char}" for char in '\\"{}!,[] '} | _CONTROL_ESCAPES)


@dataclass(slots=True)
class Clause:
    """A tag and its value, as it stands."""

    line: int
    column: int
    """Where the value begins."""
    tag: str
    value: str

    def error(self, expected: str) -> ParseError:
        """The error of a value that is not what its tag asks for."""
        return ParseError(f"{expected} was expected after `{self.tag}:`", self.line, self.column)


@dataclass(slots=True)
class Stanza:
    """What stands under a name in brackets; without one, the header."""

    line: int
    stanza_type: str
    clauses: list[Clause] = field(default_factory=list)


def iter_stanzas(file: IO[bytes]) -> Iterator[Stanza | ParseError]:
    """The header, and every stanza; and what is wrong with a line that is neither a clause nor a name in brackets.

    Raises `Malformed` at a line that does not end.
    """
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
        raise ParseError(
            "a clause, like `name: memory`, was expected", line_number, len(line) - len(line.lstrip(" \t")) + 1
        )
    start = match.end()
    return Clause(line_number, start + 1, match[1], _strip_unescaped(line[start:]))


def _strip_unescaped(text: str) -> str:
    """Without the space around it, but for one that is escaped."""
    stripped = text.strip(" \t")
    if stripped[-1:] != "\\" or not text.endswith(" "):
        return stripped
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 else stripped


def parse_unquoted(clause: Clause) -> str:
    """A value without quotes: what stands before a comment and qualifiers."""
    value = clause.value
    if "!" in value:
        value = _strip_unescaped(_COMMENT.sub("", value))
    return unescape(_strip_qualifiers(value))


def _strip_qualifiers(value: str) -> str:
    """What stands before qualifiers in braces."""
    content = value[:-1].rstrip() if value.endswith("}") else ""
    opening = _QUALIFIER_START.search(content, 0, len(content) - 1) if content.endswith('"') else None
    return value if opening is None else value[: opening.start()].rstrip()


def parse_identifier(clause: Clause) -> tuple[str, str]:
    """The identifier that a value begins with, and what follows it."""
    match = _TOKEN.match(clause.value)
    if match is None or match.group(1)[0] in "!{":
        raise clause.error("an identifier")
    return unescape(match.group(1)), clause.value[match.end() :].lstrip(" \t")


def parse_xref(clause: Clause) -> str:
    """The identifier of a dbxref, which in published files may hold spaces."""
    match = _XREF_NAME.match(clause.value)
    assert match is not None
    return unescape(match.group(1).strip())


def parse_quoted(clause: Clause) -> tuple[str, str]:
    """The text in quotes that a value begins with, and what follows it."""
    match = _QUOTED.match(clause.value) or _LENIENT_QUOTED.match(clause.value)
    if match is None:
        expected = "a quote that closes the text" if clause.value.startswith('"') else "text in quotes"
        raise clause.error(expected)
    return unescape(match.group(1)), clause.value[match.end() :].strip(" \t")


def parse_trailer(rest: str) -> tuple[str, list[str], dict[str, str]]:
    """What follows a text in quotes: words, the dbxrefs in brackets, and qualifiers in braces."""
    opening = rest.find("[")
    if opening < 0:
        words, _, remainder = rest.partition("{")
        return words.partition("!")[0], [], _parse_qualifiers(remainder)
    match = _LIST.match(rest, opening)
    if match is None:
        return rest[:opening], _parse_xref_list(rest[opening + 1 :].rpartition("]")[0]), {}
    return rest[:opening], _parse_xref_list(match.group(1)), _parse_qualifiers(rest[match.end() :])


def _parse_xref_list(text: str) -> list[str]:
    items = []
    for match in _ITEM.finditer(text):
        name, description = unescape(_strip_unescaped(match.group(1))), unescape(match.group(2)[1:-1])
        if description:
            name = f'{name} "{description}"' if name else description
        if name:
            items.append(name)
    return items


def _parse_qualifiers(text: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in _QUALIFIER.findall(text)}


def unescape(text: str) -> str:
    """Text as it is meant. A letter that has no meaning after a backslash keeps it, as in a regular expression."""
    return _ESCAPE_SEQUENCE.sub(_unescape_match, text) if "\\" in text else text


def _unescape_match(match: re.Match[str]) -> str:
    char = match.group(1)
    return _ESCAPE_CHARS.get(char, match.group() if char.isalnum() else char)


def format_quoted(text: str) -> str:
    """Text in quotes."""
    return f'"{text.translate(_QUOTED_ESCAPES)}"'


def format_unquoted(text: str) -> str:
    """Text without quotes. Space at its ends would otherwise be lost."""
    escaped = text.translate(_UNQUOTED_ESCAPES)
    if escaped.endswith(" "):
        escaped = f"{escaped[:-1]}\\ "
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def format_xref(identifier: str) -> str:
    """An identifier among dbxrefs."""
    return identifier.translate(_IDENTIFIER_ESCAPES)


def format_identifier(identifier: str) -> str:
    """An identifier elsewhere. An address stands as it is, as other programs expect."""
    is_iri = "://" in identifier and not any(char in identifier for char in '\\"{} \n\r\t\f')
    return identifier if is_iri else identifier.translate(_IDENTIFIER_ESCAPES)
