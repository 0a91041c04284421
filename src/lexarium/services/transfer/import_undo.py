"""Undo all changes of one import."""

from lexarium.domain.change import ChangeFilter
from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.store import change_log, revisions
from lexarium.store.imports import base_values
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

# Other writes wait while an import is undone.
MAX_CHANGES = 5_000
_MAX_LISTED = 5


def is_single_import(snapshot: Snapshot, scope: ReadScope, after_seq: int, last_seq: int) -> bool:
    """Return whether the changes after one, up to another, are all changes of one import into what can be read."""
    if not after_seq < last_seq:
        return False
    first, last, following = (revisions.list_since(snapshot, seq, 1) for seq in (after_seq, last_seq - 1, last_seq))
    write_id = after_seq + 1
    is_own = [change.write_id == write_id and change.vocabulary in scope.slugs for change in (*first, *last)]
    is_whole = is_own == [True, True] and all(change.write_id != write_id for change in following)
    return is_whole and not base_values.find_edits(snapshot, first)


def undo_import(transaction: Transaction, caller: Caller, after_seq: int, last_seq: int) -> tuple[int, int]:
    """Restore the records that an import updated, and retire those it created; return the range of the new changes.

    Vocabularies stay as the import left them: to remove one takes another permission.

    It counts as an import by the caller, so that a later one does not take it for an edit. Raise Conflict if a record
    has changed since.
    """
    connection, scope = transaction.flush(), get_read_scope(caller)
    is_import = is_single_import(connection, scope, after_seq, last_seq)
    count = min(last_seq - after_seq, MAX_CHANGES + 1) if is_import else 0
    # Those of head records are left out, so that later changes follow.
    following = revisions.list_since(connection, after_seq, count, ChangeFilter(tuple(COLLECTIONS)))
    changes = [change for change in following if change.seq <= last_seq]
    if not 0 < count <= MAX_CHANGES or not all(scope.includes(change.record_id) for change in changes):
        raise Conflict(f"These are not the changes of one import, or more than {MAX_CHANGES:,}.")
    latest = change_log.find_latest(connection, [change.record_id for change in changes])
    changed_ids = sorted(record_id for record_id, change in latest.items() if change.seq > last_seq)
    if changed_ids:
        listed = ", ".join(map(get_local_id, changed_ids[:_MAX_LISTED]))
        if len(changed_ids) > _MAX_LISTED:
            listed += f" and {len(changed_ids) - _MAX_LISTED:,} more"
        raise Conflict(f"Nothing was undone: {listed} changed since. Revert records one by one from their history.")
    # Files of several sources may have changed a record several times.
    changes = list({change.record_id: change for change in reversed(changes)}.values())[::-1]
    previous_keys = [(change.record_id, change.version - 1) for change in changes if change.version > 1]
    previous = revisions.find_versions(connection, previous_keys)
    first_revision = transaction.revision
    writer = RecordWriter(transaction, caller)
    writer.restore_versions((latest[change.record_id], previous.get(change.record_id)) for change in changes)
    base_values.forget_statements(connection, list(latest))
    base_values.mark_import(transaction, caller.account.id)
    return first_revision, transaction.revision
