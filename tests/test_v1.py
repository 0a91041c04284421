"""v1 over real HTTP: records, their life, their history, their relations, and who may do what."""

import json
import re
from typing import Any

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid
from lexarium.service.access import add_account
from lexarium.service.passwords import set_password
from lexarium.store.database import Database
from tests.server import Answer, Server
from tests.test_import import imported, term


class Client:
    """A caller of v1 with a token."""

    def __init__(self, server: Server, role: str) -> None:
        self.server = server
        self.token = server.token(role)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            named.setdefault("Content-Type", "application/json")
        return self.server.request(method, f"/api/v1/{path}", named, None if body is None else json.dumps(body))

    def create(self, collection: str = "concept", **fields: Any) -> dict[str, Any]:
        answer = self.send("POST", collection, fields)
        assert answer.status == 201, answer.body
        record: dict[str, Any] = answer.json
        return record

    def patch(self, record: dict[str, Any], **fields: Any) -> dict[str, Any]:
        answer = self.send("PATCH", path(record), fields, If_Match=f'"{record["version"]}"')
        assert answer.status == 200, answer.body
        changed: dict[str, Any] = answer.json
        return changed


def path(record: dict[str, Any], *rest: str) -> str:
    return "/".join([record["collection"], record["id"], *rest])


def match(record: dict[str, Any]) -> str:
    return f'"{record["version"]}"'


@pytest.fixture
def curator(server: Server) -> Client:
    return Client(server, "curator")


@pytest.fixture(scope="module")
def shared_curator(shared_server: Server) -> Client:
    return Client(shared_server, "curator")


@pytest.fixture
def contributor(server: Server) -> Client:
    return Client(server, "contributor")


@pytest.mark.parametrize("collection", list(COLLECTIONS))
def test_a_record_lives_from_creation_to_retirement(server: Server, collection: str) -> None:
    curator = Client(server, "curator")
    answer = curator.send("POST", collection, {"name": "First", "aliases": [{"text": "One", "lang": "de"}]})
    assert answer.status == 201
    record = answer.json
    assert answer.headers["location"] == f"/api/v1/{path(record)}"
    assert answer.headers["etag"] == '"1"'
    assert (record["version"], record["state"], record["name"]) == (1, "published", "First")
    assert record["aliases"] == [{"text": "One", "lang": "de", "scope": "exact"}]
    read = server.get(f"/api/v1/{path(record)}")
    assert (read.json, read.headers["etag"]) == (record, '"1"')
    assert server.get(f"/api/v1/{path(record)}", If_None_Match='"1"').status == 304
    assert server.get(f"/api/v1/records/{record['id']}").json == record
    changed = curator.patch(record, name="Second")
    assert (changed["version"], changed["name"], changed["aliases"]) == (2, "Second", record["aliases"])
    replaced = curator.send("PUT", path(record), {"name": "Third"}, If_Match='"2"')
    assert (replaced.json["version"], replaced.json["aliases"]) == (3, [])
    gone = curator.send("DELETE", path(record), If_Match='"3"')
    assert (gone.status, gone.json["state"]) == (200, "retired")
    assert server.get(f"/api/v1/{path(record)}").status == 410
    assert server.get(f"/api/v1/{collection}").json["items"] == []
    assert server.get(f"/api/v1/{collection}?state=retired").json["total"] == 1
    assert server.get(f"/api/v1/{path(record)}/history").json["items"][0]["action"] == "retire"


def test_v_alpha_lists_published_records_only_at_once(server: Server, curator: Client) -> None:
    kept, other = curator.create(name="Kept"), curator.create(name="Other")
    assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["Kept", "Other"]
    curator.send("DELETE", f"{path(other)}?replaced_by={kept['id']}", If_Match=match(other))
    assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["Kept"]
    answer = server.get(f"/api/v-alpha/concept?id={other['id']}")
    assert answer.status == 404
    assert kept["id"] in answer.json["detail"]
    assert server.get(f"/api/v1/{path(other)}").json["replaced_by"] == kept["id"]


