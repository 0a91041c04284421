"""Merge records, and undo merges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.editing.edit import DEFINITION_METADATA, to_draft
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.labels import Alias
from lexarium.domain.record import ALIAS_PREDICATES, Record, RecordState, Relation, get_text, group_targets
from lexarium.domain.statement import ValueIndex
from lexarium.domain.text.characters import name_key


def mark_merged(record: Record, survivor_id: str) -> Record:
    """Return a record as merged into another."""
    return replace(record.with_relations(()), state=RecordState.MERGED, replaced_by=survivor_id)


def build_survivor_draft(survivor: Record, merged: Record) -> dict[str, Any]:
    """Return the draft of a survivor: its own fields, with names, sources and relations of the merged record added.

    It takes over the definition if it has none in the default language.
    """
    draft = to_draft(survivor)
    definition_field = survivor.collection.definition_field
    definition = _get_own_definition(merged)
    if definition_field is not None and definition.strip() and not _get_own_definition(survivor).strip():
        draft[definition_field] = definition
    seen = {name_key(survivor.fields["name"]), *(name_key(alias.text) for alias in survivor.aliases)}
    for alias in _iter_labels(merged):
        if name_key(alias.text) not in seen:
            seen.add(name_key(alias.text))
            draft["aliases"].append(alias.model_dump())
    draft["sources"] = list(dict.fromkeys([*survivor.sources, *merged.sources]))
    relations = frozenset(relation for relation in survivor.relations if relation.target != merged.id)
    draft["relations"] = group_targets(relations | _move_relations(merged, survivor.id))
    return draft


def adopt_moved_qualifiers(survivor: Record, before: Record, merged: Record) -> Record:
    """Return a survivor with the qualifiers that the merged record has of the statements that the merge added."""
    qualified = [statement for statement in merged.own_statements if statement.qualifiers]
    if not qualified:
        return survivor
    language = survivor.collection.language
    known, added = ValueIndex(before.statements, language), ValueIndex(qualified, language)
    statements = (
        statement if known.find(statement) else added.find(statement) or statement for statement in survivor.statements
    )
    return replace(survivor, statements=tuple(statements))


def adopt_definition_author(survivor: Record, before: Record, merged: Record) -> Record:
    """Return a survivor with the author and time of the merged record's definition if the merge added that."""
    if not MergeEffect(before, survivor).adds_definition:
        return survivor
    names = ("def_id_user", "def_event_stamp")
    return survivor.assign_fields({name: merged.fields[name] for name in names if name in merged.fields})


def redirect_merged_targets(record: Record, survivors: Mapping[str, str]) -> Record:
    """Return a record with references to merged records replaced; relations to itself are dropped."""
    return record.redirect_references(survivors) if list_referenced_ids(record) & survivors.keys() else record


def list_referenced_ids(record: Record) -> set[str]:
    """Return the ids of the relation targets and classes of a record."""
    vocabulary = record.collection.vocabulary
    return {relation.target for relation in record.relations} | {
        qualify_id(vocabulary, record.fields[name]) for name in record.collection.class_fields if record.fields[name]
    }


def resolve_merge_chains(survivors: Mapping[str, str]) -> dict[str, str]:
    """Return the final survivor of each merged record, without those that lead into a cycle.

    Each step of a chain is followed once.
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
    """Effect of a merge on a record other than the merged one."""

    before: Record
    after: Record

    @property
    def added_relations(self) -> frozenset[Relation]:
        """Relations that the merge added."""
        return self.after.relations - self.before.relations

    @property
    def added_name_keys(self) -> set[str]:
        """Name keys of the aliases that the merge added."""
        return {name_key(alias.text) for alias in self.after.aliases if alias not in self.before.aliases}

    @property
    def adds_definition(self) -> bool:
        """Return whether the merge gave the record a definition in the default language."""
        return not _get_own_definition(self.before).strip() and bool(_get_own_definition(self.after).strip())

    @property
    def added_sources(self) -> set[str]:
        """Sources that the merge added."""
        return set(self.after.sources) - set(self.before.sources)

    def build_undo_draft(self, current: Record) -> dict[str, Any]:
        """Return the current draft without what the merge added, and with what it removed."""
        draft = to_draft(current)
        draft["aliases"] = [
            alias.model_dump()
            for alias in current.aliases
            if alias in self.before.aliases or alias not in self.after.aliases
        ]
        draft["sources"] = [source for source in current.sources if source not in self.added_sources]
        relations = current.relations - self.added_relations | (self.before.relations - self.after.relations)
        draft["relations"] = group_targets(relations)
        for name in current.collection.class_fields:
            if current.fields[name] == self.after.fields[name]:
                draft[name] = self.before.fields[name]
        definition_field = current.collection.definition_field
        is_unchanged = _get_own_definition(current) == _get_own_definition(self.after)
        if definition_field is not None and self.adds_definition and is_unchanged:
            draft[definition_field] = _get_own_definition(self.before)
        return draft

    def restore_details(self, record: Record) -> Record:
        """Return the record with its original qualifiers and v-alpha values of texts that are the original again.

        These values are the text of its aliases, and the author and time of its definition.
        """
        record = record.adopt_qualifiers(self.before)
        if self.adds_definition and _get_own_definition(record) == _get_own_definition(self.before):
            record = record.assign_fields(
                {name: self.before.fields[name] for name in DEFINITION_METADATA & record.fields.keys()}
            )
        field = record.collection.alias_field
        if set(record.aliases) != set(self.before.aliases) or field is None:
            return record
        return record.state_fields({field: self.before.fields[field]}).with_aliases(self.before.stored_aliases)


def merges_overlap(earlier: MergeEffect, later: MergeEffect, merged: Record, survivor_id: str) -> bool:
    """Return whether a later merge, of `merged` into a survivor, involves what an earlier one added.

    Then the earlier merge cannot be undone first: it would remove what both added, or miss what moved on.
    """
    referring = {relation for relation in later.before.relations if relation.target == merged.id}
    relations = referring | {relation._replace(target=survivor_id) for relation in referring}
    name_keys: set[str] = set()
    sources: set[str] = set()
    has_definition = False
    if later.before.id == survivor_id:
        has_definition = bool(_get_own_definition(merged).strip())
        relations |= _move_relations(merged, survivor_id)
        name_keys = {name_key(alias.text) for alias in _iter_labels(merged)}
        sources = set(merged.sources)
    return not (
        earlier.added_relations.isdisjoint(relations)
        and earlier.added_name_keys.isdisjoint(name_keys)
        and earlier.added_sources.isdisjoint(sources)
        and not (earlier.adds_definition and has_definition)
    )


def _get_own_definition(record: Record) -> str:
    """Return the definition in the default language, or an empty text: a translation would be taken for it."""
    predicate = record.collection.field_predicates.get(record.collection.definition_field or "")
    texts = [get_text(value) for item, value, _ in record.own_statements if item == predicate]
    is_own = any(text is None or text.lang in ("", record.collection.language) for text in texts)
    return record.definition if is_own else ""


def _iter_labels(merged: Record) -> Iterator[Alias]:
    """Yield the name and the aliases, exact ones first: of two that are alike, the first is kept."""
    if merged.fields["name"].strip():
        yield Alias.model_construct(text=merged.fields["name"], lang=merged.collection.language)
    scopes = list(ALIAS_PREDICATES)
    yield from sorted(merged.aliases, key=lambda alias: scopes.index(alias.scope))


def _move_relations(merged: Record, survivor_id: str) -> set[Relation]:
    return {
        relation._replace(source=survivor_id)
        for relation in merged.relations
        if relation.target not in (merged.id, survivor_id)
    }
