"""What columns and predicates of a file mean that no codec knows, as people tell it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.relations import RELATIONS

MEANINGS: tuple[str, ...] = (
    *dict.fromkeys(name for collection in COLLECTIONS.values() for name in collection.fields),
    "collection",
    "aliases",
    "sources",
    "state",
    "replaced_by",
    *RELATIONS,
)
"""What a column or a predicate can mean."""
_UNUSABLE = "The map cannot be used."


def read_map(given: Sequence[str]) -> dict[str, str]:
    """The meaning of each column or predicate, from pairs `COLUMN=MEANING` and from files with one such pair a line.

    Raises `Invalid` with every mistake there is.
    """
    problems: list[Problem] = []
    pairs = list(_pairs(given, problems))
    try:
        found = read_pairs(pairs)
    except Invalid as error:
        raise Invalid(str(error), [*problems, *error.problems]) from None
    if problems:
        raise Invalid(_UNUSABLE, problems)
    return found


def read_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The same from pairs alone, each with where it stands."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for where, pair in pairs:
        # The last sign of equality counts: an IRI may hold others.
        column, equals, meaning = (part.strip() for part in pair.rpartition("="))
        if not equals or not column:
            problems.append(Problem(where, "is no pair COLUMN=MEANING."))
        elif meaning not in MEANINGS:
            problems.append(Problem(where, f"{meaning!r} is none of {', '.join(MEANINGS)}."))
        elif found.get(column, meaning) != meaning:
            problems.append(Problem(where, f"{column} was said to mean {found[column]} before."))
        else:
            found[column] = meaning
    if problems:
        raise Invalid(_UNUSABLE, problems)
    return found


def _pairs(given: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, str]]:
    for each in given:
        path = Path(each)
        try:
            lines = path.read_text("utf-8-sig").splitlines() if path.is_file() else None
        except (OSError, ValueError) as error:
            problems.append(Problem(each, f"cannot be read: {error}"))
            continue
        if lines is None:
            yield each, each
        else:
            told = ((number, line) for number, line in enumerate(lines, 1) if line.strip() and line[:1] != "#")
            yield from ((f"{path}, line {number}", line) for number, line in told)
