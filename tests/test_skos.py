"""SKOS in its four syntaxes: what is read, what is written, and that out and in again changes nothing."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, CONCEPT, CONTRAST, DISORDER, TASK, Collection
from lexarium.domain.completion import complete
from lexarium.domain.relations import MAPPINGS, RELATIONS, Edge, Related
from lexarium.exchange import skos
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.incoming import Incoming, Malformed, Reading

SYNTAXES = ("skos", "rdfxml", "ntriples", "jsonld")
ABOUT = About("Terms & “conditions”", "https://example.org/licence", "A <publisher>", "en", "https://terms.example/")
AT = 1_700_000_000_123

PREFIXES = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix skosxl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix isothes: <http://purl.org/iso25964/skos-thes#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix ex: <https://example.org/> .
"""


def alias(text: str, lang: str = "en", scope: Any = "exact") -> Alias:
    return Alias(text=text, lang=lang, scope=scope)


def read(text: str | bytes, format: str = "skos", **given: Any) -> list[Incoming]:
    reading = Reading(FORMATS[format], ABOUT, **({"fallback": CONCEPT} | given))
    return list(skos.read(io.BytesIO(text if isinstance(text, bytes) else text.encode()), reading))


def turtle(text: str, **given: Any) -> list[Incoming]:
    """The records of some Turtle, without what is told of it as a whole."""
    return [incoming for incoming in read(PREFIXES + text, **given) if incoming.line]


def remarks(text: str, **given: Any) -> list[str]:
    """What is told of some Turtle as a whole."""
    return [
        warning for incoming in read(PREFIXES + text, **given) if not incoming.line for warning in incoming.warnings
    ]


def written(format: str, wholes: Iterable[Whole], about: About = ABOUT) -> bytes:
    return b"".join(skos.write(FORMATS[format], about, wholes))


