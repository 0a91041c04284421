"""SKOS in four syntaxes: reading, writing, round trips."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, RelatedRecord, Relation, build_record
from lexarium.domain.schema.collections import (
    COLLECTIONS,
    CONCEPT,
    CONTRAST,
    DISORDER,
    MAPPING_TYPES,
    TASK,
    Collection,
)
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WriteOptions
from lexarium.formats.rdf import codec
from lexarium.formats.registry import FORMATS
from tests.support.imports import build_alias, open_text
from tests.support.records import make_record, to_views

SYNTAXES = ("skos", "rdfxml", "ntriples", "jsonld")
VOCABULARY = Vocabulary(
    title="Terms & “conditions”",
    licence="https://example.org/licence",
    publisher="A <publisher>",
    base="https://terms.example/",
)
IMPORTED_AT = 1_700_000_000_123

PREFIXES = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix isothes: <http://purl.org/iso25964/skos-thes#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix ex: <https://example.org/> .
"""


def read_skos(text: str | bytes, format: str = "skos", **options: Any) -> list[ParsedRecord]:
    reading = ReadOptions(FORMATS[format], VOCABULARY, **({"default_collection": CONCEPT} | options))
    return list(codec.read(open_text(text if isinstance(text, bytes) else text.encode()), reading))


def read_turtle(text: str, **options: Any) -> list[ParsedRecord]:
    """Return the records in a Turtle text, without its file warnings."""
    return [imported_record for imported_record in read_skos(PREFIXES + text, **options) if imported_record.line]


def list_file_warnings(text: str, **options: Any) -> list[str]:
    """Return the warnings about a Turtle text as a whole."""
    return [
        warning
        for imported_record in read_skos(PREFIXES + text, **options)
        if not imported_record.line
        for warning in imported_record.warnings
    ]


def write_skos(format: str, records: Iterable[Record], vocabulary: Vocabulary = VOCABULARY) -> bytes:
    return b"".join(codec.write(records, WriteOptions(FORMATS[format], vocabulary)))


