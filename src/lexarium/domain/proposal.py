"""Proposals: what a contributor would change. No record, and in no feed, until a curator accepts it."""

from dataclasses import dataclass
from enum import StrEnum


class ProposalState(StrEnum):
    """Where a proposal stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Quota:
    """The most open proposals that a contributor may have, by number and by bytes of all their changes."""

    count: int = 1_000
    bytes: int = 16 << 20


_quota = [Quota()]


def get_quota() -> Quota:
    """Return the quota that holds in this process."""
    return _quota[0]


def set_quota(quota: Quota) -> None:
    """Set the quota of this process. For whoever wires the process, before anything is proposed."""
    _quota[0] = quota


@dataclass(frozen=True)
class ProposalFilter:
    """Which open proposals are to be decided, and in which order."""

    collection: str | None = None
    author: str | None = None
    newest_first: bool = False
    """Whether those come first that were made last."""


@dataclass(frozen=True)
class Proposal:
    """A change that someone would like made."""

    id: str
    collection: str
    change: bytes
    """A whole draft where a new record is proposed, else a merge patch of one; as JSON."""
    author: str
    made: int
    record: str | None = None
    """The record that would change; None where it would be a new one. Once accepted, the record that it became."""
    base_version: int | None = None
    """The version that the proposal would change."""
    state: ProposalState = ProposalState.OPEN
    decider: str | None = None
    decided: int | None = None
    reason: str = ""