def test_a_write_needs_the_version_it_changes(curator: Client) -> None:
    record = curator.create(name="One")
    assert curator.send("PATCH", path(record), {"name": "Two"}).status == 428
    assert curator.send("PATCH", path(record), {"name": "Two"}, If_Match='"7"').json["version"] == 1
    assert curator.send("PATCH", path(record), {"name": "Two"}, If_Match='"7"').status == 412
    assert curator.send("PATCH", path(record), {"name": "Two"}, If_Match="nonsense").status == 412
    assert curator.send("DELETE", path(record)).status == 428
    assert curator.send("PATCH", path(record), {"name": "One"}, If_Match='"1"').json["version"] == 1


def test_a_new_definition_is_someones_and_has_an_id_of_its_own(server: Server, curator: Client) -> None:
    record = curator.create(name="One", definition_text="First.")
    other = Client(server, "curator")
    renamed = other.patch(record, name="Two")
    assert (renamed["def_id"], renamed["def_id_user"]) == (record["def_id"], record["def_id_user"])
    assert renamed["creation_time"] == record["creation_time"] <= renamed["last_updated"]
    defined = other.patch(renamed, definition_text="Second.")
    assert defined["def_id"] != record["def_id"]
    assert defined["def_id_user"] != record["def_id_user"]
    assert defined["id_user"] == record["id_user"]


def test_aliases_are_the_truth_and_alias_follows(server: Server, curator: Client) -> None:
    record = curator.create(name="One")
    aliases = [{"text": "a, b"}, {"text": "c"}, {"text": "d", "lang": "fr", "scope": "narrow"}]
    changed = curator.patch(record, aliases=aliases)
    assert [alias["text"] for alias in changed["aliases"]] == ["a, b", "c", "d"]
    assert server.get(f"/api/v-alpha/concept?id={record['id']}").json["alias"] == "a, b; c"
    posted = server.post_json("/api/v-alpha/concept", {"name": "Two", "alias": "x,y ,  z"}, curator.token).json
    assert posted["alias"] == "x,y ,  z"
    read = server.get(f"/api/v1/concept/{posted['id']}").json
    assert [alias["text"] for alias in read["aliases"]] == ["x", "y", "z"]
    same = curator.patch(read, definition_text="Changed.")
    assert server.get(f"/api/v-alpha/concept?id={same['id']}").json["alias"] == "x,y ,  z"


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
def test_every_wrong_field_is_named_with_its_place(
    shared_server: Server, shared_curator: Client, body: dict[str, Any], pointers: set[str]
) -> None:
    answer = shared_curator.send("POST", "concept", body)
    assert answer.status == 422
    assert {error["pointer"] for error in answer.json["errors"]} == pointers
    assert shared_server.get("/api/v1/concept").json["total"] == 0


def test_an_old_record_is_held_to_the_rules_only_where_it_changes(
    server: Server, curator: Client, tmp_path: Any
) -> None:
    database = Database(server.url)
    imported(database, tmp_path, "concept.json", [term("old", name="", id_concept_class="ctp_gone")])
    database.close()
    record = server.get("/api/v1/concept/trm_old").json
    assert curator.patch(record, definition_text="Now.")["name"] == ""
    assert curator.send("PATCH", path(record), {"name": " "}, If_Match='"2"').status == 422


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [("text/plain", "{}", 415), ("application/json", "{", 400), ("application/json", "[]", 400), ("", "{}", 415),
     ("application/json", '{"name": "' + "x" * (1 << 20) + '"}', 413)],
)  # fmt: skip
def test_bodies_that_cannot_be_read_are_refused(shared_curator: Client, kind: str, body: str, status: int) -> None:
    headers = {"Content-Type": kind, "Authorization": f"Bearer {shared_curator.token}"}
    answer = shared_curator.server.request("POST", "/api/v1/concept", headers, body)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_unknown_parameters_are_refused_by_name(server: Server) -> None:
    answer = server.get("/api/v1/concept?limt=5")
    assert answer.status == 422
    assert answer.json["errors"][0]["pointer"] == "/limt"
    assert server.get("/api/v1/concept?limit=0").status == 422
    assert server.get("/api/v1/concept?limit=1001").status == 422
    assert server.get("/api/v1/concept?cursor=nonsense").status == 422
    assert server.get("/api/v1/concept?sort=colour").status == 422
    assert server.get("/api/v1/nothing").status == 404


