"""Random writes as a Hypothesis state machine, compared with a simple model."""

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import delete, select, update

from lexarium.domain.errors import (
    Conflict,
    InvalidInput,
    LexariumError,
    NotFound,
    RecordMerged,
    RecordRetired,
    VersionConflict,
)
from lexarium.domain.record import ListQuery, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES
from lexarium.domain.text.characters import name_key
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.record_serializer import serialize_record
from lexarium.services.records import queries
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.transfer.export import export_records
from lexarium.store import change_log, schema
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import next_epoch
from tests.support.record_editor import RecordEditor

# Relation types and targets of one record.
RelationSet = set[tuple[str, str]]

LONG_TEXT = {name: collection.definition_field for name, collection in COLLECTIONS.items()}
COLLECTIONS_WITH_CLASS = ("concept", "task")
IMMUTABLE_FIELDS = ("id", "creation_time", "event_stamp", "id_user")

names = st.sampled_from(["a", "A", "b", "ß", "SS", "Éa", "z\u0301", "\U0001f9e0", '"q"\n', "a, b", "ﬁ", "\ue000"])
texts = st.sampled_from(["", "One.", "Two.\n\n“2”"])
external_ids = st.sampled_from(["https://example.org/1", "DOID:1"])
aliases = st.lists(
    st.builds(
        lambda text, lang, scope: {"text": text, "lang": lang, "scope": scope},
        names,
        st.sampled_from(["en", "de"]),
        st.sampled_from(["exact", "broad"]),
    ),
    max_size=3,
    unique_by=lambda alias: tuple(alias.values()),
)


