r"""The syntax of OBO: stanzas of clauses, a clause a line, and how text stands in them.

It is read forgivingly, since published files break it: quotes and braces that are not escaped, lists that are left out.
What is written follows version 1.4.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from lexarium.exchange.incoming import Malformed

LONGEST_LINE = 16 << 20
"""In characters: past this a line that does not end is taken to be no line of text."""

# In lines that are made to harm every pattern takes steps as the line is long, and no more: each part of one ends where
# the next begins, and is not tried again shorter.
_STANZA = re.compile(r"\[([^\[\]]++)\]\s*+(!.*)?")
_TAG = re.compile(r"[ \t]*([^\s:!\"\[\]{}]+)\s*:[ \t]*")
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(?=\s|\[|$)')
_UNESCAPED_WITHIN = re.compile(r'"(.*)"(?=(?:\s+[^\s"\[]+){0,2}\s*\[)')
_LIST = re.compile(r'\[((?:[^\]\\"]++|\\.|"[^"\\]*(?:\\.[^"\\]*)*")*+)\]')
_ITEM = re.compile(r'((?:[^,"\\]++|\\.)*+)((?:"[^"\\]*(?:\\.[^"\\]*)*")?)[^,]*,?')
_TOKEN = re.compile(r"[ \t]*((?:[^ \t\\]|\\.)+)")
_NAME = re.compile(r'((?:[^\s"{\\]|\\.|\s+(?![!{"\s]))*)')
_COMMENT = re.compile(r"(?:(?<=\s)|^)!.*")
_QUALIFIED = re.compile(r'\{\s*+[^\s{}="]++\s*+=\s*+"')
_QUALIFIER = re.compile(r'(?<![^\s={},"])([^\s={},"]++)\s*+=\s*+"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_MEANT = {"n": "\n", "r": "\r", "f": "\f", "t": "\t", "W": " "}
_BREAKS = {char: f"\\{letter}" for letter, char in _MEANT.items() if letter != "W"}
_IN_QUOTES = str.maketrans({"\\": r"\\", '"': r"\"", **_BREAKS})
_UNQUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "{": r"\{", "}": r"\}", "!": r"\!", **_BREAKS})
_IN_NAMES = str.maketrans({char: f"\\{char}" for char in '\\"{}!,[] '} | _BREAKS)


@dataclass(slots=True)
class Clause:
    """A tag and its value, as it stands."""

    line: int
    column: int
    """Where the value begins."""
    tag: str
    value: str

    def expected(self, what: str) -> Malformed:
        """The error of a value that is not what its tag asks for."""
        return Malformed(f"{what} was expected after `{self.tag}:`", self.line, self.column)


@dataclass(slots=True)
class Stanza:
    """What stands under a name in brackets; without one, the header."""

    line: int
    kind: str
    clauses: list[Clause] = field(default_factory=list)


def stanzas(file: IO[bytes]) -> Iterator[Stanza | Malformed]:
    """The header, and every stanza; and what is wrong with a line that is neither a clause nor a name in brackets.

    Raises `Malformed` at a line that does not end.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig")
    stanza = Stanza(1, "")
    try:
        for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), 1):
            if len(line) == LONGEST_LINE:
                raise Malformed("the line does not end; a clause, like `name: memory`, was expected", number, 1)
            bare = line.strip(" \t\n\ufeff")
            if not bare or bare[0] == "!":
                continue
            try:
                if bare[0] == "[":
                    yield stanza
                    stanza = Stanza(number, bare)
                    stanza = _opened(bare, number)
                else:
                    stanza.clauses.append(_clause(line.rstrip("\n"), number))
            except Malformed as error:
                yield error
        yield stanza
    finally:
        text.detach()


def _opened(line: str, number: int) -> Stanza:
    match = _STANZA.fullmatch(line)
    kind = match.group(1).strip() if match else ""
    if not kind:
        raise Malformed("the name of a stanza in brackets, like [Term], was expected", number, 1)
    return Stanza(number, kind)


