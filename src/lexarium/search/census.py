"""What an index holds, document by document: for whoever holds it against the catalogue."""

from collections.abc import Sequence
from typing import NamedTuple

from tantivy import Query

from lexarium.domain.changes import Change
from lexarium.search.documents import labels_of, shown_labels
from lexarium.search.index import View, explained

_MOST_TIMES = 10
"""How often a record is looked for at most, though an index should have it once."""


class Held(NamedTuple):
    """What an index can show of a record."""

    version: int
    collection: str
    state: str
    labels: str


def held(view: View, identifiers: Sequence[str]) -> dict[str, list[Held]]:
    """The documents of these records."""
    found: dict[str, list[Held]] = {}
    query = Query.term_set_query(view.schema, "record", list(identifiers))
    with explained():
        for _, address in view.searcher.search(query, _MOST_TIMES * len(identifiers), count=False).hits:
            document = view.searcher.doc(address)
            shown = Held(
                int(document.get_first("version") or 0),
                str(document.get_first("collection")),
                str(document.get_first("state")),
                str(document.get_first("labels")),
            )
            found.setdefault(str(document.get_first("record")), []).append(shown)
    return found


def held_of(change: Change) -> Held:
    """What an index should show of a record after a change."""
    whole = change.whole()
    return Held(change.version, change.collection, whole.state, shown_labels(labels_of(whole)))


def count(view: View) -> int:
    """How many documents of records there are; one more says where the index stands."""
    with explained():
        return view.searcher.num_docs - 1