def test_lists_are_filtered_sorted_and_paged(server: Server, curator: Client) -> None:
    made = [curator.create(name=name) for name in ("delta", "Alpha", "charlie", "bravo")]
    flagged = curator.create("disorder", name="Flagged", flag_for_curator=1)
    names: list[str] = []
    target = "/api/v1/concept?limit=2"
    pages = 0
    while target:
        answer = server.get(target)
        names += [item["name"] for item in answer.json["items"]]
        assert answer.json["total"] == 4
        found = re.search(r'<([^>]+)>; rel="next"', answer.headers.get("link", ""))
        target = found.group(1) if found else ""
        pages += 1
    assert (names, pages) == (["Alpha", "bravo", "charlie", "delta"], 2)
    listed = server.get("/api/v1/concept?sort=-name&fields=name").json["items"]
    assert listed == [{"name": name} for name in ("delta", "charlie", "bravo", "Alpha")]
    ids = f"{made[0]['id']},{made[1]['id']},none"
    assert server.get(f"/api/v1/concept?ids={ids}").json["total"] == 2
    assert server.get("/api/v1/concept?name=ALPHA").json["items"][0]["id"] == made[1]["id"]
    assert server.get("/api/v1/disorder?flagged=true").json["items"][0]["id"] == flagged["id"]
    assert server.get("/api/v1/disorder?flagged=false").json["total"] == 0
    assert server.get("/api/v1/concept?updated_since=2999-01-01").json["total"] == 0
    assert server.get(f"/api/v1/concept?user={made[0]['id_user']}").json["total"] == 4
    assert server.get("/api/v1/concept?class=ctp_none").json["total"] == 0


def test_head_is_get_without_a_body(server: Server, curator: Client) -> None:
    record = curator.create(name="x")
    for target in ("/api/v1", "/api/v1/concept", f"/api/v1/{path(record)}"):
        got, head = server.get(target), server.request("HEAD", target)
        assert (head.status, head.body) == (200, b"")
        assert {**head.headers, "date": ""} == {**got.headers, "date": ""}


def test_disorders_are_sorted_by_name_where_that_is_asked_for(server: Server, curator: Client) -> None:
    for name in ("b", "C", "a"):
        curator.create("disorder", name=name)
    assert [item["name"] for item in server.get("/api/v1/disorder").json["items"]] == ["a", "b", "C"]


def test_a_contributors_put_proposes_the_whole(server: Server, curator: Client, contributor: Client) -> None:
    record = curator.create(name="One", definition_text="Goes.", relations={"exactMatch": ["A:1"]})
    proposed = contributor.send("PUT", path(record), {"name": "Two"}, If_Match='"1"')
    assert proposed.status == 202
    accepted = curator.send("POST", f"proposals/{proposed.json['id']}/accept", {}).json
    assert (accepted["name"], accepted["definition_text"], accepted["relations"]) == ("Two", "", {})


def test_an_idempotency_key_makes_one_record(server: Server, curator: Client) -> None:
    first = curator.send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    again = curator.send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    assert (again.status, again.json, again.headers["location"]) == (201, first.json, first.headers["location"])
    assert curator.send("POST", "concept", {"name": "Twice"}, Idempotency_Key="k1").status == 409
    other = Client(server, "curator").send("POST", "concept", {"name": "Once"}, Idempotency_Key="k1")
    assert other.json["id"] != first.json["id"]
    refused = curator.send("POST", "concept", {"name": ""}, Idempotency_Key="k2")
    assert refused.status == 422
    assert curator.send("POST", "concept", {"name": "Right"}, Idempotency_Key="k2").status == 201


