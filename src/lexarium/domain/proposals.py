"""Proposals: what a contributor would change. No record, and in no feed, until a curator accepts it."""

from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """Where a proposal stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Queue:
    """Which open proposals are to be decided, and in which order."""

    collection: str | None = None
    author: str | None = None
    newest: bool = False
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
    state: Decision = Decision.OPEN
    decider: str | None = None
    decided: int | None = None
    reason: str = ""
