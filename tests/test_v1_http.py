"""v1 as HTTP has it, on both engines: methods, validators, encodings, redirects, keys, other origins, and limits."""

import gzip
import json
from typing import Any

import pytest
import zstandard

from lexarium.domain.collections import COLLECTIONS
from tests.server import Answer, Server
from tests.test_v1 import Client, match, path


@pytest.fixture(scope="module")
def admin(shared_server: Server) -> Client:
    return Client(shared_server, "admin")


def pointers(answer: Answer) -> set[str]:
    assert answer.status == 422, answer.body
    return {error["pointer"] for error in answer.json["errors"]}


# Idempotency-Key


def test_every_post_that_writes_is_done_once_under_a_key(shared_server: Server, admin: Client) -> None:
    gone, kept, old = (admin.create(name=name) for name in ("gone", "kept", "old"))
    old = admin.patch(old, name="new")
    proposals = [admin.send("POST", "proposals", {"collection": "task", "change": {"name": n}}).json for n in "abc"]
    posts: list[tuple[str, object, dict[str, str]]] = [
        ("concept", {"name": "one"}, {}),
        (path(gone, "merge"), {"into": kept["id"]}, {"If-Match": match(gone)}),
        (path(old, "revert"), {"version": 1}, {"If-Match": match(old)}),
        ("proposals", {"collection": "task", "change": {"name": "x"}}, {}),
        (f"proposals/{proposals[0]['id']}/accept", {}, {}),
        (f"proposals/{proposals[1]['id']}/reject", {"reason": "No."}, {}),
        (f"proposals/{proposals[2]['id']}/withdraw", None, {}),
        ("releases", {"name": "once"}, {}),
        ("users", {"name": "Once", "role": "curator"}, {}),
    ]
    for number, (where, body, headers) in enumerate(posts):
        headers |= {"Idempotency-Key": f"every {number}"}
        first = admin.send("POST", where, body, **headers)
        revision = shared_server.get("/api/v1").json["revision"]
        assert first.status in (200, 201, 202), first.body
        again = admin.send("POST", where, body, **headers)
        assert (again.status, again.body) == (first.status, first.body), where
        assert again.headers.get("location") == first.headers.get("location")
        assert shared_server.get("/api/v1").json["revision"] == revision
        other = {"name": "another", "role": "admin", "into": "x", "version": 2, "reason": "Other."}
        assert admin.send("POST", where, other, **headers).status in (409, 422)


def test_a_batch_and_a_post_of_v_alpha_are_done_once_under_a_key(shared_server: Server, admin: Client) -> None:
    headers = {"Authorization": f"Bearer {admin.token}", "Idempotency-Key": "b"}
    lines = '{"op":"create","collection":"contrast","record":{"name":"x"}}\n' * 3
    ndjson = {**headers, "Content-Type": "application/x-ndjson"}
    first, again = (shared_server.request("POST", "/api/v1/batch", ndjson, lines) for _ in range(2))
    assert (first.status, first.body) == (again.status, again.body) == (200, first.body)
    assert shared_server.get("/api/v1/contrast").json["total"] == 3
    assert shared_server.request("POST", "/api/v1/batch", ndjson, lines[:-1]).status == 409
    plain = {**headers, "Content-Type": "application/json", "Idempotency-Key": "v"}
    for role, status in (("contributor", 202), ("curator", 201)):
        plain["Authorization"] = f"Bearer {shared_server.token(role)}"
        made = [shared_server.request("POST", "/api/v-alpha/disorder", plain, '{"name": "once"}') for _ in range(2)]
        assert [each.status for each in made] == [status, status]
        assert made[0].body == made[1].body
        assert made[0].headers["location"] == made[1].headers["location"]
        assert shared_server.request("POST", "/api/v-alpha/disorder", plain, '{"name": "x"}').status == 409
    assert len(shared_server.get("/api/v-alpha/disorder").json) == 1


@pytest.mark.parametrize("where", ["tokens", "webhooks", "sign-in"])
def test_a_key_is_refused_where_the_answer_holds_a_secret(admin: Client, where: str) -> None:
    answer = admin.send("POST", where, {}, Idempotency_Key="k")
    assert answer.status == 400
    assert "secret" in answer.json["detail"]


