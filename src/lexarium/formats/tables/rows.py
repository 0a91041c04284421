"""Parse the rows of a table as records."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lexarium.domain.identifiers import find_target_problem
from lexarium.domain.labels import Alias, parse_aliases
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, MAIN_RELATION_TYPES, Collection
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.nouns import add_article
from lexarium.formats.foreign_ids import build_name_reference, parse_integer, parse_own_id
from lexarium.formats.parsed import ParsedRecord, ReadOptions, WarningCounter
from lexarium.formats.tables.cells import split_aliases, split_values, unescape_formula
from lexarium.formats.tables.header import BROADER, DEFINITION, OBSOLETE, Column

Rows = Iterable[tuple[int, list[str]]]

_REFERENCE_FIELDS = {BROADER, "replaced_by"} | {
    name for name, entry in MAIN_RELATION_TYPES.items() if not entry.is_mapping
}
# Parsed before and after the other cells of a row.
_ROW_FIELDS = ("collection", "alias")
TRUE_VALUES = ("1", "true", "yes", "y", "x", "obsolete", "deprecated", "retired")
FALSE_VALUES = ("0", "false", "no", "n")
_SCIENTIFIC_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?[eE][+-]?\d+")
_SCIENTIFIC_NUMBER_HINT = (
    ", as spreadsheets write long numbers, having rounded them: from the original, format the column as text, or as a "
    "number without decimals, and save it again; or skip the column"
)


@dataclass
class TableParser:
    """Parse rows; resolve references between them."""

    options: ReadOptions
    columns: Sequence[Column]
    titles: Sequence[str]
    warnings: WarningCounter

    def __post_init__(self) -> None:
        self._index_by_field = {column.field: column.index for column in self.columns}
        self._reference_columns = [column.index for column in self.columns if column.field in _REFERENCE_FIELDS]
        self._last_required_index = max(self._index_by_field.get("id", 0), self._index_by_field.get("name", 0))
        self._untitled_columns = [index for index, title in enumerate(self.titles) if not title.strip()]
        # The collections and keys of the rows that other rows refer to, by id and by name.
        self._rows_by_code: dict[str, set[tuple[str, str]]] = {}
        self._rows_by_name: dict[str, set[tuple[str, str]]] = {}

    def has_column(self, field_name: str) -> bool:
        """Return whether a column has this field."""
        return field_name in self._index_by_field

    def get_text(self, row: Sequence[str], field_name: str) -> str:
        """Return the text of a field; empty if there is none."""
        index = self._index_by_field.get(field_name, len(row))
        return unescape_formula(row[index]) if index < len(row) else ""

    def resolve_id(self, text: str) -> str | None:
        """Return the id that a text is: ours, an IRI or a CURIE; None if it is none."""
        own_id = parse_own_id(text, self.options.vocabulary)
        return own_id if own_id is not None or find_target_problem(text) else text

    def collect_row_references(self, rows: Rows) -> set[str]:
        """Return the references that are not ids, and must be looked up among the rows."""
        if not self._reference_columns:
            return set()
        cells = (row[index] for _, row in rows for index in self._reference_columns if index < len(row) and row[index])
        texts = (text for cell in cells for text in split_values(unescape_formula(cell)))
        return {text for text in texts if self.resolve_id(text) is None}

    def index_referenced_rows(self, references: set[str], rows: Rows) -> None:
        """Record the rows that have one of these references as id or name."""
        names = {name_key(text) for text in references}
        for _, row in rows:
            collection = self.get_collection(row)
            code, key = self.get_text(row, "id").strip(), name_key(self.get_text(row, "name"))
            if collection is not None and (code in references or key in names):
                entry = (collection.name, self.get_row_key(row, collection))
                self._rows_by_code.setdefault(code, set()).add(entry)
                self._rows_by_name.setdefault(key, set()).add(entry)

    def find_rows(self, text: str, collection: str | None) -> set[str]:
        """Return the keys of the rows that a reference may mean, optionally of one collection."""
        entries = self._rows_by_code.get(text) or self._rows_by_name.get(name_key(text)) or set()
        return {key for entry_collection, key in entries if collection in (None, entry_collection)}

    def get_collection(self, row: Sequence[str]) -> Collection | None:
        """Return the collection of a row; None if it is missing or unknown."""
        stated = self.get_text(row, "collection").strip().casefold().replace(" ", "_")
        stated_collection = MAIN_COLLECTIONS.get(stated) if stated else self.options.default_collection
        return self.options.collection or stated_collection

    def get_row_key(self, row: Sequence[str], collection: Collection) -> str:
        """Return the id of a row (ours, an IRI or a CURIE), or else a name reference."""
        row_id = self.resolve_id(self.get_text(row, "id").strip())
        return row_id or build_name_reference(collection.name, self.get_text(row, "name"))

    def parse_row(self, line: int, row: list[str]) -> ParsedRecord:
        """Parse a row; raise ParseError if it has no collection."""
        problem = self._check_width(line, row)
        if problem is not None:
            return ParsedRecord(line, problems=[problem])
        row += [""] * (len(self.titles) - len(row))
        collection = self.get_collection(row)
        if collection is not None:
            return _RowParser(self, collection, line, row).parse()
        rejected = ParsedRecord(line)
        self.options.parse_collection("collection", self.get_text(row, "collection").strip() or None, rejected)
        return rejected

    def _check_width(self, line: int, row: Sequence[str]) -> str | None:
        """Return a problem if the row does not fit the columns; warn about a smaller difference."""
        width = len(self.titles)
        if any(row[width:]):
            return f"the row has {len(row)} cells, but the first line names {width} columns"
        if len(row) <= self._last_required_index:
            return f"the row has {len(row)} of {width} cells, too few for its id and name"
        if len(row) < width:
            message = "a row has fewer cells than there are columns; missing cells are read as empty"
            self.warnings.add(message, f"on line {line}")
        for index in self._untitled_columns:
            if index < len(row) and row[index]:
                message = f"the column {index + 1} has no name; what it holds was skipped"
                self.warnings.add(message, f"on line {line}", is_loss=True)
        return None


class _RowParser:
    """Parse one row, cell by cell."""

    def __init__(self, table: TableParser, collection: Collection, line: int, row: Sequence[str]) -> None:
        self._table = table
        self._collection = collection
        self._row = row
        self._record = ParsedRecord(line, collection.name, is_manual=True)
        self._record_key = table.get_row_key(row, collection)
        self._label = table.get_text(row, "id").strip() or table.get_text(row, "name")[:100]
        self._aliases: list[Alias] = []
        # Relation types with a reference that may mean several rows.
        self._ambiguous_relations: set[str] = set()

    def parse(self) -> ParsedRecord:
        hierarchy = self._collection.hierarchy_type
        aliased_fields = {
            DEFINITION: self._collection.definition_field or "",
            BROADER: "" if hierarchy is None else hierarchy.name,
        }
        for column in self._table.columns:
            cell = self._row[column.index]
            name = aliased_fields.get(column.field, column.field)
            parse_cell = _CELL_PARSERS.get(name)
            if name in _ROW_FIELDS:
                continue
            if parse_cell is not None:
                parse_cell(self, column, unescape_formula(cell))
            elif name in self._collection.relation_types:
                self._add_relations(column, self._collection.relation_types[name], unescape_formula(cell))
            elif name in self._collection.core_fields:
                self._set_field(name, cell)
            elif cell:
                kind = add_article(self._collection.name)
                message = f"the column {column.title} is not supported for {kind}; it was skipped"
                self._table.warnings.add(message, f"on line {self._record.line}", is_loss=True)
        self._set_aliases()
        self._record.complete_relations = [
            relation for relation in self._record.complete_relations if relation[0] not in self._ambiguous_relations
        ]
        if not self._label:
            self._record.problems.append("the row has neither an id nor a name")
        return self._record

    def _set_field(self, name: str, cell: str) -> None:
        # For fields that the server sets, an empty cell states nothing, so that rows can be added by hand.
        if not cell and (name not in self._collection.editable_fields or self._collection.field_types[name] is int):
            return
        text = unescape_formula(cell)
        value = text if self._collection.field_types[name] is str else parse_integer(text.strip())
        if value is None:
            hint = _SCIENTIFIC_NUMBER_HINT if _SCIENTIFIC_NUMBER.fullmatch(text.strip()) else ""
            self._record.problems.append(f"{name} of {self._label} is not a whole number: {text[:50]}{hint}")
        else:
            self._record.fields[name] = value

    def _set_aliases(self) -> None:
        """Set the field `alias` only if there is no list of aliases."""
        table, record = self._table, self._record
        alias = table.get_text(self._row, "alias")
        field = self._collection.alias_field
        if field is not None and table.has_column("alias") and not self._aliases:
            record.fields[field] = alias
        elif table.has_column("alias") or table.has_column("aliases"):
            record.aliases = (*self._aliases, *parse_aliases(alias))

    def parse_id(self, column: Column, cell: str) -> None:
        text = cell.strip()
        own_id = parse_own_id(text, self._table.options.vocabulary)
        if own_id is not None:
            self._record.fields["id"] = own_id
        elif self._table.resolve_id(text):
            self._record.foreign_id = text
        elif text:
            message = "an id is neither one of this catalogue nor an IRI nor a CURIE, like DOID:3324"
            self._table.warnings.add(f"{message}; its row goes by name", f"on line {self._record.line}")

    def parse_name(self, column: Column, cell: str) -> None:
        self._record.fields["name"] = cell
        if not cell and self._label:
            self._record.warn(f"{self._label} has an empty name")

    def parse_aliases(self, column: Column, cell: str) -> None:
        self._aliases += split_aliases(cell, self._table.options.vocabulary.language, column.scope)

    def parse_sources(self, column: Column, cell: str) -> None:
        self._record.sources = (*(self._record.sources or ()), *split_values(cell))

    def parse_state(self, column: Column, cell: str) -> None:
        text = cell.strip().casefold()
        if text in [*RecordState]:
            self._record.state = RecordState(text)
        elif text:
            problem = f"the state of {self._label} is {cell!r}, which is not one of {', '.join(RecordState)}"
            self._record.problems.append(problem)

    def parse_obsolete(self, column: Column, cell: str) -> None:
        text = cell.strip().casefold()
        if text in TRUE_VALUES:
            self._record.state = RecordState.RETIRED
        elif text in FALSE_VALUES:
            self._record.state = RecordState.PUBLISHED
        elif text:
            self._record.problems.append(f"{column.title} of {self._label} is {cell!r}, which is neither yes nor no")

    def parse_replacement(self, column: Column, cell: str) -> None:
        if cell.strip():
            self._record.replaced_by = self._resolve_target(column, cell.strip(), None)

    def _add_relations(self, column: Column, relation_type: RelationType, cell: str) -> None:
        name, collections = relation_type.name, relation_type.targets.get(self._collection.name, ())
        target_collection = collections[0] if len(collections) == 1 else None
        # Several columns may have one relation type.
        if (name, "source") not in self._record.complete_relations:
            self._record.complete_relations.append((name, "source"))
        for text in split_values(cell):
            target = text if relation_type.is_mapping else self._resolve_target(column, text, target_collection)
            if target is None:
                self._ambiguous_relations.add(name)
            else:
                self._record.relations.append(Relation(self._record_key, name, target))

    def _resolve_target(self, column: Column, text: str, collection: str | None) -> str | None:
        record_id = self._table.resolve_id(text)
        if record_id is not None:
            return record_id
        rows = self._table.find_rows(text, collection)
        if len(rows) > 1:
            reference = f"{column.title} of {self._label} names {text[:100]!r}"
            self._record.warn(f"{reference}: several rows have this name; it was skipped", is_loss=True)
            return None
        # If no row has this name, a record of the catalogue may have it.
        return next(iter(rows), build_name_reference(collection or self._collection.name, text))


_CELL_PARSERS: dict[str, Callable[[_RowParser, Column, str], None]] = {
    "id": _RowParser.parse_id,
    "name": _RowParser.parse_name,
    "aliases": _RowParser.parse_aliases,
    "sources": _RowParser.parse_sources,
    "state": _RowParser.parse_state,
    OBSOLETE: _RowParser.parse_obsolete,
    "replaced_by": _RowParser.parse_replacement,
}
