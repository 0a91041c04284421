"""Merging of records: what a survivor takes over, and what an undone merge restores."""

from collections.abc import Iterator

import pytest

from lexarium.domain.editing.edit import apply_draft
from lexarium.domain.editing.import_merge import ImportedRecord, create_imported_record
from lexarium.domain.editing.merge import adopt_moved_qualifiers, build_survivor_draft
from lexarium.domain.record import Record, get_alias_predicate
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.statement import Node, Reference, Statement, Text
from lexarium.domain.vocabulary import Vocabulary, register_vocabularies

_REFERENCES = (Statement("dcterms:source", Reference("x:book")), Statement("oboInOwl:hasDbXref", Text("PMID:1")))


@pytest.fixture(autouse=True)
def _vocabularies() -> Iterator[None]:
    register_vocabularies(
        [Vocabulary("go", "Genes", schema_source="obo"), Vocabulary("hues", "Colours", schema_source="skos")]
    )
    yield
    register_vocabularies([])


@pytest.fixture(params=["go/term", "hues/concept"])
def collection(request: pytest.FixtureRequest) -> Collection:
    return COLLECTIONS[request.param]


def build_record(collection: Collection, local_id: str, name: str, *statements: Statement) -> Record:
    named = Statement(collection.name_predicates[0], Text(name))
    return Record(collection, f"{collection.vocabulary}\x1f{local_id}", (named, *statements))


def state_definition(collection: Collection, value: Text | Node, *qualifiers: Statement) -> Statement:
    return Statement(collection.field_predicates[collection.definition_field or ""], value, qualifiers)


def merge(merged: Record, survivor: Record) -> Record:
    after = apply_draft(survivor, build_survivor_draft(survivor, merged), "usr_1", 1)
    return adopt_moved_qualifiers(after, survivor, merged)


@pytest.mark.parametrize("lang", ["", "en"])
def test_a_definition_and_a_synonym_move_with_their_qualifiers(collection: Collection, lang: str) -> None:
    definition = state_definition(collection, Text("A colour.", lang), *_REFERENCES)
    synonym = Statement(get_alias_predicate(collection, "exact"), Text("scarlet", lang), _REFERENCES)
    merged, survivor = build_record(collection, "1", "red", definition, synonym), build_record(collection, "2", "rot")
    assert {definition, synonym} <= {*merge(merged, survivor).statements}


@pytest.mark.parametrize("lang", ["", "en"])
def test_an_imported_definition_keeps_its_qualifiers(collection: Collection, lang: str) -> None:
    definition = state_definition(collection, Text("A colour.", lang), *_REFERENCES)
    record = build_record(collection, "1", "red", definition)
    imported = ImportedRecord(collection, record.fields, state=record.state, record=record)
    assert definition in create_imported_record(imported, 1).statements


@pytest.mark.parametrize("lang", ["", "en"])
def test_a_text_with_and_without_a_tag_keeps_the_qualifiers_of_each(collection: Collection, lang: str) -> None:
    plain = Statement("skos:altLabel", Text("scarlet", lang))
    tagged = Statement("skos:altLabel", Text("scarlet", "" if lang else "en"), _REFERENCES)
    other = build_record(collection, "1", "red", plain, tagged)
    for stated in (plain, tagged._replace(qualifiers=())):
        [name, adopted] = build_record(collection, "1", "red", stated).adopt_qualifiers(other).statements
        assert name == other.statements[0]
        assert adopted == (plain if stated == plain else tagged)
