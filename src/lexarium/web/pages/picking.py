"""Looking for a record that is to be named in a form."""

from collections.abc import Iterable
from dataclasses import dataclass

from lexarium.domain.changes import State
from lexarium.domain.errors import Invalid, Unready
from lexarium.service.finding import Asked
from lexarium.store import log
from lexarium.store.backend import Snapshot
from lexarium.web.pages.site import Site

_SHOWN = 10


@dataclass(frozen=True)
class Choice:
    """A record that may be chosen."""

    id: str
    name: str
    collection: str


def choices(site: Site, words: str, collection: str, but: str) -> list[Choice]:
    """The published records of a collection that someone may mean, the likeliest first; without one of them."""
    try:
        found = site.finder.search(Asked(words, (collection,), limit=_SHOWN + 1)).hits if words.strip() else []
    except (Invalid, Unready):
        return []
    return [Choice(hit.id, hit.name, hit.collection) for hit in found if hit.id != but][:_SHOWN]


def chosen(snapshot: Snapshot, identifiers: Iterable[str]) -> list[Choice]:
    """Those of these records that are published, as what was chosen before."""
    wholes = [change.whole() for change in log.latest(snapshot, [each for each in identifiers if each]).values()]
    return [
        Choice(whole.id, whole.fields["name"] or whole.id, whole.collection.name)
        for whole in wholes
        if whole.state == State.PUBLISHED
    ]
