"""One entry of the change log."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import orjson

from lexarium.domain.record import ProposalOrigin, Record, parse_record


class Action(StrEnum):
    """What a change did to its record."""

    CREATE = "create"
    UPDATE = "update"
    RETIRE = "retire"
    MERGE = "merge"
    REVERT = "revert"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record, and the record as it is from then on."""

    seq: int
    at: int
    actor: str
    write_id: int
    """The first seq of the write that made it: what the changes of one write have in common."""
    action: Action
    collection: str
    record_id: str
    version: int
    document: bytes

    def to_record(self) -> Record:
        """The record as it is from then on."""
        return parse_record(self.collection, self.document)

    def parse_origin(self) -> ProposalOrigin | None:
        """What it goes back to, where that is a proposal."""
        origin = orjson.loads(self.document).get("proposed")
        return None if origin is None else ProposalOrigin(**origin)

    def compute_digest(self) -> bytes:
        """What all that it says comes to."""
        header = (
            self.seq,
            self.at,
            self.actor,
            self.write_id,
            self.action,
            self.collection,
            self.record_id,
            self.version,
        )
        return compute_digest(header, self.document)


ChangeHeader = tuple[int, int, str, int, str, str, str, int]
"""All that a change says besides its document: from `seq` to `version`, in this order."""


_DIGEST_BYTES = 16
"""Enough to tell an accident."""


def compute_digest(header: ChangeHeader, document: bytes) -> bytes:
    """What all that a change says comes to. An upgrade of the store made it of older changes: it stays as it is."""
    seq, at, actor, write_id, action, collection, record_id, version = header
    text = f"{seq}\n{at}\n{actor}\n{write_id}\n{action}\n{collection}\n{record_id}\n{version}\n"
    return sha256(text.encode() + document).digest()[:_DIGEST_BYTES]
