"""Search over HTTP on both engines: hits, ranking, highlights."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lexarium.search.analysis.folding import fold
from lexarium.search.analysis.languages import STOP_WORDS
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server, SpawnedServer, run_cli
from tests.support.v1_client import V1Client

TERMS: list[tuple[str, dict[str, Any]]] = [
    ("concept", {"name": "working memory", "aliases": [{"text": "WM"}, {"text": "short-term storage"}]}),
    ("concept", {"name": "memory working group"}),
    ("concept", {"name": "Working memory updating", "definition_text": "Replacing what working memory holds."}),
    ("concept", {"name": "naïveté", "definition_text": "A lack of hippocampus lore."}),
    ("concept", {"name": "intentional learning"}),
    ("concept", {"name": "behavioural inhibition"}),
    ("concept", {"name": "wage", "definition_text": "What is paid for earning something in an intentional way."}),
    ("task", {"name": "n-back task", "definition_text": "A task for the memory that works."}),
    ("task", {"name": "WM"}),
    ("disorder", {"name": "Alzheimer's disease", "relations": {"exactMatch": ["DOID:10652"]}}),
    ("contrast", {"name": "2-back minus 0-back"}),
    ("concept_class", {"name": "Memory and more"}),
    ("contrast", {"name": "zqx"}),
    ("task", {"name": "go/no-go task"}),
    ("task", {"name": "Tower of Hanoi"}),
    ("task", {"name": "workplace", "aliases": [{"text": "place of duty"}, {"text": "office for hours"}]}),
    ("concept", {"name": "工作记忆模型"}),
    ("disorder", {"name": "Parkinson disease", "id_protocol": "DOID"}),
    ("concept", {"name": "esteem", "definition_text": "How well one thinks of oneself: self-esteem, and more."}),
    ("concept", {"name": "executive function"}),
    ("concept", {"name": "oestrogen receptor"}),
    ("concept", {"name": "metal wheel", "aliases": [{"text": "thrift shop"}, {"text": "wheal"}]}),
    ("concept", {"name": "mild word"}),
    ("concept", {"name": "metal wheat"}),
]


class SearchCatalogue:
    """Small catalogue on a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._api = V1Client(server, "admin")
        self.token = self._api.token
        self.ids = {fields["name"]: self.create(collection, **fields) for collection, fields in TERMS}

    def create(self, collection: str, **fields: Any) -> str:
        return str(self._api.create(collection, **fields)["id"])

    def send(self, method: str, path: str, body: object = None, version: int = 1) -> HttpResponse:
        return self._api.send(method, path, body, If_Match=f'"{version}"')

    def search(self, text: str, **options: object) -> Any:
        response = self.server.get(f"/api/v1/search?{urlencode({'q': text, **options})}")
        assert response.status == 200, response.body
        return response.json

    def search_names(self, text: str, **options: object) -> list[str]:
        return [hit["name"] for hit in self.search(text, **options)["hits"]]

    def get_first_hit(self, text: str, **options: object) -> Any:
        return self.search(text, **options)["hits"][0]


