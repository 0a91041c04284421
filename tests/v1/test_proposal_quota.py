"""Contributors have a quota of open proposals, by number and by bytes."""

from collections.abc import Iterator

import pytest

from tests.support.browserless_client import BrowserlessClient, strip_tags
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client


@pytest.fixture
def limited_server(url: str) -> Iterator[Server]:
    with Server(url, LEXARIUM_PROPOSALS="3", LEXARIUM_PROPOSALS_KB="2") as running:
        yield running


def propose(client: V1Client, name: str = "x", **fields: str) -> HttpResponse:
    return client.send("POST", "proposals", {"collection": "concept", "change": {"name": name, **fields}})


def test_a_contributor_over_the_quota_is_rejected_until_proposals_are_decided(limited_server: Server) -> None:
    contributor, other, curator = (V1Client(limited_server, role) for role in ("contributor", "contributor", "curator"))
    proposal_ids = [propose(contributor).json["id"] for _ in range(3)]
    for response in (
        propose(contributor),
        contributor.send("POST", "concept", {"name": "x"}),
        limited_server.post_json("/api/v-alpha/concept", {"name": "x"}, contributor.token),
    ):
        assert response.status == 403
        assert "quota of 3 proposals and 2048 bytes" in response.json["detail"]
    assert propose(other).status == 202
    assert contributor.send("POST", f"proposals/{proposal_ids[0]}/withdraw").status == 200
    assert propose(contributor).status == 202
    assert propose(contributor).status == 403
    assert curator.send("POST", f"proposals/{proposal_ids[1]}/accept").status == 200
    assert propose(contributor).status == 202


def test_the_size_of_open_proposals_is_limited(limited_server: Server) -> None:
    contributor = V1Client(limited_server, "contributor")
    first = propose(contributor, definition_text="d" * 1_500)
    assert first.status == 202
    assert propose(contributor, definition_text="d" * 1_000).status == 403
    record = V1Client(limited_server, "curator").create(name="there")
    edit = {"name": "there", "definition_text": "d" * 1_000}
    path = f"concept/{record['id']}"
    assert contributor.send("PUT", path, edit, If_Match='"1"').status == 403
    assert contributor.send("DELETE", path, If_Match='"1"').status == 202


def test_curators_have_no_quota(limited_server: Server) -> None:
    curator = V1Client(limited_server, "curator")
    assert {propose(curator, definition_text="d" * 1_000).status for _ in range(5)} == {202}


def test_a_page_keeps_the_input_if_the_quota_is_exceeded(limited_server: Server) -> None:
    record = V1Client(limited_server, "curator").create(name="there")["id"]
    person = BrowserlessClient(limited_server)
    person.sign_in("contributor")
    for number in range(3):
        person.send("/propose/concept", {"name": f"name {number}"})
    body = person.send("/propose/concept", {"name": "one too many", "definition_text": "kept"}, 422)
    assert "quota" in strip_tags(body)
    assert "kept" in body
    person.send(f"/edit/{record}", {"name": "changed", "version": "1"}, 422)
    person.send(f"/retire/{record}", {"act": "retire", "version": "1"}, 422)
    fields = {"act": "map", "mapping": "exactMatch", "outside": "DOID:1", "version": "1"}
    assert "quota" in strip_tags(person.send(f"/edit/{record}/relations", fields, 422))
