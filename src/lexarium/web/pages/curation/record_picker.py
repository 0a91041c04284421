"""Search for a record to reference in a form."""

from dataclasses import dataclass

from lexarium.domain.errors import IndexNotReady, InvalidInput
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.search.record_search import SearchQuery
from lexarium.services.vocabularies.access import ReadScope
from lexarium.store.position import Snapshot
from lexarium.web.site import Site

_MAX_CHOICES = 10


@dataclass(frozen=True)
class RecordChoice:
    """A record that may be chosen."""

    # Unique in the database.
    id: str
    name: str
    collection: str


def find_choices(site: Site, text: str, collections: tuple[str, ...], exclude_id: str) -> list[RecordChoice]:
    """Return the published records of some collections that match a text best, without one of them."""
    if not text.strip():
        return []
    try:
        hits = site.record_search.search(
            SearchQuery(text, collections, limit=_MAX_CHOICES + 1, scope=_get_scope(collections))
        ).hits
    except (InvalidInput, IndexNotReady):
        return []
    choices = [RecordChoice(hit.id, hit.name or get_local_id(hit.id), hit.collection) for hit in hits]
    return [choice for choice in choices if choice.id != exclude_id][:_MAX_CHOICES]


def _get_scope(collections: tuple[str, ...]) -> ReadScope:
    return ReadScope(tuple({COLLECTIONS[name].vocabulary for name in collections}))


def prepend_selected(snapshot: Snapshot, selected_id: str, choices: list[RecordChoice]) -> list[RecordChoice]:
    """Return the record selected before, if it is published, and the other choices."""
    is_storable = get_local_id(selected_id) and not find_unstorable_char(selected_id)
    changes = find_latest_changes(snapshot, [selected_id]) if is_storable else {}
    selected = [
        RecordChoice(record.id, record.fields["name"] or record.local_id, record.collection.name)
        for record in (change.to_record() for change in changes.values())
        if record.state == RecordState.PUBLISHED
    ]
    return [*selected, *(choice for choice in choices if choice.id != selected_id)]
