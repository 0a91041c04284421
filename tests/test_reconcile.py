"""Reconciliation over HTTP on both engines: the project's own cases, and the specification's schemas where they are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.domain.relations import RELATIONS
from lexarium.search.tiers import Tier
from lexarium.service.properties import PROPERTIES
from lexarium.service.reconciling import BATCH_SIZE, SCORES
from tests.databases import ENGINES, NewUrl
from tests.server import Answer, Server

SCHEMAS = Path(__file__).parents[1] / ".." / "shared" / "reconciliation-0.2"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Catalogue:
    """The sample catalogue on a server, and a curator's ways to change it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._token = server.token("admin")

    def get(self, path: str, **parameters: object) -> Answer:
        return self.server.get(f"/reconcile{path}" + (f"?{urlencode(parameters)}" if parameters else ""))

    def post(self, **fields: object) -> Answer:
        body = {name: each if isinstance(each, str) else json.dumps(each) for name, each in fields.items()}
        return self.server.request("POST", "/reconcile", FORM, urlencode(body))

    def ask(self, **queries: object) -> Any:
        answer = self.post(queries=queries)
        assert answer.status == 200, answer.body
        return {key: each["result"] for key, each in answer.json.items()}

    def one(self, query: str, **options: object) -> Any:
        return self.ask(q0={"query": query, **options})["q0"]

    def named(self, collection: str, name: str) -> str:
        return str(self.server.get(f"/api/v-alpha/{collection}?name={quote(name)}").json["id"])

    def create(self, collection: str, **fields: object) -> str:
        answer = self.send("POST", f"/{collection}", fields)
        assert answer.status == 201, answer.body
        return str(answer.json["id"])

    def send(self, method: str, path: str, body: object = None) -> Answer:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "If-Match": '"1"',
        }
        return self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))


@pytest.fixture(scope="module", params=ENGINES)
def catalogue(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Catalogue]:
    with Server(new_url(request.param), "--sample") as server:
        yield Catalogue(server)


class Schemas:
    """The schemas of the specification."""

    def __init__(self, folder: Path) -> None:
        self._schemas = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        # It asks a host for what a scheme of authentication looks like; there is none here.
        self._schemas["manifest"]["properties"].pop("authentication")
        self._registry = jsonschema_rs.Registry(
            [(each["$id"], each) for each in self._schemas.values()], draft=jsonschema_rs.Draft202012
        )

    def check(self, name: str, given: object) -> None:
        validator = jsonschema_rs.validator_for(self._schemas[name], registry=self._registry)
        assert [error.message for error in validator.iter_errors(given)] == []


@pytest.fixture(scope="session")
def schemas() -> Schemas:
    if not SCHEMAS.is_dir():
        pytest.skip("no schemas of the specification: they are looked for in ../shared/reconciliation-0.2")
    return Schemas(SCHEMAS)


# The manifest


def test_the_manifest_is_told_where_nothing_is_asked(catalogue: Catalogue) -> None:
    told = catalogue.get("").json
    base = f"http://127.0.0.1:{catalogue.server.port}"
    assert told["versions"] == ["0.2"]
    assert told["name"] == "Lexarium"
    assert told["identifierSpace"] == About().iri("")
    assert [each["id"] for each in told["defaultTypes"]] == list(SEARCHED)
    assert told["view"] == {"url": f"{base}/id/{{{{id}}}}"}
    assert told["batchSize"] == BATCH_SIZE
    assert "authentication" not in told
    assert catalogue.get("/").json == catalogue.get("", _="1731650000").json == told


def test_every_address_in_the_manifest_answers(catalogue: Catalogue) -> None:
    told = catalogue.get("").json
    identifier = catalogue.named("concept", "working memory")
    base = f"http://127.0.0.1:{catalogue.server.port}"
    addresses = [told["preview"]["url"].replace("{{id}}", identifier)]
    for kind, example in (("entity", identifier), ("type", "concept"), ("property", "KINDOF")):
        service = told["suggest"][kind]
        addresses.append(service["service_url"] + service["service_path"] + "?prefix=c")
        flyout = service["flyout_service_url"] + service["flyout_service_path"]
        addresses.append(flyout.replace("${id}", example))
    propose = told["extend"]["propose_properties"]
    addresses.append(propose["service_url"] + propose["service_path"] + "?type=concept")
    for address in addresses:
        assert catalogue.server.get(address.removeprefix(base)).status == 200, address