# Words that are syntax in some format, and characters that are often handled wrongly.
SYNTAX = [
    '"',
    "'",
    '"""',
    "\\",
    "\\n",
    ";",
    "=",
    "<b>",
    "&amp;",
    "&",
    "]]>",
    "<!--",
    "@en",
    "^^xsd:integer",
    "{",
    "}",
    "[",
]
DIFFICULT_CHARACTERS = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "  ",
    "🧠",
    "שלום",
    "e\u0301",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\x85",
    "\u00a0",
]
LOOKALIKES = ["_:b", "<<(", "\\u0041", "%41", "true", "1", "a", "word"]
hostile_texts = st.sampled_from(SYNTAX + DIFFICULT_CHARACTERS + LOOKALIKES)
texts = st.lists(hostile_texts | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5), max_size=8).map(
    "".join
)
nonempty_texts = texts.filter(bool)
tags = st.sampled_from(["en", "de", "pt-BR", "zh-Hant-TW", "x-private", "zxx", "he", "sl-rozaj-biske"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(st.builds(Alias.model_construct, text=nonempty_texts, lang=tags, scope=scopes), max_size=6).map(
    tuple
)
identifiers = st.from_regex(r"\A(trm|dso|cnt)_[0-9A-Za-z]{1,13}\Z") | nonempty_texts.map(lambda text: text[:40])
IRIS = [
    "https://example.org/a?b=c&d='e'#f",
    "http://purl.obolibrary.org/obo/DOID_1",
    "https://пример.example/ü",
    "urn:uuid:0",
]
CURIES = ["DOID:3324", "my_own:1", "dc:creator", "skos:prefLabel", "id:1", "mailto:a@b.example"]
external_ids = st.sampled_from(IRIS + CURIES)
timestamps = st.integers(-(2**62), 2**62)


@st.composite
def generated_records(draw: st.DrawFn) -> Record:
    """Draw a record that a catalogue can hold and RDF/XML can express."""
    collection: Collection = draw(st.sampled_from(list(COLLECTIONS.values())))
    identifier = draw(identifiers)
    fields_drawn: dict[str, Any] = {}
    for name in collection.core_fields:
        kind = collection.field_types[name]
        if name == collection.alias_field:
            continue
        fields_drawn[name] = draw(st.integers(-(2**63), 2**63 - 1) | timestamps if kind is int else texts)
    fields_drawn |= (
        {"id": identifier, "id_concept_class": draw(identifiers | st.just(""))}
        if "id_concept_class" in fields_drawn
        else {}
    )
    fields = assign_defaults(build_record(collection, fields_drawn | {"id": identifier}), IMPORTED_AT).fields
    relation_types = list(collection.relation_types.values())
    relations = set()
    for relation_type in draw(st.lists(st.sampled_from(relation_types), max_size=6)):
        internal_ids = st.just(identifier) | identifiers
        relations.add(
            Relation(
                identifier, relation_type.name, draw(external_ids if relation_type in MAPPING_TYPES else internal_ids)
            )
        )
    state = draw(st.sampled_from(list(RecordState)))
    return make_record(
        collection,
        fields,
        frozenset(relations),
        state,
        None if state == RecordState.PUBLISHED else draw(st.none() | identifiers),
        draw(aliases),
        tuple(draw(st.lists(nonempty_texts | external_ids, max_size=4))),
    )


def to_record(imported_record: ParsedRecord) -> Record:
    """Return the record that an import into an empty catalogue would create."""
    collection = COLLECTIONS[imported_record.collection]
    assert imported_record.state is not None
    assert imported_record.sources is not None
    assert (imported_record.problems, imported_record.warnings, imported_record.foreign_id) == ([], [], "")
    return make_record(
        collection,
        assign_defaults(build_record(collection, imported_record.fields), IMPORTED_AT).fields,
        frozenset(imported_record.relations),
        imported_record.state,
        imported_record.replaced_by,
        imported_record.aliases,
        imported_record.sources,
    )


@pytest.mark.parametrize("format", SYNTAXES)
@settings(max_examples=40, deadline=None)
@given(records=st.lists(generated_records(), max_size=4, unique_by=lambda record: record.id))
def test_out_and_in_again_changes_nothing(format: str, records: list[Record]) -> None:
    reread = [
        to_record(imported_record)
        for imported_record in read_skos(write_skos(format, records), format, default_collection=None)
        if imported_record.collection
    ]
    assert {record.id: to_views(record) for record in reread} == {record.id: to_views(record) for record in records}


@pytest.mark.parametrize("format", SYNTAXES)
@settings(max_examples=10, deadline=None)
@given(records=st.lists(generated_records(), max_size=4, unique_by=lambda record: record.id))
def test_what_another_catalogue_exported_is_the_same_under_this_base(format: str, records: list[Record]) -> None:
    other_vocabulary = replace(VOCABULARY, base="http://elsewhere.example/terms#")
    document = write_skos(format, records, other_vocabulary)
    reread = [
        to_record(imported_record)
        for imported_record in read_skos(document, format, default_collection=None)
        if imported_record.collection
    ]
    assert {record.id: to_views(record) for record in reread} == {record.id: to_views(record) for record in records}


def test_a_scheme_that_only_looks_like_ours_does_not_make_foreign_records_ours() -> None:
    [first_record] = read_turtle(
        """<https://x.example/concept> a skos:ConceptScheme, <https://y.example/vocabulary#Collection> .
           <https://x.example/id/trm_1> a skos:Concept ; skos:prefLabel "dog" ."""
    )
    assert first_record.foreign_id == "https://x.example/id/trm_1"


def build_concept(identifier: str = "trm_1", **options: Any) -> Record:
    fields = {"id": identifier, "name": "attention", **options.pop("fields", {})}
    return make_record(CONCEPT, assign_defaults(build_record(CONCEPT, fields), IMPORTED_AT).fields, **options)


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_long_text_comes_back_whole(format: str) -> None:
    record = build_concept(fields={"definition_text": "line “of” text\n" * 4_000}, aliases=())
    [reread] = read_skos(write_skos(format, [record]), format)
    assert to_record(reread) == record


@pytest.mark.parametrize("format", [syntax for syntax in SYNTAXES if syntax != "rdfxml"])
def test_control_characters_come_back_where_a_syntax_can_say_them(format: str) -> None:
    record = build_concept(fields={"definition_text": "\x01\x0b\x7f\x9f\ufffe"}, aliases=())
    [reread] = read_skos(write_skos(format, [record]), format)
    assert to_record(reread) == record


def test_xml_has_a_replacement_for_what_it_cannot_say() -> None:
    [reread] = read_skos(
        write_skos("rdfxml", [build_concept(fields={"definition_text": "a\x01b"}, aliases=())]), "rdfxml"
    )
    assert reread.fields["definition_text"] == "a\ufffdb"


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_record_that_was_never_edited_comes_back_as_it_is_listed(format: str) -> None:
    [reread] = read_skos(write_skos(format, [build_concept(fields={"alias": "focus, concentration"})]), format)
    assert reread.aliases == (build_alias("focus"), build_alias("concentration"))
    assert "alias" not in reread.fields


@pytest.mark.parametrize("format", SYNTAXES)
def test_the_language_of_a_catalogue_is_that_of_its_names(format: str) -> None:
    vocabulary = replace(VOCABULARY, languages=("pt-BR",))
    document = write_skos(format, [build_concept(aliases=(build_alias("focus"),))], vocabulary)
    [reread] = codec.read(open_text(document), ReadOptions(FORMATS[format], vocabulary))
    assert reread.fields["name"] == "attention"
    assert reread.aliases == (build_alias("focus"),)


def test_writing_takes_records_one_by_one() -> None:
    consumed = []

    def iter_records() -> Iterator[Record]:
        for number in range(3):
            consumed.append(number)
            yield build_concept(f"trm_{number}")

    chunks = codec.write(iter_records(), WriteOptions(FORMATS["skos"], VOCABULARY))
    while b"id:trm_0" not in next(chunks):
        pass
    assert consumed == [0]


def test_turtle_is_written_for_people() -> None:
    attention = build_concept(
        fields={"definition_text": 'To "attend".', "id_concept_class": "ctp_C1", "id_user": "usr_7"},
        relations=frozenset({Relation("trm_1", "KINDOF", "trm_2"), Relation("trm_1", "PARTOF", "trm_3")}),
        aliases=(build_alias("focus"), build_alias("Fokus", lang="de"), build_alias("gaze", scope="narrow")),
        sources=("https://example.org/book", "A book, p. 3"),
    )
    _, scheme, record = write_skos("skos", [attention]).decode().split("\n\n")
    assert scheme == (
        "<https://terms.example/concept>\n"
        "    a skos:ConceptScheme,\n"
        "        lexarium:Collection ;\n"
        '    dct:title "Terms & “conditions”: concept"@en ;\n'
        '    dct:description "A mental process or structure that can be studied."@en ;\n'
        "    dct:license <https://example.org/licence> ;\n"
        '    dc:publisher "A <publisher>" ;\n'
        '    dc:language "en" .'
    )
    assert record == (
        "id:trm_1\n"
        "    a skos:Concept ;\n"
        "    skos:inScheme <https://terms.example/concept> ;\n"
        '    skos:prefLabel "attention"@en ;\n'
        '    skos:altLabel "focus"@en,\n'
        '        "Fokus"@de,\n'
        '        "gaze"@en ;\n'
        '    oboInOwl:hasNarrowSynonym "gaze"@en ;\n'
        '    skos:definition "To \\"attend\\"."@en ;\n'
        "    dct:source <https://example.org/book>,\n"
        '        "A book, p. 3" ;\n'
        "    skos:broader id:trm_2,\n"
        "        id:trm_3 ;\n"
        "    isothes:broaderPartitive id:trm_3 ;\n"
        "    lexarium:class id:ctp_C1 ;\n"
        '    dc:creator "usr_7" ;\n'
        '    dct:created "2023-11-14T22:13:20"^^xsd:dateTime ;\n'
        f'    lexarium:def_id "{attention.fields["def_id"]}" ;\n'
        '    lexarium:def_event_stamp "2023-11-14T22:13:20" ;\n'
        f'    lexarium:creation_time "{IMPORTED_AT}"^^xsd:integer ;\n'
        '    dct:modified "2023-11-14T22:13:20.123Z"^^xsd:dateTime .\n'
    )


@pytest.mark.parametrize("format", ["skos", "jsonld"])
def test_one_record_is_shown_with_the_names_of_those_around_it(format: str) -> None:
    record = build_concept(relations=frozenset({Relation("trm_1", "KINDOF", "trm_2")}))
    related = [
        RelatedRecord("trm_2", "cognition", "KINDOF", "source", "concept"),
        RelatedRecord("trm_3", "vigilance", "KINDOF", "target", "concept"),
        RelatedRecord("tsk_4", "a task", "ASSERTS", "target", "task"),
        RelatedRecord("trm_5", None, "KINDOF", "target", None),
        RelatedRecord("DOID:1", None, "exactMatch", "source", None),
    ]
    document = codec.render_record(FORMATS[format], VOCABULARY, record, related)
    [reread] = [imported_record for imported_record in read_skos(document, format) if imported_record.fields]
    assert to_views(to_record(reread)) == to_views(record)
    for name in ("cognition", "vigilance", "a task"):
        assert name.encode() in document
    if format == "skos":
        assert b"skos:narrower id:trm_3,\n        id:trm_5" in document
        assert b'id:tsk_4\n    skos:prefLabel "a task"@en ;\n    lexarium:asserts id:trm_1 .' in document


def test_json_ld_is_compact() -> None:
    document = orjson.loads(
        codec.render_record(FORMATS["jsonld"], VOCABULARY, build_concept(aliases=(build_alias("focus"),)), [])
    )
    [scheme, record] = document["@graph"]
    assert record["prefLabel"] == {"en": "attention"}
    assert record["altLabel"] == {"en": "focus"}
    assert record["inScheme"] == scheme["@id"] == "https://terms.example/concept"
    assert document["@context"]["broader"] == {"@id": "http://www.w3.org/2004/02/skos/core#broader", "@type": "@id"}


def test_labels_in_the_catalogues_language_are_names_and_others_are_kept_with_theirs() -> None:
    [first_record] = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en, "犬"@ja-hira-jp ;
            skos:altLabel "hound"@en, "pooch" ; skos:hiddenLabel "dgo"@en ; skos:notation "D-1" ."""
    )
    assert first_record.fields == {"name": "dog"}
    assert first_record.foreign_id == "https://example.org/1"
    assert first_record.aliases == (
        build_alias("Hund", lang="de"),
        build_alias("犬", lang="ja-Hira-JP"),
        build_alias("hound"),
        build_alias("pooch"),
        build_alias("dgo", scope="hidden"),
        build_alias("D-1", lang="zxx", scope="hidden"),
    )


def test_a_label_in_another_language_is_the_name_where_there_is_no_other() -> None:
    text = 'ex:1 a skos:Concept ; skos:prefLabel "Hund"@de .'
    [first_record] = read_turtle(text)
    assert (first_record.fields["name"], first_record.aliases) == ("Hund", (build_alias("Hund", lang="de"),))
    assert list_file_warnings(text) == ["no label is in en, and one in another language is the name (Hund)"]


def test_labels_that_are_resources_are_read() -> None:
    [first_record] = read_turtle(
        """ex:1 a skos:Concept ; skosxl:prefLabel ex:label ; skosxl:altLabel [ skosxl:literalForm "hound"@en ] .
           ex:label a skosxl:Label ; skosxl:literalForm "dog"@en ."""
    )
    assert (first_record.fields["name"], first_record.aliases) == ("dog", (build_alias("hound"),))


def test_a_label_that_is_mentioned_again_is_one() -> None:
    [first_record] = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "dog" ; skosxl:altLabel ex:label, ex:label .
           ex:label skosxl:literalForm "hound"@en, "hound"@de ."""
    )
    assert first_record.aliases == (build_alias("hound"), build_alias("hound", "de"))
    label_list = ", ".join(["ex:label"] * 30_000)
    forms = ", ".join(f'"{number}"' for number in range(99))
    [first_record] = read_turtle(
        f"""ex:1 a skos:Concept ; skos:prefLabel "dog" ; skosxl:altLabel {label_list} .
            ex:label skosxl:literalForm {forms} ."""
    )
    assert first_record.aliases is not None
    assert len(first_record.aliases) == 99


def test_a_label_of_which_too_much_is_said_is_left_out_and_told() -> None:
    forms = ", ".join(f'"{number}"' for number in range(30_000))
    concepts = "".join(
        f'ex:{number} a skos:Concept ; skos:prefLabel "{number}" ; skosxl:altLabel ex:label .'
        for number in range(1_000)
    )
    text = f"ex:label skosxl:literalForm {forms} . {concepts}"
    assert [first_record.aliases for first_record in read_turtle(text)] == [()] * 1_000
    assert any("of which more than 100 things are said was left out" in remark for remark in list_file_warnings(text))


def test_hierarchies_are_read_from_either_end() -> None:
    first_record, second_record, third_record = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:narrower ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:broaderTransitive ex:0 .
           ex:3 a skos:Concept ; skos:prefLabel "c" ; skos:broader ex:1 ; isothes:broaderPartitive ex:1 ;
              skos:broaderTransitive ex:2 ."""
    )
    assert first_record.relations == []
    assert second_record.relations == [Relation("https://example.org/2", "KINDOF", "https://example.org/1")]
    # A part is not a kind. An indirect parent counts only where no nearer one is named.
    assert Relation("https://example.org/3", "PARTOF", "https://example.org/1") in third_record.relations
    assert ("KINDOF", "source") in first_record.complete_relations
    assert ("RELATED", "source") not in first_record.complete_relations


def test_what_goes_both_ways_is_one_relation() -> None:
    first_record, second_record = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:related ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:related ex:1 ."""
    )
    assert (
        first_record.relations
        == second_record.relations
        == [Relation("https://example.org/1", "RELATED", "https://example.org/2")]
    )
    assert {("RELATED", "source"), ("RELATED", "target")} <= set(first_record.complete_relations)


