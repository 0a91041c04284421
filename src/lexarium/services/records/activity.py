"""Recent changes and the names of the accounts that made them."""

from collections.abc import Iterable
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.store import accounts, revisions
from lexarium.store.position import Snapshot


@dataclass(frozen=True)
class ActivityEntry:
    """A change, the record it made, and the name of its author."""

    change: Change
    record: Record
    actor: str


def list_activity(snapshot: Snapshot, last_seq: int, limit: int, after_seq: int = 0) -> list[ActivityEntry]:
    """Return the changes of records between two sequence numbers, the newest first."""
    start = max(after_seq, last_seq - limit)
    changes = revisions.list_since(snapshot, start, last_seq - start)[::-1] if start < last_seq else []
    changes = [change for change in changes if change.collection in COLLECTIONS]
    names = get_account_names(snapshot, (change.actor for change in changes))
    return [ActivityEntry(change, change.to_record(), names[change.actor]) for change in changes]


def get_account_names(snapshot: Snapshot, account_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of accounts by id; the id itself if an account is erased or unknown."""
    # An erased account has its id for a name.
    names = {account_id: account_id for account_id in account_ids}
    names |= {account.id: account.name for account in accounts.find_accounts(snapshot, list(names))}
    return names | ({SYSTEM_USER_ID: "the system"} if SYSTEM_USER_ID in names else {})
