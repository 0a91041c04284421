"""Adopt the ids of files: a record that maps to a term exactly gets its id, and is found by its old one too."""

from collections.abc import Collection as Items
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.merge import mark_merged, redirect_merged_targets
from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.identity import prefixes
from lexarium.domain.record import ALTERNATIVE_ID, Record, RecordState, parse_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import Node, Statement, Text
from lexarium.domain.text.nouns import add_article
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.transfer import import_base
from lexarium.services.transfer.import_report import ValueChange
from lexarium.services.transfer.resource_import.staging import ResourceStager
from lexarium.store import change_log, records, relations, revisions, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.imports import base_values
from lexarium.store.imports.resource_stage import StagedResource
from lexarium.store.transaction import Transaction

# Predicates of the mappings that count. Cross-references are looser: they count where nothing maps exactly.
_MAPPINGS = ("skos:exactMatch", "oboInOwl:hasDbXref")
# Ids of a record and of a term that it maps to.
Match = tuple[str, str]


@dataclass(frozen=True)
class _Term:
    """Term of the files."""

    location: str
    # Names of those that the files have it in.
    collections: frozenset[str]
    iri: str | None
    # The id and IRIs that a mapping may name it by.
    names: frozenset[str]


@dataclass
class RecordAdopter:
    """Give records the ids of the staged terms that they map to.

    An id is part of the log and cannot change: a new record with the statements of the old one gets the new id, and the
    old one is merged into it, so that it redirects and keeps its history.
    """

    transaction: Transaction
    stager: ResourceStager
    actor: str

    def __post_init__(self) -> None:
        self._stage, self._report = self.stager.stage, self.stager.report
        self._at = now_ms()
        # Those that records map to, by id.
        self._terms: dict[str, _Term] = {}

    def adopt(self) -> frozenset[str]:
        """Replace the ids of records that match one term each; return the new ids of those that people have edited."""
        new_ids = self._choose(self._find_matches())
        edited: set[str] = set()
        referring: set[str] = set()
        for batch in records.batched(sorted(new_ids)):
            connection = self.transaction.flush()
            latest = change_log.find_latest(connection, batch)
            edited |= base_values.find_edits(connection, latest.values())
            edited |= base_values.find_unapplied(connection, batch).keys()
            referring |= self._list_referring(latest)
            self._rename(latest, new_ids)
        for batch in records.batched(sorted(referring - new_ids.keys())):
            self._redirect(batch, new_ids)
        return frozenset(new_ids[record_id] for record_id in edited)

    def _find_matches(self) -> list[set[Match]]:
        """Return the published records that map to terms, with these, by the predicate of the mapping."""
        matches: dict[str, set[Match]] = {predicate: set() for predicate in _MAPPINGS}
        connection = self.transaction.flush()
        for groups in self._stage.iter_batches():
            terms = dict(self._parse_terms(groups))
            term_ids = {name: term_id for term_id, term in terms.items() for name in term.names}
            for batch in records.batched(sorted(term_ids)):
                touching = relations.find_touching(connection, batch)
                sources = {item.source for item in touching if item.target in term_ids}
                for record in self._load_candidates(sources):
                    for predicate, value, _ in record.own_statements:
                        term_id = None if isinstance(value, Node) else term_ids.get(value[0])
                        if predicate in matches and term_id is not None:
                            matches[predicate].add((record.id, term_id))
                            self._terms[term_id] = terms[term_id]
        return list(matches.values())

    def _parse_terms(self, groups: Iterable[Sequence[StagedResource]]) -> Iterator[tuple[str, _Term]]:
        """Yield the published terms with their ids."""
        for group in groups:
            parts = [parse_record(item.collection, item.document) for item in group if item.collection]
            if not parts or any(part.state != RecordState.PUBLISHED for part in parts):
                continue
            local_id = parts[0].local_id
            iri = next((part.iri for part in parts if part.iri), None)
            names = {local_id, iri, self.stager.vocabulary.expand_id(local_id), prefixes.expand(local_id)}
            names |= {prefixes.contract(name) for name in names if name}
            yield (
                parts[0].id,
                _Term(
                    self._stage.format_location(group[0]),
                    frozenset(part.collection.name for part in parts),
                    iri,
                    frozenset(filter(None, names)),
                ),
            )

    def _load_candidates(self, record_ids: Items[str]) -> Iterator[Record]:
        """Yield the published records of the vocabulary that the files have no term for by their own ids."""
        slug = self.stager.vocabulary.slug
        own_ids = [item for item in record_ids if split_id(item)[0] == slug and not self._stage.contains(item)]
        for change in change_log.find_latest(self.transaction.flush(), sorted(own_ids)).values():
            record = change.to_record()
            if record.state == RecordState.PUBLISHED:
                yield record

    def _choose(self, matches: Iterable[set[Match]]) -> dict[str, str]:
        """Return the new ids of the records that match one term, and it no other record; warn of the rest."""
        connection = self.transaction.flush()
        taken = records.find_existing_ids(connection, sorted(self._terms))
        chosen: dict[str, str] = {}
        seen: set[str] = set()
        for found in matches:
            pairs = sorted(pair for pair in found if seen.isdisjoint(pair))
            terms = _group(pairs)
            owners = _group((term_id, record_id) for record_id, term_id in pairs)
            seen |= terms.keys() | owners.keys()
            collections = records.find_collections(connection, list(terms))
            problems: dict[tuple[str, str], str] = {}
            for record_id, term_id in pairs:
                if term_id in taken:
                    continue
                problem = self._find_problem(record_id, term_id, terms[record_id], owners[term_id], collections)
                if problem is None:
                    chosen[record_id] = term_id
                else:
                    problems[problem] = self._terms[term_id].location
            for (subject, message), location in problems.items():
                self._report.warnings.add(location, message, subject)
        return chosen

    def _find_problem(
        self,
        record_id: str,
        term_id: str,
        terms: Sequence[str],
        owners: Sequence[str],
        collections: Mapping[str, str],
    ) -> tuple[str, str] | None:
        """Return what is in the way of a match, as the id that it is about and a message; None if nothing is.

        `terms` are all that the record maps to, and `owners` all records that map to the term.
        """
        if len(owners) > 1:
            several = ", ".join(map(get_local_id, owners))
            return get_local_id(term_id), f"several records map to this term, {several}; they keep their ids"
        if len(terms) > 1:
            several = ", ".join(map(get_local_id, terms))
            return get_local_id(record_id), f"this record maps to several terms, {several}; it keeps its id"
        if collections[record_id] not in self._terms[term_id].collections:
            kind = add_article(COLLECTIONS[collections[record_id]].local_name)
            message = f"the record that maps to this term, {get_local_id(record_id)}, is {kind}; it keeps its id"
            return get_local_id(term_id), message
        return None

    def _list_referring(self, latest: Mapping[str, Change]) -> set[str]:
        """Return the records that have relations to others, or have them as a class."""
        connection = self.transaction.flush()
        touching = relations.find_touching(connection, list(latest))
        referring = {relation.source for relation in touching if relation.target in latest}
        for record_id, change in latest.items():
            if COLLECTIONS[change.collection].is_class_collection:
                referring.update(revisions.list_class_members(connection, record_id))
        return referring

    def _rename(self, latest: Mapping[str, Change], new_ids: Mapping[str, str]) -> None:
        before = [change.to_record() for change in latest.values()]
        writes = []
        for record in before:
            renamed = self._build_renamed(redirect_merged_targets(record, new_ids), new_ids[record.id])
            writes.append(RecordWrite(renamed, 1, Action.CREATE))
            change = ValueChange("id", [record.local_id], [renamed.local_id])
            self._report.add_record(
                "adopted", renamed.id, renamed.collection.name, renamed.fields["name"], ["id"], [change]
            )
        for record in before:
            merged = mark_merged(record, new_ids[record.id])
            writes.append(RecordWrite(merged, latest[record.id].version + 1, Action.UPDATE))
        self._save(before, writes)

    def _build_renamed(self, record: Record, new_id: str) -> Record:
        """Return a record under its new id, with its old ids as alternative ones and no mapping to itself."""
        term = self._terms[new_id]
        mappings = [
            item for item in record.own_statements if item.predicate in _MAPPINGS and item.value[0] in term.names
        ]
        renamed = replace(record, id=new_id, iri=term.iri)
        old_ids = [item for item in (record.local_id, record.iri) if item and item not in renamed.alternative_ids]
        added = [Statement(ALTERNATIVE_ID, Text(old_id)) for old_id in old_ids]
        return renamed.replace_statements(mappings, []).add_statements(added)

    def _redirect(self, record_ids: Sequence[str], new_ids: Mapping[str, str]) -> None:
        """Let records refer to others by their new ids. What people have edited stays an edit."""
        connection = self.transaction.flush()
        latest = change_log.find_latest(connection, record_ids)
        before, writes = [], []
        for change in latest.values():
            record = change.to_record()
            redirected = redirect_merged_targets(record, new_ids)
            if record.state == RecordState.MERGED or redirected == record:
                continue
            before.append(record)
            writes.append(RecordWrite(redirected, change.version + 1, Action.UPDATE))
        redirected_records = {write.record.id: write.record for write in writes}
        changes = {record_id: latest[record_id] for record_id in redirected_records}
        import_base.keep_bases(self.transaction, changes, redirected_records, redirected_records, new_ids)
        self._save(before, writes)

    def _save(self, before: Sequence[Record], writes: Sequence[RecordWrite]) -> None:
        change_log.save_records(self.transaction, writes, actor=self.actor, at=self._at)
        after = [write.record for write in writes]
        old = {relation for record in before for relation in record.relations}
        new = {relation for record in after for relation in record.relations}
        change_log.update_relations(self.transaction, sorted(new - old), sorted(old - new))
        vocabularies.update_derived_rows(self.transaction, before, after)


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
