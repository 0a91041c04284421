"""Write records of several vocabularies: ids, rules for new ids, languages, relations, permissions and limits."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from lexarium.domain.account import Role
from lexarium.domain.change import Action
from lexarium.domain.editing.edit import apply_draft, list_mappings, to_draft
from lexarium.domain.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import Record, RecordState, build_record, parse_record
from lexarium.domain.record_texts import list_language_texts
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.common_relations import COMMON_RELATIONS
from lexarium.domain.schema.predicates import expand_predicate
from lexarium.domain.statement import Reference, Statement, Text, normalize
from lexarium.domain.vocabulary import Vocabulary, register_vocabularies
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.batch import run_batch
from lexarium.services.curation.proposals import (
    ProposalWriter,
    accept_proposal,
    get_visible_proposal,
    list_proposals,
)
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.detail import load_detail
from lexarium.services.records.lookup import VersionedRecord, find_versions, get_record
from lexarium.services.vocabularies import head_records
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.services.vocabularies.conformance import check_conformance
from lexarium.store import change_log, relations, revisions, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from tests.domain.test_statements import statements as any_statements

MADE_SCHEMA = """
id: https://example.org/made
name: made
prefixes: {made: "https://example.org/made/", linkml: "https://w3id.org/linkml/", skos: "http://www.w3.org/2004/02/skos/core#"}
default_prefix: made
imports: [linkml:types]
classes:
  Plant:
    slots: [id, name, height, colour, code, grows_on]
slots:
  id: {identifier: true}
  name: {slot_uri: "skos:prefLabel", required: true}
  height: {range: integer}
  colour: {range: Colour}
  code: {pattern: "[A-Z]{2}", required: true}
  grows_on: {range: Plant, multivalued: true}
enums:
  Colour: {permissible_values: {green: {}, red: {}}}
"""


class Curators:
    """Writes records as an administrator, or as others."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.admin = self.make_caller("Ada", Role.ADMIN)
        values: dict[str, dict[str, Any]] = {
            "uat": {"schema": "skos", "languages": ["en", "fr"], "minting": "uat:{n}", "defines": ["uat"]},
            "doid": {"schema": "obo", "minting": "DOID:{n:07} from 1000 to 1002", "defines": ["DOID"]},
            "own": {"schema": "skos", "minting": "none"},
            "made": {"schema": MADE_SCHEMA},
            "secret": {"schema": "skos", "private": True, "minting": "s:{n}"},
        }
        with database.write() as transaction:
            for slug, value in values.items():
                head_records.create_vocabulary(transaction, self.admin.account.id, slug, value)

    def make_caller(self, name: str, role: Role, **vocabulary_roles: Role) -> Caller:
        return Caller(add_account(self.database, name, role), role, f"tok_{name}", vocabulary_roles=vocabulary_roles)

    def create(self, collection: str, caller: Caller | None = None, **draft: Any) -> VersionedRecord:
        with self.database.write() as transaction:
            return RecordWriter(transaction, caller or self.admin).create(get(collection), {"name": "x", **draft})

    def patch(self, record: VersionedRecord, **patch: Any) -> VersionedRecord:
        with self.database.write() as transaction:
            current = get_record(transaction.flush(), record.record.id)
            return RecordWriter(transaction, self.admin).patch(current, patch)

    def read(self, slug: str, local_id: str) -> VersionedRecord:
        with self.database.read() as snapshot:
            return get_record(snapshot, qualify_id(slug, local_id))


def get(name: str) -> Collection:
    return COLLECTIONS[name]


@pytest.fixture
def curators(database: Database) -> Iterator[Curators]:
    yield Curators(database)
    assert check_database(database).problems == []
    register_vocabularies([])


def list_problems(error: pytest.ExceptionInfo[InvalidInput]) -> dict[str, str]:
    return {problem.field: problem.detail for problem in error.value.problems}


