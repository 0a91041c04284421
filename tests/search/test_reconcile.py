"""Reconciliation API on both engines: own cases, and the schemas of the specification."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexarium.domain.schema.collections import COLLECTIONS, MAIN_COLLECTIONS, MAIN_RELATION_TYPES
from lexarium.search.ranking import Tier
from lexarium.services.search.properties import list_properties
from lexarium.services.search.reconciliation import MAX_BATCH_QUERIES, SCORES
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.reconciliation_schemas import SpecificationSchemas
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client

PROPERTIES = list_properties(tuple(MAIN_COLLECTIONS.values()))
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class ReconcileClient:
    """Client of a server of the sample, with a curator's token."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._api = V1Client(server, "admin")

    def get(self, path: str, **parameters: object) -> HttpResponse:
        return self.server.get(f"/reconcile{path}" + (f"?{urlencode(parameters)}" if parameters else ""))

    def post(self, **fields: object) -> HttpResponse:
        body = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
        return self.server.request("POST", "/reconcile", FORM, urlencode(body))

    def reconcile(self, **queries: object) -> Any:
        response = self.post(queries=queries)
        assert response.status == 200, response.body
        return {key: result["result"] for key, result in response.json.items()}

    def reconcile_one(self, query: str, **options: object) -> Any:
        return self.reconcile(q0={"query": query, **options})["q0"]

    def find_id(self, collection: str, name: str) -> str:
        return str(self.server.get(f"/api/v-alpha/{collection}?name={quote(name)}").json["id"])

    def create(self, collection: str, **fields: object) -> str:
        return str(self._api.create(collection, **fields)["id"])

    def send(self, method: str, path: str, body: object = None) -> HttpResponse:
        return self._api.send(method, path, body, If_Match='"1"')


@pytest.fixture(scope="module", params=ENGINES)
def catalogue(request: pytest.FixtureRequest, sample_url: DatabaseUrlFactory) -> Iterator[ReconcileClient]:
    with Server(sample_url(request.param)) as server:
        server.wait_until_ready()
        yield ReconcileClient(server)


# Manifest


def test_the_manifest_is_returned_without_a_query(catalogue: ReconcileClient) -> None:
    manifest = catalogue.get("").json
    base = f"http://127.0.0.1:{catalogue.server.port}"
    assert manifest["versions"] == ["0.2"]
    assert manifest["name"] == "Lexarium"
    assert manifest["identifierSpace"] == f"{base}/id/"
    assert [default_type["id"] for default_type in manifest["defaultTypes"]] == list(COLLECTIONS.searched)
    assert manifest["view"] == {"url": f"{base}/id/{{{{id}}}}"}
    assert manifest["batchSize"] == MAX_BATCH_QUERIES
    assert "authentication" not in manifest
    assert catalogue.get("/").json == catalogue.get("", _="1731650000").json == manifest


def test_every_url_in_the_manifest_works(catalogue: ReconcileClient) -> None:
    manifest = catalogue.get("").json
    identifier = catalogue.find_id("concept", "working memory")
    base = f"http://127.0.0.1:{catalogue.server.port}"
    urls = [manifest["preview"]["url"].replace("{{id}}", identifier)]
    for kind, example in (("entity", identifier), ("type", "concept"), ("property", "KINDOF")):
        service = manifest["suggest"][kind]
        urls.append(service["service_url"] + service["service_path"] + "?prefix=c")
        flyout = service["flyout_service_url"] + service["flyout_service_path"]
        urls.append(flyout.replace("${id}", example))
    propose = manifest["extend"]["propose_properties"]
    urls.append(propose["service_url"] + propose["service_path"] + "?type=concept")
    for url in urls:
        assert catalogue.server.get(url.removeprefix(base)).status == 200, url


def test_cross_origin_requests_are_allowed_on_all_paths(catalogue: ReconcileClient) -> None:
    paths = [
        "",
        "?queries={}",
        "?queries={",
        "/preview?id=x",
        "/suggest/entity?prefix=a",
        "/suggest/type",
        "/properties",
    ]
    for path in paths:
        assert catalogue.get(path).headers["access-control-allow-origin"] == "*", path
        headers = {"Origin": "http://a.example", "Access-Control-Request-Method": "POST"}
        preflight = catalogue.server.request("OPTIONS", f"/reconcile{path.partition('?')[0]}", headers)
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "content-type" in preflight.headers["access-control-allow-headers"].lower()
    assert "POST" in catalogue.server.request("OPTIONS", "/reconcile").headers["access-control-allow-methods"]