def test_history_diff_and_revert(server: Server, curator: Client) -> None:
    first = curator.create(name="One", definition_text="First.")
    second = curator.patch(first, name="Two", definition_text="Second.")
    history = server.get(f"/api/v1/{path(first)}/history").json["items"]
    assert [(item["version"], item["action"]) for item in history] == [(2, "update"), (1, "create")]
    assert server.get(f"/api/v1/{path(first)}/history/1").json == first
    assert server.get(f"/api/v1/{path(first)}/history/3").status == 404
    diff = server.get(f"/api/v1/{path(first)}/diff?from=1&to=2").json["items"]
    changed = {item["field"]: (item["from"], item["to"]) for item in diff}
    assert changed["name"] == ("One", "Two")
    assert changed["definition_text"] == ("First.", "Second.")
    reverted = curator.send("POST", path(first, "revert"), {"version": 1}, If_Match=match(second))
    assert reverted.status == 200
    assert (reverted.json["version"], reverted.json["name"], reverted.json["def_id"]) == (3, "One", first["def_id"])
    retired = curator.send("DELETE", path(first), If_Match='"3"').json
    back = curator.send("POST", path(first, "revert"), {"version": 3}, If_Match=match(retired))
    assert (back.status, back.json["state"]) == (200, "published")


def test_relations_show_on_both_sides_and_close_no_circle(server: Server, curator: Client) -> None:
    top, middle, leaf = (curator.create(name=name) for name in ("top", "middle", "leaf"))
    middle = curator.patch(middle, relations={"KINDOF": [top["id"]]})
    answer = curator.send(
        "PUT", path(leaf, "relations"), {"relation": "KINDOF", "target": middle["id"]}, If_Match=match(leaf)
    )
    assert answer.status == 200
    leaf = answer.json
    assert [item["name"] for item in server.get(f"/api/v1/{path(middle)}/relations").json["items"]] == ["top", "leaf"]
    above = server.get(f"/api/v1/{path(leaf)}/ancestors").json["items"]
    assert [(item["name"], item["depth"]) for item in above] == [("middle", 1), ("top", 2)]
    below = server.get(f"/api/v1/{path(top)}/descendants?relation=KINDOF").json["items"]
    assert [item["name"] for item in below] == ["middle", "leaf"]
    for relation in ("KINDOF", "PARTOF"):  # one hierarchy, by whichever relation
        circle = curator.send(
            "PUT", path(top, "relations"), {"relation": relation, "target": leaf["id"]}, If_Match=match(top)
        )
        assert circle.status == 422
        assert "circle" in circle.json["detail"]
    for relation in ("PARTOF", "RELATED"):
        itself = curator.send("PATCH", path(top), {"relations": {relation: [top["id"]]}}, If_Match=match(top))
        assert itself.status == 422
        assert "itself" in itself.json["detail"]
    gone = curator.send("DELETE", f"{path(leaf)}/relations?relation=KINDOF&target={middle['id']}", If_Match=match(leaf))
    assert gone.json["relations"] == {}
    assert server.get(f"/api/v-alpha/concept?id={middle['id']}").json["relationships"][0]["name"] == "top"
    assert server.get(f"/api/v1/{path(leaf)}/ancestors?relation=ASSERTS").status == 422


def test_aliases_in_other_languages_do_not_count_for_alias(shared_curator: Client) -> None:
    record = shared_curator.create(name="x", aliases=[{"text": f"{n:03}" + "a" * 497, "lang": "de"} for n in range(4)])
    assert (len(record["aliases"]), record["alias"]) == (4, "")
    shared_curator.send("DELETE", path(record), If_Match=match(record))


