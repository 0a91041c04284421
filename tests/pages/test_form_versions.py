"""Forms that change a record send the version at which they were opened; without it they change nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browserless_client import BrowserlessClient, strip_tags
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from tests.support.v1_client import V1Client


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_WRITE_BURST="1000") as running_server:
        yield running_server


@pytest.fixture(scope="module")
def curator(server: Server) -> V1Client:
    return V1Client(server, "curator")


@pytest.fixture(scope="module")
def person(server: Server) -> BrowserlessClient:
    client = BrowserlessClient(server)
    client.sign_in("curator")
    return client


def build_forms(record: str, other: str) -> dict[str, tuple[str, dict[str, str], tuple[str, ...]]]:
    """Return each form that changes a record: path, input, and the fields that hold the version."""
    relation = {"relation": "KINDOF", "target": other}
    return {
        "edit": (f"/edit/{record}", {"name": "changed"}, ("version",)),
        "retire": (f"/retire/{record}", {"act": "retire"}, ("version",)),
        "merge": (f"/merge/{record}", {"into": other}, ("version", "survivor")),
        "revert": (f"/revert/{record}", {}, ("version", "newest")),
        "relate": (f"/edit/{record}/relations", {"act": "add", **relation}, ("version",)),
        "map": (
            f"/edit/{record}/relations",
            {"act": "map", "mapping": "exactMatch", "outside": "DOID:1"},
            ("version",),
        ),
        "unrelate": (f"/edit/{record}/relations", {"act": "remove", **relation}, ("version",)),
    }


def create_pair(curator: V1Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """Create a record at version 3 and one related to it."""
    other = curator.create(name="other")
    record = curator.patch(curator.create(name="first"), name="second")
    record = curator.patch(record, relations={"KINDOF": [other["id"]]})
    return record, other


def get_record(server: Server, record: dict[str, Any]) -> Any:
    return server.get(f"/api/v1/concept/{record['id']}").json


@pytest.mark.parametrize("invalid_version", [None, "", "x", "0", "-1", "1.0", "99999999999999999999"])
@pytest.mark.parametrize("form", build_forms("", ""))
def test_a_form_without_a_valid_version_is_rejected(
    server: Server, curator: V1Client, person: BrowserlessClient, form: str, invalid_version: str | None
) -> None:
    record, other = create_pair(curator)
    path, form_values, version_fields = build_forms(record["id"], other["id"])[form]
    for field in version_fields:
        fields = {**form_values, **dict.fromkeys(version_fields, "1"), field: invalid_version}
        person.send(path, {name: value for name, value in fields.items() if value is not None}, 400)
        assert field in strip_tags(person.body)
    assert get_record(server, record) == record
    assert get_record(server, other) == other


@pytest.mark.parametrize("form", build_forms("", ""))
def test_a_form_opened_at_an_earlier_version_changes_nothing(
    server: Server, curator: V1Client, person: BrowserlessClient, form: str
) -> None:
    record, other = create_pair(curator)
    path, form_values, version_fields = build_forms(record["id"], other["id"])[form]
    person.send(
        path, {**form_values, **dict.fromkeys(version_fields, "1")}, 422 if form not in ("edit", "revert") else 409
    )
    assert "hanged" in strip_tags(person.body)
    assert get_record(server, record) == record


def test_a_concurrent_change_is_shown_on_the_relations_page_and_the_form_can_be_resubmitted(
    server: Server, curator: V1Client, person: BrowserlessClient
) -> None:
    record, _ = create_pair(curator)
    person.open(f"/edit/{record['id']}/relations")
    changed = curator.patch(record, definition_text="someone else was here")
    person.press("Remove", status=422)
    assert "someone else was here" in strip_tags(person.body)
    assert get_record(server, record) == changed
    person.press("Remove")
    assert get_record(server, record)["relations"] == {}


def test_a_proposal_is_accepted_only_at_the_version_shown(
    server: Server, curator: V1Client, person: BrowserlessClient
) -> None:
    record, _ = create_pair(curator)
    change = {"collection": "concept", "record": record["id"], "change": {"name": "proposed"}}
    proposal = curator.send("POST", "proposals", change).json["id"]
    path = f"/review/{proposal}/accept"
    for invalid_fields in ({}, {"version": "x"}):
        person.send(path, invalid_fields, 400)
    assert get_record(server, record) == record
    person.send(path, {"version": str(record["version"])})
    assert get_record(server, record)["name"] == "proposed"
    new = curator.send("POST", "proposals", {"collection": "concept", "change": {"name": "a new one"}}).json["id"]
    person.send(f"/review/{new}/accept", {})