# Merged and retired records


def merged_pair(admin: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    gone, kept = admin.create("task", name="gone"), admin.create("task", name="kept")
    assert admin.send("POST", path(gone, "merge"), {"into": kept["id"]}, If_Match='"1"').status == 200
    return gone, kept


def test_a_read_of_a_merged_record_is_sent_to_the_same_address_of_the_survivor(
    shared_server: Server, admin: Client
) -> None:
    gone, kept = merged_pair(admin)
    revision = shared_server.get("/api/v1").json["revision"]
    for address in ("task/{}", "records/{}", "task/{}/relations", "task/{}/ancestors?relation=KINDOF",
                    f"task/{{}}?as_of={revision}"):  # fmt: skip
        for method in ("GET", "HEAD"):
            answer = shared_server.request(method, f"/api/v1/{address.format(gone['id'])}")
            assert answer.status == 308
            assert answer.headers["location"] == f"/api/v1/{address.format(kept['id'])}"
            assert answer.headers["cache-control"] == "no-cache"
            assert answer.headers["access-control-allow-origin"] == "*"
        assert shared_server.get(answer.headers["location"]).status == 200
    assert shared_server.get(f"/api/v1/{path(gone)}").json["merged_into"] == kept["id"]
    assert shared_server.get(f"/api/v1/{path(gone, 'history')}").json["items"][0]["action"] == "merge"


def test_a_write_to_a_merged_record_is_refused_and_told_of_the_survivor(admin: Client) -> None:
    gone, kept = merged_pair(admin)
    for method, where, body in (
        ("PUT", path(gone), {"name": "x"}),
        ("PATCH", path(gone), {"name": "x"}),
        ("DELETE", path(gone), None),
        ("POST", path(gone, "merge"), {"into": kept["id"]}),
        ("PUT", path(gone, "relations"), {"relation": "ASSERTS", "target": "x"}),
    ):
        answer = admin.send(method, where, body, If_Match='"2"')
        assert (answer.status, answer.json["merged_into"]) == (409, kept["id"])
        assert "location" not in answer.headers


def test_what_is_not_there_may_be_known_by_pages_of_any_origin(shared_server: Server, admin: Client) -> None:
    gone = admin.create(name="gone")
    assert admin.send("DELETE", path(gone), If_Match='"1"').status == 200
    for where, status in ((path(gone), 410), ("concept/none", 404), ("nothing", 404), ("concept?x=1", 422)):
        answer = shared_server.get(f"/api/v1/{where}")
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "*")


# Reading and sending back


@pytest.mark.parametrize("collection", list(COLLECTIONS))
def test_a_record_that_was_read_can_be_sent_back_as_it_is(
    shared_server: Server, admin: Client, collection: str
) -> None:
    record = admin.create(collection, name="x", aliases=[{"text": "y"}])
    for method in ("PUT", "PATCH"):
        same = admin.send(method, path(record), record, If_Match='"1"')
        assert (same.status, same.json) == (200, record)
    changed = admin.send("PUT", path(record), {**record, "name": "z"}, If_Match='"1"')
    assert (changed.status, changed.json["name"], changed.json["version"]) == (200, "z", 2)
    forged = {**changed.json, "id_user": "usr_me", "version": 3, "state": "retired", "wrong": 1}
    own = {"/version", "/state", "/wrong"} | ({"/id_user"} if "id_user" in record else set())
    expected = own if "id_user" in record else own | {"/id_user"}
    assert pointers(admin.send("PUT", path(record), forged, If_Match='"2"')) == expected
    proposal = Client(shared_server, "contributor").send("PUT", path(record), changed.json, If_Match='"2"')
    assert proposal.status == 202


# Validators


def test_if_match_is_compared_strongly_with_every_version_it_names(admin: Client) -> None:
    record = admin.create(name="0")
    for number, (given, status) in enumerate(
        [('"1"', 200), ("*", 200), ('"7", "3"', 200), ('"4-zstd"', 200), ('W/"5"', 412), ('"7", "8"', 412), ("5", 412)],
        1,
    ):
        answer = admin.send("PATCH", path(record), {"name": str(number)}, If_Match=given)
        assert answer.status == status, given
    assert (answer.json["version"], answer.json["record"]["name"]) == (5, "4")
    assert admin.send("DELETE", "concept/none", If_Match="*").status == 404
    assert admin.send("DELETE", path(record), If_Match="*").status == 200