# Words that are syntax somewhere, and characters that are often handled wrongly.
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
TROUBLE = ["\n", "\r", "\r\n", "\t", " ", "  ", "🧠", "שלום", "e\u0301", "\u202e", "\u2028", "\ufeff", "\x85", "\u00a0"]
LOOKALIKES = ["_:b", "<<(", "\\u0041", "%41", "true", "1", "a", "word"]
hostile = st.sampled_from(SYNTAX + TROUBLE + LOOKALIKES)
texts = st.lists(hostile | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5), max_size=8).map("".join)
filled = texts.filter(bool)
tags = st.sampled_from(["en", "de", "pt-BR", "zh-Hant-TW", "x-private", "zxx", "he", "sl-rozaj-biske"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(st.builds(Alias.model_construct, text=filled, lang=tags, scope=scopes), max_size=6).map(tuple)
identifiers = st.from_regex(r"\A(trm|dso|cnt)_[0-9A-Za-z]{1,13}\Z") | filled.map(lambda text: text[:40])
IRIS = [
    "https://example.org/a?b=c&d='e'#f",
    "http://purl.obolibrary.org/obo/DOID_1",
    "https://пример.example/ü",
    "urn:uuid:0",
]
CURIES = ["DOID:3324", "my_own:1", "dc:creator", "skos:prefLabel", "id:1", "mailto:a@b.example"]
outside = st.sampled_from(IRIS + CURIES)
stamps = st.integers(-(2**62), 2**62)


@st.composite
def made_wholes(draw: st.DrawFn) -> Whole:
    """A record with anything in it that a catalogue can hold and RDF/XML can say."""
    collection: Collection = draw(st.sampled_from(list(COLLECTIONS.values())))
    identifier = draw(identifiers)
    own: dict[str, Any] = {}
    for name, kind in collection.types.items():
        if name == "alias":
            continue
        own[name] = draw(st.integers(-(2**63), 2**63 - 1) | stamps if kind is int else texts)
    own |= {"id": identifier, "id_concept_class": draw(identifiers | st.just(""))} if "id_concept_class" in own else {}
    fields = complete(collection, own | {"id": identifier}, AT)
    relations = [each for each in RELATIONS.values() if each.source in (collection.name, None)]
    edges = set()
    for relation in draw(st.lists(st.sampled_from(relations), max_size=6)):
        others = st.just(identifier) | identifiers
        edges.add(Edge(identifier, relation.name, draw(outside if relation in MAPPINGS else others)))
    state = draw(st.sampled_from(list(State)))
    return Whole(
        collection,
        fields,
        frozenset(edges),
        state,
        None if state == State.PUBLISHED else draw(st.none() | identifiers),
        draw(aliases),
        tuple(draw(st.lists(filled | outside, max_size=4))),
    )


def taken(incoming: Incoming) -> Whole:
    """The record that an empty catalogue would have of it."""
    collection = COLLECTIONS[incoming.collection]
    assert incoming.state is not None
    assert incoming.sources is not None
    assert (incoming.problems, incoming.warnings, incoming.foreign) == ([], [], "")
    return Whole(
        collection,
        complete(collection, incoming.fields, AT),
        frozenset(incoming.edges),
        incoming.state,
        incoming.replaced_by,
        incoming.aliases,
        incoming.sources,
    )


def in_order(whole: Whole) -> Whole:
    """The record with its aliases in one order: JSON-LD groups them by scope and language."""
    return replace(whole, aliases=tuple(sorted(whole.aliases or (), key=repr)), sources=tuple(sorted(whole.sources)))


@pytest.mark.parametrize("format", SYNTAXES)
@settings(max_examples=40, deadline=None)
@given(wholes=st.lists(made_wholes(), max_size=4, unique_by=lambda whole: whole.id))
def test_out_and_in_again_changes_nothing(format: str, wholes: list[Whole]) -> None:
    again = [
        taken(incoming) for incoming in read(written(format, wholes), format, fallback=None) if incoming.collection
    ]
    ordered = in_order if format == "jsonld" else lambda whole: whole
    assert {whole.id: ordered(whole) for whole in again} == {whole.id: ordered(whole) for whole in wholes}


@pytest.mark.parametrize("format", SYNTAXES)
@settings(max_examples=10, deadline=None)
@given(wholes=st.lists(made_wholes(), max_size=4, unique_by=lambda whole: whole.id))
def test_what_another_catalogue_exported_is_the_same_under_this_base(format: str, wholes: list[Whole]) -> None:
    there = replace(ABOUT, base="http://elsewhere.example/terms#")
    document = written(format, wholes, there)
    again = [taken(incoming) for incoming in read(document, format, fallback=None) if incoming.collection]
    ordered = in_order if format == "jsonld" else lambda whole: whole
    assert {whole.id: ordered(whole) for whole in again} == {whole.id: ordered(whole) for whole in wholes}


def test_a_scheme_that_only_looks_like_ours_does_not_make_foreign_records_ours() -> None:
    [one] = turtle(
        """<https://x.example/concept> a skos:ConceptScheme, <https://y.example/vocabulary#Collection> .
           <https://x.example/id/trm_1> a skos:Concept ; skos:prefLabel "dog" ."""
    )
    assert one.foreign == "https://x.example/id/trm_1"


def concept(identifier: str = "trm_1", **given: Any) -> Whole:
    fields = complete(CONCEPT, {"id": identifier, "name": "attention", **given.pop("fields", {})}, AT)
    return Whole(CONCEPT, fields, **given)


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_long_text_comes_back_whole(format: str) -> None:
    whole = concept(fields={"definition_text": "line “of” text\n" * 4_000}, aliases=())
    [again] = read(written(format, [whole]), format)
    assert taken(again) == whole


@pytest.mark.parametrize("format", [each for each in SYNTAXES if each != "rdfxml"])
def test_control_characters_come_back_where_a_syntax_can_say_them(format: str) -> None:
    whole = concept(fields={"definition_text": "\x01\x0b\x7f\x9f\ufffe"}, aliases=())
    [again] = read(written(format, [whole]), format)
    assert taken(again) == whole


def test_xml_has_a_replacement_for_what_it_cannot_say() -> None:
    [again] = read(written("rdfxml", [concept(fields={"definition_text": "a\x01b"}, aliases=())]), "rdfxml")
    assert again.fields["definition_text"] == "a\ufffdb"


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_record_that_was_never_edited_comes_back_as_it_is_listed(format: str) -> None:
    [again] = read(written(format, [concept(fields={"alias": "focus, concentration"})]), format)
    assert again.aliases == (alias("focus"), alias("concentration"))
    assert "alias" not in again.fields


@pytest.mark.parametrize("format", SYNTAXES)
def test_the_language_of_a_catalogue_is_that_of_its_names(format: str) -> None:
    about = replace(ABOUT, language="pt-BR")
    document = written(format, [concept(aliases=(alias("focus"),))], about)
    [again] = skos.read(io.BytesIO(document), Reading(FORMATS[format], about))
    assert again.fields["name"] == "attention"
    assert again.aliases == (alias("focus"),)


def test_writing_takes_records_one_by_one() -> None:
    taken_so_far = []

    def wholes() -> Iterator[Whole]:
        for number in range(3):
            taken_so_far.append(number)
            yield concept(f"trm_{number}")

    pieces = skos.write(FORMATS["skos"], ABOUT, wholes())
    while b"id:trm_0" not in next(pieces):
        pass
    assert taken_so_far == [0]


def test_turtle_is_written_for_people() -> None:
    whole = concept(
        fields={"definition_text": 'To "attend".', "id_concept_class": "ctp_C1", "id_user": "usr_7"},
        edges=frozenset({Edge("trm_1", "KINDOF", "trm_2"), Edge("trm_1", "PARTOF", "trm_3")}),
        aliases=(alias("focus"), alias("Fokus", lang="de"), alias("gaze", scope="narrow")),
        sources=("https://example.org/book", "A book, p. 3"),
    )
    _, scheme, record = written("skos", [whole]).decode().split("\n\n")
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
        f'    lexarium:def_id "{whole.fields["def_id"]}" ;\n'
        '    lexarium:def_event_stamp "2023-11-14T22:13:20" ;\n'
        f'    lexarium:creation_time "{AT}"^^xsd:integer ;\n'
        '    dct:modified "2023-11-14T22:13:20.123Z"^^xsd:dateTime .\n'
    )


@pytest.mark.parametrize("format", ["skos", "jsonld"])
def test_one_record_is_shown_with_the_names_of_those_around_it(format: str) -> None:
    whole = concept(edges=frozenset({Edge("trm_1", "KINDOF", "trm_2")}))
    related = [
        Related("trm_2", "cognition", "KINDOF", "source"),
        Related("trm_3", "vigilance", "KINDOF", "target"),
        Related("tsk_4", "a task", "ASSERTS", "target"),
        Related("trm_5", None, "KINDOF", "target"),
        Related("DOID:1", None, "exactMatch", "source"),
    ]
    document = skos.one(FORMATS[format], ABOUT, whole, related)
    [again] = [incoming for incoming in read(document, format) if incoming.fields]
    assert taken(again) == replace(whole, aliases=())
    for name in ("cognition", "vigilance", "a task"):
        assert name.encode() in document
    if format == "skos":
        assert b"skos:narrower id:trm_3,\n        id:trm_5" in document
        assert b'id:tsk_4\n    skos:prefLabel "a task"@en ;\n    lexarium:asserts id:trm_1 .' in document


def test_json_ld_is_compact() -> None:
    document = orjson.loads(skos.one(FORMATS["jsonld"], ABOUT, concept(aliases=(alias("focus"),)), []))
    [scheme, record] = document["@graph"]
    assert record["prefLabel"] == {"en": "attention"}
    assert record["altLabel"] == {"en": "focus"}
    assert record["inScheme"] == scheme["@id"] == "https://terms.example/concept"
    assert document["@context"]["broader"] == {"@id": "http://www.w3.org/2004/02/skos/core#broader", "@type": "@id"}


def test_labels_in_the_catalogues_language_are_names_and_others_are_kept_with_theirs() -> None:
    [one] = turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "Hund"@de, "dog"@en, "犬"@ja-hira-jp ;
            skos:altLabel "hound"@en, "pooch" ; skos:hiddenLabel "dgo"@en ; skos:notation "D-1" ."""
    )
    assert one.fields == {"name": "dog"}
    assert one.foreign == "https://example.org/1"
    assert one.aliases == (
        alias("Hund", lang="de"),
        alias("犬", lang="ja-Hira-JP"),
        alias("hound"),
        alias("pooch"),
        alias("dgo", scope="hidden"),
        alias("D-1", lang="zxx", scope="hidden"),
    )


def test_a_label_in_another_language_is_the_name_where_there_is_no_other() -> None:
    text = 'ex:1 a skos:Concept ; skos:prefLabel "Hund"@de .'
    [one] = turtle(text)
    assert (one.fields["name"], one.aliases) == ("Hund", (alias("Hund", lang="de"),))
    assert remarks(text) == ["no label is in en, and one in another language is the name (Hund)"]


def test_labels_that_are_resources_are_read() -> None:
    [one] = turtle(
        """ex:1 a skos:Concept ; skosxl:prefLabel ex:label ; skosxl:altLabel [ skosxl:literalForm "hound"@en ] .
           ex:label a skosxl:Label ; skosxl:literalForm "dog"@en ."""
    )
    assert (one.fields["name"], one.aliases) == ("dog", (alias("hound"),))


def test_a_label_that_is_mentioned_again_is_one() -> None:
    [one] = turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "dog" ; skosxl:altLabel ex:label, ex:label .
           ex:label skosxl:literalForm "hound"@en, "hound"@de ."""
    )
    assert one.aliases == (alias("hound"), alias("hound", "de"))
    many = ", ".join(["ex:label"] * 30_000)
    forms = ", ".join(f'"{number}"' for number in range(99))
    [one] = turtle(
        f"""ex:1 a skos:Concept ; skos:prefLabel "dog" ; skosxl:altLabel {many} .
            ex:label skosxl:literalForm {forms} ."""
    )
    assert one.aliases is not None
    assert len(one.aliases) == 99