def test_other_methods_are_rejected(catalogue: ReconcileClient) -> None:
    for method, path in (("DELETE", ""), ("POST", "/preview"), ("PUT", "/suggest/entity")):
        response = catalogue.server.request(method, f"/reconcile{path}")
        assert response.status == 405
        assert response.headers["allow"].startswith("GET, HEAD, OPTIONS")
    assert catalogue.server.request("HEAD", "/reconcile").body == b""


# Queries


def test_a_batch_gets_results_by_key_for_get_and_post(catalogue: ReconcileClient) -> None:
    batch = {
        "first": {"query": "working memory"},
        "second": {"query": "stroop", "type": "task"},
        "q": {"query": "zzzzz"},
    }
    by_post = catalogue.post(queries=batch)
    by_get = catalogue.get("", queries=json.dumps(batch))
    assert by_post.status == by_get.status == 200
    assert by_post.json == by_get.json
    assert list(by_post.json) == list(batch)
    assert by_post.json["q"] == {"result": []}
    assert catalogue.post(queries={}).json == {}


def test_a_candidate_has_name_score_type_and_description(catalogue: ReconcileClient) -> None:
    best = catalogue.reconcile_one("Working Memory")[0]
    assert best["id"] == catalogue.find_id("concept", "working memory")
    assert (best["name"], best["score"], best["match"]) == ("working memory", 100, True)
    assert best["type"] == [{"id": "concept", "name": "concept"}]
    assert best["features"] == [{"id": "label", "value": 100}]
    assert 0 < len(best["description"]) <= 210


@pytest.mark.parametrize(
    ("query", "name", "match"),
    [
        ("working memory", "working memory", True),
        ("WÖRKING-MEMORY", "working memory", True),
        ("wm", "working memory", True),  # alias
        ("explicit memory", "declarative memory", True),
        ("colour vision", "color perception", True),
        ("working mem", "working memory", False),
        ("workng memory", "working memory", False),
        ("memory working", "working memory", False),
    ],
)
def test_only_a_complete_label_matches(catalogue: ReconcileClient, query: str, name: str, match: bool) -> None:
    candidates = catalogue.reconcile_one(query)
    assert (candidates[0]["name"], candidates[0]["match"]) == (name, match)
    assert not any(candidate["match"] for candidate in candidates[1:])


@pytest.mark.parametrize("name", ["fixation", "arousal", "mental rotation"])
def test_a_label_of_several_records_does_not_match(catalogue: ReconcileClient, name: str) -> None:
    candidates = catalogue.reconcile_one(name)
    assert [candidate["name"].casefold() for candidate in candidates[:2]] == [name, name]
    assert not any(candidate["match"] for candidate in candidates)


def test_a_label_that_is_ambiguous_across_types_matches_within_one_type(catalogue: ReconcileClient) -> None:
    for collection in ("concept", "task"):
        candidates = catalogue.reconcile_one("mental rotation", type=collection)
        assert candidates[0]["match"] is True
        assert {candidate["type"][0]["id"] for candidate in candidates} == {collection}
    assert not catalogue.reconcile_one("mental rotation", type=["concept", "task"])[0]["match"]


def test_a_name_that_is_also_an_alias_of_another_does_not_match(catalogue: ReconcileClient) -> None:
    catalogue.create("concept", name="Glimmerlore")
    assert catalogue.reconcile_one("glimmerlore")[0]["match"] is True
    catalogue.create("disorder", name="Something else", aliases=[{"text": "glimmer-lore"}])
    candidates = catalogue.reconcile_one("glimmerlore")
    assert [candidate["match"] for candidate in candidates] == [False, False]
    assert candidates[1]["description"] == "Also called glimmer-lore."
    assert catalogue.reconcile_one("glimmerlore", type="concept")[0]["match"] is True


def test_an_alias_that_is_not_exact_does_not_match(catalogue: ReconcileClient) -> None:
    catalogue.create(
        "concept",
        name="Oakishness",
        aliases=[{"text": "treeishness", "scope": "broad"}, {"text": "quercishness"}],
    )
    assert (catalogue.reconcile_one("treeishness")[0]["name"], catalogue.reconcile_one("treeishness")[0]["match"]) == (
        "Oakishness",
        False,
    )
    assert catalogue.reconcile_one("quercishness")[0]["match"] is True


def test_a_label_longer_than_the_compared_length_does_not_match(catalogue: ReconcileClient) -> None:
    name = "long " * 90
    catalogue.create("concept", name=f"{name}end")
    assert catalogue.reconcile_one(f"{name}other")[0]["match"] is False


