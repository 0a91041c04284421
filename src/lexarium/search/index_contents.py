"""Read the documents of an index, to check them against the catalogue."""

from collections.abc import Sequence
from typing import NamedTuple

from tantivy import Query

from lexarium.domain.change import Change
from lexarium.search.documents import join_labels, list_labels
from lexarium.search.index import IndexSnapshot, translate_errors

# An index should hold a record once.
_MAX_DUPLICATES = 10


class IndexedRecord(NamedTuple):
    """The stored fields of a record's document."""

    version: int
    collection: str
    state: str
    labels: str


def find_indexed(snapshot: IndexSnapshot, record_ids: Sequence[str]) -> dict[str, list[IndexedRecord]]:
    """Return the documents of records, by record id."""
    indexed: dict[str, list[IndexedRecord]] = {}
    query = Query.term_set_query(snapshot.schema, "record", list(record_ids))
    with translate_errors():
        for _, address in snapshot.searcher.search(query, _MAX_DUPLICATES * len(record_ids), count=False).hits:
            document = snapshot.searcher.doc(address)
            collection, state, labels = (str(document.get_first(name)) for name in ("collection", "state", "labels"))
            indexed_record = IndexedRecord(int(document.get_first("version") or 0), collection, state, labels)
            indexed.setdefault(str(document.get_first("record")), []).append(indexed_record)
    return indexed


def to_indexed(change: Change) -> IndexedRecord:
    """Return the stored fields that the document of a changed record should have."""
    record = change.to_record()
    return IndexedRecord(change.version, change.collection, record.state, join_labels(list_labels(record)))


def count_indexed(snapshot: IndexSnapshot) -> int:
    """Count the documents of records; one more document holds the position."""
    with translate_errors():
        return snapshot.searcher.num_docs - 1
