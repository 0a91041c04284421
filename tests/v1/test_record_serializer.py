"""Records are serialized from their documents as their views have them."""

from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.edit import nest_fields
from lexarium.domain.record import ALIAS_SCOPES, SOURCE, TYPE, Record
from lexarium.domain.record_texts import TEXT_ROLES, RecordText, choose_text, list_texts
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.predicates import TRANSLATION_SOURCE, SlotRole
from lexarium.domain.statement import INTEGER, Node, Reference, Statement, Text, dump_statements, normalize
from lexarium.services.record_serializer import Presentation, serialize_record
from tests.support.strategies import records

_LANGUAGES = st.sampled_from(["", "en", "de", "pt-BR"])
# Without their last arguments, Hypothesis would draw datatypes and qualifiers that no statement has.
_TEXTS = st.builds(Text, st.sampled_from(["a", "b; c", "5", "01", "", "true", "x" * 2_001]), _LANGUAGES, st.just(""))
_NUMBERS = st.builds(Text, st.sampled_from(["7", "-1", "01", "9" * 18]), st.just(""), st.just(INTEGER))
_REFERENCES = st.builds(Reference, st.sampled_from(["trm_1", "x:1", "https://example.org/a"]))


@st.composite
def _statements(draw: st.DrawFn, collection: Collection) -> Statement:
    """Draw a statement of any predicate that the collection knows, or of another."""
    classes = st.builds(Reference, st.sampled_from([item.schema_class.uri for item in COLLECTIONS.values()]))
    predicates = [
        *("x:unknown", SOURCE, TYPE, "oboInOwl:hasDbXref", "skos:exactMatch", "rdfs:seeAlso", "skos:note"),
        *("skos:prefLabel", "rdfs:label", "skos:notation"),
        *(*ALIAS_SCOPES, *collection.field_predicates.values(), *collection.relation_predicates.values()),
    ]
    plain = st.builds(Statement, st.sampled_from(["skosxl:literalForm", "x:part"]), _TEXTS, st.just(()))
    nodes = st.builds(Node, st.tuples(plain), st.just(""))
    qualifiers = draw(
        st.just(())
        | st.tuples(st.builds(Statement, st.just(TYPE), classes, st.just(())))
        | st.tuples(st.builds(Statement, st.sampled_from([TRANSLATION_SOURCE, "x:by"]), _TEXTS, st.just(())))
    )
    value = draw(_TEXTS | _NUMBERS | _REFERENCES | classes | nodes)
    return Statement(draw(st.sampled_from(predicates)), value, qualifiers)


@st.composite
def _records(draw: st.DrawFn) -> Record:
    record: Record = draw(records())
    added = draw(st.lists(_statements(record.collection), max_size=12))
    return record.add_statements(normalize(added))


def _dump_texts(record: Record, texts: Sequence[RecordText]) -> dict[str, list[Any]]:
    """Return texts as JSON, by key. Names and definitions in the default language come first."""
    default = record.collection.language
    dumped: dict[SlotRole | None, list[Any]] = {role: [] for role in TEXT_ROLES.values()}
    translations = []
    for text in texts:
        if text.lang != default and text.role in (SlotRole.NAME, SlotRole.DEFINITION):
            translations.append(text)
        else:
            dumped[text.role].append(text.dump())
    for text in translations:
        dumped[text.role].append(text.dump())
    return {key: dumped[role] for key, role in TEXT_ROLES.items()}


def _list_views(record: Record) -> dict[str, Any]:
    """Return what a serialized record has besides its version, by the views of `Record`."""
    collection, texts, targets = record.collection, list_texts(record), record.relation_targets
    references = [
        value[0]
        for predicate, value, _ in record.own_statements
        if predicate in collection.reference_predicates and not isinstance(value, Node)
    ]
    complete = {text.statement for text in texts if text.is_complete}
    return {
        "id": record.local_id,
        "state": record.state,
        "replaced_by": record.replaced_by,
        **nest_fields(collection, record.fields),
        "definition": record.definition,
        **_dump_texts(record, texts),
        "aliases": [alias.dump() for alias in record.aliases],
        "sources": list(record.sources),
        "references": list(dict.fromkeys(references)),
        "relations": targets,
        "mappings": {name: targets[name] for name in targets if RELATION_TYPES[name].is_mapping},
        "statements": dump_statements(item for item in record.other_statements if item not in complete),
    }


def _serialize(record: Record, *languages: str) -> dict[str, Any]:
    change = Change(1, 0, "usr_1", 1, Action.CREATE, record.collection.name, record.id, 1, record.to_document())
    return serialize_record(change, Presentation(languages=languages))


@given(_records())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_serialized_record_has_what_the_views_of_the_record_have(record: Record) -> None:
    serialized, views = _serialize(record), _list_views(record)
    assert {key: serialized[key] for key in views} == views
    # In the same order.
    assert orjson.dumps({key: serialized[key] for key in views}) == orjson.dumps(views)


@given(_records(), st.sampled_from(["de", "pt-BR", "en"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_name_and_definition_are_shown_in_the_language_of_the_reader(record: Record, language: str) -> None:
    serialized = _serialize(record, language)
    if serialized["names"]:
        assert serialized["name"] == choose_text(record, "name", [language]).text
    field = record.collection.definition_field
    if serialized["definitions"] and field is not None:
        assert serialized["definition"] == choose_text(record, field, [language]).text
