"""Reading from a hot standby: never the past; and going on where the primary is gone."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from lexarium.domain.accounts import Role
from lexarium.domain.errors import Unavailable
from lexarium.service.access import Callers
from lexarium.service.checking import check
from lexarium.service.looking import changes_after
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.databases import NewUrl
from tests.postgres import HOST, Postgres
from tests.proxy import Proxy
from tests.server import Server, run
from tests.waiting import DEADLINE, wait_until
from tests.writers import LIST, Client, Load

pytestmark = pytest.mark.full

NAME = "catalogue"


@pytest.fixture(scope="module")
def primary() -> Iterator[Postgres]:
    """Waits for its standby to have what it commits."""
    with Postgres().make() as running:
        running.start()
        running.new_database(NAME)
        yield running


@pytest.fixture(scope="module")
def standby(primary: Postgres) -> Iterator[Postgres]:
    with Postgres().make_standby_of(primary) as running:
        running.start()
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.execute("SELECT pg_reload_conf()")
        wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        yield running


@pytest.fixture(scope="module")
def server(primary: Postgres, standby: Postgres) -> Iterator[Server]:
    """A node of two processes that knows both: the primary wherever it is, and standbys to read from."""
    hosts = f"{HOST}:{primary.port},{HOST}:{standby.port}"
    url = f"postgresql://postgres@{hosts}/{NAME}"
    # No target_session_attrs: of several hosts the primary is looked for, and for reads a standby.
    variables = {"LEXARIUM_DATABASE_READ": url, "LEXARIUM_DATABASE_SECONDS": "3"}
    with Server(url, "--workers", "2", **variables) as running:
        wait_until(lambda: running.get("/readyz").status == 200)
        yield running


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server)


@pytest.fixture
def paused(standby: Postgres) -> Iterator[Postgres]:
    """The standby, which receives everything and shows nothing new."""
    standby.execute("SELECT pg_wal_replay_pause()")
    wait_until(lambda: standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    yield standby
    standby.execute("SELECT pg_wal_replay_resume()")


def readers(standby: Postgres) -> int:
    """How many processes are connected to read the catalogue."""
    count: int = standby.execute(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{NAME}'")[0][0]
    return count


def seen_in_order(server: Server, path: str, times: int = 10) -> list[int]:
    """The revisions at which a node answers, one after another: any of its processes may be asked."""
    return [int(server.get(path).headers["etag"].split("-")[1]) for _ in range(times)]


def test_reads_go_to_the_standby(server: Server, client: Client, standby: Postgres) -> None:
    made = client.create_at_last("read from the standby")
    wait_until(lambda: server.get(f"{LIST}?id={made}").status == 200 and readers(standby) > 0)


def test_what_a_node_wrote_or_served_it_never_takes_back(server: Server, client: Client, paused: Postgres) -> None:
    for number in range(5):
        made = client.create_at_last(f"written while the standby lags {number}")
        assert all(server.get(f"{LIST}?id={made}").status == 200 for _ in range(4))
        assert all(server.get(f"/api/v1/task/{made}").status == 200 for _ in range(4))
        assert made in {each["id"] for each in server.get(LIST).json}
        revisions = seen_in_order(server, LIST)
        assert revisions == sorted(revisions)


def test_what_is_in_no_record_is_not_taken_back_either(server: Server, client: Client, paused: Postgres) -> None:
    contributor = Client(server, server.token("contributor"))
    proposed = contributor.send("POST", "/api/v1/task", json.dumps({"name": "only proposed"}))
    assert proposed.status == 202
    listed = [client.send("GET", "/api/v1/proposals").json["items"] for _ in range(6)]
    assert all(proposed.json["id"] in {each["id"] for each in items} for items in listed)


def test_a_token_that_another_node_has_just_made_is_good_here_though_the_standby_lags(
    server: Server, primary: Postgres, paused: Postgres
) -> None:
    secret = server.token("curator")
    # A node that has heard of nothing yet, and so would take what the standby has.
    node = Database(primary.url(NAME), standbys=paused.url(NAME))
    assert Callers(node).identify(f"Bearer {secret}").role == Role.CURATOR
    node.close()


def test_a_place_in_the_feed_that_another_node_told_is_known_here_though_the_standby_lags(
    server: Server, client: Client, primary: Postgres, paused: Postgres
) -> None:
    client.create_at_last("told elsewhere")
    last = server.get("/api/v1").json["revision"]
    node = Database(primary.url(NAME), standbys=paused.url(NAME))  # which has heard of nothing yet
    assert changes_after(node, last, 10) == []
    node.close()


def test_while_the_primary_is_gone_a_standby_serves_what_the_node_has_seen_or_nothing(
    server: Server, client: Client, primary: Postgres, standby: Postgres
) -> None:
    old, other = (client.create_at_last(name) for name in ("an old one", "another old one"))
    standby.execute("SELECT pg_wal_replay_pause()")
    made = client.create_at_last("the last before the end")
    assert server.get(f"{LIST}?id={made}").status == 200
    primary.kill()
    # The standby has it, but does not show it yet: rather nothing than the past.
    assert server.get(f"/api/v1/task/{old}").status == 503
    standby.execute("SELECT pg_wal_replay_resume()")
    wait_until(lambda: server.get(f"/api/v1/task/{old}").status == 200)
    assert server.get(f"/api/v1/task/{made}").status == 200
    assert server.get(f"{LIST}?id={other}").status == 200
    refused = client.create("nobody takes this", "nobody takes this")
    assert refused.status == 503
    assert refused.headers["retry-after"]
    primary.start()
    wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
    client.create_at_last("after the end")


def test_a_standby_that_is_silent_is_not_waited_for(client: Client, primary: Postgres, standby: Postgres) -> None:
    """However long a statement may take: far longer than a client of these tests waits."""
    made = client.create_at_last("read before the silence")
    with Proxy(standby.url(NAME)) as network:
        variables = {"LEXARIUM_DATABASE_READ": network.url, "LEXARIUM_DATABASE_SECONDS": "300"}
        with Server(primary.url(NAME), **variables) as node:
            wait_until(lambda: node.get(f"/api/v1/task/{made}").status == 200 and readers(standby) > 0)
            network.flowing.clear()
            with ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(node.get, [f"/api/v1/task/{made}"] * 24))
            assert {answer.status for answer in answers} == {200}
            assert "The standbys cannot be read now" in node.stop()


def test_who_reads_from_a_silent_standby_does_not_hold_up_the_end(primary: Postgres, standby: Postgres) -> None:
    with Proxy(standby.url(NAME)) as network, ThreadPoolExecutor(1) as pool:
        node = Database(primary.url(NAME), standbys=network.url, seconds=300)

        def read() -> None:
            with node.read() as snapshot:
                snapshot.execute(text("SELECT pg_sleep(200)"))

        reading = pool.submit(read)
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(200)'"
        wait_until(lambda: standby.execute(sleeping) == [(1,)])
        network.flowing.clear()
        node.leave_standbys()
        with pytest.raises(Unavailable):
            reading.result(DEADLINE)
        with node.read() as snapshot:  # from now on at the primary
            assert not snapshot.execute(text("SELECT pg_is_in_recovery()")).scalar_one()
        node.close()


@pytest.mark.parametrize("code", ["XX001", "53100"])
def test_a_standby_that_is_damaged_or_full_is_left_and_the_primary_served_on(
    primary: Postgres, standby: Postgres, code: str
) -> None:
    node = Database(primary.url(NAME), standbys=standby.url(NAME), seconds=300)

    def is_on_standby() -> bool:
        with node.read() as snapshot:
            return bool(snapshot.execute(text("SELECT pg_is_in_recovery()")).scalar_one())

    wait_until(is_on_standby)
    with pytest.raises(Unavailable), node.read() as snapshot:
        snapshot.execute(text(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$"))
    assert not is_on_standby()
    node.refresh_damage()
    node.close()


def test_another_catalogue_that_is_named_as_a_standby_is_not_read_and_that_is_said(
    client: Client, primary: Postgres
) -> None:
    other = primary.new_database("other")
    open_database(other).close()
    made = client.create_at_last("not there")
    with Server(primary.url(NAME), LEXARIUM_DATABASE_READ=other) as node:
        wait_until(lambda: node.get("/readyz").status == 200)
        assert all(node.get(f"/api/v1/task/{made}").status == 200 for _ in range(5))
        assert node.stop().count("holds another catalogue than LEXARIUM_DATABASE") == 1


def test_a_standby_that_is_gone_is_not_missed(
    server: Server, client: Client, primary: Postgres, standby: Postgres
) -> None:
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
    primary.execute("SELECT pg_reload_conf()")
    standby.kill()
    made = client.create_at_last("without a standby")
    assert server.get(f"/api/v1/task/{made}").status == 200
    standby.start()
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.execute("SELECT pg_reload_conf()")
    wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])


def test_after_a_promotion_under_load_nothing_is_lost_and_nothing_is_there_twice(
    server: Server, client: Client, primary: Postgres, standby: Postgres
) -> None:
    load = Load(client, "promoted")
    with load.going_on():
        primary.kill()
        standby.promote()
        load.wait_for_more()
    assert client.named("promoted") == load.acknowledged
    database = Database(standby.url(NAME))
    assert check(database).problems == []
    database.close()


def test_after_a_promotion_that_loses_writes_nothing_of_them_is_served_and_no_etag_comes_again(
    client: Client, primary: Postgres, standby: Postgres
) -> None:
    """A standby that nobody waits for is promoted before it has everything."""
    if standby.execute("SELECT pg_is_in_recovery()") == [(True,)]:
        primary.kill()
        standby.promote()
    with Postgres().make_standby_of(standby) as second:
        second.start()
        known = client.create_at_last("known to both")
        wait_until(lambda: records(second) == records(standby))
        second.execute("ALTER SYSTEM SET primary_conninfo = ''")
        second.execute("SELECT pg_reload_conf()")
        wait_until(lambda: standby.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)])
        hosts = f"{HOST}:{standby.port},{HOST}:{second.port}"
        with Server(f"postgresql://postgres@{hosts}/{NAME}") as node:
            wait_until(lambda: node.get("/readyz").status == 200)
            writer = Client(node, client.token)
            lost = [writer.create_at_last(f"evanescent {number}") for number in range(3)]
            wait_until(lambda: len(node.get("/api/v1/search?q=evanescent").json["hits"]) == 3)
            before = node.get(LIST)
            standby.kill()
            second.promote()
            wait_until(lambda: node.get(LIST).headers["etag"].split("-")[0] != before.headers["etag"].split("-")[0])
            after = {each["id"] for each in node.get(LIST).json}
            assert known in after
            assert not after & set(lost)
            wait_until(lambda: node.get("/readyz").status == 200)
            assert node.get("/api/v1/search?q=evanescent").json["hits"] == []
            again = [writer.create_at_last(f"again {number}") for number in range(3)]
            assert set(again) <= {each["id"] for each in node.get(LIST).json}
            assert node.get(LIST, If_None_Match=before.headers["etag"]).status == 200


def records(postgres: Postgres) -> int:
    count: int = postgres.execute("SELECT count(*) FROM record", NAME)[0][0]
    return count


@pytest.mark.parametrize(
    ("engine", "named", "said"),
    [
        ("sqlite", "postgresql://localhost/any", "Only a catalogue on PostgreSQL has standbys"),
        ("postgres", "sqlite:///any.db", "Only a catalogue on PostgreSQL has standbys"),
        ("postgres", "postgresql://localhost/any?nonsense=1", "is not one that PostgreSQL knows"),
    ],
)
def test_standbys_that_cannot_be_are_refused_before_anything_is_served(
    new_url: NewUrl, engine: str, named: str, said: str
) -> None:
    done = run("serve", "--port", "0", "--database", new_url(engine), LEXARIUM_DATABASE_READ=named)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())
    assert "Serving" not in done.stderr
