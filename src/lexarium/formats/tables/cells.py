"""How things stand in one cell of a table: text that no spreadsheet runs, lists, other names with language and scope.

Each pair of functions here undoes the other exactly.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from lexarium.domain.labels import Alias

EMPTY_TEXT = "'"
"""A text that is there and empty, where an empty cell says nothing."""

# What a spreadsheet runs, or cuts off, at the start of a cell; after any number of signs that say that it shall not.
_FORMULA_START = re.compile(r"'*(?:[=+\-@\t\r\n＝＋－＠]|\Z)")
_SPACE = " \t\r\n"
_SEPARATOR = re.compile(r"\\.|[|;]", re.DOTALL)
_ESCAPE_SEQUENCE = re.compile(r"\\([\\|;@ \t\r\n])")
_SPECIAL_CHARS = re.compile(r"[\\|;@]")
_ALIAS_SUFFIX = re.compile(
    r"(.*?) @(?=.)([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)?(?:/(exact|narrow|broad|related|hidden))?", re.DOTALL
)


def escape_formula(text: str) -> str:
    """A text as a cell that a spreadsheet only shows."""
    return f"'{text}" if text and _FORMULA_START.match(text) else text


def unescape_formula(cell: str) -> str:
    """The text of a cell."""
    return cell[1:] if cell[:1] == "'" and _FORMULA_START.match(cell) else cell


def join_values(texts: Iterable[str]) -> str:
    """Several texts, none of them empty, as one."""
    return "|".join(map(_escape, texts))


def split_values(text: str) -> list[str]:
    """The texts between the strokes, or where there are none between the semicolons."""
    return [_unescape(part) for part in _split_raw(text)]


def join_aliases(aliases: Iterable[Alias], language: str) -> str:
    """Other names as one text; those in this language do not say theirs."""
    return "|".join(_escape(alias.text) + _format_alias_suffix(alias, language) for alias in aliases)


def split_aliases(text: str, language: str, scope: str = "exact") -> list[Alias]:
    """The other names in a text; those that do not say so have this language and scope."""
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
    escaped = _SPECIAL_CHARS.sub(r"\\\g<0>", text)
    if escaped[-1:] in _SPACE:
        escaped = f"{escaped[:-1]}\\{escaped[-1:]}"
    return f"\\{escaped}" if escaped[:1] in _SPACE else escaped


def _unescape(part: str) -> str:
    return _ESCAPE_SEQUENCE.sub(r"\1", part)


def _split_raw(text: str) -> list[str]:
    if not text:
        return []
    positions = [match.start() for match in _SEPARATOR.finditer(text) if len(match.group()) == 1]
    bars = [position for position in positions if text[position] == "|"]
    boundaries = [-1, *(bars or positions), len(text)]
    parts = (_strip_unescaped(text[start + 1 : end]) for start, end in pairwise(boundaries))
    return [part for part in parts if part]


def _strip_unescaped(part: str) -> str:
    """Without the space around it, but for one that is escaped."""
    end = len(part.rstrip(_SPACE))
    backslashes = end - len(part[:end].rstrip("\\"))
    return part[: end + backslashes % 2].lstrip(_SPACE)
