"""How things stand in one cell of a table: text that no spreadsheet runs, lists, other names with language and scope.

Each pair of functions here undoes the other exactly.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from lexarium.domain.aliases import Alias

EMPTY = "'"
"""A text that is there and empty, where an empty cell says nothing."""

# What a spreadsheet runs, or cuts off, at the start of a cell; after any number of signs that say that it shall not.
_RUN = re.compile(r"'*(?:[=+\-@\t\r\n＝＋－＠]|\Z)")
_SPACE = " \t\r\n"
_SIGN = re.compile(r"\\.|[|;]", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\|;@ \t\r\n])")
_NEEDING_ESCAPE = re.compile(r"[\\|;@]")
_MARKED = re.compile(
    r"(.*?) @(?=.)([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)?(?:/(exact|narrow|broad|related|hidden))?", re.DOTALL
)


def guarded(text: str) -> str:
    """A text as a cell that a spreadsheet only shows."""
    return f"'{text}" if text and _RUN.match(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell."""
    return cell[1:] if cell[:1] == "'" and _RUN.match(cell) else cell


def joined(texts: Iterable[str]) -> str:
    """Several texts, none of them empty, as one."""
    return "|".join(map(_escaped, texts))


def parted(text: str) -> list[str]:
    """The texts between the strokes, or where there are none between the semicolons."""
    return [_unescaped(part) for part in _parts(text)]


def joined_aliases(aliases: Iterable[Alias], language: str) -> str:
    """Other names as one text; those in this language do not say theirs."""
    return "|".join(_escaped(alias.text) + _mark(alias, language) for alias in aliases)


def parted_aliases(text: str, language: str, scope: str = "exact") -> list[Alias]:
    """The other names in a text; those that do not say so have this language and scope."""
    found = []
    for part in _parts(text):
        match = _MARKED.fullmatch(part)
        name, lang, told = match.groups() if match else (part, None, None)
        if name := _unescaped(_stripped(name)):
            found.append(Alias.model_construct(text=name, lang=lang or language, scope=told or scope))
    return found


def _mark(alias: Alias, language: str) -> str:
    lang = "" if alias.lang == language else alias.lang
    scope = "" if alias.scope == "exact" else f"/{alias.scope}"
    return f" @{lang}{scope}" if lang or scope else ""


def _escaped(text: str) -> str:
    escaped = _NEEDING_ESCAPE.sub(r"\\\g<0>", text)
    if escaped[-1:] in _SPACE:
        escaped = f"{escaped[:-1]}\\{escaped[-1:]}"
    return f"\\{escaped}" if escaped[:1] in _SPACE else escaped


def _unescaped(part: str) -> str:
    return _ESCAPED.sub(r"\1", part)


def _parts(text: str) -> list[str]:
    if not text:
        return []
    places = [match.start() for match in _SIGN.finditer(text) if len(match.group()) == 1]
    strokes = [place for place in places if text[place] == "|"]
    cuts = [-1, *(strokes or places), len(text)]
    parts = (_stripped(text[start + 1 : end]) for start, end in pairwise(cuts))
    return [part for part in parts if part]


def _stripped(part: str) -> str:
    """Without the space around it, but for one that is escaped."""
    end = len(part.rstrip(_SPACE))
    hanging = end - len(part[:end].rstrip("\\"))
    return part[: end + hanging % 2].lstrip(_SPACE)
