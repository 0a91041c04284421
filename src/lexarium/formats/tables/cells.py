"""Encode values in the cells of a table: text that is no formula, lists, aliases with language and scope.

The functions are in pairs, which are exact inverses.
"""

import csv
import io
import re
from collections.abc import Iterable
from itertools import pairwise

from lexarium.domain.labels import Alias

# An empty text. An empty cell states nothing.
EMPTY_TEXT = "'"

# A start that a spreadsheet runs as a formula or cuts off, after any number of apostrophes that prevent it.
_FORMULA_START = re.compile(r"'*(?:[=+\-@\t\r\n＝＋－＠]|\Z)")
_FORMULA_CHARS = "'=+-@\t\r\n＝＋－＠"
_QUOTE = '"'
_SPACE = " \t\r\n"
_SEPARATOR = re.compile(r"\\.|[|;]", re.DOTALL)
_ESCAPE_SEQUENCE = re.compile(r"\\([\\|;@ \t\r\n])")
_SPECIAL_CHARS = re.compile(r"[\\|;@]")
_ALIAS_SUFFIX = re.compile(
    r"(.*?) @(?=.)([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)?(?:/(exact|narrow|broad|related|hidden))?", re.DOTALL
)


def escape_formula(text: str) -> str:
    """Return a cell with this text that a spreadsheet does not run as a formula."""
    # Most texts begin with another character, and need no further look.
    return f"'{text}" if text and text[0] in _FORMULA_CHARS and _FORMULA_START.match(text) else text


def format_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV, without formulas."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([escape_formula(str(value)) for value in row] for row in rows)
    return text.getvalue()


def format_line(cells: Iterable[str], delimiter: str) -> bytes:
    """Return a line of a table, as the module `csv` would write it, but faster."""
    # Most cells are empty, or have none of the characters for which they are quoted.
    line = [
        text
        if not text or not (delimiter in text or '"' in text or "\n" in text or "\r" in text)
        else f'"{text.replace(_QUOTE, _QUOTE * 2)}"'
        for text in cells
    ]
    return f"{delimiter.join(line)}\r\n".encode()


def unescape_formula(cell: str) -> str:
    """Return the text of a cell."""
    return cell[1:] if cell[:1] == "'" and _FORMULA_START.match(cell) else cell


def join_values(texts: Iterable[str]) -> str:
    """Join non-empty texts to one."""
    return "|".join(map(_escape, texts))


def split_values(text: str, *, bars_only: bool = False) -> list[str]:
    """Split a text at bars, or at semicolons if there are no bars and they count."""
    return [_unescape(part) for part in _split_raw(text, bars_only=bars_only)]


def join_aliases(aliases: Iterable[Alias], language: str) -> str:
    """Join aliases to one text, without the language of those in this language."""
    return "|".join(_escape(alias.text) + _format_alias_suffix(alias, language) for alias in aliases)


def split_aliases(text: str, language: str, scope: str = "exact") -> list[Alias]:
    """Split a text into aliases, with this language and scope by default."""
    aliases = []
    for part in _split_raw(text):
        match = _ALIAS_SUFFIX.fullmatch(part)
        name, lang, stated_scope = match.groups() if match else (part, None, None)
        if name := _unescape(_strip_unescaped(name)):
            aliases.append(Alias.model_construct(text=name, lang=lang or language, scope=stated_scope or scope))
    return aliases


def _format_alias_suffix(alias: Alias, language: str) -> str:
    lang = "" if alias.lang == language else alias.lang
    scope = "" if alias.scope == "exact" else f"/{alias.scope}"
    return f" @{lang}{scope}" if lang or scope else ""


def _escape(text: str) -> str:
    escaped = _SPECIAL_CHARS.sub(r"\\\g<0>", text) if _SPECIAL_CHARS.search(text) else text
    if escaped[-1:] in _SPACE:
        escaped = f"{escaped[:-1]}\\{escaped[-1:]}"
    return f"\\{escaped}" if escaped[:1] in _SPACE else escaped


def _unescape(part: str) -> str:
    return _ESCAPE_SEQUENCE.sub(r"\1", part)


def _split_raw(text: str, *, bars_only: bool = False) -> list[str]:
    if not text:
        return []
    positions = [match.start() for match in _SEPARATOR.finditer(text) if len(match.group()) == 1]
    bars = [position for position in positions if text[position] == "|"]
    boundaries = [-1, *(bars if bars or bars_only else positions), len(text)]
    parts = (_strip_unescaped(text[start + 1 : end]) for start, end in pairwise(boundaries))
    return [part for part in parts if part]


def _strip_unescaped(part: str) -> str:
    """Strip white space, but not an escaped space at the end."""
    end = len(part.rstrip(_SPACE))
    backslashes = end - len(part[:end].rstrip("\\"))
    return part[: end + backslashes % 2].lstrip(_SPACE)