@pytest.fixture(scope="module", params=ENGINES)
def catalogue(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[SearchCatalogue]:
    with Server(new_url(request.param)) as server:
        yield SearchCatalogue(server)


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("Working Memory", "working memory", "name"),
        ("wörking-memory", "working memory", "folded"),
        ("workingmemory", "working memory", "folded"),
        ("NAIVETE", "naïveté", "folded"),
        ("behavioral inhibition", "behavioural inhibition", "folded"),
        ("nback task", "n-back task", "folded"),
        ("Alzheimers", "Alzheimer's disease", "beginning"),
        ("short term storage", "working memory", "alias"),
        ("intent", "intentional learning", "beginning"),
        ("behaviou", "behavioural inhibition", "beginning"),
        ("nback", "n-back task", "beginning"),
        ("updating", "Working memory updating", "name_words"),
        ("storage", "working memory", "alias_words"),
        ("hippocampus", "naïveté", "definition_words"),
        ("intentional earning", "intentional learning", "typo"),
        ("workng memry", "working memory", "typo"),
        ("updaitng workng", "Working memory updating", "typo_words"),
        ("doid:10652", "Alzheimer's disease", "id"),
        ('"DOID:10652"', "Alzheimer's disease", "id"),
        ("the working memory", "working memory", "beginning"),
        ("what is working memory", "working memory", "beginning"),
        ("the tower of hanoi", "Tower of Hanoi", "beginning"),
        ("tower hanoi", "Tower of Hanoi", "beginning"),
        ("go/no-go", "go/no-go task", "beginning"),
        ("gonogo", "go/no-go task", "beginning"),
        ("executive functions", "executive function", "beginning"),
        ("executive-functions", "executive function", "beginning"),
        ("working/memories", "working memory", "beginning"),
        ("updatings working-memories", "Working memory updating", "name_words"),
        ("Parkinson’s disease", "Parkinson disease", "beginning"),
        ("duty hours", "workplace", "alias_words"),
        ("dut workplac", "workplace", "alias_words"),
        ("记忆", "工作记忆模型", "name_words"),
    ],
)
def test_the_best_hit_is_first_and_has_its_match_kind(
    catalogue: SearchCatalogue, text: str, name: str, kind: str
) -> None:
    hit = catalogue.get_first_hit(text)
    assert (hit["name"], hit["matched"]["kind"]) == (name, kind)


def test_an_identifier_is_found_in_any_collection_unless_filtered(catalogue: SearchCatalogue) -> None:
    for name in ("zqx", "Memory and more"):
        identifier = catalogue.ids[name]
        assert [hit["id"] for hit in catalogue.search(identifier)["hits"]] == [identifier]
        assert catalogue.search_names(identifier, collection="concept") == []


def test_an_identifier_may_be_written_as_a_curie(catalogue: SearchCatalogue) -> None:
    identifier = catalogue.ids["Parkinson disease"]
    curie = f"DOID:{identifier.partition('_')[2]}"
    hit = catalogue.get_first_hit(curie.lower())
    assert (hit["id"], hit["matched"]) == (identifier, {"field": "id", "text": curie, "language": None, "kind": "id"})


def test_records_of_unsearched_collections_and_retired_ones_are_not_found_by_typo_correction(
    catalogue: SearchCatalogue,
) -> None:
    retired_id = catalogue.create("concept", name="renamed blorb")
    assert catalogue.send("DELETE", f"concept/{retired_id}").status == 200
    for text in ("renamed blorb", "renamed blorbs", f"\x02{retired_id}", "\x02renamed blorb", "zqx", "zqxx", "\x01zqx"):
        assert catalogue.search(text)["hits"] == []
        assert catalogue.search(text)["did_you_mean"] is None
        assert catalogue.search_names(text, collection="concept,task,disorder") == []
    suggested = catalogue.server.get("/api/v1/suggest?prefix=renamed%20blorb").json["suggestions"]
    assert suggested == []


def test_short_words_are_not_corrected(catalogue: SearchCatalogue) -> None:
    for text in ("Z", "ж", "WN", "wmm"):
        assert catalogue.search(text)["total"] == 0


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("go/no-go", ["go", "no", "go"]),
        ("go no go", ["go", "no", "go"]),
        ("selfesteem", ["self-esteem"]),
        ("记忆", ["记忆"]),
        ("duty hours", ["duty"]),
        ("nback", ["n", "back"]),
        ("workplace duties", ["workplace"]),
    ],
)
def test_highlights_mark_the_matching_words(catalogue: SearchCatalogue, text: str, marked: list[str]) -> None:
    hit = catalogue.get_first_hit(text)
    matched_text = hit["matched"]["text"]
    assert [matched_text[span["start"] : span["end"]] for span in hit["highlight"]] == marked


