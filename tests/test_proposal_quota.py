"""Contributors have a quota of open proposals, by number and by bytes."""

from collections.abc import Iterator

import pytest

from tests.person import Person, text
from tests.server import Answer, Server
from tests.test_v1 import Client


@pytest.fixture
def small(url: str) -> Iterator[Server]:
    with Server(url, LEXARIUM_PROPOSALS="3", LEXARIUM_PROPOSALS_KB="2") as running:
        yield running


def propose(client: Client, name: str = "x", **fields: str) -> Answer:
    return client.send("POST", "proposals", {"collection": "concept", "change": {"name": name, **fields}})


def test_a_contributor_over_the_quota_is_refused_until_some_are_decided(small: Server) -> None:
    contributor, other, curator = (Client(small, role) for role in ("contributor", "contributor", "curator"))
    made = [propose(contributor).json["id"] for _ in range(3)]
    for refused in (
        propose(contributor),
        contributor.send("POST", "concept", {"name": "x"}),
        small.post_json("/api/v-alpha/concept", {"name": "x"}, contributor.token),
    ):
        assert refused.status == 403
        assert "quota of 3 proposals and 2048 bytes" in refused.json["detail"]
    assert propose(other).status == 202
    assert contributor.send("POST", f"proposals/{made[0]}/withdraw").status == 200
    assert propose(contributor).status == 202
    assert propose(contributor).status == 403
    assert curator.send("POST", f"proposals/{made[1]}/accept").status == 200
    assert propose(contributor).status == 202


def test_the_bytes_of_open_proposals_are_bounded_too(small: Server) -> None:
    contributor = Client(small, "contributor")
    first = propose(contributor, definition_text="d" * 1_500)
    assert first.status == 202
    assert propose(contributor, definition_text="d" * 1_000).status == 403
    record = Client(small, "curator").create(name="there")
    edit = {"name": "there", "definition_text": "d" * 1_000}
    path = f"concept/{record['id']}"
    assert contributor.send("PUT", path, edit, If_Match='"1"').status == 403
    assert contributor.send("DELETE", path, If_Match='"1"').status == 202


def test_curators_have_no_quota(small: Server) -> None:
    curator = Client(small, "curator")
    assert {propose(curator, definition_text="d" * 1_000).status for _ in range(5)} == {202}


def test_a_page_keeps_what_was_typed_over_the_quota(small: Server) -> None:
    record = Client(small, "curator").create(name="there")["id"]
    person = Person(small)
    person.sign_in("contributor")
    for number in range(3):
        person.send("/propose/concept", {"name": f"name {number}"})
    body = person.send("/propose/concept", {"name": "one too many", "definition_text": "kept"}, 422)
    assert "quota" in text(body)
    assert "kept" in body
    person.send(f"/edit/{record}", {"name": "changed", "version": "1"}, 422)
    person.send(f"/retire/{record}", {"act": "retire", "version": "1"}, 422)
    fields = {"act": "map", "mapping": "exactMatch", "outside": "DOID:1", "version": "1"}
    assert "quota" in text(person.send(f"/edit/{record}/relations", fields, 422))
