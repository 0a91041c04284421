"""Promotion of a standby that lacks writes, and return of the old primary."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.polling import wait_until
from tests.support.postgres import HOST, PostgresServer
from tests.support.server import Server
from tests.support.write_load import TASK_LIST_PATH, RetryingClient, list_task_ids

pytestmark = pytest.mark.full

NAME = "catalogue"
DEPLOY = Path(__file__).parents[2] / "deploy"
SEARCH = "/api/v1/search?q="


class ReplicationPair(NamedTuple):
    """A primary and an asynchronous standby."""

    primary: PostgresServer
    standby: PostgresServer

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{HOST}:{self.primary.port},{HOST}:{self.standby.port}/{NAME}"

    def stop_replication(self) -> None:
        """Wait until the standby has caught up, then stop replication."""
        wait_until(lambda: get_position(self.primary) == get_position(self.standby))
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self.primary.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)])


@pytest.fixture
def pair() -> Iterator[ReplicationPair]:
    with PostgresServer().init_cluster() as primary:
        primary.start()
        primary.create_database(NAME)
        with PostgresServer().init_standby(primary) as standby:
            yield ReplicationPair(primary, standby.start())


@pytest.fixture
def deployed_pair() -> Iterator[ReplicationPair]:
    """The two servers of the compose file, set up by its scripts, with synchronous replication."""
    with PostgresServer().init_cluster() as primary:
        primary.start()
        primary.create_database(NAME)
        connection_settings = {"PGHOSTADDR": HOST, "PGPORT": str(primary.port), "POSTGRES_USER": "postgres"}
        primary.run_script(DEPLOY / "replicate.sh", POSTGRES_DB=NAME, PGHOST=HOST, **connection_settings)
        primary.stop()
        primary.start()
        with PostgresServer() as standby:
            standby.run_script(DEPLOY / "follow.sh", **connection_settings)
            standby.start()
            wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
            yield ReplicationPair(primary, standby)


def get_position(postgres: PostgresServer) -> list[tuple[str, int]]:
    return postgres.execute("SELECT epoch, writes FROM catalogue", NAME)


def list_names(postgres: PostgresServer) -> set[str]:
    return {name for (name,) in postgres.execute("SELECT name FROM record", NAME)}


def search_names(node: Server, query: str) -> list[str]:
    response = node.get(SEARCH + query)
    return [hit["name"] for hit in response.json["hits"]] if response.status == 200 else []


def test_writes_right_after_a_loss_of_writes_do_not_hide_the_loss(pair: ReplicationPair) -> None:
    """As many records are written as were lost, so that all counts are equal."""
    with Server(pair.url) as node, Server(pair.url) as reader:
        for server in (node, reader):
            server.wait_until_ready()
        client = RetryingClient(node)
        client.create_with_retry("known to both")
        pair.stop_replication()
        lost_ids = [client.create_with_retry(f"evanescent {number}") for number in range(3)]
        for server in (node, reader):
            wait_until(lambda server=server: len(search_names(server, "evanescent")) == 3)
        before = node.get(TASK_LIST_PATH)
        pair.primary.kill()
        pair.standby.promote()
        rewritten_ids = [client.create_with_retry(f"again {number}") for number in range(3)]
        for server in (node, reader):
            wait_until(lambda server=server: list_task_ids(server) >= set(rewritten_ids))
            assert not set(lost_ids) & list_task_ids(server)
            assert server.get(TASK_LIST_PATH, If_None_Match=before.headers["etag"]).status == 200
            assert [server.get(f"{TASK_LIST_PATH}?id={lost_id}").status for lost_id in lost_ids] == [404, 404, 404]
            wait_until(lambda server=server: len(search_names(server, "again")) == 3)
            assert search_names(server, "evanescent") == []
    assert "lost writes; starting" in node.log + reader.log  # The first to notice says so.


def test_a_reader_detects_a_loss_of_writes_that_the_writer_has_not_seen(pair: ReplicationPair) -> None:
    with Server(pair.url) as reader:
        reader.wait_until_ready()
        client = RetryingClient(reader)
        client.create_with_retry("known to both")
        pair.stop_replication()
        lost_id = client.create_with_retry("evanescent")
        assert lost_id in list_task_ids(reader)
        pair.primary.kill()
        reader.pause()
        pair.standby.promote()
        with Server(pair.url) as writer:
            later_ids = [
                RetryingClient(writer, client.token).create_with_retry(f"later {number}") for number in range(5)
            ]
        reader.resume()
        wait_until(lambda: list_task_ids(reader) >= set(later_ids))
        assert lost_id not in list_task_ids(reader)
    assert "lost writes; starting" in reader.log


def test_a_returning_old_primary_receives_no_writes(pair: ReplicationPair) -> None:
    with Server(pair.url) as node:
        node.wait_until_ready()
        client = RetryingClient(node)
        client.create_with_retry("known to both")
        pair.stop_replication()
        pair.primary.kill()
        pair.standby.promote()
        client.create_with_retry("on the new primary")
        pair.primary.start()
        pair.standby.stop()
        response = client.create("while the new one restarts", "a key")
        assert response.status == 503
        pair.standby.start()
        client.create_with_retry("after its restart")
        with Server(pair.url) as joining:
            RetryingClient(joining, client.token).create_with_retry("by a node that has seen nothing")
    assert list_names(pair.primary) == {"known to both"}
    assert list_names(pair.standby) == {
        "known to both",
        "on the new primary",
        "after its restart",
        "by a node that has seen nothing",
    }
    assert "is an old primary" in node.log


def test_the_deployed_cluster_loses_no_writes_when_its_standby_is_promoted(
    deployed_pair: ReplicationPair,
) -> None:
    with Server(deployed_pair.url) as node:
        node.wait_until_ready()
        client = RetryingClient(node)
        before = [client.create_with_retry(f"before {number}") for number in range(3)]
        response = node.get(TASK_LIST_PATH)
        deployed_pair.primary.kill()
        deployed_pair.standby.promote()
        client.create_with_retry("after")
        assert set(before) < set(client.list_by_prefix(""))
        # Nothing was lost, so cached responses of the old primary stay valid.
        assert node.get(TASK_LIST_PATH).headers["etag"].split("-")[0] == response.headers["etag"].split("-")[0]
    assert "lost writes; starting" not in node.log