def test_every_json_answer_has_an_etag_that_changes_with_it(shared_server: Server, admin: Client) -> None:
    record, other = admin.create(name="one"), admin.create(name="two")
    etags = dict[str, str]()
    targets = [path(record), path(record, "relations"), "concept?limit=2", "changes?limit=5", "releases", ""]
    for target in targets:
        answer = shared_server.get(f"/api/v1/{target}".rstrip("/"))
        etags[target] = answer.headers["etag"]
        assert not etags[target].startswith("W/")
        for given in (etags[target], f'"x", {etags[target]}', f"W/{etags[target]}", "*"):
            unchanged = shared_server.get(f"/api/v1/{target}".rstrip("/"), If_None_Match=given)
            assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", etags[target])
        assert shared_server.get(f"/api/v1/{target}".rstrip("/"), If_None_Match='"x"').status == 200
    admin.patch(other, relations={"KINDOF": [record["id"]]})
    there = shared_server.get(f"/api/v1/{path(record, 'relations')}", If_None_Match=etags[path(record, "relations")])
    assert (there.status, there.json["items"][0]["id"]) == (200, other["id"])
    assert shared_server.get(f"/api/v1/{path(record)}", If_None_Match=etags[path(record)]).status == 304


def test_answers_are_compressed_as_the_client_likes(shared_server: Server, admin: Client) -> None:
    record = admin.create(name="long", definition_text="words " * 400)
    target = f"/api/v1/{path(record)}"
    plain = shared_server.get(target)
    assert (plain.json, "content-encoding" in plain.headers) == (record, False)
    etags = {plain.headers["etag"]}
    for encoding, unpack in (
        ("gzip", gzip.decompress),
        ("zstd", zstandard.ZstdDecompressor().decompressobj().decompress),
    ):
        packed = shared_server.get(target, Accept_Encoding=encoding)
        assert packed.headers["content-encoding"] == encoding
        assert "accept-encoding" in packed.headers["vary"].lower()
        assert unpack(packed.body) == plain.body
        assert len(packed.body) == int(packed.headers["content-length"]) < len(plain.body)
        etags.add(packed.headers["etag"])
        again = shared_server.get(target, Accept_Encoding=encoding, If_None_Match=packed.headers["etag"])
        assert again.status == 304
        head = shared_server.request("HEAD", target, {"Accept-Encoding": encoding})
        assert {**head.headers, "date": ""} == {**packed.headers, "date": ""}
        changed = admin.send("PATCH", path(record), {"name": encoding}, If_Match=packed.headers["etag"])
        assert changed.status == 200
        admin.send("POST", path(record, "revert"), {"version": 1}, If_Match="*")
        record = shared_server.get(target).json
        plain = shared_server.get(target)
        etags.add(plain.headers["etag"])
    assert len(etags) == 5
    short = shared_server.get(f"/api/v1/{path(admin.create(name='short'))}", Accept_Encoding="gzip")
    assert "content-encoding" not in short.headers
    assert "vary" in short.headers


# Methods and other origins


