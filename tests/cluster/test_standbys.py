"""Reads from a hot standby never go back in time, and continue without the primary."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from lexarium.domain.account import Role
from lexarium.domain.errors import DatabaseUnavailable
from lexarium.services.access.authentication import Authenticator
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.queries import list_changes_newest
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.postgres import HOST, PostgresServer
from tests.support.postgres_proxy import PostgresProxy
from tests.support.server import Server, run_cli
from tests.support.write_load import TASK_LIST_PATH, RetryingClient, WriteLoad, list_task_ids

pytestmark = pytest.mark.full

NAME = "catalogue"


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    """Primary with synchronous replication."""
    with PostgresServer().init_cluster() as running:
        running.start()
        running.create_database(NAME)
        yield running


@pytest.fixture(scope="module")
def standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    with PostgresServer().init_standby(primary) as running:
        running.start()
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.execute("SELECT pg_reload_conf()")
        wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        yield running


@pytest.fixture(scope="module")
def server(primary: PostgresServer, standby: PostgresServer) -> Iterator[Server]:
    """Node of two processes with the URLs of both servers."""
    hosts = f"{HOST}:{primary.port},{HOST}:{standby.port}"
    url = f"postgresql://postgres@{hosts}/{NAME}"
    # Without target_session_attrs: the node looks for the primary itself, and for a standby to read from.
    variables = {"LEXARIUM_DATABASE_READ": url, "LEXARIUM_DATABASE_SECONDS": "3"}
    with Server(url, "--workers", "2", **variables) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def client(server: Server) -> RetryingClient:
    return RetryingClient(server)


@pytest.fixture
def paused_standby(standby: PostgresServer) -> Iterator[PostgresServer]:
    """Standby that receives everything but replays nothing."""
    standby.execute("SELECT pg_wal_replay_pause()")
    wait_until(lambda: standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    yield standby
    standby.execute("SELECT pg_wal_replay_resume()")


def count_readers(standby: PostgresServer) -> int:
    """Return the number of connections to the catalogue on a standby."""
    count: int = standby.execute(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{NAME}'")[0][0]
    return count


def list_revisions(server: Server, path: str, times: int = 10) -> list[int]:
    """Return the revisions of repeated responses, which may come from either process."""
    return [int(server.get(path).headers["etag"].split("-")[1]) for _ in range(times)]


def test_reads_are_sent_to_the_standby(server: Server, client: RetryingClient, standby: PostgresServer) -> None:
    record_id = client.create_with_retry("read from the standby")
    wait_until(lambda: server.get(f"{TASK_LIST_PATH}?id={record_id}").status == 200 and count_readers(standby) > 0)


def test_a_node_never_serves_older_data_than_it_wrote_or_served(
    server: Server, client: RetryingClient, paused_standby: PostgresServer
) -> None:
    for number in range(5):
        record_id = client.create_with_retry(f"written while the standby lags {number}")
        assert all(server.get(f"{TASK_LIST_PATH}?id={record_id}").status == 200 for _ in range(4))
        assert all(server.get(f"/api/v1/task/{record_id}").status == 200 for _ in range(4))
        assert record_id in list_task_ids(server)
        revisions = list_revisions(server, TASK_LIST_PATH)
        assert revisions == sorted(revisions)


def test_lists_of_proposals_never_go_back_in_time(
    server: Server, client: RetryingClient, paused_standby: PostgresServer
) -> None:
    contributor = RetryingClient(server, server.create_token("contributor"))
    proposal_response = contributor.send("POST", "/api/v1/task", json.dumps({"name": "only proposed"}))
    assert proposal_response.status == 202
    proposal_lists = [client.send("GET", "/api/v1/proposals").json["items"] for _ in range(6)]
    assert all(proposal_response.json["id"] in {proposal["id"] for proposal in items} for items in proposal_lists)


def test_a_token_created_on_another_node_is_accepted_while_the_standby_lags(
    server: Server, primary: PostgresServer, paused_standby: PostgresServer
) -> None:
    secret = server.create_token("curator")
    # A node without a known position would accept the state of the standby.
    node = Database(primary.url(NAME), standbys=paused_standby.url(NAME))
    assert Authenticator(node).authenticate(f"Bearer {secret}").role == Role.CURATOR
    node.close()


def test_a_feed_position_from_another_node_is_accepted_while_the_standby_lags(
    server: Server, client: RetryingClient, primary: PostgresServer, paused_standby: PostgresServer
) -> None:
    client.create_with_retry("told elsewhere")
    last = server.get("/api/v1").json["revision"]
    node = Database(primary.url(NAME), standbys=paused_standby.url(NAME))  # it knows no position yet
    assert list_changes_newest(node, last, 10) == []
    node.close()


def test_without_the_primary_a_standby_serves_nothing_older_than_the_node_has_seen(
    server: Server, client: RetryingClient, primary: PostgresServer, standby: PostgresServer
) -> None:
    old_id, other_id = (client.create_with_retry(name) for name in ("an old one", "another old one"))
    standby.execute("SELECT pg_wal_replay_pause()")
    record_id = client.create_with_retry("the last before the end")
    assert server.get(f"{TASK_LIST_PATH}?id={record_id}").status == 200
    primary.kill()
    # The standby has it but does not show it yet: an error is better than an old state.
    assert server.get(f"/api/v1/task/{old_id}").status == 503
    standby.execute("SELECT pg_wal_replay_resume()")
    wait_until(lambda: server.get(f"/api/v1/task/{old_id}").status == 200)
    assert server.get(f"/api/v1/task/{record_id}").status == 200
    assert server.get(f"{TASK_LIST_PATH}?id={other_id}").status == 200
    response = client.create("nobody takes this", "nobody takes this")
    assert response.status == 503
    assert response.headers["retry-after"]
    primary.start()
    wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
    client.create_with_retry("after the end")


def test_a_node_does_not_wait_for_an_unresponsive_standby(
    client: RetryingClient, primary: PostgresServer, standby: PostgresServer
) -> None:
    """The statement timeout is far longer than the client of these tests waits."""
    record_id = client.create_with_retry("read before the silence")
    with PostgresProxy(standby.url(NAME)) as network:
        variables = {
            "LEXARIUM_DATABASE_READ": network.url,
            "LEXARIUM_DATABASE_SECONDS": "300",
            "LEXARIUM_CACHE_MB": "0",  # so that each request reads from the standby
        }
        with Server(primary.url(NAME), **variables) as node:
            wait_until(lambda: node.get(f"/api/v1/task/{record_id}").status == 200 and count_readers(standby) > 0)
            network.is_flowing.clear()
            with ThreadPoolExecutor(12) as pool:
                responses = list(pool.map(node.get, [f"/api/v1/task/{record_id}"] * 24))
            assert {response.status for response in responses} == {200}
            assert "Cannot read from standbys" in node.stop()


def test_readers_of_an_unresponsive_standby_do_not_delay_shutdown(
    primary: PostgresServer, standby: PostgresServer
) -> None:
    with PostgresProxy(standby.url(NAME)) as network, ThreadPoolExecutor(1) as pool:
        node = Database(primary.url(NAME), standbys=network.url, statement_timeout=300)

        def sleep_on_standby() -> bool:
            """Return False at once while reads still go to the primary."""
            with node.read() as snapshot:
                is_standby = bool(snapshot.execute(text("SELECT pg_is_in_recovery()")).scalar_one())
                if is_standby:
                    snapshot.execute(text("SELECT pg_sleep(200)"))
                return is_standby

        reading = pool.submit(wait_until, sleep_on_standby)
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(200)'"
        wait_until(lambda: standby.execute(sleeping) == [(1,)])
        network.is_flowing.clear()
        node.stop_using_standbys()
        with pytest.raises(DatabaseUnavailable):
            reading.result(DEADLINE_SECONDS)
        with node.read() as snapshot:  # from now on on the primary
            assert not snapshot.execute(text("SELECT pg_is_in_recovery()")).scalar_one()
        node.close()


@pytest.mark.parametrize("code", ["XX001", "53100"])
def test_reads_move_to_the_primary_if_the_standby_is_damaged_or_full(
    primary: PostgresServer, standby: PostgresServer, code: str
) -> None:
    node = Database(primary.url(NAME), standbys=standby.url(NAME), statement_timeout=300)

    def is_on_standby() -> bool:
        with node.read() as snapshot:
            return bool(snapshot.execute(text("SELECT pg_is_in_recovery()")).scalar_one())

    wait_until(is_on_standby)
    with pytest.raises(DatabaseUnavailable), node.read() as snapshot:
        snapshot.execute(text(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$"))
    assert not is_on_standby()
    node.refresh_damage()
    node.close()


def test_a_standby_with_another_catalogue_is_not_read_and_is_logged(
    client: RetryingClient, primary: PostgresServer
) -> None:
    other_url = primary.create_database("other")
    open_database(other_url).close()
    record_id = client.create_with_retry("not there")
    with Server(primary.url(NAME), LEXARIUM_DATABASE_READ=other_url) as node:
        node.wait_until_ready()
        assert all(node.get(f"/api/v1/task/{record_id}").status == 200 for _ in range(5))
        assert node.stop().count("has another catalogue than LEXARIUM_DATABASE") == 1


def test_reads_continue_without_a_standby(
    server: Server, client: RetryingClient, primary: PostgresServer, standby: PostgresServer
) -> None:
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
    primary.execute("SELECT pg_reload_conf()")
    standby.kill()
    record_id = client.create_with_retry("without a standby")
    assert server.get(f"/api/v1/task/{record_id}").status == 200
    standby.start()
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.execute("SELECT pg_reload_conf()")
    wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])


def test_a_promotion_under_load_loses_and_duplicates_no_write(
    server: Server, client: RetryingClient, primary: PostgresServer, standby: PostgresServer
) -> None:
    load = WriteLoad(client, "promoted")
    with load.run():
        primary.kill()
        standby.promote()
        load.wait_for_more()
    assert client.list_by_prefix("promoted") == load.acknowledged
    database = Database(standby.url(NAME))
    assert check_database(database).problems == []
    database.close()


def test_after_a_promotion_lost_writes_are_not_served_and_their_etags_are_not_reused(
    client: RetryingClient, primary: PostgresServer, standby: PostgresServer
) -> None:
    """Promote an asynchronous standby that lacks writes."""
    if standby.execute("SELECT pg_is_in_recovery()") == [(True,)]:
        primary.kill()
        standby.promote()
    with PostgresServer().init_standby(standby) as second:
        second.start()
        known_id = client.create_with_retry("known to both")
        wait_until(lambda: count_records(second) == count_records(standby))
        second.execute("ALTER SYSTEM SET primary_conninfo = ''")
        second.execute("SELECT pg_reload_conf()")
        wait_until(lambda: standby.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)])
        hosts = f"{HOST}:{standby.port},{HOST}:{second.port}"
        with Server(f"postgresql://postgres@{hosts}/{NAME}") as node:
            node.wait_until_ready()
            writer = RetryingClient(node, client.token)
            lost_ids = [writer.create_with_retry(f"evanescent {number}") for number in range(3)]
            wait_until(lambda: all(node.finds(f"evanescent {number}") for number in range(3)))
            before = node.get(TASK_LIST_PATH)
            standby.kill()
            second.promote()
            epoch = before.headers["etag"].split("-")[0]
            # A 503 has no ETag.
            wait_until(lambda: node.get(TASK_LIST_PATH).headers.get("etag", epoch).split("-")[0] != epoch)
            after = list_task_ids(node)
            assert known_id in after
            assert not after & set(lost_ids)
            node.wait_until_ready()
            assert node.get("/api/v1/search?q=evanescent").json["hits"] == []
            rewritten_ids = [writer.create_with_retry(f"again {number}") for number in range(3)]
            assert list_task_ids(node) >= set(rewritten_ids)
            assert node.get(TASK_LIST_PATH, If_None_Match=before.headers["etag"]).status == 200


def count_records(postgres: PostgresServer) -> int:
    count: int = postgres.execute("SELECT count(*) FROM record", NAME)[0][0]
    return count


@pytest.mark.parametrize(
    ("engine", "read_url", "message"),
    [
        ("sqlite", "postgresql://localhost/any", "Standbys need PostgreSQL"),
        ("postgres", "sqlite:///any.db", "Standbys need PostgreSQL"),
        ("postgres", "postgresql://localhost/any?nonsense=1", "Invalid PostgreSQL URL"),
    ],
)
def test_invalid_standbys_are_rejected_at_start(
    new_url: DatabaseUrlFactory, engine: str, read_url: str, message: str
) -> None:
    result = run_cli("serve", "--port", "0", "--database", new_url(engine), LEXARIUM_DATABASE_READ=read_url)
    assert result.returncode == 1
    assert message in " ".join(result.stderr.split())
    assert "Serving" not in result.stderr
