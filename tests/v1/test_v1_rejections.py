"""Invalid v1 requests on both engines get the right status, never a 500, and change nothing."""

import base64
import json
from typing import Any

import pytest

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.server import HttpResponse, Server


@pytest.fixture(scope="module")
def admin(shared_server: Server) -> str:
    return shared_server.create_token("admin")


def send(server: Server, token: str, request: str, body: object = None, version: int | None = None) -> HttpResponse:
    method, _, path = request.partition(" ")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if version is not None:
        headers["If-Match"] = f'"{version}"'
    payload = body if isinstance(body, str) else None if body is None else json.dumps(body)
    return server.request(method, f"/api/v1{path}", headers, payload)


def create(server: Server, token: str, collection: str, **fields: Any) -> dict[str, Any]:
    response = send(server, token, f"POST /{collection}", {"name": "x", **fields})
    assert response.status == 201
    record: dict[str, Any] = response.json
    record.pop("warnings", None)  # of similar names
    return record


@pytest.mark.parametrize(
    ("invalid_fields", "pointer"),
    [
        ({"bogus": None}, "/bogus"),
        ({"flag_for_curator": True}, "/flag_for_curator"),
        ({"flag_for_curator": 1.0}, "/flag_for_curator"),
        ({"aliases": [{"text": "a\x00"}]}, "/aliases/0/text"),
        ({"aliases": [{"text": "\x1b[1m"}]}, "/aliases/0/text"),
        ({"id": "dso_other"}, "/id"),
    ],
)
def test_an_invalid_draft_is_rejected_whatever_the_record_contains(
    shared_server: Server, admin: str, invalid_fields: dict[str, object], pointer: str
) -> None:
    record = create(shared_server, admin, "disorder", flag_for_curator=1)
    response = send(shared_server, admin, f"PUT /disorder/{record['id']}", {"name": "x", **invalid_fields}, 1)
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == [pointer]
    assert shared_server.get(f"/api/v1/disorder/{record['id']}").json == record


@pytest.mark.parametrize(
    ("collection", "fields", "detail"),
    [
        ("concept", {"definition": "x"}, "definition is not an editable field. Did you mean definition_text?"),
        ("concept", {"alias": "x"}, "alias is not an editable field. Did you mean aliases?"),
        ("disorder", {"definition_text": "x"}, "definition_text is not an editable field. Did you mean definition?"),
        ("citation", {"cite_pmid": "1"}, "cite_pmid is not an editable field. Did you mean fields/citation_pmid?"),
        ("concept", {"colour": "x"}, "colour is not an editable field."),
    ],
)
def test_a_field_that_is_nearly_known_is_suggested(
    shared_server: Server, admin: str, collection: str, fields: dict[str, str], detail: str
) -> None:
    response = send(shared_server, admin, f"POST /{collection}", {"name": "x", **fields})
    assert response.status == 422
    assert response.json["errors"][0]["detail"] == detail


def test_fields_are_suggested_for_the_first_problems_alone(shared_server: Server, admin: str) -> None:
    unknown = {f"alias{number}": "x" for number in range(50)}
    errors = send(shared_server, admin, "POST /concept", {"name": "x", **unknown}).json["errors"]
    has_suggestion = ["Did you mean aliases?" in error["detail"] for error in errors]
    assert has_suggestion == [True] * 20 + [False] * 30


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/proposals", {"collection": "concept", "record": "\x00", "change": {"name": "x"}}, 404),
        ("/tokens", {"label": "\x00"}, 422),
        ("/releases", {"name": "r", "note": "\x00"}, 422),
        ("/users", {"name": "\x00", "role": "admin"}, 422),
        ("/concept", {"name": "x", "relations": {"\x00": ["\x00"]}}, 422),
        ("/concept", {"name": "x", "id_concept_class": "\x00"}, 422),
    ],
)
def test_text_that_cannot_be_stored_is_rejected_everywhere(
    shared_server: Server, admin: str, path: str, body: object, status: int
) -> None:
    assert send(shared_server, admin, f"POST {path}", body).status == status


@pytest.mark.parametrize(
    "cursor_data",
    [
        [1, "name", False, 5, "x"],
        [1, "name", False, "\x00", "x"],
        [1, "name", False, "x", "\x00"],
        [1, "updated", False, "x", "x"],
        [1, "updated", False, 2**63, "x"],
        [1, "updated", False, True, "x"],
        [-1, "id", False, "x", "x"],
        [2**53, "id", False, "x", "x"],
        [1, ["id"], False, "x", "x"],
        {"a": 1},
        7,
    ],
)
def test_a_forged_cursor_is_rejected(shared_server: Server, cursor_data: object) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(cursor_data).encode()).decode()
    response = shared_server.get(f"/api/v1/concept?cursor={cursor}")
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == ["/cursor"]


@pytest.mark.parametrize("after", ["1-%00", "x-prp_1", "1", "-", "%00"])
def test_a_forged_proposal_cursor_is_rejected(shared_server: Server, admin: str, after: str) -> None:
    assert send(shared_server, admin, f"GET /proposals?after={after}").status == 422


@pytest.mark.parametrize("depth", [300, 1_000, 1_020, 50_000])
def test_a_too_deeply_nested_body_is_rejected(shared_server: Server, admin: str, depth: int) -> None:
    record = create(shared_server, admin, "disorder")
    nested = '{"definition":' * depth + "1" + "}" * depth
    for request, body, version in (
        (f"PATCH /disorder/{record['id']}", nested, 1),
        (f"PUT /disorder/{record['id']}", nested, 1),
        ("POST /disorder", nested, None),
        ("POST /proposals", f'{{"collection":"disorder","record":"{record["id"]}","change":{nested}}}', None),
    ):
        assert send(shared_server, admin, request, body, version).status in (400, 422)