def test_a_retired_record_is_not_a_candidate_and_does_not_make_a_label_ambiguous(catalogue: ReconcileClient) -> None:
    remaining_id, retired_id = (
        catalogue.create("concept", name="Twinning"),
        catalogue.create("concept", name="twinning"),
    )
    assert [candidate["match"] for candidate in catalogue.reconcile_one("twinning")] == [False, False]
    assert catalogue.send("DELETE", f"concept/{retired_id}").status == 200
    assert [(candidate["id"], candidate["match"]) for candidate in catalogue.reconcile_one("twinning")] == [
        (remaining_id, True)
    ]


def test_an_identifier_is_accepted_as_a_query(catalogue: ReconcileClient) -> None:
    identifier = catalogue.find_id("disorder", "agnosia")
    assert [
        (candidate["id"], candidate["match"], candidate["score"]) for candidate in catalogue.reconcile_one(identifier)
    ] == [(identifier, True, 100)]


def test_an_inexact_mapping_does_not_match(catalogue: ReconcileClient) -> None:
    identifier = catalogue.create("disorder", name="Hazelness", relations={"broadMatch": ["EXAMPLE:77"]})
    assert [(candidate["id"], candidate["match"]) for candidate in catalogue.reconcile_one("example:77")] == [
        (identifier, False)
    ]


def test_scores_decrease_from_the_first_candidate(catalogue: ReconcileClient) -> None:
    for query in ("memory", "task", "work mem", "recal", "disorder of", "attention to", "memroy"):
        scores = [candidate["score"] for candidate in catalogue.reconcile_one(query, limit=50)]
        assert scores
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 100 for score in scores)


def test_candidates_have_the_order_of_search_results(catalogue: ReconcileClient) -> None:
    for query in ("memory", "work mem", "learning of", "memroy"):
        hits = catalogue.server.get(f"/api/v1/search?{urlencode({'q': query, 'limit': 20})}").json["hits"]
        assert [candidate["id"] for candidate in catalogue.reconcile_one(query, limit=20)] == [
            hit["id"] for hit in hits
        ]


def test_every_tier_has_scores_below_those_of_the_previous_tier() -> None:
    assert list(SCORES) == list(Tier)
    bounds = [bound for min_score, max_score in SCORES.values() for bound in (max_score, min_score)]
    assert bounds == sorted(bounds, reverse=True)


def test_the_number_of_candidates_is_limited_as_requested(catalogue: ReconcileClient) -> None:
    assert len(catalogue.reconcile_one("memory", limit=3)) == 3
    assert len(catalogue.reconcile_one("memory", limit=3.0)) == 3
    assert len(catalogue.reconcile_one("memory")) == 10
    assert len(catalogue.reconcile_one("memory", limit=10**12)) > 10


def test_types_are_collections(catalogue: ReconcileClient) -> None:
    for collection in MAIN_COLLECTIONS:
        name = catalogue.server.get(f"/api/v1/{collection}?limit=1").json["items"][0]["name"]
        assert name in [candidate["name"] for candidate in catalogue.reconcile_one(name, type=collection, limit=50)]
    contrast = catalogue.server.get("/api/v1/contrast?limit=1").json["items"][0]["name"]
    assert contrast not in [candidate["name"] for candidate in catalogue.reconcile_one(contrast)]
    assert (
        catalogue.reconcile_one("memory", type="")
        == catalogue.reconcile_one("memory", type=[])
        == catalogue.reconcile_one("memory")
    )


def test_no_record_matches_two_strict_types(catalogue: ReconcileClient) -> None:
    assert catalogue.reconcile_one("mental rotation", type=["concept", "task"], type_strict="all") == []
    assert catalogue.reconcile_one("mental rotation", type=["concept"], type_strict="all")
    assert len(catalogue.reconcile_one("mental rotation", type=["concept", "task"], type_strict="should")) == 2


# Properties


def build_properties(**values: object) -> list[dict[str, object]]:
    return [{"pid": pid.replace("_", "-"), "v": value} for pid, value in values.items()]