def test_relations_fit_the_collection() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:broader ex:2 ; skos:related ex:3 ;
        isothes:broaderPartitive ex:4 ; skos:closeMatch <http://other.example/1>, "not one" ."""
    [disorder] = read_turtle(text, collection=DISORDER)
    assert disorder.relations == [
        Relation("https://example.org/1", "relatedMatch", "https://example.org/3"),
        Relation("https://example.org/1", "closeMatch", "http://other.example/1"),
        Relation("https://example.org/1", "ISA", "https://example.org/2"),
    ]
    assert "a disorder cannot be the source of PARTOF; that was left out (https://example.org/1)" in list_file_warnings(
        text, collection=DISORDER
    )
    [contrast] = read_turtle(text, collection=CONTRAST)
    assert {relation.relation for relation in contrast.relations} == {"relatedMatch", "closeMatch"}


def test_what_is_deprecated_is_retired() -> None:
    first_record, second_record, third_record = read_turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; owl:deprecated true ; dct:isReplacedBy ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; dct:replaces ex:3 .
           ex:3 a skos:Concept ; skos:prefLabel "c" ; owl:deprecated false ."""
    )
    assert (first_record.state, first_record.replaced_by) == (RecordState.RETIRED, "https://example.org/2")
    assert (second_record.state, second_record.replaced_by) == (RecordState.PUBLISHED, None)
    assert (third_record.state, third_record.replaced_by) == (RecordState.RETIRED, "https://example.org/2")


def test_definitions_and_where_they_are_from_are_read() -> None:
    first_record, second_record = read_turtle(
        """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
           ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:definition "Tier"@de, "animal"@en ; skos:scopeNote "note" ;
              dct:source "a book", <http://books.example/1> ;
              dct:created "2020-02-01" ; dct:modified "2021-03-04T05:06:07Z" .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:scopeNote [ rdf:value "used of pets"@en ] ."""
    )
    assert first_record.fields == {
        "name": "a",
        "definition_text": "animal",
        "event_stamp": "2020-02-01T00:00:00",
        "creation_time": 1_580_515_200_000,
        "last_updated": 1_614_834_367_000,
    }
    assert first_record.sources == ("a book", "http://books.example/1")
    assert second_record.fields["definition_text"] == "used of pets"


def test_a_scheme_of_ours_tells_the_collection() -> None:
    text = """<https://terms.example/id/tsk_1> skos:inScheme <https://terms.example/task> ; skos:prefLabel "a" .
              ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:inScheme ex:scheme ."""
    first_record, second_record = read_turtle(text)
    assert (first_record.collection, first_record.fields["id"], first_record.foreign_id) == ("task", "tsk_1", "")
    assert (second_record.collection, second_record.foreign_id) == ("concept", "https://example.org/2")
    assert {imported_record.collection for imported_record in read_turtle(text, collection=TASK)} == {"task"}
    with pytest.raises(ParseError, match="nothing tells which collection"):
        read_turtle(text, default_collection=None)


def test_predicates_that_are_not_known_are_named_once_and_can_be_mapped() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "a" ; ex:code "1", "2" ; skos:example "x" ; ex:up ex:2 .
              ex:2 a skos:Concept ; skos:prefLabel "b" ; ex:code "3" ."""
    assert list_file_warnings(text) == [
        "https://example.org/code is not known and was left out; --map can say what it means (3 times)",
        "skos:example is not known and was left out; --map can say what it means",
        "https://example.org/up is not known and was left out; --map can say what it means",
    ]
    predicate_map = {
        "https://example.org/code": "aliases",
        "skos:example": "definition_text",
        "https://example.org/up": "PARTOF",
    }
    assert list_file_warnings(text, column_mapping=predicate_map) == []
    first_record, _ = read_turtle(text, column_mapping=predicate_map)
    assert first_record.aliases == (build_alias("1"), build_alias("2"))
    assert first_record.fields["definition_text"] == "x"
    assert first_record.relations == [Relation("https://example.org/1", "PARTOF", "https://example.org/2")]