def test_pages_of_any_origin_may_ask_everywhere(catalogue: Catalogue) -> None:
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
        asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "POST"}
        preflight = catalogue.server.request("OPTIONS", f"/reconcile{path.partition('?')[0]}", asked)
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "content-type" in preflight.headers["access-control-allow-headers"].lower()
    assert "POST" in catalogue.server.request("OPTIONS", "/reconcile").headers["access-control-allow-methods"]


def test_other_methods_are_refused(catalogue: Catalogue) -> None:
    for method, path in (("DELETE", ""), ("POST", "/preview"), ("PUT", "/suggest/entity")):
        answer = catalogue.server.request(method, f"/reconcile{path}")
        assert answer.status == 405
        assert answer.headers["allow"].startswith("GET, HEAD, OPTIONS")
    assert catalogue.server.request("HEAD", "/reconcile").body == b""


# Queries


def test_a_batch_is_answered_by_key_for_get_and_post_alike(catalogue: Catalogue) -> None:
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


def test_a_candidate_says_what_it_is(catalogue: Catalogue) -> None:
    best = catalogue.one("Working Memory")[0]
    assert best["id"] == catalogue.named("concept", "working memory")
    assert (best["name"], best["score"], best["match"]) == ("working memory", 100, True)
    assert best["type"] == [{"id": "concept", "name": "concept"}]
    assert best["features"] == [{"id": "label", "value": 100}]
    assert 0 < len(best["description"]) <= 210


@pytest.mark.parametrize(
    ("query", "name", "match"),
    [
        ("working memory", "working memory", True),
        ("WÖRKING-MEMORY", "working memory", True),
        ("wm", "working memory", True),  # an alias
        ("explicit memory", "declarative memory", True),
        ("colour vision", "color perception", True),
        ("working mem", "working memory", False),
        ("workng memory", "working memory", False),
        ("memory working", "working memory", False),
    ],
)
def test_only_a_whole_label_matches(catalogue: Catalogue, query: str, name: str, match: bool) -> None:
    found = catalogue.one(query)
    assert (found[0]["name"], found[0]["match"]) == (name, match)
    assert not any(each["match"] for each in found[1:])


@pytest.mark.parametrize("name", ["fixation", "arousal", "mental rotation"])
def test_a_label_of_several_records_does_not_match(catalogue: Catalogue, name: str) -> None:
    found = catalogue.one(name)
    assert [each["name"].casefold() for each in found[:2]] == [name, name]
    assert not any(each["match"] for each in found)


def test_a_label_that_is_ambiguous_elsewhere_matches_within_a_type(catalogue: Catalogue) -> None:
    for collection in ("concept", "task"):
        found = catalogue.one("mental rotation", type=collection)
        assert found[0]["match"] is True
        assert {each["type"][0]["id"] for each in found} == {collection}
    assert not catalogue.one("mental rotation", type=["concept", "task"])[0]["match"]


def test_a_name_that_is_also_an_alias_of_another_does_not_match(catalogue: Catalogue) -> None:
    catalogue.create("concept", name="Glimmerlore")
    assert catalogue.one("glimmerlore")[0]["match"] is True
    catalogue.create("disorder", name="Something else", aliases=[{"text": "glimmer-lore"}])
    found = catalogue.one("glimmerlore")
    assert [each["match"] for each in found] == [False, False]
    assert found[1]["description"] == "Also called glimmer-lore."
    assert catalogue.one("glimmerlore", type="concept")[0]["match"] is True


