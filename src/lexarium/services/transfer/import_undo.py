"""Taking back all that one import wrote, together."""

from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.store import change_log, revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

MAX_CHANGES = 5_000
"""How many changes are taken back together: others who write wait meanwhile."""
_MAX_LISTED = 5


def is_single_import(snapshot: Snapshot, after_seq: int, last_seq: int) -> bool:
    """Whether the changes after one, up to another, are exactly what one import wrote."""
    if not after_seq < last_seq:
        return False
    boundary_changes = [*revisions.list_since(snapshot, after_seq, 1), *revisions.list_since(snapshot, last_seq - 1, 1)]
    matches = [
        change.seq <= last_seq and change.actor == SYSTEM_USER_ID and change.write_id == after_seq + 1
        for change in boundary_changes
    ]
    return matches == [True, True] and all(
        change.write_id != after_seq + 1 for change in revisions.list_since(snapshot, last_seq, 1)
    )


def undo_import(transaction: Transaction, caller: Caller, after_seq: int, last_seq: int) -> tuple[int, int]:
    """Make every record that an import changed what it was; what it made is retired.

    The log names the system, as for the import: so a later import does not take it for something that people did.
    Returns which changes that are, likewise. Raises `Conflict` where some record has changed since.
    """
    connection = transaction.connection
    if last_seq - after_seq > MAX_CHANGES or not is_single_import(connection, after_seq, last_seq):
        raise Conflict(f"These are not the changes of one import, or more than {MAX_CHANGES:,}.")
    changes = revisions.list_since(connection, after_seq, last_seq - after_seq)
    latest = change_log.find_latest(connection, [change.record_id for change in changes])
    changed_ids = sorted(record_id for record_id, change in latest.items() if change.seq > last_seq)
    if changed_ids:
        listed = ", ".join(changed_ids[:_MAX_LISTED]) + (
            f" and {len(changed_ids) - _MAX_LISTED:,} more" if len(changed_ids) > _MAX_LISTED else ""
        )
        raise Conflict(f"Nothing was undone: {listed} changed since. The history of each record has its way back.")
    previous = revisions.find_versions(
        connection, [(change.record_id, change.version - 1) for change in changes if change.version > 1]
    )
    first_revision = transaction.revision
    writer = RecordWriter(transaction, caller, actor=SYSTEM_USER_ID)
    writer.restore_versions((latest[change.record_id], previous.get(change.record_id)) for change in changes)
    return first_revision, transaction.revision
