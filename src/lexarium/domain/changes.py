"""What a record is at a version, and what made it so: one row of the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any

import orjson

from lexarium.domain import grounds
from lexarium.domain.aliases import Alias, split, texts
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.grounds import Ground
from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge
from lexarium.domain.rendering import Rendering, render
from lexarium.domain.text import name_key


class Action(StrEnum):
    """What a change did to its record."""

    CREATE = "create"
    UPDATE = "update"
    RETIRE = "retire"
    MERGE = "merge"
    REVERT = "revert"


class State(StrEnum):
    """Where a record stands in its life."""

    PUBLISHED = "published"
    RETIRED = "retired"
    MERGED = "merged"


@dataclass(frozen=True)
class Proposed:
    """What a change goes back to that a curator made by accepting a proposal."""

    proposal: str
    by: str
    """Who proposed it."""


@dataclass(frozen=True)
class Whole:
    """All that a record is at one version."""

    collection: Collection
    fields: Fields
    """Every field of the collection, in its order."""
    edges: frozenset[Edge] = frozenset()
    """Every relation of which it is the source."""
    state: State = State.PUBLISHED
    replaced_by: str | None = None
    """The record that stands in for one that is retired or merged."""
    aliases: tuple[Alias, ...] | None = None
    """None until someone edits the list: then `alias` itself tells them."""
    sources: tuple[str, ...] = ()
    """Where its definition comes from."""

    @property
    def id(self) -> str:
        """Its identifier."""
        identifier: str = self.fields["id"]
        return identifier

    @cached_property
    def rendering(self) -> Rendering:
        """What the store keeps of its fields."""
        return render(self.collection, self.fields)

    @property
    def definition(self) -> str:
        """Its definition; nothing where records of its kind have none."""
        text: str = self.fields.get(self.collection.definition or "", "")
        return text

    @cached_property
    def alias_list(self) -> tuple[Alias, ...]:
        """Its other names."""
        return split(self.fields.get("alias", "")) if self.aliases is None else self.aliases

    @property
    def relations(self) -> dict[str, list[str]]:
        """The targets of its relations, by relation."""
        return relations_of(self.edges)

    @property
    def grounds(self) -> set[Ground]:
        """What is shaken when a record becomes this."""
        own = {
            grounds.of_record(self.id),
            grounds.of_collection(self.collection.name),
            grounds.of_name(self.collection.name, name_key(self.fields["name"])),
        }
        return own | {grounds.of_record(edge.target) for edge in self.edges}

    def document(self, proposed: Proposed | None = None) -> bytes:
        """It as bytes, for the log; with what its change goes back to, where that is a proposal."""
        whole: dict[str, Any] = {
            "state": self.state,
            "record": orjson.Fragment(self.rendering.body),
            "relations": self.relations,
        }
        if self.replaced_by is not None:
            whole["replaced_by"] = self.replaced_by
        if self.aliases is not None:
            whole["aliases"] = [alias.model_dump() for alias in self.aliases]
        if self.sources:
            whole["sources"] = self.sources
        if proposed is not None:
            whole["proposed"] = proposed
        return orjson.dumps(whole)


def plain_document(body: bytes, edges: frozenset[Edge]) -> bytes:
    """What `Whole.document` makes of a published record that has nothing but its fields, rendered so, and relations."""
    relations = orjson.dumps(relations_of(edges)) if edges else b"{}"
    return b'{"state":"published","record":' + body + b',"relations":' + relations + b"}"


def whole_of(collection: str, document: bytes) -> Whole:
    """What `Whole.document` made bytes of."""
    given = orjson.loads(document)
    fields = given["record"]
    aliases = given.get("aliases")
    return Whole(
        collection=COLLECTIONS[collection],
        fields=fields,
        edges=edges_of(fields["id"], given["relations"]),
        state=State(given["state"]),
        replaced_by=given.get("replaced_by"),
        aliases=None if aliases is None else tuple(Alias.model_construct(**alias) for alias in aliases),
        sources=tuple(given.get("sources", ())),
    )


def labels_of(document: bytes) -> list[str]:
    """The name and the other names of a record, from what `Whole.document` made of it: faster than by all it is."""
    given = orjson.loads(document)
    fields = given["record"]
    aliases = given.get("aliases")
    others = texts(fields.get("alias", "")) if aliases is None else [alias["text"] for alias in aliases]
    return [fields["name"], *others]


def edges_of(source: str, relations: Mapping[str, Iterable[str]]) -> frozenset[Edge]:
    """The edges of a record, from the targets of its relations."""
    return frozenset(Edge(source, name, target) for name, targets in relations.items() for target in targets)


def relations_of(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """The targets of a record's edges, by relation."""
    found: dict[str, list[str]] = {}
    for edge in sorted(edges):
        found.setdefault(edge.relation, []).append(edge.target)
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record, and the record as it is from then on."""

    seq: int
    at: int
    actor: str
    batch: int
    """The first seq of the write that made it: what the changes of one write have in common."""
    action: Action
    collection: str
    record: str
    version: int
    document: bytes

    def whole(self) -> Whole:
        """The record as it is from then on."""
        return whole_of(self.collection, self.document)

    def proposed(self) -> Proposed | None:
        """What it goes back to, where that is a proposal."""
        told = orjson.loads(self.document).get("proposed")
        return None if told is None else Proposed(**told)

    def digest(self) -> bytes:
        """What all that it says comes to."""
        told = (self.seq, self.at, self.actor, self.batch, self.action, self.collection, self.record, self.version)
        return digest_of(told, self.document)


Told = tuple[int, int, str, int, str, str, str, int]
"""All that a change says besides its document: from `seq` to `version`, in this order."""

_DIGEST_BYTES = 16
"""Enough to tell an accident."""


def digest_of(told: Told, document: bytes) -> bytes:
    """What all that a change says comes to. An upgrade of the store made it of older changes: it stays as it is."""
    seq, at, actor, batch, action, collection, record, version = told
    said = f"{seq}\n{at}\n{actor}\n{batch}\n{action}\n{collection}\n{record}\n{version}\n"
    return sha256(said.encode() + document).digest()[:_DIGEST_BYTES]