def list_all_hits(catalogue: SearchCatalogue, text: str, limit: int) -> list[Any]:
    hits: list[Any] = []
    while page := catalogue.search(text, limit=limit, offset=len(hits))["hits"]:
        hits += page
    return hits


def test_pages_of_any_size_contain_every_hit_once_in_a_stable_order(catalogue: SearchCatalogue) -> None:
    lines: list[dict[str, Any]] = [
        {"name": f"camel grazing {number}" + " at night" * (number % 3)} for number in range(60)
    ]
    lines += [
        {"name": f"zoo {number}", "definition_text": f"Where camels graze. {'Or not.' * number}"}
        for number in range(40)
    ]
    lines += [{"name": f"meadow {number}", "aliases": [{"text": f"camel place {number}"}]} for number in range(40)]
    body = "".join(json.dumps({"op": "create", "collection": "concept", "record": record}) + "\n" for record in lines)
    headers = {"Authorization": f"Bearer {catalogue.token}", "Content-Type": "application/x-ndjson"}
    assert catalogue.server.request("POST", "/api/v1/batch", headers, body).status == 200
    for text, min_hits in (("camel", 140), ("camel grazing", 60), ("camle grasing", 60), ("the camel of", 140)):
        total = catalogue.search(text)["total"]
        assert total >= min_hits
        all_hits = list_all_hits(catalogue, text, 100)
        assert len({hit["id"] for hit in all_hits}) == len(all_hits) == total
        assert [hit["score"] for hit in all_hits] == sorted((hit["score"] for hit in all_hits), reverse=True)
        for limit in (7, 10, 33):
            assert [hit["id"] for hit in list_all_hits(catalogue, text, limit)] == [hit["id"] for hit in all_hits]


def test_results_are_paginated_up_to_the_two_thousandth_hit(catalogue: SearchCatalogue) -> None:
    assert catalogue.search("memory", limit=10, offset=1990)["hits"] == []
    response = catalogue.server.get("/api/v1/search?q=memory&limit=10&offset=1991")
    assert (response.status, response.json["errors"][0]["pointer"]) == (422, "/offset")


def test_an_identifier_finds_its_record(catalogue: SearchCatalogue) -> None:
    identifier = catalogue.ids["wage"]
    for query in (identifier, identifier.upper(), f" {identifier} "):
        assert [hit["id"] for hit in catalogue.search(query)["hits"]] == [identifier]


def test_names_rank_above_aliases_and_aliases_above_words(catalogue: SearchCatalogue) -> None:
    hits = catalogue.search("wm")["hits"]
    assert [(hit["name"], hit["matched"]["kind"]) for hit in hits] == [("WM", "name"), ("working memory", "alias")]
    assert hits[1]["matched"] == {"field": "alias", "text": "WM", "language": "en", "kind": "alias"}