@pytest.mark.parametrize(
    "target",
    ["https://example.org", "http://[::1]/x", "urn:isbn:0451450523", "doi:10.1000/182", "DOID:3324", "info:x/y",
     "https://example.org/" + "é" * 990],
)  # fmt: skip
def test_iris_and_curies_are_taken_as_mappings(shared_curator: Client, target: str) -> None:
    record = shared_curator.create("task", name="x")
    body = {"relation": "exactMatch", "target": target}
    answer = shared_curator.send("PUT", path(record, "relations"), body, If_Match=match(record))
    assert (answer.status, answer.json["relations"]) == (200, {"exactMatch": [target]})
    for wrong in ("JavaScript:x", "http:x", "a b:c", "nothing", "x:\x00"):
        body = {"relation": "exactMatch", "target": wrong}
        refused = shared_curator.send("PUT", path(record, "relations"), body, If_Match='"2"')
        assert [error["pointer"] for error in refused.json["errors"]] == ["/target"]


def test_a_mapping_points_outside(server: Server, curator: Client) -> None:
    record = curator.create(name="x", relations={"exactMatch": ["DOID:3324", "https://example.org/x"]})
    items = server.get(f"/api/v1/{path(record)}/relations").json["items"]
    assert [(item["relation"], item["id"]) for item in items] == [
        ("exactMatch", "DOID:3324"),
        ("exactMatch", "https://example.org/x"),
    ]


def test_a_merge_moves_names_and_relations_and_can_be_undone(server: Server, curator: Client) -> None:
    top, kept, gone, child = (curator.create(name=name) for name in ("top", "kept", "gone", "child"))
    gone = curator.patch(gone, aliases=[{"text": "lost"}, {"text": "Kept"}], relations={"KINDOF": [top["id"]]})
    child = curator.patch(child, relations={"PARTOF": [gone["id"]]})
    before = server.get("/api/v1/concept").json["items"]
    answer = curator.send("POST", path(gone, "merge"), {"into": kept["id"]}, If_Match=match(gone))
    assert answer.status == 200
    survivor = answer.json
    assert survivor["name"] == "kept"
    assert [alias["text"] for alias in survivor["aliases"]] == ["gone", "lost"]
    assert survivor["relations"] == {"KINDOF": [top["id"]]}
    assert server.get(f"/api/v1/{path(child)}").json["relations"] == {"PARTOF": [kept["id"]]}
    moved = server.get(f"/api/v1/{path(gone)}")
    assert (moved.status, moved.headers["location"]) == (308, f"/api/v1/{path(kept)}")
    valpha = server.get(f"/api/v-alpha/concept?id={gone['id']}")
    assert (valpha.status, valpha.headers["location"]) == (308, f"/api/v-alpha/concept?id={kept['id']}")
    curator.patch(survivor, definition_text="Written since.")
    undone = curator.send(
        "POST", path(gone, "revert"), {"version": gone["version"]}, If_Match=f'"{gone["version"] + 1}"'
    )
    assert undone.status == 200
    after = server.get("/api/v1/concept").json["items"]
    same = ("id", "name", "aliases", "relations", "state")
    assert [{key: item[key] for key in same} for item in after] == [{key: item[key] for key in same} for item in before]
    assert server.get(f"/api/v1/{path(kept)}").json["definition_text"] == "Written since."


