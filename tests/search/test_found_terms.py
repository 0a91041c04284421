"""Tolerant search: acronyms, numbers, typing errors in long names, some of the words, several languages."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.server import Server
from tests.support.v1_client import V1Client
from tests.support.vocabularies import add_concept, create_vocabulary

LONG_NAME = "assessment of the ability to plan several steps ahead while ignoring irrelevant surrounding information"
TERMS: list[dict[str, Any]] = [
    {"name": "attention-deficit/hyperactivity disorder"},
    {"name": "obsessive compulsive disorder"},
    {"name": "posttraumatic stress disorder"},
    {"name": "ADHD rating scale"},
    {"name": "cat naming"},
    {"name": "card arrangement test"},
    {"name": "electroencephalography"},
    {"name": "paced serial addition (PASAT)"},
    {"name": "blood flow imaging", "definition_text": "Imaging by magnetic resonance (fMRI)."},
    {"name": "spinocerebellar ataxia 17"},
    {"name": "spinocerebellar ataxia 27A"},
    {"name": "glycogen storage disease type XI"},
    {"name": "two-step task"},
    {"name": LONG_NAME},
    {"name": "insomnia", "definition_text": "Lying awake although one is tired: sleep does not come."},
    {"name": "amnesia", "definition_text": "Forgetting what was once known."},
    {"name": "memory span"},
    {"name": "หน่วยความจำ"},
    {"name": "spinocerebellar atrophy, olivary"},
    {"name": "lexical generation speed task"},
    {"name": "myelodysplastic papillomavirus infection"},
    {
        "name": "emotional counting task",
        "definition_text": "A counting task in which counting task words are emotional.",
    },
    {"name": "counting task"},
    {"name": "mindset", "definition_text": "A habitual view of things."},
    {"name": "gestures", "definition_text": "Skilled signs, to carry a meaning."},
    {"name": "apraxia", "definition_text": "Inability to carry out skilled gestures slowly."},
    {"name": "thalamic stroke", "definition_text": "A lesion with hemianaesthesia of one side."},
]


class TermSearch:
    """Search in a small catalogue on a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        api = V1Client(server, "admin")
        for fields in TERMS:
            api.create("concept", **fields)

    def search(self, text: str, **options: object) -> Any:
        response = self.server.get(f"/api/v1/search?{urlencode({'q': text, **options})}")
        assert response.status == 200, response.body
        return response.json

    def find_first(self, text: str) -> tuple[str, str]:
        """Return the name and the match kind of the first hit."""
        hit = self.search(text)["hits"][0]
        return hit["name"], hit["matched"]["kind"]


@pytest.fixture(scope="module", params=ENGINES)
def terms(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[TermSearch]:
    with Server(new_url(request.param)) as server:
        yield TermSearch(server)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ADHD", "attention-deficit/hyperactivity disorder"),
        ("adhd", "attention-deficit/hyperactivity disorder"),
        ("A.D.H.D.", "attention-deficit/hyperactivity disorder"),
        ("OCD", "obsessive compulsive disorder"),
        ("PTSD", "posttraumatic stress disorder"),
        ("EEG", "electroencephalography"),
        ("pasat", "paced serial addition (PASAT)"),
        ("fMRI", "blood flow imaging"),
        ("SCAO", "spinocerebellar atrophy, olivary"),
        ("MDPVI", "myelodysplastic papillomavirus infection"),
        ("LGS", "lexical generation speed task"),
    ],
)
def test_an_acronym_finds_the_abbreviated_name(terms: TermSearch, text: str, name: str) -> None:
    assert terms.find_first(text) == (name, "acronym")


def test_names_with_the_word_rank_above_names_with_these_initials(terms: TermSearch) -> None:
    assert [hit["name"] for hit in terms.search("cat")["hits"]] == ["cat naming", "card arrangement test"]
    assert terms.find_first("CAT") == ("card arrangement test", "acronym")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("spinocerebellar ataxia type 17", "spinocerebellar ataxia 17"),
        ("spinocerebellar ataxia XVII", "spinocerebellar ataxia 17"),
        ("spinocerebelar ataxia 17", "spinocerebellar ataxia 17"),
        ("glycogen storage disease 11", "glycogen storage disease type XI"),
        ("glycogen storage disease type 11", "glycogen storage disease type XI"),
        ("2-step task", "two-step task"),
        ("spinocerebellar ataxia type seventeen", "spinocerebellar ataxia 17"),
    ],
)
def test_digits_match_roman_numerals_and_number_words(terms: TermSearch, text: str, name: str) -> None:
    assert terms.find_first(text)[0] == name


