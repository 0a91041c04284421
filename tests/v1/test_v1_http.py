"""HTTP behaviour of v1 on both engines: methods, validators, encodings, redirects, idempotency, CORS, limits."""

import gzip
import json
from typing import Any

import pytest
import zstandard

from lexarium.domain.schema.collections import COLLECTIONS
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag


@pytest.fixture(scope="module")
def admin(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "admin")


def get_pointers(response: HttpResponse) -> set[str]:
    assert response.status == 422, response.body
    return {error["pointer"] for error in response.json["errors"]}


# Idempotency-Key


def test_every_post_that_writes_supports_idempotency_keys(shared_server: Server, admin: V1Client) -> None:
    merged, survivor, old = (admin.create(name=name) for name in ("gone", "kept", "old"))
    old = admin.patch(old, name="new")
    proposals = [admin.send("POST", "proposals", {"collection": "task", "change": {"name": n}}).json for n in "abc"]
    posts: list[tuple[str, object, dict[str, str]]] = [
        ("concept", {"name": "one"}, {}),
        (build_path(merged, "merge"), {"into": survivor["id"]}, {"If-Match": get_etag(merged)}),
        (build_path(old, "revert"), {"version": 1}, {"If-Match": get_etag(old)}),
        ("proposals", {"collection": "task", "change": {"name": "x"}}, {}),
        (f"proposals/{proposals[0]['id']}/accept", {}, {}),
        (f"proposals/{proposals[1]['id']}/reject", {"reason": "No."}, {}),
        (f"proposals/{proposals[2]['id']}/withdraw", None, {}),
        ("releases", {"name": "once"}, {}),
        ("users", {"name": "Once", "role": "curator"}, {}),
    ]
    for number, (path, body, headers) in enumerate(posts):
        headers |= {"Idempotency-Key": f"every {number}"}
        first = admin.send("POST", path, body, **headers)
        revision = shared_server.get("/api/v1").json["revision"]
        assert first.status in (200, 201, 202), first.body
        repeated = admin.send("POST", path, body, **headers)
        assert (repeated.status, repeated.body) == (first.status, first.body), path
        assert repeated.headers.get("location") == first.headers.get("location")
        assert shared_server.get("/api/v1").json["revision"] == revision
        other = {"name": "another", "role": "admin", "into": "x", "version": 2, "reason": "Other."}
        assert admin.send("POST", path, other, **headers).status in (409, 422)


def test_batches_and_v_alpha_posts_support_idempotency_keys(shared_server: Server, admin: V1Client) -> None:
    headers = {"Authorization": f"Bearer {admin.token}", "Idempotency-Key": "b"}
    lines = '{"op":"create","collection":"contrast","record":{"name":"x"}}\n' * 3
    ndjson = {**headers, "Content-Type": "application/x-ndjson"}
    first, repeated = (shared_server.request("POST", "/api/v1/batch", ndjson, lines) for _ in range(2))
    assert (first.status, first.body) == (repeated.status, repeated.body) == (200, first.body)
    assert shared_server.get("/api/v1/contrast").json["total"] == 3
    assert shared_server.request("POST", "/api/v1/batch", ndjson, lines[:-1]).status == 409
    json_headers = {**headers, "Content-Type": "application/json", "Idempotency-Key": "v"}
    for role, status in (("contributor", 202), ("curator", 201)):
        json_headers["Authorization"] = f"Bearer {shared_server.create_token(role)}"
        responses = [
            shared_server.request("POST", "/api/v-alpha/disorder", json_headers, '{"name": "once"}') for _ in range(2)
        ]
        assert [response.status for response in responses] == [status, status]
        assert responses[0].body == responses[1].body
        assert responses[0].headers["location"] == responses[1].headers["location"]
        assert shared_server.request("POST", "/api/v-alpha/disorder", json_headers, '{"name": "x"}').status == 409
    assert len(shared_server.get("/api/v-alpha/disorder").json) == 1


@pytest.mark.parametrize("path", ["tokens", "webhooks", "sign-in"])
def test_an_idempotency_key_is_rejected_for_responses_with_a_secret(admin: V1Client, path: str) -> None:
    response = admin.send("POST", path, {}, Idempotency_Key="k")
    assert response.status == 400
    assert "secret" in response.json["detail"]


# Merged and retired records


def create_merged_pair(admin: V1Client) -> tuple[dict[str, Any], dict[str, Any]]:
    merged, survivor = admin.create("task", name="gone"), admin.create("task", name="kept")
    assert admin.send("POST", build_path(merged, "merge"), {"into": survivor["id"]}, If_Match='"1"').status == 200
    return merged, survivor