def test_drafts_use_the_original_ids(curators: Curators) -> None:
    parent = curators.create("uat/concept", name="galaxy")
    child = curators.create("uat/concept", name="spiral galaxy", relations={"broader": ["uat:1"]})
    assert (parent.record.local_id, child.record.local_id) == ("uat:1", "uat:2")
    assert child.record.id == qualify_id("uat", "uat:2")
    assert to_draft(child.record)["relations"] == {"broader": ["uat:1"]}
    related = curators.patch(parent, relations={"related": ["uat:2"]})
    assert {relation.target for relation in related.record.relations} == {child.record.id}
    with pytest.raises(InvalidInput) as error:
        curators.patch(parent, relations={"broader": ["uat:2"]})
    assert list_problems(error) == {"relations/broader/0": "would create a cycle: uat:2 is already below uat:1."}


def test_an_unknown_relation_is_reported_with_the_valid_ones(curators: Curators) -> None:
    with pytest.raises(InvalidInput) as error:
        curators.create("made/plant", code="AB", relations={"eats": ["x"]})
    assert list_problems(error) == {"relations/eats": "is not a relation of a plant; valid: grows_on."}


def test_numbers_are_not_reused_and_run_out(curators: Curators) -> None:
    first = curators.create("doid/term")
    with curators.database.write() as transaction:
        RecordWriter(transaction, curators.admin).retire(first)
    assert curators.create("doid/term").record.local_id == "DOID:0001001"
    assert curators.create("doid/term", id="DOID:0001002").record.local_id == "DOID:0001002"
    with pytest.raises(Conflict, match="has no number left"):
        curators.create("doid/term")
    with pytest.raises(Conflict, match="is already used"):
        curators.create("doid/term", id="DOID:0001000")
    assert curators.create("doid/term", id="DOID:0000007").record.local_id == "DOID:0000007"
    with pytest.raises(InvalidInput) as error:
        curators.create("doid/term", id="DOID:1001")
    assert list_problems(error) == {
        "id": "must be written DOID:0001001, according to the ID pattern of this vocabulary."
    }


def test_unpadded_numbers_continue_after_the_highest(curators: Curators) -> None:
    for local_id in ("uat:9", "uat:10", "uat:x11", "uat:012"):
        curators.create("uat/concept", id=local_id) if local_id != "uat:012" else None
    assert curators.create("uat/concept").record.local_id == "uat:11"


def test_unpadded_numbers_are_scanned_once_and_then_only_in_new_changes(curators: Curators, url: str) -> None:
    executed: list[str] = []
    event.listen(curators.database.backend.engine, "before_cursor_execute", lambda *args: executed.append(args[2]))
    for number in (1, 2):
        assert curators.create("uat/concept").record.local_id == f"uat:{number}"
    first, second = (statement for statement in executed if "ltrim" in statement)
    assert "seq >" not in first
    assert "seq >" in second
    # Another process mints numbers, too.
    other = Database(url)
    with other.write() as transaction:
        RecordWriter(transaction, curators.admin).create(get("uat/concept"), {"name": "x", "id": "uat:20"})
    other.close()
    assert curators.create("uat/concept").record.local_id == "uat:21"
    # A number of a write that was rolled back is free.
    with pytest.raises(RuntimeError), curators.database.write() as transaction:
        for number in (22, 23):
            record = RecordWriter(transaction, curators.admin).create(get("uat/concept"), {"name": "x"})
            assert record.record.local_id == f"uat:{number}"
        raise RuntimeError
    assert curators.create("uat/concept").record.local_id == "uat:22"


def test_numbers_of_writes_in_one_transaction_differ(curators: Curators) -> None:
    lines = [
        {"op": "create", "collection": "concept", "record": {"name": "a"}, "as": "a"},
        {"op": "create", "collection": "concept", "record": {"name": "b", "id": "uat:5"}},
        {"op": "create", "collection": "concept", "record": {"name": "c", "relations": {"broader": ["$a"]}}},
    ]
    with curators.database.write() as transaction:
        numbered = [(number, orjson.dumps(line)) for number, line in enumerate(lines, 1)]
        saved = run_batch(transaction, curators.admin, numbered, get_read_scope(curators.admin), "uat")
    assert [item.record.local_id for item in saved] == ["uat:1", "uat:5", "uat:6"]
    assert saved[2].record.relation_targets == {"broader": ["uat:1"]}