def test_words_in_query_order_rank_first(catalogue: SearchCatalogue) -> None:
    assert catalogue.search_names("work mem") == ["working memory", "Working memory updating", "memory working group"]
    scores = [hit["score"] for hit in catalogue.search("work mem")["hits"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("text", ["han h", "h han", "tower h han", "han tow h", "h h hanoi", "hanois h", "h ha t"])
def test_a_query_word_that_is_a_prefix_of_another_changes_nothing(catalogue: SearchCatalogue, text: str) -> None:
    results = catalogue.search(text)
    assert [hit["name"] for hit in results["hits"]] == ["Tower of Hanoi"]
    assert results["total"] == 1


@pytest.mark.full
def test_any_two_word_prefixes_find_exactly_the_records_whose_labels_have_them(
    catalogue: SearchCatalogue,
) -> None:
    labels = {
        fields["name"]: fold(
            " ".join([fields["name"], *(alias["text"] for alias in fields.get("aliases", ()))])
        ).word_forms
        for collection, fields in TERMS
        if collection in ("concept", "task", "disorder")
    }
    queries = {
        beginnings
        for forms in labels.values()
        for first, second in permutations(forms, 2)
        for beginnings in product(*((word[:1], word[:2], word[:4], f"{word[:2]}q") for word in (first, second)))
    }
    for beginnings in Random(0).sample(sorted(queries), 400):
        if not STOP_WORDS.isdisjoint(beginnings):
            continue
        hits = catalogue.search(" ".join(beginnings), limit=100)["hits"]
        by_words = {hit["name"] for hit in hits if hit["matched"]["kind"] in ("beginning", "name_words", "alias_words")}
        matched = by_words & labels.keys()  # other tests write here too
        having = {
            name
            for name, forms in labels.items()
            if all(any(form.startswith(start) for form in forms) for start in beginnings)
        }
        exact = {hit["name"] for hit in hits if hit["matched"]["kind"] in ("id", "name", "folded", "alias")}
        assert matched | (exact & having) == having, beginnings


@pytest.mark.parametrize("text", ['"h" han', '"t" han', 'h "tow"'])
def test_a_quoted_word_is_not_matched_as_a_prefix(catalogue: SearchCatalogue, text: str) -> None:
    assert catalogue.search_names(text) == []


def test_prefixes_find_records_of_filtered_collections_and_retired_ones(catalogue: SearchCatalogue) -> None:
    assert catalogue.search_names("m a", collection="concept_class") == ["Memory and more"]
    assert catalogue.search_names("mi b", collection="contrast") == ["2-back minus 0-back"]
    identifier = catalogue.create("concept", name="yttrium quoll")
    assert catalogue.send("DELETE", f"concept/{identifier}").status == 200
    assert (catalogue.search_names("y q"), catalogue.search_names("y q", state="retired")) == ([], ["yttrium quoll"])


def test_punctuation_joined_by_hyphens_or_slashes_is_not_a_word(catalogue: SearchCatalogue) -> None:
    catalogue.create("concept", name="the '-' sign", aliases=[{"text": "a `/' between"}, {"text": "x \u0301-\u0301 y"}])
    assert [catalogue.search_names(text) for text in ("si t", "bet", "x y")] == [["the '-' sign"]] * 3


def test_a_phrase_matches_only_consecutive_words(catalogue: SearchCatalogue) -> None:
    assert catalogue.search_names('"working memory"') == ["working memory", "Working memory updating"]
    assert catalogue.search_names('"memory working"') == ["memory working group"]
    assert catalogue.search_names('"the memory that works"') == ["n-back task"]
    assert catalogue.search_names('"memory back"') == []


def test_highlights_are_offsets_into_the_text_that_matched(catalogue: SearchCatalogue) -> None:
    for text, marked in (
        ("mem upd", ["memory", "updating"]),
        ("hippocampus", ["hippocampus"]),
        ("naivete", ["naïveté"]),
    ):
        hit = catalogue.get_first_hit(text)
        matched_text = hit["matched"]["text"]
        assert [matched_text[span["start"] : span["end"]] for span in hit["highlight"]] == marked


def test_an_alias_with_all_words_ranks_above_records_with_the_words_in_several_labels(
    catalogue: SearchCatalogue,
) -> None:
    for number in range(35):
        catalogue.create("concept", name=f"tulip {number}", aliases=[{"text": "bulb"}])
    catalogue.create("concept", name="what is planted in autumn", aliases=[{"text": "bulb of a tulip"}])
    results = catalogue.search("tulip bulb")
    assert results["total"] == 36
    assert results["hits"][0]["matched"]["text"] == "bulb of a tulip"


def test_records_that_match_stop_word_prefixes_rank_first(catalogue: SearchCatalogue) -> None:
    for name in ("zebu", "zebu assembly"):
        catalogue.create("concept", name=name)
    assert catalogue.search_names("zeb a") == ["zebu assembly", "zebu"]


def test_typo_correction_applies_if_no_single_label_has_the_words(catalogue: SearchCatalogue) -> None:
    results = catalogue.search("metal wheal")
    kinds = [(hit["name"], hit["matched"]["kind"]) for hit in results["hits"]]
    assert kinds == [("metal wheel", "alias_words"), ("metal wheat", "typo")]
    assert results["did_you_mean"] == "metal wheat"
    far = catalogue.search("wheal metals")
    assert ([hit["name"] for hit in far["hits"]], far["did_you_mean"]) == (["metal wheel"], None)


def test_did_you_mean_is_returned_if_no_name_has_the_words(catalogue: SearchCatalogue) -> None:
    assert catalogue.search("intentional earning")["did_you_mean"] == "intentional learning"
    assert catalogue.search("intentional learning")["did_you_mean"] is None
    assert catalogue.search("qqqqqqqq") == {
        "hits": [],
        "total": 0,
        "facets": {"vocabulary": {}, "collection": {}, "class": {}, "language": {}, "state": {}},
        "class_names": {},
        "did_you_mean": None,
        "partial": False,
        "nearest": [],
    }


def test_only_requested_collections_are_searched(catalogue: SearchCatalogue) -> None:
    assert catalogue.search_names("back") == ["n-back task"]
    assert catalogue.search_names("back", collection="contrast") == ["2-back minus 0-back"]
    assert set(catalogue.search_names("back", collection="contrast,task")) == {"2-back minus 0-back", "n-back task"}
    assert catalogue.search_names("memory", collection="concept_class") == ["Memory and more"]
    hits = catalogue.server.get("/api/v1/search?q=back&collection=contrast&collection=task").json["hits"]
    assert {hit["name"] for hit in hits} == {"2-back minus 0-back", "n-back task"}


def test_facets_count_all_hits_and_pages_contain_each_hit_once(catalogue: SearchCatalogue) -> None:
    results = catalogue.search("memory", limit=2)
    assert results["facets"]["collection"] == {"concept": 3, "task": 1}
    assert results["facets"]["state"] == {"published": 4}
    assert results["facets"]["language"] == {"en": 4}
    assert results["total"] == 4
    paged = [catalogue.search_names("memory", limit=1, offset=offset) for offset in range(5)]
    assert [name for page in paged for name in page] == catalogue.search_names("memory")
    assert paged[4] == []


def test_facets_are_correct_if_terms_occur_in_one_collection_only(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite")) as server:
        token = {"Authorization": f"Bearer {server.create_token('admin')}", "Content-Type": "application/json"}
        record_ids = [
            server.request("POST", f"/api/v1/{collection}", token, json.dumps({"name": name})).json["id"]
            for collection, name in (("concept", "recall"), ("concept", "recall of names"), ("concept_class", "recall"))
        ]
        facets = [
            server.get(f"/api/v1/search?{urlencode(query)}").json["facets"]["collection"]
            for query in (
                {"q": "recall"},
                {"q": record_ids[2]},
                {"q": "nothing"},
                {"q": "recall", "collection": "concept,concept_class"},
            )
        ]
    assert facets == [{"concept": 2}, {"concept_class": 1}, {}, {"concept": 2, "concept_class": 1}]


def test_a_class_is_a_filter_and_a_facet(catalogue: SearchCatalogue) -> None:
    label = catalogue.ids["Memory and more"]
    record_id = catalogue.create("concept", name="zebra crossing", id_concept_class=label)
    catalogue.create("concept", name="zebra riding")
    results = catalogue.search("zebra")
    assert (results["facets"]["class"], results["class_names"]) == ({label: 1}, {label: "Memory and more"})
    for class_name in (label, "Memory and more", "memory AND more"):
        assert [hit["id"] for hit in catalogue.search("zebra", **{"class": class_name})["hits"]] == [record_id]


def test_a_retired_record_is_found_only_on_request_with_its_replacement(catalogue: SearchCatalogue) -> None:
    retired_id, replacement_id = (catalogue.create("task", name=name) for name in ("quokka petting", "quokka feeding"))
    assert catalogue.send("DELETE", f"task/{retired_id}?replaced_by={replacement_id}").status == 200
    wait_until(lambda: [hit["id"] for hit in catalogue.search("quokka")["hits"]] == [replacement_id])
    results = catalogue.search("quokka", state="published,retired")
    assert {hit["id"]: (hit["state"], hit["replaced_by"]) for hit in results["hits"]} == {
        replacement_id: ("published", None),
        retired_id: ("retired", replacement_id),
    }
    assert results["facets"]["state"] == {"published": 1, "retired": 1}
    assert [hit["id"] for hit in catalogue.search("quokka", state="retired")["hits"]] == [retired_id]
    assert [hit["id"] for hit in catalogue.search(retired_id, state="retired")["hits"]] == [retired_id]


def test_new_records_are_found_at_once(catalogue: SearchCatalogue) -> None:
    def is_first_hit(query: str, identifier: str) -> bool:
        hits = catalogue.search(query)["hits"]
        return bool(hits) and hits[0]["id"] == identifier

    for number in range(10):
        record_id = catalogue.create("concept", name=f"xylophone {number}")
        wait_until(is_first_hit, f"xylophone {number}", record_id)
        assert catalogue.send("PATCH", f"concept/{record_id}", {"name": f"marimba {number}"}).status == 200
        wait_until(is_first_hit, f"marimba {number}", record_id)
        previous_name = catalogue.search(f"xylophone {number}")
        assert previous_name["partial"] or record_id not in [hit["id"] for hit in previous_name["hits"]]


def test_a_score_is_explained_on_request(catalogue: SearchCatalogue) -> None:
    assert "explanation" not in catalogue.get_first_hit("work mem")
    assert catalogue.get_first_hit("work mem", explain="true")["explanation"].startswith(
        "beginning: words from the beginning"
    )


ODD_QUERIES = [
    '"',
    '"open',
    "“open",
    "a AND b OR NOT c",
    "name:memory",
    "+memory -working ^2 ~1 [a TO z] {x} (y",
    "memory*",
    "/regex.*/",
    "\\",
    "\x01\x02\x7f",
    "\u202eyromem",
    "זיכרון עבודה",
    "?!…—",
    "🧠",
    "\ufeff",
    "a" * 10_000,
    "a " * 5_000,
    "“" * 5_000,
    '"a' * 5_000,
    "é" * 10_000,
    "-" * 10_000,
    "a-" * 5_000,
    "a'" * 5_000,
    " ".join("abcdefghijklmnopqrstuvwxyz"),
    "",
    "   ",
]


@pytest.mark.parametrize("text", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
def test_any_text_is_a_valid_query(catalogue: SearchCatalogue, text: str) -> None:
    for path in ("search?q=", "suggest?prefix="):
        assert catalogue.server.get(f"/api/v1/{path}{quote(text)}").status == 200
    assert catalogue.server.get(f"/api/v-alpha/search?q={quote(text)}").status == 200


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("q=" + "a" * 10_001, "/q"),
        ("", "/q"),
        ("q=a&collection=nothing", "/collection"),
        ("q=a&collection=,", "/collection"),
        ("q=a&state=open", "/state"),
        ("q=a&state=published&state=open", "/state"),
        ("q=a&class=nonsense", "/class"),
        ("q=a&class=%00", "/class"),
        ("q=a&collection=task&collection=nothing", "/collection"),
        ("q=a&limit=0", "/limit"),
        ("q=a&limit=101", "/limit"),
        ("q=a&offset=5000", "/offset"),
        ("q=a&colection=task", "/colection"),
    ],
)
def test_invalid_parameters_are_rejected_with_their_names(catalogue: SearchCatalogue, query: str, pointer: str) -> None:
    response = catalogue.server.get(f"/api/v1/search?{query}")
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("q=memory&explain=true", "q=memory&explain=1"),
        ("q=memory&limit=3", "q=memory&limit=03"),
        ("q=memory&offset=1", "q=memory&offset=0001"),
        (
            "q=memory&collection=task,concept&state=published,retired",
            "q=memory&collection=task&collection=concept&state=published&state=retired",
        ),
        ("q=memory", "q=other&q=memory"),
    ],
)
def test_equivalent_parameters_get_identical_responses(catalogue: SearchCatalogue, plain: str, other: str) -> None:
    first = catalogue.server.get(f"/api/v1/search?{plain}")
    assert first.json["hits"]
    for method in ("GET", "HEAD"):
        for headers in ({}, {"Accept-Encoding": "gzip"}, {"If-None-Match": first.headers["etag"]}):
            responses = [
                catalogue.server.request(method, f"/api/v1/search?{query}", headers) for query in (plain, other)
            ]
            assert (
                len({(response.status, response.body, *sorted(drop_date_header(response))) for response in responses})
                == 1
            )
            assert responses[0].status == (304 if "If-None-Match" in headers else 200)


