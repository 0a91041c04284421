"""One row of the log: what happened to one record, and the whole of it afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from lexarium.domain.relations import Edge


class Action(StrEnum):
    """What a change did to its record."""

    CREATE = "create"
    UPDATE = "update"


class State(StrEnum):
    """Where a record stands in its life."""

    PUBLISHED = "published"
    RETIRED = "retired"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record. `document` is the record as it is from then on, as `document()` makes it."""

    seq: int
    at: int
    actor: str
    action: Action
    collection: str
    record: str
    version: int
    document: bytes


def document(state: State, body: bytes, edges: Iterable[Edge]) -> bytes:
    """The whole of a record: its state, its fields as rendered, and the relations of which it is the source."""
    relations: dict[str, list[str]] = {}
    for edge in sorted(edges):
        relations.setdefault(edge.relation, []).append(edge.target)
    whole: dict[str, Any] = {"state": state, "record": orjson.Fragment(body), "relations": relations}
    return orjson.dumps(whole)
