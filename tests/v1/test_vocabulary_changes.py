"""Changes of vocabularies themselves: in the feed, in webhooks and on the page of changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.import_undo import undo_import
from lexarium.store.maintenance.upgrade import open_database
from tests.support.change_stream import ChangeStream
from tests.support.polling import wait_until
from tests.support.server import Server, run_cli
from tests.support.v1_client import V1Client
from tests.support.webhook_receiver import WEBHOOKS_PATH, WebhookReceiver

SCHEMA = """\
id: https://example.org/birds
name: birds
default_range: string
imports:
  - linkml:types
prefixes:
  linkml: https://w3id.org/linkml/
  skos: http://www.w3.org/2004/02/skos/core#
  birds: https://example.org/birds/
default_prefix: birds
classes:
  Concept:
    slots: [id, label]
slots:
  id:
    identifier: true
  label:
    slot_uri: skos:prefLabel
"""


@pytest.fixture
def admin(server: Server) -> V1Client:
    return V1Client(server, "admin")


def create_vocabulary(admin: V1Client, slug: str, **values: Any) -> None:
    response = admin.send("POST", "vocabularies", {"slug": slug, "schema": "skos", **values})
    assert response.status == 201, response.body


def change_vocabulary(admin: V1Client, slug: str, **values: Any) -> None:
    response = admin.send("PATCH", f"vocabularies/{slug}", values, If_Match="*")
    assert response.status == 200, response.body


def summarize(changes: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return action, vocabulary, collection and id of changes."""
    return [(item["action"], item["vocabulary"], item["collection"], item["id"]) for item in changes]


def test_metadata_and_schemas_are_in_the_feed(server: Server, admin: V1Client) -> None:
    events = ChangeStream(server)
    create_vocabulary(admin, "birds", title="Birds", languages=["en", "de"])
    change_vocabulary(admin, "birds", description="What flies.", licence="CC0-1.0")
    admin.send("POST", "vocabularies/birds/collections/concept", {"id": "b:1", "name": "Owl"})
    headers = {"Authorization": f"Bearer {admin.token}", "Content-Type": "application/yaml", "If-Match": "*"}
    applied = server.request("PUT", "/api/v1/vocabularies/birds/schema", headers, SCHEMA)
    assert applied.status == 200, applied.body
    change_vocabulary(admin, "main", title="Ours")
    changes = server.get("/api/v1/changes").json["items"]
    assert summarize(changes) == [
        ("create", "birds", "vocabulary", "birds"),
        ("update", "birds", "vocabulary", "birds"),
        ("create", "birds", "concept", "b:1"),
        ("update", "birds", "vocabulary", "birds"),
        ("create", "main", "vocabulary", "main"),
    ]
    assert [change["version"] for change in changes] == [1, 2, 1, 3, 1]
    record = changes[1]["record"]
    assert (record["name"], record["description"], record["definition"]) == ("Birds", "What flies.", "What flies.")
    assert (record["id"], record["vocabulary"], record["collection"]) == ("birds", "birds", "vocabulary")
    assert record["iri"].endswith("/vocabularies/birds")
    assert record["fields"]["licence"] == "CC0-1.0"
    assert record["statements"]["lexarium:language"] == ["en", "de"]
    assert changes[3]["record"]["fields"]["schema"] == SCHEMA
    sent = events.read_events(5)
    events.close()
    assert [sent[index] for index in (0, 1, 3, 4)] == [changes[index] for index in (0, 1, 3, 4)]
    assert server.get("/api/v1/changes?collection=vocabulary").json["items"] == [*changes[:2], *changes[3:]]
    assert server.get("/api/v1/changes?collection=vocabulary&vocabulary=main").json["items"] == changes[4:]
    assert server.get("/api/v1/changes?collection=concept").json["items"] == changes[2:3]
    assert b"u001f" not in server.get("/api/v1/changes").body


def test_changes_of_a_private_vocabulary_are_visible_only_to_its_readers(server: Server, admin: V1Client) -> None:
    events = ChangeStream(server)
    create_vocabulary(admin, "secret", title="Known to few", private=True)
    create_vocabulary(admin, "birds", title="Birds")
    seen = ("create", "birds", "vocabulary", "birds")
    hidden = ("create", "secret", "vocabulary", "secret")
    assert summarize(events.read_events(1)) == [seen]
    events.close()
    feed = server.get("/api/v1/changes").body
    assert summarize(json.loads(feed)["items"]) == [seen]
    assert b"secret" not in feed
    assert server.get("/api/v1/changes?collection=vocabulary&vocabulary=secret").status == 404
    assert b"Known to few" not in server.get("/changes").body
    assert summarize(admin.send("GET", "changes").json["items"]) == [hidden, seen]
    change_vocabulary(admin, "secret", private=False)
    assert summarize(server.get("/api/v1/changes").json["items"])[::2] == [hidden, ("update", *hidden[1:])]
    assert admin.send("DELETE", "vocabularies/secret", If_Match="*").status == 200
    assert summarize(admin.send("GET", "changes").json["items"]) == [seen]
    assert admin.send("POST", "vocabularies/secret/restore").status == 200
    actions = [change["action"] for change in server.get("/api/v1/changes?vocabulary=secret").json["items"]]
    assert actions == ["create", "update", "retire", "revert"]