def test_a_read_of_a_merged_record_redirects_to_the_same_path_of_the_survivor(
    shared_server: Server, admin: V1Client
) -> None:
    merged, survivor = create_merged_pair(admin)
    revision = shared_server.get("/api/v1").json["revision"]
    for pattern in ("task/{}", "records/{}", "task/{}/relations", "task/{}/ancestors?relation=KINDOF",
                    f"task/{{}}?as_of={revision}"):  # fmt: skip
        for method in ("GET", "HEAD"):
            response = shared_server.request(method, f"/api/v1/{pattern.format(merged['id'])}")
            assert response.status == 308
            assert response.headers["location"] == f"/api/v1/{pattern.format(survivor['id'])}"
            assert response.headers["cache-control"] == "no-cache"
            assert response.headers["access-control-allow-origin"] == "*"
        assert shared_server.get(response.headers["location"]).status == 200
    assert shared_server.get(f"/api/v1/{build_path(merged)}").json["merged_into"] == survivor["id"]
    assert shared_server.get(f"/api/v1/{build_path(merged, 'history')}").json["items"][0]["action"] == "merge"


def test_a_write_to_a_merged_record_is_rejected_with_the_id_of_the_survivor(admin: V1Client) -> None:
    merged, survivor = create_merged_pair(admin)
    for method, path, body in (
        ("PUT", build_path(merged), {"name": "x"}),
        ("PATCH", build_path(merged), {"name": "x"}),
        ("DELETE", build_path(merged), None),
        ("POST", build_path(merged, "merge"), {"into": survivor["id"]}),
        ("PUT", build_path(merged, "relations"), {"relation": "ASSERTS", "target": "x"}),
    ):
        response = admin.send(method, path, body, If_Match='"2"')
        assert (response.status, response.json["merged_into"]) == (409, survivor["id"])
        assert "location" not in response.headers


def test_errors_allow_cross_origin_reads(shared_server: Server, admin: V1Client) -> None:
    retired = admin.create(name="gone")
    assert admin.send("DELETE", build_path(retired), If_Match='"1"').status == 200
    for path, status in ((build_path(retired), 410), ("concept/none", 404), ("nothing", 404), ("concept?x=1", 422)):
        response = shared_server.get(f"/api/v1/{path}")
        assert (response.status, response.headers["access-control-allow-origin"]) == (status, "*")


# Round trips


@pytest.mark.parametrize("collection", list(COLLECTIONS))
def test_a_record_can_be_sent_back_unchanged(shared_server: Server, admin: V1Client, collection: str) -> None:
    record = admin.create(collection, name="x", aliases=[{"text": "y"}])
    for method in ("PUT", "PATCH"):
        unchanged = admin.send(method, build_path(record), record, If_Match='"1"')
        assert (unchanged.status, unchanged.json) == (200, record)
    updated = admin.send("PUT", build_path(record), {**record, "name": "z"}, If_Match='"1"')
    assert (updated.status, updated.json["name"], updated.json["version"]) == (200, "z", 2)
    forged = {**updated.json, "id_user": "usr_me", "version": 3, "state": "retired", "wrong": 1}
    server_fields = {"/version", "/state", "/wrong"} | ({"/id_user"} if "id_user" in record else set())
    expected = server_fields if "id_user" in record else server_fields | {"/id_user"}
    assert get_pointers(admin.send("PUT", build_path(record), forged, If_Match='"2"')) == expected
    contributor = V1Client(shared_server, "contributor")
    assert contributor.send("PUT", build_path(record), updated.json, If_Match='"2"').status == 422
    assert contributor.send("PUT", build_path(record), {**updated.json, "name": "w"}, If_Match='"2"').status == 202


# Validators


def test_if_match_uses_strong_comparison_with_any_listed_version(admin: V1Client) -> None:
    record = admin.create(name="0")
    for number, (condition, status) in enumerate(
        [('"1"', 200), ("*", 200), ('"7", "3"', 200), ('"4-zstd"', 200), ('W/"5"', 412), ('"7", "8"', 412), ("5", 412)],
        1,
    ):
        response = admin.send("PATCH", build_path(record), {"name": str(number)}, If_Match=condition)
        assert response.status == status, condition
    assert (response.json["version"], response.json["record"]["name"]) == (5, "4")
    assert admin.send("DELETE", "concept/none", If_Match="*").status == 404
    assert admin.send("DELETE", build_path(record), If_Match="*").status == 200