def test_terms_of_another_scheme_are_told() -> None:
    text = """ex:s a skos:ConceptScheme ; dct:license <http://licences.example/by> .
              ex:1 a skos:Concept ; skos:prefLabel "a" ."""
    assert list_file_warnings(text) == [
        "it has terms of its own, to which the catalogue's should fit (http://licences.example/by)"
    ]


def test_what_has_no_label_or_no_name_of_its_own_is_left_out() -> None:
    text = 'ex:1 a skos:Concept . [] a skos:Concept ; skos:prefLabel "b" . <#c> a skos:Concept ; skos:prefLabel "c" .'
    assert read_turtle(text) == []
    assert list_file_warnings(text) == [
        "what has no label was left out (https://example.org/1)",
        "what has no IRI of its own was left out (#c)",
    ]


def test_a_record_is_found_at_its_line() -> None:
    document = write_skos("ntriples", [build_concept("trm_1"), build_concept("trm_2")]).splitlines()
    lines = [imported_record.line for imported_record in read_skos(b"\n".join(document), "ntriples")]
    assert lines == [
        next(n for n, line in enumerate(document, 1) if record_id in line) for record_id in (b"trm_1", b"trm_2")
    ]
    [first_record] = read_skos('<http://a.example/1>\n\n  a <http://www.w3.org/2004/02/skos/core#Concept> ;\n'
                 '  <http://www.w3.org/2004/02/skos/core#prefLabel> "a" .')  # fmt: skip
    assert first_record.line == 3