@dataclass
class ExpectedRecord:
    """Expected content of a record at one version."""

    collection: str
    name: str
    text: str = ""
    aliases: list[dict[str, str]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    relations: RelationSet = field(default_factory=set)
    # Its class.
    label: str = ""
    state: RecordState = RecordState.PUBLISHED
    replaced_by: str | None = None

    def to_draft(self) -> dict[str, Any]:
        long_text = LONG_TEXT[self.collection]
        return {
            "name": self.name,
            **({long_text: self.text} if long_text else {}),
            **({"id_concept_class": self.label} if self.collection in COLLECTIONS_WITH_CLASS else {}),
            "aliases": self.aliases,
            "sources": self.sources,
            "relations": group_by_type(self.relations),
        }


@dataclass
class ExpectedMerge:
    """Changes that a merge made to other records."""

    # Number of changes before it.
    change_count: int
    others: dict[str, tuple[ExpectedRecord, ExpectedRecord]]


def to_sets(draft: dict[str, Any]) -> dict[str, Any]:
    """Return a draft with its aliases and sources as sets: their order means nothing."""
    aliases = {(alias["text"], alias["lang"], alias["scope"]) for alias in draft["aliases"]}
    return {**draft, "aliases": aliases, "sources": set(draft["sources"])}


def sort_by_scope(aliases: list[dict[str, str]]) -> list[dict[str, str]]:
    """Sort aliases as a merge takes them over."""
    return sorted(aliases, key=lambda alias: ["exact", "narrow", "broad", "related", "hidden"].index(alias["scope"]))


def group_by_type(relations: RelationSet) -> dict[str, list[str]]:
    targets_by_type: dict[str, list[str]] = {}
    for type_name, target in sorted(relations):
        targets_by_type.setdefault(type_name, []).append(target)
    return targets_by_type


def redirect_relations(identifier: str, model: ExpectedRecord, survivors: dict[str, str]) -> ExpectedRecord:
    """Replace merged targets by their survivors."""
    redirected = copy.deepcopy(model)
    redirected.relations = {(name, survivors.get(target, target)) for name, target in model.relations}
    redirected.relations = {relation for relation in redirected.relations if relation[1] != identifier}
    redirected.label = survivors.get(model.label, model.label)
    return redirected


def drop_version(view: dict[str, Any]) -> dict[str, Any]:
    """Return a record of v1 without what every write changes."""
    version_fields = ("version", "updated", "updated_by", "last_updated")
    kept = {name: value for name, value in view.items() if name not in version_fields}
    return {**kept, "fields": {name: value for name, value in view["fields"].items() if name != "last_updated"}}


class WriteMachine(RuleBasedStateMachine):
    """Random writes by one curator, applied to the catalogue and to the model."""

    database: ClassVar[Database]
    caller: ClassVar[Caller]

    def __init__(self) -> None:
        super().__init__()
        # Without a transaction of ours, which would continue from the old position.
        with self.database.backend.connect_write() as connection, connection.begin():
            for table in (schema.relation_table, schema.record_table, schema.change_table):
                connection.execute(delete(table))
            present = connection.execute(select(schema.catalogue_table.c.epoch)).scalar_one()
            connection.execute(update(schema.catalogue_table).values(revision=0, epoch=next_epoch(present)))
        # Action and content of every version, by record.
        self.versions: dict[str, list[tuple[str, ExpectedRecord]]] = {}
        # Last merge of each record that is merged now.
        self.merges: dict[str, ExpectedMerge] = {}
        # Exports by revision.
        self.exports: dict[int, bytes] = {}
        # Every record at certain revisions.
        self.remembered: dict[int, dict[str, bytes]] = {}
        self.fixed: dict[str, dict[str, Any]] = {}

    # State of the model

    def get_current(self, identifier: str) -> ExpectedRecord:
        return self.versions[identifier][-1][1]

    def list_in_state(self, *states: RecordState) -> list[str]:
        return [record_id for record_id in self.versions if self.get_current(record_id).state in states]

    def pick(self, data: st.DataObject, *states: RecordState) -> str:
        return data.draw(st.sampled_from(self.list_in_state(*states)))

    def has_published(self) -> bool:
        return bool(self.list_in_state(RecordState.PUBLISHED))

    def list_targets(self, collection: str) -> list[tuple[str, str]]:
        published = self.list_in_state(RecordState.PUBLISHED)
        return [
            (name, target)
            for name, relation in RELATION_TYPES.items()
            for target in published
            if self.get_current(target).collection in relation.targets.get(collection, ())
        ]

    def closes_cycle(self, changed_relations: dict[str, RelationSet]) -> bool:
        """Return whether a new relation points to its own record or closes a cycle in the hierarchy."""
        relations = {
            record_id: changed_relations.get(record_id, self.get_current(record_id).relations)
            for record_id in {*self.versions, *changed_relations}
        }
        for source, new_relations in changed_relations.items():
            before = self.get_current(source).relations if source in self.versions else set()
            for type_name, target in new_relations - before:
                if target == source:
                    return True
                if not RELATION_TYPES[type_name].is_hierarchical:
                    continue
                reached, queue = set[str](), [target]
                while queue:
                    node = queue.pop()
                    if node not in reached:
                        reached.add(node)
                        queue += [
                            end for name, end in relations.get(node, set()) if name in RELATION_TYPES.hierarchical
                        ]
                if source in reached:
                    return True
        return False

    def draw_record(self, data: st.DataObject, collection: str) -> ExpectedRecord:
        """Draw a draft with relations to published records, which may close a cycle."""
        relations = {("exactMatch", data.draw(external_ids))} if data.draw(st.booleans()) else set()
        targets = self.list_targets(collection)
        if targets:
            relations |= set(data.draw(st.lists(st.sampled_from(targets), max_size=2)))
        text = data.draw(texts) if LONG_TEXT[collection] else ""
        sources = data.draw(st.lists(texts.filter(bool), max_size=2, unique=True))
        labels = [
            "",
            *(
                record_id
                for record_id in self.list_in_state(RecordState.PUBLISHED)
                if self.get_current(record_id).collection == "concept_class"
            ),
        ]
        label = data.draw(st.sampled_from(labels)) if collection in COLLECTIONS_WITH_CLASS else ""
        return ExpectedRecord(collection, data.draw(names), text, data.draw(aliases), sources, relations, label)

    # Writes

    def apply_write(self, identifier: str, action: str, after: ExpectedRecord, saved: VersionedRecord) -> None:
        """Apply the write of one record to the model."""
        if identifier in self.versions and after == self.get_current(identifier):
            assert saved.version == len(self.versions[identifier])
            return
        self.versions.setdefault(identifier, []).append((action, copy.deepcopy(after)))
        assert saved.version == len(self.versions[identifier])

    def run_write(self, task: Any) -> VersionedRecord:
        saved: VersionedRecord = self.database.run_write(
            lambda transaction: task(RecordEditor(transaction, self.caller))
        )
        return saved

    def expect_refusal(self, kind: type[LexariumError], task: Any) -> None:
        with pytest.raises(kind):
            self.run_write(task)

    def get_location(self, identifier: str) -> tuple[Any, str, int]:
        return COLLECTIONS[self.get_current(identifier).collection], identifier, len(self.versions[identifier])

    def render_records(self) -> dict[str, bytes]:
        with self.database.read() as snapshot:
            changes = change_log.find_latest(snapshot, list(self.versions))
            return {record_id: orjson.dumps(serialize_record(change)) for record_id, change in changes.items()}

    @rule(data=st.data(), collection=st.sampled_from(["concept", "concept", "disorder", *COLLECTIONS]))
    def create(self, data: st.DataObject, collection: str) -> None:
        draft_model = self.draw_record(data, collection)
        saved = self.run_write(lambda writer: writer.create(COLLECTIONS[collection], draft_model.to_draft()))
        assert saved.record.id not in self.versions
        self.apply_write(saved.record.id, "create", draft_model, saved)

    @precondition(has_published)
    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        identifier = self.pick(data, RecordState.PUBLISHED)
        draft_model = self.draw_record(data, self.get_current(identifier).collection)
        self.write(identifier, draft_model, lambda writer, before: writer.update(before, draft_model.to_draft()))

    @precondition(has_published)
    @rule(data=st.data())
    def patch(self, data: st.DataObject) -> None:
        identifier = self.pick(data, RecordState.PUBLISHED)
        draft_model, before = (
            self.draw_record(data, self.get_current(identifier).collection),
            self.get_current(identifier),
        )
        attribute_names = {
            "name": "name",
            LONG_TEXT[before.collection]: "text",
            "aliases": "aliases",
            "sources": "sources",
        }
        if before.collection in COLLECTIONS_WITH_CLASS:
            attribute_names["id_concept_class"] = "label"
        chosen = data.draw(st.sets(st.sampled_from(sorted(filter(None, attribute_names)))))
        patch = {name: value for name, value in draft_model.to_draft().items() if name in chosen}
        after = copy.deepcopy(before)
        for name in chosen:
            setattr(after, attribute_names[name], getattr(draft_model, attribute_names[name]))
        if data.draw(st.booleans()):
            patch["relations"] = None
            after.relations = set()
        self.write(identifier, after, lambda writer, before: writer.patch(before, patch))

    @precondition(has_published)
    @rule(data=st.data())
    def relate(self, data: st.DataObject) -> None:
        identifier = self.pick(data, RecordState.PUBLISHED)
        before = self.get_current(identifier)
        relation, target = data.draw(st.sampled_from([*self.list_targets(before.collection), ("exactMatch", "x:1")]))
        after = copy.deepcopy(before)
        after.relations.add((relation, target))
        self.write(identifier, after, lambda writer, before: writer.add_relation(before, relation, target))

    def write(self, identifier: str, after: ExpectedRecord, task: Any) -> None:
        """Edit a published record; an edit that closes a cycle must be refused."""

        def edit(writer: RecordEditor) -> VersionedRecord:
            saved: VersionedRecord = task(writer, writer.get_published(*self.get_location(identifier)))
            return saved

        if self.closes_cycle({identifier: after.relations}):
            self.expect_refusal(InvalidInput, edit)
        else:
            self.apply_write(identifier, "update", after, self.run_write(edit))

    @precondition(has_published)
    @rule(data=st.data())
    def unrelate(self, data: st.DataObject) -> None:
        identifier = self.pick(data, RecordState.PUBLISHED)
        after = copy.deepcopy(self.get_current(identifier))
        if not after.relations:
            self.expect_refusal(
                NotFound,
                lambda writer: writer.remove_relation(
                    writer.get_published(*self.get_location(identifier)), "exactMatch", "x:1"
                ),
            )
            return
        # Ids are random; the order of creation is the same when an example is run again.
        places = {record_id: place for place, record_id in enumerate(self.versions)}
        relations = sorted(after.relations, key=lambda pair: (pair[0], places.get(pair[1], -1), pair[1]))
        relation, target = data.draw(st.sampled_from(relations))
        after.relations.remove((relation, target))
        self.write(identifier, after, lambda writer, before: writer.remove_relation(before, relation, target))

    @precondition(has_published)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        identifier = self.pick(data, RecordState.PUBLISHED)
        replaced_by = data.draw(st.sampled_from([None, *self.list_in_state(RecordState.PUBLISHED)]))
        if replaced_by == identifier:
            self.expect_refusal(
                InvalidInput,
                lambda writer: writer.retire(writer.get_published(*self.get_location(identifier)), replaced_by),
            )
            return
        after = copy.deepcopy(self.get_current(identifier))
        after.state, after.replaced_by = RecordState.RETIRED, replaced_by
        saved = self.run_write(
            lambda writer: writer.retire(writer.get_published(*self.get_location(identifier)), replaced_by)
        )
        self.apply_write(identifier, "retire", after, saved)

    def list_mergeable(self) -> list[tuple[str, str]]:
        published = self.list_in_state(RecordState.PUBLISHED)
        return [
            (first, second)
            for first in published
            for second in published
            if first != second and self.get_current(first).collection == self.get_current(second).collection
        ]

    def copy_models(self) -> dict[str, ExpectedRecord]:
        return {record_id: copy.deepcopy(self.get_current(record_id)) for record_id in self.versions}

    @staticmethod
    def apply_merge(models: dict[str, ExpectedRecord], identifier: str, survivor_id: str) -> dict[str, ExpectedRecord]:
        """Return the expected records after a merge."""
        merged_record, survivor = copy.deepcopy(models[identifier]), copy.deepcopy(models[survivor_id])
        label_keys = {name_key(survivor.name), *(name_key(alias["text"]) for alias in survivor.aliases)}
        for alias in [
            {"text": merged_record.name, "lang": "en", "scope": "exact"},
            *sort_by_scope(merged_record.aliases),
        ]:
            if name_key(alias["text"]) not in label_keys:
                label_keys.add(name_key(alias["text"]))
                survivor.aliases.append(alias)
        survivor.text = survivor.text if survivor.text.strip() else merged_record.text
        survivor.sources += [source for source in merged_record.sources if source not in survivor.sources]
        survivor.relations = {
            relation
            for relation in survivor.relations | merged_record.relations
            if relation[1] not in (identifier, survivor_id)
        }
        merged_record.state, merged_record.replaced_by, merged_record.relations = RecordState.MERGED, survivor_id, set()
        after = {identifier: merged_record, survivor_id: survivor}
        for other, model in models.items():
            names = {model.label, *(target for _, target in model.relations)}
            if other not in after and model.state != RecordState.MERGED and identifier in names:
                after[other] = redirect_relations(other, model, {identifier: survivor_id})
        return after

    def merge_pair(self, identifier: str, survivor_id: str) -> bool:
        after = self.apply_merge(self.copy_models(), identifier, survivor_id)
        if self.closes_cycle({record_id: model.relations for record_id, model in after.items()}):
            self.expect_refusal(
                Conflict, lambda writer: writer.merge(writer.get_published(*self.get_location(identifier)), survivor_id)
            )
            return False
        number = sum(map(len, self.versions.values()))
        saved = self.run_write(
            lambda writer: writer.merge(writer.get_published(*self.get_location(identifier)), survivor_id)
        )
        before = {record_id: self.get_current(record_id) for record_id in after}
        for record_id, model in after.items():
            self.versions[record_id].append(("merge", model))
        assert (saved.record.id, saved.version) == (survivor_id, len(self.versions[survivor_id]))
        others = {record_id: (before[record_id], after[record_id]) for record_id in after if record_id != identifier}
        self.merges[identifier] = ExpectedMerge(number, others)
        return True

    @precondition(lambda self: bool(self.list_mergeable()))
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        self.merge_pair(*data.draw(st.sampled_from(self.list_mergeable())))

    @precondition(lambda self: bool(self.list_mergeable()))
    @rule(data=st.data())
    def merge_and_revert(self, data: st.DataObject) -> None:
        identifier, survivor_id = data.draw(st.sampled_from(self.list_mergeable()))
        before = {record_id: copy.deepcopy(self.get_current(record_id)) for record_id in self.versions}
        views_before = {record_id: orjson.loads(view) for record_id, view in self.render_records().items()}
        if not self.merge_pair(identifier, survivor_id):
            return
        self.revert_to(identifier, len(self.versions[identifier]) - 1)
        assert {record_id: self.get_current(record_id) for record_id in self.versions} == before
        for record_id, view in self.render_records().items():
            assert drop_version(orjson.loads(view)) == drop_version(views_before[record_id])

    @precondition(lambda self: bool(self.list_mergeable()))
    @rule(data=st.data())
    def merge_twice_and_revert_first(self, data: st.DataObject) -> None:
        """The result must equal the second merge alone, unless the second must be reverted first."""
        before = self.copy_models()
        first = data.draw(st.sampled_from(self.list_mergeable()))
        if not self.merge_pair(*first) or not self.list_mergeable():
            return
        # Prefer a record of the first merge or a close relative, which is likely to conflict.
        near = [pair for pair in self.list_mergeable() if first[1] in pair]
        second = data.draw(st.sampled_from(near or self.list_mergeable()) | st.sampled_from(self.list_mergeable()))
        if not self.merge_pair(*second):
            return
        if self.revert_to(first[0], len(self.versions[first[0]]) - 1):
            assert self.copy_models() == before | self.apply_merge(before, *second)
            assert self.revert_to(second[0], len(self.versions[second[0]]) - 1)
        else:
            assert self.revert_to(second[0], len(self.versions[second[0]]) - 1)
            assert self.revert_to(first[0], len(self.versions[first[0]]) - 1)
        assert self.copy_models() == before

    @precondition(lambda self: bool(self.versions))
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        identifier = self.pick(data, *RecordState)
        self.revert_to(identifier, data.draw(st.integers(1, len(self.versions[identifier]))))

    def map_survivors(self, identifier: str) -> dict[str, str]:
        """Return the survivor of every merged record, as if this one were not merged."""
        ends = {}
        for record_id in self.list_in_state(RecordState.MERGED):
            end = record_id
            while end != identifier and self.get_current(end).state == RecordState.MERGED:
                end = str(self.get_current(end).replaced_by)
            ends[record_id] = end
        return {record_id: end for record_id, end in ends.items() if record_id != identifier}

    def revert_to(self, identifier: str, number: int) -> bool:
        """Return whether the revert was done; a refusal must be right."""
        collection, _, version = self.get_location(identifier)
        past = self.versions[identifier][number - 1][1]
        after = {identifier: redirect_relations(identifier, past, self.map_survivors(identifier))}
        was_merged = self.get_current(identifier).state == RecordState.MERGED
        if was_merged:
            for other, (before, merged_model) in self.merges[identifier].others.items():
                model = copy.deepcopy(self.get_current(other))
                model.aliases = [
                    item for item in model.aliases if item in before.aliases or item not in merged_model.aliases
                ]
                model.sources = [
                    item for item in model.sources if item in before.sources or item not in merged_model.sources
                ]
                model.relations = (model.relations - (merged_model.relations - before.relations)) | (
                    before.relations - merged_model.relations
                )
                model.label = before.label if model.label == merged_model.label else model.label
                if model.text == merged_model.text:
                    model.text = before.text
                after[other] = model

        def revert_record(writer: RecordEditor) -> VersionedRecord:
            with self.database.read() as snapshot:
                change = queries.get_version(snapshot, collection, identifier, number)
            return writer.revert(change, version)

        try:
            saved = self.run_write(revert_record)
        except Conflict as conflict:
            first = conflict.details.get("undo_first")
            if first is not None:
                assert was_merged
                assert self.merges[first].change_count > self.merges[identifier].change_count
            else:
                has_cycle = self.closes_cycle({item: model.relations for item, model in after.items()})
                assert has_cycle or past.state == RecordState.MERGED
            return False
        assert past.state != RecordState.MERGED
        if was_merged:
            assert all(self.get_current(other).state != RecordState.MERGED for other in self.merges[identifier].others)
            for item, model in after.items():
                self.versions[item].append(("revert", model))
            del self.merges[identifier]
            assert saved.version == len(self.versions[identifier])
        else:
            self.apply_write(identifier, "revert", after[identifier], saved)
        return True

    @precondition(lambda self: bool(self.versions))
    @rule(data=st.data(), off=st.sampled_from([-1, 1]))
    def write_invalid(self, data: st.DataObject, off: int) -> None:
        """Stale versions and unpublished records must be refused and change nothing."""
        identifier = self.pick(data, *RecordState)
        collection, _, version = self.get_location(identifier)
        state = self.get_current(identifier).state
        kind = {
            RecordState.PUBLISHED: VersionConflict,
            RecordState.RETIRED: RecordRetired,
            RecordState.MERGED: RecordMerged,
        }[state]
        self.expect_refusal(
            kind,
            lambda writer: writer.patch(writer.get_published(collection, identifier, version + off), {"name": "x"}),
        )
        self.expect_refusal(
            kind, lambda writer: writer.retire(writer.get_published(collection, identifier, version + off))
        )
        self.expect_refusal(
            NotFound, lambda writer: writer.retire(writer.get_published(collection, "trm_none", version))
        )

    @rule()
    def remember(self) -> None:
        with self.database.read() as snapshot:
            revision = read_position(snapshot).revision
        self.remembered[revision] = self.render_records()
        self.exports[revision] = b"".join(export_records(self.database, Vocabulary(), FORMATS["v-alpha"]))

    # Invariants

    @invariant()
    def check_records(self) -> None:
        with self.database.read() as snapshot:
            changes = change_log.find_latest(snapshot, list(self.versions))
            assert read_position(snapshot).revision == sum(map(len, self.versions.values()))
        for identifier in self.versions:
            view, model = serialize_record(changes[identifier]), self.get_current(identifier)
            assert to_sets({name: view[name] for name in model.to_draft()}) == to_sets(model.to_draft())
            assert (view["state"], view["replaced_by"]) == (model.state, model.replaced_by)
            assert view["version"] == len(self.versions[identifier])
            if "alias" in view:
                english = [alias["text"] for alias in model.aliases if alias["lang"] == "en"]
                separator = "; " if any("," in text for text in english) else ", "
                # Aliases of one scope stand together.
                assert sorted(filter(None, view["alias"].split(separator))) == sorted(english)
            fixed = {name: view[name] for name in IMMUTABLE_FIELDS if name in view}
            assert self.fixed.setdefault(identifier, fixed) == fixed

    @invariant()
    def check_histories(self) -> None:
        with self.database.read() as snapshot:
            revision = read_position(snapshot).revision
            feed = queries.list_changes(snapshot, 0, 10_000)
            assert [change.seq for change in feed] == list(range(1, revision + 1))
            for identifier, versions in self.versions.items():
                collection = COLLECTIONS[versions[0][1].collection]
                history = queries.list_versions(snapshot, collection, identifier, revision)
                assert history == [change for change in reversed(feed) if change.record_id == identifier]
                history_summary = [
                    (change.version, change.action, change.to_record().state) for change in reversed(history)
                ]
                assert history_summary == [(n, action, model.state) for n, (action, model) in enumerate(versions, 1)]
                for change, (_, model) in zip(reversed(history), versions, strict=True):
                    view = serialize_record(change)
                    assert to_sets({name: view[name] for name in model.to_draft()}) == to_sets(model.to_draft())

    @invariant()
    def check_relations(self) -> None:
        published = self.list_in_state(RecordState.PUBLISHED)
        expected: dict[str, set[tuple[str, str, str, str]]] = {record_id: set() for record_id in published}
        for source in published:
            for type_name, target in self.get_current(source).relations:
                if RELATION_TYPES[type_name].is_mapping:
                    expected[source].add((type_name, "out", target, ""))
                elif target in expected:
                    expected[source].add((type_name, "out", target, self.get_current(target).name))
                    expected[target].add((type_name, "in", source, self.get_current(source).name))
        with self.database.read() as snapshot:
            for identifier in published:
                found = queries.get_record_at(snapshot, identifier, read_position(snapshot).revision)
                items = queries.list_related(snapshot, found.change)
                related = [(item["relation"], item["direction"], item["id"], item["name"]) for item in items]
                assert len(related) == len(set(related))
                assert set(related) == expected[identifier]

    @invariant()
    def check_lists(self) -> None:
        with open_valpha_reader(self.database) as reader:
            for collection in COLLECTIONS.values():
                rows = [
                    record_id
                    for record_id in self.list_in_state(RecordState.PUBLISHED)
                    if self.get_current(record_id).collection == collection.name
                ]
                if collection.sort_by_name:
                    rows.sort(key=lambda record_id: (self.get_current(record_id).name.casefold(), record_id))
                else:
                    rows.sort()
                listed = orjson.loads(b"".join(reader.iter_collection(collection)))
                assert [record["id"] for record in listed] == rows
                assert [record["name"] for record in listed] == [self.get_current(record_id).name for record_id in rows]

    @invariant()
    def check_past_revisions(self) -> None:
        with self.database.read() as snapshot:
            for revision, views in self.remembered.items():
                for identifier, view in views.items():
                    history = queries.list_versions(
                        snapshot, COLLECTIONS[self.get_current(identifier).collection], identifier, revision
                    )
                    assert orjson.dumps(serialize_record(history[0])) == view
                    if history[0].to_record().state == RecordState.PUBLISHED:
                        assert queries.get_record_at(snapshot, identifier, revision).change == history[0]
                assert self.list_as_of(snapshot, revision) == {
                    record_id: view
                    for record_id, view in views.items()
                    if orjson.loads(view)["state"] == RecordState.PUBLISHED
                }

    @invariant()
    def check_past_exports(self) -> None:
        for revision, exported in self.exports.items():
            assert b"".join(export_records(self.database, Vocabulary(), FORMATS["v-alpha"], as_of=revision)) == exported

    def list_as_of(self, snapshot: Any, revision: int) -> dict[str, bytes]:
        views: dict[str, bytes] = {}
        for name in COLLECTIONS:
            cursor, item_count = None, 0
            while True:
                page = queries.list_records(snapshot, self.database.counts, ListQuery(name, revision), cursor, 2)
                views |= {change.record_id: orjson.dumps(serialize_record(change)) for change in page.items}
                item_count += len(page.items)
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert page.total == item_count
        return views

    @invariant()
    def check_consistency(self) -> None:
        report = check_database(self.database)
        assert report.problems == []
        assert not [remark for remark in report.remarks if "comes back" in remark]
