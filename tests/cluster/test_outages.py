"""Outages of PostgreSQL: one server survives all of them without a restart."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import psycopg
import pytest

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.postgres import PostgresServer
from tests.support.postgres_proxy import PostgresProxy
from tests.support.server import HttpResponse, Server
from tests.support.write_load import TASK_LIST_PATH, RetryingClient, WriteLoad

pytestmark = pytest.mark.full

TIMEOUT_SETTINGS = {"LEXARIUM_DATABASE_SECONDS": "2"}


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with PostgresServer().init_cluster() as postgres:
        yield postgres.start()


@pytest.fixture(scope="module")
def proxy(primary: PostgresServer) -> Iterator[PostgresProxy]:
    with PostgresProxy(primary.create_database("catalogue")) as postgres_proxy:
        yield postgres_proxy


@pytest.fixture(scope="module")
def server(primary: PostgresServer, proxy: PostgresProxy) -> Iterator[Server]:
    """The server that goes through all outages of this module."""
    with Server(proxy.url, **TIMEOUT_SETTINGS) as running_server:
        running_server.wait_until_ready()
        yield running_server
    database = Database(primary.url("catalogue"))
    assert check_database(database).problems == []
    database.close()


@pytest.fixture
def client(server: Server) -> RetryingClient:
    return RetryingClient(server)


def test_no_write_is_lost_or_repeated_when_the_primary_is_killed_and_restarted_under_load(
    server: Server, client: RetryingClient, primary: PostgresServer
) -> None:
    load = WriteLoad(client, "killed")
    with load.run():
        primary.kill()
        response = client.create("killed, refused", "a key of its own")
        assert response.status == 503
        assert response.headers["retry-after"]
        assert response.json["title"] == "Service Unavailable"
        assert server.get("/healthz").status == 200
        assert server.get("/readyz").status == 503
        primary.start()
        load.wait_for_more()
    server.wait_until_ready()
    assert client.list_by_prefix("killed") == load.acknowledged


def is_rejected_at_once(server: Server) -> bool:
    """Return whether a read is rejected long before the database timeout, in one of many attempts."""
    started = time.monotonic()
    return server.get("/api/v1/task/tsk_none").status == 503 and time.monotonic() - started < 1


def test_cached_responses_are_served_during_a_network_outage_and_other_requests_get_a_503(
    server: Server, client: RetryingClient, proxy: PostgresProxy
) -> None:
    cached_id = client.create_with_retry("kept")
    path = f"{TASK_LIST_PATH}?id={cached_id}"
    assert [server.get(item).status for item in (TASK_LIST_PATH, path, path)] == [200, 200, 200]
    proxy.is_flowing.clear()
    try:
        assert server.get(TASK_LIST_PATH).status == 200
        assert server.get(path).status == 200
        with ThreadPoolExecutor(30) as pool:
            unread = [pool.submit(server.get, f"{TASK_LIST_PATH}?id=tsk_{number}") for number in range(20)]
            unwritten = [pool.submit(client.create, "stopped", "the same key") for _ in range(9)]
            responses = [item.result() for item in unread + unwritten]
        assert {response.status for response in responses} == {503}
        assert all(response.headers["retry-after"] for response in responses)
        assert server.get(TASK_LIST_PATH).status == 200
        wait_until(is_rejected_at_once, server)
    finally:
        proxy.is_flowing.set()
    wait_until(lambda: client.create("stopped", "the same key").status == 201)
    assert list(client.list_by_prefix("stopped").values()) == ["stopped"]


def test_an_outage_is_logged_once_a_second_instead_of_once_per_request(primary: PostgresServer) -> None:
    """A flood of log lines would slow the server down."""
    with PostgresProxy(primary.create_database("logged")) as network, Server(network.url, **TIMEOUT_SETTINGS) as server:
        server.wait_until_ready()
        network.is_flowing.clear()
        started = time.monotonic()
        with ThreadPoolExecutor(30) as pool:
            responses = list(pool.map(server.get, (f"/api/v1/task/tsk_{number}" for number in range(300))))
        took = time.monotonic() - started
        network.is_flowing.set()
    assert {response.status for response in responses} == {503}
    assert 0 < server.log.count('"lexarium.web.http.problems"') <= took + 1


def test_cached_responses_unaffected_by_writes_of_other_nodes_are_served_during_an_outage(
    server: Server, client: RetryingClient, primary: PostgresServer, proxy: PostgresProxy
) -> None:
    path = f"{TASK_LIST_PATH}?id={client.create_with_retry('untouched')}"
    assert [server.get(path).status for _ in range(2)] == [200, 200]
    tries = 0
    with Server(primary.url("catalogue"), **TIMEOUT_SETTINGS) as other:
        writer = RetryingClient(other, client.token)

        def is_still_served() -> bool:
            """Make no request between write and outage. How soon the server learns of the write is not tested here."""
            nonlocal tries
            writer.create_with_retry("elsewhere")
            time.sleep(0.1 * (tries := tries + 1))
            proxy.is_flowing.clear()
            try:
                return server.get(path).status == 200
            finally:
                proxy.is_flowing.set()

        wait_until(is_still_served)


def test_a_batch_may_exceed_the_statement_timeout_without_blocking_readers(
    server: Server, client: RetryingClient, primary: PostgresServer
) -> None:
    """One row in sixteen takes a moment; the whole batch takes longer than the statement timeout."""
    slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END'"
    trigger = "CREATE TRIGGER slow BEFORE INSERT ON record FOR EACH ROW WHEN (NEW.id LIKE '%0') EXECUTE FUNCTION slow()"
    batch = "".join(
        json.dumps({"op": "create", "collection": "task", "record": {"name": f"slow {number}"}}) + "\n"
        for number in range(4_000)
    )
    read_path = f"/api/v1/task/{client.create_with_retry('read meanwhile')}"

    def succeeds_beside_readers() -> bool:
        """A statement of a busy server may take too long: this is one of many attempts."""
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(client.send, "POST", "/api/v1/batch", batch, Content_Type="application/x-ndjson")
            statuses = {server.get(read_path).status}
            while not sending.done():
                statuses.add(server.get(read_path).status)
        return statuses == {sending.result().status} == {200}

    for statement in (slow, trigger):
        primary.execute(statement, "catalogue")
    try:
        wait_until(succeeds_beside_readers)
    finally:
        primary.execute("DROP FUNCTION slow() CASCADE", "catalogue")


def test_a_write_whose_response_was_lost_is_not_repeated_by_a_retry(
    client: RetryingClient, proxy: PostgresProxy
) -> None:
    proxy.cut_after_commit(b"unheard task")
    assert client.create("unheard task", "unheard").status == 503
    assert proxy.was_cut.wait(DEADLINE_SECONDS)
    wait_until(lambda: len(client.list_by_prefix("unheard")) == 1)
    second_response = client.create("unheard task", "unheard")
    assert second_response.status == 201
    assert list(client.list_by_prefix("unheard")) == [second_response.json["id"]]


def test_blocked_readers_get_a_503_while_cached_responses_are_served(
    server: Server, client: RetryingClient, primary: PostgresServer
) -> None:
    assert server.get(TASK_LIST_PATH).status == 200
    with psycopg.connect(primary.url("catalogue")) as blocker:
        blocker.execute("LOCK TABLE record, change IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(30) as pool:
            responses = list(pool.map(server.get, (f"/api/v1/task/tsk_{number}" for number in range(30))))
        assert {response.status for response in responses} == {503}
        assert server.get(TASK_LIST_PATH).status == 200
    assert server.get("/api/v1/task/tsk_1").status == 404
    client.create_with_retry("after the pool")


def test_a_server_without_free_connections_serves_cached_responses_and_recovers(
    server: Server, client: RetryingClient, primary: PostgresServer
) -> None:
    assert server.get(TASK_LIST_PATH).status == 200
    connections = []
    try:
        with pytest.raises(psycopg.OperationalError, match=r"too many|remaining connection"):
            while True:
                connections.append(psycopg.connect(primary.url("catalogue")))
        assert server.get(TASK_LIST_PATH).status == 200
    finally:
        for connection in connections:
            connection.close()
    client.create_with_retry("after the crowd")


def test_a_node_killed_during_a_batch_leaves_no_changes_and_blocks_no_other_node(
    server: Server, client: RetryingClient, primary: PostgresServer, tmp_path: Path
) -> None:
    batch = "".join(
        json.dumps({"op": "create", "collection": "task", "record": {"name": f"batch {number}"}}) + "\n"
        for number in range(3_000)
    )

    def send_batch(client: RetryingClient) -> HttpResponse:
        return client.send(
            "POST", "/api/v1/batch", batch, Content_Type="application/x-ndjson", Idempotency_Key="a batch"
        )

    with Server(primary.url("catalogue"), LEXARIUM_DATABASE_SECONDS="300") as node, ThreadPoolExecutor(1) as pool:
        other = RetryingClient(node, client.token)
        before = primary.execute("SELECT revision FROM catalogue", "catalogue")
        with psycopg.connect(primary.url("catalogue")) as blocker:
            blocker.execute("LOCK TABLE record IN EXCLUSIVE MODE")
            sending = pool.submit(send_batch, other)
            wait_until(lambda: primary.execute("SELECT 1 FROM pg_locks WHERE NOT granted", "catalogue"))
            os.kill(node.pid, signal.SIGKILL)
            with pytest.raises((OSError, HTTPException)):
                sending.result()
    assert primary.execute("SELECT revision FROM catalogue", "catalogue") == before
    wait_until(lambda: client.create("after the batch", "after the batch").status == 201)
    assert client.list_by_prefix("batch") == {}
    responses = [send_batch(client), send_batch(client)]
    assert [response.status for response in responses] == [200, 200]
    assert responses[0].body == responses[1].body
    assert len(client.list_by_prefix("batch")) == 3_000
