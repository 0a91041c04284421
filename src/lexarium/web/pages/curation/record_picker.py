"""Looking for a record that is to be named in a form."""

from collections.abc import Iterable
from dataclasses import dataclass

from lexarium.domain.errors import IndexNotReady, InvalidInput
from lexarium.domain.record import RecordState
from lexarium.services.search.record_search import SearchQuery
from lexarium.store import change_log
from lexarium.store.position import Snapshot
from lexarium.web.pages.site import Site

_MAX_CHOICES = 10


@dataclass(frozen=True)
class RecordChoice:
    """A record that may be chosen."""

    id: str
    name: str
    collection: str


def find_choices(site: Site, text: str, collection: str, exclude_id: str) -> list[RecordChoice]:
    """The published records of a collection that someone may mean, the likeliest first; without one of them."""
    try:
        hits = (
            site.record_search.search(SearchQuery(text, (collection,), limit=_MAX_CHOICES + 1)).hits
            if text.strip()
            else []
        )
    except (InvalidInput, IndexNotReady):
        return []
    return [RecordChoice(hit.id, hit.name, hit.collection) for hit in hits if hit.id != exclude_id][:_MAX_CHOICES]


def load_choices(snapshot: Snapshot, record_ids: Iterable[str]) -> list[RecordChoice]:
    """Those of these records that are published, as what was chosen before."""
    records = [
        change.to_record()
        for change in change_log.find_latest(snapshot, [record_id for record_id in record_ids if record_id]).values()
    ]
    return [
        RecordChoice(record.id, record.fields["name"] or record.id, record.collection.name)
        for record in records
        if record.state == RecordState.PUBLISHED
    ]
