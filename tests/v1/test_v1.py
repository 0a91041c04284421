"""v1 over HTTP: records, states, history, relations, permissions."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lexarium.domain.account import Role
from lexarium.domain.errors import InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.accounts import add_account
from lexarium.services.access.passwords import set_password
from lexarium.store.database import Database
from tests.support.imports import build_term, import_json
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag, send_batch


@pytest.fixture
def curator(server: Server) -> V1Client:
    return V1Client(server, "curator")


@pytest.fixture(scope="module")
def shared_curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


@pytest.fixture
def contributor(server: Server) -> V1Client:
    return V1Client(server, "contributor")


@pytest.mark.parametrize("collection", list(COLLECTIONS))
def test_a_record_is_created_edited_and_retired(server: Server, collection: str) -> None:
    curator = V1Client(server, "curator")
    response = curator.send("POST", collection, {"name": "First", "aliases": [{"text": "One", "lang": "de"}]})
    assert response.status == 201
    record = response.json
    assert response.headers["location"] == f"/api/v1/{build_path(record)}"
    assert response.headers["etag"] == '"1"'
    assert (record["version"], record["state"], record["name"]) == (1, "published", "First")
    assert record["aliases"] == [{"text": "One", "lang": "de", "scope": "exact"}]
    read_response = server.get(f"/api/v1/{build_path(record)}")
    assert (read_response.json, read_response.headers["etag"]) == (record, '"1"')
    assert server.get(f"/api/v1/{build_path(record)}", If_None_Match='"1"').status == 304
    assert server.get(f"/api/v1/records/{record['id']}").json == record
    updated = curator.patch(record, name="Second")
    assert (updated["version"], updated["name"], updated["aliases"]) == (2, "Second", record["aliases"])
    replaced = curator.send("PUT", build_path(record), {"name": "Third"}, If_Match='"2"')
    assert (replaced.json["version"], replaced.json["aliases"]) == (3, [])
    retirement = curator.send("DELETE", build_path(record), If_Match='"3"')
    assert (retirement.status, retirement.json["state"]) == (200, "retired")
    assert server.get(f"/api/v1/{build_path(record)}").status == 410
    assert server.get(f"/api/v1/{collection}").json["items"] == []
    assert server.get(f"/api/v1/{collection}?state=retired").json["total"] == 1
    assert server.get(f"/api/v1/{build_path(record)}/history").json["items"][0]["action"] == "retire"


def test_v_alpha_lists_only_published_records_without_delay(server: Server, curator: V1Client) -> None:
    published, retired = curator.create(name="Kept"), curator.create(name="Other")
    assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["Kept", "Other"]
    curator.send("DELETE", f"{build_path(retired)}?replaced_by={published['id']}", If_Match=get_etag(retired))
    assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["Kept"]
    response = server.get(f"/api/v-alpha/concept?id={retired['id']}")
    assert response.status == 404
    assert published["id"] in response.json["detail"]
    assert server.get(f"/api/v1/{build_path(retired)}").json["replaced_by"] == published["id"]


def test_a_write_requires_the_current_version(curator: V1Client) -> None:
    record = curator.create(name="One")
    assert curator.send("PATCH", build_path(record), {"name": "Two"}).status == 428
    assert curator.send("PATCH", build_path(record), {"name": "Two"}, If_Match='"7"').json["version"] == 1
    assert curator.send("PATCH", build_path(record), {"name": "Two"}, If_Match='"7"').status == 412
    assert curator.send("PATCH", build_path(record), {"name": "Two"}, If_Match="nonsense").status == 412
    assert curator.send("DELETE", build_path(record)).status == 428
    assert curator.send("PATCH", build_path(record), {"name": "One"}, If_Match='"1"').json["version"] == 1


def test_a_new_definition_gets_its_own_author_and_id(server: Server, curator: V1Client) -> None:
    record = curator.create(name="One", definition_text="First.")
    other = V1Client(server, "curator")
    renamed = other.patch(record, name="Two")
    assert (renamed["def_id"], renamed["def_id_user"]) == (record["def_id"], record["def_id_user"])
    assert renamed["creation_time"] == record["creation_time"] <= renamed["last_updated"]
    defined = other.patch(renamed, definition_text="Second.")
    assert defined["def_id"] != record["def_id"]
    assert defined["def_id_user"] != record["def_id_user"]
    assert defined["id_user"] == record["id_user"]


def test_the_alias_field_is_derived_from_aliases(server: Server, curator: V1Client) -> None:
    record = curator.create(name="One")
    aliases = [{"text": "a, b"}, {"text": "c"}, {"text": "d", "lang": "fr", "scope": "narrow"}]
    updated = curator.patch(record, aliases=aliases)
    assert [alias["text"] for alias in updated["aliases"]] == ["a, b", "c", "d"]
    assert server.get(f"/api/v-alpha/concept?id={record['id']}").json["alias"] == "a, b; c"
    posted = server.post_json("/api/v-alpha/concept", {"name": "Two", "alias": "x,y ,  z"}, curator.token).json
    assert posted["alias"] == "x,y ,  z"
    current = server.get(f"/api/v1/concept/{posted['id']}").json
    assert [alias["text"] for alias in current["aliases"]] == ["x", "y", "z"]
    unchanged = curator.patch(current, definition_text="Changed.")
    assert server.get(f"/api/v-alpha/concept?id={unchanged['id']}").json["alias"] == "x,y ,  z"


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"/name"}),
        ({"name": "", "wrong": 1}, {"/name", "/wrong"}),
        ({"name": "x", "aliases": [{"text": ""}, {"text": "a", "lang": "??"}]}, {"/aliases/0/text", "/aliases/1/lang"}),
        ({"name": "x", "aliases": [{"text": "a", "scope": "odd"}], "sources": [5]}, {"/aliases/0/scope", "/sources/0"}),
        ({"name": "x", "relations": {"EATS": []}}, {"/relations/EATS"}),
        ({"name": "x", "relations": {"KINDOF": ["trm_none"], "exactMatch": ["a b"]}},
         {"/relations/KINDOF/0", "/relations/exactMatch/0"}),
        ({"name": "x", "id_concept_class": "ctp_none", "id": "trm_mine"}, {"/id_concept_class", "/id"}),
        ({"name": "x", "alias": "a"}, {"/alias"}),
        ({"name": "", "aliases": [{"text": f"{n:03}" + "a" * 497} for n in range(4)]}, {"/name", "/aliases"}),
        ({"name": "x", "relations": {"exactMatch": ["javascript:alert(1)", "http://", "x:<", "x:" + "é" * 1000]}},
         {f"/relations/exactMatch/{n}" for n in range(4)}),
    ],
)  # fmt: skip
def test_all_invalid_fields_are_reported_with_their_pointers(
    shared_server: Server, shared_curator: V1Client, body: dict[str, Any], pointers: set[str]
) -> None:
    response = shared_curator.send("POST", "concept", body)
    assert response.status == 422
    assert {error["pointer"] for error in response.json["errors"]} == pointers
    assert shared_server.get("/api/v1/concept").json["total"] == 0


def test_an_existing_invalid_record_is_validated_only_where_it_changes(
    server: Server, curator: V1Client, tmp_path: Any
) -> None:
    database = Database(server.url)
    import_json(database, tmp_path, "concept.json", [build_term("old", name="", id_concept_class="ctp_gone")])
    database.close()
    record = server.get("/api/v1/concept/trm_old").json
    assert curator.patch(record, definition_text="Now.")["name"] == ""
    assert curator.send("PATCH", build_path(record), {"name": " "}, If_Match='"2"').status == 422


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [("text/plain", "{}", 415), ("application/json", "{", 400), ("application/json", "[]", 400), ("", "{}", 415),
     ("application/json", '{"name": "' + "x" * (1 << 20) + '"}', 413)],
)  # fmt: skip
def test_unreadable_bodies_are_rejected(shared_curator: V1Client, kind: str, body: str, status: int) -> None:
    headers = {"Content-Type": kind, "Authorization": f"Bearer {shared_curator.token}"}
    response = shared_curator.server.request("POST", "/api/v1/concept", headers, body)
    assert response.status == status
    assert response.headers["content-type"] == "application/problem+json"


def test_unknown_parameters_are_rejected_by_name(server: Server) -> None:
    response = server.get("/api/v1/concept?limt=5")
    assert response.status == 422
    assert response.json["errors"][0]["pointer"] == "/limt"
    assert server.get("/api/v1/concept?limit=0").status == 422
    assert server.get("/api/v1/concept?limit=1001").status == 422
    assert server.get("/api/v1/concept?cursor=nonsense").status == 422
    assert server.get("/api/v1/concept?sort=colour").status == 422
    assert server.get("/api/v1/nothing").status == 404


def test_lists_are_filtered_sorted_and_paged(server: Server, curator: V1Client) -> None:
    records = [curator.create(name=name) for name in ("delta", "Alpha", "charlie", "bravo")]
    flagged = curator.create("disorder", name="Flagged", flag_for_curator=1)
    names: list[str] = []
    target = "/api/v1/concept?limit=2"
    pages = 0
    while target:
        response = server.get(target)
        names += [item["name"] for item in response.json["items"]]
        assert response.json["total"] == 4
        link = re.search(r'<([^>]+)>; rel="next"', response.headers.get("link", ""))
        target = link.group(1) if link else ""
        pages += 1
    assert (names, pages) == (["Alpha", "bravo", "charlie", "delta"], 2)
    items = server.get("/api/v1/concept?sort=-name&fields=name").json["items"]
    assert items == [{"name": name} for name in ("delta", "charlie", "bravo", "Alpha")]
    ids = f"{records[0]['id']},{records[1]['id']},none"
    assert server.get(f"/api/v1/concept?ids={ids}").json["total"] == 2
    assert server.get("/api/v1/concept?name=ALPHA").json["items"][0]["id"] == records[1]["id"]
    assert server.get("/api/v1/disorder?flagged=true").json["items"][0]["id"] == flagged["id"]
    assert server.get("/api/v1/disorder?flagged=false").json["total"] == 0
    assert server.get("/api/v1/concept?updated_since=2999-01-01").json["total"] == 0
    assert server.get(f"/api/v1/concept?user={records[0]['id_user']}").json["total"] == 4
    assert server.get("/api/v1/concept?class=ctp_none").json["total"] == 0


def test_head_has_the_headers_of_get_and_no_body(server: Server, curator: V1Client) -> None:
    record = curator.create(name="x")
    for target in ("/api/v1", "/api/v1/concept", f"/api/v1/{build_path(record)}"):
        get_response, head = server.get(target), server.request("HEAD", target)
        assert (head.status, head.body) == (200, b"")
        assert {**head.headers, "date": ""} == {**get_response.headers, "date": ""}


def test_disorders_are_sorted_by_name_by_default(server: Server, curator: V1Client) -> None:
    for name in ("b", "C", "a"):
        curator.create("disorder", name=name)
    assert [item["name"] for item in server.get("/api/v1/disorder").json["items"]] == ["a", "b", "C"]


def test_a_put_by_a_contributor_proposes_a_complete_replacement(
    server: Server, curator: V1Client, contributor: V1Client
) -> None:
    record = curator.create(name="One", definition_text="Goes.", relations={"exactMatch": ["A:1"]})
    proposal_response = contributor.send("PUT", build_path(record), {"name": "Two"}, If_Match='"1"')
    assert proposal_response.status == 202
    accepted = curator.send("POST", f"proposals/{proposal_response.json['id']}/accept", {}).json
    assert (accepted["name"], accepted["definition_text"], accepted["relations"]) == ("Two", "", {})


def test_an_idempotency_key_creates_one_record(server: Server, curator: V1Client) -> None:
    first = curator.send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    repeated = curator.send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    assert (repeated.status, repeated.json, repeated.headers["location"]) == (
        201,
        first.json,
        first.headers["location"],
    )
    assert curator.send("POST", "concept", {"name": "Twice"}, Idempotency_Key="k1").status == 409
    other = V1Client(server, "curator").send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    assert other.json["id"] != first.json["id"]
    rejected = curator.send("POST", "concept", {"name": ""}, Idempotency_Key="k2")
    assert rejected.status == 422
    assert curator.send("POST", "concept", {"name": "Right"}, Idempotency_Key="k2").status == 201


def test_history_diff_and_revert(server: Server, curator: V1Client) -> None:
    first = curator.create(name="One", definition_text="First.")
    second = curator.patch(first, name="Two", definition_text="Second.")
    history = server.get(f"/api/v1/{build_path(first)}/history").json["items"]
    assert [(item["version"], item["action"]) for item in history] == [(2, "update"), (1, "create")]
    assert server.get(f"/api/v1/{build_path(first)}/history/1").json == first
    assert server.get(f"/api/v1/{build_path(first)}/history/3").status == 404
    diff = server.get(f"/api/v1/{build_path(first)}/diff?from=1&to=2").json["items"]
    changed_fields = {item["field"]: (item["from"], item["to"]) for item in diff}
    assert changed_fields["name"] == ("One", "Two")
    assert changed_fields["definition_text"] == ("First.", "Second.")
    reverted = curator.send("POST", build_path(first, "revert"), {"version": 1}, If_Match=get_etag(second))
    assert reverted.status == 200
    assert (reverted.json["version"], reverted.json["name"], reverted.json["def_id"]) == (3, "One", first["def_id"])
    retired = curator.send("DELETE", build_path(first), If_Match='"3"').json
    restored = curator.send("POST", build_path(first, "revert"), {"version": 3}, If_Match=get_etag(retired))
    assert (restored.status, restored.json["state"]) == (200, "published")


def test_relations_are_shown_on_both_sides_and_cycles_rejected(server: Server, curator: V1Client) -> None:
    top, middle, leaf = (curator.create(name=name) for name in ("top", "middle", "leaf"))
    middle = curator.patch(middle, relations={"KINDOF": [top["id"]]})
    response = curator.send(
        "PUT", build_path(leaf, "relations"), {"relation": "KINDOF", "target": middle["id"]}, If_Match=get_etag(leaf)
    )
    assert response.status == 200
    leaf = response.json
    assert [item["name"] for item in server.get(f"/api/v1/{build_path(middle)}/relations").json["items"]] == [
        "top",
        "leaf",
    ]
    above = server.get(f"/api/v1/{build_path(leaf)}/ancestors").json["items"]
    assert [(item["name"], item["depth"]) for item in above] == [("middle", 1), ("top", 2)]
    below = server.get(f"/api/v1/{build_path(top)}/descendants?relation=KINDOF").json["items"]
    assert [item["name"] for item in below] == ["middle", "leaf"]
    for relation in ("KINDOF", "PARTOF"):  # one hierarchy, made of both relation types
        circle = curator.send(
            "PUT", build_path(top, "relations"), {"relation": relation, "target": leaf["id"]}, If_Match=get_etag(top)
        )
        assert circle.status == 422
        assert "cycle" in circle.json["detail"]
    for relation in ("PARTOF", "RELATED"):
        itself = curator.send("PATCH", build_path(top), {"relations": {relation: [top["id"]]}}, If_Match=get_etag(top))
        assert itself.status == 422
        assert "itself" in itself.json["detail"]
    removal = curator.send(
        "DELETE", f"{build_path(leaf)}/relations?relation=KINDOF&target={middle['id']}", If_Match=get_etag(leaf)
    )
    assert removal.json["relations"] == {}
    assert server.get(f"/api/v-alpha/concept?id={middle['id']}").json["relationships"][0]["name"] == "top"
    assert server.get(f"/api/v1/{build_path(leaf)}/ancestors?relation=ASSERTS").status == 422


def test_aliases_in_other_languages_are_not_part_of_the_alias_field(shared_curator: V1Client) -> None:
    record = shared_curator.create(name="x", aliases=[{"text": f"{n:03}" + "a" * 497, "lang": "de"} for n in range(4)])
    assert (len(record["aliases"]), record["alias"]) == (4, "")
    shared_curator.send("DELETE", build_path(record), If_Match=get_etag(record))


@pytest.mark.parametrize(
    "target",
    ["https://example.org", "http://[::1]/x", "urn:isbn:0451450523", "doi:10.1000/182", "DOID:3324", "info:x/y",
     "https://example.org/" + "é" * 990],
)  # fmt: skip
def test_iris_and_curies_are_accepted_as_mapping_targets(shared_curator: V1Client, target: str) -> None:
    record = shared_curator.create("task", name="x")
    body = {"relation": "exactMatch", "target": target}
    response = shared_curator.send("PUT", build_path(record, "relations"), body, If_Match=get_etag(record))
    assert (response.status, response.json["relations"]) == (200, {"exactMatch": [target]})
    for invalid_target in ("JavaScript:x", "http:x", "a b:c", "nothing", "x:\x00"):
        body = {"relation": "exactMatch", "target": invalid_target}
        rejected = shared_curator.send("PUT", build_path(record, "relations"), body, If_Match='"2"')
        assert [error["pointer"] for error in rejected.json["errors"]] == ["/target"]


def test_a_mapping_refers_to_an_external_identifier(server: Server, curator: V1Client) -> None:
    record = curator.create(name="x", relations={"exactMatch": ["DOID:3324", "https://example.org/x"]})
    items = server.get(f"/api/v1/{build_path(record)}/relations").json["items"]
    assert [(item["relation"], item["id"]) for item in items] == [
        ("exactMatch", "DOID:3324"),
        ("exactMatch", "https://example.org/x"),
    ]


def test_a_merge_moves_names_and_relations_and_can_be_undone(server: Server, curator: V1Client) -> None:
    top, merge_target, merged, child = (curator.create(name=name) for name in ("top", "kept", "gone", "child"))
    merged = curator.patch(merged, aliases=[{"text": "lost"}, {"text": "Kept"}], relations={"KINDOF": [top["id"]]})
    child = curator.patch(child, relations={"PARTOF": [merged["id"]]})
    before = server.get("/api/v1/concept").json["items"]
    response = curator.send(
        "POST", build_path(merged, "merge"), {"into": merge_target["id"]}, If_Match=get_etag(merged)
    )
    assert response.status == 200
    survivor = response.json
    assert survivor["name"] == "kept"
    assert [alias["text"] for alias in survivor["aliases"]] == ["gone", "lost"]
    assert survivor["relations"] == {"KINDOF": [top["id"]]}
    assert server.get(f"/api/v1/{build_path(child)}").json["relations"] == {"PARTOF": [merge_target["id"]]}
    redirect = server.get(f"/api/v1/{build_path(merged)}")
    assert (redirect.status, redirect.headers["location"]) == (308, f"/api/v1/{build_path(merge_target)}")
    valpha = server.get(f"/api/v-alpha/concept?id={merged['id']}")
    assert (valpha.status, valpha.headers["location"]) == (308, f"/api/v-alpha/concept?id={merge_target['id']}")
    curator.patch(survivor, definition_text="Written since.")
    undone = curator.send(
        "POST", build_path(merged, "revert"), {"version": merged["version"]}, If_Match=f'"{merged["version"] + 1}"'
    )
    assert undone.status == 200
    after = server.get("/api/v1/concept").json["items"]
    compared_fields = ("id", "name", "aliases", "relations", "state")
    assert [{key: item[key] for key in compared_fields} for item in after] == [
        {key: item[key] for key in compared_fields} for item in before
    ]
    assert server.get(f"/api/v1/{build_path(merge_target)}").json["definition_text"] == "Written since."


def test_a_write_of_a_contributor_is_proposed_and_decided(
    server: Server, curator: V1Client, contributor: V1Client
) -> None:
    etag = server.get("/api/v-alpha/concept").headers["etag"]
    response = contributor.send("POST", "concept", {"name": "Proposed"})
    assert response.status == 202
    proposal = response.json
    assert server.get("/api/v-alpha/concept").headers["etag"] == etag
    assert server.get("/api/v1/changes").json["items"] == []
    assert contributor.send("GET", f"proposals/{proposal['id']}").json["state"] == "open"
    assert V1Client(server, "contributor").send("GET", f"proposals/{proposal['id']}").status == 404
    assert contributor.send("POST", f"proposals/{proposal['id']}/accept", {}).status == 403
    accepted = curator.send("POST", f"proposals/{proposal['id']}/accept", {})
    assert accepted.status == 200
    record = accepted.json
    assert server.get("/api/v-alpha/concept").json[0]["name"] == "Proposed"
    assert curator.send("POST", f"proposals/{proposal['id']}/accept", {}).status == 409
    edit = contributor.send(
        "PATCH", build_path(record), {"name": "Better", "definition_text": "Mine."}, If_Match=get_etag(record)
    )
    assert edit.status == 202
    curator.patch(record, name="Other")
    clash = curator.send("POST", f"proposals/{edit.json['id']}/accept", {})
    assert clash.status == 409
    assert clash.json["conflicts"] == [{"field": "name", "base": "Proposed", "current": "Other", "proposed": "Better"}]
    still = curator.send("POST", f"proposals/{edit.json['id']}/accept", {"change": {"definition_text": "Ours."}})
    assert (still.status, still.json["conflicts"]) == (409, clash.json["conflicts"])
    resolved = curator.send("POST", f"proposals/{edit.json['id']}/accept", {"change": {"name": "Other"}})
    assert (resolved.json["name"], resolved.json["definition_text"]) == ("Other", "Mine.")
    third = contributor.send("POST", "task", {"name": "No"}).json
    assert curator.send("POST", f"proposals/{third['id']}/reject", {}).status == 422
    rejected = curator.send("POST", f"proposals/{third['id']}/reject", {"reason": "Not a task."})
    assert (rejected.json["state"], rejected.json["reason"]) == ("rejected", "Not a task.")
    fourth = contributor.send("POST", "proposals", {"collection": "task", "change": {"name": "Mine"}}).json
    assert curator.send("POST", f"proposals/{fourth['id']}/withdraw").status == 403
    assert contributor.send("POST", f"proposals/{fourth['id']}/withdraw").json["state"] == "withdrawn"
    assert len(curator.send("GET", "proposals?state=open").json["items"]) == 0
    assert len(contributor.send("GET", "proposals?limit=3").json["items"]) == 3


def test_a_release_is_read_back_byte_for_byte(server: Server, curator: V1Client) -> None:
    records = [curator.create(name=name) for name in ("one", "two", "three")]
    release_response = curator.send("POST", "releases", {"name": "2026.1", "note": "First."})
    assert release_response.status == 201
    assert curator.send("POST", "releases", {"name": "2026.1"}).status == 409
    assert curator.send("POST", "releases", {"name": "a b"}).status == 422
    before = server.get("/api/v1/concept").body
    curator.patch(records[0], name="renamed")
    curator.send("DELETE", build_path(records[1]), If_Match='"1"')
    curator.create(name="four")
    assert server.get("/api/v1/concept").body != before
    assert server.get("/api/v1/concept?release=2026.1").body == before
    assert server.get(f"/api/v1/concept?as_of={release_response.json['revision']}").body == before
    assert server.get(f"/api/v1/{build_path(records[1])}?release=2026.1").json == records[1]
    assert server.get(f"/api/v1/{build_path(records[1])}").status == 410
    assert server.get("/api/v1/concept?as_of=0").json["total"] == 0
    assert server.get("/api/v1/concept?as_of=99999").status == 422
    assert server.get("/api/v1/concept?release=none").status == 404
    assert server.get("/api/v1/releases").json["items"][0]["name"] == "2026.1"


def test_a_batch_is_applied_completely_or_not_at_all(server: Server, curator: V1Client) -> None:
    one, two = curator.create(name="one"), curator.create(name="two")
    accepted = send_batch(
        curator,
        {"op": "create", "collection": "task", "record": {"name": "new"}},
        {"op": "update", "id": one["id"], "version": 1, "change": {"name": "uno"}},
        {"op": "relate", "id": one["id"], "relation": "KINDOF", "target": two["id"]},
        {"op": "retire", "id": two["id"]},
    )
    assert accepted.status == 200
    results = [json.loads(line) for line in accepted.body.splitlines()]
    assert [result["version"] for result in results] == [1, 2, 3, 2]
    assert server.get(f"/api/v1/{build_path(one)}").json["name"] == "uno"
    position = server.get("/api/v1").json["revision"]
    rejected = send_batch(
        curator,
        {"op": "create", "collection": "task", "record": {"name": "never"}},
        {"op": "update", "id": one["id"], "version": 1, "change": {"name": "stale"}},
        {"op": "create", "collection": "task", "record": {"name": ""}},
    )
    assert rejected.status == 422
    assert [error["pointer"] for error in rejected.json["errors"]] == ["/2/version", "/3/record/name"]
    spaced = curator.server.request(
        "POST",
        "/api/v1/batch",
        {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"},
        '\n\n{"op": "fly"}\n',
    )
    assert spaced.json["errors"][0]["pointer"] == "/3/op"
    malformed = send_batch(curator, {"op": "fly"}, {"op": "retire"}, {"op": "create", "collection": "x", "record": {}})
    assert {error["pointer"] for error in malformed.json["errors"]} == {"/1/op", "/2/id", "/3/collection"}
    assert server.get("/api/v1").json["revision"] == position
    assert server.get("/api/v1/task").json["total"] == 1


@pytest.mark.full
def test_a_batch_of_ten_thousand_lines_is_accepted(server: Server, curator: V1Client) -> None:
    lines = [{"op": "create", "collection": "concept", "record": {"name": f"n{number}"}} for number in range(10_000)]
    response = send_batch(curator, *lines)
    assert response.status == 200
    assert len(response.body.splitlines()) == 10_000
    assert server.get("/api/v1/concept?limit=1").json["total"] == 10_000


def test_the_feed_lists_every_change_once_in_order(server: Server, curator: V1Client) -> None:
    record = curator.create(name="one")
    curator.patch(record, name="two")
    curator.create("task", name="three")
    first = server.get("/api/v1/changes?limit=2").json
    assert [(item["seq"], item["action"], item["record"]["name"]) for item in first["items"]] == [
        (1, "create", "one"),
        (2, "update", "two"),
    ]
    second = server.get(f"/api/v1/changes?since={first['next']}").json
    assert [item["collection"] for item in second["items"]] == ["task"]
    assert server.get(f"/api/v1/changes?since={second['next']}").json == {"items": [], "next": second["next"]}
    assert [item["seq"] for item in server.get("/api/v1/changes?collection=task").json["items"]] == [3]
    assert server.get("/api/v1/changes?since=-1").status == 422


def test_accounts_and_tokens_are_managed_over_http(server: Server, curator: V1Client) -> None:
    admin = V1Client(server, "admin")
    assert admin.send("GET", "me").json["role"] == "admin"
    assert server.get("/api/v1/me").status == 401
    assert curator.send("GET", "users").status == 403
    account_response = admin.send("POST", "users", {"name": "Grace", "role": "contributor"})
    assert account_response.status == 201
    assert admin.send("POST", "users", {"name": "Grace", "role": "contributor"}).status == 409
    assert admin.send("POST", "users", {"name": "", "role": "king"}).status == 422
    token = admin.send("POST", "tokens", {"account": "Grace", "label": "laptop", "days": 1}).json
    assert server.get("/api/v1/me", Authorization=f"Bearer {token['token']}").json["name"] == "Grace"
    assert admin.send("POST", "tokens", {"account": "Grace", "role": "admin"}).status == 403
    assert curator.send("POST", "tokens", {"role": "admin"}).status == 403
    assert curator.send("POST", "tokens", {"account": "Grace"}).status == 403
    own_token = curator.send("POST", "tokens", {"role": "contributor"}).json
    assert [token["id"] for token in curator.send("GET", "tokens").json["items"]][-1] == own_token["id"]
    assert "token" not in curator.send("GET", "tokens").json["items"][-1]
    assert curator.send("DELETE", f"tokens/{token['id']}").status == 404
    assert admin.send("DELETE", f"tokens/{token['id']}").status == 204
    assert server.get("/api/v1/me", Authorization=f"Bearer {token['token']}").status == 401


def test_the_api_reference_is_self_contained(server: Server) -> None:
    document = server.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    page = server.get("/docs").body.decode()
    assert "/api/v1/changes" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for reference in set(re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', json.dumps(document))):
        assert reference in document["components"]["schemas"]


def test_writes_beyond_the_rate_limit_of_a_token_get_a_429(url: str) -> None:
    with Server(url, LEXARIUM_WRITE_RATE="1", LEXARIUM_WRITE_BURST="3") as server:
        curator, other = V1Client(server, "curator"), V1Client(server, "curator")
        first = curator.send("POST", "concept", {"name": "first"})
        assert (first.status, first.headers["ratelimit"].startswith('"default";r=2')) == (201, True)
        paths = ["/api/v1/concept", "/api/v-alpha/concept"]
        with ThreadPoolExecutor(8) as threads:  # so that a slow machine reaches the limit too
            responses = list(
                threads.map(lambda number: server.post_json(paths[number % 2], {"name": "x"}, curator.token), range(60))
            )
        assert {response.status for response in responses} == {201, 429}
        for rejected in ([response for response in responses[kind::2] if response.status == 429] for kind in (0, 1)):
            assert rejected
            assert all(int(response.headers["retry-after"]) >= 1 for response in rejected)
        assert other.send("POST", "concept", {"name": "mine"}).status == 201
        assert server.get("/api/v1/concept").status == 200


def test_the_maximum_body_size_is_configurable(url: str) -> None:
    with Server(url, LEXARIUM_BODY_KB="1") as server:
        curator = V1Client(server, "curator")
        assert curator.send("POST", "concept", {"name": "x", "definition_text": "y" * 1100}).status == 413
        assert curator.send("POST", "concept", {"name": "x", "definition_text": "y" * 500}).status == 201
        assert server.get("/api/v1").json["limits"]["body_bytes"] == 1024


def test_a_user_signs_in_with_a_password(url: str) -> None:
    database = Database(url)
    with Server(url, LEXARIUM_SIGN_IN_RATE="4") as server:
        account = add_account(database, "Ada", Role.CURATOR)
        set_password(database, account.name, "correct horse battery")
        with pytest.raises(InvalidInput):
            set_password(database, account.name, "short")

        def sign_in(name: str, password: str) -> HttpResponse:
            return server.post_json("/api/v1/sign-in", {"name": name, "password": password})

        assert sign_in("Ada", "wrong").status == 401
        assert sign_in("Nobody", "correct horse battery").status == 401
        signed = sign_in("Ada", "correct horse battery")
        assert signed.status == 200
        assert server.get("/api/v1/me", Authorization=f"Bearer {signed.json['token']}").json["name"] == "Ada"
        assert signed.json["expires"]
        statuses = [sign_in("Ada", "guess").status for _ in range(4)]
        assert statuses[-1] == 429
    database.close()


def test_v_alpha_redirects_to_a_survivor_with_special_characters_in_its_id(server: Server) -> None:
    admin, survivor_id = V1Client(server, "admin"), "ex:a/b&c#d+ж"
    admin.send("POST", "vocabularies", {"slug": "atlas", "title": "Atlas", "schema": "cognitive-atlas"})
    assert admin.send("PATCH", "vocabularies/atlas", {"valpha": True}, If_Match="*").status == 200
    for record_id in (survivor_id, "ex:1"):
        body = {"id": record_id, "name": f"Name of {record_id}"}
        assert admin.send("POST", "vocabularies/atlas/collections/concept", body).status == 201
    merge = admin.send("POST", "vocabularies/atlas/records/ex:1/merge", {"into": survivor_id}, If_Match="*")
    assert merge.status == 200, merge.body
    redirect = server.get("/api/v-alpha/concept?id=ex:1")
    assert (redirect.status, redirect.headers["location"]) == (
        308,
        "/api/v-alpha/concept?id=ex:a/b%26c%23d%2B%D0%B6",
    )
    assert server.get(redirect.headers["location"]).json["id"] == survivor_id