@pytest.mark.parametrize(
    ("agreeing", "contradicting"),
    [
        ({"alias": "WM"}, {"alias": "tea"}),
        ({"alias": "WM; tea"}, {"alias": "tea; toast"}),
        ({"alias": ["tea", "wm"]}, {"alias": ["tea", "toast"]}),
        ({"class": "learning AND memory"}, {"class": "Attention"}),
        ({"class": {"id": "ctp_memory"}}, {"class": {"id": "ctp_attend", "name": "Learning and memory"}}),
        ({"KINDOF": "memory"}, {"KINDOF": "attention"}),
        ({"ASSERTS_inverse": "n-back task"}, {"ASSERTS_inverse": "Stroop task"}),
        ({"definition": "A limited system that keeps information while it is used."}, {"definition": "tea"}),
        ({"name": "Working-memory"}, {"name": "memory"}),
    ],
)
def test_property_values_raise_or_lower_the_score(
    catalogue: ReconcileClient, agreeing: dict[str, object], contradicting: dict[str, object]
) -> None:
    unweighted = catalogue.reconcile_one("work mem")[0]
    raised = catalogue.reconcile_one("work mem", properties=build_properties(**agreeing))[0]
    assert unweighted["name"] == raised["name"] == "working memory"
    assert 0 < unweighted["score"] < raised["score"] <= 100
    lowered = next(
        candidate
        for candidate in catalogue.reconcile_one("work mem", properties=build_properties(**contradicting))
        if candidate["id"] == unweighted["id"]
    )
    assert 0 <= lowered["score"] < unweighted["score"]
    assert [feature["id"] for feature in lowered["features"]] == ["label", build_properties(**contradicting)[0]["pid"]]

    assert catalogue.reconcile_one("working memory", properties=build_properties(**agreeing))[0]["match"] is True
    exact_candidates = catalogue.reconcile_one(
        "working memory", properties=build_properties(**contradicting), limit=100
    )
    assert not any(candidate["match"] for candidate in exact_candidates)


def test_property_values_select_the_right_record_among_equal_names(catalogue: ReconcileClient) -> None:
    for known_values, opening in (
        ({"alias": "gaze fixation"}, "In eye movements"),
        ({"class": {"id": "ctp_motor"}}, "In eye movements"),
        ({"class": {"id": "ctp_reason"}}, "In problem solving"),
        ({"definition": "stuck on a first idea, overlooking better solutions"}, "In problem solving"),
    ):
        first, second = catalogue.reconcile_one("fixation", properties=build_properties(**known_values))[:2]
        assert first["name"] == second["name"] == "fixation"
        assert first["description"].startswith(opening)
        assert first["score"] > second["score"]


def test_a_record_without_a_value_for_a_property_keeps_its_score(catalogue: ReconcileClient) -> None:
    without_property, with_property = (
        catalogue.reconcile_one("consciousness")[0],
        catalogue.reconcile_one("consciousness", properties=build_properties(**{"class": "x"})),
    )
    assert with_property[0]["score"] == without_property["score"]
    assert with_property[0]["match"] is True


def test_a_name_matches_a_given_alias_property(catalogue: ReconcileClient) -> None:
    best = catalogue.reconcile_one("WM", properties=build_properties(alias="Working Memory"))[0]
    assert best["match"] is True
    assert best["score"] > catalogue.reconcile_one("WM")[0]["score"]


def test_blank_values_are_ignored(catalogue: ReconcileClient) -> None:
    blank = [{"pid": "alias", "v": ""}, {"pid": "class", "v": []}, {"pid": "KINDOF", "v": ["  "]}]
    assert catalogue.reconcile_one("working memory", properties=blank) == catalogue.reconcile_one("working memory")


def test_numbers_and_booleans_are_compared_as_text(catalogue: ReconcileClient) -> None:
    catalogue.create("concept", name="Numeral", aliases=[{"text": "42"}, {"text": "true"}])
    for value in (42, "42", True, [1.5, 42]):
        assert catalogue.reconcile_one("numeral", properties=[{"pid": "alias", "v": value}])[0]["match"] is True
    assert catalogue.reconcile_one("numeral", properties=[{"pid": "alias", "v": 43}])[0]["match"] is False


def test_an_identifier_property_finds_its_record(catalogue: ReconcileClient) -> None:
    identifier = catalogue.find_id("concept", "attention")
    candidates = catalogue.reconcile_one("working memory", properties=[{"pid": "id", "v": identifier}])
    assert [candidate["name"] for candidate in candidates[:2]] == ["attention", "working memory"]
    assert not any(candidate["match"] for candidate in candidates)
    assert catalogue.reconcile_one("attention", properties=[{"pid": "id", "v": identifier}])[0]["match"] is True


@pytest.mark.parametrize(
    ("known_values", "names"),
    [
        ({"KINDOF": "working memory"}, {"verbal working memory", "visuospatial working memory"}),
        ({"ASSERTS": "working memory"}, {"AX continuous performance task", "n-back task", "operation span task"}),
        ({"ASSERTS_inverse": ["n-back task"]}, {"working memory"}),
        ({"alias": "WM"}, {"working memory"}),
        ({"definition": "limited capacity carrying the tens in a sum"}, {"working memory"}),
    ],
)
def test_a_query_may_have_properties_only(
    catalogue: ReconcileClient, known_values: dict[str, object], names: set[str]
) -> None:
    candidates = catalogue.reconcile(q0={"properties": build_properties(**known_values), "limit": 50})["q0"]
    assert names <= {candidate["name"] for candidate in candidates}
    assert not any(candidate["match"] for candidate in candidates)


