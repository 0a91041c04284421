"""Leases: what only one process may do at a time, however many there are."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import lease_table
from lexarium.store.transaction import Transaction


@dataclass(frozen=True)
class Lease:
    """Who may do something, and until when."""

    name: str
    holder: str
    expires_at: int

    def blocks(self, requested: "Lease", *, at: int) -> bool:
        """Whether another cannot have it yet. One that runs longer than any is given was left by another clock."""
        return self.holder != requested.holder and at < self.expires_at <= at + 2 * (requested.expires_at - at)


def find(connection: Connection, name: str) -> Lease | None:
    """The lease of this name, also one that has run out; None where nobody has it."""
    row = connection.execute(select(lease_table).where(lease_table.c.name == name)).one_or_none()
    return None if row is None else Lease(row.name, row.holder, row.until)


def acquire(transaction: Transaction, lease: Lease, *, at: int) -> bool:
    """Take a lease or renew it. False, and nothing done, where another has it and it has not run out."""
    current = find(transaction.connection, lease.name)
    if current is not None and current.blocks(lease, at=at):
        return False
    transaction.connection.execute(delete(lease_table).where(lease_table.c.name == lease.name))
    values = {"name": lease.name, "holder": lease.holder, "until": lease.expires_at}
    transaction.connection.execute(insert(lease_table).values(values))
    return True


def release(transaction: Transaction, name: str, holder: str) -> None:
    """Give a lease back; nothing is done where another has it, or nobody."""
    transaction.connection.execute(
        delete(lease_table).where(lease_table.c.name == name, lease_table.c.holder == holder)
    )
