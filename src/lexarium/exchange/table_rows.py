"""A row of a table as a record."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lexarium.domain.aliases import Alias, split
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.relations import RELATIONS, Edge, why_not_outside
from lexarium.domain.text import name_key
from lexarium.exchange.cells import parted, parted_aliases, unguarded
from lexarium.exchange.columns import BROADER, DEFINITION, OBSOLETE, Column
from lexarium.exchange.incoming import Incoming, Reading, no_collection
from lexarium.exchange.notions import label_key, own_id, whole_number
from lexarium.exchange.remarks import Remarks

Rows = Iterable[tuple[int, list[str]]]

_YES = ("1", "true", "yes", "y", "x", "obsolete", "deprecated", "retired")
_NO = ("0", "false", "no", "n")
_ROUNDED = re.compile(r"[+-]?\d+(?:[.,]\d+)?[eE][+-]?\d+")
_ROUNDED_HINT = (
    ", as spreadsheets write long numbers, having rounded them: from the original, format the column as text, or as a "
    "number without decimals, and save it again; or leave the column out"
)


@dataclass
class Table:
    """What the rows of a table have in common."""

    reading: Reading
    columns: Sequence[Column]
    titles: Sequence[str]
    remarks: Remarks = field(default_factory=Remarks)

    def __post_init__(self) -> None:
        self._places = {column.meaning: column.index for column in self.columns}
        self._naming = [each.index for each in self.columns if each.meaning == "replaced_by" or _names(each)]
        self._reach = max(self._places.get("id", 0), self._places.get("name", 0))
        self._unnamed = [index for index, title in enumerate(self.titles) if not title.strip()]
        # Rows by what other rows call them: each with its collection, and what stands for it.
        self._by_code: dict[str, set[tuple[str, str]]] = {}
        self._by_name: dict[str, set[tuple[str, str]]] = {}

    def has(self, meaning: str) -> bool:
        """Whether some column means this."""
        return meaning in self._places

    def cell(self, row: Sequence[str], meaning: str) -> str:
        """The text of the cell that means this; empty where there is none."""
        index = self._places.get(meaning, len(row))
        return unguarded(row[index]) if index < len(row) else ""

    def known(self, text: str) -> str | None:
        """The record that a text names by itself: by an id of ours, an IRI or a CURIE."""
        own = own_id(text, self.reading.about)
        return own if own is not None or why_not_outside(text) else text

    def wanted(self, body: Rows) -> set[str]:
        """By what rows name others that must be looked up among the rows."""
        if not self._naming:
            return set()
        cells = (row[index] for _, row in body for index in self._naming if index < len(row) and row[index])
        return {text for cell in cells for text in parted(unguarded(cell)) if self.known(text) is None}

    def find(self, wanted: set[str], body: Rows) -> None:
        """Look for those rows: by what they have as their id, and by their name."""
        names = {name_key(text) for text in wanted}
        for _, row in body:
            collection = self.collection(row)
            code, key = self.cell(row, "id").strip(), name_key(self.cell(row, "name"))
            if collection is not None and (code in wanted or key in names):
                meant = (collection.name, self.key(row, collection))
                self._by_code.setdefault(code, set()).add(meant)
                self._by_name.setdefault(key, set()).add(meant)

    def called(self, text: str, collection: str | None) -> set[str]:
        """The rows that a text may mean, of this collection if one is told."""
        found = self._by_code.get(text) or self._by_name.get(name_key(text)) or set()
        return {key for kind, key in found if collection in (None, kind)}

    def collection(self, row: Sequence[str]) -> Collection | None:
        """What a row is a record of; None where nothing tells."""
        told = self.cell(row, "collection").strip().casefold().replace(" ", "_")
        told_kind = COLLECTIONS.get(told) if told else self.reading.fallback
        return self.reading.collection or told_kind

    def key(self, row: Sequence[str], collection: Collection) -> str:
        """What stands for a row: an id of ours, an IRI or a CURIE, else its name."""
        return self.known(self.cell(row, "id").strip()) or label_key(collection.name, self.cell(row, "name"))

    def incoming(self, line: int, row: list[str]) -> Incoming:
        """A row as a record."""
        problem = self._misfit(line, row)
        if problem is not None:
            return Incoming(line, problems=[problem])
        row += [""] * (len(self.titles) - len(row))
        collection = self.collection(row)
        if collection is None:
            told = self.cell(row, "collection").strip()
            if not told:
                raise no_collection(line)
            return Incoming(line, problems=[f"its collection is {told!r}, which is none of {', '.join(COLLECTIONS)}"])
        return _Record(self, collection, line, row).taken()

    def _misfit(self, line: int, row: Sequence[str]) -> str | None:
        """Why a row does not fit the columns."""
        width = len(self.titles)
        if any(row[width:]):
            return f"the row has {len(row)} cells, but the first line names {width} columns"
        if len(row) <= self._reach:
            return f"the row has {len(row)} of {width} cells, too few for its id and name"
        if len(row) < width:
            self.remarks.add(
                "a row has fewer cells than there are columns; the others are taken to be empty", f"on line {line}"
            )
        for index in self._unnamed:
            if index < len(row) and row[index]:
                self.remarks.add(f"the column {index + 1} has no name; what it holds was left out", f"on line {line}")
        return None


def _names(column: Column) -> bool:
    return column.meaning == BROADER or (column.meaning in RELATIONS and RELATIONS[column.meaning].target is not None)


class _Record:
    """A row that is being read, cell by cell."""

    def __init__(self, table: Table, collection: Collection, line: int, row: Sequence[str]) -> None:
        self._table = table
        self._collection = collection
        self._row = row
        self._incoming = Incoming(line, collection.name, by_hand=True)
        self._key = table.key(row, collection)
        self._who = table.cell(row, "id").strip() or table.cell(row, "name")[:100]
        self._aliases: list[Alias] = []
        self._unclear: set[str] = set()
        """Relations of which a cell does not tell what it names."""

    def taken(self) -> Incoming:
        """The record."""
        for column in self._table.columns:
            cell = self._row[column.index]
            take = _TAKERS.get(column.meaning)
            if take is not None:
                take(self, column, unguarded(cell))
            elif column.meaning in RELATIONS:
                self._relate(column, column.meaning, unguarded(cell))
            elif column.meaning in self._collection.types:
                self._set(column.meaning, cell)
            elif cell:
                self._means_nothing(column)
        self._name_it()
        self._incoming.told = [each for each in self._incoming.told if each[0] not in self._unclear]
        if not self._who:
            self._incoming.problems.append("the row has neither an id nor a name")
        return self._incoming

    def _means_nothing(self, column: Column) -> None:
        what = f"the column {column.title} means nothing for a {self._collection.name}; it was left out"
        self._table.remarks.add(what, f"on line {self._incoming.line}")

    def _set(self, name: str, cell: str) -> None:
        # Of what people do not write an empty cell says nothing, so that rows can be added by hand.
        if not cell and (name not in self._collection.written or self._collection.types[name] is int):
            return
        text = unguarded(cell)
        value = text if self._collection.types[name] is str else whole_number(text.strip())
        if value is None:
            hint = _ROUNDED_HINT if _ROUNDED.fullmatch(text.strip()) else ""
            self._incoming.problems.append(f"{name} of {self._who} is not a whole number: {text[:50]}{hint}")
        else:
            self._incoming.fields[name] = value

    def _name_it(self) -> None:
        """Other names: as one text only where no list tells them."""
        table, incoming = self._table, self._incoming
        alias = table.cell(self._row, "alias")
        if "alias" in self._collection.types and table.has("alias") and not self._aliases:
            incoming.fields["alias"] = alias
        elif table.has("alias") or table.has("aliases"):
            incoming.aliases = (*self._aliases, *split(alias))

    def take_id(self, column: Column, cell: str) -> None:
        text = cell.strip()
        own = own_id(text, self._table.reading.about)
        if own is not None:
            self._incoming.fields["id"] = own
        elif self._table.known(text):
            self._incoming.foreign = text
        elif text:
            what = "an id is neither one of this catalogue nor an IRI nor a CURIE, like DOID:3324; its row goes by name"
            self._table.remarks.add(what, f"on line {self._incoming.line}")

    def take_name(self, column: Column, cell: str) -> None:
        self._incoming.fields["name"] = cell
        if not cell and self._who:
            self._incoming.warnings.append(f"{self._who} has an empty name")

    def take_definition(self, column: Column, cell: str) -> None:
        name = self._collection.definition
        if name is not None:
            self._incoming.fields[name] = cell
        elif cell:
            self._means_nothing(column)

    def take_aliases(self, column: Column, cell: str) -> None:
        self._aliases += parted_aliases(cell, self._table.reading.about.language, column.scope)

    def take_sources(self, column: Column, cell: str) -> None:
        self._incoming.sources = (*(self._incoming.sources or ()), *parted(cell))

    def take_broader(self, column: Column, cell: str) -> None:
        hierarchy = self._collection.hierarchy
        if hierarchy is not None:
            self._relate(column, hierarchy.name, cell)
        elif cell:
            self._means_nothing(column)

    def take_state(self, column: Column, cell: str) -> None:
        text = cell.strip().casefold()
        if text in [*State]:
            self._incoming.state = State(text)
        elif text:
            self._incoming.problems.append(f"the state of {self._who} is {cell!r}, which is none of {', '.join(State)}")

    def take_obsolete(self, column: Column, cell: str) -> None:
        text = cell.strip().casefold()
        if text in _YES:
            self._incoming.state = State.RETIRED
        elif text in _NO:
            self._incoming.state = State.PUBLISHED
        elif text:
            self._incoming.problems.append(f"{column.title} of {self._who} is {cell!r}, which is neither yes nor no")

    def take_replacement(self, column: Column, cell: str) -> None:
        if cell.strip():
            self._incoming.replaced_by = self._found(column, cell.strip(), None)

    def pass_over(self, column: Column, cell: str) -> None:
        """Nothing: it is taken elsewhere."""

    def _relate(self, column: Column, name: str, cell: str) -> None:
        relation = self._collection.relations.get(name)
        if relation is None:
            if cell:
                self._means_nothing(column)
            return
        told = self._incoming.told
        # Several columns may mean one relation.
        if (name, "source") not in told:
            told.append((name, "source"))
        for text in parted(cell):
            target = text if relation.target is None else self._found(column, text, relation.target)
            if target is None:
                self._unclear.add(name)
            else:
                self._incoming.edges.append(Edge(self._key, name, target))

    def _found(self, column: Column, text: str, collection: str | None) -> str | None:
        known = self._table.known(text)
        if known is not None:
            return known
        rows = self._table.called(text, collection)
        if len(rows) > 1:
            what = f"{column.title} of {self._who} names {text[:100]!r}: several rows are called so; it was left out"
            self._incoming.warnings.append(what)
            return None
        # Where no row is called so, a record of the catalogue may be.
        return next(iter(rows), label_key(collection or self._collection.name, text))


_TAKERS: dict[str, Callable[[_Record, Column, str], None]] = {
    "collection": _Record.pass_over,
    "alias": _Record.pass_over,
    "id": _Record.take_id,
    "name": _Record.take_name,
    DEFINITION: _Record.take_definition,
    "aliases": _Record.take_aliases,
    "sources": _Record.take_sources,
    BROADER: _Record.take_broader,
    "state": _Record.take_state,
    OBSOLETE: _Record.take_obsolete,
    "replaced_by": _Record.take_replacement,
}
