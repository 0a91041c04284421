"""What has changed of late, as people read it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import Record
from lexarium.store import accounts, revisions
from lexarium.store.position import Snapshot


@dataclass(frozen=True)
class ActivityEntry:
    """A change, its record as it is from then on, and who made it."""

    change: Change
    record: Record
    actor: str


def list_activity(snapshot: Snapshot, last_seq: int, limit: int, after_seq: int = 0) -> list[ActivityEntry]:
    """The changes up to a seq and after another, the newest first, at most so many."""
    start = max(after_seq, last_seq - limit)
    changes = revisions.list_since(snapshot, start, last_seq - start)[::-1] if start < last_seq else []
    names = get_account_names(snapshot, (change.actor for change in changes))
    return [ActivityEntry(change, change.to_record(), names[change.actor]) for change in changes]


def get_account_names(snapshot: Snapshot, account_ids: Iterable[str]) -> dict[str, str]:
    """What these people are called, by id: by their account's name, else by their id."""
    names: dict[str, str] = {}
    for account_id in set(account_ids):
        if account_id == SYSTEM_USER_ID:
            names[account_id] = "the system"
            continue
        account = accounts.find_account_by_id(snapshot, account_id)
        names[account_id] = account_id if account is None or account.is_erased else account.name
    return names


def list_earlier_versions(snapshot: Snapshot, record_id: str, newest_version: int, limit: int) -> Sequence[Change]:
    """The versions of a record from one down, at most so many."""
    version_numbers = range(newest_version, max(0, newest_version - limit), -1)
    return [
        change
        for change in (revisions.find_version(snapshot, record_id, version) for version in version_numbers)
        if change
    ]
