"""What a server does while its PostgreSQL is away, and after: one server survives all of this without a restart."""

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

from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.postgres import Postgres
from tests.proxy import Proxy
from tests.server import Answer, Server
from tests.waiting import DEADLINE, wait_until
from tests.writers import LIST, Client, Load

pytestmark = pytest.mark.full

PATIENCE = {"LEXARIUM_DATABASE_SECONDS": "2"}


@pytest.fixture(scope="module")
def primary() -> Iterator[Postgres]:
    with Postgres().make() as running:
        yield running.start()


@pytest.fixture(scope="module")
def network(primary: Postgres) -> Iterator[Proxy]:
    with Proxy(primary.new_database("catalogue")) as running:
        yield running


@pytest.fixture(scope="module")
def server(primary: Postgres, network: Proxy) -> Iterator[Server]:
    """The one server that has to get through everything."""
    with Server(network.url, **PATIENCE) as running:
        wait_until(lambda: running.get("/readyz").status == 200)
        yield running
    database = Database(primary.url("catalogue"))
    assert check(database).problems == []
    database.close()


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server)


def test_a_primary_that_is_killed_and_restarted_under_load_loses_nothing_and_does_nothing_twice(
    server: Server, client: Client, primary: Postgres
) -> None:
    load = Load(client, "killed")
    with load.going_on():
        primary.kill()
        refused = client.create("killed, refused", "a key of its own")
        assert refused.status == 503
        assert refused.headers["retry-after"]
        assert refused.json["title"] == "Service Unavailable"
        assert server.get("/healthz").status == 200
        assert server.get("/readyz").status == 503
        primary.start()
        load.wait_for_more()
    wait_until(lambda: server.get("/readyz").status == 200)
    assert client.named("killed") == load.acknowledged


def refused_at_once(server: Server) -> bool:
    """Whether nobody waits for the database: far sooner than it is waited for, in one try of many."""
    began = time.monotonic()
    return server.get("/api/v1/task/tsk_none").status == 503 and time.monotonic() - began < 1


def test_while_the_network_is_stopped_finished_answers_are_served_and_all_else_is_refused(
    server: Server, client: Client, network: Proxy
) -> None:
    kept = client.create_at_last("kept")
    path = f"{LIST}?id={kept}"
    assert [server.get(each).status for each in (LIST, path, path)] == [200, 200, 200]
    network.flowing.clear()
    try:
        assert server.get(LIST).status == 200
        assert server.get(path).status == 200
        with ThreadPoolExecutor(30) as pool:
            unread = [pool.submit(server.get, f"{LIST}?id=tsk_{number}") for number in range(20)]
            unwritten = [pool.submit(client.create, "stopped", "the same key") for _ in range(9)]
            answers = [each.result() for each in unread + unwritten]
        assert {answer.status for answer in answers} == {503}
        assert all(answer.headers["retry-after"] for answer in answers)
        assert server.get(LIST).status == 200
        wait_until(refused_at_once, server)
    finally:
        network.flowing.set()
    wait_until(lambda: client.create("stopped", "the same key").status == 201)
    assert list(client.named("stopped").values()) == ["stopped"]


def test_an_outage_is_logged_once_a_second_not_with_every_answer(primary: Postgres) -> None:
    """A log that nobody can keep up with would hold the server up."""
    with Proxy(primary.new_database("logged")) as network, Server(network.url, **PATIENCE) as server:
        wait_until(lambda: server.get("/readyz").status == 200)
        network.flowing.clear()
        began = time.monotonic()
        with ThreadPoolExecutor(30) as pool:
            answers = list(pool.map(server.get, (f"/api/v1/task/tsk_{number}" for number in range(300))))
        took = time.monotonic() - began
        network.flowing.set()
    assert {answer.status for answer in answers} == {503}
    assert 0 < server.log.count('"lexarium.web.problems"') <= took + 1


def test_what_others_have_not_touched_is_served_on_though_they_have_written_since_it_was_asked_for(
    server: Server, client: Client, primary: Postgres, network: Proxy
) -> None:
    path = f"{LIST}?id={client.create_at_last('untouched')}"
    assert [server.get(path).status for _ in range(2)] == [200, 200]
    tries = 0
    with Server(primary.url("catalogue"), **PATIENCE) as other:
        writer = Client(other, client.token)

        def served_on() -> bool:
            """Nobody asks between the write and the outage; how long it takes to hear of the write is not the point."""
            nonlocal tries
            writer.create_at_last("elsewhere")
            time.sleep(0.1 * (tries := tries + 1))
            network.flowing.clear()
            try:
                return server.get(path).status == 200
            finally:
                network.flowing.set()

        wait_until(served_on)