def test_a_contributors_work_is_proposed_and_decided(server: Server, curator: Client, contributor: Client) -> None:
    etag = server.get("/api/v-alpha/concept").headers["etag"]
    answer = contributor.send("POST", "concept", {"name": "Proposed"})
    assert answer.status == 202
    proposal = answer.json
    assert server.get("/api/v-alpha/concept").headers["etag"] == etag
    assert server.get("/api/v1/changes").json["items"] == []
    assert contributor.send("GET", f"proposals/{proposal['id']}").json["state"] == "open"
    assert Client(server, "contributor").send("GET", f"proposals/{proposal['id']}").status == 404
    assert contributor.send("POST", f"proposals/{proposal['id']}/accept", {}).status == 403
    accepted = curator.send("POST", f"proposals/{proposal['id']}/accept", {})
    assert accepted.status == 200
    record = accepted.json
    assert server.get("/api/v-alpha/concept").json[0]["name"] == "Proposed"
    assert curator.send("POST", f"proposals/{proposal['id']}/accept", {}).status == 409
    edit = contributor.send(
        "PATCH", path(record), {"name": "Better", "definition_text": "Mine."}, If_Match=match(record)
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


def test_a_release_is_read_as_it_was_to_the_byte(server: Server, curator: Client) -> None:
    records = [curator.create(name=name) for name in ("one", "two", "three")]
    made = curator.send("POST", "releases", {"name": "2026.1", "note": "First."})
    assert made.status == 201
    assert curator.send("POST", "releases", {"name": "2026.1"}).status == 409
    assert curator.send("POST", "releases", {"name": "a b"}).status == 422
    before = server.get("/api/v1/concept").body
    curator.patch(records[0], name="renamed")
    curator.send("DELETE", path(records[1]), If_Match='"1"')
    curator.create(name="four")
    assert server.get("/api/v1/concept").body != before
    assert server.get("/api/v1/concept?release=2026.1").body == before
    assert server.get(f"/api/v1/concept?as_of={made.json['revision']}").body == before
    assert server.get(f"/api/v1/{path(records[1])}?release=2026.1").json == records[1]
    assert server.get(f"/api/v1/{path(records[1])}").status == 410
    assert server.get("/api/v1/concept?as_of=0").json["total"] == 0
    assert server.get("/api/v1/concept?as_of=99999").status == 422
    assert server.get("/api/v1/concept?release=none").status == 404
    assert server.get("/api/v1/releases").json["items"][0]["name"] == "2026.1"


def ndjson(client: Client, *lines: object) -> Answer:
    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {client.token}"}
    return client.server.request("POST", "/api/v1/batch", headers, "\n".join(json.dumps(line) for line in lines))


def test_a_batch_is_done_whole_or_not_at_all(server: Server, curator: Client) -> None:
    one, two = curator.create(name="one"), curator.create(name="two")
    done = ndjson(
        curator,
        {"op": "create", "collection": "task", "record": {"name": "new"}},
        {"op": "update", "id": one["id"], "version": 1, "change": {"name": "uno"}},
        {"op": "relate", "id": one["id"], "relation": "KINDOF", "target": two["id"]},
        {"op": "retire", "id": two["id"]},
    )
    assert done.status == 200
    results = [json.loads(line) for line in done.body.splitlines()]
    assert [result["version"] for result in results] == [1, 2, 3, 2]
    assert server.get(f"/api/v1/{path(one)}").json["name"] == "uno"
    position = server.get("/api/v1").json["revision"]
    refused = ndjson(
        curator,
        {"op": "create", "collection": "task", "record": {"name": "never"}},
        {"op": "update", "id": one["id"], "version": 1, "change": {"name": "stale"}},
        {"op": "create", "collection": "task", "record": {"name": ""}},
    )
    assert refused.status == 422
    assert [error["pointer"] for error in refused.json["errors"]] == ["/2/version", "/3/record/name"]
    spaced = curator.server.request(
        "POST",
        "/api/v1/batch",
        {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"},
        '\n\n{"op": "fly"}\n',
    )
    assert spaced.json["errors"][0]["pointer"] == "/3/op"
    malformed = ndjson(curator, {"op": "fly"}, {"op": "retire"}, {"op": "create", "collection": "x", "record": {}})
    assert {error["pointer"] for error in malformed.json["errors"]} == {"/1/op", "/2/id", "/3/collection"}
    assert server.get("/api/v1").json["revision"] == position
    assert server.get("/api/v1/task").json["total"] == 1


def test_a_batch_of_ten_thousand_lines_is_taken(server: Server, curator: Client) -> None:
    lines = [{"op": "create", "collection": "concept", "record": {"name": f"n{number}"}} for number in range(10_000)]
    done = ndjson(curator, *lines)
    assert done.status == 200
    assert len(done.body.splitlines()) == 10_000
    assert server.get("/api/v1/concept?limit=1").json["total"] == 10_000


def test_the_feed_tells_every_change_once_in_order(server: Server, curator: Client) -> None:
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


def test_accounts_and_tokens_are_managed_over_http(server: Server, curator: Client) -> None:
    admin = Client(server, "admin")
    assert admin.send("GET", "me").json["role"] == "admin"
    assert server.get("/api/v1/me").status == 401
    assert curator.send("GET", "users").status == 403
    made = admin.send("POST", "users", {"name": "Grace", "role": "contributor"})
    assert made.status == 201
    assert admin.send("POST", "users", {"name": "Grace", "role": "contributor"}).status == 409
    assert admin.send("POST", "users", {"name": "", "role": "king"}).status == 422
    token = admin.send("POST", "tokens", {"account": "Grace", "label": "laptop", "days": 1}).json
    assert server.get("/api/v1/me", Authorization=f"Bearer {token['token']}").json["name"] == "Grace"
    assert admin.send("POST", "tokens", {"account": "Grace", "role": "admin"}).status == 403
    assert curator.send("POST", "tokens", {"role": "admin"}).status == 403
    assert curator.send("POST", "tokens", {"account": "Grace"}).status == 403
    own = curator.send("POST", "tokens", {"role": "contributor"}).json
    assert [each["id"] for each in curator.send("GET", "tokens").json["items"]][-1] == own["id"]
    assert "token" not in curator.send("GET", "tokens").json["items"][-1]
    assert curator.send("DELETE", f"tokens/{token['id']}").status == 404
    assert admin.send("DELETE", f"tokens/{token['id']}").status == 204
    assert server.get("/api/v1/me", Authorization=f"Bearer {token['token']}").status == 401


def test_the_reference_is_served_without_a_network(server: Server) -> None:
    document = server.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    page = server.get("/docs").body.decode()
    assert "/api/v1/changes" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for reference in set(re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', json.dumps(document))):
        assert reference in document["components"]["schemas"]


def test_writes_past_a_tokens_rate_get_a_429(url: str) -> None:
    with Server(url, LEXARIUM_WRITE_RATE="1", LEXARIUM_WRITE_BURST="3") as server:
        curator, other = Client(server, "curator"), Client(server, "curator")
        answers = [curator.send("POST", "concept", {"name": str(number)}) for number in range(5)]
        assert [answer.status for answer in answers[:3]] == [201, 201, 201]
        assert answers[0].headers["ratelimit"].startswith('"default";r=2')
        assert answers[-1].status == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert server.post_json("/api/v-alpha/concept", {"name": "x"}, curator.token).status == 429
        assert other.send("POST", "concept", {"name": "mine"}).status == 201
        assert server.get("/api/v1/concept").status == 200


def test_the_largest_body_is_a_setting(url: str) -> None:
    with Server(url, LEXARIUM_BODY_KB="1") as server:
        curator = Client(server, "curator")
        assert curator.send("POST", "concept", {"name": "x", "definition_text": "y" * 1100}).status == 413
        assert curator.send("POST", "concept", {"name": "x", "definition_text": "y" * 500}).status == 201
        assert server.get("/api/v1").json["limits"]["body_bytes"] == 1024


def test_a_person_signs_in_with_a_password(url: str) -> None:
    database = Database(url)
    with Server(url, LEXARIUM_SIGN_IN_RATE="4") as server:
        account = add_account(database, "Ada", Role.CURATOR)
        set_password(database, account.name, "correct horse battery")
        with pytest.raises(Invalid):
            set_password(database, account.name, "short")

        def sign_in(name: str, password: str) -> Answer:
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
