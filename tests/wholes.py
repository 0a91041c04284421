"""Made records with hostile text, for formats that must give back what they were given."""

from typing import Any

from hypothesis import strategies as st

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias, join, split
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.relations import RELATIONS, Edge

ABOUT = About("A “title”\nof [things]", "https://example.org/by/4.0", "Who, of {where} !", "en", "https://example.org/")

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
_any = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
texts = st.lists(_SNIPPETS | _any, max_size=5).map("".join)
some_text = texts.filter(bool)
identifiers = st.sampled_from(
    ["trm_1", "tsk_2b", "dso_3", "cnt_4", "ctp_5", "trm_6", "odd", "odd id, [2]", "x:1", "a\u00a0b", "=1", "5"]
)
outside = st.sampled_from(
    ["DOID:3324", "https://example.org/a,b;c?d=[e]#f!g@h", "MESH:D01(1)", "urn:x:y", "http://é.example/ü", "A_b:'1'"]
)
languages = st.sampled_from(["en", "de", "pt-BR", "zh-Hant"])
scopes = st.sampled_from(["exact", "narrow", "broad", "related", "hidden"])
aliases = st.lists(st.builds(Alias.model_construct, text=some_text, lang=languages, scope=scopes), max_size=3)
integers = st.integers(-(2**63), 2**63 - 1)


def relations_of(collection: Collection) -> list[str]:
    return [each.name for each in RELATIONS.values() if each.source in (None, collection.name)]


@st.composite
def edges(draw: st.DrawFn, collection: Collection, source: str) -> frozenset[Edge]:
    found = set()
    for name in draw(st.lists(st.sampled_from(relations_of(collection)), max_size=4)):
        found.add(Edge(source, name, draw(identifiers if RELATIONS[name].target else outside)))
    return frozenset(found)


@st.composite
def wholes(draw: st.DrawFn) -> Whole:
    """A record of any collection and state; its other names in one text, or as a list."""
    collection = draw(st.sampled_from(list(COLLECTIONS.values())))
    fields: dict[str, Any] = {name: draw(texts if kind is str else integers) for name, kind in collection.types.items()}
    fields["id"] = draw(identifiers)
    for name, usual in {"id_user": "usr_1", "event_stamp": "2017-12-07T15:30:26"}.items():
        if name in fields and draw(st.booleans()):
            fields[name] = usual
    listed: tuple[Alias, ...] | None = tuple(draw(aliases))
    if "alias" in fields:
        if draw(st.booleans()):
            listed = None
        else:
            fields["alias"] = join(listed or ())
            listed = None if split(fields["alias"]) == listed else listed
    state = draw(st.sampled_from(State))
    replaced = draw(identifiers) if state is State.MERGED or (state is State.RETIRED and draw(st.booleans())) else None
    return Whole(
        collection,
        fields,
        draw(edges(collection, fields["id"])),
        state,
        replaced,
        listed,
        tuple(draw(st.lists(some_text, max_size=3))),
    )


catalogues = st.lists(wholes(), max_size=4)


LONG = ('“Lang”, \\ und\n "mehr"; |=' * 2_000)[:50_000]
LONG_ONE = Whole(
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
