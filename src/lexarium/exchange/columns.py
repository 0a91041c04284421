"""What the columns of a table mean, told by their names."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.collections import COLLECTIONS, DEFINITIONS
from lexarium.domain.relations import RELATIONS
from lexarium.exchange.incoming import Malformed

BROADER = "broader"
"""The relation by which records of a kind are broader than others, whichever that is."""
OBSOLETE = "obsolete"
"""Whether the record is retired: yes or no."""
DEFINITION = "definition"

SPELLINGS: dict[str, str] = {
    "collection": "collection, type, kind, scheme, in scheme",
    "id": "id, ids, identifier, iri, uri, curie, code, notation, class id, concept id, term id, record id, accession",
    "name": "name, label, title, term, heading, preferred label, preferred name, preferred term, pref label, concept, "
    "concept name, term name, class name, main term, descriptor",
    DEFINITION: "definition, definitions, def, description, meaning, gloss, scope note",
    "aliases": "aliases, synonym, synonyms, alt label, alt labels, alternative label, alternative labels, "
    "alternative name, alternative names, alternative term, alternative terms, also known as, aka, other name, "
    "other names, other terms, used for, variant, variants, exact synonym, exact synonyms, abbreviation, "
    "abbreviations, acronym, acronyms",
    "aliases/narrow": "narrow synonym, narrow synonyms",
    "aliases/broad": "broad synonym, broad synonyms",
    "aliases/related": "related synonym, related synonyms",
    "aliases/hidden": "hidden label, hidden labels",
    "sources": "sources, source, reference, references, citation, citations, definition source, dbxref, dbxrefs",
    BROADER: "parent, parents, parent id, parent ids, parent name, parent term, parent class, broader, broader term, "
    "broader terms, is a, isa, kind of, subclass of, sub class of, super class",
    "PARTOF": "part of",
    "RELATED": "related, related to, related term, related terms, see also",
    "closeMatch": "xref, xrefs, cross reference, cross references, mapping, mappings",
    "exactMatch": "same as, equivalent to, exact match, exact matches",
    "state": "state, status",
    OBSOLETE: "obsolete, is obsolete, deprecated, is deprecated, retired",
    "replaced_by": "replaced by, is replaced by, replacement, superseded by, use instead",
}
"""What columns may be called, by what they mean."""


@dataclass(frozen=True)
class Column:
    """A column that means something."""

    index: int
    title: str
    meaning: str
    """A field, a relation, or one of what a record has besides."""
    scope: str = "exact"
    """Of other names that do not say theirs."""

    @property
    def several(self) -> bool:
        """Whether a cell holds several values, so that several columns may mean it."""
        return self.meaning in ("aliases", "sources", BROADER) or self.meaning in RELATIONS


def folded(title: str) -> str:
    """The name of a column as it is compared: without case, spaces, signs, and the prefix of a vocabulary."""
    last = re.split(r"[:#/]", unicodedata.normalize("NFKC", title).strip().rstrip(":#/"))[-1]
    return re.sub(r"[\W_]+", "", last.casefold())


def _known() -> dict[str, str]:
    known = {folded(name): name for collection in COLLECTIONS.values() for name in collection.fields}
    known |= {folded(name): name for name in RELATIONS}
    known |= {folded(each.label): each.name for each in RELATIONS.values()}
    known |= dict.fromkeys(map(folded, DEFINITIONS), DEFINITION)
    for meaning, spellings in SPELLINGS.items():
        known |= dict.fromkeys(map(folded, spellings.split(",")), meaning)
    return known


_KNOWN = _known()
_BROADER = {relation.name for relation in (each.hierarchy for each in COLLECTIONS.values()) if relation}


def known_among(titles: Iterable[str], map: Mapping[str, str]) -> int:
    """How many of these are names of columns that mean something."""
    return sum(1 for title in titles if title.strip() in map or folded(title) in _KNOWN)


def columns_of(titles: Sequence[str], map: Mapping[str, str], line: int) -> tuple[list[Column], list[str]]:
    """The columns that mean something, and what is to be told of the others.

    Raises `Malformed` where the titles name no records, or two columns mean what a record has once.
    """
    found = [_column(index, title.strip(), map) for index, title in enumerate(titles)]
    told = {each.meaning for each in found if each is not None and each.title in map and not each.several}
    # What people say goes before what a name suggests.
    columns = [each for each in found if each and (each.title in map or each.meaning not in told)]
    if not {"id", "name"} & {each.meaning for each in columns}:
        named = ", ".join(title.strip() for title in titles if title.strip())[:200]
        what = "the first line should name the columns, one of them `id` or `name`"
        raise Malformed(f"{what}; found: {named}", line, 1)
    _refuse_doubles(columns, line)
    return columns, [*_left_out(titles, columns), *_unheard(titles, map)]


def _column(index: int, title: str, map: Mapping[str, str]) -> Column | None:
    meaning = map.get(title) or _KNOWN.get(folded(title))
    if not title or meaning is None:
        return None
    meaning, _, scope = meaning.partition("/")
    meaning = DEFINITION if meaning in DEFINITIONS else BROADER if meaning in _BROADER else meaning
    return Column(index, title, meaning, scope or "exact")


def _refuse_doubles(columns: Iterable[Column], line: int) -> None:
    seen: dict[str, Column] = {}
    for column in columns:
        other = seen.setdefault(column.meaning, column)
        if other is not column and not column.several:
            both = f"the columns {other.index + 1} ({other.title}) and {column.index + 1} ({column.title})"
            choose = f"keep one of them, or say which with --map '{other.title}={column.meaning}'"
            raise Malformed(f"{both} both seem to be the {column.meaning}: {choose}", line, 1)


def _left_out(titles: Sequence[str], columns: Iterable[Column]) -> list[str]:
    taken = {column.index for column in columns}
    unknown = [(index, title.strip()) for index, title in enumerate(titles) if index not in taken]
    return [
        f"the column {title} ({index + 1}) is not known; it was left out. --map can say what it means"
        for index, title in unknown
        if title
    ]


def _unheard(titles: Iterable[str], map: Mapping[str, str]) -> list[str]:
    there = {title.strip() for title in titles}
    return [f"there is no column {title}, though --map speaks of it" for title in map if title not in there]
