"""Taking back all that one import wrote, together."""

from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.service.access import Caller
from lexarium.service.desk import Desk
from lexarium.store import log, versions
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction

MOST = 5_000
"""How many changes are taken back together: others who write wait meanwhile."""
_NAMED = 5


def is_import(snapshot: Snapshot, since: int, until: int) -> bool:
    """Whether the changes after one, up to another, are exactly what one import wrote."""
    if not since < until:
        return False
    ends = [*versions.since(snapshot, since, 1), *versions.since(snapshot, until - 1, 1)]
    within = [each.seq <= until and each.actor == SYSTEM_USER and each.batch == since + 1 for each in ends]
    return within == [True, True] and all(each.batch != since + 1 for each in versions.since(snapshot, until, 1))


def undo(transaction: Transaction, caller: Caller, since: int, until: int) -> tuple[int, int]:
    """Make every record that an import changed what it was; what it made is retired.

    The log names the system, as for the import: so a later import does not take it for something that people did.
    Returns which changes that are, likewise. Raises `Conflict` where some record has changed since.
    """
    connection = transaction.connection
    if until - since > MOST or not is_import(connection, since, until):
        raise Conflict(f"These are not the changes of one import, or more than {MOST:,}.")
    made = versions.since(connection, since, until - since)
    present = log.latest(connection, [each.record for each in made])
    moved = sorted(record for record, change in present.items() if change.seq > until)
    if moved:
        named = ", ".join(moved[:_NAMED]) + (f" and {len(moved) - _NAMED:,} more" if len(moved) > _NAMED else "")
        raise Conflict(f"Nothing was undone: {named} changed since. The history of each record has its way back.")
    before = versions.find_versions(connection, [(each.record, each.version - 1) for each in made if each.version > 1])
    start = transaction.revision
    desk = Desk(transaction, caller, actor=SYSTEM_USER)
    desk.set_back((present[each.record], before.get(each.record)) for each in made)
    return start, transaction.revision
