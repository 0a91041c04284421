"""Versions in JSON Lines whose values are all plain."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.plain_record import parse_plain_record
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import normalize, parse_statements
from lexarium.domain.vocabulary import Vocabulary, register_vocabularies

CONCEPT = COLLECTIONS["concept"]
# Its class has no slot of names.
SAMPLE_SCHEMA = """\
id: https://example.org/samples
name: samples
default_prefix: ex
imports: [linkml:types]
prefixes: {ex: https://example.org/samples/, linkml: https://w3id.org/linkml/}
slots: {id: {identifier: true}, weight: {range: integer}}
classes: {Sample: {slots: [id, weight]}}
"""
PREDICATES = (
    *CONCEPT.field_predicates.values(),
    "skos:broader",
    "skos:altLabel",
    "oboInOwl:hasAlternativeId",
    "rdf:type",
)
TEXTS = st.text(max_size=3) | st.sampled_from(("", "\0", "01", "x" * 2_001))
VALUES = (
    TEXTS
    | st.integers()
    | st.sampled_from((10**14, -(10**14), 10**15 - 1, 1 - 10**15, True, 1.5, None))
    | st.builds(lambda text: {"ref": text}, TEXTS)
    | st.builds(lambda text: {"text": text, "lang": "de"}, TEXTS)
    | st.lists(TEXTS, max_size=2)
)


def build_version(statements: Any, **values: Any) -> dict[str, Any]:
    return {"id": "trm_1", "state": "published", "statements": statements, **values}


FULL = {
    "skos:prefLabel": "memory",
    "cogat:event_stamp": "2020-01-01T00:00:00",
    **{
        CONCEPT.field_predicates[name]: 1 if CONCEPT.field_types[name] is int else "x"
        for name in CONCEPT.assigned_fields
    },
}


@given(
    statements=st.dictionaries(st.sampled_from(PREDICATES), VALUES).map(lambda values: FULL | values),
    assigned=st.dictionaries(st.sampled_from([*CONCEPT.fields, "other"]), st.just("") | st.integers(0, 9)),
)
@example(statements={"skos:prefLabel": "memory"}, assigned={})
@example(statements=FULL | {"": "x"}, assigned={})
def test_a_plain_version_has_the_fields_and_the_document_of_its_statements(
    statements: dict[str, Any], assigned: dict[str, Any]
) -> None:
    data = build_version(statements, **({"assigned": assigned} if assigned else {}))
    plain = parse_plain_record(CONCEPT, data)
    if plain is None:
        return
    record = Record(CONCEPT, "trm_1", normalize(parse_statements(statements)), assigned=assigned)
    assert list(plain.fields.items()) == list(record.fields.items())
    assert plain.document == record.to_document()
    assert plain.is_linked or not (record.relations or record.alternative_ids or record.translated_names)
    assert assign_defaults(record, 0) is record
    assert not record.stored_aliases


def test_a_version_with_fields_and_relations_is_plain() -> None:
    plain = parse_plain_record(CONCEPT, build_version(FULL | {"skos:broader": {"ref": "trm_2"}}))
    assert plain is not None
    assert plain.is_linked


@pytest.fixture
def _samples() -> Iterator[None]:
    register_vocabularies([Vocabulary("samples", "Samples", schema_source=SAMPLE_SCHEMA)])
    yield
    register_vocabularies([])


@pytest.mark.usefixtures("_samples")
def test_a_version_of_a_class_without_names_is_not_plain() -> None:
    sample = COLLECTIONS["samples/sample"]
    assert "name" not in sample.fields
    assert parse_plain_record(sample, build_version({sample.field_predicates["weight"]: 5})) is None