def test_without_minting_the_author_provides_ids(curators: Curators) -> None:
    with pytest.raises(InvalidInput) as error:
        curators.create("own/concept")
    assert list_problems(error) == {"id": "is required: this vocabulary has no pattern for new IDs."}
    with pytest.raises(InvalidInput) as error:
        curators.create("own/concept", id="a\x1fb", name="")
    assert list_problems(error).keys() == {"id", "name"}
    assert curators.create("own/concept", id="https://example.org/a#b").record.local_id == "https://example.org/a#b"
    assert curators.create("made/plant", id="p", code="AB").record.local_id == "p"
    assert curators.create("made/plant", code="AB").record.local_id.startswith("plant_")


def list_outdated(record: Record) -> list[tuple[str, str]]:
    return [(text.field, text.lang) for text in list_language_texts(record) if text.is_outdated]


def test_translations_do_not_change_other_languages(curators: Curators) -> None:
    record = curators.create("uat/concept", name="star", names=[{"text": "étoile", "lang": "FR"}])
    assert record.record.fields["name"] == "star"
    assert record.record.translated_names == {"fr": "étoile"}
    record = curators.patch(record, names=[{"text": "étoile", "lang": "fr"}, {"text": "estrela", "lang": "pt-br"}])
    assert to_draft(record.record)["names"] == [{"text": "étoile", "lang": "fr"}, {"text": "estrela", "lang": "pt-BR"}]
    record = curators.patch(record, definition="A luminous ball.", definitions=[{"text": "Une boule.", "lang": "fr"}])
    assert list_outdated(record.record) == []
    record = curators.patch(record, name="sun")
    assert record.record.translated_names == {"fr": "étoile", "pt-BR": "estrela"}
    assert list_outdated(record.record) == [("name", "fr"), ("name", "pt-BR")]
    record = curators.patch(record, names=[{"text": "soleil", "lang": "fr"}])
    assert list_outdated(record.record) == []
    with curators.database.read() as snapshot:
        assert vocabularies.find_translated_names(snapshot, [record.record.id], ["fr"]) == {
            record.record.id: {"fr": "soleil"}
        }
        assert vocabularies.find_translated_names(snapshot, [record.record.id], ["pt-BR"]) == {}


def test_a_translation_may_be_confirmed(curators: Curators) -> None:
    record = curators.create("uat/concept", name="star", names=[{"text": "étoile", "lang": "fr"}])
    record = curators.patch(record, name="stars")
    record = curators.patch(record, names=[{"text": "étoile", "lang": "fr", "source": "stars"}])
    assert list_outdated(record.record) == []