def test_an_alias_that_does_not_mean_the_same_does_not_match(catalogue: Catalogue) -> None:
    catalogue.create(
        "concept",
        name="Oakishness",
        aliases=[{"text": "treeishness", "scope": "broad"}, {"text": "quercishness"}],
    )
    assert (catalogue.one("treeishness")[0]["name"], catalogue.one("treeishness")[0]["match"]) == ("Oakishness", False)
    assert catalogue.one("quercishness")[0]["match"] is True


def test_a_label_that_is_longer_than_what_is_compared_does_not_match(catalogue: Catalogue) -> None:
    name = "long " * 90
    catalogue.create("concept", name=f"{name}end")
    assert catalogue.one(f"{name}other")[0]["match"] is False


def test_a_retired_record_is_no_candidate_and_no_longer_ambiguous(catalogue: Catalogue) -> None:
    kept, retired = catalogue.create("concept", name="Twinning"), catalogue.create("concept", name="twinning")
    assert [each["match"] for each in catalogue.one("twinning")] == [False, False]
    assert catalogue.send("DELETE", f"/concept/{retired}").status == 200
    assert [(each["id"], each["match"]) for each in catalogue.one("twinning")] == [(kept, True)]


def test_an_identifier_is_a_query_too(catalogue: Catalogue) -> None:
    identifier = catalogue.named("disorder", "agnosia")
    assert [(each["id"], each["match"], each["score"]) for each in catalogue.one(identifier)] == [
        (identifier, True, 100)
    ]


def test_what_a_record_is_only_mapped_to_does_not_match(catalogue: Catalogue) -> None:
    identifier = catalogue.create("disorder", name="Hazelness", relations={"broadMatch": ["EXAMPLE:77"]})
    assert [(each["id"], each["match"]) for each in catalogue.one("example:77")] == [(identifier, False)]


def test_scores_fall_from_the_first_candidate_on(catalogue: Catalogue) -> None:
    for query in ("memory", "task", "work mem", "recal", "disorder of", "attention to", "memroy"):
        scores = [each["score"] for each in catalogue.one(query, limit=50)]
        assert scores
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 100 for score in scores)


def test_candidates_come_in_the_order_of_search(catalogue: Catalogue) -> None:
    for query in ("memory", "work mem", "learning of", "memroy"):
        hits = catalogue.server.get(f"/api/v1/search?{urlencode({'q': query, 'limit': 20})}").json["hits"]
        assert [each["id"] for each in catalogue.one(query, limit=20)] == [hit["id"] for hit in hits]


def test_every_tier_has_scores_below_those_of_the_tier_before() -> None:
    assert list(SCORES) == list(Tier)
    bounds = [bound for least, most in SCORES.values() for bound in (most, least)]
    assert bounds == sorted(bounds, reverse=True)


def test_as_many_candidates_are_told_as_asked_for(catalogue: Catalogue) -> None:
    assert len(catalogue.one("memory", limit=3)) == 3
    assert len(catalogue.one("memory", limit=3.0)) == 3
    assert len(catalogue.one("memory")) == 10
    assert len(catalogue.one("memory", limit=10**12)) > 10


def test_types_are_collections(catalogue: Catalogue) -> None:
    for collection in COLLECTIONS:
        name = catalogue.server.get(f"/api/v1/{collection}?limit=1").json["items"][0]["name"]
        assert name in [each["name"] for each in catalogue.one(name, type=collection, limit=50)]
    contrast = catalogue.server.get("/api/v1/contrast?limit=1").json["items"][0]["name"]
    assert contrast not in [each["name"] for each in catalogue.one(contrast)]
    assert catalogue.one("memory", type="") == catalogue.one("memory", type=[]) == catalogue.one("memory")


def test_no_record_has_all_of_two_types(catalogue: Catalogue) -> None:
    assert catalogue.one("mental rotation", type=["concept", "task"], type_strict="all") == []
    assert catalogue.one("mental rotation", type=["concept"], type_strict="all")
    assert len(catalogue.one("mental rotation", type=["concept", "task"], type_strict="should")) == 2


# Properties