def test_a_query_by_class_finds_its_records(catalogue: ReconcileClient) -> None:
    candidates = catalogue.reconcile(
        q0={"properties": [{"pid": "class", "v": "Attention"}], "type": "concept", "limit": 100}
    )["q0"]
    records = catalogue.server.get("/api/v1/concept?class=ctp_attend&limit=1000").json["items"]
    assert {candidate["id"] for candidate in candidates} == {candidate["id"] for candidate in records}


# Invalid queries


def test_a_too_large_batch_is_rejected(catalogue: ReconcileClient) -> None:
    assert catalogue.post(queries={f"q{n}": {"query": "memory"} for n in range(MAX_BATCH_QUERIES)}).status == 200
    response = catalogue.post(queries={f"q{n}": {"query": "memory"} for n in range(MAX_BATCH_QUERIES + 1)})
    assert response.status == 413
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["access-control-allow-origin"] == "*"
    assert str(MAX_BATCH_QUERIES) in response.json["detail"]
    assert catalogue.post(extend={"ids": ["x"] * 1_001, "properties": []}).status == 413
    assert catalogue.server.request("POST", "/reconcile", FORM, "queries=" + "a" * 1_100_000).status == 413


def test_all_invalid_queries_are_reported_at_once(catalogue: ReconcileClient) -> None:
    response = catalogue.post(
        queries={
            "right": {"query": "memory"},
            "a": {"query": 3, "limit": 0, "type": ["concept", "person"], "type_strict": "perhaps", "other": 1},
            "b": "memory",
            "c": {},
            "d": {"properties": []},
            "e": {"query": "x", "properties": [{"pid": "no", "v": 1}, {"pid": "alias"}, 7, {"pid": "alias", "v": {}}]},
            "f": {"query": "x", "properties": {}, "type": 1, "limit": True},
            "g": {"query": "x", "limit": 2.5},
            "h": {"query": "x", "properties": [{"pid": "definition", "v": "y"}] * 101},
            "i": {"query": "x", "properties": [{"pid": "definition", "v": ["y"] * 101}]},
        }
    )
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == [
        *("/a/other", "/a/query", "/a/type_strict", "/a/type", "/a/limit"),
        *("/b", "/c", "/d"),
        *("/e/properties/0/pid", "/e/properties/1/v", "/e/properties/2/pid", "/e/properties/3/v"),
        *("/f/properties", "/f/type", "/f/limit", "/g/limit"),
        *("/h/properties", "/i/properties/0/v"),
    ]


@pytest.mark.parametrize("name", ["queries", "extend"])
def test_invalid_json_is_rejected_with_its_position(catalogue: ReconcileClient, name: str) -> None:
    for response in (catalogue.post(**{name: '{"q0": {"query": "a",}}'}), catalogue.get("", **{name: '{"q0": [,'})):
        assert response.status == 400
        assert "line 1 column" in response.json["detail"]
    for text in ("", "[]", "3", '"x"', "[" * 5_000, '{"\\ud800": 1}', '{"a": NaN}'):
        assert catalogue.post(**{name: text}).status == 400, text


def test_a_form_without_a_query_is_rejected(catalogue: ReconcileClient) -> None:
    assert catalogue.post(other="1").status == 400
    assert catalogue.server.post_json("/reconcile", {"queries": {}}).status == 415
    assert catalogue.server.request("POST", "/reconcile").status == 415
    assert catalogue.server.request("POST", "/reconcile", FORM, "queries=%ff").status == 400