def test_a_text_in_the_default_language_sets_the_field(curators: Curators) -> None:
    names = [{"text": "star", "lang": "en"}, {"text": "étoile", "lang": "fr"}]
    record = curators.create("uat/concept", name="star", names=names)
    assert Statement("skos:prefLabel", Text("star", "en")) in record.record.statements
    record = curators.patch(record, names=[{"text": "sun", "lang": "en"}])
    assert (record.record.fields["name"], record.record.translated_names) == ("sun", {})
    with pytest.raises(InvalidInput) as error:
        curators.patch(record, name="a", names=[{"text": "b", "lang": "en"}])
    assert list_problems(error) == {"names": "differs from `name` in en."}


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ([{"text": "a", "lang": "e n"}], "names/0/lang"),
        ([{"text": "", "lang": "fr"}], "names/0/text"),
        ([{"text": "a\x07", "lang": "fr"}], "names/0/text"),
        ([{"text": "a", "lang": "fr"}, {"text": "b", "lang": "FR"}], "names"),
        ([{"lang": "fr"}], "names/0/text"),
        (["a"], "names/0"),
        ({"fr": "a"}, "names"),
    ],
)
def test_invalid_translations_are_rejected(curators: Curators, names: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        curators.create("uat/concept", names=names)
    assert list_problems(error).keys() == {field}


def test_a_name_in_a_new_default_language_is_added(curators: Curators) -> None:
    record = curators.create("uat/concept", name="star", names=[{"text": "étoile", "lang": "fr"}])
    with curators.database.write() as transaction:
        head_records.update_vocabulary(transaction, curators.admin.account.id, "uat", {"languages": ["de"]})
    record = curators.read("uat", record.record.local_id)
    assert curators.patch(record, name="Stern").record.fields["name"] == "Stern"


def test_inverse_relations_are_stored_once(curators: Curators) -> None:
    narrow = curators.create("uat/concept", name="narrow")
    broad = curators.create("uat/concept", name="broad", relations={"narrower": ["uat:1"]})
    assert broad.record.relations == frozenset()
    assert curators.read("uat", "uat:1").record.relation_targets == {"broader": ["uat:2"]}
    assert curators.patch(broad, relations={"narrower": ["uat:1"]}).version == 1
    with curators.database.write() as transaction:
        writer = RecordWriter(transaction, curators.admin)
        writer.remove_relation(broad, "narrower", "uat:1")
    assert curators.read("uat", "uat:1").record.relation_targets == {}
    with pytest.raises(Conflict, match="create a cycle"):
        curators.patch(narrow, relations={"broader": ["uat:2"], "narrower": ["uat:2"]})


def test_mappings_have_justification_confidence_author_and_date(curators: Curators) -> None:
    mapping = {
        "target": "DOID:1",
        "justification": "semapv:ManualMappingCuration",
        "confidence": 0.9,
        "author": "orcid:0000-0001-2345-6789",
        "date": "2026-01-31",
    }
    record = curators.create("uat/concept", relations={"exactMatch": [mapping, "DOID:2"]})
    assert to_draft(record.record)["relations"] == {"exactMatch": [mapping, "DOID:2"]}
    record = curators.patch(record, name="other")
    record = curators.patch(record, relations={"exactMatch": ["DOID:1", "DOID:3"]})
    assert [(item.relation.target, item.qualifiers.get("confidence")) for item in list_mappings(record.record)] == [
        ("DOID:1", 0.9),
        ("DOID:3", None),
    ]
    record = curators.patch(record, relations={"exactMatch": [{"target": "DOID:1", "confidence": 0.5}]})
    assert list_mappings(record.record)[0].qualifiers == {"confidence": 0.5}
    with pytest.raises(InvalidInput) as error:
        curators.patch(record, relations={"exactMatch": [{"target": "DOID:1", "confidence": 2.0}]})
    assert list_problems(error).keys() == {"relations/exactMatch/0/confidence"}


def test_merging_works_within_a_vocabulary(curators: Curators) -> None:
    mapping = {"target": "MESH:1", "confidence": 0.9}
    merged = curators.create("uat/concept", name="merged", relations={"exactMatch": [mapping]})
    survivor = curators.create("uat/concept", name="survivor")
    third = curators.create("uat/concept", name="third", relations={"related": ["uat:1"]})
    with curators.database.write() as transaction:
        survivor = RecordWriter(transaction, curators.admin).merge(merged, "uat:2")
    assert to_draft(survivor.record)["relations"] == {"exactMatch": [mapping]}
    assert curators.read("uat", "uat:3").record.relation_targets == {"related": ["uat:2"]}
    assert curators.read("uat", "uat:1").record.replaced_by == qualify_id("uat", "uat:2")
    with curators.database.write() as transaction:
        past = revisions.find_version(transaction.flush(), merged.record.id, 1)
        assert past is not None
        restored = RecordWriter(transaction, curators.admin).revert(past, 2)
    assert restored.record.state == RecordState.PUBLISHED
    assert to_draft(restored.record)["relations"] == {"exactMatch": [mapping]}
    assert curators.read("uat", "uat:3").record.relation_targets == third.record.relation_targets
    assert curators.read("uat", "uat:2").record.relations == frozenset()


def test_merging_across_vocabularies_suggests_a_mapping(curators: Curators) -> None:
    record = curators.create("doid/term")
    concept = curators.create("uat/concept")
    with curators.database.write() as transaction:
        writer = RecordWriter(transaction, curators.admin)
        with pytest.raises(Conflict, match="add a mapping such as exactMatch instead") as error:
            writer.merge(concept, record.record.local_id)
        with pytest.raises(NotFound):
            writer.merge(concept, "own\x1fx")
    assert error.value.details["mapping"] == {"relation": "exactMatch", "target": "DOID:0001000"}


def test_references_resolve_to_the_vocabulary_that_defines_the_prefix(curators: Curators) -> None:
    term = curators.create("doid/term", name="flu")
    plant = curators.create("made/plant", code="AB", relations={"grows_on": [term.record.local_id]})
    with curators.database.read() as snapshot:
        [outward] = relations.find_related(snapshot, [plant.record.id])[plant.record.id]
        [inward] = relations.find_related(snapshot, [term.record.id])[term.record.id]
        hidden = relations.find_related(snapshot, [plant.record.id], ["made"])[plant.record.id]
    assert (outward.id, outward.name) == (term.record.id, "flu")
    assert (inward.id, inward.side) == (plant.record.id, "target")
    assert [item.name for item in hidden] == [None]


def test_references_to_private_vocabularies_are_not_resolved(curators: Curators) -> None:
    with curators.database.write() as transaction:
        head_records.update_vocabulary(transaction, curators.admin.account.id, "secret", {"defines": ["s"]})
    secret = curators.create("secret/concept", name="secret")
    with pytest.raises(InvalidInput):
        curators.create("made/plant", code="AB", relations={"grows_on": [secret.record.local_id]})


def test_permissions_depend_on_the_vocabulary(curators: Curators) -> None:
    curator = curators.make_caller("Bea", Role.NONE, uat=Role.CURATOR, made=Role.CONTRIBUTOR)
    record = curators.create("uat/concept", curator)
    assert record.record.local_id == "uat:1"
    for collection in ("made/plant", "secret/concept", "concept"):
        with pytest.raises(PermissionDenied):
            curators.create(collection, curator)
    with curators.database.write() as transaction:
        proposal = ProposalWriter(transaction, curator).create(get("made/plant"), {"name": "x", "code": "AB"})
        with pytest.raises(PermissionDenied):
            ProposalWriter(transaction, curator).create(get("secret/concept"), {"name": "x"})
        hidden = ProposalWriter(transaction, curators.admin).create(get("secret/concept"), {"name": "x"})
        shown = ProposalWriter(transaction, curators.admin).create(get("uat/concept"), {"name": "x"})
        with pytest.raises(PermissionDenied):
            accept_proposal(transaction, curator, proposal.id, None)
        with pytest.raises(NotFound):
            get_visible_proposal(transaction.flush(), curator, hidden.id)
        assert {
            item.id for item in list_proposals(transaction.flush(), curator, get_read_scope(curator), None, None, 10)
        } == {
            proposal.id,
            shown.id,
        }
        assert (
            len(list_proposals(transaction.flush(), curators.admin, get_read_scope(curators.admin), None, None, 10))
            == 3
        )
        assert accept_proposal(transaction, curator, shown.id, None).record.local_id == "uat:2"
        assert accept_proposal(transaction, curators.admin, proposal.id, None).record.collection is get("made/plant")


def test_proposals_include_ids_translations_and_mappings(curators: Curators) -> None:
    record = curators.create("own/concept", id="a")
    change: Mapping[str, Any] = {
        "names": [{"text": "un", "lang": "fr"}],
        "relations": {"exactMatch": [{"target": "DOID:1", "confidence": 0.5}]},
    }
    with curators.database.write() as transaction:
        writer = ProposalWriter(transaction, curators.admin)
        new = writer.create(get("own/concept"), {"id": "b", "name": "b"})
        edit = writer.patch(record, change)
        with pytest.raises(Conflict, match="is already used"):
            writer.create(get("own/concept"), {"id": "a", "name": "b"})
        assert accept_proposal(transaction, curators.admin, new.id, None).record.local_id == "b"
        accepted = accept_proposal(transaction, curators.admin, edit.id, None).record
    assert {name: to_draft(accepted)[name] for name in change} == change


def test_a_replacement_must_belong_to_the_same_vocabulary(curators: Curators) -> None:
    record, other = curators.create("uat/concept"), curators.create("uat/concept")
    curators.create("concept")
    with curators.database.write() as transaction:
        writer = RecordWriter(transaction, curators.admin)
        for wrong in ("uat:1", "nothing", "uat\x1fuat:2"):
            with pytest.raises(InvalidInput):
                writer.retire(record, wrong)
        assert writer.retire(record, "uat:2").record.replaced_by == other.record.id


def test_too_large_records_are_rejected(curators: Curators) -> None:
    aliases = [{"text": f"{number}" + "x" * 490} for number in range(1_000)]
    record = curators.create("uat/concept", aliases=aliases, definition="x" * 50_000)
    definitions = [{"text": "é" * 50_000, "lang": f"de-{number}"} for number in range(100, 110)]
    with pytest.raises(InvalidInput) as error:
        curators.patch(record, definitions=definitions)
    [problem] = error.value.problems
    assert problem.message == "uat:1 has 2,067,703 bytes; a record can have at most 1,048,576."
    assert curators.read("uat", "uat:1").version == 1


def test_aliases_keep_their_qualifiers(curators: Curators) -> None:
    record = curators.create("doid/term", aliases=[{"text": "grippe"}]).record
    assert [item.predicate for item in record.statements][-1] == "oboInOwl:hasExactSynonym"
    qualified = Statement("oboInOwl:hasExactSynonym", Text("flu"), (Statement("oboInOwl:hasDbXref", Text("MESH:1")),))
    record = record.add_statements([qualified])
    after = record.with_aliases([*record.aliases, record.aliases[0].model_copy(update={"text": "new"})])
    assert qualified in after.statements


def test_conformance_counts_invalid_values(curators: Curators) -> None:
    curators.create("made/plant", name="rose", code="AB", colour="red")
    plant = curators.create("made/plant", name="Rose", code="AB")
    with curators.database.write() as transaction:
        schema = MADE_SCHEMA.replace("[A-Z]{2}", "[A-Z]{3}").replace("green: {}, red: {}", "green: {}")
        head_records.update_vocabulary(transaction, curators.admin.account.id, "made", {"schema": schema})
    with curators.database.read() as snapshot:
        [vocabulary] = [item for item in head_records.list_vocabularies() if item.slug == "made"]
        report = check_conformance(snapshot, vocabulary, ["made"])
    totals = {group.kind: group.total for group in report.groups.values() if group.total}
    assert totals == {"repeated_name": 1, "invalid_value": 3}
    assert report.records == 2
    details = [(item.id, item.detail) for item in report.groups["invalid_value"].examples]
    assert (plant.record.local_id, "code: AB does not match [A-Z]{3}.") in details
    paths = [item.path for item in report.groups["invalid_value"].examples]
    assert all(path.startswith("/edit/") and path.endswith("?vocabulary=made") for path in paths)


def test_relations_have_the_label_of_their_record_or_of_the_bundled_table(curators: Curators) -> None:
    with curators.database.write() as transaction:
        head_records.update_vocabulary(transaction, curators.admin.account.id, "doid", {"minting": "none"})
    curators.create("doid/typedef", id="RO:0002202", name="grows out of")
    with curators.database.read() as snapshot:
        labels = relations.find_relation_labels(snapshot, "doid", ["is_a", "RO:0002202", "BFO:0000050", "x:1"])
    assert labels == {"is_a": "is a", "RO:0002202": "grows out of", "BFO:0000050": "part of", "x:1": "x:1"}


def test_inverse_labels_of_common_relations_are_consistent() -> None:
    labels = {label: inverse for label, inverse in COMMON_RELATIONS.values() if inverse}
    assert len({label for label, _ in COMMON_RELATIONS.values()}) == len(COMMON_RELATIONS)
    assert all(labels[inverse] == label for label, inverse in labels.items() if inverse in labels)
    assert all(expand_predicate(predicate).startswith("http") for predicate in COMMON_RELATIONS)


@pytest.mark.parametrize("type_count", [1, 10])
def test_a_page_with_many_relations_runs_few_queries(curators: Curators, type_count: int) -> None:
    """Labels, names and targets of all relations are read together."""
    slug = f"many{type_count}"
    with curators.database.write() as transaction:
        values = {"schema": "obo", "title": "Many", "minting": "none"}
        head_records.create_vocabulary(transaction, curators.admin.account.id, slug, values)
    collection = COLLECTIONS[f"{slug}/term"]
    targets = [build_record(collection, {"id": f"t:{number}", "name": f"target {number}"}) for number in range(200)]
    statements = (
        Statement(f"x:{number % type_count}", Reference(target.local_id)) for number, target in enumerate(targets)
    )
    above = [build_record(collection, {"id": f"t:above{number}", "name": "above"}) for number in range(3)]
    is_a = Statement("rdfs:subClassOf", Reference("t:above0"))
    record = build_record(collection, {"id": "t:hub", "name": "hub"}).add_statements([is_a, *statements])
    above[0] = above[0].add_statements([Statement("rdfs:subClassOf", Reference("t:above1"))])
    # Others refer to it, and one has its name.
    children = [
        build_record(collection, {"id": f"t:below{number}", "name": "hub"}).add_statements(
            [Statement("rdfs:subClassOf", Reference("t:hub"))]
        )
        for number in range(300)
    ]
    added = (*targets, record, *above, *children)
    with curators.database.write() as transaction:
        writes = [RecordWrite(item, 1, Action.CREATE) for item in added]
        change_log.save_records(transaction, writes, actor=curators.admin.account.id, at=1)
        change_log.update_relations(transaction, {relation for item in added for relation in item.relations}, set())
    executed: list[str] = []
    event.listen(curators.database.backend.engine, "before_cursor_execute", lambda *args: executed.append(args[2]))
    with curators.database.read() as snapshot:
        executed.clear()
        scope = get_read_scope(curators.admin)
        _, _, versions = find_versions(snapshot, "t:hub", ReadScope((slug,), is_chosen=True), 6)
        detail = load_detail(snapshot, versions[0].to_record(), versions, scope, ["fr"])
    others = [group for group in detail.relation_groups if not group.hierarchical]
    assert sum(len(group.items) for group in others) == 200
    assert len(others) == type_count
    assert [group.total for group in detail.relation_groups if group.hierarchical] == [1, 300]
    assert [item.id for item in detail.hierarchy.paths[0]] == [above[1].id, above[0].id]
    assert len(detail.namesakes) > 1
    assert len(detail.history) == 1
    assert len(executed) <= 8, "\n".join(executed)


@given(st.sampled_from(["x/concept", "o/term", "concept", "m/plant"]), any_statements, st.data())
def test_any_statements_survive_an_edit_of_another_field(
    name: str, made: tuple[Statement, ...], data: st.DataObject
) -> None:
    register_vocabularies(
        Vocabulary(slug=slug, schema_source=schema)
        for slug, schema in (("x", "skos"), ("o", "obo"), ("m", MADE_SCHEMA))
    )
    collection = COLLECTIONS[name]
    # Predicates that slots declare, as well as others.
    slots = collection.schema_class.slots.values()
    predicates = [slot.predicate for slot in slots if not slot.identifier and slot.editable]
    renamed = {
        predicate: data.draw(st.sampled_from([predicate, *predicates]))
        for predicate in dict.fromkeys(statement.predicate for statement in made)
    }
    statements = normalize(statement._replace(predicate=renamed[statement.predicate]) for statement in made)
    record = Record(collection, qualify_id(collection.vocabulary, "a:1"), statements)
    stored = parse_record(collection.name, record.to_document())
    assert stored == record
    draft = to_draft(stored)
    assert apply_draft(stored, draft, "usr_1", 1) is stored
    edited = apply_draft(stored, {**draft, "sources": [*draft["sources"], "a new source"]}, "usr_1", 1)
    assert set(edited.own_statements) == {*stored.own_statements, Statement("dcterms:source", Text("a new source"))}
    renamed_record = apply_draft(stored, {**draft, "name": "a new name"}, "usr_1", 1)
    replaced = set(stored.own_statements) - set(renamed_record.own_statements)
    assert len(replaced) <= 1
    assert {statement.predicate for statement in replaced} <= {collection.field_predicates["name"]}
    assert parse_record(collection.name, renamed_record.to_document()) == renamed_record