def test_every_json_response_has_an_etag_that_changes_with_its_content(shared_server: Server, admin: V1Client) -> None:
    record, other = admin.create(name="one"), admin.create(name="two")
    etags = dict[str, str]()
    targets = [
        build_path(record),
        build_path(record, "relations"),
        "concept?limit=2",
        "changes?limit=5",
        "releases",
        "",
    ]
    for target in targets:
        response = shared_server.get(f"/api/v1/{target}".rstrip("/"))
        etags[target] = response.headers["etag"]
        assert not etags[target].startswith("W/")
        for condition in (etags[target], f'"x", {etags[target]}', f"W/{etags[target]}", "*"):
            unchanged = shared_server.get(f"/api/v1/{target}".rstrip("/"), If_None_Match=condition)
            assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", etags[target])
        assert shared_server.get(f"/api/v1/{target}".rstrip("/"), If_None_Match='"x"').status == 200
    admin.patch(other, relations={"KINDOF": [record["id"]]})
    relations_response = shared_server.get(
        f"/api/v1/{build_path(record, 'relations')}", If_None_Match=etags[build_path(record, "relations")]
    )
    assert (relations_response.status, relations_response.json["items"][0]["id"]) == (200, other["id"])
    assert shared_server.get(f"/api/v1/{build_path(record)}", If_None_Match=etags[build_path(record)]).status == 304


def test_responses_are_compressed_as_the_client_prefers(shared_server: Server, admin: V1Client) -> None:
    record = admin.create(name="long", definition_text="words " * 400)
    target = f"/api/v1/{build_path(record)}"
    uncompressed = shared_server.get(target)
    assert (uncompressed.json, "content-encoding" in uncompressed.headers) == (record, False)
    etags = {uncompressed.headers["etag"]}
    for encoding, unpack in (
        ("gzip", gzip.decompress),
        ("zstd", zstandard.ZstdDecompressor().decompressobj().decompress),
    ):
        packed = shared_server.get(target, Accept_Encoding=encoding)
        assert packed.headers["content-encoding"] == encoding
        assert "accept-encoding" in packed.headers["vary"].lower()
        assert unpack(packed.body) == uncompressed.body
        assert len(packed.body) == int(packed.headers["content-length"]) < len(uncompressed.body)
        etags.add(packed.headers["etag"])
        not_modified = shared_server.get(target, Accept_Encoding=encoding, If_None_Match=packed.headers["etag"])
        assert not_modified.status == 304
        head = shared_server.request("HEAD", target, {"Accept-Encoding": encoding})
        assert {**head.headers, "date": ""} == {**packed.headers, "date": ""}
        updated = admin.send("PATCH", build_path(record), {"name": encoding}, If_Match=packed.headers["etag"])
        assert updated.status == 200
        admin.send("POST", build_path(record, "revert"), {"version": 1}, If_Match="*")
        record = shared_server.get(target).json
        uncompressed = shared_server.get(target)
        etags.add(uncompressed.headers["etag"])
    assert len(etags) == 5
    small_response = shared_server.get(f"/api/v1/{build_path(admin.create(name='short'))}", Accept_Encoding="gzip")
    assert "content-encoding" not in small_response.headers
    assert "vary" in small_response.headers