def test_parameters_of_older_versions_are_rejected(catalogue: ReconcileClient) -> None:
    for path, parameter in (("", "callback"), ("", "query"), ("/suggest/entity", "callback")):
        response = catalogue.get(path, **{parameter: "x", "prefix": "a"})
        assert response.status == 400
        assert f"`{parameter}`" in response.json["detail"]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
        | st.sampled_from(
            ["\0", '"', '"a', "*", "trm_", "-", "AND (", "\\", "a" * 20_000, "ab " * 5_000, "{{id}}", "%00"]
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_valid_query(catalogue: ReconcileClient, texts: list[str]) -> None:
    asked = list(PROPERTIES)[:20]  # a body has at most 1 MiB
    queries = {text: {"query": text, "properties": [{"pid": pid, "v": text} for pid in asked]} for text in texts}
    response = catalogue.post(queries=queries)
    assert response.status == 200, response.body
    assert list(response.json) == list(dict.fromkeys(texts))
    nameless = {text: {"properties": [{"pid": pid, "v": [text]}]} for text, pid in zip(texts, PROPERTIES, strict=False)}
    assert catalogue.post(queries=nameless).status == 200
    assert catalogue.post(extend={"ids": texts, "properties": [{"id": pid} for pid in PROPERTIES]}).status == 200
    text = texts[0][:1_000]
    for kind in ("entity", "type", "property"):
        assert catalogue.get(f"/suggest/{kind}", prefix=text).status == 200
        assert catalogue.get(f"/flyout/{kind}", id=text).status in (200, 404)
    assert catalogue.get("/preview", id=text).status in (200, 404)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["query", "type", "limit", "properties", "type_strict", "pid", "v", "id", "ids"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3), JSON)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_gets_a_result_or_a_client_error(
    catalogue: ReconcileClient, batch: dict[str, Any], extension: Any
) -> None:
    text = json.dumps(batch, ensure_ascii=False).encode("utf-8", "replace").decode()
    assert catalogue.post(queries=text).status in (200, 400, 422)
    assert catalogue.post(
        extend=json.dumps(extension, ensure_ascii=False).encode("utf-8", "replace").decode()
    ).status in (
        200,
        400,
        422,
    )


# Suggest


def get_suggestions(catalogue: ReconcileClient, kind: str, prefix: str, **options: object) -> Any:
    response = catalogue.get(f"/suggest/{kind}", prefix=prefix, **options)
    assert response.status == 200, response.body
    return response.json["result"]


def test_records_are_suggested_by_name_alias_and_identifier(catalogue: ReconcileClient) -> None:
    identifier = catalogue.find_id("concept", "working memory")
    for prefix in ("working mem", "WM", identifier):
        assert get_suggestions(catalogue, "entity", prefix)[0]["id"] == identifier
    by_alias = get_suggestions(catalogue, "entity", "WM")[0]
    assert by_alias["name"] == "working memory"
    assert by_alias["description"].startswith("Also called WM. ")
    assert by_alias["notable"] == [{"id": "concept", "name": "concept"}]
    assert get_suggestions(catalogue, "entity", "") == []


def test_records_of_a_type_are_suggested(catalogue: ReconcileClient) -> None:
    assert {suggestion["notable"][0]["id"] for suggestion in get_suggestions(catalogue, "entity", "m")} <= set(
        COLLECTIONS.searched
    )
    for collection in ("task", "concept_class"):
        suggestions = get_suggestions(catalogue, "entity", "a", type=collection)
        assert {suggestion["notable"][0]["id"] for suggestion in suggestions} == {collection}


def test_a_cursor_continues_the_suggestions(catalogue: ReconcileClient) -> None:
    first = get_suggestions(catalogue, "entity", "m")
    second = get_suggestions(catalogue, "entity", "m", cursor=len(first))
    overlapping = get_suggestions(catalogue, "entity", "m", cursor=5)
    assert len(first) == 10
    assert not {suggestion["id"] for suggestion in first} & {suggestion["id"] for suggestion in second}
    assert overlapping == [*first, *second][5:15]
    assert get_suggestions(catalogue, "entity", "m", cursor=900) == []
    assert get_suggestions(catalogue, "type", "", cursor=3) == get_suggestions(catalogue, "type", "")[3:]


def test_types_are_suggested(catalogue: ReconcileClient) -> None:
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "type", "")][: len(MAIN_COLLECTIONS)] == list(
        MAIN_COLLECTIONS
    )
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "type", "Dis")] == [
        "disorder",
        "disambiguation",
    ]
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "type", "class")] == ["concept_class"]
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "type", "concept_c")] == ["concept_class"]
    assert get_suggestions(catalogue, "type", "person") == []


def test_properties_are_suggested(catalogue: ReconcileClient) -> None:
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "property", "")][: len(PROPERTIES)] == list(
        PROPERTIES
    )
    assert {suggestion["id"] for suggestion in get_suggestions(catalogue, "property", "kind")} == {
        "KINDOF",
        "KINDOF-inverse",
    }
    assert [suggestion["id"] for suggestion in get_suggestions(catalogue, "property", "defin")] == ["definition"]
    assert set(MAIN_RELATION_TYPES) | {"alias", "definition", "class", "id"} <= set(PROPERTIES)
    assert all(
        suggestion["name"] and suggestion["description"] for suggestion in get_suggestions(catalogue, "property", "")
    )


