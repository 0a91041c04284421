"""Hypothesis strategies for records with hostile text."""

from typing import Any

from hypothesis import strategies as st

from lexarium.domain.labels import Alias, format_aliases, parse_aliases
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.vocabulary import Vocabulary
from tests.support.records import make_record

VOCABULARY = Vocabulary(
    title="A “title”\nof [things]",
    licence="https://example.org/by/4.0",
    publisher="Who, of {where} !",
    base="https://example.org/",
)

_SNIPPETS = st.sampled_from(
    [
        *"\\\"'|;,:!@#=+-{}[]()<>%&\t\n\r\f\v\u2028\x1c\x85 ",
        *(
            "\r\n",
            '""',
            "\\n",
            "\\W",
            "\\ ",
            " ! c",
            '" []',
            '{a="b"}',
            "[Term]",
            "id: x",
            '"',
            "=1+1",
            "＝1",
            "'=1",
            "''",
            "@de",
        ),
        *(
            " @de/narrow",
            "\\|",
            "\\;",
            "a|b",
            "a;b",
            "a@b",
            "🧠",
            "שלום",
            "e\u0301",
            "\u202eabc",
            "\ufeff",
            "  ",
            "é",
            "x",
        ),
    ]
)
_storable_chars = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
storable_texts = st.text(_storable_chars)
_random_texts = st.text(_storable_chars, max_size=20)
texts = st.lists(_SNIPPETS | _random_texts, max_size=5).map("".join)
nonempty_texts = texts.filter(bool)
identifiers = st.sampled_from(
    ["trm_1", "tsk_2b", "dso_3", "cnt_4", "ctp_5", "trm_6", "odd", "odd id, [2]", "x:1", "a\u00a0b", "=1", "5"]
)
external_ids = st.sampled_from(
    ["DOID:3324", "https://example.org/a,b;c?d=[e]#f!g@h", "MESH:D01(1)", "urn:x:y", "http://é.example/ü", "A_b:'1'"]
)
languages = st.sampled_from(["en", "de", "pt-BR", "zh-Hant"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(st.builds(Alias.model_construct, text=nonempty_texts, lang=languages, scope=scopes), max_size=3)
integers = st.integers(-(2**63), 2**63 - 1)


@st.composite
def relations(draw: st.DrawFn, collection: Collection, source: str) -> frozenset[Relation]:
    drawn_relations = set()
    for name in draw(st.lists(st.sampled_from(list(collection.relation_types)), max_size=4)):
        drawn_relations.add(
            Relation(source, name, draw(external_ids if RELATION_TYPES[name].is_mapping else identifiers))
        )
    return frozenset(drawn_relations)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Draw a record of any collection and state, its aliases in a text field or in a list."""
    collection = draw(st.sampled_from(list(COLLECTIONS.values())))
    fields: dict[str, Any] = {
        name: draw(texts if collection.field_types[name] is str else integers) for name in collection.core_fields
    }
    fields["id"] = draw(identifiers)
    for name, common_value in {"id_user": "usr_1", "event_stamp": "2017-12-07T15:30:26"}.items():
        if name in fields and draw(st.booleans()):
            fields[name] = common_value
    alias_list: tuple[Alias, ...] | None = tuple(draw(aliases))
    if "alias" in fields:
        if draw(st.booleans()):
            alias_list = None
        else:
            fields["alias"] = format_aliases(alias_list or ())
            alias_list = None if parse_aliases(fields["alias"]) == alias_list else alias_list
    state = draw(st.sampled_from(RecordState))
    replaced_by = (
        draw(identifiers)
        if state is RecordState.MERGED or (state is RecordState.RETIRED and draw(st.booleans()))
        else None
    )
    return make_record(
        collection,
        fields,
        draw(relations(collection, fields["id"])),
        state,
        replaced_by,
        alias_list,
        tuple(draw(st.lists(nonempty_texts, max_size=3))),
    )


record_lists = st.lists(records(), max_size=4)


LONG = ('“Lang”, \\ und\n "mehr"; |=' * 2_000)[:50_000]
LONG_RECORD = make_record(
    COLLECTIONS["disorder"],
    {
        "id": "dso_1",
        "name": LONG,
        "definition": LONG,
        "id_protocol": LONG,
        "id_user": "",
        "event_stamp": "",
        "flag_for_curator": 0,
    },
    aliases=(Alias.model_construct(text=LONG, lang="de", scope="broad"),),
    sources=(LONG, LONG),
)