def test_statements_may_be_scattered() -> None:
    lines = write_skos("ntriples", [build_concept(f"trm_{number}", aliases=()) for number in range(20)]).splitlines(
        keepends=True
    )
    scattered = b"".join(lines[::2] + lines[1::2])
    reread = {
        imported_record.fields["id"]: imported_record.fields for imported_record in read_skos(scattered, "ntriples")
    }
    assert reread == {
        imported_record.fields["id"]: imported_record.fields
        for imported_record in read_skos(b"".join(lines), "ntriples")
    }


def test_json_ld_is_read_in_any_order_of_keys() -> None:
    document = b"""{"@graph": [{"label": "a", "@type": "Concept", "@id": "http://a.example/1"}],
        "@context": {"@vocab": "http://www.w3.org/2004/02/skos/core#", "label": "prefLabel"}}"""
    [first_record] = read_skos(document, "jsonld")
    assert (first_record.foreign_id, first_record.fields) == ("http://a.example/1", {"name": "a"})


def test_an_empty_catalogue_is_a_document_without_records() -> None:
    assert [read_skos(write_skos(name, []), name) for name in SYNTAXES] == [[], [], [], []]


def test_an_ontology_is_not_taken_for_a_thesaurus() -> None:
    with pytest.raises(ParseError, match="--format owl"):
        read_turtle('ex:1 a owl:Class ; rdfs:label "a" .')


