"""Permissions and the role each one requires."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import PermissionDenied


class Permission(Enum):
    """An action that requires a role."""

    COMMENT = "comment on records"
    PROPOSE = "propose a record or a change, and withdraw one's own proposal"
    PUBLISH = (
        "create, change, relate, retire, merge and revert records; decide proposals; close and reopen comments; "
        "name releases; send batches"
    )
    ADMINISTER = "make, change and erase accounts, make and revoke the tokens of others, keep webhooks"


# Reading requires no role.
REQUIRED_ROLE = {
    Permission.COMMENT: Role.READER,
    Permission.PROPOSE: Role.CONTRIBUTOR,
    Permission.PUBLISH: Role.CURATOR,
    Permission.ADMINISTER: Role.ADMIN,
}


@dataclass(frozen=True)
class Caller:
    """An authenticated account with the role of its token."""

    account: Account
    role: Role
    token_id: str
    token_expires_at: int | None = None
    in_session: bool = False
    # Roles in single vocabularies where they are higher, by slug.
    vocabulary_roles: Mapping[str, Role] = field(default_factory=dict)

    @property
    def highest_role(self) -> Role:
        """Highest role in any vocabulary."""
        return max((self.role, *self.vocabulary_roles.values()), key=lambda role: role.rank)

    def get_role(self, vocabulary: str) -> Role:
        """Return the role in a vocabulary."""
        return max(self.role, self.vocabulary_roles.get(vocabulary, Role.NONE), key=lambda role: role.rank)

    def has_permission(self, permission: Permission, vocabulary: str | None = None) -> bool:
        """Return True if the role in a vocabulary, or else in all of them, allows an action."""
        role = self.role if vocabulary is None else self.get_role(vocabulary)
        return role.rank >= REQUIRED_ROLE[permission].rank

    def has_permission_anywhere(self, permission: Permission) -> bool:
        """Return True if the role in any vocabulary allows an action."""
        return any(self.has_permission(permission, slug) for slug in (None, *self.vocabulary_roles))

    def require_anywhere(self, permission: Permission) -> None:
        """Raise PermissionDenied unless the role in any vocabulary allows an action."""
        if not self.has_permission_anywhere(permission):
            self.require(permission)

    def require(self, permission: Permission, vocabulary: str | None = None) -> None:
        """Raise PermissionDenied unless the role allows an action."""
        if not self.has_permission(permission, vocabulary):
            role = self.role if vocabulary is None else self.get_role(vocabulary)
            where = "" if vocabulary is None else f" in the vocabulary {vocabulary}"
            raise PermissionDenied(f"Role {REQUIRED_ROLE[permission]} required{where}; this token has role {role}.")
