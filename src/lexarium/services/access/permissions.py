"""Permissions and the role each one requires."""

from dataclasses import dataclass
from enum import Enum

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import PermissionDenied


class Permission(Enum):
    """An action that requires a role."""

    PROPOSE = "propose a record or a change, and withdraw one's own proposal"
    PUBLISH = "create, change, relate, retire, merge and revert records; decide proposals; name releases; send batches"
    ADMINISTER = "make, change and erase accounts, make and revoke the tokens of others, keep webhooks"


# Reading requires no role.
REQUIRED_ROLE = {
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

    def has_permission(self, permission: Permission) -> bool:
        """Return True if the role allows an action."""
        return self.role.rank >= REQUIRED_ROLE[permission].rank

    def require(self, permission: Permission) -> None:
        """Raise PermissionDenied unless the role allows an action."""
        if not self.has_permission(permission):
            raise PermissionDenied(
                f"This needs the role {REQUIRED_ROLE[permission]}; the token has the role {self.role}."
            )
