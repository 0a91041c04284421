"""Record at one version, and its document in the change log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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


class Relation(NamedTuple):
    """Relation between two records, which may not exist yet."""

    source: str
    relation: str
    target: str


class RelatedRecord(NamedTuple):
    """Record at the other end of a relation."""

    id: str
    # None if it does not exist or is not published.
    name: str | None
    type_name: str
    # Side of the record that it is related to.
    side: Side


def sort_related(related: Iterable[RelatedRecord]) -> list[RelatedRecord]:
    """Sort by relation type, name ignoring case, and id."""
    records = list(related)
    if len(records) == 1:  # most often, in exports
        return records
    return sorted(records, key=lambda other: (other.type_name, other.side, (other.name or "").casefold(), other.id))


class RecordState(StrEnum):
    """State of a record."""

    PUBLISHED = "published"
    RETIRED = "retired"
    MERGED = "merged"


@dataclass(frozen=True)
class ListQuery:
    """List of records at a revision. None means any value."""

    collection: str
    revision: int
    sort: str = "name"
    descending: bool = False
    state: RecordState | None = RecordState.PUBLISHED
    ids: tuple[str, ...] | None = None
    name_key: str | None = None
    class_id: str | None = None
    owner: str | None = None
    flagged: bool | None = None
    updated_since: int | None = None

    @property
    def is_unfiltered(self) -> bool:
        """Return whether the list has all records of a collection in a state."""
        return replace(self, sort="name", descending=False) == ListQuery(
            self.collection, self.revision, state=self.state
        )


@dataclass(frozen=True)
class ProposalOrigin:
    """Proposal behind an accepted change, and its author. Part of the stored document."""

    proposal: str
    by: str


@dataclass(frozen=True)
class Record:
    """Record at one version."""

    collection: Collection
    # All fields of the collection, in order.
    fields: Fields
    # Relations that have this record as their source.
    relations: frozenset[Relation] = frozenset()
    state: RecordState = RecordState.PUBLISHED
    # Replacement of a retired or merged record.
    replaced_by: str | None = None
    # None if the field `alias` represents them.
    stored_aliases: tuple[Alias, ...] | None = None
    # References of the definition.
    sources: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        record_id: str = self.fields["id"]
        return record_id

    @cached_property
    def rendered(self) -> RenderedRecord:
        """Bytes and keys of the fields, as stored."""
        return render_fields(self.collection, self.fields)

    @property
    def definition(self) -> str:
        """Definition, or an empty text if its collection has none."""
        text: str = self.fields.get(self.collection.definition_field or "", "")
        return text

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        return parse_aliases(self.fields.get("alias", "")) if self.stored_aliases is None else self.stored_aliases

    @property
    def relation_targets(self) -> dict[str, list[str]]:
        """Targets by relation type."""
        return group_targets(self.relations)

    @property
    def cache_tags(self) -> set[CacheTag]:
        """Tags that are invalidated when a record becomes this one."""
        tags = {
            cache_tags.record_tag(self.id),
            cache_tags.collection_tag(self.collection.name),
            cache_tags.name_tag(self.collection.name, name_key(self.fields["name"])),
        }
        return tags | {cache_tags.record_tag(relation.target) for relation in self.relations}

    def to_document(self, origin: ProposalOrigin | None = None) -> bytes:
        """Return the JSON document for the log, with the proposal behind the change, if any."""
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
    """Return the same as `Record.to_document`, but faster, for a published record with only fields and relations."""
    targets = orjson.dumps(group_targets(relations)) if relations else b"{}"
    return b'{"state":"published","record":' + body + b',"relations":' + targets + b"}"


def parse_record(collection: str, document: bytes) -> Record:
    """Parse a document of the log."""
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
    """Return the name and aliases in a document of the log, without building the record."""
    data = orjson.loads(document)
    fields = data["record"]
    aliases = data.get("aliases")
    if aliases is None:
        return [fields["name"], *split_alias_texts(fields.get("alias", ""))]
    return [fields["name"], *(alias["text"] for alias in aliases)]


def build_relations(source_id: str, targets_by_type: Mapping[str, Iterable[str]]) -> frozenset[Relation]:
    """Return the relations of a source, from the targets by relation type."""
    return frozenset(
        Relation(source_id, type_name, target) for type_name, targets in targets_by_type.items() for target in targets
    )


def group_targets(relations: Iterable[Relation]) -> dict[str, list[str]]:
    """Return the targets of relations, by relation type."""
    targets: dict[str, list[str]] = {}
    for relation in sorted(relations):
        targets.setdefault(relation.relation, []).append(relation.target)
    return targets
