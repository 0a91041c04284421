"""Recent changes and the names of the accounts that made them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.change import Change, ChangeFilter
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import Record
from lexarium.store import accounts, revisions
from lexarium.store.imports import base_values
from lexarium.store.position import Snapshot

# Name of accounts that are erased, and of users whom only an imported file knows.
UNKNOWN_USER = "unknown user"


@dataclass(frozen=True)
class ActivityEntry:
    """A change, the record it made, and the name of its author."""

    change: Change
    record: Record
    actor: str


def list_activity(
    snapshot: Snapshot, shown: ChangeFilter, last_seq: int, limit: int, after_seq: int = 0
) -> list[ActivityEntry]:
    """Return the changes of a filter between two sequence numbers, the newest first."""
    changes = revisions.list_latest(snapshot, last_seq, limit, after_seq, shown)
    names = get_account_names(snapshot, (change.actor for change in changes))
    return [ActivityEntry(change, change.to_record(), names[change.actor]) for change in changes]


@dataclass(frozen=True)
class WriteEntry:
    """Changes of one write, such as an import, by the last of them."""

    last: ActivityEntry
    count: int
    is_import: bool

    @property
    def since(self) -> int:
        """Sequence number before its first change."""
        return self.last.change.write_id - 1


def list_writes(snapshot: Snapshot, shown: ChangeFilter, last_seq: int, limit: int) -> list[WriteEntry]:
    """Return the latest writes with changes of a filter, the newest first."""
    changes = revisions.list_last_of_writes(snapshot, last_seq, limit, shown)
    edited_ids = base_values.find_edits(snapshot, changes)
    names = get_account_names(snapshot, (change.actor for change in changes))
    entries = [ActivityEntry(change, change.to_record(), names[change.actor]) for change in changes]
    # A command may change vocabularies on behalf of the system, as imports do, which then change records.
    return [
        WriteEntry(
            entry,
            entry.change.seq - entry.change.write_id + 1,
            entry.change.record_id not in edited_ids and not entry.record.is_head,
        )
        for entry in entries
    ]


def get_account_names(snapshot: Snapshot, account_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of accounts by id, as `name_accounts` does."""
    ids = dict.fromkeys(account_ids)
    return name_accounts(ids, {account.id: account.name for account in accounts.find_accounts(snapshot, list(ids))})


def name_accounts(account_ids: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of accounts by id, given those that exist; nobody is shown by an id."""
    # An erased account has its id for a name.
    known = {account_id: name for account_id, name in names.items() if name != account_id}
    known[SYSTEM_USER_ID] = "the system"
    return {account_id: known.get(account_id, UNKNOWN_USER) for account_id in account_ids}