def properties(**values: object) -> list[dict[str, object]]:
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
def test_what_else_is_known_raises_or_lowers_the_score(
    catalogue: Catalogue, agreeing: dict[str, object], contradicting: dict[str, object]
) -> None:
    plain = catalogue.one("work mem")[0]
    raised = catalogue.one("work mem", properties=properties(**agreeing))[0]
    assert plain["name"] == raised["name"] == "working memory"
    assert 0 < plain["score"] < raised["score"] <= 100
    lowered = next(
        each for each in catalogue.one("work mem", properties=properties(**contradicting)) if each["id"] == plain["id"]
    )
    assert 0 <= lowered["score"] < plain["score"]
    assert [feature["id"] for feature in lowered["features"]] == ["label", properties(**contradicting)[0]["pid"]]

    assert catalogue.one("working memory", properties=properties(**agreeing))[0]["match"] is True
    exact = catalogue.one("working memory", properties=properties(**contradicting), limit=100)
    assert not any(each["match"] for each in exact)


def test_what_is_known_puts_the_right_namesake_first(catalogue: Catalogue) -> None:
    for known, opening in (
        ({"alias": "gaze fixation"}, "In eye movements"),
        ({"class": {"id": "ctp_motor"}}, "In eye movements"),
        ({"class": {"id": "ctp_reason"}}, "In problem solving"),
        ({"definition": "stuck on a first idea, overlooking better solutions"}, "In problem solving"),
    ):
        first, second = catalogue.one("fixation", properties=properties(**known))[:2]
        assert first["name"] == second["name"] == "fixation"
        assert first["description"].startswith(opening)
        assert first["score"] > second["score"]


def test_a_record_that_says_nothing_of_it_is_neither_raised_nor_lowered(catalogue: Catalogue) -> None:
    plain, asked = (
        catalogue.one("consciousness")[0],
        catalogue.one("consciousness", properties=properties(**{"class": "x"})),
    )
    assert asked[0]["score"] == plain["score"]
    assert asked[0]["match"] is True


def test_the_name_is_as_good_as_an_alias_where_an_alias_is_known(catalogue: Catalogue) -> None:
    best = catalogue.one("WM", properties=properties(alias="Working Memory"))[0]
    assert best["match"] is True
    assert best["score"] > catalogue.one("WM")[0]["score"]


def test_values_that_are_blank_count_as_not_given(catalogue: Catalogue) -> None:
    blank = [{"pid": "alias", "v": ""}, {"pid": "class", "v": []}, {"pid": "KINDOF", "v": ["  "]}]
    assert catalogue.one("working memory", properties=blank) == catalogue.one("working memory")


def test_numbers_and_truth_values_are_compared_as_text(catalogue: Catalogue) -> None:
    catalogue.create("concept", name="Numeral", aliases=[{"text": "42"}, {"text": "true"}])
    for value in (42, "42", True, [1.5, 42]):
        assert catalogue.one("numeral", properties=[{"pid": "alias", "v": value}])[0]["match"] is True
    assert catalogue.one("numeral", properties=[{"pid": "alias", "v": 43}])[0]["match"] is False


def test_an_identifier_beside_a_name_finds_its_record(catalogue: Catalogue) -> None:
    identifier = catalogue.named("concept", "attention")
    found = catalogue.one("working memory", properties=[{"pid": "id", "v": identifier}])
    assert [each["name"] for each in found[:2]] == ["attention", "working memory"]
    assert not any(each["match"] for each in found)
    assert catalogue.one("attention", properties=[{"pid": "id", "v": identifier}])[0]["match"] is True


@pytest.mark.parametrize(
    ("known", "names"),
    [
        ({"KINDOF": "working memory"}, {"verbal working memory", "visuospatial working memory"}),
        ({"ASSERTS": "working memory"}, {"AX continuous performance task", "n-back task", "operation span task"}),
        ({"ASSERTS_inverse": ["n-back task"]}, {"working memory"}),
        ({"alias": "WM"}, {"working memory"}),
        ({"definition": "limited capacity carrying the tens in a sum"}, {"working memory"}),
    ],
)
def test_a_query_needs_no_name(catalogue: Catalogue, known: dict[str, object], names: set[str]) -> None:
    found = catalogue.ask(q0={"properties": properties(**known), "limit": 50})["q0"]
    assert names <= {each["name"] for each in found}
    assert not any(each["match"] for each in found)


