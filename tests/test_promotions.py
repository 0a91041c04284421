"""A standby is promoted that lacks writes, and an old primary comes back: a loss is told, and no other follows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgres import HOST, Postgres
from tests.server import Server
from tests.waiting import wait_until
from tests.writers import LIST, Client

pytestmark = pytest.mark.full

NAME = "catalogue"
DEPLOY = Path(__file__).parents[1] / "deploy"
SEARCH = "/api/v1/search?q="


class Pair(NamedTuple):
    """A primary, and a standby that nobody waits for."""

    primary: Postgres
    standby: Postgres

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{HOST}:{self.primary.port},{HOST}:{self.standby.port}/{NAME}"

    def part(self) -> None:
        """Wait until the standby has everything, and let it follow no longer."""
        wait_until(lambda: position(self.primary) == position(self.standby))
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self.primary.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)])


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Postgres().make() as primary:
        primary.start()
        primary.new_database(NAME)
        with Postgres().make_standby_of(primary) as standby:
            yield Pair(primary, standby.start())


@pytest.fixture
def deployed() -> Iterator[Pair]:
    """The two servers of the compose file, made by its own scripts: the primary waits for the standby."""
    with Postgres().make() as primary:
        primary.start()
        primary.new_database(NAME)
        there = {"PGHOSTADDR": HOST, "PGPORT": str(primary.port), "POSTGRES_USER": "postgres"}
        primary.run_script(DEPLOY / "replicate.sh", POSTGRES_DB=NAME, PGHOST=HOST, **there)
        primary.stop()
        primary.start()
        with Postgres() as standby:
            standby.run_script(DEPLOY / "follow.sh", **there)
            standby.start()
            wait_until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
            yield Pair(primary, standby)


def position(postgres: Postgres) -> list[tuple[str, int]]:
    return postgres.execute("SELECT epoch, writes FROM catalogue", NAME)


def names(postgres: Postgres) -> set[str]:
    return {name for (name,) in postgres.execute("SELECT name FROM record", NAME)}


def ready(node: Server) -> bool:
    return node.get("/readyz").status == 200


def hits(node: Server, query: str) -> list[str]:
    found = node.get(SEARCH + query)
    return [hit["name"] for hit in found.json["hits"]] if found.status == 200 else []


def test_writes_that_follow_a_loss_at_once_do_not_hide_it(pair: Pair) -> None:
    """As many are written again as were lost, so that every count is as it was."""
    with Server(pair.url) as node, Server(pair.url) as reader:
        for each in (node, reader):
            wait_until(ready, each)
        client = Client(node)
        client.create_at_last("known to both")
        pair.part()
        lost = [client.create_at_last(f"evanescent {number}") for number in range(3)]
        for each in (node, reader):
            wait_until(lambda each=each: len(hits(each, "evanescent")) == 3)
        before = node.get(LIST)
        pair.primary.kill()
        pair.standby.promote()
        again = [client.create_at_last(f"again {number}") for number in range(3)]
        for each in (node, reader):
            wait_until(lambda each=each: set(again) <= {one["id"] for one in each.get(LIST).json})
            assert not set(lost) & {one["id"] for one in each.get(LIST).json}
            assert each.get(LIST, If_None_Match=before.headers["etag"]).status == 200
            assert [each.get(f"{LIST}?id={one}").status for one in lost] == [404, 404, 404]
            wait_until(lambda each=each: len(hits(each, "again")) == 3)
            assert hits(each, "evanescent") == []
    assert "has lost writes" in node.log


def test_a_loss_is_noticed_by_a_reader_though_the_writer_has_seen_nothing_of_it(pair: Pair) -> None:
    with Server(pair.url) as reader:
        wait_until(ready, reader)
        client = Client(reader)
        client.create_at_last("known to both")
        pair.part()
        lost = client.create_at_last("evanescent")
        assert lost in {each["id"] for each in reader.get(LIST).json}
        pair.primary.kill()
        reader.pause()
        pair.standby.promote()
        with Server(pair.url) as writer:
            later = [Client(writer, client.token).create_at_last(f"later {number}") for number in range(5)]
        reader.resume()
        wait_until(lambda: set(later) <= {each["id"] for each in reader.get(LIST).json})
        assert lost not in {each["id"] for each in reader.get(LIST).json}
    assert "has lost writes" in reader.log


def test_an_old_primary_that_comes_back_is_not_written_to(pair: Pair) -> None:
    with Server(pair.url) as node:
        wait_until(ready, node)
        client = Client(node)
        client.create_at_last("known to both")
        pair.part()
        pair.primary.kill()
        pair.standby.promote()
        client.create_at_last("on the new primary")
        pair.primary.start()
        pair.standby.stop()
        refused = client.create("while the new one restarts", "a key")
        assert refused.status == 503
        pair.standby.start()
        client.create_at_last("after its restart")
        with Server(pair.url) as joining:
            Client(joining, client.token).create_at_last("by a node that has seen nothing")
    assert names(pair.primary) == {"known to both"}
    assert names(pair.standby) == {
        "known to both",
        "on the new primary",
        "after its restart",
        "by a node that has seen nothing",
    }
    assert "is an old primary" in node.log


def test_what_is_deployed_takes_writes_after_its_standby_was_promoted_and_has_lost_none(deployed: Pair) -> None:
    with Server(deployed.url) as node:
        wait_until(ready, node)
        client = Client(node)
        before = [client.create_at_last(f"before {number}") for number in range(3)]
        listed = node.get(LIST)
        deployed.primary.kill()
        deployed.standby.promote()
        client.create_at_last("after")
        assert set(before) < set(client.named(""))
        # Nothing was lost, so that what caches hold of the old primary is good.
        assert node.get(LIST).headers["etag"].split("-")[0] == listed.headers["etag"].split("-")[0]
    assert "has lost writes" not in node.log