def test_a_label_of_which_too_much_is_said_is_left_out_and_told() -> None:
    forms = ", ".join(f'"{number}"' for number in range(30_000))
    concepts = "".join(
        f'ex:{number} a skos:Concept ; skos:prefLabel "{number}" ; skosxl:altLabel ex:label .'
        for number in range(1_000)
    )
    text = f"ex:label skosxl:literalForm {forms} . {concepts}"
    assert [one.aliases for one in turtle(text)] == [()] * 1_000
    assert any("of which more than 100 things are said was left out" in remark for remark in remarks(text))


def test_hierarchies_are_read_from_either_end() -> None:
    one, two, three = turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:narrower ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:broaderTransitive ex:0 .
           ex:3 a skos:Concept ; skos:prefLabel "c" ; skos:broader ex:1 ; isothes:broaderPartitive ex:1 ;
              skos:broaderTransitive ex:2 ."""
    )
    assert one.edges == []
    assert two.edges == [Edge("https://example.org/2", "KINDOF", "https://example.org/1")]
    # What is said to be a part is not a kind, and what is far away counts where nothing nearer is said.
    assert Edge("https://example.org/3", "PARTOF", "https://example.org/1") in three.edges
    assert ("KINDOF", "source") in one.told
    assert ("RELATED", "source") not in one.told


def test_what_goes_both_ways_is_one_relation() -> None:
    one, two = turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:related ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:related ex:1 ."""
    )
    assert one.edges == two.edges == [Edge("https://example.org/1", "RELATED", "https://example.org/2")]
    assert {("RELATED", "source"), ("RELATED", "target")} <= set(one.told)