@pytest.mark.parametrize(
    ("path", "parameters", "pointers"),
    [
        ("/suggest/entity", {"cursor": "x", "type": "person"}, ["/prefix", "/cursor", "/type"]),
        ("/suggest/type", {"prefix": "", "cursor": "-1"}, ["/cursor"]),
        ("/suggest/property", {}, ["/prefix"]),
        ("/properties", {"type": "person", "limit": "0"}, ["/type", "/limit"]),
        ("/preview", {}, ["/id"]),
        ("/flyout/type", {}, ["/id"]),
    ],
)
def test_invalid_parameters_are_reported_at_once(
    catalogue: ReconcileClient, path: str, parameters: dict[str, str], pointers: list[str]
) -> None:
    response = catalogue.get(path, **parameters)
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == pointers


def test_a_flyout_is_an_escaped_html_fragment(catalogue: ReconcileClient) -> None:
    identifier = catalogue.create("concept", name="<b>bold</b>", definition_text="a & <script>")
    for kind, example, expected in (
        ("entity", identifier, "&lt;b&gt;bold&lt;/b&gt;"),
        ("type", "disorder", "A disorder of mind or brain."),
        ("property", "PARTOF", "part of"),
    ):
        response = catalogue.get(f"/flyout/{kind}", id=example).json
        assert response["id"] == example
        assert expected in response["html"]
        assert "<script" not in response["html"]
        assert catalogue.get(f"/flyout/{kind}", id="nothing").status == 404


# Preview


def test_a_preview_is_a_small_self_contained_page(catalogue: ReconcileClient) -> None:
    response = catalogue.get("/preview", id=catalogue.find_id("concept", "working memory"))
    page = response.body.decode()
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    for expected in ("working memory", "Arbeitsgedächtnis", "Learning and memory", "n-back task", "limited capacity"):
        assert expected in page
    assert "src=" not in page
    assert "<link" not in page
    assert "<script" not in page
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy
    assert "frame-ancestors *" in policy


def test_all_content_of_a_preview_is_escaped(catalogue: ReconcileClient) -> None:
    text = "<img src=x onerror=alert(1)>\"'"
    identifier = catalogue.create("concept", name=text, definition_text=text, aliases=[{"text": text}])
    page = catalogue.get("/preview", id=identifier).body.decode()
    assert "<img" not in page
    assert page.count("&lt;img") >= 4


def test_the_preview_of_a_retired_record_shows_its_state(catalogue: ReconcileClient) -> None:
    new, old = catalogue.create("concept", name="New thing"), catalogue.create("concept", name="Old thing")
    assert catalogue.send("DELETE", f"concept/{old}?replaced_by={new}").status == 200
    page = catalogue.get("/preview", id=old).body.decode()
    assert "retired" in page
    assert f"/reconcile/preview?id={new}" in page
    assert "retired" not in catalogue.get("/preview", id=new).body.decode()


def test_the_preview_of_a_merged_record_redirects_to_its_survivor(catalogue: ReconcileClient) -> None:
    survivor, merged = catalogue.create("concept", name="Survivor"), catalogue.create("concept", name="Merged")
    assert catalogue.send("POST", f"concept/{merged}/merge", {"into": survivor}).status == 200
    response = catalogue.get("/preview", id=merged)
    assert (response.status, response.headers["location"]) == (308, f"/reconcile/preview?id={survivor}")
    extended = catalogue.post(extend={"ids": [merged], "properties": [{"id": "id"}, {"id": "name"}]}).json
    assert extended["rows"] == {merged: {"id": [{"str": survivor}], "name": [{"str": "Survivor"}]}}


def test_an_unknown_record_has_no_preview(catalogue: ReconcileClient) -> None:
    assert catalogue.get("/preview", id="trm_nothing").status == 404


# Extend


def test_records_are_extended_with_any_property(catalogue: ReconcileClient) -> None:
    identifier = catalogue.find_id("concept", "working memory")
    property_ids = ["alias", "class", "KINDOF", "ASSERTS-inverse", "definition", "id", "name", "exactMatch"]
    extension = {
        "ids": [identifier, "trm_nothing"],
        "properties": [{"id": property_id, "settings": {}} for property_id in property_ids],
    }
    by_post, by_get = catalogue.post(extend=extension), catalogue.get("", extend=json.dumps(extension))
    assert by_post.json == by_get.json
    row = by_post.json["rows"][identifier]
    assert row["alias"] == [{"str": "WM"}, {"str": "Arbeitsgedächtnis"}]
    assert row["class"] == [{"id": "ctp_memory", "name": "Learning and memory"}]
    assert row["KINDOF"] == [{"id": catalogue.find_id("concept", "memory"), "name": "memory"}]
    assert {"id": catalogue.find_id("task", "n-back task"), "name": "n-back task"} in row["ASSERTS-inverse"]
    assert row["definition"][0]["str"].startswith("A system of limited capacity")
    assert (row["id"], row["name"]) == ([{"str": identifier}], [{"str": "working memory"}])
    assert row["exactMatch"] == []
    assert by_post.json["rows"]["trm_nothing"] == {property_id: [] for property_id in property_ids}
    assert [property_id["id"] for property_id in by_post.json["meta"]] == property_ids
    task = {"id": "task", "name": "task"}
    assert by_post.json["meta"][3] == {"id": "ASSERTS-inverse", "name": "asserted by", "type": task}
    # Values of the others are texts, or records of several types.
    assert all("type" not in by_post.json["meta"][index] for index in (0, 2))


