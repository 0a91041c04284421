"""Batches over HTTP on both engines: local names, and all errors at once."""

import json
from contextlib import ExitStack, closing
from typing import Any

import pytest

from lexarium.services.curation.batch import MAX_PROBLEMS
from lexarium.store.database import Database
from tests.support.server import Server
from tests.support.v1_client import V1Client, build_path, send_batch


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


def build_create_line(name: str, collection: str = "concept", **fields: Any) -> dict[str, Any]:
    return {"op": "create", "collection": collection, "record": {"name": name, **fields}}


def test_a_line_can_refer_to_records_created_by_earlier_lines(shared_server: Server, curator: V1Client) -> None:
    response = send_batch(
        curator,
        {**build_create_line("label", "concept_class"), "as": "label"},
        {**build_create_line("top", id_concept_class="$label"), "as": "top"},
        {**build_create_line("leaf", relations={"KINDOF": [{"target": "$top"}]}), "as": "leaf"},
        {**build_create_line("other"), "as": "o-1_X"},
        {"op": "relate", "id": "$leaf", "relation": "PARTOF", "target": "$o-1_X"},
        {"op": "update", "id": "$o-1_X", "change": {"relations": {"KINDOF": ["$top"]}, "id_concept_class": "$label"}},
        {"op": "retire", "id": "$top", "replaced_by": "$o-1_X"},
    )
    assert response.status == 200, response.body
    results = [json.loads(line) for line in response.body.splitlines()]
    label, top, leaf, other = (result["id"] for result in results[:4])
    assert [result["id"] for result in results[4:]] == [leaf, other, top]
    assert [result["version"] for result in results] == [1, 1, 1, 1, 2, 2, 2]
    assert results[-1]["warnings"] == [
        {"field": "state", "detail": "2 records are still related to it.", "id": None, "name": None}
    ]
    record = shared_server.get(f"/api/v1/concept/{leaf}").json
    assert record["relations"] == {"KINDOF": [top], "PARTOF": [other]}
    assert shared_server.get(f"/api/v1/concept/{other}").json["id_concept_class"] == label


def test_other_requests_are_served_while_many_batches_wait(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/x-ndjson"}
    database = Database(server.url)
    with ExitStack() as closing_all:
        # More than a worker has threads.
        connections = [closing_all.enter_context(closing(server.connect())) for _ in range(45)]
        with database.write():
            for number, connection in enumerate(connections):
                connection.request("POST", "/api/v1/batch", json.dumps(build_create_line(f"batch {number}")), headers)
            assert server.get("/api/v1/concept").status == 200
        database.close()
        assert {connection.getresponse().status for connection in connections} == {200}


def test_all_errors_of_every_kind_are_reported_at_once(shared_server: Server, curator: V1Client) -> None:
    record = curator.create(name="there")
    newer = curator.patch(record, name="newer")
    position = shared_server.get("/api/v1").json["revision"]
    lines = [
        "{",
        "[]",
        json.dumps({"op": "fly"}),
        json.dumps({"op": "retire", "version": "1", "colour": "red"}),
        json.dumps({**build_create_line(""), "as": "x"}),
        json.dumps({"op": "retire", "id": "$x"}),
        json.dumps({"op": "relate", "id": record["id"], "relation": "KINDOF", "target": "$y"}),
        json.dumps({"op": "relate", "id": record["id"], "relation": "EATS", "target": record["id"]}),
        json.dumps({"op": "relate", "id": record["id"], "relation": "KINDOF", "target": record["id"]}),
        json.dumps({"op": "update", "id": record["id"], "version": 1, "change": {"name": "stale"}}),
        json.dumps({"op": "update", "id": record["id"], "change": {"name": "", "colour": "red"}}),
        json.dumps(build_create_line("x", relations={"KINDOF": ["trm_none", "$y"]})),
        json.dumps({"op": "retire", "id": "trm_none"}),
        json.dumps({**build_create_line("again"), "as": "x"}),
        json.dumps({**build_create_line("odd"), "as": "a b"}),
    ]
    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"}
    rejected = shared_server.request("POST", "/api/v1/batch", headers, "\n".join(lines))
    assert rejected.status == 422
    details = {error["pointer"]: error["detail"] for error in rejected.json["errors"]}
    assert list(details) == [
        "/1", "/2", "/3/op", "/4/id", "/4/colour", "/4/version", "/5/record/name", "/7/target", "/8/relation",
        "/9/target", "/10/version", "/11/change/name", "/11/change/colour", "/12/record/relations/KINDOF/1", "/13",
        "/14/as", "/15/as",
    ]  # fmt: skip
    assert details["/1"].startswith("Line 1 is not valid JSON")
    assert details["/5/record/name"] == "Line 5: record/name must not be empty."
    assert details["/9/target"] == "Line 9: target must not be the record itself."
    assert f"is at version {newer['version']}" in details["/10/version"]
    assert rejected.json["detail"].startswith(f"Batch rejected: {len(details)} problems.")
    assert shared_server.get("/api/v1").json["revision"] == position


def test_only_the_first_of_very_many_errors_are_listed_and_the_rest_counted(curator: V1Client) -> None:
    rejected = send_batch(curator, *([{"op": "fly"}] * (MAX_PROBLEMS + 500)))
    assert len(rejected.json["errors"]) == MAX_PROBLEMS == 1_000
    assert "1,500 problems (first 1,000 shown)" in rejected.json["detail"]


def test_retiring_a_record_in_use_returns_a_warning(curator: V1Client) -> None:
    label, top = curator.create("concept_class", name="label"), curator.create(name="top")
    curator.create(name="leaf", relations={"KINDOF": [top["id"]], "PARTOF": [top["id"]]}, id_concept_class=label["id"])
    curator.create("task", name="task", id_concept_class=label["id"])
    unused = curator.create(name="unused", relations={"KINDOF": [top["id"]]})
    assert "warnings" not in curator.send("DELETE", build_path(unused), If_Match='"1"').json
    warned = [curator.send("DELETE", build_path(record), If_Match='"1"').json["warnings"] for record in (label, top)]
    details = ["2 records are still in this class.", "1 record is still related to it."]
    assert warned == [[{"field": "state", "detail": detail, "id": None, "name": None}] for detail in details]


def test_ancestors_and_descendants_skip_retired_records_and_list_them_separately(curator: V1Client) -> None:
    top = curator.create(name="top")
    middle = curator.create(name="middle", relations={"KINDOF": [top["id"]]})
    leaf = curator.create(name="leaf", relations={"KINDOF": [middle["id"]]})
    curator.send("DELETE", build_path(middle), If_Match='"1"')
    above = curator.send("GET", build_path(leaf, "ancestors")).json
    assert [(item["name"], item["depth"]) for item in above["items"]] == [("top", 2)]
    assert above["retired"] == [{"id": middle["id"], "name": "middle", "depth": 1}]
    below = curator.send("GET", build_path(top, "descendants")).json
    assert [[item["name"] for item in below[key]] for key in ("items", "retired")] == [["leaf"], ["middle"]]