def test_a_class_alone_finds_its_records(catalogue: Catalogue) -> None:
    found = catalogue.ask(q0={"properties": [{"pid": "class", "v": "Attention"}], "type": "concept", "limit": 100})[
        "q0"
    ]
    there = catalogue.server.get("/api/v1/concept?class=ctp_attend&limit=1000").json["items"]
    assert {each["id"] for each in found} == {each["id"] for each in there}


# What cannot be asked


def test_a_batch_that_is_too_large_is_refused(catalogue: Catalogue) -> None:
    assert catalogue.post(queries={f"q{n}": {"query": "memory"} for n in range(BATCH_SIZE)}).status == 200
    answer = catalogue.post(queries={f"q{n}": {"query": "memory"} for n in range(BATCH_SIZE + 1)})
    assert answer.status == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert str(BATCH_SIZE) in answer.json["detail"]
    assert catalogue.post(extend={"ids": ["x"] * 1_001, "properties": []}).status == 413
    assert catalogue.server.request("POST", "/reconcile", FORM, "queries=" + "a" * 1_100_000).status == 413


def test_every_wrong_query_is_named_at_once(catalogue: Catalogue) -> None:
    answer = catalogue.post(
        queries={
            "right": {"query": "memory"},
            "a": {"query": 3, "limit": 0, "type": ["concept", "person"], "type_strict": "perhaps", "other": 1},
            "b": "memory",
            "c": {},
            "d": {"properties": []},
            "e": {"query": "x", "properties": [{"pid": "no", "v": 1}, {"pid": "alias"}, 7, {"pid": "alias", "v": {}}]},
            "f": {"query": "x", "properties": {}, "type": 1, "limit": True},
            "g": {"query": "x", "limit": 2.5},
            "h": {"query": "x", "properties": [{"pid": "definition", "v": "y"}] * 51},
            "i": {"query": "x", "properties": [{"pid": "definition", "v": ["y"] * 101}]},
        }
    )
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [
        *("/a/other", "/a/query", "/a/type_strict", "/a/type", "/a/limit"),
        *("/b", "/c", "/d"),
        *("/e/properties/0/pid", "/e/properties/1/v", "/e/properties/2/pid", "/e/properties/3/v"),
        *("/f/properties", "/f/type", "/f/limit", "/g/limit"),
        *("/h/properties", "/i/properties/0/v"),
    ]


@pytest.mark.parametrize("name", ["queries", "extend"])
def test_what_is_not_json_is_refused_with_its_place(catalogue: Catalogue, name: str) -> None:
    for answer in (catalogue.post(**{name: '{"q0": {"query": "a",}}'}), catalogue.get("", **{name: '{"q0": [,'})):
        assert answer.status == 400
        assert "line 1 column" in answer.json["detail"]
    for text in ("", "[]", "3", '"x"', "[" * 5_000, '{"\\ud800": 1}', '{"a": NaN}'):
        assert catalogue.post(**{name: text}).status == 400, text


def test_a_form_without_a_question_is_refused(catalogue: Catalogue) -> None:
    assert catalogue.post(other="1").status == 400
    assert catalogue.server.post_json("/reconcile", {"queries": {}}).status == 415
    assert catalogue.server.request("POST", "/reconcile").status == 415
    assert catalogue.server.request("POST", "/reconcile", FORM, "queries=%ff").status == 400


def test_parameters_of_older_versions_are_refused(catalogue: Catalogue) -> None:
    for path, parameter in (("", "callback"), ("", "query"), ("/suggest/entity", "callback")):
        answer = catalogue.get(path, **{parameter: "x", "prefix": "a"})
        assert answer.status == 400
        assert f"`{parameter}`" in answer.json["detail"]


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
def test_any_text_is_a_query(catalogue: Catalogue, texts: list[str]) -> None:
    queries = {text: {"query": text, "properties": [{"pid": pid, "v": text} for pid in PROPERTIES]} for text in texts}
    answer = catalogue.post(queries=queries)
    assert answer.status == 200, answer.body
    assert list(answer.json) == list(dict.fromkeys(texts))
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
def test_any_json_gets_an_answer(catalogue: Catalogue, batch: dict[str, Any], extension: Any) -> None:
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