def test_the_page_of_changes_links_to_the_vocabulary(server: Server, admin: V1Client) -> None:
    create_vocabulary(admin, "birds", title="Birds & more")
    for path in ("/changes", "/changes?vocabulary=birds", "/changes?since=0&until=1", "/vocabularies/birds", "/"):
        page = server.get(path).body.decode()
        assert '<a href="/vocabularies/birds">Birds &amp; more</a> <span class="faint">vocabulary</span>' in page, path
        assert "\x1f" not in page
    assert "Birds" not in server.get("/changes?vocabulary=main").body.decode().partition("<main")[2].partition("<ul")[2]


def test_webhooks_deliver_changes_of_vocabularies(url: str) -> None:
    with (
        Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server,
        WebhookReceiver() as all_changes,
        WebhookReceiver() as vocabulary_changes,
        WebhookReceiver() as bird_changes,
    ):
        admin = V1Client(server, "admin")
        create_vocabulary(admin, "birds", title="Birds")
        filters = {
            all_changes: {},
            vocabulary_changes: {"vocabularies": ["main", "birds"], "collections": ["vocabulary"]},
            bird_changes: {"vocabularies": ["birds"]},
        }
        for receiver, values in filters.items():
            hook = server.post_json(WEBHOOKS_PATH, {"url": receiver.url, **values}, admin.token)
            assert hook.status == 201, hook.body
            assert hook.json["collections"] == values.get("collections", [])
        change_vocabulary(admin, "birds", title="All birds")
        admin.send("POST", "vocabularies/birds/collections/concept", {"id": "b:1", "name": "Owl"})
        create_vocabulary(admin, "fish", title="Fish")
        change_vocabulary(admin, "main", title="Ours")
        expected = {
            all_changes: ["All birds", "Owl", "Fish", "Ours"],
            vocabulary_changes: ["All birds", "Ours"],
            bird_changes: ["All birds", "Owl"],
        }
        for receiver, names in expected.items():
            wait_until(lambda receiver=receiver, names=names: len(receiver.received) >= len(names))
            sent = [json.loads(body) for _, body in receiver.received]
            assert [change["record"]["name"] for change in sent] == names
        assert summarize(sent)[0] == ("update", "birds", "vocabulary", "birds")
        # IRIs of the feed begin with the requested host, those of webhooks with the default base.
        assert server.get("/api/v1/changes?since=1", Host="localhost:8000").json["items"] == [
            json.loads(body) for _, body in all_changes.received
        ]
        assert admin.send("POST", "webhooks", {"url": bird_changes.url, "collections": ["bird"]}).status == 422
        change_vocabulary(admin, "main", base="https://terms.example.org/")
        admin.send("POST", "vocabularies/birds/collections/concept", {"id": "b:2", "name": "Wren"})
        wait_until(lambda: len(bird_changes.received) == 3)
        assert json.loads(bird_changes.received[-1][1])["record"]["iri"].startswith("https://terms.example.org/")
    database = open_database(url)
    assert check_database(database).problems == []
    database.close()


def test_a_mirror_skips_changes_of_vocabularies(server: Server, admin: V1Client, tmp_path: Path) -> None:
    change_vocabulary(admin, "main", title="Ours")
    record = admin.create(name="main")
    target = f"sqlite:///{tmp_path}/mirror.db"
    result = run_cli("mirror", f"http://127.0.0.1:{server.port}", "--database", target)
    assert result.returncode == 0, result.stderr
    assert "unknown" not in result.stdout + result.stderr
    shown = run_cli("show", record["id"], "--json", "--database", target)
    assert json.loads(shown.stdout)["name"] == "main"


def test_undoing_an_import_keeps_its_vocabulary(server: Server, admin: V1Client, tmp_path: Path) -> None:
    file = tmp_path / "birds.ttl"
    file.write_text(
        "<http://example.org/b1> a <http://www.w3.org/2004/02/skos/core#Concept> ;"
        ' <http://www.w3.org/2004/02/skos/core#prefLabel> "Owl"@en .'
    )
    result = run_cli("import", "--vocabulary", "birds", file, "--database", server.url)
    assert result.returncode == 0, result.stderr
    last = wait_until(lambda: server.get("/api/v1/changes").json["items"])[-1]
    assert (last["collection"], last["record"]["name"]) == ("concept", "Owl")
    admin.send("POST", "vocabularies/birds/collections/concept", {"id": "b:2", "name": "Wren"})
    database = open_database(server.url)
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    database.run_write(lambda transaction: undo_import(transaction, caller, 0, last["seq"]))
    database.close()
    assert server.get("/api/v1/vocabularies/birds").status == 200

    def list_actions() -> list[str]:
        changes = server.get("/api/v1/changes").json["items"]
        return [change["action"] for change in changes if change["seq"] > last["seq"]]

    wait_until(lambda: list_actions() == ["create", "revert"])
