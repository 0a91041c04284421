"""Moving a catalogue from one database to another, in both directions."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select

from lexarium.domain.errors import Conflict, StoreError
from lexarium.service.checking import check
from lexarium.service.copying import copy
from lexarium.service.importing import import_files
from lexarium.store.copying import copy_all
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.store.schema import metadata
from tests.databases import ENGINES, NewUrl
from tests.server import Server, run
from tests.test_upgrade import old_file
from tests.test_webhooks import HOOKS, Receiver
from tests.waiting import wait_until
from tests.writers import Client

FILLED = {"record", "change", "relation", "account", "token", "proposal", "release", "idempotency", "delivery"}
"""The tables that hold something, so that the test would notice if it were left behind."""
SHOWN = ("/api/v-alpha/concept", "/api/v-alpha/search", "/api/v1/changes?limit=1000", "/api/v1/releases")


def quiet(what: str, done: int, total: int) -> None:
    pass


class Lived:
    """A catalogue with something in every table, and what it shows."""

    def __init__(self, url: str, receiver: Receiver) -> None:
        self.url = url
        with Server(url, "--sample", LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
            admin = Client(server, server.token("admin"))
            contributor = Client(server, server.token("contributor"))
            self.hook = admin.send("POST", HOOKS, json.dumps({"url": receiver.url})).json
            self.client = admin
            self.created = admin.create("Written before", "a key")
            made = self.created.json["id"]
            admin.send("PATCH", f"/api/v1/task/{made}", json.dumps({"name": "Naïve, “edited”\n🧠"}), If_Match='"1"')
            assert contributor.send("POST", "/api/v1/task", json.dumps({"name": "Proposed"})).status == 202
            release = json.dumps({"name": "2026.1", "note": "the first"})
            assert admin.send("POST", "/api/v1/releases", release).status == 201
            wait_until(lambda: len(receiver.got) == 2)
            deliveries = f"{HOOKS}/{self.hook['id']}/deliveries"
            wait_until(lambda: len(admin.send("GET", deliveries).json["items"]) == 2)
            self.shown = shown(server, admin.token)


def shown(server: Server, token: str) -> dict[str, Any]:
    """What a server answers, ETags included."""
    private = ("/api/v1/proposals", "/api/v1/users", HOOKS)
    headers = {"Authorization": f"Bearer {token}"}
    answers = {path: server.request("GET", path, headers) for path in (*SHOWN, *private)}
    return {path: (answer.status, answer.headers["etag"], answer.body) for path, answer in answers.items()}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.mark.parametrize(("engine", "other"), [ENGINES, ENGINES[::-1]])
def test_everything_is_taken_across_and_served_as_before(
    new_url: NewUrl, engine: str, other: str, receiver: Receiver
) -> None:
    url, other_url = new_url(engine), new_url(other)
    lived = Lived(url, receiver)
    done = run("copy", url, other_url)
    assert done.returncode == 0, done.stderr
    assert "they agree" in done.stdout
    assert "set LEXARIUM_DATABASE" in done.stdout
    source, target = Database(url), Database(other_url)
    with source.read() as before, target.read() as after:
        for table in metadata.sorted_tables:
            if table.name != "lease":
                query = select(func.count()).select_from(table)
                number = before.execute(query).scalar_one()
                assert number > 0 or table.name not in FILLED
                assert after.execute(query).scalar_one() == number
    source.close()
    target.close()
    with Server(other_url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        token = lived.client.token
        assert shown(server, token) == lived.shown
        client = Client(server, token)
        assert client.create("Written before", "a key").body == lived.created.body
        assert client.create("Written after", "another key").status == 201
        wait_until(lambda: len(receiver.got) == 3)
        assert receiver.names(lived.hook["secret"])[-1] == "Written after"
        deliveries = f"{HOOKS}/{lived.hook['id']}/deliveries"
        wait_until(lambda: len(client.send("GET", deliveries).json["items"]) == 3)


@pytest.fixture
def small(new_url: NewUrl, sample_paths: list[Path]) -> Iterator[Database]:
    database = open_database(new_url("sqlite"))
    import_files(database, sample_paths)
    yield database
    database.close()


def test_a_database_that_is_not_empty_is_refused_and_left_as_it_is(
    small: Database, database: Database, sample_paths: list[Path]
) -> None:
    import_files(database, sample_paths[:1])
    before = database.position()
    with pytest.raises(Conflict, match="is not empty: it has rows in change, record"):
        copy(small, database, quiet)
    assert database.position() == before
    assert check(database).problems == []


def test_what_arrives_changed_is_noticed_and_nothing_is_kept(small: Database, new_url: NewUrl) -> None:
    url = new_url("postgres")
    target = open_database(url)
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN IF NEW.name = 'working memory' THEN NEW.name := 'walking memory'; END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER spoil BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION spoil()")
    with pytest.raises(StoreError, match="record differs"):
        copy_all(small, target, quiet)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM record").fetchone() == (0,)
    target.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_that_is_written_to_meanwhile_is_told_of_and_nothing_is_kept(
    small: Database, new_url: NewUrl, engine: str
) -> None:
    target = open_database(new_url(engine))
    once = threading.Event()

    def write(what: str, done: int, total: int) -> None:
        if not once.is_set():
            once.set()
            small.run(lambda transaction: transaction.accounts_changed())

    with pytest.raises(Conflict, match="was written to meanwhile"):
        copy(small, target, write)
    copied, found = copy(small, target, write)  # into the same, which is as empty as it was
    assert not found.problems
    assert copied.position == small.position()
    target.close()


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = run("copy", f"sqlite:///{tmp_path}/absent.db", f"sqlite:///{tmp_path}/new.db")
    assert done.returncode == 1
    assert "There is no catalogue" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_that_is_named_as_the_source_is_left_empty(blank_url: NewUrl, tmp_path: Path) -> None:
    url = blank_url("postgres")
    for command in (["copy", url, f"sqlite:///{tmp_path}/new.db"], ["check", "--database", url]):
        done = run(*command)
        assert done.returncode == 1
        assert "There is no catalogue" in done.stderr
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM pg_tables WHERE schemaname = 'public'").fetchall() == []
    assert list(tmp_path.iterdir()) == []


def test_a_source_of_an_earlier_version_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    old = old_file("0005", file)
    before = file.read_bytes()
    done = run("copy", old, f"sqlite:///{tmp_path}/new.db")
    assert done.returncode == 1
    assert "`lexarium migrate` upgrades" in done.stderr
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
