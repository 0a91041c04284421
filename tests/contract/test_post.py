"""POST on v-alpha: permissions, accepted fields, created record, visibility."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from lexarium.store.database import Database
from tests.support.server import HttpResponse, Server, run_cli

CLASS = {"id": "ctp_one", "name": "One", "description": "The first.", "type": "concept_class"}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def curator(server: Server) -> str:
    return server.create_token("curator")


@pytest.fixture(scope="module")
def shared_curator(shared_server: Server) -> str:
    return shared_server.create_token("curator")


def post_form(server: Server, target: str, fields: dict[str, str], token: str) -> HttpResponse:
    headers = {"Content-Type": FORM, "Authorization": f"Token {token}"}
    return server.request("POST", target, headers, urlencode(fields))


def test_a_concept_of_a_curator_is_published_at_once(server: Server, curator: str) -> None:
    before = server.get("/api/v-alpha/concept").headers["etag"]
    draft = {"name": "Ünï “quoted”\nterm", "definition_text": "One.\n\nTwo.", "alias": "a, b"}
    response = server.post_json("/api/v-alpha/concept", draft, curator)
    assert response.status == 201
    assert response.headers["allow"] == "GET, POST, HEAD, OPTIONS"
    record = response.json
    assert response.headers["location"] == f"/api/v-alpha/concept?id={record['id']}"
    assert {key: record[key] for key in draft} == draft
    assert record["id"].startswith("trm_")
    assert record["def_id"].startswith("def_")
    assert record["id_user"] == record["def_id_user"] != "usr_0000000000"
    assert record["creation_time"] == record["last_updated"]
    assert record["event_stamp"] == record["def_event_stamp"]
    concepts = server.get("/api/v-alpha/concept")
    assert concepts.json == [record]
    assert concepts.headers["etag"] != before
    assert server.get(response.headers["location"]).json["name"] == draft["name"]
    assert [hit["id"] for hit in server.get("/api/v-alpha/search?q=uni").json] == [record["id"]]


def test_a_form_creates_the_same_record_as_json(server: Server, curator: str) -> None:
    response = post_form(server, "/api/v-alpha/disorder", {"name": "A disorder", "flag_for_curator": "1"}, curator)
    assert response.status == 201
    record = response.json
    assert (record["name"], record["flag_for_curator"], record["definition"]) == ("A disorder", 1, "")
    from_json = server.post_json("/api/v-alpha/disorder", {"name": "A disorder", "id_protocol": "DOID"}, curator).json
    assert (from_json["flag_for_curator"], from_json["id_protocol"]) == (0, "DOID")
    assert set(record) == set(from_json)


def test_a_multipart_form_is_accepted(server: Server, curator: str) -> None:
    body = '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nFrom parts\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Authorization": f"Bearer {curator}"}
    assert server.request("POST", "/api/v-alpha/task", headers, body).json["name"] == "From parts"
    file = body.replace('name="name"', 'name="name"; filename="x.txt"')
    assert server.request("POST", "/api/v-alpha/task", headers, file).status == 400


def test_posting_a_name_twice_creates_two_records(server: Server, curator: str) -> None:
    ids = {server.post_json("/api/v-alpha/task", {"name": "Same"}, curator).json["id"] for _ in range(2)}
    assert {record["id"] for record in server.get("/api/v-alpha/task").json} == ids
    assert len(ids) == 2
    assert server.get("/api/v-alpha/task?name=same").json["id"] == min(ids)


def test_writing_requires_a_valid_token(server: Server, curator: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": curator},
        {"Authorization": f"Basic {curator}"},
        {"Authorization": f"Bearer {curator}x"},
        {"Authorization": "Bearer \xff"},
    ):
        response = server.request(
            "POST", "/api/v-alpha/concept", {"Content-Type": "application/json", **headers}, '{"name": "x"}'
        )
        assert response.status == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.headers["content-type"] == "application/problem+json"
    assert server.get("/api/v-alpha/concept").json == []


def test_a_revoked_token_is_rejected(server: Server, curator: str) -> None:
    last_line = run_cli("token", "list", "--database", server.url).stdout.splitlines()[-1]
    assert run_cli("token", "revoke", last_line.split()[0], "--database", server.url).returncode == 0
    assert server.post_json("/api/v-alpha/concept", {"name": "x"}, curator).status == 401


def test_a_record_of_a_contributor_becomes_a_proposal_that_is_not_listed(server: Server) -> None:
    etag = server.get("/api/v-alpha/concept").headers["etag"]
    response = server.post_json("/api/v-alpha/concept", {"name": "Proposed"}, server.create_token("contributor"))
    assert response.status == 202
    assert response.headers["location"].startswith("/api/v1/proposals/prp_")
    assert response.json["state"] == "open"
    concepts = server.get("/api/v-alpha/concept")
    assert (concepts.json, concepts.headers["etag"]) == ([], etag)


@pytest.mark.parametrize(
    ("collection", "draft", "wrong_fields"),
    [
        ("concept", {}, {"name"}),
        ("concept", {"name": "   "}, {"name"}),
        ("concept", {"name": 5, "alias": None, "definition_text": ["x"]}, {"name", "alias", "definition_text"}),
        ("concept", {"name": "x" * 501, "alias": "x" * 2001}, {"name", "alias"}),
        ("concept", {"name": "x", "definition_text": "x" * 50_001}, {"definition_text"}),
        ("concept", {"name": "a\x00b", "alias": "\x1b[1m"}, {"name", "alias"}),
        ("concept", {"name": "x", "id_concept_class": "ctp_none"}, {"id_concept_class"}),
        ("concept", {"id_concept_class": "ctp_none", "alias": 1}, {"name", "id_concept_class", "alias"}),
        ("concept", {"name": "x", "id_concept_class": "\x00"}, {"id_concept_class"}),
        ("concept", {"name": "x", "defintion": "typing error"}, {"defintion"}),
        ("task", {"name": "x", "definition": "that of a disorder"}, {"definition"}),
        ("disorder", {"name": "x", "flag_for_curator": "1"}, {"flag_for_curator"}),
        ("disorder", {"name": "x", "flag_for_curator": True}, {"flag_for_curator"}),
        ("disorder", {"name": "x", "flag_for_curator": 2**60}, {"flag_for_curator"}),
        ("disorder", {"name": "x", "flag_for_curator": 1.5}, {"flag_for_curator"}),
        ("disorder", {"name": "x", "id_protocol": "x" * 51}, {"id_protocol"}),
    ],
)
def test_all_invalid_fields_are_reported_at_once(
    shared_server: Server, shared_curator: str, collection: str, draft: dict[str, object], wrong_fields: set[str]
) -> None:
    response = shared_server.post_json(f"/api/v-alpha/{collection}", draft, shared_curator)
    assert response.status == 422
    assert {error["pointer"] for error in response.json["errors"]} == {f"/{name}" for name in wrong_fields}
    assert all(name in response.json["detail"] for name in wrong_fields)
    assert shared_server.get(f"/api/v-alpha/{collection}").json == []


def test_an_existing_class_is_accepted(server: Server, curator: str, tmp_path: object) -> None:
    path = f"{tmp_path}/concept_class.json"
    with open(path, "w") as file:
        json.dump([CLASS], file)
    assert run_cli("import", path, "--database", server.url).returncode == 0
    draft = {"name": "x", "id_concept_class": CLASS["id"]}
    assert server.post_json("/api/v-alpha/concept", draft, curator).status == 201


def test_read_only_fields_are_ignored(server: Server, curator: str) -> None:
    draft = {"name": "x", "id": "trm_mine", "id_user": "usr_other", "creation_time": 1}
    record = server.post_json("/api/v-alpha/concept", draft, curator).json
    assert record["id"] != "trm_mine"
    assert record["id_user"] != "usr_other"
    assert record["creation_time"] != 1


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", "{", 400),
        ("application/json", "", 400),
        ("application/json", "[]", 400),
        ("application/json", '{"name": "\\ud800"}', 400),
        ("application/json", '{"name": ' + "[" * 5000, 400),
        ("text/plain", "name=x", 415),
        ("", "{}", 415),
        ("multipart/form-data", "x", 400),
        ("application/json", '{"name": "' + "x" * (1 << 20) + '"}', 413),
        (FORM, "name=" + "x" * (1 << 20), 413),
        (FORM, "name=%FF%00", 400),
        (FORM, '{"name": "x"}', 415),
    ],
)
def test_an_unreadable_body_is_rejected(
    shared_server: Server, shared_curator: str, kind: str, body: str, status: int
) -> None:
    headers = {"Content-Type": kind, "Authorization": f"Bearer {shared_curator}"}
    response = shared_server.request("POST", "/api/v-alpha/concept", headers, body)
    assert response.status == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json["detail"]
    assert shared_server.get("/api/v-alpha/concept").json == []


def test_every_worker_lists_a_new_record_at_the_very_next_request(tmp_path: object) -> None:
    with Server(f"sqlite:///{tmp_path}/workers.db", "--workers", "3") as server:
        token = server.create_token("curator")
        for number in range(20):
            record = server.post_json("/api/v-alpha/concept", {"name": f"n{number:02}"}, token).json
            # One connection each, so that any worker may answer.
            for _ in range(6):
                assert server.get("/api/v-alpha/concept").json[-1]["id"] == record["id"]


def test_all_concurrent_writes_are_stored_in_a_log_without_gaps(server: Server, curator: str) -> None:
    def write(number: int) -> str:
        record_id: str = server.post_json("/api/v-alpha/task", {"name": f"t{number}"}, curator).json["id"]
        return record_id

    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(write, range(40)))
    assert {record["id"] for record in server.get("/api/v-alpha/task").json} == set(ids)
    assert run_cli("check", "--database", server.url).returncode == 0
    database = Database(server.url)
    assert database.get_position().revision == 40
    database.close()
