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
class ProposalFilter:
    """Filter and order of proposals. None means any value."""

    collection: str | None = None
    author: str | None = None
    newest_first: bool = False
    state: ProposalState | None = ProposalState.OPEN
    record: str | None = None
    # Names of the collections that they may be in.
    collections: tuple[str, ...] | None = None
    # Account that sees proposals in `curated` collections, and elsewhere its own.
    reader: str | None = None
    curated: tuple[str, ...] = ()


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
    # Of the decider.
    reason: str = ""
    # What the author says about the change.
    summary: str = ""
    # Whether it was accepted with other values.
    amended: bool = False