def test_relations_fit_the_collection() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:broader ex:2 ; skos:related ex:3 ;
        isothes:broaderPartitive ex:4 ; skos:closeMatch <http://other.example/1>, "not one" ."""
    [disorder] = turtle(text, collection=DISORDER)
    assert disorder.edges == [
        Edge("https://example.org/1", "relatedMatch", "https://example.org/3"),
        Edge("https://example.org/1", "closeMatch", "http://other.example/1"),
        Edge("https://example.org/1", "ISA", "https://example.org/2"),
    ]
    assert "a disorder cannot be the source of PARTOF; that was left out (https://example.org/1)" in remarks(
        text, collection=DISORDER
    )
    [contrast] = turtle(text, collection=CONTRAST)
    assert {edge.relation for edge in contrast.edges} == {"relatedMatch", "closeMatch"}


def test_what_is_deprecated_is_retired() -> None:
    one, two, three = turtle(
        """ex:1 a skos:Concept ; skos:prefLabel "a" ; owl:deprecated true ; dct:isReplacedBy ex:2 .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; dct:replaces ex:3 .
           ex:3 a skos:Concept ; skos:prefLabel "c" ; owl:deprecated false ."""
    )
    assert (one.state, one.replaced_by) == (State.RETIRED, "https://example.org/2")
    assert (two.state, two.replaced_by) == (State.PUBLISHED, None)
    assert (three.state, three.replaced_by) == (State.RETIRED, "https://example.org/2")


