"""Records related to one, grouped by type and direction of the relation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.records.statement_view import ShownValue, find_predicate_link
from lexarium.store.position import Snapshot
from lexarium.store.queries import hierarchy_queries, page_queries
from lexarium.store.queries.hierarchy_queries import Neighbor, RecordName
from lexarium.store.queries.page_queries import Edge

MAX_RELATED = 200  # records listed per relation type and direction
_MAX_DETAILED = 100  # of them with their own relations

# Name of a relation type, and whether the record is its source.
Kind = tuple[str, bool]


class RelatedItem(NamedTuple):
    """Related record. Of a detail, such as a contrast, `relations` are its own, by label."""

    id: str
    name: str
    collection: str
    relations: Mapping[str, Sequence[RecordName]] = MappingProxyType({})


@dataclass(frozen=True)
class RelationGroup:
    """Records related to one by relations of one type, in one direction or, if symmetric, in both."""

    label: str
    type_name: str
    hierarchical: bool
    is_outgoing: bool
    items: Sequence[RelatedItem]
    total: int
    description: str = ""
    # Address of a predicate that no slot declares.
    link: str | None = None
    # Targets that the vocabulary does not have: records of others, or links.
    elsewhere: Sequence[ShownValue] = ()

    def translate(self, names: Mapping[str, str]) -> "RelationGroup":
        """Return the group with other names of some records."""
        if not names:
            return self

        def translate_name(item: RecordName) -> RecordName:
            return item._replace(name=names.get(item.id, item.name))

        items = [
            item._replace(
                name=names.get(item.id, item.name),
                relations={label: list(map(translate_name, group)) for label, group in item.relations.items()},
            )
            for item in self.items
        ]
        elsewhere = [replace(item, text=names.get(item.record_id or "", item.text)) for item in self.elsewhere]
        return replace(self, items=items, elsewhere=elsewhere)


def load_neighbors(snapshot: Snapshot, record_id: str, totals: Mapping[Kind, int]) -> dict[Kind, list[Neighbor]]:
    """Return the first published records related to one, by type and direction of the relation."""
    return hierarchy_queries.find_neighbors(snapshot, record_id, _sort_kinds(totals), MAX_RELATED)


def list_past_neighbors(record: Record, names: Mapping[str, str]) -> dict[Kind, list[Neighbor]]:
    """Return the records that a version of a record points to, given the names of those that are published."""
    neighbors: dict[Kind, list[Neighbor]] = {}
    for relation in sorted(record.relations):
        local_id = get_local_id(relation.target)
        if local_id in names:
            neighbor = Neighbor(relation.target, names[local_id], "")
            neighbors.setdefault((relation.relation, True), []).append(neighbor)
    ordered = {kind: neighbors[kind] for kind in _sort_kinds(neighbors)}
    return {kind: sorted(items, key=lambda item: item.name.casefold()) for kind, items in ordered.items()}


def build_groups(
    record: Record,
    neighbors: Mapping[Kind, Sequence[Neighbor]],
    totals: Mapping[Kind, int],
    labels: Mapping[str, str],
    elsewhere: Mapping[str, ShownValue],
) -> list[RelationGroup]:
    """Return the groups of a record: hierarchies first, then in order of the schema."""
    groups: dict[tuple[str, str], RelationGroup] = {}
    kinds = dict.fromkeys([*neighbors, *((item.relation, True) for item in record.relations)])
    for type_name, outward in _sort_kinds(kinds):
        found = neighbors.get((type_name, outward), ())
        items = [RelatedItem(*item) for item in found]
        # Only the first relations are read; the number is exact when there are more.
        total = totals.get((type_name, outward), 0) if len(items) >= MAX_RELATED else len(items)
        label = _label_direction(type_name, labels[type_name], is_outgoing=outward)
        if (type_name, label) in groups:  # symmetric
            by_id = {item.id: item for item in (*groups[type_name, label].items, *items)}
            items = sorted(by_id.values(), key=lambda item: (item.name.casefold(), item.id))
            groups[type_name, label] = replace(groups[type_name, label], items=items, total=len(items))
            continue
        groups[type_name, label] = RelationGroup(
            label,
            type_name,
            RELATION_TYPES[type_name].is_hierarchical,
            outward,
            items,
            total,
            _describe_relation(record, type_name) if outward else "",
            None if type_name in RELATION_TYPES else find_predicate_link(type_name),
            _list_elsewhere(record, type_name, elsewhere) if outward else (),
        )
    return [group for group in groups.values() if group.items or group.elsewhere]


def add_details(snapshot: Snapshot, record_id: str, groups: Sequence[RelationGroup]) -> list[RelationGroup]:
    """Add the relations of records related to one that are details, such as what a contrast of a task measures."""
    outgoing: set[str] = set()
    incoming: set[str] = set()
    detail_ids: dict[str, None] = {}
    for group in groups:
        items = group.items[:_MAX_DETAILED]
        for collection in {item.collection for item in items if item.collection}:
            if COLLECTIONS[collection].is_auxiliary:
                own_outgoing, own_incoming = _list_further_types(collection, group.type_name)
                outgoing |= own_outgoing
                incoming |= own_incoming
                if own_outgoing or own_incoming:
                    detail_ids |= dict.fromkeys(item.id for item in items if item.collection == collection)
    if not detail_ids:
        return list(groups)
    edges: dict[str, list[Edge]] = {}
    for edge in page_queries.find_edges(snapshot, list(detail_ids), sorted(outgoing), sorted(incoming)):
        # Claims about a contrast are no part of it.
        is_claim = not edge.is_outgoing and COLLECTIONS[edge.far_collection].is_auxiliary
        if edge.far != record_id and not is_claim:
            edges.setdefault(edge.near, []).append(edge)
    return [
        replace(
            group,
            items=[
                _add_relations(item, group.type_name, edges[item.id]) if item.id in edges else item
                for item in group.items
            ],
        )
        for group in groups
    ]


def _list_further_types(collection: str, type_name: str) -> tuple[set[str], set[str]]:
    """Return the declared relation types from and to a collection besides one, mappings, references and claims."""
    schema_class = COLLECTIONS[collection].schema_class
    references = {slot.predicate for slot in schema_class.slots_by_role.get(SlotRole.REFERENCE, ())}
    types = [item for item in RELATION_TYPES.values() if item.name != type_name and not item.is_mapping]
    outgoing = {item.name for item in types if collection in item.targets and item.predicate not in references}
    incoming = {
        item.name
        for item in types
        if any(collection in targets and not COLLECTIONS[name].is_auxiliary for name, targets in item.targets.items())
    }
    return outgoing, incoming


def _add_relations(item: RelatedItem, type_name: str, edges: Iterable[Edge]) -> RelatedItem:
    def get_kind(edge: Edge) -> tuple[str, bool]:
        return edge.type_name, edge.is_outgoing

    ordered = sorted(edges, key=lambda edge: (*get_kind(edge), edge.far_name.casefold(), edge.far))
    relations = {
        _label_direction(name, RELATION_TYPES[name].label, is_outgoing=is_outgoing): [
            RecordName(edge.far, edge.far_name) for edge in group
        ]
        for (name, is_outgoing), group in groupby(ordered, key=get_kind)
        if name != type_name
    }
    return item._replace(relations=relations)


def _label_direction(type_name: str, label: str, *, is_outgoing: bool) -> str:
    relation_type = RELATION_TYPES[type_name]
    if is_outgoing:
        return label
    is_inverse_known = relation_type.inverse_label != f"{relation_type.label} of"
    return (relation_type.inverse_label if is_inverse_known else "") or f"{label} of"


def _list_elsewhere(record: Record, type_name: str, elsewhere: Mapping[str, ShownValue]) -> list[ShownValue]:
    """Return the targets of relations of a type that are records of other vocabularies."""
    # Mappings have a place of their own, and so have relations that no slot declares.
    if RELATION_TYPES[type_name].is_mapping or type_name not in RELATION_TYPES:
        return []
    targets = [get_local_id(item.target) for item in sorted(record.relations) if item.relation == type_name]
    return [elsewhere[target] for target in targets if target in elsewhere]


def _describe_relation(record: Record, type_name: str) -> str:
    slots = record.collection.schema_class.slots_by_predicate
    slot = slots.get(record.collection.relation_predicates.get(type_name, ""))
    return slot.description if slot else ""


def _sort_kinds(kinds: Iterable[Kind]) -> list[Kind]:
    """Sort names of relation types, each with its direction: as `sort_relation_types` has them, outgoing ones first."""
    by_direction = sorted(kinds, key=lambda kind: not kind[1])
    order = {name: place for place, name in enumerate(sort_relation_types(name for name, _ in by_direction))}
    return sorted(by_direction, key=lambda kind: order[kind[0]])


def sort_relation_types(names: Iterable[str]) -> list[str]:
    """Sort relation types: hierarchies, then in order of the schema, then those of all collections, then others."""
    places = {name: place for place, name in enumerate(RELATION_TYPES)}
    collections = [{item.name for item in vocabulary.collections} for vocabulary in VOCABULARIES.values()]

    def get_order(name: str) -> tuple[bool, bool, int, str]:
        relation_type = RELATION_TYPES[name]
        is_common = any(names and names <= relation_type.targets.keys() for names in collections)
        return not relation_type.is_hierarchical, is_common, places.get(name, len(places)), name

    return sorted(set(names), key=get_order)
