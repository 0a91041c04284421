"""What others have done to a record while someone had a page of it open."""

from collections.abc import Sequence

from lexarium.service import dossiers
from lexarium.service.desk import Saved
from lexarium.service.dossiers import Version
from lexarium.store.backend import Snapshot

CHANGED = "Someone has changed it since you opened this page. See what they changed, and decide anew."
_SHOWN = 20


def since(snapshot: Snapshot, there: Saved, seen: int | None) -> Sequence[Version]:
    """The versions that a record has got since one that was seen, the newest first: the last few."""
    newer = 0 if seen is None else there.version - seen
    return dossiers.history(snapshot, there.whole.id, there.version, min(newer, _SHOWN)) if newer > 0 else ()
