"""Change feed: invalid requests, and the end of event streams."""

import socket

import pytest
from sqlalchemy import select, update

from lexarium.store.database import Database
from lexarium.store.position import next_epoch
from lexarium.store.schema import catalogue_table
from tests.support.change_stream import ChangeStream
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.v1_client import V1Client

STREAM = {"Accept": "text/event-stream"}


def test_an_invalid_feed_position_is_rejected(shared_server: Server) -> None:
    for since in ("abc", "-1", "1.0", "9" * 30, "9" * 5000, ""):
        response = shared_server.request("GET", "/api/v1/changes", {**STREAM, "Last-Event-ID": since})
        assert response.status == 400, since
    for headers in ({}, STREAM, {**STREAM, "Last-Event-ID": "1000000"}):
        response = shared_server.request("GET", "/api/v1/changes?since=1000000", headers)
        assert response.status == 422
        assert response.json["errors"][0]["pointer"] == "/since"


def test_without_a_position_json_begins_at_the_first_change_and_a_stream_at_the_next_one(server: Server) -> None:
    curator = V1Client(server, "curator")
    curator.create(name="before")
    events = ChangeStream(server)
    curator.create(name="after")
    assert [change["record"]["name"] for change in events.read_events(1)] == ["after"]
    assert [item["record"]["name"] for item in server.get("/api/v1/changes").json["items"]] == ["before", "after"]
    events.close()


def test_head_of_a_live_stream_returns_headers_only(shared_server: Server) -> None:
    head = shared_server.request("HEAD", "/api/v1/changes", STREAM)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def test_the_number_of_live_streams_is_limited(url: str) -> None:
    with Server(url, LEXARIUM_STREAMS="2") as server:
        first, second = ChangeStream(server), ChangeStream(server)
        rejected = server.request("GET", "/api/v1/changes", STREAM)
        assert rejected.status == 503
        assert rejected.headers["retry-after"]
        assert server.get("/api/v1/changes").status == 200
        first.close()
        wait_until(lambda: _is_accepted(server))
        second.close()


def _is_accepted(server: Server) -> bool:
    connection = server.connect()
    connection.request("GET", "/api/v1/changes", headers=STREAM)
    status = connection.getresponse().status
    connection.close()
    return status == 200


def test_a_stream_ends_when_its_client_disconnects_with_a_pipelined_request(url: str) -> None:
    with Server(url, LEXARIUM_STREAMS="1") as server:
        curator = V1Client(server, "curator")
        request = b"GET /api/v1/changes HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(request)
            assert b"retry:" in client.recv(4096) + client.recv(4096)
            client.sendall(request)
            assert not _is_accepted(server)

        def is_slot_free() -> bool:
            curator.create(name="noticed when it is sent")
            return _is_accepted(server)

        wait_until(is_slot_free)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_live_streams_do_not_delay_shutdown(url: str, workers: str) -> None:
    with Server(url, "--workers", workers) as server:
        streams = [ChangeStream(server) for _ in range(4)]
        log = server.stop()
        for stream in streams:
            assert stream.read_rest() == b"\n"
            stream.close()
    assert "timeout graceful shutdown exceeded" not in log


def test_resuming_a_stream_after_a_loss_of_changes_is_rejected(server: Server) -> None:
    """Later writes do not hide the loss: they may reuse the lost numbers."""
    curator = V1Client(server, "curator")
    events = ChangeStream(server, "/api/v1/changes?since=0")
    curator.create(name="before")
    events.read_events(1)
    resumed = ChangeStream(server, Last_Event_ID=events.last_id)
    database = Database(server.url)
    with database.backend.connect_write() as connection, connection.begin():
        epoch = connection.execute(select(catalogue_table.c.epoch)).scalar_one()
        connection.execute(update(catalogue_table).values(epoch=next_epoch(epoch)))
    database.close()
    assert (events.read_rest(), resumed.read_rest()) == (b"", b"\n")  # both streams end
    events.close()
    resumed.close()
    for name in ("after", "after that"):
        curator.create(name=name)
    rejected = server.request("GET", "/api/v1/changes", {**STREAM, "Last-Event-ID": events.last_id})
    assert (rejected.status, rejected.json["revision"]) == (409, 3)
    assert "lost changes" in rejected.json["detail"]
    following = ChangeStream(server, Last_Event_ID="1")
    assert [change["record"]["name"] for change in following.read_events(2)] == ["after", "after that"]
    following.close()
