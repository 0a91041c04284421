"""Where an import waits until all of it has been read: a private temporary file, in constant memory."""

import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from lexarium.domain.record import Relation
from lexarium.domain.schema.fields import Fields
from lexarium.domain.schema.relation_types import RELATION_TYPES, Side
from lexarium.store.imports.history_stage import HistoryStage

# Rows are only added while files are read, in the order of reading; what finds them is made once, by `arrange`.
_TABLES = """
CREATE TABLE staged (
    id TEXT, collection TEXT, source INTEGER, line INTEGER, fields BLOB, rest BLOB,
    name TEXT, class_id TEXT, owner TEXT, flagged INTEGER
);
CREATE TABLE edge (source TEXT, relation TEXT, target TEXT);
CREATE TABLE told (id TEXT, what INTEGER);
CREATE TABLE dropped (source TEXT, relation TEXT, target TEXT, PRIMARY KEY (source, relation, target)) WITHOUT ROWID;
CREATE TABLE named (name TEXT PRIMARY KEY, collection TEXT, label TEXT, id TEXT) WITHOUT ROWID;
CREATE TABLE loose (source TEXT, relation TEXT, target TEXT, file INTEGER, line INTEGER, by_hand INTEGER);
CREATE TABLE unclear (id TEXT, relation TEXT, PRIMARY KEY (id, relation)) WITHOUT ROWID;
CREATE TABLE turned (target TEXT PRIMARY KEY, instead TEXT) WITHOUT ROWID;
CREATE TABLE left_out (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_INDEXES = (
    "CREATE INDEX staged_by_id ON staged (id)",
    "CREATE INDEX edge_by_source ON edge (source, relation, target)",
    "CREATE INDEX told_by_id ON told (id)",
)
_BATCH_SIZE = 1_000
"""How many rows are added at a time."""


_INTERNAL_TYPES = (
    name for name, relation_type in RELATION_TYPES.items() if relation_type.target_collection is not None
)
_IS_INTERNAL = f"edge.relation IN ({', '.join(map(repr, _INTERNAL_TYPES))})"
"""Whether an edge ends at a record, and not outside."""


class StagedRecord(NamedTuple):
    """A record waiting to be imported: what its files gave, and where it was (last) read."""

    id: str
    collection: str
    source: int
    """Which of the sources, as the stage numbers them."""
    line: int
    fields: bytes
    """As JSON."""
    rest: bytes
    """What is told besides fields, as JSON; empty: nothing."""
    name: str | None
    """Where it is all of its fields, in their order, and nothing besides: its name, and what it is filed under."""
    class_id: str
    owner: str
    flagged: bool

    def parse_fields(self) -> Fields:
        """Its fields."""
        fields: Fields = orjson.loads(self.fields)
        return fields

    def parse_extras(self) -> dict[str, Any]:
        """What is told besides."""
        extras: dict[str, Any] = orjson.loads(self.rest) if self.rest else {}
        return extras


FilterColumns = tuple[str | None, str, str, bool]
"""The last four of what is staged of a record."""
NO_FILTER_COLUMNS: FilterColumns = (None, "", "", False)


class ForeignId(NamedTuple):
    """What files call a record."""

    foreign_id: str
    collection: str | None
    """Of which it is; None where it is only named, and not told of."""
    name_key: str | None
    """The key of its own name, where files know it by nothing else."""


class ImportStage:
    """Holds the records and relations of one import, whichever files they came from."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lexarium-import-")
        self._db = sqlite3.connect(Path(self._folder.name) / "stage.db", isolation_level=None)
        # Nothing here outlives the process, so nothing needs to reach the disk.
        pragmas = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000;"
        self._db.executescript(pragmas + _TABLES)
        self._buffers: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._sources: list[str] = []
        self._complete_sets: dict[tuple[tuple[str, Side], ...], int] = {}
        """What records tell of completely, numbered: most tell of the same."""
        self.history = HistoryStage(self._db)
        """The history of records, where files tell it."""
        # After all tables are made: a script ends a transaction, and without one every row would be written by itself.
        self._db.execute("BEGIN")
        self.added_count = 0
        """How often a record was added."""
        self._has_extras = False
        """Whether of any record something is told besides fields."""
        self.has_foreign_ids = False
        """Whether some record is told of, or named, by what is no id of ours."""

    def close(self) -> None:
        """Forget all of it."""
        self._db.close()
        self._folder.cleanup()

    def add_source(self, name: str) -> int:
        """The number of a source."""
        self._sources.append(name)
        return len(self._sources) - 1

    def format_location(self, source: int, line: int) -> str:
        """Where something was read, for people."""
        return f"{self._sources[source]}, line {line}" if line else self._sources[source]

    def add_record(  # noqa: PLR0913, PLR0917 (a row has what it has)
        self,
        record_id: str,
        collection: str,
        source: int,
        line: int,
        fields: bytes,
        extras: bytes,
        filter_columns: FilterColumns = NO_FILTER_COLUMNS,
    ) -> None:
        """Add what a file tells of a record: its fields, and what there is besides, as JSON."""
        self.added_count += 1
        if extras:
            self._has_extras = True
        name, class_id, owner, flagged = filter_columns
        # As the driver takes them without looking for what could make them something else: that takes as long again.
        values = bytearray(fields), bytearray(extras), name, class_id, owner, int(flagged)
        self._buffer("staged", (record_id, collection, source, line, *values))

    def add_foreign_id(self, foreign_id: str, collection: str, name_key: str | None = None) -> None:
        """Note that a record is added under what is no id of ours; with the key of its own name, if it is that."""
        self.has_foreign_ids = True
        on_conflict = "ON CONFLICT (name) DO UPDATE SET collection = excluded.collection, label = excluded.label"
        row = (foreign_id, collection, name_key)
        self._db.execute(f"INSERT INTO named (name, collection, label) VALUES (?, ?, ?) {on_conflict}", row)

    def add_reference(self, foreign_id: str) -> None:
        """Note that something names a record by what may be no id of ours."""
        self.has_foreign_ids = True
        self._db.execute("INSERT OR IGNORE INTO named (name) VALUES (?)", (foreign_id,))

    def add_relations(
        self, record_id: str, relations: Iterable[Relation], complete: Sequence[tuple[str, Side]]
    ) -> None:
        """Add the edges a record tells of, and which relations, at which end, it tells of completely."""
        for relation in relations:
            self._buffer("edge", (relation.source, relation.relation, relation.target))
        if complete:
            self._buffer("told", (record_id, self._complete_sets.setdefault(tuple(complete), len(self._complete_sets))))

    def add_unresolved_relation(self, relation: Relation, source: int, line: int, *, by_hand: bool) -> None:
        """Add an edge of which an end was told by what may be no id of ours.

        Where it turns out that nobody knows the target, and it was written by hand, its source does not tell of that
        relation completely.
        """
        self._buffer("loose", (relation.source, relation.relation, relation.target, source, line, by_hand))

    def iter_foreign_ids(self, size: int) -> Iterator[list[ForeignId]]:
        """What records are called by that is no id of ours, some at a time."""
        self._flush()
        cursor = self._db.execute("SELECT name, collection, label FROM named ORDER BY name")
        while rows := cursor.fetchmany(size):
            yield [ForeignId._make(row) for row in rows]

    def set_record_ids(self, record_ids: Mapping[str, str]) -> None:
        """Set the ids of what is named so."""
        rows = [(record_id, foreign_id) for foreign_id, record_id in record_ids.items()]
        self._db.executemany("UPDATE named SET id = ? WHERE name = ?", rows)

    def find_record_id(self, foreign_id: str) -> str | None:
        """The id of what is named so; None where nobody knows it."""
        row = self._db.execute("SELECT id FROM named WHERE name = ?", (foreign_id,)).fetchone()
        return None if row is None else row[0]

    def iter_shared_ids(self) -> Iterator[tuple[str, list[str]]]:
        """Ids that several names of told records have come to, with those names in the order of reading."""
        query = """
            SELECT named.id, named.name FROM named JOIN staged ON staged.id = named.name
            WHERE named.collection IS NOT NULL AND named.id IN (
                SELECT id FROM named WHERE collection IS NOT NULL AND id IS NOT NULL GROUP BY id HAVING count(*) > 1
            ) GROUP BY named.id, named.name ORDER BY named.id, min(staged.rowid)
        """
        foreign_ids: dict[str, list[str]] = {}
        for record_id, foreign_id in self._db.execute(query):
            foreign_ids.setdefault(record_id, []).append(foreign_id)
        yield from foreign_ids.items()

    def exclude(self, foreign_ids: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Forget what was told of what is named so, though it may still be named.

        Yields each name with the id it has come to, and where it was read.
        """
        # All at once: what is staged has no index yet.
        self._db.executemany("INSERT INTO left_out VALUES (?)", ((foreign_id,) for foreign_id in foreign_ids))
        is_excluded = "IN (SELECT name FROM left_out)"
        query = f"""
            SELECT named.name, named.id, staged.source, staged.line, min(staged.rowid)
            FROM staged JOIN named ON named.name = staged.id WHERE staged.id {is_excluded}
            GROUP BY named.name ORDER BY 5
        """
        for foreign_id, record_id, source, line, _ in self._db.execute(query):
            yield foreign_id, record_id, self.format_location(source, line)
        self._db.execute(f"DELETE FROM staged WHERE id {is_excluded}")
        self._db.execute(f"DELETE FROM told WHERE id {is_excluded}")
        self._db.execute(f"DELETE FROM loose WHERE source {is_excluded}")
        self._db.execute(f"UPDATE named SET collection = NULL WHERE name {is_excluded}")

    def resolve_foreign_ids(self, mapping_type: str) -> Iterator[tuple[Relation, str, bool]]:
        """Put ids in place of names, everywhere, and tell of each record's name by a mapping.

        Yields the edges that had to be left out, each with where it was read, and whether it was written by hand.
        """
        # An id of ours that looks like a name.
        is_staged = "name IN (SELECT id FROM staged)"
        self._db.execute(f"UPDATE named SET id = name WHERE collection IS NULL AND id IS NULL AND {is_staged}")
        is_renamed = "n.name = staged.id AND n.id <> staged.id"
        self._db.execute(f"UPDATE staged SET id = n.id, name = NULL FROM named n WHERE {is_renamed}")
        self._db.execute("UPDATE told SET id = n.id FROM named n WHERE n.name = told.id AND n.id IS NOT NULL")
        ends = """
            FROM loose
            LEFT JOIN named s ON s.name = loose.source
            LEFT JOIN named t ON t.name = loose.target
        """
        is_unknown = "((s.name IS NOT NULL AND s.id IS NULL) OR (t.name IS NOT NULL AND t.id IS NULL))"
        query = (
            f"SELECT loose.source, relation, target, file, line, by_hand {ends} WHERE {is_unknown} ORDER BY loose.rowid"
        )
        for source, type_name, target, file, line, by_hand in self._db.execute(query):
            yield Relation(source, type_name, target), self.format_location(file, line), bool(by_hand)
        incomplete = f"SELECT coalesce(s.id, loose.source), relation {ends} WHERE by_hand AND {is_unknown}"
        self._db.execute(f"INSERT OR IGNORE INTO unclear {incomplete}")
        columns = "coalesce(s.id, loose.source), relation, coalesce(t.id, loose.target)"
        self._db.execute(f"INSERT INTO edge SELECT {columns} {ends} WHERE NOT {is_unknown}")
        is_mapped = "collection IS NOT NULL AND label IS NULL"
        self._db.execute(f"INSERT INTO edge SELECT id, ?, name FROM named WHERE {is_mapped}", (mapping_type,))

    def finish(self) -> None:
        """Make what was added ready to be asked for. Nothing is added after it."""
        self._flush()
        for index in _INDEXES:
            self._db.execute(index)

    def iter_duplicates(self) -> Iterator[list[StagedRecord]]:
        """Each record that was added several times, with all that was told of it, in the order of reading."""
        query = "SELECT id FROM staged GROUP BY id HAVING count(*) > 1"
        for (record_id,) in self._db.execute(query).fetchall():
            yield list(self._select_records("id = ? ORDER BY rowid", [record_id]))

    def replace_record(self, record: StagedRecord) -> None:
        """Put this in place of all that was told of its record."""
        self._db.execute("DELETE FROM staged WHERE id = ?", (record.id,))
        self._db.execute(f"INSERT INTO staged VALUES ({', '.join('?' * len(record))})", record)

    def iter_complete_relations(self) -> Iterator[list[tuple[str, str, Side]]]:
        """What records tell of completely, as (id, relation, side), some at a time, by id."""
        complete_sets = list(self._complete_sets)
        cursor = self._db.execute("SELECT DISTINCT id, what FROM told ORDER BY id")
        while rows := cursor.fetchmany(_BATCH_SIZE):
            incomplete = self._find_incomplete(rows[0][0], rows[-1][0])
            yield [
                (record_id, type_name, side)
                for record_id, set_number in rows
                for type_name, side in complete_sets[set_number]
                if (record_id, type_name) not in incomplete
            ]

    def find_staged_relations(self, relations: Iterable[Relation]) -> set[Relation]:
        """Which of these edges some record of the import tells of."""
        query = "SELECT 1 FROM edge WHERE source = ? AND relation = ? AND target = ?"
        return {
            relation
            for relation in relations
            if self._db.execute(query, (relation.source, relation.relation, relation.target)).fetchone()
        }

    def iter_targets(self, size: int) -> Iterator[list[str]]:
        """The records at which edges that are told of end, some at a time."""
        cursor = self._db.execute(f"SELECT DISTINCT target FROM edge WHERE {_IS_INTERNAL}")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def redirect_targets(self, survivors: Mapping[str, str], kept_relations: Iterable[Relation]) -> None:
        """Have edges end at others instead, but for these; one that would end where it begins goes."""
        self._db.executemany("INSERT INTO turned VALUES (?, ?)", survivors.items())
        self._db.execute("CREATE TABLE kept (source TEXT, relation TEXT, target TEXT)")
        rows = [(relation.source, relation.relation, relation.target) for relation in kept_relations]
        self._db.executemany("INSERT INTO kept VALUES (?, ?, ?)", rows)
        from_redirect = f"""
            FROM turned t WHERE t.target = edge.target AND {_IS_INTERNAL}
            AND (edge.source, edge.relation, edge.target) NOT IN (SELECT source, relation, target FROM kept)
        """
        self._db.execute(f"DELETE FROM edge WHERE EXISTS (SELECT 1 {from_redirect} AND t.instead = edge.source)")
        self._db.execute(f"UPDATE edge SET target = t.instead {from_redirect}")

    def iter_replaced(self) -> Iterator[StagedRecord]:
        """The records that are told to have another in their place."""
        if not self._has_extras:
            return iter(())
        return self._select_records("json_extract(nullif(CAST(rest AS TEXT), ''), '$.replaced_by') IS NOT NULL", [])

    def find_collections(self, record_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Those of these records that the import holds, with their collections."""
        for record_id in record_ids:
            row = self._db.execute("SELECT id, collection FROM staged WHERE id = ?", (record_id,)).fetchone()
            if row is not None:
                yield row

    def iter_staged_ids(self, record_ids: Iterable[str]) -> Iterator[str]:
        """Which of these records the import holds."""
        for record_id in record_ids:
            if self._db.execute("SELECT 1 FROM staged WHERE id = ?", (record_id,)).fetchone():
                yield record_id

    def add_removed_relations(self, relations: Iterable[Relation]) -> None:
        """Note that these edges shall go."""
        self._db.executemany(
            "INSERT OR IGNORE INTO dropped VALUES (?, ?, ?)",
            [(relation.source, relation.relation, relation.target) for relation in relations],
        )

    def count_touched(self) -> int:
        """How many records the import touches: those it holds, and those it changes a relation of."""
        # In order, as the indexes have them: else all of them would be sorted.
        total: int = self._db.execute(f"SELECT count(*) FROM ({_SELECT_TOUCHED} ORDER BY 1)").fetchone()[0]
        return total

    def iter_touched_ids(self, size: int) -> Iterator[list[str]]:
        """The ids of the records the import touches, in order, some at a time."""
        cursor = self._db.execute(_SELECT_TOUCHED + " ORDER BY 1")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def find_records(self, first: str, last: str) -> dict[str, StagedRecord]:
        """The records from one id to another, both included."""
        return {record.id: record for record in self._select_records("id BETWEEN ? AND ?", [first, last])}

    def iter_relations(self, first: str, last: str) -> Iterator[Relation]:
        """The edges told of whose source lies from one id to another, both included."""
        return self._select_relations("edge", first, last)

    def iter_removed_relations(self, first: str, last: str) -> Iterator[Relation]:
        """The edges that shall go whose source lies from one id to another, both included."""
        return self._select_relations("dropped", first, last)

    def list_relation_types(self) -> set[str]:
        """The names of the relations that the import tells of."""
        return {row[0] for row in self._db.execute("SELECT DISTINCT relation FROM edge")}

    def _find_incomplete(self, first: str, last: str) -> set[tuple[str, str]]:
        """What records from one id to another seem to tell of completely, and do not."""
        return set(self._db.execute("SELECT id, relation FROM unclear WHERE id BETWEEN ? AND ?", (first, last)))

    def _buffer(self, table: str, row: tuple[Any, ...]) -> None:
        rows = self._buffers[table]
        rows.append(row)
        if len(rows) >= _BATCH_SIZE:
            self._write(table, rows)

    def _flush(self) -> None:
        for table, rows in self._buffers.items():
            self._write(table, rows)

    def _write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            rows.clear()

    def _select_relations(self, table: str, first: str, last: str) -> Iterator[Relation]:
        query = f"SELECT source, relation, target FROM {table} WHERE source BETWEEN ? AND ?"
        return (Relation(*row) for row in self._db.execute(query, [first, last]))

    def _select_records(self, condition: str, values: list[str]) -> Iterator[StagedRecord]:
        query = f"SELECT {', '.join(StagedRecord._fields)} FROM staged WHERE {condition}"
        return map(StagedRecord._make, self._db.execute(query, values))


_SELECT_TOUCHED = "SELECT id FROM staged UNION SELECT source FROM edge UNION SELECT source FROM dropped"
