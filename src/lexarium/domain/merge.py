"""Merging a record into another, and taking that back: what becomes of each record that it touches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.edit import to_draft
from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.text.characters import name_key


def mark_merged(record: Record, survivor_id: str) -> Record:
    """The record that is merged into another."""
    return replace(record, state=RecordState.MERGED, replaced_by=survivor_id, relations=frozenset())


def build_survivor_draft(survivor: Record, merged: Record) -> dict[str, Any]:
    """The draft of the record that another is merged into: its own fields stand, names and relations are gained."""
    draft = to_draft(survivor)
    seen = {name_key(survivor.fields["name"]), *(name_key(alias.text) for alias in survivor.aliases)}
    for alias in _iter_labels(merged):
        if name_key(alias.text) not in seen:
            seen.add(name_key(alias.text))
            draft["aliases"].append(alias.model_dump())
    relations = frozenset(relation for relation in survivor.relations if relation.target != merged.id)
    draft["relations"] = replace(survivor, relations=relations | _move_relations(merged, survivor.id)).relation_targets
    return draft


def redirect_merged_targets(record: Record, survivors: Mapping[str, str]) -> Record:
    """The record with survivors in place of the merged ones that it names; a relation to itself falls away."""
    unchanged = {relation for relation in record.relations if relation.target not in survivors}
    redirected = {replace(relation, target=survivors[relation.target]) for relation in record.relations - unchanged}
    classes = {
        name: survivors[record.fields[name]]
        for name in record.collection.class_fields
        if record.fields[name] in survivors
    }
    return replace(
        record,
        fields={**record.fields, **classes},
        relations=frozenset(unchanged | {relation for relation in redirected if relation.target != record.id}),
    )


def list_referenced_ids(record: Record) -> set[str]:
    """What a record names: the targets of its relations and its class."""
    return {relation.target for relation in record.relations} | {
        record.fields[name] for name in record.collection.class_fields if record.fields[name]
    }


def resolve_merge_chains(survivors: Mapping[str, str]) -> dict[str, str]:
    """Of records, each merged into another, what each has come to be; one that leads into a circle is left out.

    However long the way is, each step of it is taken once.
    """
    resolved: dict[str, str | None] = {}
    for record_id in survivors:
        path: list[str] = []
        current = record_id
        while current in survivors and current not in resolved:
            resolved[current] = None
            path.append(current)
            current = survivors[current]
        resolved |= dict.fromkeys(path, resolved[current] if current in survivors else current)
    return {record_id: survivor_id for record_id, survivor_id in resolved.items() if survivor_id is not None}


@dataclass(frozen=True)
class MergeEffect:
    """What a merge made of a record other than the one that was merged."""

    before: Record
    after: Record

    @property
    def added_relations(self) -> frozenset[Relation]:
        """The relations that the merge added."""
        return self.after.relations - self.before.relations

    @property
    def added_name_keys(self) -> set[str]:
        """The keys of the names that the merge added."""
        return {name_key(alias.text) for alias in self.after.aliases if alias not in self.before.aliases}

    def build_undo_draft(self, current: Record) -> dict[str, Any]:
        """The draft of the record as it is, without what the merge added and with what it took."""
        draft = to_draft(current)
        draft["aliases"] = [
            alias.model_dump()
            for alias in current.aliases
            if alias in self.before.aliases or alias not in self.after.aliases
        ]
        relations = current.relations - self.added_relations | (self.before.relations - self.after.relations)
        draft["relations"] = replace(current, relations=relations).relation_targets
        for name in current.collection.class_fields:
            if current.fields[name] == self.after.fields[name]:
                draft[name] = self.before.fields[name]
        return draft

    def restore_alias_text(self, record: Record) -> Record:
        """The record with its names as they were spelt before the merge, where they are those again."""
        if record.aliases != self.before.aliases or "alias" not in record.fields:
            return record
        return replace(
            record,
            fields={**record.fields, "alias": self.before.fields["alias"]},
            stored_aliases=self.before.stored_aliases,
        )


def merges_overlap(earlier: MergeEffect, later: MergeEffect, merged: Record, survivor_id: str) -> bool:
    """Whether a later merge, of `gone` into another, had to do with what an earlier one added to the same record.

    Then the earlier cannot be undone before the later: it would take away what both brought, or miss what moved on.
    """
    referring = {relation for relation in later.before.relations if relation.target == merged.id}
    relations = referring | {replace(relation, target=survivor_id) for relation in referring}
    name_keys: set[str] = set()
    if later.before.id == survivor_id:
        relations |= _move_relations(merged, survivor_id)
        name_keys = {name_key(alias.text) for alias in _iter_labels(merged)}
    return not (earlier.added_relations.isdisjoint(relations) and earlier.added_name_keys.isdisjoint(name_keys))


def _iter_labels(merged: Record) -> Iterator[Alias]:
    if merged.fields["name"].strip():
        yield Alias.model_construct(text=merged.fields["name"])
    yield from merged.aliases


def _move_relations(merged: Record, survivor_id: str) -> set[Relation]:
    return {
        replace(relation, source=survivor_id)
        for relation in merged.relations
        if relation.target not in (merged.id, survivor_id)
    }
