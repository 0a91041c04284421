"""What an index holds, document by document: for whoever holds it against the catalogue."""

from collections.abc import Sequence
from typing import NamedTuple

from tantivy import Query

from lexarium.domain.change import Change
from lexarium.search.documents import join_labels, list_labels
from lexarium.search.index import IndexSnapshot, translate_errors

_MAX_DUPLICATES = 10
"""How often a record is looked for at most, though an index should have it once."""


class IndexedRecord(NamedTuple):
    """What an index can show of a record."""

    version: int
    collection: str
    state: str
    labels: str


def find_indexed(snapshot: IndexSnapshot, record_ids: Sequence[str]) -> dict[str, list[IndexedRecord]]:
    """The documents of these records."""
    indexed: dict[str, list[IndexedRecord]] = {}
    query = Query.term_set_query(snapshot.schema, "record", list(record_ids))
    with translate_errors():
        for _, address in snapshot.searcher.search(query, _MAX_DUPLICATES * len(record_ids), count=False).hits:
            document = snapshot.searcher.doc(address)
            indexed_record = IndexedRecord(
                int(document.get_first("version") or 0),
                str(document.get_first("collection")),
                str(document.get_first("state")),
                str(document.get_first("labels")),
            )
            indexed.setdefault(str(document.get_first("record")), []).append(indexed_record)
    return indexed


def to_indexed(change: Change) -> IndexedRecord:
    """What an index should show of a record after a change."""
    record = change.to_record()
    return IndexedRecord(change.version, change.collection, record.state, join_labels(list_labels(record)))


def count_indexed(snapshot: IndexSnapshot) -> int:
    """How many documents of records there are; one more says where the index stands."""
    with translate_errors():
        return snapshot.searcher.num_docs - 1
