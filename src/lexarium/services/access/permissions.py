"""Permissions and the role each one requires."""

from dataclasses import dataclass
from enum import Enum

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import PermissionDenied


class Permission(Enum):
    """What someone may want to do that needs a role."""

    PROPOSE = "propose a record or a change, and withdraw one's own proposal"
    PUBLISH = "create, change, relate, retire, merge and revert records; decide proposals; name releases; send batches"
    ADMINISTER = "make, change and erase accounts, make and revoke the tokens of others, keep webhooks"


REQUIRED_ROLE = {
    Permission.PROPOSE: Role.CONTRIBUTOR,
    Permission.PUBLISH: Role.CURATOR,
    Permission.ADMINISTER: Role.ADMIN,
}
"""Who may do what: the one table. Reading needs no role."""


@dataclass(frozen=True)
class Caller:
    """Who asks, and in which role."""

    account: Account
    role: Role
    token_id: str
    """The id of the token that was sent."""
    token_expires_at: int | None = None
    """When that token is no longer good; None: never."""
    in_session: bool = False
    """Whether that token is a session's."""

    def has_permission(self, permission: Permission) -> bool:
        """Whether the role allows it."""
        return self.role.rank >= REQUIRED_ROLE[permission].rank

    def require(self, permission: Permission) -> None:
        """Raise `Forbidden` where the role does not allow it."""
        if not self.has_permission(permission):
            raise PermissionDenied(
                f"This needs the role {REQUIRED_ROLE[permission]}; the token has the role {self.role}."
            )
