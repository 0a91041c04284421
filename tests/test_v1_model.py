"""Any sequence of writes, held against a plain model: what is, what was, who relates to whom, and the way back."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import delete, select, update

from lexarium.domain.about import About
from lexarium.domain.accounts import Role
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Conflict, Gone, Invalid, LexariumError, Moved, NotFound, Stale
from lexarium.domain.relations import HIERARCHICAL, RELATIONS
from lexarium.domain.text import name_key
from lexarium.exchange.formats import FORMATS
from lexarium.service import looking
from lexarium.service.access import Caller, add_account
from lexarium.service.checking import check
from lexarium.service.desk import Desk, Saved
from lexarium.service.exporting import export
from lexarium.service.reading import reading
from lexarium.service.views import record_view
from lexarium.store import log, schema
from lexarium.store.backend import epoch_after, read_position
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.store.versions import Listing
from tests.databases import NewUrl

Edges = set[tuple[str, str]]
"""Of one record: relation and target."""

LONG_TEXT = {"concept": "definition_text", "task": "definition_text", "disorder": "definition"} | {
    "contrast": None,
    "concept_class": "description",
}
CLASSED = ("concept", "task")
NEVER_EDITED = ("id", "creation_time", "event_stamp", "id_user")

names = st.sampled_from(["a", "A", "b", "ß", "SS", "Éa", "z\u0301", "\U0001f9e0", '"q"\n', "a, b", "ﬁ", "\ue000"])
texts = st.sampled_from(["", "One.", "Two.\n\n“2”"])
outside = st.sampled_from(["https://example.org/1", "DOID:1"])
aliases = st.lists(
    st.builds(
        lambda text, lang, scope: {"text": text, "lang": lang, "scope": scope},
        names,
        st.sampled_from(["en", "de"]),
        st.sampled_from(["exact", "broad"]),
    ),
    max_size=3,
)


@dataclass
class Model:
    """What a record should be at one version."""

    collection: str
    name: str
    text: str = ""
    aliases: list[dict[str, str]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    edges: Edges = field(default_factory=set)
    label: str = ""
    """Its class."""
    state: State = State.PUBLISHED
    replaced_by: str | None = None

    def draft(self) -> dict[str, Any]:
        long_text = LONG_TEXT[self.collection]
        return {
            "name": self.name,
            **({long_text: self.text} if long_text else {}),
            **({"id_concept_class": self.label} if self.collection in CLASSED else {}),
            "aliases": self.aliases,
            "sources": self.sources,
            "relations": by_relation(self.edges),
        }


@dataclass
class Merge:
    """What a merge made of records other than the one that was merged."""

    number: int
    """How many changes there had been before it."""
    others: dict[str, tuple[Model, Model]]


def by_relation(edges: Edges) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for relation, target in sorted(edges):
        found.setdefault(relation, []).append(target)
    return found


def turned(identifier: str, model: Model, survivors: dict[str, str]) -> Model:
    """The record with survivors in place of the merged ones that it names."""
    after = copy.deepcopy(model)
    after.edges = {(name, survivors.get(target, target)) for name, target in model.edges}
    after.edges = {edge for edge in after.edges if edge[1] != identifier}
    after.label = survivors.get(model.label, model.label)
    return after


class Writes(RuleBasedStateMachine):
    """Random writes by one curator, each followed in the model."""

    database: ClassVar[Database]
    caller: ClassVar[Caller]

    def __init__(self) -> None:
        super().__init__()
        # Not by a transaction of ours, which would count on from where the catalogue stood.
        with self.database.backend.writing() as connection, connection.begin():
            for table in (schema.relation, schema.record, schema.change):
                connection.execute(delete(table))
            present = connection.execute(select(schema.catalogue.c.epoch)).scalar_one()
            connection.execute(update(schema.catalogue).values(revision=0, epoch=epoch_after(present)))
        self.versions: dict[str, list[tuple[str, Model]]] = {}
        """Of each record every version's action and content."""
        self.merges: dict[str, Merge] = {}
        """The last merge of each record that is merged now."""
        self.exports: dict[int, bytes] = {}
        """What was exported at those revisions."""
        self.past: dict[int, dict[str, bytes]] = {}
        """What every record looked like at the revisions that were remembered."""
        self.fixed: dict[str, dict[str, Any]] = {}

    # What the model knows.

    def now(self, identifier: str) -> Model:
        return self.versions[identifier][-1][1]

    def in_state(self, *states: State) -> list[str]:
        return [each for each in self.versions if self.now(each).state in states]

    def pick(self, data: st.DataObject, *states: State) -> str:
        return data.draw(st.sampled_from(self.in_state(*states)))

    def has_published(self) -> bool:
        return bool(self.in_state(State.PUBLISHED))

    def targets(self, collection: str) -> list[tuple[str, str]]:
        published = self.in_state(State.PUBLISHED)
        return [
            (name, target)
            for name, relation in RELATIONS.items()
            if relation.source == collection
            for target in published
            if self.now(target).collection == relation.target
        ]

    def closes_circle(self, changed: dict[str, Edges]) -> bool:
        """Whether a relation that is new joins a record to itself or, a hierarchical one, comes to lie on a circle."""
        edges = {each: changed.get(each, self.now(each).edges) for each in {*self.versions, *changed}}
        for source, own in changed.items():
            before = self.now(source).edges if source in self.versions else set()
            for relation, target in own - before:
                if target == source:
                    return True
                if not RELATIONS[relation].hierarchical:
                    continue
                reached, ways = set[str](), [target]
                while ways:
                    here = ways.pop()
                    if here not in reached:
                        reached.add(here)
                        ways += [end for name, end in edges.get(here, set()) if name in HIERARCHICAL]
                if source in reached:
                    return True
        return False

    def wanted(self, data: st.DataObject, collection: str) -> Model:
        """Any draft; its relations name published records, but may close a circle."""
        edges = {("exactMatch", data.draw(outside))} if data.draw(st.booleans()) else set()
        there = self.targets(collection)
        if there:
            edges |= set(data.draw(st.lists(st.sampled_from(there), max_size=2)))
        text = data.draw(texts) if LONG_TEXT[collection] else ""
        sources = data.draw(st.lists(texts.filter(bool), max_size=2))
        labels = [
            "",
            *(each for each in self.in_state(State.PUBLISHED) if self.now(each).collection == "concept_class"),
        ]
        label = data.draw(st.sampled_from(labels)) if collection in CLASSED else ""
        return Model(collection, data.draw(names), text, data.draw(aliases), sources, edges, label)

    # What is done.

    def done(self, identifier: str, action: str, after: Model, saved: Saved) -> None:
        """Follow a write of one record."""
        if identifier in self.versions and after == self.now(identifier):
            assert saved.version == len(self.versions[identifier])
            return
        self.versions.setdefault(identifier, []).append((action, copy.deepcopy(after)))
        assert saved.version == len(self.versions[identifier])

    def desk(self, work: Any) -> Saved:
        saved: Saved = self.database.run(lambda transaction: work(Desk(transaction, self.caller)))
        return saved

    def refused(self, kind: type[LexariumError], work: Any) -> None:
        with pytest.raises(kind):
            self.desk(work)

    def at(self, identifier: str) -> tuple[Any, str, int]:
        return COLLECTIONS[self.now(identifier).collection], identifier, len(self.versions[identifier])

    def looks(self) -> dict[str, bytes]:
        with self.database.read() as snapshot:
            found = log.latest(snapshot, list(self.versions))
            return {each: orjson.dumps(record_view(change)) for each, change in found.items()}

    @rule(data=st.data(), collection=st.sampled_from(["concept", "concept", "disorder", *COLLECTIONS]))
    def create(self, data: st.DataObject, collection: str) -> None:
        wanted = self.wanted(data, collection)
        saved = self.desk(lambda desk: desk.create(COLLECTIONS[collection], wanted.draft()))
        assert saved.whole.id not in self.versions
        self.done(saved.whole.id, "create", wanted, saved)

    @precondition(has_published)
    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        identifier = self.pick(data, State.PUBLISHED)
        wanted = self.wanted(data, self.now(identifier).collection)
        self.write(identifier, wanted, lambda desk, before: desk.edit(before, wanted.draft()))

    @precondition(has_published)
    @rule(data=st.data())
    def patch(self, data: st.DataObject) -> None:
        identifier = self.pick(data, State.PUBLISHED)
        wanted, before = self.wanted(data, self.now(identifier).collection), self.now(identifier)
        names_of = {"name": "name", LONG_TEXT[before.collection]: "text", "aliases": "aliases", "sources": "sources"}
        if before.collection in CLASSED:
            names_of["id_concept_class"] = "label"
        chosen = data.draw(st.sets(st.sampled_from(sorted(filter(None, names_of)))))
        patch = {name: value for name, value in wanted.draft().items() if name in chosen}
        after = copy.deepcopy(before)
        for name in chosen:
            setattr(after, names_of[name], getattr(wanted, names_of[name]))
        if data.draw(st.booleans()):
            patch["relations"] = None
            after.edges = set()
        self.write(identifier, after, lambda desk, before: desk.patch(before, patch))

    @precondition(has_published)
    @rule(data=st.data())
    def relate(self, data: st.DataObject) -> None:
        identifier = self.pick(data, State.PUBLISHED)
        before = self.now(identifier)
        relation, target = data.draw(st.sampled_from([*self.targets(before.collection), ("exactMatch", "x:1")]))
        after = copy.deepcopy(before)
        after.edges.add((relation, target))
        self.write(identifier, after, lambda desk, before: desk.relate(before, relation, target))

    def write(self, identifier: str, after: Model, work: Any) -> None:
        """An edit of a published record, which is refused where it closes a circle."""

        def edit(desk: Desk) -> Saved:
            saved: Saved = work(desk, desk.current(*self.at(identifier)))
            return saved

        if self.closes_circle({identifier: after.edges}):
            self.refused(Invalid, edit)
        else:
            self.done(identifier, "update", after, self.desk(edit))

    @precondition(has_published)
    @rule(data=st.data())
    def unrelate(self, data: st.DataObject) -> None:
        identifier = self.pick(data, State.PUBLISHED)
        after = copy.deepcopy(self.now(identifier))
        if not after.edges:
            self.refused(NotFound, lambda desk: desk.unrelate(desk.current(*self.at(identifier)), "exactMatch", "x:1"))
            return
        relation, target = data.draw(st.sampled_from(sorted(after.edges)))
        after.edges.remove((relation, target))
        self.write(identifier, after, lambda desk, before: desk.unrelate(before, relation, target))

    @precondition(has_published)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        identifier = self.pick(data, State.PUBLISHED)
        replaced_by = data.draw(st.sampled_from([None, *self.in_state(State.PUBLISHED)]))
        if replaced_by == identifier:
            self.refused(Invalid, lambda desk: desk.retire(desk.current(*self.at(identifier)), replaced_by))
            return
        after = copy.deepcopy(self.now(identifier))
        after.state, after.replaced_by = State.RETIRED, replaced_by
        saved = self.desk(lambda desk: desk.retire(desk.current(*self.at(identifier)), replaced_by))
        self.done(identifier, "retire", after, saved)

    def mergeable(self) -> list[tuple[str, str]]:
        published = self.in_state(State.PUBLISHED)
        return [
            (one, other)
            for one in published
            for other in published
            if one != other and self.now(one).collection == self.now(other).collection
        ]

    def models(self) -> dict[str, Model]:
        return {each: copy.deepcopy(self.now(each)) for each in self.versions}

    @staticmethod
    def merged(models: dict[str, Model], identifier: str, into: str) -> dict[str, Model]:
        """What a merge should make of the records it changes."""
        gone, kept = copy.deepcopy(models[identifier]), copy.deepcopy(models[into])
        known = {name_key(kept.name), *(name_key(alias["text"]) for alias in kept.aliases)}
        for alias in [{"text": gone.name, "lang": "en", "scope": "exact"}, *gone.aliases]:
            if name_key(alias["text"]) not in known:
                known.add(name_key(alias["text"]))
                kept.aliases.append(alias)
        kept.edges = {edge for edge in kept.edges | gone.edges if edge[1] not in (identifier, into)}
        gone.state, gone.replaced_by, gone.edges = State.MERGED, into, set()
        after = {identifier: gone, into: kept}
        for other, model in models.items():
            names = {model.label, *(target for _, target in model.edges)}
            if other not in after and model.state != State.MERGED and identifier in names:
                after[other] = turned(other, model, {identifier: into})
        return after

    def merge_pair(self, identifier: str, into: str) -> bool:
        after = self.merged(self.models(), identifier, into)
        if self.closes_circle({each: model.edges for each, model in after.items()}):
            self.refused(Conflict, lambda desk: desk.merge(desk.current(*self.at(identifier)), into))
            return False
        number = sum(map(len, self.versions.values()))
        saved = self.desk(lambda desk: desk.merge(desk.current(*self.at(identifier)), into))
        before = {each: self.now(each) for each in after}
        for each, model in after.items():
            self.versions[each].append(("merge", model))
        assert (saved.whole.id, saved.version) == (into, len(self.versions[into]))
        others = {each: (before[each], after[each]) for each in after if each != identifier}
        self.merges[identifier] = Merge(number, others)
        return True

    @precondition(lambda self: bool(self.mergeable()))
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        self.merge_pair(*data.draw(st.sampled_from(self.mergeable())))

    @precondition(lambda self: bool(self.mergeable()))
    @rule(data=st.data())
    def merge_and_take_it_back(self, data: st.DataObject) -> None:
        identifier, into = data.draw(st.sampled_from(self.mergeable()))
        before = {each: copy.deepcopy(self.now(each)) for each in self.versions}
        looked = {each: orjson.loads(look) for each, look in self.looks().items()}
        if not self.merge_pair(identifier, into):
            return
        self.revert_to(identifier, len(self.versions[identifier]) - 1)
        assert {each: self.now(each) for each in self.versions} == before
        marks = ("version", "updated", "updated_by", "last_updated")
        for each, look in self.looks().items():
            now = orjson.loads(look)
            assert {k: v for k, v in now.items() if k not in marks} == {
                k: v for k, v in looked[each].items() if k not in marks
            }

    @precondition(lambda self: bool(self.mergeable()))
    @rule(data=st.data())
    def merge_twice_and_take_the_first_back(self, data: st.DataObject) -> None:
        """It is as if there had been only the second; or that one must be taken back before."""
        before = self.models()
        first = data.draw(st.sampled_from(self.mergeable()))
        if not self.merge_pair(*first) or not self.mergeable():
            return
        # One of the two records of the first, or one that is close to them, is likely to stand in its way.
        near = [pair for pair in self.mergeable() if first[1] in pair]
        second = data.draw(st.sampled_from(near or self.mergeable()) | st.sampled_from(self.mergeable()))
        if not self.merge_pair(*second):
            return
        if self.revert_to(first[0], len(self.versions[first[0]]) - 1):
            assert self.models() == before | self.merged(before, *second)
            assert self.revert_to(second[0], len(self.versions[second[0]]) - 1)
        else:
            assert self.revert_to(second[0], len(self.versions[second[0]]) - 1)
            assert self.revert_to(first[0], len(self.versions[first[0]]) - 1)
        assert self.models() == before

    @precondition(lambda self: bool(self.versions))
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        identifier = self.pick(data, *State)
        self.revert_to(identifier, data.draw(st.integers(1, len(self.versions[identifier]))))

    def survivors(self, identifier: str) -> dict[str, str]:
        """Of every record that is merged, what it has come to be; this one is taken for not merged."""
        found = {}
        for each in self.in_state(State.MERGED):
            end = each
            while end != identifier and self.now(end).state == State.MERGED:
                end = str(self.now(end).replaced_by)
            found[each] = end
        return {each: end for each, end in found.items() if each != identifier}

    def revert_to(self, identifier: str, number: int) -> bool:
        """Whether it was done; if not, it was right to refuse it."""
        collection, _, version = self.at(identifier)
        past = self.versions[identifier][number - 1][1]
        after = {identifier: turned(identifier, past, self.survivors(identifier))}
        was_merged = self.now(identifier).state == State.MERGED
        if was_merged:
            for other, (before, made) in self.merges[identifier].others.items():
                model = copy.deepcopy(self.now(other))
                model.aliases = [each for each in model.aliases if each in before.aliases or each not in made.aliases]
                model.edges = (model.edges - (made.edges - before.edges)) | (before.edges - made.edges)
                model.label = before.label if model.label == made.label else model.label
                after[other] = model

        def work(desk: Desk) -> Saved:
            with self.database.read() as snapshot:
                change = looking.version(snapshot, collection, identifier, number)
            return desk.revert(change, version)

        try:
            saved = self.desk(work)
        except Conflict as refusal:
            first = refusal.details.get("undo_first")
            if first is not None:
                assert was_merged
                assert self.merges[first].number > self.merges[identifier].number
            else:
                circle = self.closes_circle({each: model.edges for each, model in after.items()})
                assert circle or past.state == State.MERGED
            return False
        assert past.state != State.MERGED
        if was_merged:
            assert all(self.now(other).state != State.MERGED for other in self.merges[identifier].others)
            for each, model in after.items():
                self.versions[each].append(("revert", model))
            del self.merges[identifier]
            assert saved.version == len(self.versions[identifier])
        else:
            self.done(identifier, "revert", after[identifier], saved)
        return True

    @precondition(lambda self: bool(self.versions))
    @rule(data=st.data(), off=st.sampled_from([-1, 1]))
    def write_what_cannot_be(self, data: st.DataObject, off: int) -> None:
        """A stale version, and a record that is gone, are refused and change nothing."""
        identifier = self.pick(data, *State)
        collection, _, version = self.at(identifier)
        state = self.now(identifier).state
        kind = {State.PUBLISHED: Stale, State.RETIRED: Gone, State.MERGED: Moved}[state]
        self.refused(kind, lambda desk: desk.patch(desk.current(collection, identifier, version + off), {"name": "x"}))
        self.refused(kind, lambda desk: desk.retire(desk.current(collection, identifier, version + off)))
        self.refused(NotFound, lambda desk: desk.retire(desk.current(collection, "trm_none", version)))

    @rule()
    def remember(self) -> None:
        with self.database.read() as snapshot:
            revision = read_position(snapshot).revision
        self.past[revision] = self.looks()
        self.exports[revision] = b"".join(export(self.database, About(), FORMATS["v-alpha"]))

    # What must hold.

    @invariant()
    def every_record_is_as_the_model_has_it(self) -> None:
        with self.database.read() as snapshot:
            found = log.latest(snapshot, list(self.versions))
            assert read_position(snapshot).revision == sum(map(len, self.versions.values()))
        for identifier in self.versions:
            view, model = record_view(found[identifier]), self.now(identifier)
            assert {name: view[name] for name in model.draft()} == model.draft()
            assert (view["state"], view["replaced_by"]) == (model.state, model.replaced_by)
            assert view["version"] == len(self.versions[identifier])
            if "alias" in view:
                english = [alias["text"] for alias in model.aliases if alias["lang"] == "en"]
                assert view["alias"] == ("; " if any("," in text for text in english) else ", ").join(english)
            fixed = {name: view[name] for name in NEVER_EDITED if name in view}
            assert self.fixed.setdefault(identifier, fixed) == fixed

    @invariant()
    def every_history_is_whole(self) -> None:
        with self.database.read() as snapshot:
            revision = read_position(snapshot).revision
            feed = looking.changes_since(snapshot, 0, 10_000)
            assert [change.seq for change in feed] == list(range(1, revision + 1))
            for identifier, versions in self.versions.items():
                collection = COLLECTIONS[versions[0][1].collection]
                history = looking.history(snapshot, collection, identifier, revision)
                assert history == [change for change in reversed(feed) if change.record == identifier]
                told = [(change.version, change.action, change.whole().state) for change in reversed(history)]
                assert told == [(n, action, model.state) for n, (action, model) in enumerate(versions, 1)]
                for change, (_, model) in zip(reversed(history), versions, strict=True):
                    view = record_view(change)
                    assert {name: view[name] for name in model.draft()} == model.draft()

    @invariant()
    def relations_show_on_both_sides(self) -> None:
        published = self.in_state(State.PUBLISHED)
        expected: dict[str, set[tuple[str, str, str, str]]] = {each: set() for each in published}
        for source in published:
            for relation, target in self.now(source).edges:
                if RELATIONS[relation].target is None:
                    expected[source].add((relation, "out", target, ""))
                elif target in expected:
                    expected[source].add((relation, "out", target, self.now(target).name))
                    expected[target].add((relation, "in", source, self.now(source).name))
        with self.database.read() as snapshot:
            for identifier in published:
                change = looking.record(snapshot, identifier, read_position(snapshot).revision)
                items = looking.related(snapshot, change)
                told = [(item["relation"], item["direction"], item["id"], item["name"]) for item in items]
                assert len(told) == len(set(told))
                assert set(told) == expected[identifier]

    @invariant()
    def lists_hold_the_published_in_order(self) -> None:
        with reading(self.database) as now:
            for collection in COLLECTIONS.values():
                rows = [each for each in self.in_state(State.PUBLISHED) if self.now(each).collection == collection.name]
                if collection.ordered_by_name:
                    rows.sort(key=lambda each: (self.now(each).name.casefold(), each))
                else:
                    rows.sort()
                listed = orjson.loads(b"".join(now.whole(collection)))
                assert [record["id"] for record in listed] == rows
                assert [record["name"] for record in listed] == [self.now(each).name for each in rows]

    @invariant()
    def the_past_stays_as_it_was(self) -> None:
        with self.database.read() as snapshot:
            for revision, looks in self.past.items():
                for identifier, look in looks.items():
                    history = looking.history(
                        snapshot, COLLECTIONS[self.now(identifier).collection], identifier, revision
                    )
                    assert orjson.dumps(record_view(history[0])) == look
                    if history[0].whole().state == State.PUBLISHED:
                        assert looking.record(snapshot, identifier, revision) == history[0]
                assert self.listed_at(snapshot, revision) == {
                    each: look for each, look in looks.items() if orjson.loads(look)["state"] == State.PUBLISHED
                }

    @invariant()
    def an_export_of_the_past_is_what_was_exported_then(self) -> None:
        for revision, exported in self.exports.items():
            assert b"".join(export(self.database, About(), FORMATS["v-alpha"], as_of=revision)) == exported

    def listed_at(self, snapshot: Any, revision: int) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in COLLECTIONS:
            cursor, listed = None, 0
            while True:
                page = looking.page(snapshot, self.database.tallies, Listing(name, revision), cursor, 2)
                found |= {change.record: orjson.dumps(record_view(change)) for change in page.items}
                listed += len(page.items)
                cursor = page.next
                if cursor is None:
                    break
            assert page.total == listed
        return found

    @invariant()
    def the_catalogue_agrees_with_itself(self) -> None:
        found = check(self.database)
        assert found.problems == []
        assert not [remark for remark in found.remarks if "comes back" in remark]


@pytest.fixture
def catalogue(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[type[Writes]]:
    database = open_database(new_url(request.param))

    class OnThisDatabase(Writes):
        pass

    OnThisDatabase.database = database
    OnThisDatabase.caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    yield OnThisDatabase
    database.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("catalogue", "runs"),
    [("sqlite", 3), pytest.param("sqlite", 15, marks=pytest.mark.full), ("postgres", 4)],
    indirect=["catalogue"],
)
def test_any_sequence_of_writes_leaves_what_the_model_says(catalogue: type[Writes], runs: int) -> None:
    run_state_machine_as_test(
        catalogue,
        settings=settings(
            max_examples=runs,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