def drop_date_header(response: HttpResponse) -> list[tuple[str, str]]:
    return [(name, value) for name, value in response.headers.items() if name != "date"]


class ImportTimeServer(SpawnedServer):
    """Server that logs its imports."""

    def _build_command(self) -> list[str]:
        return [sys.executable, "-X", "importtime", "-m", "lexarium", *self._arguments]


def test_a_search_loads_no_slow_modules(tmp_path: Path) -> None:
    slow = ("lexarium.web.v1.openapi.document", "psycopg", "sqlalchemy.dialects.postgresql")
    run_cli("migrate", "--database", f"sqlite:///{tmp_path}/catalogue.db")
    with ImportTimeServer(f"sqlite:///{tmp_path}/catalogue.db") as server:
        server.drain_log()
        server.wait_until_ready()
        assert server.get("/api/v1/search?q=memory").status == 200
        loaded = server.stop()
    assert re.search(r"\| +lexarium.web.v1.operations.search\n", loaded)
    assert [name for name in slow if re.search(rf"\| +{name}\n", loaded)] == []


def test_invalid_utf8_is_accepted_as_a_query(catalogue: SearchCatalogue) -> None:
    for path in (
        "/api/v1/search?q=%ff%fe",
        "/api/v1/suggest?prefix=%ff",
        "/api/v-alpha/search?q=%ff",
        "/api/v1/search?q=%00",
    ):
        assert catalogue.server.get(path).status == 200


