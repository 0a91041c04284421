"""Where an import waits until all of it has been read: a private temporary file, in constant memory."""

import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from lexarium.domain.records import Fields
from lexarium.domain.relations import RELATIONS, Edge, Side
from lexarium.store.retold import RetoldVersions

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
_ARRANGED = (
    "CREATE INDEX staged_by_id ON staged (id)",
    "CREATE INDEX edge_by_source ON edge (source, relation, target)",
    "CREATE INDEX told_by_id ON told (id)",
)
_BUFFERED = 1_000
"""How many rows are added at a time."""


_INSIDE = f"edge.relation IN ({', '.join(repr(name) for name, each in RELATIONS.items() if each.target is not None)})"
"""Whether an edge ends at a record, and not outside."""


class Staged(NamedTuple):
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

    def told_fields(self) -> Fields:
        """Its fields."""
        fields: Fields = orjson.loads(self.fields)
        return fields

    def told_rest(self) -> dict[str, Any]:
        """What is told besides."""
        rest: dict[str, Any] = orjson.loads(self.rest) if self.rest else {}
        return rest


Filed = tuple[str | None, str, str, bool]
"""The last four of what is staged of a record."""
UNFILED: Filed = (None, "", "", False)


class Named(NamedTuple):
    """What files call a record."""

    name: str
    collection: str | None
    """Of which it is; None where it is only named, and not told of."""
    label: str | None
    """The key of its own name, where files know it by nothing else."""