def test_a_number_is_never_corrected(terms: TermSearch) -> None:
    found = terms.search("spinocerebellar ataxia 28")
    assert (found["partial"], found["did_you_mean"]) == (True, None)


@pytest.mark.parametrize(
    "text",
    [
        LONG_NAME.replace("irrelevant", "irrelevnat"),
        LONG_NAME.replace("several", "severl").replace("surrounding", "surruonding"),
    ],
)
def test_typing_errors_in_a_long_name_are_corrected(terms: TermSearch, text: str) -> None:
    assert terms.find_first(text) == (LONG_NAME, "typo")


def test_records_with_some_of_the_words_are_found_if_none_has_all(terms: TermSearch) -> None:
    found = terms.search("forgetting things")
    assert (found["partial"], found["hits"][0]["name"]) == (True, "amnesia")
    assert found["hits"][0]["matched"]["kind"] == "partial"
    assert terms.find_first("not being able to sleep") == ("insomnia", "definition_words")
    assert terms.search("memory")["partial"] is False


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("slow counting task", "counting task"),  # the whole name is in the query
        ("OCD prevalence", "obsessive compulsive disorder"),
        ("state of mind after fatigue of memory", "memory span"),  # not "mindset"
        ("carry out skilled gestures slowly, fluently", "apraxia"),  # a short name is in the query by chance
    ],
)
def test_partial_matches_of_a_whole_name_or_word_rank_first(terms: TermSearch, text: str, name: str) -> None:
    assert terms.find_first(text) == (name, "partial")


@pytest.mark.parametrize("text", ["hemianesthesi", "hemianesthezia", "hemianestetic"])
def test_a_word_found_only_in_definitions_may_be_a_prefix_or_misspelled(terms: TermSearch, text: str) -> None:
    assert terms.find_first(text) == ("thalamic stroke", "partial")


def test_partial_hits_are_in_the_same_order_on_every_page(terms: TermSearch) -> None:
    hits = [hit["id"] for hit in terms.search("counting stroke disorder zebra", limit=10)["hits"]]
    pages = [terms.search("counting stroke disorder zebra", limit=1, offset=offset) for offset in range(len(hits))]
    assert [page["hits"][0]["id"] for page in pages] == hits
    assert len(hits) > 3


def test_names_with_similar_spelling_are_suggested_if_no_record_has_all_words(terms: TermSearch) -> None:
    found = terms.search("insomniac feline")
    assert "insomnia" in [item["name"] for item in (*found["hits"], *found["nearest"])]
    assert terms.search("memory span")["nearest"] == []


def test_v_alpha_finds_only_records_with_all_words(terms: TermSearch) -> None:
    assert terms.server.get("/api/v-alpha/search?q=forgetting+things").json == []
    assert [item["name"] for item in terms.server.get("/api/v-alpha/search?q=OCD").json] == [
        "obsessive compulsive disorder"
    ]


def test_part_of_a_name_in_a_script_without_spaces_is_found(terms: TermSearch) -> None:
    assert terms.find_first("ความจำ") == ("หน่วยความจำ", "name_words")


def test_the_page_says_that_no_record_has_all_words_and_offers_to_propose_the_term(terms: TermSearch) -> None:
    page = terms.server.get("/search?q=forgetting+things").body.decode()
    assert "No record matches all words" in page
    assert "forgetting things”" not in page
    person = BrowserlessClient(terms.server)
    person.sign_in("contributor")
    assert "Propose “forgetting things”" in person.open("/search?q=forgetting+things")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Gedächtnisse", "de"),
        ("erinnerte Tatsachen", "de"),
        ("connaissances", "fr"),
        ("Spanne", "de"),
        ("MT", "fr"),
    ],
)
def test_inflections_parts_of_compounds_and_acronyms_follow_the_language_of_the_text(
    new_url: DatabaseUrlFactory, text: str, language: str
) -> None:
    url = new_url("sqlite")
    database = Database(url)
    create_vocabulary(database, "thes", languages=["en", "de", "fr"])
    names = {"en": "memory", "de": "Arbeitsgedächtnisspanne", "fr": "mémoire de travail"}
    definitions = {"de": "Das Gedächtnis erinnert an eine Tatsache.", "fr": "Ce qui garde la connaissance."}
    add_concept(database, "thes", "c1", names, definitions=definitions)
    database.close()
    with Server(url) as server:
        response = server.get(f"/api/v1/search?{urlencode({'q': text})}")
        assert [(hit["id"], hit["matched"]["language"]) for hit in response.json["hits"]] == [("c1", language)]
