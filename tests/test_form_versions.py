"""Forms that change a record say which version they were opened at; without that they change nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases import NewUrl
from tests.person import Person, text
from tests.server import Server
from tests.test_v1 import Client


@pytest.fixture(scope="module")
def desk(new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_WRITE_BURST="1000") as running:
        yield running


@pytest.fixture(scope="module")
def curator(desk: Server) -> Client:
    return Client(desk, "curator")


@pytest.fixture(scope="module")
def person(desk: Server) -> Person:
    someone = Person(desk)
    someone.sign_in("curator")
    return someone


def forms(record: str, other: str) -> dict[str, tuple[str, dict[str, str], tuple[str, ...]]]:
    """Each form that changes a record: its address, what is typed, and the fields that say what was seen."""
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


def pair(curator: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """A record at version 3, and one that it is related to."""
    other = curator.create(name="other")
    record = curator.patch(curator.create(name="first"), name="second")
    record = curator.patch(record, relations={"KINDOF": [other["id"]]})
    return record, other


def present(desk: Server, record: dict[str, Any]) -> Any:
    return desk.get(f"/api/v1/concept/{record['id']}").json


@pytest.mark.parametrize("wrong", [None, "", "x", "0", "-1", "1.0", "99999999999999999999"])
@pytest.mark.parametrize("form", forms("", ""))
def test_a_form_without_a_valid_version_is_refused(
    desk: Server, curator: Client, person: Person, form: str, wrong: str | None
) -> None:
    record, other = pair(curator)
    address, typed, seen = forms(record["id"], other["id"])[form]
    for field in seen:
        fields = {**typed, **dict.fromkeys(seen, "1"), field: wrong}
        person.send(address, {name: value for name, value in fields.items() if value is not None}, 400)
        assert field in text(person.body)
    assert present(desk, record) == record
    assert present(desk, other) == other


@pytest.mark.parametrize("form", forms("", ""))
def test_a_form_that_was_opened_at_an_earlier_version_changes_nothing(
    desk: Server, curator: Client, person: Person, form: str
) -> None:
    record, other = pair(curator)
    address, typed, seen = forms(record["id"], other["id"])[form]
    person.send(address, {**typed, **dict.fromkeys(seen, "1")}, 422 if form not in ("edit", "revert") else 409)
    assert "hanged" in text(person.body)
    assert present(desk, record) == record


def test_what_others_changed_while_relations_were_open_is_shown_and_the_form_can_be_sent_again(
    desk: Server, curator: Client, person: Person
) -> None:
    record, _ = pair(curator)
    person.open(f"/edit/{record['id']}/relations")
    changed = curator.patch(record, definition_text="someone else was here")
    person.press("Remove", status=422)
    assert "someone else was here" in text(person.body)
    assert present(desk, record) == changed
    person.press("Remove")
    assert present(desk, record)["relations"] == {}


def test_a_proposal_for_a_record_is_accepted_only_at_the_version_that_was_seen(
    desk: Server, curator: Client, person: Person
) -> None:
    record, _ = pair(curator)
    change = {"collection": "concept", "record": record["id"], "change": {"name": "proposed"}}
    proposal = curator.send("POST", "proposals", change).json["id"]
    address = f"/review/{proposal}/accept"
    for wrong in ({}, {"version": "x"}):
        person.send(address, wrong, 400)
    assert present(desk, record) == record
    person.send(address, {"version": str(record["version"])})
    assert present(desk, record)["name"] == "proposed"
    new = curator.send("POST", "proposals", {"collection": "concept", "change": {"name": "a new one"}}).json["id"]
    person.send(f"/review/{new}/accept", {})
