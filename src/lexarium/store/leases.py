"""Leases: what only one process may do at a time, however many there are."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lexarium.store.schema import lease
from lexarium.store.transaction import Transaction


@dataclass(frozen=True)
class Lease:
    """Who may do something, and until when."""

    name: str
    holder: str
    until: int

    def is_kept_from(self, wanted: "Lease", *, at: int) -> bool:
        """Whether another cannot have it yet. One that runs longer than any is given was left by another clock."""
        return self.holder != wanted.holder and at < self.until <= at + 2 * (wanted.until - at)


def find(connection: Connection, name: str) -> Lease | None:
    """The lease of this name, also one that has run out; None where nobody has it."""
    row = connection.execute(select(lease).where(lease.c.name == name)).one_or_none()
    return None if row is None else Lease(row.name, row.holder, row.until)


def take(transaction: Transaction, wanted: Lease, *, at: int) -> bool:
    """Take a lease or renew it. False, and nothing done, where another has it and it has not run out."""
    present = find(transaction.connection, wanted.name)
    if present is not None and present.is_kept_from(wanted, at=at):
        return False
    transaction.connection.execute(delete(lease).where(lease.c.name == wanted.name))
    values = {"name": wanted.name, "holder": wanted.holder, "until": wanted.until}
    transaction.connection.execute(insert(lease).values(values))
    return True


def release(transaction: Transaction, name: str, holder: str) -> None:
    """Give a lease back; nothing is done where another has it, or nobody."""
    transaction.connection.execute(delete(lease).where(lease.c.name == name, lease.c.holder == holder))
