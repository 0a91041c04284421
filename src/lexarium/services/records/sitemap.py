"""List the pages of records for search engines."""

from collections.abc import Sequence

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.vocabularies.access import ReadScope
from lexarium.store import records
from lexarium.store.position import Snapshot

# Most pages of a sitemap, by its protocol.
MAX_PAGES = 50_000


def list_record_ids(snapshot: Snapshot, scope: ReadScope, after: str = "") -> list[str]:
    """Return the ids of the published records of one sitemap, those that follow an id."""
    return records.list_published_ids(snapshot, _list_collections(scope), after, MAX_PAGES)


def list_part_starts(snapshot: Snapshot, scope: ReadScope) -> list[str]:
    """Return the id that each sitemap begins after; the first is empty."""
    collections = _list_collections(scope)
    starts = [""]
    while last := records.find_published_id(snapshot, collections, starts[-1], MAX_PAGES - 1):
        starts.append(last)
    return starts


def _list_collections(scope: ReadScope) -> Sequence[str]:
    return [name for name in scope.collections if not COLLECTIONS[name].is_auxiliary]