def suggested(catalogue: Catalogue, kind: str, prefix: str, **options: object) -> Any:
    answer = catalogue.get(f"/suggest/{kind}", prefix=prefix, **options)
    assert answer.status == 200, answer.body
    return answer.json["result"]


def test_records_are_suggested_by_name_alias_and_identifier(catalogue: Catalogue) -> None:
    identifier = catalogue.named("concept", "working memory")
    for prefix in ("working mem", "WM", identifier):
        assert suggested(catalogue, "entity", prefix)[0]["id"] == identifier
    by_alias = suggested(catalogue, "entity", "WM")[0]
    assert by_alias["name"] == "working memory"
    assert by_alias["description"].startswith("Also called WM. ")
    assert by_alias["notable"] == [{"id": "concept", "name": "concept"}]
    assert suggested(catalogue, "entity", "") == []


def test_records_of_a_type_are_suggested(catalogue: Catalogue) -> None:
    assert {each["notable"][0]["id"] for each in suggested(catalogue, "entity", "m")} <= set(SEARCHED)
    for collection in ("task", "concept_class"):
        found = suggested(catalogue, "entity", "a", type=collection)
        assert {each["notable"][0]["id"] for each in found} == {collection}


def test_a_cursor_goes_on_where_suggestions_ended(catalogue: Catalogue) -> None:
    first = suggested(catalogue, "entity", "m")
    second = suggested(catalogue, "entity", "m", cursor=len(first))
    overlapping = suggested(catalogue, "entity", "m", cursor=5)
    assert len(first) == 10
    assert not {each["id"] for each in first} & {each["id"] for each in second}
    assert overlapping == [*first, *second][5:15]
    assert suggested(catalogue, "entity", "m", cursor=900) == []
    assert suggested(catalogue, "type", "", cursor=3) == suggested(catalogue, "type", "")[3:]


def test_types_are_suggested(catalogue: Catalogue) -> None:
    assert [each["id"] for each in suggested(catalogue, "type", "")] == list(COLLECTIONS)
    assert [each["id"] for each in suggested(catalogue, "type", "Dis")] == ["disorder"]
    assert [each["id"] for each in suggested(catalogue, "type", "class")] == ["concept_class"]
    assert [each["id"] for each in suggested(catalogue, "type", "concept_c")] == ["concept_class"]
    assert suggested(catalogue, "type", "person") == []


def test_properties_are_suggested(catalogue: Catalogue) -> None:
    assert [each["id"] for each in suggested(catalogue, "property", "")] == list(PROPERTIES)
    assert {each["id"] for each in suggested(catalogue, "property", "kind")} == {"KINDOF", "KINDOF-inverse"}
    assert [each["id"] for each in suggested(catalogue, "property", "defin")] == ["definition"]
    assert set(RELATIONS) | {"alias", "definition", "class", "id"} <= set(PROPERTIES)
    assert all(each["name"] and each["description"] for each in suggested(catalogue, "property", ""))


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
def test_wrong_parameters_are_named_at_once(
    catalogue: Catalogue, path: str, parameters: dict[str, str], pointers: list[str]
) -> None:
    answer = catalogue.get(path, **parameters)
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json["errors"]] == pointers


def test_a_flyout_is_a_piece_of_a_page_with_everything_escaped(catalogue: Catalogue) -> None:
    identifier = catalogue.create("concept", name="<b>bold</b>", definition_text="a & <script>")
    for kind, example, told in (
        ("entity", identifier, "&lt;b&gt;bold&lt;/b&gt;"),
        ("type", "disorder", "A disorder of mind or brain."),
        ("property", "PARTOF", "part of"),
    ):
        answer = catalogue.get(f"/flyout/{kind}", id=example).json
        assert answer["id"] == example
        assert told in answer["html"]
        assert "<script" not in answer["html"]
        assert catalogue.get(f"/flyout/{kind}", id="nothing").status == 404


