"""Copy a catalogue from one database to another, in both directions."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select

from lexarium.domain.errors import Conflict, StoreError
from lexarium.services.maintenance.backup import copy_database
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store.database import Database
from lexarium.store.maintenance.copy import copy_tables
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.schema import metadata
from tests.support.browserless_client import BrowserlessClient
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.old_databases import create_old_database
from tests.support.polling import wait_until
from tests.support.server import Server, run_cli
from tests.support.uploads import send_files, wait_for_upload
from tests.support.webhook_receiver import WEBHOOKS_PATH, WebhookReceiver
from tests.support.write_load import RetryingClient

# Tables with rows, so that the test notices what is not copied.
FILLED_TABLES = {"record", "change", "relation", "account", "token", "proposal", "idempotency", "delivery"}
FILLED_TABLES |= {"import_write", "release", "release_file", "release_chunk"}
COMPARED_PATHS = ("/api/v-alpha/concept", "/api/v-alpha/search", "/api/v1/changes?limit=1000", "/api/v1/releases")
RELEASE_FILE_PATH = "/api/v1/releases/2026.1/files/jsonl"


def ignore_progress(task: str, done: int, total: int) -> None:
    pass


class PopulatedCatalogue:
    """Catalogue with rows in every table, and its responses."""

    def __init__(self, url: str, receiver: WebhookReceiver) -> None:
        self.url = url
        with Server(url, "--sample", LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
            admin = RetryingClient(server, server.create_token("admin"))
            contributor = RetryingClient(server, server.create_token("contributor"))
            self.hook = admin.send("POST", WEBHOOKS_PATH, json.dumps({"url": receiver.url})).json
            self.client = admin
            self.created = admin.create("Written before", "a key")
            record_id = self.created.json["id"]
            admin.send(
                "PATCH", f"/api/v1/task/{record_id}", json.dumps({"name": "Naïve, “edited”\n🧠"}), If_Match='"1"'
            )
            assert contributor.send("POST", "/api/v1/task", json.dumps({"name": "Proposed"})).status == 202
            release = json.dumps({"name": "2026.1", "note": "the first"})
            assert admin.send("POST", "/api/v1/releases", release).status == 201
            assert server.get(RELEASE_FILE_PATH).status == 200
            person = BrowserlessClient(server)
            person.sign_in("curator")
            send_files(person, [("concept.json", b'[{"id": "trm_imported", "name": "imported"}]')])
            wait_for_upload(person)
            person.press("Import")
            wait_for_upload(person)
            wait_until(lambda: len(receiver.received) == 3)
            deliveries = f"{WEBHOOKS_PATH}/{self.hook['id']}/deliveries"
            wait_until(lambda: len(admin.send("GET", deliveries).json["items"]) == 3)
            self.shown = read_responses(server, admin.token)


def read_responses(server: Server, token: str) -> dict[str, Any]:
    """Return responses of a server with their ETags."""
    private = ("/api/v1/proposals", "/api/v1/users", WEBHOOKS_PATH)
    # The IRIs of records begin with the requested host.
    headers = {"Authorization": f"Bearer {token}", "Host": "lexarium.example"}
    responses = {path: server.request("GET", path, headers) for path in (*COMPARED_PATHS, RELEASE_FILE_PATH, *private)}
    return {path: (response.status, response.headers["etag"], response.body) for path, response in responses.items()}


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as webhook_receiver:
        yield webhook_receiver


@pytest.mark.parametrize(("engine", "other_engine"), [ENGINES, ENGINES[::-1]])
def test_everything_is_copied_and_served_as_before(
    new_url: DatabaseUrlFactory, engine: str, other_engine: str, receiver: WebhookReceiver
) -> None:
    url, other_url = new_url(engine), new_url(other_engine)
    populated = PopulatedCatalogue(url, receiver)
    result = run_cli("copy", url, other_url)
    assert result.returncode == 0, result.stderr
    assert "copy verified" in result.stdout
    assert "set LEXARIUM_DATABASE" in result.stdout
    source, target = Database(url), Database(other_url)
    with source.read() as before, target.read() as after:
        for table in metadata.sorted_tables:
            if table.name != "lease":
                query = select(func.count()).select_from(table)
                number = before.execute(query).scalar_one()
                assert number > 0 or table.name not in FILLED_TABLES
                assert after.execute(query).scalar_one() == number
    source.close()
    target.close()
    with Server(other_url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        token = populated.client.token
        assert read_responses(server, token) == populated.shown
        client = RetryingClient(server, token)
        assert client.create("Written before", "a key").body == populated.created.body
        assert client.create("Written after", "another key").status == 201
        wait_until(lambda: len(receiver.received) == 4)
        assert receiver.list_names(populated.hook["secret"])[-1] == "Written after"
        deliveries = f"{WEBHOOKS_PATH}/{populated.hook['id']}/deliveries"
        wait_until(lambda: len(client.send("GET", deliveries).json["items"]) == 4)


@pytest.fixture
def sample_database(new_url: DatabaseUrlFactory, sample_paths: list[Path]) -> Iterator[Database]:
    database = open_database(new_url("sqlite"))
    import_files(database, sample_paths)
    yield database
    database.close()


def test_a_target_that_is_not_empty_is_rejected_and_left_unchanged(
    sample_database: Database, database: Database, sample_paths: list[Path]
) -> None:
    import_files(database, sample_paths[:1])
    before = database.get_position()
    with pytest.raises(Conflict, match="is not empty: it has rows in change, record"):
        copy_database(sample_database, database, ignore_progress)
    assert database.get_position() == before
    assert check_database(database).problems == []


def test_data_changed_on_arrival_is_detected_and_nothing_is_kept(
    sample_database: Database, new_url: DatabaseUrlFactory
) -> None:
    url = new_url("postgres")
    target = open_database(url)
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN IF NEW.name = 'working memory' THEN NEW.name := 'walking memory'; END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER spoil BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION spoil()")
    with pytest.raises(StoreError, match="differs from the source in record"):
        copy_tables(sample_database, target, ignore_progress)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM record").fetchone() == (0,)
    target.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_changed_during_the_copy_is_reported_and_nothing_is_kept(
    sample_database: Database, new_url: DatabaseUrlFactory, engine: str
) -> None:
    target = open_database(new_url(engine))
    was_written = threading.Event()

    def write_once(task: str, done: int, total: int) -> None:
        if not was_written.is_set():
            was_written.set()
            sample_database.run_write(lambda transaction: transaction.bump_accounts_revision())

    with pytest.raises(Conflict, match="changed during the copy"):
        copy_database(sample_database, target, write_once)
    copied, check_result = copy_database(
        sample_database, target, write_once
    )  # into the same database, which is still empty
    assert not check_result.problems
    assert copied.position == sample_database.get_position()
    target.close()


def test_a_missing_source_is_not_created(tmp_path: Path) -> None:
    result = run_cli("copy", f"sqlite:///{tmp_path}/absent.db", f"sqlite:///{tmp_path}/new.db")
    assert result.returncode == 1
    assert "absent.db not found" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_source_database_is_left_empty(blank_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    url = blank_url("postgres")
    for command in (["copy", url, f"sqlite:///{tmp_path}/new.db"], ["check", "--database", url]):
        result = run_cli(*command)
        assert result.returncode == 1
        assert "not found" in result.stderr
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM pg_tables WHERE schemaname = 'public'").fetchall() == []
    assert list(tmp_path.iterdir()) == []


def test_a_source_of_an_earlier_version_is_reported_and_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    old = create_old_database("0005", file)
    before = file.read_bytes()
    result = run_cli("copy", old, f"sqlite:///{tmp_path}/new.db")
    assert result.returncode == 1
    assert "Upgrade an older one with `lexarium migrate`" in result.stderr
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
