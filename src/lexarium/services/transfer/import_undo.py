"""Undo all changes of one import."""

from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.store import change_log, revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

# Other writes wait while an import is undone.
MAX_CHANGES = 5_000
_MAX_LISTED = 5


def is_single_import(snapshot: Snapshot, after_seq: int, last_seq: int) -> bool:
    """Return whether the changes after one, up to another, are all changes of one import, and no others."""
    if not after_seq < last_seq:
        return False
    first, last, following = (revisions.list_since(snapshot, seq, 1) for seq in (after_seq, last_seq - 1, last_seq))
    write_id = after_seq + 1
    is_import = [change.actor == SYSTEM_USER_ID and change.write_id == write_id for change in (*first, *last)]
    return is_import == [True, True] and all(change.write_id != write_id for change in following)


def undo_import(transaction: Transaction, caller: Caller, after_seq: int, last_seq: int) -> tuple[int, int]:
    """Restore the records that an import updated, and retire those it created; return the range of the new changes.

    The system is the actor, as for the import, so that a later import does not take this for an edit by people. Raise
    Conflict if a record has changed since.
    """
    connection = transaction.flush()
    if last_seq - after_seq > MAX_CHANGES or not is_single_import(connection, after_seq, last_seq):
        raise Conflict(f"These are not the changes of one import, or more than {MAX_CHANGES:,}.")
    changes = revisions.list_since(connection, after_seq, last_seq - after_seq)
    latest = change_log.find_latest(connection, [change.record_id for change in changes])
    changed_ids = sorted(record_id for record_id, change in latest.items() if change.seq > last_seq)
    if changed_ids:
        listed = ", ".join(changed_ids[:_MAX_LISTED])
        if len(changed_ids) > _MAX_LISTED:
            listed += f" and {len(changed_ids) - _MAX_LISTED:,} more"
        raise Conflict(f"Nothing was undone: {listed} changed since. The history of each record has its way back.")
    previous_keys = [(change.record_id, change.version - 1) for change in changes if change.version > 1]
    previous = revisions.find_versions(connection, previous_keys)
    first_revision = transaction.revision
    writer = RecordWriter(transaction, caller, actor=SYSTEM_USER_ID)
    writer.restore_versions((latest[change.record_id], previous.get(change.record_id)) for change in changes)
    return first_revision, transaction.revision
