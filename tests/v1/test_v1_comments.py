"""Comments on records, and summaries of edits, over HTTP on both engines."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


@pytest.fixture(scope="module")
def reader(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "reader")


def comment(client: V1Client, record: dict[str, Any], text: str) -> dict[str, Any]:
    response = client.send("POST", build_path(record, "comments"), {"text": text})
    assert response.status == 201, response.body
    thread: dict[str, Any] = response.json
    return thread


def change_thread(
    client: V1Client, record: dict[str, Any], thread: dict[str, Any], part: str, text: str
) -> HttpResponse:
    return client.send("POST", build_path(record, "comments", thread["id"], part), {"text": text})


def list_comments(client: V1Client, record: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.send("GET", build_path(record, "comments")).json["items"]
    return items


def test_a_comment_thread_is_replied_to_closed_and_reopened(curator: V1Client, reader: V1Client) -> None:
    record = curator.create(name="discussed")
    first, second = comment(reader, record, "Is it so?"), comment(reader, record, "And this?")
    assert change_thread(curator, record, first, "replies", "It is.").status == 200
    assert change_thread(reader, record, first, "close", "").status == 403
    assert change_thread(curator, record, first, "close", "Settled.").json["closed"]
    assert change_thread(curator, record, first, "close", "").status == 409
    assert change_thread(reader, record, first, "replies", "But …").status == 409
    listed = list_comments(reader, record)
    assert [item["id"] for item in listed] == [second["id"], first["id"]]
    said = [(item["action"], item["text"]) for item in listed[1]["comments"]]
    assert said == [("open", "Is it so?"), ("reply", "It is."), ("close", "Settled.")]
    assert not change_thread(curator, record, first, "reopen", "").json["closed"]
    assert change_thread(reader, record, first, "replies", "Thanks.").status == 200


def test_threads_are_paginated(curator: V1Client) -> None:
    record = curator.create(name="much discussed")
    threads = [comment(curator, record, f"comment {number}")["id"] for number in range(3)]
    page = curator.send("GET", build_path(record, "comments?limit=2")).json
    rest = curator.send("GET", build_path(record, f"comments?limit=2&before={page['next']}")).json
    assert [item["id"] for item in (*page["items"], *rest["items"])] == threads[::-1]
    assert rest["next"] is None
    assert curator.send("GET", build_path(record, "comments?before=x")).status == 422


def test_a_thread_belongs_to_its_record(curator: V1Client) -> None:
    record, other = curator.create(name="one"), curator.create(name="other")
    thread = comment(curator, record, "About one.")
    for part in ("replies", "close", "reopen"):
        assert change_thread(curator, other, thread, part, "x").status == 404
    assert curator.send("POST", "concept/trm_missing/comments", {"text": "x"}).status == 404


@pytest.mark.parametrize("text", ["", "a\u0000b", "x" * 5_001])
def test_a_comment_must_be_valid_text(curator: V1Client, text: str) -> None:
    record = curator.create(name="commented")
    assert curator.send("POST", build_path(record, "comments"), {"text": text}).status == 422


def test_a_merged_record_accepts_no_comments(curator: V1Client) -> None:
    merged, survivor = curator.create(name="merged"), curator.create(name="survivor")
    thread = comment(curator, merged, "Before.")
    curator.send("POST", build_path(merged, "merge"), {"into": survivor["id"]}, If_Match=get_etag(merged))
    assert curator.send("POST", build_path(merged, "comments"), {"text": "x"}).status == 409
    assert change_thread(curator, merged, thread, "close", "").status == 409
    assert curator.send("GET", build_path(merged, "comments")).status == 308


def test_erasing_an_account_erases_its_comments(curator: V1Client, shared_server: Server) -> None:
    admin, person = V1Client(shared_server, "admin"), V1Client(shared_server, "contributor")
    record = curator.create(name="remembered")
    thread = comment(person, record, "My phone number is 555.")
    change_thread(curator, record, thread, "replies", "Please do not say this here.")
    account_id = person.send("GET", "me").json["id"]
    assert admin.send("DELETE", f"users/{account_id}").status in (200, 204)
    [kept] = list_comments(curator, record)
    assert [item["text"] for item in kept["comments"]] == ["", "Please do not say this here."]
    assert kept["comments"][0]["by"] == account_id


@pytest.fixture
def slow_server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_COMMENT_RATE="2") as server:
        yield server


def test_comments_are_limited_per_account(slow_server: Server) -> None:
    curator, reader = V1Client(slow_server, "curator"), V1Client(slow_server, "reader")
    record = curator.create(name="popular")
    statuses = [reader.send("POST", build_path(record, "comments"), {"text": "x"}).status for _ in range(3)]
    assert statuses == [201, 201, 429]
    assert comment(curator, record, "Others may.")


def test_the_history_and_the_feed_show_summaries(curator: V1Client) -> None:
    created = curator.send("POST", "concept?summary=from+the+handbook", {"name": "summarized"}).json
    path, etag = build_path(created), get_etag(created)
    other = curator.create(name="summarized too")
    edited = curator.send("PATCH", f"{path}?summary=typo", {"name": "summarised"}, If_Match=etag).json
    related = curator.send(
        "PUT",
        f"{path}/relations?summary=is+one",
        {"relation": "KINDOF", "target": other["id"]},
        If_Match=get_etag(edited),
    ).json
    curator.send("DELETE", f"{path}?summary=gone", If_Match=get_etag(related))
    history = curator.send("GET", build_path(created, "history")).json["items"]
    assert [item["summary"] for item in history] == ["gone", "is one", "typo", "from the handbook"]
    changes = curator.send("GET", f"changes?since={history[0]['seq'] - 1}").json["items"]
    assert changes[0]["summary"] == "gone"
    assert curator.send("POST", f"concept?summary={'x' * 501}", {"name": "long"}).status == 422


def test_a_batch_has_one_summary(curator: V1Client) -> None:
    line = {"op": "create", "collection": "concept", "record": {"name": "in a batch"}}
    response = curator.server.request(
        "POST",
        "/api/v1/batch?summary=all+of+chapter+two",
        {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"},
        json.dumps(line),
    )
    created = response.json
    [version] = curator.send("GET", f"concept/{created['id']}/history").json["items"]
    assert version["summary"] == "all of chapter two"


def test_a_proposal_keeps_its_summary_and_the_reason_of_its_decision(curator: V1Client, shared_server: Server) -> None:
    contributor = V1Client(shared_server, "contributor")
    proposal = contributor.send("POST", "concept?summary=I+need+it", {"name": "wanted"}).json
    assert (proposal["summary"], proposal["reason"], proposal["amended"]) == ("I need it", "", False)
    body = {"reason": "Thank you.", "change": {"name": "Wanted"}}
    record = curator.send("POST", f"proposals/{proposal['id']}/accept", body).json
    accepted = contributor.send("GET", f"proposals/{proposal['id']}").json
    assert (accepted["reason"], accepted["amended"]) == ("Thank you.", True)
    [version] = curator.send("GET", build_path(record, "history")).json["items"]
    assert version["summary"] == "I need it"
    plain = contributor.send("POST", "concept", {"name": "plain"}).json
    curator.send("POST", f"proposals/{plain['id']}/accept", {"change": {"name": "plain"}})
    assert not contributor.send("GET", f"proposals/{plain['id']}").json["amended"]