# Methods and CORS


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/concept", "GET, POST, HEAD, OPTIONS"),
        ("POST", "/concept/x", "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"),
        ("POST", "/concept/x/relations", "GET, PUT, DELETE, HEAD, OPTIONS"),
        ("GET", "/concept/x/merge", "POST, OPTIONS"),
        ("GET", "/batch", "POST, OPTIONS"),
        ("PUT", "/proposals", "GET, POST, HEAD, OPTIONS"),
        ("PUT", "", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_disallowed_method_gets_a_405_with_an_allow_header(
    shared_server: Server, method: str, path: str, allow: str
) -> None:
    response = shared_server.request(method, f"/api/v1{path}")
    assert (response.status, response.headers["allow"]) == (405, allow)
    assert response.headers["content-type"] == "application/problem+json"
    options = shared_server.request("OPTIONS", f"/api/v1{path}")
    assert (options.status, options.body, options.headers["allow"]) == (204, b"", allow)


def test_cross_origin_requests_may_only_read(shared_server: Server, admin: V1Client) -> None:
    preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"}
    response = shared_server.request("OPTIONS", "/api/v1/concept", preflight)
    assert response.status == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    allowed = response.headers["access-control-allow-headers"].lower().split(", ")
    assert "if-none-match" in allowed
    assert "authorization" not in allowed
    assert "access-control-allow-credentials" not in response.headers
    read_response = shared_server.get("/api/v1/concept")
    assert read_response.headers["access-control-allow-origin"] == "*"
    exposed = set(read_response.headers["access-control-expose-headers"].lower().split(", "))
    assert {"etag", "link", "location", "ratelimit", "ratelimit-policy"} <= exposed
    assert "access-control-allow-origin" not in admin.send("GET", "tokens").headers
    assert "access-control-allow-origin" not in admin.send("POST", "concept", {"name": "x"}).headers
    assert shared_server.request("OPTIONS", "/api/v1/nothing", preflight).status == 404


# Validation errors


def test_all_invalid_parameters_are_reported_at_once(shared_server: Server) -> None:
    query = "limit=0&sort=foo&bar=1&fields=nope&updated_since=yesterday&flagged=perhaps&as_of=-1&ids=%00&baz=2"
    response = shared_server.get(f"/api/v1/concept?{query}")
    parameters = {"limit", "sort", "bar", "fields", "updated_since", "flagged", "as_of", "ids", "baz"}
    assert get_pointers(response) == {f"/{name}" for name in parameters}
    assert get_pointers(shared_server.get("/api/v1/concept?release=x&as_of=1&limit=0")) == {"/as_of", "/limit"}
    assert get_pointers(shared_server.get("/api/v1/records/x?release=x&as_of=1")) == {"/as_of"}


@pytest.mark.parametrize(
    ("path", "body", "expected_pointers"),
    [
        ("concept/x/merge", {"k": 1}, {"/into", "/k"}),
        ("concept/x/merge", {"into": 5, "k": 1}, {"/into", "/k"}),
        ("concept/x/revert", {"version": "1", "k": 1}, {"/version", "/k"}),
        ("proposals", {"record": 5}, {"/collection", "/record", "/change"}),
        ("proposals", {"collection": "x", "change": []}, {"/collection", "/change"}),
        ("releases", {"name": "a b", "note": 5, "k": 1}, {"/name", "/note", "/k"}),
    ],
)
def test_all_problems_of_a_body_are_reported_at_once(
    admin: V1Client, path: str, body: object, expected_pointers: set[str]
) -> None:
    assert get_pointers(admin.send("POST", path, body, If_Match="*")) == expected_pointers


@pytest.mark.parametrize(
    ("request_line", "body", "message"),
    [
        ("POST concept", {"name": "x", "aliases": ["y"]}, "aliases/0 must be an object."),
        ("POST concept", {"name": "x", "aliases": [{"text": "y", "lang": "?"}]},
         "aliases/0/lang must be a language tag, such as en or pt-BR."),
        ("POST concept", {"name": "x", "aliases": "y"}, "aliases must be a list."),
        ("POST concept", {"name": "x" * 501}, "name must have at most 500 characters."),
        ("POST concept", {"name": 5}, "name must be text."),
        ("POST releases", {"name": "a b"}, "name must be up to 100 letters, digits, dots, hyphens and underscores"),
        ("GET concept/x/diff?to=1", None, "from is required."),
        ("GET concept?limit=x", None, "limit must be a whole number."),
        ("GET concept?limit=1001", None, "limit must be at most 1,000."),
        ("GET concept?fields=", None, "fields must have at least one; valid: id, collection,"),
        ("GET concept?fields=a,,b,", None, "fields has unknown names (a, b); valid: id,"),
        ("GET concept?flagged=x", None, "flagged must be true or false."),
    ],
)  # fmt: skip
def test_errors_have_readable_messages(admin: V1Client, request_line: str, body: object, message: str) -> None:
    method, _, path = request_line.partition(" ")
    response = admin.send(method, path, body)
    assert response.status == 422
    assert response.json["errors"][0]["detail"].startswith(message)


def test_invalid_utf8_in_a_body_is_reported_with_its_position(shared_server: Server, admin: V1Client) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {admin.token}"}
    for path in ("/api/v1/concept", "/api/v-alpha/concept"):
        response = shared_server.request("POST", path, headers, b'{"name":\n "caf\xe9"}')
        assert response.status == 400
        assert response.json["detail"] == "Request body is not valid UTF-8 at byte 15, line 2."
    headers["Content-Type"] = "application/x-ndjson"
    lines = shared_server.request("POST", "/api/v1/batch", headers, b'{"op": "x"}\n{"op":"caf\xe9"}')
    assert lines.json["errors"][1]["detail"] == "Line 2 is not valid UTF-8 at byte 11, line 1."


# Lists and cursors


def test_an_empty_ids_parameter_selects_no_records(shared_server: Server, admin: V1Client) -> None:
    record = admin.create(name="x")
    for ids in ("", ",", " , "):
        response = shared_server.get(f"/api/v1/concept?ids={ids.replace(' ', '%20')}").json
        assert (response["items"], response["total"]) == ([], 0)
    assert shared_server.get(f"/api/v1/concept?ids=,{record['id']},").json["total"] == 1


def test_a_cursor_is_valid_only_for_its_list(server: Server) -> None:
    curator = V1Client(server, "curator")
    for collection in ("concept", "task"):
        for name in "abc":
            curator.create(collection, name=name)
    revision = server.get("/api/v1").json["revision"]
    cursor = server.get("/api/v1/concept?limit=1&sort=name").json["next"]
    for other_list in ("concept?sort=-name", "task?sort=name", "concept?state=retired", "concept?ids=x",
                       "concept?name=a", "concept?user=x", f"concept?as_of={revision - 1}"):  # fmt: skip
        assert get_pointers(server.get(f"/api/v1/{other_list}&cursor={cursor}")) == {"/cursor"}
    for same_list in ("concept?limit=2", "concept?sort=name&fields=name", f"concept?as_of={revision}"):
        page = server.get(f"/api/v1/{same_list}&cursor={cursor}").json
        assert [item["name"] for item in page["items"]] == ["b", "c"]
    past_page = server.get(f"/api/v1/concept?limit=1&as_of={revision - 4}").json
    assert get_pointers(server.get(f"/api/v1/concept?as_of={revision}&cursor={past_page['next']}")) == {"/cursor"}


def test_lists_with_the_longest_names_are_paginated(server: Server) -> None:
    curator = V1Client(server, "curator")
    names = [f"{number}{'ΐ' * 499}" for number in range(3)]
    for name in names:
        curator.create(name=name)
    for sort in ("name", "-name", "updated", "id"):
        listed_names, cursor = list[str](), ""
        while cursor is not None:
            page = server.get(f"/api/v1/concept?limit=1&sort={sort}{cursor and '&cursor=' + cursor}").json
            listed_names += [item["name"] for item in page["items"]]
            cursor = page["next"]
            assert len(cursor or "") < 200
        assert sorted(listed_names) == names


# Other


def test_a_proposal_is_accepted_without_a_body(admin: V1Client) -> None:
    proposal = admin.send("POST", "proposals", {"collection": "task", "change": {"name": "x"}}).json
    accepted = admin.send("POST", f"proposals/{proposal['id']}/accept")
    assert (accepted.status, accepted.json["name"]) == (200, "x")


def test_the_limits_of_texts_and_batches_are_configurable(url: str) -> None:
    limits = {"LEXARIUM_NAME_LIMIT": "5", "LEXARIUM_ALIAS_LIMIT": "6", "LEXARIUM_DEFINITION_LIMIT": "7"}
    with Server(url, LEXARIUM_BATCH_LINES="2", LEXARIUM_BATCH_MB="1", **limits) as server:
        curator = V1Client(server, "curator")
        too_long = {"name": "x" * 6, "definition_text": "x" * 8, "aliases": [{"text": "x" * 6}]}
        assert get_pointers(curator.send("POST", "concept", too_long)) == {
            "/name",
            "/definition_text",
            "/aliases/0/text",
        }
        assert get_pointers(curator.send("POST", "concept_class", {"name": "x", "description": "x" * 8})) == {
            "/description"
        }
        allowed = {"name": "x" * 5, "definition_text": "x" * 7, "aliases": [{"text": "x" * 5}]}
        assert curator.send("POST", "concept", allowed).status == 201
        valpha = server.post_json("/api/v-alpha/concept", {"name": "x", "alias": "x" * 7}, curator.token)
        assert get_pointers(valpha) == {"/alias"}
        reported_limits = server.get("/api/v1").json["limits"]
        assert (
            reported_limits["concept.name"],
            reported_limits["concept.alias"],
            reported_limits["disorder.definition"],
        ) == (5, 6, 7)
        assert (reported_limits["batch_lines"], reported_limits["batch_bytes"]) == (2, 1 << 20)
        schemas = server.get("/openapi.json").json["components"]["schemas"]
        assert schemas["RecordDraft"]["properties"]["name"]["maxLength"] == 5
        assert schemas["Alias"]["properties"]["text"]["maxLength"] == 5
        headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"}
        line = json.dumps({"op": "create", "collection": "task", "record": {"name": "x"}})
        for body, status in (
            (f"{line}\n{line}\n{line}", 413),
            (f"{line}\n{line}\n{line}\n", 413),
            (f"{line}\n{line}\n", 200),
            (f"{line}\n{line}", 200),
            ("x" * ((1 << 20) + 1), 413),
        ):
            assert server.request("POST", "/api/v1/batch", headers, body).status == status
