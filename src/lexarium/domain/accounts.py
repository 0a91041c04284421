"""People and their tokens."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What an account may do; each role may do all that the ones before it may."""

    CONTRIBUTOR = "contributor"
    CURATOR = "curator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Its place among the roles, the least first."""
        return _RANKS[self]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True)
class Account:
    """A person, or the program of one, that may write."""

    id: str
    name: str
    role: Role

    @property
    def erased(self) -> bool:
        """Whether its name was erased: it has its id for a name then, and nobody can use it."""
        return self.name == self.id


SIGNED_IN = "signed in"
"""The label of tokens that were had for a password."""


@dataclass(frozen=True)
class Token:
    """A way for an account to prove itself. The secret itself is kept nowhere."""

    id: str
    account: Account
    label: str
    """What it is for, in its owner's words."""
    role: Role
    """What it was made for."""
    created: int
    expires: int | None
    used: int | None = None
    """When it was last used, to the minute."""
    revoked: int | None = None

    @property
    def reach(self) -> Role:
        """What it may do: no more than its account, whatever it was made for."""
        return min(self.role, self.account.role, key=lambda role: role.rank)