@pytest.mark.parametrize(
    ("method", "where", "allow"),
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
def test_a_method_that_is_not_allowed_is_told_those_that_are(
    shared_server: Server, method: str, where: str, allow: str
) -> None:
    answer = shared_server.request(method, f"/api/v1{where}")
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.headers["content-type"] == "application/problem+json"
    options = shared_server.request("OPTIONS", f"/api/v1{where}")
    assert (options.status, options.body, options.headers["allow"]) == (204, b"", allow)


def test_pages_of_other_origins_may_read_and_nothing_else(shared_server: Server, admin: Client) -> None:
    preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"}
    answer = shared_server.request("OPTIONS", "/api/v1/concept", preflight)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert "if-none-match" in allowed
    assert "authorization" not in allowed
    assert "access-control-allow-credentials" not in answer.headers
    read = shared_server.get("/api/v1/concept")
    assert read.headers["access-control-allow-origin"] == "*"
    exposed = set(read.headers["access-control-expose-headers"].lower().split(", "))
    assert {"etag", "link", "location", "ratelimit", "ratelimit-policy"} <= exposed
    assert "access-control-allow-origin" not in admin.send("GET", "tokens").headers
    assert "access-control-allow-origin" not in admin.send("POST", "concept", {"name": "x"}).headers
    assert shared_server.request("OPTIONS", "/api/v1/nothing", preflight).status == 404


# Mistakes, all at once


def test_every_wrong_parameter_is_named_at_once(shared_server: Server) -> None:
    wrong = "limit=0&sort=foo&bar=1&fields=nope&updated_since=yesterday&flagged=perhaps&as_of=-1&ids=%00&baz=2"
    answer = shared_server.get(f"/api/v1/concept?{wrong}")
    named = {"limit", "sort", "bar", "fields", "updated_since", "flagged", "as_of", "ids", "baz"}
    assert pointers(answer) == {f"/{name}" for name in named}
    assert pointers(shared_server.get("/api/v1/concept?release=x&as_of=1&limit=0")) == {"/as_of", "/limit"}
    assert pointers(shared_server.get("/api/v1/records/x?release=x&as_of=1")) == {"/as_of"}


@pytest.mark.parametrize(
    ("where", "body", "named"),
    [
        ("concept/x/merge", {"k": 1}, {"/into", "/k"}),
        ("concept/x/merge", {"into": 5, "k": 1}, {"/into", "/k"}),
        ("concept/x/revert", {"version": "1", "k": 1}, {"/version", "/k"}),
        ("proposals", {"record": 5}, {"/collection", "/record", "/change"}),
        ("proposals", {"collection": "x", "change": []}, {"/collection", "/change"}),
        ("releases", {"name": "a b", "note": 5, "k": 1}, {"/name", "/note", "/k"}),
    ],
)
def test_every_problem_of_a_body_is_named_at_once(admin: Client, where: str, body: object, named: set[str]) -> None:
    assert pointers(admin.send("POST", where, body, If_Match="*")) == named


@pytest.mark.parametrize(
    ("request_line", "body", "told"),
    [
        ("POST concept", {"name": "x", "aliases": ["y"]}, "aliases/0 should be an object."),
        ("POST concept", {"name": "x", "aliases": [{"text": "y", "lang": "?"}]},
         "aliases/0/lang should be the tag of a language, such as en or pt-BR."),
        ("POST concept", {"name": "x", "aliases": "y"}, "aliases should be a list."),
        ("POST concept", {"name": "x" * 501}, "name must have at most 500 characters."),
        ("POST concept", {"name": 5}, "name should be text."),
        ("POST releases", {"name": "a b"}, "name should be up to 100 letters, digits, dots, hyphens and underscores"),
        ("GET concept/x/diff?to=1", None, "from is required."),
        ("GET concept?limit=x", None, "limit should be a whole number."),
        ("GET concept?limit=1001", None, "limit must be at most 1,000."),
        ("GET concept?fields=", None, "fields should name at least one; there are id, collection,"),
        ("GET concept?fields=a,,b,", None, "fields names a, b, which there is not; there are id,"),
        ("GET concept?flagged=x", None, "flagged should be true or false."),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_sentences(admin: Client, request_line: str, body: object, told: str) -> None:
    method, _, where = request_line.partition(" ")
    answer = admin.send(method, where, body)
    assert answer.status == 422
    assert answer.json["errors"][0]["detail"].startswith(told)


def test_a_body_that_is_not_utf_8_is_told_where(shared_server: Server, admin: Client) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {admin.token}"}
    for address in ("/api/v1/concept", "/api/v-alpha/concept"):
        answer = shared_server.request("POST", address, headers, b'{"name":\n "caf\xe9"}')
        assert answer.status == 400
        assert answer.json["detail"] == "The body is not UTF-8: its byte 15, on line 2, cannot be read."
    headers["Content-Type"] = "application/x-ndjson"
    lines = shared_server.request("POST", "/api/v1/batch", headers, b'{"op": "x"}\n{"op":"caf\xe9"}')
    assert lines.json["errors"][0]["detail"] == "2 is not UTF-8: its byte 11, on line 1, cannot be read."


# Lists and cursors


def test_no_ids_are_no_records(shared_server: Server, admin: Client) -> None:
    record = admin.create(name="x")
    for ids in ("", ",", " , "):
        answer = shared_server.get(f"/api/v1/concept?ids={ids.replace(' ', '%20')}").json
        assert (answer["items"], answer["total"]) == ([], 0)
    assert shared_server.get(f"/api/v1/concept?ids=,{record['id']},").json["total"] == 1


def test_a_cursor_is_good_for_its_list_alone(server: Server) -> None:
    curator = Client(server, "curator")
    for collection in ("concept", "task"):
        for name in "abc":
            curator.create(collection, name=name)
    revision = server.get("/api/v1").json["revision"]
    cursor = server.get("/api/v1/concept?limit=1&sort=name").json["next"]
    for other in ("concept?sort=-name", "task?sort=name", "concept?state=retired", "concept?ids=x", "concept?name=a",
                  "concept?user=x", f"concept?as_of={revision - 1}"):  # fmt: skip
        assert pointers(server.get(f"/api/v1/{other}&cursor={cursor}")) == {"/cursor"}
    for same in ("concept?limit=2", "concept?sort=name&fields=name", f"concept?as_of={revision}"):
        page = server.get(f"/api/v1/{same}&cursor={cursor}").json
        assert [item["name"] for item in page["items"]] == ["b", "c"]
    past = server.get(f"/api/v1/concept?limit=1&as_of={revision - 4}").json
    assert pointers(server.get(f"/api/v1/concept?as_of={revision}&cursor={past['next']}")) == {"/cursor"}


def test_the_longest_names_are_paged_through(server: Server) -> None:
    curator = Client(server, "curator")
    names = [f"{number}{'ΐ' * 499}" for number in range(3)]
    for name in names:
        curator.create(name=name)
    for sort in ("name", "-name", "updated", "id"):
        found, cursor = list[str](), ""
        while cursor is not None:
            page = server.get(f"/api/v1/concept?limit=1&sort={sort}{cursor and '&cursor=' + cursor}").json
            found += [item["name"] for item in page["items"]]
            cursor = page["next"]
            assert len(cursor or "") < 200
        assert sorted(found) == names


# Other


def test_a_proposal_is_accepted_without_a_body(admin: Client) -> None:
    proposal = admin.send("POST", "proposals", {"collection": "task", "change": {"name": "x"}}).json
    accepted = admin.send("POST", f"proposals/{proposal['id']}/accept")
    assert (accepted.status, accepted.json["name"]) == (200, "x")


def test_the_limits_of_texts_and_batches_are_settings(url: str) -> None:
    limits = {"LEXARIUM_NAME_LIMIT": "5", "LEXARIUM_ALIAS_LIMIT": "6", "LEXARIUM_DEFINITION_LIMIT": "7"}
    with Server(url, LEXARIUM_BATCH_LINES="2", LEXARIUM_BATCH_MB="1", **limits) as server:
        curator = Client(server, "curator")
        long = {"name": "x" * 6, "definition_text": "x" * 8, "aliases": [{"text": "x" * 6}]}
        assert pointers(curator.send("POST", "concept", long)) == {"/name", "/definition_text", "/aliases/0/text"}
        assert pointers(curator.send("POST", "concept_class", {"name": "x", "description": "x" * 8})) == {
            "/description"
        }
        right = {"name": "x" * 5, "definition_text": "x" * 7, "aliases": [{"text": "x" * 5}]}
        assert curator.send("POST", "concept", right).status == 201
        valpha = server.post_json("/api/v-alpha/concept", {"name": "x", "alias": "x" * 7}, curator.token)
        assert pointers(valpha) == {"/alias"}
        told = server.get("/api/v1").json["limits"]
        assert (told["concept.name"], told["concept.alias"], told["disorder.definition"]) == (5, 6, 7)
        assert (told["batch_lines"], told["batch_bytes"]) == (2, 1 << 20)
        schemas = server.get("/openapi.json").json["components"]["schemas"]
        assert schemas["ConceptDraft"]["properties"]["name"]["maxLength"] == 5
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
