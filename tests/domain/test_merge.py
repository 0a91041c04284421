"""Merging of records: what a survivor takes over, and what an undone merge restores."""

from collections.abc import Iterator

import pytest

from lexarium.domain.editing.edit import apply_draft
from lexarium.domain.editing.import_merge import ImportedRecord, create_imported_record, merge_import
from lexarium.domain.editing.merge import MergeEffect, adopt_moved_qualifiers, build_survivor_draft
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
def test_an_imported_definition_and_synonym_keep_their_qualifiers(collection: Collection, lang: str) -> None:
    definition = state_definition(collection, Text("A colour.", lang), *_REFERENCES)
    synonym = Statement(get_alias_predicate(collection, "exact"), Text("scarlet", lang), _REFERENCES)
    record = build_record(collection, "1", "red", definition, synonym)
    imported = ImportedRecord(collection, record.fields, record.aliases, state=record.state, record=record)
    created = create_imported_record(imported, 1)
    assert {definition, synonym} <= {*created.statements}
    assert merge_import(created, None, imported, None, 2).record == created


@pytest.mark.parametrize("lang", ["", "en"])
def test_a_text_with_and_without_a_tag_keeps_the_qualifiers_of_each(collection: Collection, lang: str) -> None:
    plain = Statement("skos:altLabel", Text("scarlet", lang))
    tagged = Statement("skos:altLabel", Text("scarlet", "" if lang else "en"), _REFERENCES)
    other = build_record(collection, "1", "red", plain, tagged)
    for stated in (plain, tagged._replace(qualifiers=())):
        [name, adopted] = build_record(collection, "1", "red", stated).adopt_qualifiers(other).statements
        assert name == other.statements[0]
        assert adopted == (plain if stated == plain else tagged)


def undo_merge(before: Record, after: Record) -> Record:
    effect = MergeEffect(before, after)
    return effect.restore_details(apply_draft(after, effect.build_undo_draft(after), "usr_1", 2))


@pytest.mark.parametrize("has_node", [False, True])
def test_a_survivor_with_a_translation_alone_takes_over_the_definition(collection: Collection, has_node: bool) -> None:
    german = Text("auf Deutsch", "de")
    translation = state_definition(collection, Node((Statement("rdf:value", german),)) if has_node else german)
    merged = build_record(collection, "1", "red", state_definition(collection, Text("A colour.", "en")))
    survivor = build_record(collection, "2", "rot", translation)
    after = merge(merged, survivor)
    assert after.definition == "A colour."
    assert translation in after.statements
    assert undo_merge(survivor, after).statements == survivor.statements


@pytest.mark.parametrize("own", ["", " "])
def test_a_node_in_another_language_is_not_taken_for_the_definition(collection: Collection, own: str) -> None:
    texts = [Statement("rdf:value", Text("texte", "fr")), Statement("dcterms:creator", Text("Ada"))]
    merged = build_record(collection, "1", "red", state_definition(collection, Node(tuple(texts))))
    survivor = build_record(collection, "2", "rot", *([state_definition(collection, Text(own))] if own else []))
    after = merge(merged, survivor)
    assert after.definition == survivor.definition == own
    assert undo_merge(survivor, after).statements == survivor.statements


def test_a_node_in_the_default_language_is_a_definition(collection: Collection) -> None:
    node = state_definition(collection, Node((Statement("rdf:value", Text("A colour.", "en")),)))
    bare, defined = build_record(collection, "1", "red"), build_record(collection, "2", "rot", node)
    other = build_record(collection, "3", "rouge", state_definition(collection, Text("Another.")))
    assert merge(defined, bare).definition == "A colour."
    assert merge(other, defined).definition == "A colour."


def test_an_undone_merge_keeps_a_definition_that_was_written_since(collection: Collection) -> None:
    merged = build_record(collection, "1", "red", state_definition(collection, Text("A colour.")))
    survivor = build_record(collection, "2", "rot", state_definition(collection, Text("auf Deutsch", "de")))
    after = merge(merged, survivor)
    edited = after.state_fields({collection.definition_field or "": "Since."})
    effect = MergeEffect(survivor, after)
    undone = effect.restore_details(apply_draft(edited, effect.build_undo_draft(edited), "usr_1", 2))
    assert undone.definition == "Since."