def test_an_iri_that_no_record_can_have_is_of_another() -> None:
    text = """<https://terms.example/id/%00> a skos:Concept ; skos:prefLabel "a" .
              <https://terms.example/id/> a skos:Concept ; skos:prefLabel "b" .
              <https://terms.example/id/tr%C3%A4_1> a skos:Concept ; skos:prefLabel "c" ."""
    assert [
        (imported_record.foreign_id, imported_record.fields.get("id")) for imported_record in read_turtle(text)
    ] == [
        ("https://terms.example/id/%00", None),
        ("https://terms.example/id/", None),
        ("", "trä_1"),
    ]


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_record_may_be_related_to_itself_and_have_a_name_twice(format: str) -> None:
    record = build_concept(
        relations=frozenset({Relation("trm_1", "KINDOF", "trm_1")}),
        aliases=(build_alias("focus"), build_alias("focus")),
    )
    [reread] = read_skos(write_skos(format, [record]), format)
    assert to_record(reread) == record


def test_what_holds_nothing_of_skos_is_refused() -> None:
    with pytest.raises(ParseError, match="nothing that it speaks of is a skos:Concept"):
        read_turtle('ex:1 rdfs:label "one" .')
    assert read_turtle("ex:all a skos:ConceptScheme .") == []
    assert read_skos(PREFIXES) == read_skos("") == []


def test_collections_of_concepts_are_told_of_and_are_no_concepts() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "one" ; skos:inScheme ex:all .
        ex:some a skos:Collection ; skos:prefLabel "some" ; skos:inScheme ex:all ; skos:member ex:1 ."""
    assert [imported_record.fields["name"] for imported_record in read_turtle(text)] == ["one"]
    assert list_file_warnings(text) == ["a skos:Collection is not kept (https://example.org/some)"]
