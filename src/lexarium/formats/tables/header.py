"""Match the columns of a table to fields by their titles."""

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.schema.collections import (
    DEFINITION_FIELDS,
    MAIN_COLLECTIONS,
    MAIN_RELATION_TYPES,
    RELATION_TYPES,
    find_collection,
)
from lexarium.formats.parsed import ParseError, WarningCounter

# The hierarchy relation of the collection, whichever that is.
BROADER = "broader"
# Yes or no: whether the record is retired.
OBSOLETE = "obsolete"
DEFINITION = "definition"

# Known titles by field.
TITLE_SYNONYMS: dict[str, str] = {
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


@dataclass(frozen=True)
class Column:
    """A column with a known meaning."""

    index: int
    title: str
    # A field, a relation type, or another part of a record.
    field: str
    # The default scope of aliases.
    scope: str = "exact"

    @property
    def is_multivalued(self) -> bool:
        """True if a cell holds several values, so that several columns may have this field."""
        return self.field in ("aliases", "sources", BROADER) or self.field in RELATION_TYPES


# Titles that a table about records has: all of one set.
_MAPPING_TITLES = frozenset({"subject_id", "predicate_id", "object_id"})
_TRANSLATION_TITLES = [
    frozenset({subject, text})
    for subject in ("subject_id", "source_id")
    for text in ("translation_value", "translation_text")
]


def detect_kind(head: bytes) -> str | None:
    """Return the format of a table about records, given its first bytes: mappings or translations; None for others."""
    lines = (line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if not line.startswith(b"#"))
    titles = re.split(r"[\t,;|]", next(lines, b"").decode(errors="replace"))
    folded = {title.strip(" \"'").casefold() for title in titles}
    if folded >= _MAPPING_TITLES:
        return "sssom"
    return "translation" if any(folded >= required for required in _TRANSLATION_TITLES) else None


# Titles that only tables of the main vocabulary have, as v-alpha spells them.
_VALPHA_TITLES = frozenset(
    name for collection in MAIN_COLLECTIONS.values() for name in collection.valpha_field_names if "_" in name
)
_MAIN_ID_PREFIXES = tuple(prefix for collection in MAIN_COLLECTIONS.values() for prefix in collection.id_prefixes)


def is_main_table(file_name: str, titles: Iterable[str], ids: Collection[str]) -> bool:
    """Return whether a table looks like one of the main vocabulary: by its name, its titles, or most of its ids."""
    if find_collection(file_name.split(".", maxsplit=1)[0]) is not None or not _VALPHA_TITLES.isdisjoint(titles):
        return True
    return 2 * sum(has_prefix(record_id, _MAIN_ID_PREFIXES) for record_id in ids) > len(ids)


def normalize_title(title: str) -> str:
    """Return a title for comparison: without case, spaces, punctuation and the prefix of a vocabulary."""
    last = re.split(r"[:#/]", unicodedata.normalize("NFKC", title).strip().rstrip(":#/"))[-1]
    return re.sub(r"[\W_]+", "", last.casefold())


def _build_title_index() -> dict[str, str]:
    field_by_title = {
        normalize_title(name): name for collection in MAIN_COLLECTIONS.values() for name in collection.core_fields
    }
    field_by_title |= {normalize_title(name): name for name in MAIN_RELATION_TYPES}
    field_by_title |= {normalize_title(entry.label): entry.name for entry in MAIN_RELATION_TYPES.values()}
    field_by_title |= dict.fromkeys(map(normalize_title, DEFINITION_FIELDS), DEFINITION)
    for field, titles in TITLE_SYNONYMS.items():
        field_by_title |= dict.fromkeys(map(normalize_title, titles.split(",")), field)
    return field_by_title


_FIELD_BY_TITLE = _build_title_index()
_HIERARCHY_RELATIONS = {entry.hierarchy_type.name for entry in MAIN_COLLECTIONS.values() if entry.hierarchy_type}


def count_known_titles(titles: Iterable[str], column_mapping: Mapping[str, str]) -> int:
    """Count the titles with a known meaning."""
    return sum(1 for title in titles if title.strip() in column_mapping or normalize_title(title) in _FIELD_BY_TITLE)


def match_columns(
    titles: Sequence[str], column_mapping: Mapping[str, str], line: int, warnings: WarningCounter
) -> list[Column]:
    """Return the columns with a known meaning, and warn of the others.

    Raise ParseError if there is neither an id nor a name, or if two columns have the same single-valued field.
    """
    titles = [title.strip() for title in titles]
    matched = [_match_column(index, title, column_mapping) for index, title in enumerate(titles)]
    known = [column for column in matched if column]
    mapped_fields = {column.field for column in known if column.title in column_mapping and not column.is_multivalued}
    # A user's mapping takes precedence over a known title.
    columns = [column for column in known if column.title in column_mapping or column.field not in mapped_fields]
    if not {"id", "name"} & {column.field for column in columns}:
        message = "the first line should name the columns, one of them `id` or `name`"
        raise ParseError(f"{message}; found: {', '.join(filter(None, titles))[:200]}", line, 1)
    _reject_duplicates(columns, line)
    known_indexes = {column.index for column in columns}
    for index, title in enumerate(titles):
        if title and index not in known_indexes and column_mapping.get(title) != "":
            remedy = f"map it with --map {shlex.quote(f'{title}=FIELD')}"
            message = f"the column {title} ({index + 1}) is not known; it was skipped. {remedy}"
            warnings.add(message, is_loss=True)
    for title in column_mapping:
        if title not in titles:
            warnings.add(f"there is no column {title}, which --map names")
    return columns


def _match_column(index: int, title: str, column_mapping: Mapping[str, str]) -> Column | None:
    field = column_mapping.get(title, _FIELD_BY_TITLE.get(normalize_title(title)))
    if not title or not field:
        return None
    field, _, scope = field.partition("/")
    field = DEFINITION if field in DEFINITION_FIELDS else BROADER if field in _HIERARCHY_RELATIONS else field
    return Column(index, title, field, scope or "exact")


def _reject_duplicates(columns: Iterable[Column], line: int) -> None:
    seen: dict[str, Column] = {}
    for column in columns:
        previous = seen.setdefault(column.field, column)
        if previous is not column and not column.is_multivalued:
            conflict = f"the columns {previous.index + 1} ({previous.title}) and {column.index + 1} ({column.title})"
            hint = f"keep one of them, or say which with --map {shlex.quote(f'{previous.title}={column.field}')}"
            raise ParseError(f"{conflict} both seem to be the {column.field}: {hint}", line, 1)
