"""What a record is at a version, and what made it so: one row of the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from lexarium.domain import cache_tags
from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.labels import Alias, parse_aliases, split_alias_texts
from lexarium.domain.rendering import RenderedRecord, render_fields
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.text.characters import name_key


@dataclass(frozen=True, order=True)
class Relation:
    """One relation between two records, either of which may not be there (yet)."""

    source: str
    relation: str
    target: str


class RelatedRecord(NamedTuple):
    """A record at the other end of a relation."""

    id: str
    name: str | None
    """None where it is not there, or not published."""
    type_name: str
    side: Side
    """The end at which the record stands that was asked about."""


def sort_related(related: Iterable[RelatedRecord]) -> list[RelatedRecord]:
    """By relation, then by name ignoring case, then by id."""
    records = list(related)
    if len(records) == 1:
        return records
    return sorted(records, key=lambda other: (other.type_name, other.side, (other.name or "").casefold(), other.id))


class RecordState(StrEnum):
    """Where a record stands in its life."""

    PUBLISHED = "published"
    RETIRED = "retired"
    MERGED = "merged"


@dataclass(frozen=True)
class ProposalOrigin:
    """What a change goes back to that a curator made by accepting a proposal."""

    proposal: str
    by: str
    """Who proposed it."""


@dataclass(frozen=True)
class Record:
    """All that a record is at one version."""

    collection: Collection
    fields: Fields
    """Every field of the collection, in its order."""
    relations: frozenset[Relation] = frozenset()
    """Every relation of which it is the source."""
    state: RecordState = RecordState.PUBLISHED
    replaced_by: str | None = None
    """The record that stands in for one that is retired or merged."""
    stored_aliases: tuple[Alias, ...] | None = None
    """None until someone edits the list: then `alias` itself tells them."""
    sources: tuple[str, ...] = ()
    """Where its definition comes from."""

    @property
    def id(self) -> str:
        """Its identifier."""
        record_id: str = self.fields["id"]
        return record_id

    @cached_property
    def rendered(self) -> RenderedRecord:
        """What the store keeps of its fields."""
        return render_fields(self.collection, self.fields)

    @property
    def definition(self) -> str:
        """Its definition; nothing where records of its kind have none."""
        text: str = self.fields.get(self.collection.definition_field or "", "")
        return text

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        """Its other names."""
        return parse_aliases(self.fields.get("alias", "")) if self.stored_aliases is None else self.stored_aliases

    @property
    def relation_targets(self) -> dict[str, list[str]]:
        """The targets of its relations, by relation."""
        return group_targets(self.relations)

    @property
    def cache_tags(self) -> set[CacheTag]:
        """What is shaken when a record becomes this."""
        tags = {
            cache_tags.record_tag(self.id),
            cache_tags.collection_tag(self.collection.name),
            cache_tags.name_tag(self.collection.name, name_key(self.fields["name"])),
        }
        return tags | {cache_tags.record_tag(relation.target) for relation in self.relations}

    def to_document(self, origin: ProposalOrigin | None = None) -> bytes:
        """It as bytes, for the log; with what its change goes back to, where that is a proposal."""
        document: dict[str, Any] = {
            "state": self.state,
            "record": orjson.Fragment(self.rendered.body),
            "relations": self.relation_targets,
        }
        if self.replaced_by is not None:
            document["replaced_by"] = self.replaced_by
        if self.stored_aliases is not None:
            document["aliases"] = [alias.model_dump() for alias in self.stored_aliases]
        if self.sources:
            document["sources"] = self.sources
        if origin is not None:
            document["proposed"] = origin
        return orjson.dumps(document)


def build_simple_document(body: bytes, relations: frozenset[Relation]) -> bytes:
    """What `Whole.document` makes of a published record that has nothing but its fields, rendered so, and relations."""
    targets = orjson.dumps(group_targets(relations)) if relations else b"{}"
    return b'{"state":"published","record":' + body + b',"relations":' + targets + b"}"


def parse_record(collection: str, document: bytes) -> Record:
    """What `Whole.document` made bytes of."""
    data = orjson.loads(document)
    fields = data["record"]
    aliases = data.get("aliases")
    return Record(
        collection=COLLECTIONS[collection],
        fields=fields,
        relations=build_relations(fields["id"], data["relations"]),
        state=RecordState(data["state"]),
        replaced_by=data.get("replaced_by"),
        stored_aliases=None if aliases is None else tuple(Alias.model_construct(**alias) for alias in aliases),
        sources=tuple(data.get("sources", ())),
    )


def parse_labels(document: bytes) -> list[str]:
    """The name and the other names of a record, from what `Whole.document` made of it: faster than by all it is."""
    data = orjson.loads(document)
    fields = data["record"]
    aliases = data.get("aliases")
    alias_texts = (
        split_alias_texts(fields.get("alias", "")) if aliases is None else [alias["text"] for alias in aliases]
    )
    return [fields["name"], *alias_texts]


def build_relations(source_id: str, targets_by_type: Mapping[str, Iterable[str]]) -> frozenset[Relation]:
    """The edges of a record, from the targets of its relations."""
    return frozenset(
        Relation(source_id, type_name, target) for type_name, targets in targets_by_type.items() for target in targets
    )


def group_targets(relations: Iterable[Relation]) -> dict[str, list[str]]:
    """The targets of a record's edges, by relation."""
    targets: dict[str, list[str]] = {}
    for relation in sorted(relations):
        targets.setdefault(relation.relation, []).append(relation.target)
    return targets
