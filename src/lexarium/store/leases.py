"""Leases: tasks that only one process may do at a time."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import lease_table
from lexarium.store.transaction import Transaction


@dataclass(frozen=True)
class Lease:
    """Right of one holder to do a task until a time."""

    name: str
    holder: str
    expires_at: int

    def blocks(self, requested: "Lease", *, at: int) -> bool:
        """Return whether another holder must wait for this lease to expire.

        A lease that runs far longer than the requested one was written by a clock that is off; it is ignored.
        """
        return self.holder != requested.holder and at < self.expires_at <= at + 2 * (requested.expires_at - at)


def find(connection: Connection, name: str) -> Lease | None:
    """Return the lease with a name, expired or not, or None."""
    row = connection.execute(select(lease_table).where(lease_table.c.name == name)).one_or_none()
    return None if row is None else Lease(row.name, row.holder, row.until)


def acquire(transaction: Transaction, lease: Lease, *, at: int) -> bool:
    """Acquire or renew a lease; return False if another holder has it."""
    current = find(transaction.flush(), lease.name)
    if current is not None and current.blocks(lease, at=at):
        return False
    transaction.execute(delete(lease_table).where(lease_table.c.name == lease.name))
    values = {"name": lease.name, "holder": lease.holder, "until": lease.expires_at}
    transaction.execute(insert(lease_table).values(values))
    return True


def release(transaction: Transaction, name: str, holder: str) -> None:
    """Release a lease; do nothing if this holder does not have it."""
    is_own = (lease_table.c.name == name) & (lease_table.c.holder == holder)
    transaction.execute(delete(lease_table).where(is_own))
