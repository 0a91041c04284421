"""Equal and similar names of other records: comparison, and warnings in v1."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from lexarium.search.near_names import NameForm, NearNames
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.v1_client import V1Client, build_path, get_etag, send_batch

NEAR = [
    ("workin memory", "working memory"),
    ("wroking memory", "working memory"),
    ("memory, working", "working memory"),
    ("memories of the workings", "memory of the working"),
    ("behavioural inhibition", "Behavioral Inhibition"),
    ("hipocampal grey matters", "hippocampal gray matter"),
    ("epistemlogical belif", "epistemological belief"),
    ("x-rays", "xray"),
    ("analyses of variance", "variance of analysis"),
    ("Arbeitsgedächtniss", "Arbeitsgedächtnis"),
]
DIFFERENT = [
    ("working memory", "working memory capacity"),
    ("type 1 diabetes", "type 2 diabetes"),
    ("vitamin B", "vitamin C"),
    ("trisomy xviii", "trisomy xiii"),
    ("5-HT2A receptor", "5-HT2B receptor"),
    ("cat", "bat"),
    ("prior belief", "prize belief"),
    ("visual memmry spen", "visuel memory span"),
    ("工人", "人工"),
]


@pytest.mark.parametrize(("first", "second"), NEAR)
def test_names_that_differ_by_typos_order_number_or_spelling_are_similar(first: str, second: str) -> None:
    assert NameForm.from_text(first).is_near(NameForm.from_text(second))
    assert NameForm.from_text(second).is_near(NameForm.from_text(first))
    assert [name_id for name_id, _ in NearNames([("a", first)]).find(second)] == ["a"]
    assert [name_id for name_id, _ in NearNames([("a", second)]).find(first)] == ["a"]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_differences_in_numbers_letters_numerals_and_short_words_are_not_typos(first: str, second: str) -> None:
    assert not NameForm.from_text(first).is_near(NameForm.from_text(second))
    assert not list(NearNames([("a", first)]).find(second))


def test_indexed_and_pairwise_comparison_find_the_same_names() -> None:
    chance = random.Random(7)
    words = ["working", "memory", "span", "visual", "attention", "hippocampus", "grey", "matter", "12", "b", "viii"]

    def misspell(word: str) -> str:
        letters = list(word)
        for _ in range(chance.choice((0, 0, 1, 2))):
            place = chance.randrange(len(letters) + 1)
            letters[place : place + chance.choice((0, 1))] = chance.choice(("", "e", "x"))
        return "".join(letters) or word

    names = [" ".join(map(misspell, chance.choices(words, k=chance.randint(1, 3)))) for _ in range(400)]
    forms = [NameForm.from_text(name) for name in names]
    near_names = NearNames((str(index), name) for index, name in enumerate(names))
    pairs = 0
    for name, form in zip(names, forms, strict=True):
        expected = {(str(index), form.key == other.key) for index, other in enumerate(forms) if form.is_near(other)}
        assert set(near_names.find(name)) == expected
        pairs += len(expected) - 1
    assert pairs > 100


def create_record(client: V1Client, collection: str = "concept", **fields: Any) -> dict[str, Any]:
    """Create a record and return the response, warnings included."""
    response = client.send("POST", collection, fields)
    assert response.status == 201, response.body
    content: dict[str, Any] = response.json
    return content


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url(request.param)) as server:
        yield server


@pytest.fixture(scope="module")
def curator(server: Server) -> V1Client:
    return V1Client(server, "curator")


@pytest.fixture(scope="module")
def known(curator: V1Client) -> dict[str, Any]:
    """A record that is in the index."""
    names = [{"text": "working memory", "lang": "en"}, {"text": "Arbeitsgedächtnis", "lang": "de"}]
    record = create_record(
        curator, name="working memory", names=names, aliases=[{"text": "WM"}, {"text": "mental workspace"}]
    )
    wait_until(lambda: curator.server.get("/api/v1/search?q=workspace").json["total"] == 1)
    return record


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("workin memory", "similar to the name of 'working memory'"),
        ("Working-Memory", "the same as the name of 'working memory'"),
        ("memory working", "similar to the name"),
        ("mental workspaces", "similar to 'mental workspace', a name of 'working memory'"),
        ("arbeitsgedachtnis", "the same as 'Arbeitsgedächtnis', a name of 'working memory'"),
    ],
)
def test_creating_a_similar_name_returns_a_warning_with_the_existing_record(
    curator: V1Client, known: dict[str, Any], name: str, words: str
) -> None:
    created = create_record(curator, name=name)
    [warning] = [item for item in created["warnings"] if item["id"] == known["id"]]
    assert warning["field"] == "name"
    assert warning["name"] == "working memory"
    assert warning["detail"].startswith(f"{name!r} is {words}")
    curator.send("DELETE", build_path(created), If_Match=get_etag(created))


def test_records_of_other_collections_are_compared_and_a_different_name_gets_no_warning(
    curator: V1Client, known: dict[str, Any]
) -> None:
    warnings = create_record(curator, "task", name="workin memory")["warnings"]
    assert known["id"] in [warning["id"] for warning in warnings]
    assert "warnings" not in create_record(curator, name="an unheard-of thing")


def test_aliases_are_compared_and_the_warning_names_the_field(curator: V1Client, known: dict[str, Any]) -> None:
    aliases = [{"text": "quite new"}, {"text": "mental workspase"}]
    warnings = create_record(curator, name="never said", aliases=aliases)["warnings"]
    assert ("aliases/1", known["id"]) in [(warning["field"], warning["id"]) for warning in warnings]


def test_only_changed_names_are_compared(curator: V1Client, known: dict[str, Any]) -> None:
    record = create_record(curator, name="some other thing")
    renamed = curator.patch(record, name="workng memory")
    assert known["id"] in [item["id"] for item in renamed["warnings"]]
    assert "warnings" not in curator.patch(renamed, definition_text="It has that name already.")
    draft = {"name": "workng memory", "definition_text": "Sent back whole."}
    replaced = curator.send("PUT", build_path(record), draft, If_Match='"3"')
    assert replaced.status == 200
    assert "warnings" not in replaced.json
    own = curator.send(
        "PATCH", build_path(known), {"aliases": [{"text": "WM"}, {"text": "memory, working"}]}, If_Match='"1"'
    )
    assert known["id"] not in [item["id"] for item in own.json.get("warnings", [])], "it is not warned of itself"
    curator.send("DELETE", build_path(record), If_Match='"3"')


def test_a_repeated_request_has_the_same_warnings(curator: V1Client, known: dict[str, Any]) -> None:
    first, second = (
        curator.send("POST", "concept", {"name": "workingg memory"}, Idempotency_Key="once") for _ in range(2)
    )
    assert first.json["warnings"]
    assert first.json == second.json


def test_proposals_return_warnings_on_creation_and_on_acceptance(curator: V1Client, known: dict[str, Any]) -> None:
    contributor = V1Client(curator.server, "contributor")
    by_post = contributor.send("POST", "concept", {"name": "wurking memory"})
    assert by_post.status == 202
    assert known["id"] in [item["id"] for item in by_post.json["warnings"]]
    body = {"collection": "concept", "change": {"name": "worcing memory"}}
    proposed = contributor.send("POST", "proposals", body).json
    assert known["id"] in [item["id"] for item in proposed["warnings"]]
    assert "warnings" not in contributor.send("GET", f"proposals/{proposed['id']}").json
    accepted = curator.send("POST", f"proposals/{proposed['id']}/accept").json
    assert known["id"] in [item["id"] for item in accepted["warnings"]]


def test_lines_of_a_batch_are_compared_with_records_and_with_each_other(
    curator: V1Client, known: dict[str, Any]
) -> None:
    lines = [
        {"op": "create", "collection": "concept", "record": {"name": "workyng memory"}},
        {"op": "create", "collection": "concept", "record": {"name": "spontaneous confabulation"}},
        {"op": "create", "collection": "concept", "record": {"name": "confabulations, spontanous"}},
        {"op": "update", "id": known["id"], "change": {"definition_text": "No new name."}},
    ]
    response = send_batch(curator, *lines)
    assert response.status == 200, response.body
    results = [json.loads(line) for line in response.body.splitlines()]
    assert known["id"] in [item["id"] for item in results[0]["warnings"]]
    assert "warnings" not in results[1]
    [warning] = results[2]["warnings"]
    assert (warning["id"], warning["name"]) == (results[1]["id"], "spontaneous confabulation")
    assert "warnings" not in results[3]


def test_without_an_index_only_equal_names_are_found_and_writes_do_not_wait(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_INDEX="/proc/nowhere") as server:
        curator = V1Client(server, "curator")
        first = create_record(curator, name="working memory")
        [warning] = create_record(curator, name="Working Memory")["warnings"]
        assert warning["id"] == first["id"]
        assert "warnings" not in create_record(curator, name="workin memory")


def test_records_of_other_vocabularies_get_no_warnings(curator: V1Client, known: dict[str, Any]) -> None:
    admin = V1Client(curator.server, "admin")
    created = admin.send("POST", "vocabularies", {"slug": "elsewhere", "schema": "skos", "title": "Elsewhere"})
    assert created.status == 201, created.body
    record = admin.send("POST", "vocabularies/elsewhere/collections/concept", {"name": "workin memory"})
    assert record.status == 201, record.body
    assert "warnings" not in record.json
    other = admin.send("POST", "vocabularies/elsewhere/collections/concept", {"name": "Workin memory"})
    assert [item["id"] for item in other.json["warnings"]] == [record.json["id"]]
    assert b"\\u001f" not in other.body
