"""Properties for arbitrary text: ids, folding, sort order, JSON round trip."""

import io
import json
import unicodedata
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.hierarchy import find_cycles
from lexarium.domain.identifiers import has_prefix, mint_id
from lexarium.domain.record import Relation, build_record
from lexarium.domain.rendering import parse_body, render_fields
from lexarium.domain.schema.collections import COLLECTIONS, SEARCH_HIT_FIELDS
from lexarium.domain.text.characters import find_control_char, find_unstorable_char, name_key
from lexarium.domain.text.timestamps import format_timestamp, parse_timestamp
from lexarium.formats.json.stream import iter_objects
from lexarium.formats.parsed import ParseError
from lexarium.search.analysis.folding import find_words, fold
from lexarium.web.http.encodings import choose_encoding
from tests.support.strategies import storable_texts

collections = st.sampled_from(list(COLLECTIONS.values()))


@st.composite
def records(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    collection = draw(collections)
    integers = st.integers(-(2**63), 2**63 - 1)
    fields: dict[str, Any] = {
        name: draw(storable_texts if kind is str else integers) for name, kind in collection.field_types.items()
    }
    fields["id"] = fields["id"].replace("\x1f", "")
    return collection, fields


@given(st.sampled_from(["trm", "dso", "usr", "def", "tok"]))
def test_a_minted_identifier_matches_its_pattern_only(prefix: str) -> None:
    identifier = mint_id(prefix)
    assert has_prefix(identifier, (prefix,))
    assert not has_prefix(identifier, ("xyz",))
    assert not has_prefix(identifier + "\n", (prefix,))
    assert identifier != mint_id(prefix)


@given(storable_texts)
def test_a_name_key_ignores_case_and_unicode_form(name: str) -> None:
    key = name_key(name)
    assert name_key(unicodedata.normalize("NFD", name)) == name_key(unicodedata.normalize("NFC", name))
    assert name_key(name.casefold()) == key or not name.isascii()
    if name.isascii():
        assert name_key(name.upper()) == name_key(name.lower()) == key


@given(storable_texts)
def test_folding_ignores_case_and_accents_and_keeps_word_positions(text: str) -> None:
    folded = fold(text)
    assert not any(unicodedata.combining(char) for word in folded.words for char in word)
    assert [word.text for word in find_words(text)] == folded.words
    assert all(fold(text[word.start : word.end]).words == [word.text] for word in find_words(text))
    if text.isascii():
        assert fold(text.upper()) == folded


@given(st.text("aé' -/_`.\u2019\u2010\u0301\u4e00", max_size=12))
def test_word_forms_are_never_empty(text: str) -> None:
    assert all(fold(text).word_forms)


@given(records())
def test_a_record_is_unchanged_after_rendering_and_parsing(generated: tuple[Any, dict[str, Any]]) -> None:
    collection, fields = generated
    rendering = render_fields(collection, fields)
    shown = {name: fields[name] for name in collection.valpha_field_names} or {
        name: value for name, value in fields.items() if name == "name" or (value != "" and name != "type")
    }
    assert parse_body(rendering.body) == json.loads(rendering.body) == shown
    if rendering.search_hit_length:
        hit = json.loads(rendering.body[: rendering.search_hit_length] + b"}")
        assert hit == {name: fields[name] for name in SEARCH_HIT_FIELDS}


@given(records(), st.sets(st.sampled_from(["alias", "def_id", "event_stamp", "creation_time", "last_updated", "name"])))
def test_assigning_defaults_keeps_given_fields_and_adds_all_missing_ones(
    generated: tuple[Any, dict[str, Any]], left_out: set[str]
) -> None:
    collection, fields = generated
    partial_fields = {name: value for name, value in fields.items() if name not in left_out}
    record = assign_defaults(build_record(collection, partial_fields), 1_700_000_000_000)
    completed = record.fields
    assert list(completed) == list(collection.fields)
    # Without a name, another text that names the record stands for it.
    given_names = [name for name in partial_fields if name != "name" or partial_fields[name]]
    assert {name: completed[name] for name in given_names} == {name: partial_fields[name] for name in given_names}
    missing = {name for name, value in completed.items() if value is None}
    assert missing.isdisjoint(collection.valpha_field_names)
    assert all(type(completed[name]) is collection.field_types[name] for name in completed.keys() - missing)
    assert assign_defaults(record, 0) == record


@given(st.lists(storable_texts, max_size=8))
def test_sort_keys_order_names_ignoring_case(names: list[str]) -> None:
    collection = COLLECTIONS["concept"]
    records_fields = [build_record(collection, {"id": f"trm_{i}", "name": name}).fields for i, name in enumerate(names)]
    by_key = sorted(records_fields, key=lambda fields: (render_fields(collection, fields).order_key, fields["id"]))
    assert by_key == sorted(records_fields, key=lambda fields: (fields["name"].casefold(), fields["id"]))
    # Both engines compare UTF-8 bytes, which is the order of code points.
    keys = [render_fields(collection, fields).order_key for fields in records_fields]
    assert sorted(keys) == sorted(keys, key=lambda key: key.encode())


@given(st.lists(records(), max_size=5), st.integers(0, 4))
def test_a_json_array_is_parsed_object_by_object(generated: list[tuple[Any, dict[str, Any]]], indent: int) -> None:
    given_records = [fields for _, fields in generated]
    text = json.dumps(given_records, indent=indent or None, ensure_ascii=indent % 2 == 0)
    parsed = list(iter_objects(io.BytesIO(text.encode())))
    assert [record for _, record in parsed] == given_records
    lines = text.split("\n")
    assert all(lines[line - 1].lstrip(" [,").startswith("{") for line, _ in parsed)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_as_records_or_rejected(data: bytes) -> None:
    with suppress(ParseError):
        assert all(isinstance(record, dict) for _, record in iter_objects(io.BytesIO(data)))


@given(st.text())
def test_every_unstorable_text_has_a_control_character(text: str) -> None:
    if find_unstorable_char(text):
        assert find_control_char(text)
    if not find_control_char(text):
        assert text.encode().decode() == text


@given(st.integers(0, 253402300799))
def test_a_timestamp_is_unchanged_after_formatting_and_parsing(seconds: int) -> None:
    assert parse_timestamp(format_timestamp(seconds * 1000)) == seconds * 1000


@given(st.integers())
def test_any_number_is_formatted_as_a_timestamp_of_fixed_length(number: int) -> None:
    assert len(format_timestamp(number)) == len("2020-01-01T00:00:00")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15))
def test_cycles_are_found_exactly_where_they_exist(pairs: list[tuple[int, int]]) -> None:
    relations = {Relation(str(a), "KINDOF", str(b)) for a, b in pairs}
    cycle_members = find_cycles(relations)
    for cycle in cycle_members:
        assert cycle[0] == cycle[-1]
        assert all(Relation(a, "KINDOF", b) in relations for a, b in pairwise(cycle))
    reach = {(relation.source, relation.target) for relation in relations}
    for _ in range(8):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    assert bool(cycle_members) == any(a == b for a, b in reach)


@given(st.binary(max_size=60))
def test_any_accept_encoding_header_selects_an_encoding(accept: bytes) -> None:
    assert choose_encoding(accept) in ("identity", "gzip", "zstd")
