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
    def is_erased(self) -> bool:
        """Whether its name was erased: it has its id for a name then, and nobody can use it."""
        return self.name == self.id


SESSION_TOKEN_LABEL = "signed in"  # noqa: S105
"""The label of the tokens of sessions."""


class Origin(StrEnum):
    """How a token was made."""

    COMMAND_LINE = "command-line"
    SIGN_IN = "sign-in"
    """For a name and a password: it is the token of a session."""
    SESSION = "session"
    """From a session, by someone who gave their password again."""
    TOKEN = "token"  # noqa: S105 (a word, not a secret)
    """With another token."""
    UNKNOWN = "unknown"
    """Before origins were recorded."""


@dataclass(frozen=True)
class Token:
    """A way for an account to prove itself. The secret itself is kept nowhere."""

    id: str
    account: Account
    label: str
    """What it is for, in its owner's words."""
    role: Role
    """What it was made for."""
    created_at: int
    expires_at: int | None
    last_used_at: int | None = None
    """When it was last used, to the minute."""
    revoked_at: int | None = None
    origin: Origin = Origin.COMMAND_LINE
    parent_id: str | None = None
    """The id of the token that it was made with, if any."""

    @property
    def origin_text(self) -> str:
        """The origin in words, with the token that it was made with."""
        return " ".join(
            [self.origin.replace("command-line", "command line"), *([self.parent_id] if self.parent_id else [])]
        )

    @property
    def effective_role(self) -> Role:
        """What it may do: no more than its account, whatever it was made for."""
        return min(self.role, self.account.role, key=lambda role: role.rank)
