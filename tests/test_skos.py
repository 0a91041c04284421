"""SKOS in its four syntaxes: what is read, what is written, and that out and in again changes nothing."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, CONCEPT, CONTRAST, DISORDER, Collection
from lexarium.domain.completion import complete
from lexarium.domain.relations import MAPPINGS, RELATED, RELATIONS, Edge, Related
from lexarium.domain.stamps import precise_text_of
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
SYNTAX = ['"', "'", '"""', "\\", "\\n", ";", "=", "<b>", "&amp;", "&", "]]>", "<!--", "@en", "^^xsd:integer", "{", "}", "["]
TROUBLE = ["\n", "\r", "\r\n", "\t", " ", "  ", "🧠", "שלום", "e\u0301", "\u202e", "\u2028", "\ufeff", "\x85", "\u00a0"]
LOOKALIKES = ["_:b", "<<(", "\\u0041", "%41", "true", "1", "a", "word"]
hostile = st.sampled_from(SYNTAX + TROUBLE + LOOKALIKES)
texts = st.lists(hostile | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5), max_size=8).map("".join)
filled = texts.filter(bool)
tags = st.sampled_from(["en", "de", "pt-BR", "zh-Hant-TW", "x-private", "zxx", "he", "sl-rozaj-biske"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(
    st.builds(Alias.model_construct, text=filled, lang=tags, scope=scopes), max_size=6, unique=True
).map(tuple)
identifiers = st.from_regex(r"\A(trm|dso|cnt)_[0-9A-Za-z]{1,13}\Z") | filled.map(lambda text: text[:40])
IRIS = ["https://example.org/a?b=c&d='e'#f", "http://purl.obolibrary.org/obo/DOID_1", "https://пример.example/ü", "urn:uuid:0"]
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
        target = draw(outside if relation in MAPPINGS else identifiers)
        if target != identifier:
            edges.add(Edge(identifier, relation.name, target))
    state = draw(st.sampled_from(list(State)))
    return Whole(
        collection,
        fields,
        frozenset(edges),
        state,
        None if state == State.PUBLISHED else draw(st.none() | identifiers),
        draw(aliases),
        tuple(draw(st.lists(filled | outside, max_size=4, unique=True))),
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
@settings(max_examples=150, deadline=None)
@given(wholes=st.lists(made_wholes(), max_size=4, unique_by=lambda whole: whole.id))
def test_out_and_in_again_changes_nothing(format: str, wholes: list[Whole]) -> None:
    again = [taken(incoming) for incoming in read(written(format, wholes), format, fallback=None) if incoming.line]
    ordered = in_order if format == "jsonld" else lambda whole: whole
    assert sorted(map(ordered, again), key=lambda whole: whole.id) == sorted(
        map(ordered, wholes), key=lambda whole: whole.id
    )
