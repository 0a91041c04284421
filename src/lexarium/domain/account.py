"""Accounts, roles and access tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """Role of an account; each role includes the permissions of those before it."""

    # None in vocabularies other than those in which the account has a role of its own.
    NONE = "none"
    READER = "reader"
    CONTRIBUTOR = "contributor"
    CURATOR = "curator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Index among the roles, lowest first."""
        return _RANKS[self]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True)
class Account:
    """Person, or program of a person, that may write."""

    id: str
    name: str
    # In all vocabularies.
    role: Role
    # Further roles in single ones.
    vocabulary_roles: Mapping[str, Role] = field(default_factory=dict, compare=False)

    @property
    def highest_role(self) -> Role:
        """Highest role in any vocabulary."""
        return max((self.role, *self.vocabulary_roles.values()), key=lambda role: role.rank)

    @property
    def is_erased(self) -> bool:
        """Return whether the name was erased. The id replaces it then, and nobody can use the account."""
        return self.name == self.id


SESSION_TOKEN_LABEL = "signed in"  # noqa: S105


class Origin(StrEnum):
    """Origin of a token."""

    COMMAND_LINE = "command-line"
    # With name and password. The token of a session.
    SIGN_IN = "sign-in"
    # From a session, after the password was entered again.
    SESSION = "session"
    TOKEN = "token"  # noqa: S105 (a word, not a secret)
    # Before origins were recorded.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Token:
    """Access token of an account. Its secret is not stored."""

    id: str
    account: Account
    # Description by its owner.
    label: str
    # Role that was requested for it.
    role: Role
    created_at: int
    expires_at: int | None
    # Precise to the minute.
    last_used_at: int | None = None
    revoked_at: int | None = None
    origin: Origin = Origin.COMMAND_LINE
    # Token that was used to create this one.
    parent_id: str | None = None

    @property
    def origin_text(self) -> str:
        """Origin as text, with the parent token."""
        text = self.origin.replace("command-line", "command line")
        return f"{text} {self.parent_id}" if self.parent_id else text

    @property
    def effective_role(self) -> Role:
        """Lower of the token's and the account's role in all vocabularies."""
        return min(self.role, self.account.role, key=lambda role: role.rank)