def test_mappings_are_returned_as_property_values(catalogue: ReconcileClient) -> None:
    identifier = catalogue.create("disorder", name="Mapped thing", relations={"exactMatch": ["DOID:9", "DOID:10"]})
    extended = catalogue.post(extend={"ids": [identifier], "properties": [{"id": "exactMatch"}]}).json
    assert extended["rows"][identifier]["exactMatch"] == [{"str": "DOID:10"}, {"str": "DOID:9"}]


def test_a_retired_record_has_no_values(catalogue: ReconcileClient) -> None:
    identifier = catalogue.create("concept", name="Gone thing")
    catalogue.send("DELETE", f"concept/{identifier}")
    assert catalogue.post(extend={"ids": [identifier], "properties": [{"id": "name"}]}).json["rows"] == {
        identifier: {"name": []}
    }


def test_all_problems_of_an_extension_query_are_reported(catalogue: ReconcileClient) -> None:
    for extension, pointers in (
        ({}, ["/ids", "/properties"]),
        ({"ids": [1], "properties": [{"id": "no"}, {}, 3]}, ["/ids", *(f"/properties/{n}/id" for n in range(3))]),
    ):
        response = catalogue.post(extend=extension)
        assert response.status == 422
        assert [error["pointer"] for error in response.json["errors"]] == pointers


def test_properties_are_proposed_for_a_type(catalogue: ReconcileClient) -> None:
    proposal = catalogue.get("/properties", type="disorder").json
    property_ids = [item["id"] for item in proposal["properties"]]
    assert proposal["type"] == "disorder"
    assert {"ISA", "ISA-inverse", "alias", "definition", "exactMatch"} <= set(property_ids)
    assert not {"class", "KINDOF", "ASSERTS"} & set(property_ids)
    limited = catalogue.get("/properties", type="disorder", limit=2).json
    assert ([item["id"] for item in limited["properties"]], limited["limit"]) == (property_ids[:2], 2)
    assert [item["id"] for item in catalogue.get("/properties").json["properties"]][: len(PROPERTIES)] == list(
        PROPERTIES
    )


# Schemas of the specification


def test_responses_conform_to_the_schemas_of_the_specification(
    catalogue: ReconcileClient, schemas: SpecificationSchemas
) -> None:
    manifest = catalogue.get("").json
    schemas.check("manifest", manifest)
    batch = {
        "q0": {"query": "memory", "type": ["concept", "task"], "limit": 4, "type_strict": "should"},
        "q1": {
            "query": "wm",
            "type": "concept",
            "properties": build_properties(alias=["x", 3, True], KINDOF={"id": "trm_x"}),
        },
        "q2": {"properties": build_properties(definition="memory")},
    }
    schemas.check("reconciliation-query-batch", batch)
    schemas.check("reconciliation-result-batch", catalogue.post(queries=batch).json)
    schemas.check("suggest-entities-response", catalogue.get("/suggest/entity", prefix="mem").json)
    schemas.check("suggest-types-response", catalogue.get("/suggest/type", prefix="").json)
    schemas.check("suggest-properties-response", catalogue.get("/suggest/property", prefix="").json)
    schemas.check("data-extension-property-proposal", catalogue.get("/properties", type="task", limit=5).json)
    ids = [candidate["id"] for candidate in catalogue.reconcile_one("memory", limit=20)]
    extension = {"ids": ids, "properties": [{"id": pid} for pid in PROPERTIES]}
    schemas.check("data-extension-query", extension)
    schemas.check("data-extension-response", catalogue.post(extend=extension).json)
    for kind in ("entity", "type", "property"):
        assert manifest["suggest"][kind]["service_path"].startswith("/")


def test_the_guide_documents_the_actual_scores_and_limits() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "reconcile.md").read_text()
    for min_score, max_score in SCORES.values():
        assert f"| {min_score} to {max_score} |" in guide or f"| {min_score} |" in guide
    assert f"at most {MAX_BATCH_QUERIES}; a larger one gets 413" in guide
    assert all(f"`{name}`" in guide for name in MAIN_COLLECTIONS)