def test_definitions_and_where_they_are_from_are_read() -> None:
    one, two = turtle(
        """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
           ex:1 a skos:Concept ; skos:prefLabel "a" ; skos:definition "Tier"@de, "animal"@en ; skos:scopeNote "note" ;
              dct:source "a book", <http://books.example/1> ;
              dct:created "2020-02-01" ; dct:modified "2021-03-04T05:06:07Z" .
           ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:scopeNote [ rdf:value "used of pets"@en ] ."""
    )
    assert one.fields == {
        "name": "a",
        "definition_text": "animal",
        "event_stamp": "2020-02-01T00:00:00",
        "creation_time": 1_580_515_200_000,
        "last_updated": 1_614_834_367_000,
    }
    assert one.sources == ("a book", "http://books.example/1")
    assert two.fields["definition_text"] == "used of pets"


def test_a_scheme_of_ours_tells_the_collection() -> None:
    text = """<https://terms.example/id/tsk_1> skos:inScheme <https://terms.example/task> ; skos:prefLabel "a" .
              ex:2 a skos:Concept ; skos:prefLabel "b" ; skos:inScheme ex:scheme ."""
    one, two = turtle(text)
    assert (one.collection, one.fields["id"], one.foreign) == ("task", "tsk_1", "")
    assert (two.collection, two.foreign) == ("concept", "https://example.org/2")
    assert {incoming.collection for incoming in turtle(text, collection=TASK)} == {"task"}
    with pytest.raises(Malformed, match="nothing tells which collection"):
        turtle(text, fallback=None)