def test_the_link_to_the_next_page_keeps_all_parameters(shared_server: Server, admin: str) -> None:
    label = create(shared_server, admin, "concept_class")["id"]
    record_ids = {create(shared_server, admin, "task", id_concept_class=label)["id"] for _ in range(3)}
    create(shared_server, admin, "task")
    target = f"/api/v1/task?class={label}&limit=1&fields=id,name&sort=-id"
    listed_ids = []
    while target:
        response = shared_server.get(target)
        listed_ids += response.json["items"]
        target = response.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert [record["id"] for record in listed_ids] == sorted(record_ids, reverse=True)
    assert all(set(record) == {"id", "name"} for record in listed_ids)


def test_an_edit_of_an_outdated_version_by_a_contributor_is_rejected(shared_server: Server, admin: str) -> None:
    record = create(shared_server, admin, "task")
    path = f"/task/{record['id']}"
    assert send(shared_server, admin, f"PATCH {path}", {"name": "y"}, 1).status == 200
    contributor = shared_server.create_token("contributor")
    assert send(shared_server, contributor, f"PATCH {path}", {"name": "z"}, 1).status == 412
    proposal = send(shared_server, contributor, f"PATCH {path}", {"name": "z"}, 2)
    assert (proposal.status, proposal.json["base_version"]) == (202, 2)


def test_an_edit_of_a_retired_or_merged_record_cannot_be_proposed(shared_server: Server, admin: str) -> None:
    retired_id, merged_id, survivor_id = (create(shared_server, admin, "task")["id"] for _ in range(3))
    assert send(shared_server, admin, f"DELETE /task/{retired_id}", version=1).status == 200
    assert send(shared_server, admin, f"POST /task/{merged_id}/merge", {"into": survivor_id}, 1).status == 200
    for identifier, status in ((retired_id, 410), (merged_id, 409)):
        body = {"collection": "task", "record": identifier, "change": {"name": "y"}}
        assert send(shared_server, admin, "POST /proposals", body).status == status


def is_consistent(server: Server) -> bool:
    database = Database(server.url)
    report = check_database(database)
    database.close()
    return report.problems == [] and not any("comes back" in remark for remark in report.remarks)


def test_a_merge_that_creates_a_cycle_is_rejected(shared_server: Server, admin: str) -> None:
    top = create(shared_server, admin, "concept")["id"]
    middle = create(shared_server, admin, "concept", relations={"KINDOF": [top]})["id"]
    bottom = create(shared_server, admin, "concept", relations={"KINDOF": [middle]})["id"]
    response = send(shared_server, admin, f"POST /concept/{bottom}/merge", {"into": top}, 1)
    assert response.status == 409
    assert "cycle" in response.json["detail"]
    assert [
        shared_server.get(f"/api/v1/concept/{record_id}").json["version"] for record_id in (top, middle, bottom)
    ] == [1] * 3
    assert is_consistent(shared_server)


def test_a_revert_that_creates_a_cycle_is_rejected(shared_server: Server, admin: str) -> None:
    one = create(shared_server, admin, "disorder")["id"]
    other = create(shared_server, admin, "disorder", relations={"ISA": [one]})["id"]
    assert send(shared_server, admin, f"PATCH /disorder/{other}", {"relations": None}, 1).status == 200
    assert send(shared_server, admin, f"PATCH /disorder/{one}", {"relations": {"ISA": [other]}}, 1).status == 200
    assert send(shared_server, admin, f"POST /disorder/{other}/revert", {"version": 1}, 2).status == 409
    assert is_consistent(shared_server)


def test_a_merge_is_reverted_completely_or_not_at_all(shared_server: Server, admin: str) -> None:
    merged_record, merge_target = (create(shared_server, admin, "task", name=name) for name in ("Gone", "Kept"))
    path = f"/task/{merged_record['id']}"
    assert send(shared_server, admin, f"POST {path}/merge", {"into": merge_target["id"]}, 1).status == 200
    survivor = shared_server.get(f"/api/v1/task/{merge_target['id']}").json
    assert [alias["text"] for alias in survivor["aliases"]] == ["Gone"]
    assert send(shared_server, admin, f"POST {path}/revert", {"version": 2}, 2).status == 409
    assert shared_server.get(f"/api/v1/task/{merge_target['id']}").json == survivor
    assert send(shared_server, admin, f"POST {path}/revert", {"version": 1}, 2).status == 200
    assert shared_server.get(f"/api/v1/task/{merge_target['id']}").json["aliases"] == []
    assert send(shared_server, admin, f"POST {path}/revert", {"version": 2}, 3).status == 409


def test_a_revert_to_the_current_version_changes_nothing(shared_server: Server, admin: str) -> None:
    record = create(shared_server, admin, "contrast")
    response = send(shared_server, admin, f"POST /contrast/{record['id']}/revert", {"version": 1}, 1)
    assert (response.status, response.json) == (200, record)


def test_a_missing_body_is_reported_as_empty(shared_server: Server, admin: str) -> None:
    response = send(shared_server, admin, "POST /concept")
    assert (response.status, response.json["detail"]) == (400, "Request body is empty: JSON is expected.")
