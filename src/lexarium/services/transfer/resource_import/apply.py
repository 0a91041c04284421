"""Write staged resources to a vocabulary, merged with what people and other sources have stated."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.editing.merge import resolve_merge_chains
from lexarium.domain.editing.statement_merge import (
    GroupKey,
    align_statements,
    find_extended,
    match_statements,
    merge_statements,
)
from lexarium.domain.hierarchy import find_cycles
from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState, get_text, parse_record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.statement import Reference, Statement, Text, normalize
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.records.lookup import load_merge_chains
from lexarium.services.transfer import import_base
from lexarium.services.transfer.import_report import AffectedKind, list_value_changes
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.services.transfer.resource_import.staging import ResourceStager, iter_warnings
from lexarium.store import change_log, records, relations, revisions, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.imports import base_values
from lexarium.store.imports.resource_stage import StagedResource
from lexarium.store.transaction import Transaction


class _Base(NamedTuple):
    """Earlier state that an import is compared with, to find later changes."""

    # What its source stated before.
    stated: tuple[Statement, ...] = ()
    # State and replacement that it stated, as statements; empty if published.
    state: tuple[Statement, ...] = ()
    # What other sources stated before.
    stated_by_others: tuple[Statement, ...] = ()
    sources: frozenset[str] = frozenset()


_NO_BASE = _Base()
_SKIPPED_REMEDY = "Import the record first, or choose the vocabulary that has it with --vocabulary"
# Predicates of the state and the replacement among what a source has stated.
_STATE, _REPLACED_BY = _STATE_PREDICATES = ("lexarium:state", "lexarium:replaced_by")


@dataclass
class ResourceApplier:
    """Write the staged resources of one source, and fill the report."""

    transaction: Transaction
    stager: ResourceStager
    # Identity of the source.
    source: str
    request: ImportRequest
    # Records that people had edited under other ids.
    edited_before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.stage, self.vocabulary, self.report = self.stager.stage, self.stager.vocabulary, self.stager.report
        self.mode = self.request.mode
        self._minting_rule = self.vocabulary.minting_rule
        self._connection = self.transaction.flush()
        self._at = now_ms()

    def apply(self, progress: ProgressCallback) -> None:
        """Create, update and retire records, batch by batch."""
        done = 0
        self._merged = self._find_possible_merges()
        for batch in self.stage.iter_batches():
            self._apply_batch(batch)
            done += len(batch)
            progress("writing", done, self.stage.count)
        if self.mode == ImportMode.REPLACE:
            self._retire_missing()
        if self.report.relations_added:
            self._warn_cycles()

    def _warn_cycles(self) -> None:
        """Warn of cycles in the hierarchy that records of the files are part of."""
        names = {item.name for item in self.vocabulary.collections}
        hierarchies = [types for name, types in COLLECTIONS.hierarchies.items() if name in names]
        for relation_types in dict.fromkeys(hierarchies):
            inner = relations.iter_inner_relations(self._connection, relation_types)
            own = (relation for relation in inner if split_id(relation.source)[0] == self.vocabulary.slug)
            for cycle in find_cycles(own):
                if any(map(self.stage.contains, cycle)):
                    path = " → ".join(map(get_local_id, cycle))
                    self.report.warnings.add("hierarchy", "a record is below itself", path)

    def _find_possible_merges(self) -> set[str]:
        """Return the records that files say are merged, and that can be: into another that is there in the end."""
        merges = self.stager.merges
        chains = {**merges, **load_merge_chains(self._connection, {*merges, *merges.values()})}
        survivors = resolve_merge_chains(chains)
        ends = sorted({survivors[record_id] for record_id in merges if record_id in survivors})
        there = {end for end in ends if self.stage.contains(end)}
        for batch in records.batched(ends):
            there |= set(records.find_existing_ids(self._connection, batch))
        return {record_id for record_id in merges if survivors.get(record_id) in there}

    def _apply_batch(self, groups: list[list[StagedResource]]) -> None:
        latest = change_log.find_latest(self._connection, [group[0].id for group in groups])
        bases = self._load_bases(list(latest))
        edited = base_values.find_edits(self._connection, latest.values())
        edited |= base_values.find_unapplied(self._connection, list(latest)).keys() | self.edited_before
        before = {record_id: change.to_record() for record_id, change in latest.items()}
        after: dict[str, Record] = {}
        stated: dict[str, tuple[Statement, ...]] = {}
        for group in groups:
            record_id, current = group[0].id, before.get(group[0].id)
            if current is None and not any(item.collection for item in group):
                message = f"is not in the vocabulary {self.vocabulary.slug}; it was skipped. {_SKIPPED_REMEDY}"
                location = self.stage.format_location(group[0])
                self.report.warnings.add(location, message, get_local_id(record_id), is_loss=True)
                self.report.skipped += 1
                continue
            imported = self._join(group, None if current is None else current.collection.name)
            if imported.state == RecordState.MERGED and record_id not in self._merged:
                message = "is merged into what is neither here nor in the file; it is retired"
                self.report.warnings.add(self.stage.format_location(group[0]), message, imported.local_id)
                imported = replace(imported, state=RecordState.RETIRED)
            if current is None:
                after[record_id] = assign_defaults(imported, self._at)
                self._warn_unlike_minted(group[0], imported)
                self._warn_nameless(group[0], imported)
                stated[record_id] = self._build_base(_NO_BASE, imported, imported, _state_to_statements(imported))
                continue
            if self.request.prefer:  # It was given for the conflicts of the preview.
                self.request.require_same(latest[record_id], self.transaction.write_id)
            # What it states comes from imports by field, or from one that was undone.
            is_imported = record_id not in bases and record_id not in edited
            base = _Base(stated_by_others=current.statements) if is_imported else bases.get(record_id, _NO_BASE)
            imported = self._align(current, imported)
            keeps_state = self.mode == ImportMode.ADD or all(item.keeps_state for item in group)
            state = base.state if keeps_state else _state_to_statements(imported)
            # A record that only the undoing of an import has retired is published again.
            was_undone = is_imported and current.state == RecordState.RETIRED
            was_undone = (
                was_undone and latest[record_id].action == Action.REVERT and any(item.collection for item in group)
            )
            has_new_state = was_undone or (not keeps_state and (state != base.state or is_imported))
            after[record_id] = self._merge(group, current, imported, base, has_new_state=has_new_state)
            if _has_name(current):
                self._warn_nameless(group[0], after[record_id])
            stated[record_id] = self._build_base(base, imported, after[record_id], state)
        base_values.save_statements(self._connection, self.source, stated)
        self._write(latest, before, after)

    def _warn_unlike_minted(self, staged: StagedResource, record: Record) -> None:
        """Warn of a new record of a table or the like whose id the vocabulary would not have minted."""
        rule = self._minting_rule
        if self.stager.is_partial and rule is not None and not rule.has_form(record.local_id):
            message = f"keeps the id of the file, which is unlike those that the vocabulary mints ({rule})"
            self.report.warnings.add(self.stage.format_location(staged), message, record.local_id)

    def _warn_nameless(self, staged: StagedResource, record: Record) -> None:
        """Warn of a published record without a name if records of its class have one."""
        has_names = bool(record.collection.name_predicates)
        if has_names and record.state == RecordState.PUBLISHED and not _has_name(record):
            self.report.warnings.add(self.stage.format_location(staged), "has no name", record.local_id)

    def _join(self, group: list[StagedResource], current: str | None) -> Record:
        """Return one record of all resources with an id. An absent value never removes one.

        Of values of which a record should have one, such as a name in a language, those of the last file are taken.
        `current` is the collection that the record is in.
        """
        collection = next((item.collection for item in group if item.collection), current) or ""
        parts = [parse_record(item.collection or collection, item.document) for item in group]
        first, *others = parts
        # Number of the last file that has a single value, by its group.
        files: dict[Hashable, int] = {}
        get_key = build_group_key(first.collection)
        for staged, other in zip(group, (first, *others), strict=True) if others else ():
            keys = set(map(get_key, other.statements)) - {None}
            if other is not first:
                replaced = [item for item in first.statements if files.get(get_key(item), staged.file) != staged.file]
                replaced = [item for item in replaced if get_key(item) in keys and item not in other.statements]
                if replaced:
                    message = "has values that differ between the files; those of the last file were used"
                    self.report.warnings.add(self.stage.format_location(staged), message, first.local_id)
                first = first.replace_statements(replaced, []).add_statements(other.statements)
                if other.collection is not first.collection:
                    first = first.with_class(other.collection, {})
                first = _join_states(first, other)
            files |= dict.fromkeys(keys, staged.file)
        empty = _find_empty(first.statements, first.statements, get_key)
        if empty:
            first = first.replace_statements(empty, [])
        if empty and not others:
            message = "has an empty value beside another one; the empty one was left out"
            self.report.warnings.add(self.stage.format_location(group[0]), message, first.local_id, is_loss=True)
        if others:
            known = {warning for part in parts for warning in iter_warnings(part)}
            for warning in iter_warnings(first):
                if warning not in known:
                    self.report.warnings.add(self.stage.format_location(group[-1]), warning, first.local_id)
        return first

    def _build_base(
        self, base: _Base, imported: Record, merged: Record, state: tuple[Statement, ...]
    ) -> tuple[Statement, ...]:
        """Return what the source states now."""
        if self.mode == ImportMode.ADD:
            get_key = build_group_key(merged.collection)
            return (*extend_base(base.stated, imported.statements, merged.statements, get_key), *state)
        kept = [item for item in base.stated if not self.stager.covers(item)]
        statements = normalize((*imported.statements, *kept)) if kept else imported.statements
        return (*statements, *state)

    def _load_bases(self, record_ids: Sequence[str]) -> dict[str, _Base]:
        """Return what the source, and what any source, stated about records before."""
        bases = {}
        for record_id, by_source in base_values.find_statements(self._connection, record_ids).items():
            statements = by_source.get(self.source, ())
            bases[record_id] = _Base(
                tuple(item for item in statements if item.predicate not in _STATE_PREDICATES),
                tuple(item for item in statements if item.predicate in _STATE_PREDICATES),
                tuple(item for source, stated in by_source.items() if source != self.source for item in stated),
                frozenset(by_source),
            )
        return bases

    def _align(self, current: Record, imported: Record) -> Record:
        """Return an imported record with its statements as the current one has them."""
        language = current.collection.language
        aligned: Iterable[Statement] = (
            match_statements(current.own_statements, imported.statements, language)
            if self.stager.is_partial
            else align_statements(imported.statements, current.statements, language)
        )
        aligned = tuple(aligned)
        # An empty value removes none.
        get_key = build_group_key(current.collection)
        empty = _find_empty(aligned, current.statements, get_key)
        keys = set(map(get_key, empty))
        kept = (item for item in current.statements if get_key(item) in keys) if keys else ()
        return replace(imported, statements=normalize((*(item for item in aligned if item not in empty), *kept)))

    def _merge(
        self, group: list[StagedResource], current: Record, imported: Record, base: _Base, *, has_new_state: bool
    ) -> Record:
        get_key = build_group_key(current.collection)
        # What another source states too stays.
        before = [item for item in base.stated if self.stager.covers(item) and item not in base.stated_by_others]
        if self.stager.is_partial or (base.stated_by_others and not base.sources):
            # Single values that another source has imported are replaced; anything else of it stays.
            # A translation replaces only texts in its languages.
            replacing = filter(self.stager.covers if self.stager.translation_languages else None, imported.statements)
            keys = {key for item in replacing if (key := get_key(item)) is not None}
            keys -= set(map(get_key, before))
            before += (item for item in base.stated_by_others if get_key(item) in keys)
            before += find_extended(current.statements, imported.statements)
        if self.mode == ImportMode.ADD:
            before = []
        imported = imported.add_statements(_find_replacements(before, imported.statements, base, get_key))
        result = merge_statements(before, current.statements, imported.statements, get_key, self.request.prefer)
        slots = current.collection.schema_class.slots_by_predicate
        for conflict in result.conflicts:
            # Nobody decides about what the server sets.
            if slots[(conflict.ours or conflict.theirs)[0].predicate].editable:
                self.report.add_conflict(self.stage.format_location(group[-1]), imported.local_id, conflict)
        merged = replace(current, statements=result.statements, iri=current.iri or self._find_own_iri(imported))
        merged = _state_text_aliases(current, imported, merged)
        if has_new_state and current.state != RecordState.MERGED:
            merged = replace(merged, state=imported.state, replaced_by=imported.replaced_by)
        return merged

    def _find_own_iri(self, imported: Record) -> str | None:
        """Return the IRI of an imported record, unless it follows from the id."""
        is_derived = imported.iri == self.vocabulary.expand_id(imported.local_id)
        return None if is_derived else imported.iri

    def _write(self, latest: Mapping[str, Change], before: Mapping[str, Record], after: Mapping[str, Record]) -> None:
        """Write the records that differ, and add them to the report."""
        writes: list[RecordWrite] = []
        for record_id, record in after.items():
            old = before.get(record_id)
            if old is None:
                writes.append(RecordWrite(record, 1, Action.CREATE))
                self._add_to_report("created", record)
                continue
            if record == old:
                self.report.unchanged[record.collection.local_name] += 1
                continue
            self.request.require_same(latest[record_id], self.transaction.write_id)
            is_retired = record.state != old.state and record.state == RecordState.RETIRED
            action = Action.RETIRE if is_retired else Action.UPDATE
            writes.append(RecordWrite(record, latest[record_id].version + 1, action))
            self._add_to_report("retired" if is_retired else "updated", record, old)
        changed = [write.record for write in writes]
        updated = {item.id: item for item in changed if item.id in before}
        changes = {record_id: latest[record_id] for record_id in updated}
        import_base.keep_bases(self.transaction, changes, before, updated, {})
        change_log.save_records(self.transaction, writes, actor=self.request.actor, at=self._at)
        self._update_derived_rows([before[item.id] for item in changed if item.id in before], changed)

    def _retire_missing(self) -> None:
        """Retire the records that only the source has, and remove what it stated about others it no longer has."""
        for collection in self.vocabulary.collections:
            ids = records.find_ids_in_state(self._connection, collection.name, RecordState.PUBLISHED)
            missing = sorted(item for item in ids if not self.stage.contains(item))
            for batch in records.batched(missing):
                self._retire_batch(batch)

    def _retire_batch(self, record_ids: Sequence[str]) -> None:
        latest = change_log.find_latest(self._connection, record_ids)
        before = {record_id: change.to_record() for record_id, change in latest.items()}
        bases = {item: base for item, base in self._load_bases(record_ids).items() if self.source in base.sources}
        first = revisions.find_versions(self._connection, [(record_id, 1) for record_id in bases])
        made_by_people = base_values.find_edits(self._connection, first.values())
        after = {}
        for record_id, base in bases.items():
            record = before[record_id]
            get_key = build_group_key(record.collection)
            is_own = base.sources == {self.source} and record_id not in made_by_people
            if self.stager.is_partial:
                # A table of names has the whole records of its collections, one of translations has parts of records.
                is_own = is_own and record.collection.name in self.stage.collections
                is_own = is_own and any(item.predicate in record.collection.name_predicates for item in base.stated)
            if is_own:
                after[record_id] = replace(record, state=RecordState.RETIRED)
                continue
            removed = [item for item in base.stated if self.stager.covers(item) and item not in base.stated_by_others]
            replacements = _find_replacements(removed, (), base, get_key)
            keys = {None, *map(get_key, replacements)}
            # A name is removed only if another source has one.
            removed = [item for item in removed if get_key(item) in keys]
            after[record_id] = record.replace_statements(removed, replacements)
        base_values.save_statements(self._connection, self.source, dict.fromkeys(bases))
        self._write(latest, before, after)

    def _update_derived_rows(self, before: Sequence[Record], after: Sequence[Record]) -> None:
        old = {relation for record in before for relation in record.relations}
        new = {relation for record in after for relation in record.relations}
        added, removed = sorted(new - old), sorted(old - new)
        change_log.update_relations(self.transaction, added, removed)
        vocabularies.update_derived_rows(self.transaction, before, after)
        self.report.add_relations(added, removed)

    def _add_to_report(self, kind: AffectedKind, record: Record, old: Record | None = None) -> None:
        changes = list_value_changes(old, record) if old and self.report.has_room(kind) else ()
        fields = [change.field for change in changes]
        self.report.add_record(
            kind, record.local_id, record.collection.local_name, record.fields["name"], fields, changes
        )


def build_group_key(collection: Collection) -> GroupKey:
    """Return the function that groups statements of which a record should have one: a name in a language, a date."""
    slots = collection.schema_class.slots_by_predicate

    def get_key(statement: Statement) -> tuple[str, str] | None:
        slot, text = slots.get(statement.predicate), get_text(statement.value)
        if slot is None:
            return None
        if slot.role in (SlotRole.NAME, SlotRole.DEFINITION):
            return statement.predicate, (text.lang if text else "") or collection.language
        return None if slot.multivalued else (statement.predicate, "")

    return get_key


def extend_base(
    base: Iterable[Statement], added: Iterable[Statement], merged: Iterable[Statement], get_key: GroupKey
) -> tuple[Statement, ...]:
    """Return what a source states after an import that only adds.

    A single value replaces that of the base if it was taken. Nothing else is part of the base, so that no update
    removes what was only added.
    """
    there = set(merged)
    taken = [item for item in added if get_key(item) is not None and item in there]
    keys = set(map(get_key, taken))
    return normalize((*(item for item in base if get_key(item) not in keys), *taken))


def _find_replacements(
    removed: Iterable[Statement], stated: Iterable[Statement], base: _Base, get_key: GroupKey
) -> list[Statement]:
    """Return the single values of other sources, such as names, that take the place of removed ones."""
    keys = set(map(get_key, removed)) - {None, *map(get_key, stated)}
    found = {key: item for item in base.stated_by_others if (key := get_key(item)) in keys}
    return list(found.values())


def _state_text_aliases(current: Record, imported: Record, merged: Record) -> Record:
    """Return a record with statements of the aliases that only its field `alias` has, if others were added.

    Statements in the default language are the whole list of its aliases.
    """
    field = current.collection.alias_field
    if field is None or merged.aliases == current.aliases:
        return merged
    if any(item.predicate == current.collection.field_predicates[field] for item in imported.statements):
        return merged
    texts = [alias for alias in current.aliases if alias not in current.stored_aliases]
    return merged.with_aliases(dict.fromkeys((*texts, *merged.stored_aliases))) if texts else merged


def _find_empty(statements: Iterable[Statement], others: Iterable[Statement], get_key: GroupKey) -> list[Statement]:
    """Return statements whose value is empty, where others have a value of which a record should have one."""
    empty = [item for item in statements if item.value[0] == "" and get_key(item)]
    if not empty:
        return []
    keys = {get_key(item) for item in others if item.value[0] != ""}
    return [item for item in empty if get_key(item) in keys]


def _state_to_statements(record: Record) -> tuple[Statement, ...]:
    """Return the state and the replacement of a record, to be kept among what a source states; empty if published."""
    if record.state == RecordState.PUBLISHED and record.replaced_by is None:
        return ()
    replaced_by = () if record.replaced_by is None else (Statement(_REPLACED_BY, Reference(record.replaced_by)),)
    return (Statement(_STATE, Text(record.state)), *replaced_by)


def _has_name(record: Record) -> bool:
    return bool(record.fields["name"].strip())


def _join_states(first: Record, other: Record) -> Record:
    """Return a record with the state that either resource has. Further replacements are statements."""
    if first.state == RecordState.PUBLISHED:
        first = replace(first, state=other.state)
    slot = first.collection.schema_class.slots.get("replaced_by")
    if slot and first.replaced_by and other.replaced_by not in (None, first.replaced_by):
        further = Statement(slot.predicate, Reference(get_local_id(other.replaced_by or "")))
        if all(item[:2] != further[:2] for item in first.statements):
            first = first.add_statements([further])
    return replace(first, replaced_by=first.replaced_by or other.replaced_by, iri=first.iri or other.iri)
