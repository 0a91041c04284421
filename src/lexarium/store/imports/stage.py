"""Import stage: a temporary SQLite file that holds an import until all of it is read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import orjson

from lexarium.domain.record import Relation
from lexarium.domain.schema.collections import MAPPING_TYPES, Fields
from lexarium.domain.schema.relation_types import Side
from lexarium.store.imports.history_stage import HISTORY_TABLES, HistoryStage
from lexarium.store.imports.stage_database import StageDatabase

# Rows are only appended while files are read. `finish` creates the indexes.
_TABLES = """
CREATE TABLE staged (
    id TEXT, collection TEXT, source INTEGER, line INTEGER, fields BLOB, extras BLOB,
    name TEXT, class_id TEXT, owner TEXT, flagged INTEGER
);
CREATE TABLE edge (source TEXT, relation TEXT, target TEXT);
CREATE TABLE complete_set (id TEXT, set_number INTEGER);
CREATE TABLE removed (source TEXT, relation TEXT, target TEXT, PRIMARY KEY (source, relation, target)) WITHOUT ROWID;
CREATE TABLE foreign_id (name TEXT PRIMARY KEY, collection TEXT, label TEXT, id TEXT) WITHOUT ROWID;
CREATE TABLE unresolved (source TEXT, relation TEXT, target TEXT, file INTEGER, line INTEGER, by_hand INTEGER);
CREATE TABLE incomplete (id TEXT, relation TEXT, PRIMARY KEY (id, relation)) WITHOUT ROWID;
CREATE TABLE redirect (target TEXT PRIMARY KEY, survivor TEXT) WITHOUT ROWID;
CREATE TABLE excluded (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_INDEXES = (
    "CREATE INDEX staged_by_id ON staged (id)",
    "CREATE INDEX edge_by_source ON edge (source, relation, target)",
    "CREATE INDEX complete_set_by_id ON complete_set (id)",
)
_IS_INTERNAL = f"edge.relation NOT IN ({', '.join(repr(mapping_type.name) for mapping_type in MAPPING_TYPES)})"


class StagedRecord(NamedTuple):
    """Staged record, with the location where it was last read."""

    id: str
    collection: str
    # Number of the source file.
    source: int
    line: int
    fields: bytes
    # Aliases, sources, state and the fields of further classes as JSON; empty if there are none.
    extras: bytes
    # None unless `fields` has all fields in order, and there are no extras. The next three are filter columns.
    name: str | None
    class_id: str
    owner: str
    flagged: bool

    def parse_fields(self) -> Fields:
        """Return the fields."""
        fields: Fields = orjson.loads(self.fields)
        return fields

    def parse_extras(self) -> dict[str, Any]:
        """Return the extras."""
        extras: dict[str, Any] = orjson.loads(self.extras) if self.extras else {}
        return extras

    @property
    def collections(self) -> tuple[str, ...]:
        """Its collection and those of its further classes."""
        # Most records have none, and need not be parsed.
        if b'"further_fields"' not in self.extras:
            return (self.collection,)
        return self.collection, *self.parse_extras()["further_fields"]

    def replace_values(self, fields: Fields, extras: dict[str, Any]) -> "StagedRecord":
        """Return the record with other values."""
        return self._replace(fields=orjson.dumps(fields), extras=orjson.dumps(extras) if extras else b"", name=None)


# Last four columns of a staged record.
FilterColumns = tuple[str | None, str, str, bool]
NO_FILTER_COLUMNS: FilterColumns = (None, "", "", False)


class ForeignId(NamedTuple):
    """Name of a record in a file that is not one of our ids."""

    foreign_id: str
    # None if the record is only referred to.
    collection: str | None
    # Key of the record's own name, if the file identifies it by nothing else.
    name_key: str | None


class ImportStage:
    """Records and relations of one import, from any number of files."""

    def __init__(self) -> None:
        self._db = StageDatabase(_TABLES + HISTORY_TABLES)
        self.history = HistoryStage(self._db)
        # Deletes the stage.
        self.close = self._db.close
        self._sources: list[str] = []
        # Numbers of sets of complete relations: most records share one.
        self._complete_sets: dict[tuple[tuple[str, Side], ...], int] = {}
        # Number of calls of `add_record`.
        self.added_count = 0
        self._has_extras = False
        self.has_foreign_ids = False

    def add_source(self, name: str) -> int:
        """Add a source file; return its number."""
        self._sources.append(name)
        return len(self._sources) - 1

    def format_location(self, source: int, line: int) -> str:
        """Return a location for people."""
        return f"{self._sources[source]}, line {line}" if line else self._sources[source]

    def add_record(  # noqa: PLR0913, PLR0917 (a row has the columns it has)
        self,
        record_id: str,
        collection: str,
        source: int,
        line: int,
        fields: bytes,
        extras: bytes,
        filter_columns: FilterColumns = NO_FILTER_COLUMNS,
    ) -> None:
        """Add the fields and extras of a record as JSON."""
        self.added_count += 1
        if extras:
            self._has_extras = True
        name, class_id, owner, flagged = filter_columns
        # The driver passes bytearrays as they are; for bytes it checks for adapters, which takes as long again.
        values = bytearray(fields), bytearray(extras), name, class_id, owner, int(flagged)
        self._db.append("staged", (record_id, collection, source, line, *values))

    def add_foreign_id(self, foreign_id: str, collection: str, name_key: str | None = None) -> None:
        """Add a record under a foreign id, with its name key if that is all that identifies it."""
        self.has_foreign_ids = True
        on_conflict = "ON CONFLICT (name) DO UPDATE SET collection = excluded.collection, label = excluded.label"
        row = (foreign_id, collection, name_key)
        self._db.execute(f"INSERT INTO foreign_id (name, collection, label) VALUES (?, ?, ?) {on_conflict}", row)

    def add_reference(self, foreign_id: str) -> None:
        """Add a reference to a record by what may be a foreign id."""
        self.has_foreign_ids = True
        self._db.execute("INSERT OR IGNORE INTO foreign_id (name) VALUES (?)", (foreign_id,))

    def add_relations(
        self, record_id: str, relations: Iterable[Relation], complete: Sequence[tuple[str, Side]]
    ) -> None:
        """Add relations of a record, and the relation types and sides of which the file lists all."""
        for relation in relations:
            self._db.append("edge", relation)
        if complete:
            self._db.append(
                "complete_set", (record_id, self._complete_sets.setdefault(tuple(complete), len(self._complete_sets)))
            )

    def add_unresolved_relation(self, relation: Relation, source: int, line: int, *, by_hand: bool) -> None:
        """Add a relation with an end that may be a foreign id.

        If the target is unknown and the relation was written by hand, the source's relations of this type do not count
        as complete.
        """
        self._db.append("unresolved", (*relation, source, line, by_hand))

    def iter_foreign_ids(self) -> Iterator[list[ForeignId]]:
        """Yield batches of the foreign ids."""
        self._db.flush()
        for rows in self._db.iter_batches("SELECT name, collection, label FROM foreign_id ORDER BY name"):
            yield [ForeignId._make(row) for row in rows]

    def set_record_ids(self, record_ids: Mapping[str, str]) -> None:
        """Set the record ids of foreign ids."""
        rows = [(record_id, foreign_id) for foreign_id, record_id in record_ids.items()]
        self._db.executemany("UPDATE foreign_id SET id = ? WHERE name = ?", rows)

    def find_record_id(self, foreign_id: str) -> str | None:
        """Return the record id of a foreign id, or None if it is unknown."""
        row = self._db.execute("SELECT id FROM foreign_id WHERE name = ?", (foreign_id,)).fetchone()
        return None if row is None else row[0]

    def iter_shared_ids(self) -> Iterator[tuple[str, list[str]]]:
        """Yield record ids that several records resolved to, with their foreign ids in the order of reading."""
        query = """
            SELECT foreign_id.id, foreign_id.name FROM foreign_id JOIN staged ON staged.id = foreign_id.name
            WHERE foreign_id.collection IS NOT NULL AND foreign_id.id IN (
                SELECT id FROM foreign_id WHERE collection IS NOT NULL AND id IS NOT NULL
                GROUP BY id HAVING count(*) > 1
            ) GROUP BY foreign_id.id, foreign_id.name ORDER BY foreign_id.id, min(staged.rowid)
        """
        foreign_ids: dict[str, list[str]] = {}
        for record_id, foreign_id in self._db.execute(query):
            foreign_ids.setdefault(record_id, []).append(foreign_id)
        yield from foreign_ids.items()

    def exclude(self, foreign_ids: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Remove records by foreign id; references to them stay.

        Yields each foreign id with its record id and location.
        """
        # In one statement: there is no index yet.
        self._db.executemany("INSERT INTO excluded VALUES (?)", ((foreign_id,) for foreign_id in foreign_ids))
        is_excluded = "IN (SELECT name FROM excluded)"
        query = f"""
            SELECT foreign_id.name, foreign_id.id, staged.source, staged.line, min(staged.rowid)
            FROM staged JOIN foreign_id ON foreign_id.name = staged.id WHERE staged.id {is_excluded}
            GROUP BY foreign_id.name ORDER BY 5
        """
        for foreign_id, record_id, source, line, _ in self._db.execute(query):
            yield foreign_id, record_id, self.format_location(source, line)
        self._db.execute(f"DELETE FROM staged WHERE id {is_excluded}")
        self._db.execute(f"DELETE FROM complete_set WHERE id {is_excluded}")
        self._db.execute(f"DELETE FROM unresolved WHERE source {is_excluded}")
        self._db.execute(f"UPDATE foreign_id SET collection = NULL WHERE name {is_excluded}")

    def resolve_foreign_ids(self, mapping_type: str) -> Iterator[tuple[Relation, str, bool]]:
        """Replace foreign ids by record ids everywhere, and add a mapping from each record to its foreign id.

        Yields the relations that were left out, with their location, and whether they were written by hand.
        """
        # An id of ours that was taken for a foreign id.
        is_staged = "name IN (SELECT id FROM staged)"
        self._db.execute(f"UPDATE foreign_id SET id = name WHERE collection IS NULL AND id IS NULL AND {is_staged}")
        is_renamed = "n.name = staged.id AND n.id <> staged.id"
        self._db.execute(f"UPDATE staged SET id = n.id, name = NULL FROM foreign_id n WHERE {is_renamed}")
        self._db.execute(
            "UPDATE complete_set SET id = n.id FROM foreign_id n WHERE n.name = complete_set.id AND n.id IS NOT NULL"
        )
        ends = """
            FROM unresolved
            LEFT JOIN foreign_id s ON s.name = unresolved.source
            LEFT JOIN foreign_id t ON t.name = unresolved.target
        """
        is_unknown = "((s.name IS NOT NULL AND s.id IS NULL) OR (t.name IS NOT NULL AND t.id IS NULL))"
        columns = "unresolved.source, relation, target, file, line, by_hand"
        query = f"SELECT {columns} {ends} WHERE {is_unknown} ORDER BY unresolved.rowid"
        for source, type_name, target, file, line, by_hand in self._db.execute(query):
            yield Relation(source, type_name, target), self.format_location(file, line), bool(by_hand)
        incomplete = f"SELECT coalesce(s.id, unresolved.source), relation {ends} WHERE by_hand AND {is_unknown}"
        self._db.execute(f"INSERT OR IGNORE INTO incomplete {incomplete}")
        columns = "coalesce(s.id, unresolved.source), relation, coalesce(t.id, unresolved.target)"
        self._db.execute(f"INSERT INTO edge SELECT {columns} {ends} WHERE NOT {is_unknown}")
        is_mapped = "collection IS NOT NULL AND label IS NULL"
        self._db.execute(f"INSERT INTO edge SELECT id, ?, name FROM foreign_id WHERE {is_mapped}", (mapping_type,))

    def finish(self) -> None:
        """Write buffered rows and create the indexes. Nothing is added afterwards."""
        self._db.flush()
        for index in _INDEXES:
            self._db.execute(index)

    def iter_duplicates(self) -> Iterator[list[StagedRecord]]:
        """Yield all rows of each record that was added several times, in the order of reading."""
        query = "SELECT id FROM staged GROUP BY id HAVING count(*) > 1"
        for (record_id,) in self._db.execute(query).fetchall():
            yield list(self._select_records("id = ? ORDER BY rowid", [record_id]))

    def replace_record(self, record: StagedRecord) -> None:
        """Replace all rows of a record by one."""
        self._db.execute("DELETE FROM staged WHERE id = ?", (record.id,))
        self._db.execute(f"INSERT INTO staged VALUES ({', '.join('?' * len(record))})", record)

    def rename_relation(self, source_id: str, name: str, new_name: str) -> None:
        """Change the relation type of relations of a record."""
        if name != new_name:
            query = "UPDATE edge SET relation = ? WHERE source = ? AND relation = ?"
            self._db.execute(query, (new_name, source_id, name))

    def iter_complete_relations(self) -> Iterator[list[tuple[str, str, Side]]]:
        """Yield batches of (record id, relation type, side) of which the import lists all relations, by id."""
        complete_sets = list(self._complete_sets)
        for rows in self._db.iter_batches("SELECT DISTINCT id, set_number FROM complete_set ORDER BY id"):
            query = "SELECT id, relation FROM incomplete WHERE id BETWEEN ? AND ?"
            incomplete = set(self._db.execute(query, (rows[0][0], rows[-1][0])))
            yield [
                (record_id, type_name, side)
                for record_id, set_number in rows
                for type_name, side in complete_sets[set_number]
                if (record_id, type_name) not in incomplete
            ]

    def find_staged_relations(self, relations: Iterable[Relation]) -> set[Relation]:
        """Return the relations that the import contains."""
        query = "SELECT 1 FROM edge WHERE source = ? AND relation = ? AND target = ?"
        return {relation for relation in relations if self._db.execute(query, relation).fetchone()}

    def iter_targets(self) -> Iterator[list[str]]:
        """Yield batches of the ids of internal targets."""
        return self._db.iter_id_batches(f"SELECT DISTINCT target FROM edge WHERE {_IS_INTERNAL}")

    def redirect_targets(self, survivors: Mapping[str, str], kept_relations: Iterable[Relation]) -> None:
        """Point relations to survivors, except for `kept_relations`; remove those that would point to their source."""
        self._db.executemany("INSERT INTO redirect VALUES (?, ?)", survivors.items())
        self._db.execute("CREATE TABLE kept (source TEXT, relation TEXT, target TEXT)")
        self._db.executemany("INSERT INTO kept VALUES (?, ?, ?)", kept_relations)
        from_redirect = f"""
            FROM redirect t WHERE t.target = edge.target AND {_IS_INTERNAL}
            AND (edge.source, edge.relation, edge.target) NOT IN (SELECT source, relation, target FROM kept)
        """
        self._db.execute(f"DELETE FROM edge WHERE EXISTS (SELECT 1 {from_redirect} AND t.survivor = edge.source)")
        self._db.execute(f"UPDATE edge SET target = t.survivor {from_redirect}")

    def iter_replaced(self) -> Iterator[StagedRecord]:
        """Yield the records that are replaced by another."""
        if not self._has_extras:
            return iter(())
        return self._select_records("json_extract(nullif(CAST(extras AS TEXT), ''), '$.replaced_by') IS NOT NULL", [])

    def find_collections(self, record_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the ids of staged records, with their collections."""
        for record_id in record_ids:
            yield from self._db.execute("SELECT id, collection FROM staged WHERE id = ? LIMIT 1", (record_id,))

    def iter_staged_ids(self, record_ids: Iterable[str]) -> Iterator[str]:
        """Yield the ids of staged records."""
        return (record_id for record_id, _ in self.find_collections(record_ids))

    def contains(self, record_id: str) -> bool:
        """Return whether the import has a record, or versions of it."""
        return any(chain(self.find_collections([record_id]), self.history.find_collections([record_id])))

    def iter_ids(self) -> Iterator[list[str]]:
        """Yield batches of the ids of staged records, sorted."""
        return self._db.iter_id_batches("SELECT DISTINCT id FROM staged ORDER BY id")

    def add_removed_relations(self, relations: Iterable[Relation]) -> None:
        """Mark relations for removal."""
        self._db.executemany("INSERT OR IGNORE INTO removed VALUES (?, ?, ?)", relations)

    def count_touched(self) -> int:
        """Return the number of records that the import contains or changes a relation of."""
        # Sorted as the indexes are, which avoids a sort.
        total: int = self._db.execute(f"SELECT count(*) FROM ({_SELECT_TOUCHED} ORDER BY 1)").fetchone()[0]
        return total

    def iter_touched_ids(self) -> Iterator[list[str]]:
        """Yield batches of the ids of these records, in order."""
        return self._db.iter_id_batches(f"{_SELECT_TOUCHED} ORDER BY 1")

    def find_records(self, first: str, last: str) -> dict[str, StagedRecord]:
        """Return the staged records in a range of ids, both included."""
        return {record.id: record for record in self._select_records("id BETWEEN ? AND ?", [first, last])}

    def iter_relations(self, first: str, last: str) -> Iterator[Relation]:
        """Return the relations whose source is in a range of ids, both included."""
        return self._select_relations("edge", first, last)

    def iter_removed_relations(self, first: str, last: str) -> Iterator[Relation]:
        """Return the removed relations whose source is in a range of ids, both included."""
        return self._select_relations("removed", first, last)

    def list_relation_types(self) -> set[str]:
        """Return the names of the relation types in the import."""
        return {row[0] for row in self._db.execute("SELECT DISTINCT relation FROM edge")}

    def _select_relations(self, table: str, first: str, last: str) -> Iterator[Relation]:
        query = f"SELECT source, relation, target FROM {table} WHERE source BETWEEN ? AND ?"
        return (Relation(*row) for row in self._db.execute(query, [first, last]))

    def _select_records(self, condition: str, values: list[str]) -> Iterator[StagedRecord]:
        query = f"SELECT {', '.join(StagedRecord._fields)} FROM staged WHERE {condition}"
        return map(StagedRecord._make, self._db.execute(query, values))


_SELECT_TOUCHED = "SELECT id FROM staged UNION SELECT source FROM edge UNION SELECT source FROM removed"
