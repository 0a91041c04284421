"""One entry of the change log."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from lexarium.domain.identifiers import split_id
from lexarium.domain.record import ProposalOrigin, Record, parse_record

DIGEST_BYTES = 16


class Action(StrEnum):
    """Effect of a change on its record."""

    CREATE = "create"
    UPDATE = "update"
    RETIRE = "retire"
    MERGE = "merge"
    REVERT = "revert"


class Change(NamedTuple):
    """Change of one record, with the document of the record after it."""

    seq: int
    at: int
    actor: str
    # First seq of its write, shared by all changes of that write.
    write_id: int
    action: Action
    collection: str
    record_id: str
    version: int
    document: bytes

    @property
    def vocabulary(self) -> str:
        """Slug of the vocabulary that has its record, or whose head record that is."""
        slug, local_id = split_id(self.record_id)
        return slug or local_id

    def to_record(self) -> Record:
        """Return the record after the change."""
        return parse_record(self.collection, self.document)

    def parse_origin(self) -> ProposalOrigin | None:
        """Return the proposal behind the change, or None."""
        # Most changes have none, and to parse a large document takes long.
        origin = orjson.loads(self.document).get("proposed") if b'"proposed"' in self.document else None
        return None if origin is None else ProposalOrigin(**origin)

    def parse_summary(self) -> str:
        """Return what its author says about the change, or an empty text."""
        summary: str = orjson.loads(self.document).get("summary", "") if b'"summary"' in self.document else ""
        return summary


class ChangeFilter(NamedTuple):
    """Changes of the records in some collections, and of some head records: all, or those of a person or a record."""

    collections: Sequence[str]
    # Ids that are unique in the database.
    head_ids: Sequence[str] = ()
    actor: str | None = None
    record_id: str | None = None


def compute_digest(header: tuple[Any, ...], document: bytes) -> bytes:
    """Return the checksum of a change, whose header is its values before the document.

    A migration has computed it for older changes, so it must not change.
    """
    seq, at, actor, write_id, action, collection, record_id, version = header
    text = f"{seq}\n{at}\n{actor}\n{write_id}\n{action}\n{collection}\n{record_id}\n{version}\n"
    return sha256(text.encode() + document).digest()[:DIGEST_BYTES]