def test_a_batch_may_take_longer_than_a_statement_and_others_read_on_meanwhile(
    server: Server, client: Client, primary: Postgres
) -> None:
    """Every row takes a little, all of them together more than the server is waited for."""
    slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END'"
    trigger = "CREATE TRIGGER slow BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION slow()"
    batch = "".join(
        json.dumps({"op": "create", "collection": "task", "record": {"name": f"slow {number}"}}) + "\n"
        for number in range(4_000)
    )
    read = f"/api/v1/task/{client.create_at_last('read meanwhile')}"
    for statement in (slow, trigger):
        primary.execute(statement, "catalogue")
    try:
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(client.send, "POST", "/api/v1/batch", batch, Content_Type="application/x-ndjson")
            meanwhile = {server.get(read).status}
            while not sending.done():
                meanwhile.add(server.get(read).status)
        assert sending.result().status == 200
        assert meanwhile == {200}
    finally:
        primary.execute("DROP FUNCTION slow() CASCADE", "catalogue")


def test_a_write_whose_answer_was_lost_is_done_once_when_it_is_sent_again(client: Client, network: Proxy) -> None:
    network.cut_after_commit_of(b"unheard task")
    assert client.create("unheard task", "unheard").status == 503
    assert network.cut.wait(DEADLINE)
    wait_until(lambda: len(client.named("unheard")) == 1)
    again = client.create("unheard task", "unheard")
    assert again.status == 201
    assert list(client.named("unheard")) == [again.json["id"]]


def test_readers_that_cannot_get_on_are_refused_others_are_served_and_it_recovers(
    server: Server, client: Client, primary: Postgres
) -> None:
    assert server.get(LIST).status == 200
    with psycopg.connect(primary.url("catalogue")) as blocker:
        blocker.execute("LOCK TABLE record, change IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(30) as pool:
            answers = list(pool.map(server.get, (f"/api/v1/task/tsk_{number}" for number in range(30))))
        assert {answer.status for answer in answers} == {503}
        assert server.get(LIST).status == 200
    assert server.get("/api/v1/task/tsk_1").status == 404
    client.create_at_last("after the pool")


def test_a_server_without_connections_left_goes_on_serving_what_is_finished_and_recovers(
    server: Server, client: Client, primary: Postgres
) -> None:
    assert server.get(LIST).status == 200
    held = []
    try:
        with pytest.raises(psycopg.OperationalError, match=r"too many|remaining connection"):
            while True:
                held.append(psycopg.connect(primary.url("catalogue")))
        assert server.get(LIST).status == 200
    finally:
        for each in held:
            each.close()
    client.create_at_last("after the crowd")


def test_a_node_that_is_killed_in_the_middle_of_a_batch_leaves_nothing_and_holds_up_nobody(
    server: Server, client: Client, primary: Postgres, tmp_path: Path
) -> None:
    batch = "".join(
        json.dumps({"op": "create", "collection": "task", "record": {"name": f"batch {number}"}}) + "\n"
        for number in range(3_000)
    )

    def send(to: Client) -> Answer:
        return to.send("POST", "/api/v1/batch", batch, Content_Type="application/x-ndjson", Idempotency_Key="a batch")

    with Server(primary.url("catalogue"), **PATIENCE) as node, ThreadPoolExecutor(1) as pool:
        other = Client(node, client.token)
        before = primary.execute("SELECT revision FROM catalogue", "catalogue")
        sending = pool.submit(send, other)
        wait_until(lambda: _writing(primary))
        os.kill(node.pid, signal.SIGKILL)
        with pytest.raises((OSError, HTTPException)):
            sending.result()
    assert primary.execute("SELECT revision FROM catalogue", "catalogue") == before
    assert client.create("after the batch", "after the batch").status == 201
    assert client.named("batch") == {}
    answers = [send(client), send(client)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    assert len(client.named("batch")) == 3_000


def _writing(primary: Postgres) -> bool:
    """Whether some process holds the catalogue's lock."""
    return bool(
        primary.execute(
            "SELECT 1 FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
            "WHERE relname = 'catalogue' AND mode = 'RowShareLock'",
            "catalogue",
        )
    )