# Preview


def test_a_preview_is_a_small_page_of_its_own(catalogue: Catalogue) -> None:
    answer = catalogue.get("/preview", id=catalogue.named("concept", "working memory"))
    page = answer.body.decode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for told in ("working memory", "Arbeitsgedächtnis", "Learning and memory", "n-back task", "limited capacity"):
        assert told in page
    assert "src=" not in page
    assert "<link" not in page
    assert "<script" not in page
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy
    assert "frame-ancestors *" in policy


def test_a_preview_escapes_everything(catalogue: Catalogue) -> None:
    text = "<img src=x onerror=alert(1)>\"'"
    identifier = catalogue.create("concept", name=text, definition_text=text, aliases=[{"text": text}])
    page = catalogue.get("/preview", id=identifier).body.decode()
    assert "<img" not in page
    assert page.count("&lt;img") >= 4


def test_the_preview_of_a_retired_record_says_so(catalogue: Catalogue) -> None:
    new, old = catalogue.create("concept", name="New thing"), catalogue.create("concept", name="Old thing")
    assert catalogue.send("DELETE", f"/concept/{old}?replaced_by={new}").status == 200
    page = catalogue.get("/preview", id=old).body.decode()
    assert "retired" in page
    assert f"/reconcile/preview?id={new}" in page
    assert "retired" not in catalogue.get("/preview", id=new).body.decode()


def test_the_preview_of_a_merged_record_is_its_survivors(catalogue: Catalogue) -> None:
    survivor, merged = catalogue.create("concept", name="Survivor"), catalogue.create("concept", name="Merged")
    assert catalogue.send("POST", f"/concept/{merged}/merge", {"into": survivor}).status == 200
    answer = catalogue.get("/preview", id=merged)
    assert (answer.status, answer.headers["location"]) == (308, f"/reconcile/preview?id={survivor}")
    extended = catalogue.post(extend={"ids": [merged], "properties": [{"id": "id"}, {"id": "name"}]}).json
    assert extended["rows"] == {merged: {"id": [{"str": survivor}], "name": [{"str": "Survivor"}]}}


def test_there_is_no_preview_of_what_is_not_there(catalogue: Catalogue) -> None:
    assert catalogue.get("/preview", id="trm_nothing").status == 404


# Extend


def test_records_are_extended_by_any_property(catalogue: Catalogue) -> None:
    identifier = catalogue.named("concept", "working memory")
    wanted = ["alias", "class", "KINDOF", "ASSERTS-inverse", "definition", "id", "name", "exactMatch"]
    extension = {"ids": [identifier, "trm_nothing"], "properties": [{"id": each, "settings": {}} for each in wanted]}
    by_post, by_get = catalogue.post(extend=extension), catalogue.get("", extend=json.dumps(extension))
    assert by_post.json == by_get.json
    row = by_post.json["rows"][identifier]
    assert row["alias"] == [{"str": "WM"}, {"str": "Arbeitsgedächtnis"}]
    assert row["class"] == [{"id": "ctp_memory", "name": "Learning and memory"}]
    assert row["KINDOF"] == [{"id": catalogue.named("concept", "memory"), "name": "memory"}]
    assert {"id": catalogue.named("task", "n-back task"), "name": "n-back task"} in row["ASSERTS-inverse"]
    assert row["definition"][0]["str"].startswith("A system of limited capacity")
    assert (row["id"], row["name"]) == ([{"str": identifier}], [{"str": "working memory"}])
    assert row["exactMatch"] == []
    assert by_post.json["rows"]["trm_nothing"] == {each: [] for each in wanted}
    assert [each["id"] for each in by_post.json["meta"]] == wanted
    assert by_post.json["meta"][2] == {"id": "KINDOF", "name": "kind of", "type": {"id": "concept", "name": "concept"}}
    assert "type" not in by_post.json["meta"][0]


