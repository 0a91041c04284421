"""Suggestions while typing, over HTTP on both engines."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.server import Server


def get_suggestions(server: Server, prefix: str, **options: object) -> Any:
    response = server.get(f"/api/v1/suggest?{urlencode({'prefix': prefix, **options})}")
    assert response.status == 200, response.body
    return response.json["suggestions"]


@pytest.mark.parametrize("prefix", ["work mem", "working m", "WORKING MEMORY", "wörk mém", "wrok mem", "workign memo"])
def test_a_prefix_of_words_is_completed(sample: Server, prefix: str) -> None:
    assert get_suggestions(sample, prefix)[0]["name"] == "working memory"


def test_every_prefix_of_a_name_suggests_it(sample: Server) -> None:
    name = "working memory"
    for length in range(3, len(name) + 1):
        assert name in [suggestion["name"] for suggestion in get_suggestions(sample, name[:length])]


def test_a_suggestion_shows_the_matching_alias(sample: Server) -> None:
    aliased = next(record for record in sample.get("/api/v-alpha/concept").json if record["alias"])
    alias = aliased["alias"].replace(";", ",").split(",")[0].strip()
    suggestion = next(item for item in get_suggestions(sample, alias) if item["id"] == aliased["id"])
    assert suggestion["text"] == alias
    assert suggestion["highlight"]


def test_words_of_a_name_and_an_alias_together_are_completed(sample: Server) -> None:
    records = sample.get("/api/v-alpha/concept").json
    aliased = next(record for record in records if record["alias"] and " " not in record["alias"])
    suggestion = get_suggestions(sample, f"{aliased['alias']} {aliased['name'][:4]}")[0]
    assert (suggestion["id"], bool(suggestion["highlight"])) == (aliased["id"], True)


def test_all_collections_are_suggested_unless_filtered(sample: Server) -> None:
    for collection in ("contrast", "concept_class"):
        name = sample.get(f"/api/v1/{collection}?limit=1").json["items"][0]["name"]
        assert name in [suggestion["text"] for suggestion in get_suggestions(sample, name)]
        assert {suggestion["collection"] for suggestion in get_suggestions(sample, name[:3], collection="task")} <= {
            "task"
        }


def test_main_collections_come_first_among_equal_matches(sample: Server) -> None:
    collections = [
        suggestion["collection"]
        for suggestion in get_suggestions(sample, "m", limit=50)
        if suggestion["text"].lower().startswith("m")
    ]
    others = [rank for rank, collection in enumerate(collections) if collection in ("contrast", "concept_class")]
    assert "concept" in collections
    assert others == list(range(len(collections) - len(others), len(collections)))


def test_an_empty_prefix_has_no_suggestions(sample: Server) -> None:
    assert get_suggestions(sample, "") == get_suggestions(sample, "  ") == get_suggestions(sample, "?!") == []


def test_the_number_of_suggestions_is_limited_as_requested(sample: Server) -> None:
    assert len(get_suggestions(sample, "m", limit=3)) == 3


@pytest.mark.parametrize(
    ("query", "pointers"),
    [
        ("", ["/prefix"]),
        ("prefix=a&limit=x&other=1", ["/limit", "/other"]),
        ("prefix=a&collection=no", ["/collection"]),
        ("prefix=a&limit=51", ["/limit"]),
        ("prefix=" + "a" * 10_001, ["/prefix"]),
    ],
)
def test_an_invalid_request_is_rejected_with_all_problems(sample: Server, query: str, pointers: list[str]) -> None:
    response = sample.get(f"/api/v1/suggest?{query}")
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == pointers


def test_only_read_methods_are_allowed(sample: Server) -> None:
    assert sample.request("POST", "/api/v1/suggest").status == 405
    assert sample.request("HEAD", "/api/v1/suggest?prefix=a").status == 200


def test_the_operation_is_documented(sample: Server) -> None:
    operation = sample.get("/openapi.json").json["paths"]["/api/v1/suggest"]["get"]
    assert [parameter["name"] for parameter in operation["parameters"]] == [
        "prefix",
        "collection",
        "vocabulary",
        "lang",
        "limit",
    ]
