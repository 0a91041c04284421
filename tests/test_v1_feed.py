"""The feed of changes where it is asked wrongly, and live streams that end."""

import socket

import pytest
from sqlalchemy import select, update

from lexarium.store.backend import epoch_after
from lexarium.store.database import Database
from lexarium.store.schema import catalogue
from tests.server import Server
from tests.test_v1 import Client
from tests.test_v1_concurrency import Events
from tests.waiting import wait_until

STREAM = {"Accept": "text/event-stream"}


def test_a_place_in_the_feed_that_is_none_is_refused(shared_server: Server) -> None:
    for given in ("abc", "-1", "1.0", "9" * 30, "9" * 5000, ""):
        answer = shared_server.request("GET", "/api/v1/changes", {**STREAM, "Last-Event-ID": given})
        assert answer.status == 400, given
    for headers in ({}, STREAM, {**STREAM, "Last-Event-ID": "1000000"}):
        answer = shared_server.request("GET", "/api/v1/changes?since=1000000", headers)
        assert answer.status == 422
        assert answer.json["errors"][0]["pointer"] == "/since"


def test_without_a_place_json_begins_at_the_first_change_and_a_stream_at_the_next(server: Server) -> None:
    curator = Client(server, "curator")
    curator.create(name="before")
    events = Events(server)
    curator.create(name="after")
    assert [change["record"]["name"] for change in events.take(1)] == ["after"]
    assert [item["record"]["name"] for item in server.get("/api/v1/changes").json["items"]] == ["before", "after"]
    events.close()


def test_head_of_a_live_stream_ends(shared_server: Server) -> None:
    head = shared_server.request("HEAD", "/api/v1/changes", STREAM)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def test_there_are_only_so_many_live_streams(url: str) -> None:
    with Server(url, LEXARIUM_STREAMS="2") as server:
        first, second = Events(server), Events(server)
        refused = server.request("GET", "/api/v1/changes", STREAM)
        assert refused.status == 503
        assert refused.headers["retry-after"]
        assert server.get("/api/v1/changes").status == 200
        first.close()
        wait_until(lambda: _accepted(server))
        second.close()


def _accepted(server: Server) -> bool:
    connection = server.connect()
    connection.request("GET", "/api/v1/changes", headers=STREAM)
    status = connection.getresponse().status
    connection.close()
    return status == 200


def test_a_stream_ends_when_its_client_leaves_though_it_has_asked_for_more(url: str) -> None:
    with Server(url, LEXARIUM_STREAMS="1") as server:
        curator = Client(server, "curator")
        request = b"GET /api/v1/changes HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(request)
            assert b"retry:" in client.recv(4096) + client.recv(4096)
            client.sendall(request)
            assert not _accepted(server)

        def free() -> bool:
            curator.create(name="noticed when it is sent")
            return _accepted(server)

        wait_until(free)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_live_streams_do_not_hold_up_the_end(url: str, workers: str) -> None:
    with Server(url, "--workers", workers) as server:
        streams = [Events(server) for _ in range(4)]
        log = server.stop()
        for stream in streams:
            assert stream.rest() == b"\n"
            stream.close()
    assert "timeout graceful shutdown exceeded" not in log


def test_who_resumes_after_the_catalogue_has_lost_changes_is_told(server: Server) -> None:
    """However much was written since: the numbers of what was lost may have been given out again."""
    curator = Client(server, "curator")
    events = Events(server, "/api/v1/changes?since=0")
    curator.create(name="before")
    events.take(1)
    resumed = Events(server, Last_Event_ID=events.last_id)
    database = Database(server.url)
    with database.backend.writing() as connection, connection.begin():
        present = connection.execute(select(catalogue.c.epoch)).scalar_one()
        connection.execute(update(catalogue).values(epoch=epoch_after(present)))
    database.close()
    assert (events.rest(), resumed.rest()) == (b"", b"\n")  # neither is left waiting
    events.close()
    resumed.close()
    for name in ("after", "after that"):
        curator.create(name=name)
    refused = server.request("GET", "/api/v1/changes", {**STREAM, "Last-Event-ID": events.last_id})
    assert (refused.status, refused.json["revision"]) == (409, 3)
    assert "has lost changes" in refused.json["detail"]
    following = Events(server, Last_Event_ID="1")
    assert [change["record"]["name"] for change in following.take(2)] == ["after", "after that"]
    following.close()
