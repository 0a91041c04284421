"""Proposed changes, which have no effect until a curator accepts them."""

from dataclasses import dataclass
from enum import StrEnum


class ProposalState(StrEnum):
    """State of a proposal."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Quota:
    """Limits of the open proposals of a contributor, by number and by total bytes of their changes."""

    count: int = 1_000
    bytes: int = 16 << 20


_quota = [Quota()]


def get_quota() -> Quota:
    """Return the quota of this process."""
    return _quota[0]


def set_quota(quota: Quota) -> None:
    """Set the quota of this process, at start-up."""
    _quota[0] = quota


@dataclass(frozen=True)
class ProposalFilter:
    """Filter and order of open proposals."""

    collection: str | None = None
    author: str | None = None
    newest_first: bool = False


@dataclass(frozen=True)
class Proposal:
    """Proposed change."""

    id: str
    collection: str
    # JSON: a draft for a new record, else a merge patch of one.
    change: bytes
    author: str
    made: int
    # None for a new record until the proposal is accepted.
    record: str | None = None
    base_version: int | None = None
    state: ProposalState = ProposalState.OPEN
    decider: str | None = None
    decided: int | None = None
    reason: str = ""