def _clause(line: str, number: int) -> Clause:
    match = _TAG.match(line)
    if match is None:
        raise Malformed("a clause, like `name: memory`, was expected", number, len(line) - len(line.lstrip(" \t")) + 1)
    start = match.end()
    return Clause(number, start + 1, match[1], _stripped(line[start:]))


def _stripped(text: str) -> str:
    """Without the space around it, but for one that is escaped."""
    bare = text.strip(" \t")
    if bare[-1:] != "\\" or not text.endswith(" "):
        return bare
    hanging = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if hanging % 2 else bare


def plain_text(clause: Clause) -> str:
    """A value without quotes: what stands before a comment and qualifiers."""
    value = clause.value
    if "!" in value:
        value = _stripped(_COMMENT.sub("", value))
    return unescaped(_unqualified(value))


def _unqualified(value: str) -> str:
    """What stands before qualifiers in braces."""
    within = value[:-1].rstrip() if value.endswith("}") else ""
    opening = _QUALIFIED.search(within, 0, len(within) - 1) if within.endswith('"') else None
    return value if opening is None else value[: opening.start()].rstrip()


def first_name(clause: Clause) -> tuple[str, str]:
    """The identifier that a value begins with, and what follows it."""
    match = _TOKEN.match(clause.value)
    if match is None or match.group(1)[0] in "!{":
        raise clause.expected("an identifier")
    return unescaped(match.group(1)), clause.value[match.end() :].lstrip(" \t")


def cross_reference(clause: Clause) -> str:
    """The identifier of a dbxref, which in published files may hold spaces."""
    match = _NAME.match(clause.value)
    assert match is not None
    return unescaped(match.group(1).strip())


def quoted_text(clause: Clause) -> tuple[str, str]:
    """The text in quotes that a value begins with, and what follows it."""
    match = _QUOTED.match(clause.value) or _UNESCAPED_WITHIN.match(clause.value)
    if match is None:
        what = "a quote that closes the text" if clause.value.startswith('"') else "text in quotes"
        raise clause.expected(what)
    return unescaped(match.group(1)), clause.value[match.end() :].strip(" \t")


def listed(rest: str) -> tuple[str, list[str], dict[str, str]]:
    """What follows a text in quotes: words, the dbxrefs in brackets, and qualifiers in braces."""
    opening = rest.find("[")
    if opening < 0:
        words, _, after = rest.partition("{")
        return words.partition("!")[0], [], _qualifiers(after)
    match = _LIST.match(rest, opening)
    if match is None:
        return rest[:opening], _items(rest[opening + 1 :].rpartition("]")[0]), {}
    return rest[:opening], _items(match.group(1)), _qualifiers(rest[match.end() :])


def _items(text: str) -> list[str]:
    found = []
    for match in _ITEM.finditer(text):
        name, described = unescaped(_stripped(match.group(1))), unescaped(match.group(2)[1:-1])
        if described:
            name = f'{name} "{described}"' if name else described
        if name:
            found.append(name)
    return found


def _qualifiers(text: str) -> dict[str, str]:
    return {name: unescaped(value) for name, value in _QUALIFIER.findall(text)}


def unescaped(text: str) -> str:
    """Text as it is meant. A letter that has no meaning after a backslash keeps it, as in a regular expression."""
    return _ESCAPED.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    char = match.group(1)
    return _MEANT.get(char, match.group() if char.isalnum() else char)


def as_quoted(text: str) -> str:
    """Text in quotes."""
    return f'"{text.translate(_IN_QUOTES)}"'


def as_plain(text: str) -> str:
    """Text without quotes. Space at its ends would otherwise be lost."""
    plain = text.translate(_UNQUOTED)
    if plain.endswith(" "):
        plain = f"{plain[:-1]}\\ "
    return f"\\{plain}" if plain.startswith(" ") else plain


def as_listed(identifier: str) -> str:
    """An identifier among dbxrefs."""
    return identifier.translate(_IN_NAMES)


def as_name(identifier: str) -> str:
    """An identifier elsewhere. An address stands as it is, as other programs expect."""
    plain = "://" in identifier and not any(char in identifier for char in '\\"{} \n\r\t\f')
    return identifier if plain else identifier.translate(_IN_NAMES)