class Stage:
    """Holds the records and relations of one import, whichever files they came from."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lexarium-import-")
        self._db = sqlite3.connect(Path(self._folder.name) / "stage.db", isolation_level=None)
        # Nothing here outlives the process, so nothing needs to reach the disk.
        pragmas = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000;"
        self._db.executescript(pragmas + _TABLES)
        self._waiting: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._sources: list[str] = []
        self._told: dict[tuple[tuple[str, Side], ...], int] = {}
        """What records tell of completely, numbered: most tell of the same."""
        self.versions = RetoldVersions(self._db)
        """The history of records, where files tell it."""
        # After all tables are made: a script ends a transaction, and without one every row would be written by itself.
        self._db.execute("BEGIN")
        self.added = 0
        """How often a record was added."""
        self._some_rest = False
        """Whether of any record something is told besides fields."""
        self.has_names = False
        """Whether some record is told of, or named, by what is no id of ours."""

    def close(self) -> None:
        """Forget all of it."""
        self._db.close()
        self._folder.cleanup()

    def source(self, name: str) -> int:
        """The number of a source."""
        self._sources.append(name)
        return len(self._sources) - 1

    def place(self, source: int, line: int) -> str:
        """Where something was read, for people."""
        return f"{self._sources[source]}, line {line}" if line else self._sources[source]

    def add(  # noqa: PLR0913, PLR0917 (a row has what it has)
        self,
        identifier: str,
        collection: str,
        source: int,
        line: int,
        fields: bytes,
        rest: bytes,
        filed: Filed = UNFILED,
    ) -> None:
        """Add what a file tells of a record: its fields, and what there is besides, as JSON."""
        self.added += 1
        if rest:
            self._some_rest = True
        name, class_id, owner, flagged = filed
        # As the driver takes them without looking for what could make them something else: that takes as long again.
        told = bytearray(fields), bytearray(rest), name, class_id, owner, int(flagged)
        self._put("staged", (identifier, collection, source, line, *told))

    def add_named(self, name: str, collection: str, label: str | None = None) -> None:
        """Note that a record is added under what is no id of ours; with the key of its own name, if it is that."""
        self.has_names = True
        update = "ON CONFLICT (name) DO UPDATE SET collection = excluded.collection, label = excluded.label"
        row = (name, collection, label)
        self._db.execute(f"INSERT INTO named (name, collection, label) VALUES (?, ?, ?) {update}", row)

    def mention(self, name: str) -> None:
        """Note that something names a record by what may be no id of ours."""
        self.has_names = True
        self._db.execute("INSERT OR IGNORE INTO named (name) VALUES (?)", (name,))

    def tell(self, identifier: str, edges: Iterable[Edge], told: Sequence[tuple[str, Side]]) -> None:
        """Add the edges a record tells of, and which relations, at which end, it tells of completely."""
        for edge in edges:
            self._put("edge", (edge.source, edge.relation, edge.target))
        if told:
            self._put("told", (identifier, self._told.setdefault(tuple(told), len(self._told))))

    def tell_loosely(self, edge: Edge, source: int, line: int, *, by_hand: bool) -> None:
        """Add an edge of which an end was told by what may be no id of ours.

        Where it turns out that nobody knows the target, and it was written by hand, its source does not tell of that
        relation completely.
        """
        self._put("loose", (edge.source, edge.relation, edge.target, source, line, by_hand))

    def names(self, size: int) -> Iterator[list[Named]]:
        """What records are called by that is no id of ours, some at a time."""
        self._flush()
        cursor = self._db.execute("SELECT name, collection, label FROM named ORDER BY name")
        while rows := cursor.fetchmany(size):
            yield [Named._make(row) for row in rows]

    def identify(self, found: Mapping[str, str]) -> None:
        """Set the ids of what is named so."""
        rows = [(identifier, name) for name, identifier in found.items()]
        self._db.executemany("UPDATE named SET id = ? WHERE name = ?", rows)

    def identified(self, name: str) -> str | None:
        """The id of what is named so; None where nobody knows it."""
        row = self._db.execute("SELECT id FROM named WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def shared(self) -> Iterator[tuple[str, list[str]]]:
        """Ids that several names of told records have come to, with those names in the order of reading."""
        query = """
            SELECT named.id, named.name FROM named JOIN staged ON staged.id = named.name
            WHERE named.collection IS NOT NULL AND named.id IN (
                SELECT id FROM named WHERE collection IS NOT NULL AND id IS NOT NULL GROUP BY id HAVING count(*) > 1
            ) GROUP BY named.id, named.name ORDER BY named.id, min(staged.rowid)
        """
        found: dict[str, list[str]] = {}
        for identifier, name in self._db.execute(query):
            found.setdefault(identifier, []).append(name)
        yield from found.items()

    def leave_out(self, names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Forget what was told of what is named so, though it may still be named.

        Yields each name with the id it has come to, and where it was read.
        """
        # All at once: what is staged has no index yet.
        self._db.executemany("INSERT INTO left_out VALUES (?)", ((name,) for name in names))
        those = "IN (SELECT name FROM left_out)"
        query = f"""
            SELECT named.name, named.id, staged.source, staged.line, min(staged.rowid)
            FROM staged JOIN named ON named.name = staged.id WHERE staged.id {those} GROUP BY named.name ORDER BY 5
        """
        for name, identifier, source, line, _ in self._db.execute(query):
            yield name, identifier, self.place(source, line)
        self._db.execute(f"DELETE FROM staged WHERE id {those}")
        self._db.execute(f"DELETE FROM told WHERE id {those}")
        self._db.execute(f"DELETE FROM loose WHERE source {those}")
        self._db.execute(f"UPDATE named SET collection = NULL WHERE name {those}")

    def settle_names(self, mapping: str) -> Iterator[tuple[Edge, str, bool]]:
        """Put ids in place of names, everywhere, and tell of each record's name by a mapping.

        Yields the edges that had to be left out, each with where it was read, and whether it was written by hand.
        """
        # An id of ours that looks like a name.
        here = "name IN (SELECT id FROM staged)"
        self._db.execute(f"UPDATE named SET id = name WHERE collection IS NULL AND id IS NULL AND {here}")
        other = "n.name = staged.id AND n.id <> staged.id"
        self._db.execute(f"UPDATE staged SET id = n.id, name = NULL FROM named n WHERE {other}")
        self._db.execute("UPDATE told SET id = n.id FROM named n WHERE n.name = told.id AND n.id IS NOT NULL")
        ends = """
            FROM loose
            LEFT JOIN named s ON s.name = loose.source
            LEFT JOIN named t ON t.name = loose.target
        """
        unknown = "((s.name IS NOT NULL AND s.id IS NULL) OR (t.name IS NOT NULL AND t.id IS NULL))"
        query = (
            f"SELECT loose.source, relation, target, file, line, by_hand {ends} WHERE {unknown} ORDER BY loose.rowid"
        )
        for source, relation, target, file, line, by_hand in self._db.execute(query):
            yield Edge(source, relation, target), self.place(file, line), bool(by_hand)
        unclear = f"SELECT coalesce(s.id, loose.source), relation {ends} WHERE by_hand AND {unknown}"
        self._db.execute(f"INSERT OR IGNORE INTO unclear {unclear}")
        whole = "coalesce(s.id, loose.source), relation, coalesce(t.id, loose.target)"
        self._db.execute(f"INSERT INTO edge SELECT {whole} {ends} WHERE NOT {unknown}")
        known = "collection IS NOT NULL AND label IS NULL"
        self._db.execute(f"INSERT INTO edge SELECT id, ?, name FROM named WHERE {known}", (mapping,))

    def arrange(self) -> None:
        """Make what was added ready to be asked for. Nothing is added after it."""
        self._flush()
        for index in _ARRANGED:
            self._db.execute(index)

    def repeated(self) -> Iterator[list[Staged]]:
        """Each record that was added several times, with all that was told of it, in the order of reading."""
        query = "SELECT id FROM staged GROUP BY id HAVING count(*) > 1"
        for (identifier,) in self._db.execute(query).fetchall():
            yield list(self._staged("id = ? ORDER BY rowid", [identifier]))

    def replace(self, item: Staged) -> None:
        """Put this in place of all that was told of its record."""
        self._db.execute("DELETE FROM staged WHERE id = ?", (item.id,))
        self._db.execute(f"INSERT INTO staged VALUES ({', '.join('?' * len(item))})", item)

    def told(self) -> Iterator[list[tuple[str, str, Side]]]:
        """What records tell of completely, as (id, relation, side), some at a time, by id."""
        known = list(self._told)
        cursor = self._db.execute("SELECT DISTINCT id, what FROM told ORDER BY id")
        while rows := cursor.fetchmany(_BUFFERED):
            unclear = self._unclear(rows[0][0], rows[-1][0])
            yield [
                (identifier, relation, side)
                for identifier, what in rows
                for relation, side in known[what]
                if (identifier, relation) not in unclear
            ]

    def asserted(self, edges: Iterable[Edge]) -> set[Edge]:
        """Which of these edges some record of the import tells of."""
        known = "SELECT 1 FROM edge WHERE source = ? AND relation = ? AND target = ?"
        return {edge for edge in edges if self._db.execute(known, (edge.source, edge.relation, edge.target)).fetchone()}

    def targets(self, size: int) -> Iterator[list[str]]:
        """The records at which edges that are told of end, some at a time."""
        cursor = self._db.execute(f"SELECT DISTINCT target FROM edge WHERE {_INSIDE}")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def turn(self, instead: Mapping[str, str], kept: Iterable[Edge]) -> None:
        """Have edges end at others instead, but for these; one that would end where it begins goes."""
        self._db.executemany("INSERT INTO turned VALUES (?, ?)", instead.items())
        self._db.execute("CREATE TABLE kept (source TEXT, relation TEXT, target TEXT)")
        rows = [(edge.source, edge.relation, edge.target) for edge in kept]
        self._db.executemany("INSERT INTO kept VALUES (?, ?, ?)", rows)
        moved = f"""
            FROM turned t WHERE t.target = edge.target AND {_INSIDE}
            AND (edge.source, edge.relation, edge.target) NOT IN (SELECT source, relation, target FROM kept)
        """
        self._db.execute(f"DELETE FROM edge WHERE EXISTS (SELECT 1 {moved} AND t.instead = edge.source)")
        self._db.execute(f"UPDATE edge SET target = t.instead {moved}")

    def gone(self) -> Iterator[Staged]:
        """The records that are told to have another in their place."""
        if not self._some_rest:
            return iter(())
        return self._staged("json_extract(nullif(CAST(rest AS TEXT), ''), '$.replaced_by') IS NOT NULL", [])

    def collections(self, identifiers: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Those of these records that the import holds, with their collections."""
        for identifier in identifiers:
            row = self._db.execute("SELECT id, collection FROM staged WHERE id = ?", (identifier,)).fetchone()
            if row is not None:
                yield row

    def holds(self, identifiers: Iterable[str]) -> Iterator[str]:
        """Which of these records the import holds."""
        for identifier in identifiers:
            if self._db.execute("SELECT 1 FROM staged WHERE id = ?", (identifier,)).fetchone():
                yield identifier

    def drop(self, edges: Iterable[Edge]) -> None:
        """Note that these edges shall go."""
        self._db.executemany(
            "INSERT OR IGNORE INTO dropped VALUES (?, ?, ?)",
            [(edge.source, edge.relation, edge.target) for edge in edges],
        )

    def count(self) -> int:
        """How many records the import touches: those it holds, and those it changes a relation of."""
        # In order, as the indexes have them: else all of them would be sorted.
        number: int = self._db.execute(f"SELECT count(*) FROM ({_TOUCHED} ORDER BY 1)").fetchone()[0]
        return number

    def touched(self, size: int) -> Iterator[list[str]]:
        """The ids of the records the import touches, in order, some at a time."""
        cursor = self._db.execute(_TOUCHED + " ORDER BY 1")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def staged(self, first: str, last: str) -> dict[str, Staged]:
        """The records from one id to another, both included."""
        return {item.id: item for item in self._staged("id BETWEEN ? AND ?", [first, last])}

    def edges(self, first: str, last: str) -> Iterator[Edge]:
        """The edges told of whose source lies from one id to another, both included."""
        return self._edges("edge", first, last)

    def dropped(self, first: str, last: str) -> Iterator[Edge]:
        """The edges that shall go whose source lies from one id to another, both included."""
        return self._edges("dropped", first, last)

    def relations(self) -> set[str]:
        """The names of the relations that the import tells of."""
        return {row[0] for row in self._db.execute("SELECT DISTINCT relation FROM edge")}

    def _unclear(self, first: str, last: str) -> set[tuple[str, str]]:
        """What records from one id to another seem to tell of completely, and do not."""
        return set(self._db.execute("SELECT id, relation FROM unclear WHERE id BETWEEN ? AND ?", (first, last)))

    def _put(self, table: str, row: tuple[Any, ...]) -> None:
        rows = self._waiting[table]
        rows.append(row)
        if len(rows) >= _BUFFERED:
            self._write(table, rows)

    def _flush(self) -> None:
        for table, rows in self._waiting.items():
            self._write(table, rows)

    def _write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            rows.clear()

    def _edges(self, table: str, first: str, last: str) -> Iterator[Edge]:
        query = f"SELECT source, relation, target FROM {table} WHERE source BETWEEN ? AND ?"
        return (Edge(*row) for row in self._db.execute(query, [first, last]))

    def _staged(self, condition: str, values: list[str]) -> Iterator[Staged]:
        query = f"SELECT {', '.join(Staged._fields)} FROM staged WHERE {condition}"
        return map(Staged._make, self._db.execute(query, values))


_TOUCHED = "SELECT id FROM staged UNION SELECT source FROM edge UNION SELECT source FROM dropped"