def test_v_alpha_ranks_like_v1_and_returns_all_matching_terms(catalogue: SearchCatalogue) -> None:
    hits = catalogue.server.get("/api/v-alpha/search?q=work%20mem").json
    assert [hit["name"] for hit in hits] == catalogue.search_names("work mem")
    assert [hit["ID(c)"] for hit in hits] == [1, 2, 3]
    assert catalogue.server.get("/api/v-alpha/search?q=alzheimers").json == []


def test_v_alpha_returns_more_hits_than_are_reranked(catalogue: SearchCatalogue) -> None:
    lines = "".join(
        json.dumps({"op": "create", "collection": "concept", "record": {"name": f"okapi number {number}"}}) + "\n"
        for number in range(300)
    )
    headers = {"Authorization": f"Bearer {catalogue.token}", "Content-Type": "application/x-ndjson"}
    response = catalogue.server.request("POST", "/api/v1/batch", headers, lines)
    assert response.status == 200, response.body

    def list_hits() -> list[str]:
        return [hit["id"] for hit in catalogue.server.get("/api/v-alpha/search?q=okapi%20number").json]

    wait_until(lambda: len(list_hits()) >= 300)
    assert len(set(list_hits())) == len(list_hits()) == 300
    assert catalogue.search("okapi number", limit=100, offset=250)["total"] == 300
    assert len(catalogue.search_names("okapi number", limit=100, offset=250)) == 50