def test_mappings_are_values_too(catalogue: Catalogue) -> None:
    identifier = catalogue.create("disorder", name="Mapped thing", relations={"exactMatch": ["DOID:9", "DOID:10"]})
    extended = catalogue.post(extend={"ids": [identifier], "properties": [{"id": "exactMatch"}]}).json
    assert extended["rows"][identifier]["exactMatch"] == [{"str": "DOID:10"}, {"str": "DOID:9"}]


def test_a_retired_record_has_no_values(catalogue: Catalogue) -> None:
    identifier = catalogue.create("concept", name="Gone thing")
    catalogue.send("DELETE", f"/concept/{identifier}")
    assert catalogue.post(extend={"ids": [identifier], "properties": [{"id": "name"}]}).json["rows"] == {
        identifier: {"name": []}
    }


def test_all_that_is_wrong_with_an_extension_is_named(catalogue: Catalogue) -> None:
    for extension, pointers in (
        ({}, ["/ids", "/properties"]),
        ({"ids": [1], "properties": [{"id": "no"}, {}, 3]}, ["/ids", *(f"/properties/{n}/id" for n in range(3))]),
    ):
        answer = catalogue.post(extend=extension)
        assert answer.status == 422
        assert [error["pointer"] for error in answer.json["errors"]] == pointers


def test_properties_are_proposed_for_a_type(catalogue: Catalogue) -> None:
    told = catalogue.get("/properties", type="disorder").json
    proposed = [each["id"] for each in told["properties"]]
    assert told["type"] == "disorder"
    assert {"ISA", "ISA-inverse", "alias", "definition", "exactMatch"} <= set(proposed)
    assert not {"class", "KINDOF", "ASSERTS"} & set(proposed)
    limited = catalogue.get("/properties", type="disorder", limit=2).json
    assert ([each["id"] for each in limited["properties"]], limited["limit"]) == (proposed[:2], 2)
    assert [each["id"] for each in catalogue.get("/properties").json["properties"]] == list(PROPERTIES)


# The specification's schemas


def test_the_answers_are_what_the_specification_says(catalogue: Catalogue, schemas: Schemas) -> None:
    manifest = catalogue.get("").json
    schemas.check("manifest", manifest)
    batch = {
        "q0": {"query": "memory", "type": ["concept", "task"], "limit": 4, "type_strict": "should"},
        "q1": {
            "query": "wm",
            "type": "concept",
            "properties": properties(alias=["x", 3, True], KINDOF={"id": "trm_x"}),
        },
        "q2": {"properties": properties(definition="memory")},
    }
    schemas.check("reconciliation-query-batch", batch)
    schemas.check("reconciliation-result-batch", catalogue.post(queries=batch).json)
    schemas.check("suggest-entities-response", catalogue.get("/suggest/entity", prefix="mem").json)
    schemas.check("suggest-types-response", catalogue.get("/suggest/type", prefix="").json)
    schemas.check("suggest-properties-response", catalogue.get("/suggest/property", prefix="").json)
    schemas.check("data-extension-property-proposal", catalogue.get("/properties", type="task", limit=5).json)
    ids = [each["id"] for each in catalogue.one("memory", limit=20)]
    extension = {"ids": ids, "properties": [{"id": pid} for pid in PROPERTIES]}
    schemas.check("data-extension-query", extension)
    schemas.check("data-extension-response", catalogue.post(extend=extension).json)
    for kind in ("entity", "type", "property"):
        assert manifest["suggest"][kind]["service_path"].startswith("/")


def test_the_guide_tells_the_scores_and_limits_that_hold() -> None:
    told = (Path(__file__).parents[1] / "docs" / "reconciling.md").read_text()
    for least, most in SCORES.values():
        assert f"| {least} to {most} |" in told or f"| {least} |" in told
    assert f"at most {BATCH_SIZE}; a larger one gets 413" in told
    assert all(f"`{name}`" in told for name in COLLECTIONS)