def test_predicates_that_are_not_known_are_named_once_and_can_be_mapped() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "a" ; ex:code "1", "2" ; skos:example "x" ; ex:up ex:2 .
              ex:2 a skos:Concept ; skos:prefLabel "b" ; ex:code "3" ."""
    assert remarks(text) == [
        "https://example.org/code is not known and was left out; --map can say what it means (3 times)",
        "skos:example is not known and was left out; --map can say what it means",
        "https://example.org/up is not known and was left out; --map can say what it means",
    ]
    told = {
        "https://example.org/code": "aliases",
        "skos:example": "definition_text",
        "https://example.org/up": "PARTOF",
    }
    assert remarks(text, map=told) == []
    one, _ = turtle(text, map=told)
    assert one.aliases == (alias("1"), alias("2"))
    assert one.fields["definition_text"] == "x"
    assert one.edges == [Edge("https://example.org/1", "PARTOF", "https://example.org/2")]


def test_terms_of_another_scheme_are_told() -> None:
    text = """ex:s a skos:ConceptScheme ; dct:license <http://licences.example/by> .
              ex:1 a skos:Concept ; skos:prefLabel "a" ."""
    assert remarks(text) == [
        "it has terms of its own, to which the catalogue's should fit (http://licences.example/by)"
    ]


def test_what_has_no_label_or_no_name_of_its_own_is_left_out() -> None:
    text = 'ex:1 a skos:Concept . [] a skos:Concept ; skos:prefLabel "b" . <#c> a skos:Concept ; skos:prefLabel "c" .'
    assert turtle(text) == []
    assert remarks(text) == [
        "what has no label was left out (https://example.org/1)",
        "what has no IRI of its own was left out (#c)",
    ]


def test_a_record_is_found_at_its_line() -> None:
    document = written("ntriples", [concept("trm_1"), concept("trm_2")]).splitlines()
    lines = [incoming.line for incoming in read(b"\n".join(document), "ntriples")]
    assert lines == [next(n for n, line in enumerate(document, 1) if each in line) for each in (b"trm_1", b"trm_2")]
    [one] = read('<http://a.example/1>\n\n  a <http://www.w3.org/2004/02/skos/core#Concept> ;\n'
                 '  <http://www.w3.org/2004/02/skos/core#prefLabel> "a" .')  # fmt: skip
    assert one.line == 3


def test_statements_may_be_scattered() -> None:
    lines = written("ntriples", [concept(f"trm_{number}", aliases=()) for number in range(20)]).splitlines(
        keepends=True
    )
    scattered = b"".join(lines[::2] + lines[1::2])
    again = {incoming.fields["id"]: incoming.fields for incoming in read(scattered, "ntriples")}
    assert again == {incoming.fields["id"]: incoming.fields for incoming in read(b"".join(lines), "ntriples")}


def test_json_ld_is_read_in_any_order_of_keys() -> None:
    document = b"""{"@graph": [{"label": "a", "@type": "Concept", "@id": "http://a.example/1"}],
        "@context": {"@vocab": "http://www.w3.org/2004/02/skos/core#", "label": "prefLabel"}}"""
    [one] = read(document, "jsonld")
    assert (one.foreign, one.fields) == ("http://a.example/1", {"name": "a"})


def test_an_empty_catalogue_is_a_document_without_records() -> None:
    assert [read(written(name, []), name) for name in SYNTAXES] == [[], [], [], []]


def test_an_ontology_is_not_taken_for_a_thesaurus() -> None:
    with pytest.raises(Malformed, match="--format owl"):
        turtle('ex:1 a owl:Class ; rdfs:label "a" .')


def test_an_iri_that_no_record_can_have_is_of_another() -> None:
    text = """<https://terms.example/id/%00> a skos:Concept ; skos:prefLabel "a" .
              <https://terms.example/id/> a skos:Concept ; skos:prefLabel "b" .
              <https://terms.example/id/tr%C3%A4_1> a skos:Concept ; skos:prefLabel "c" ."""
    assert [(each.foreign, each.fields.get("id")) for each in turtle(text)] == [
        ("https://terms.example/id/%00", None),
        ("https://terms.example/id/", None),
        ("", "trä_1"),
    ]


@pytest.mark.parametrize("format", SYNTAXES)
def test_a_record_may_be_related_to_itself_and_have_a_name_twice(format: str) -> None:
    whole = concept(edges=frozenset({Edge("trm_1", "KINDOF", "trm_1")}), aliases=(alias("focus"), alias("focus")))
    [again] = read(written(format, [whole]), format)
    assert taken(again) == whole


def test_what_holds_nothing_of_skos_is_refused() -> None:
    with pytest.raises(Malformed, match="nothing that it speaks of is a skos:Concept"):
        turtle('ex:1 rdfs:label "one" .')
    assert turtle("ex:all a skos:ConceptScheme .") == []
    assert read(PREFIXES) == read("") == []


def test_collections_of_concepts_are_told_of_and_are_no_concepts() -> None:
    text = """ex:1 a skos:Concept ; skos:prefLabel "one" ; skos:inScheme ex:all .
        ex:some a skos:Collection ; skos:prefLabel "some" ; skos:inScheme ex:all ; skos:member ex:1 ."""
    assert [each.fields["name"] for each in turtle(text)] == ["one"]
    assert remarks(text) == ["a skos:Collection is not kept (https://example.org/some)"]
