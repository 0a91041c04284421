"""Pages of comments and notifications, their feeds, and the summaries and relations of forms."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.browserless_client import BrowserlessClient, extract_text
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.v1_client import V1Client, build_path

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


def sign_in(server: Server, role: str) -> BrowserlessClient:
    person = BrowserlessClient(server)
    person.sign_in(role)
    return person


def read_feed(server: Server, path: str, **headers: str) -> list[tuple[str, str]]:
    response = server.get(path, **headers)
    assert (response.status, response.headers["content-type"]) == (200, "application/atom+xml")
    entries = ET.fromstring(response.body).findall(f"{ATOM}entry")
    return [(entry.findtext(f"{ATOM}title") or "", entry.findtext(f"{ATOM}summary") or "") for entry in entries]


def test_a_comment_is_posted_and_closed_on_pages(shared_server: Server, curator: V1Client) -> None:
    record = curator.create(name="a discussed page")
    person, decider = sign_in(shared_server, "reader"), sign_in(shared_server, "curator")
    person.open(f"/id/{record['id']}")
    person.press("Comment", {"text": "Is <b>this</b> right?\n\nI doubt it."})
    assert "Is &lt;b&gt;this&lt;/b&gt; right?" in person.body
    decider.open(f"/id/{record['id']}")
    decider.press("Close", {"text": "It is."})
    assert "closed this" in extract_text(decider.body)
    stranger = BrowserlessClient(shared_server)
    body = extract_text(stranger.open(f"/id/{record['id']}"))
    for text in ("I doubt it.", "It is.", "Sign in to comment."):
        assert text in body
    person.open("/notifications")
    assert "closed the comments" in person.body
    person.press("Mark all as read")
    assert "new notifications" not in person.body


def test_an_empty_comment_is_rejected(shared_server: Server, curator: V1Client) -> None:
    record = curator.create(name="a page without comments")
    person = sign_in(shared_server, "contributor")
    person.open(f"/id/{record['id']}")
    person.press("Comment", {"text": "  "}, 422)
    assert "Not saved." in extract_text(person.body)


def test_an_author_sees_the_reason_for_the_decision_on_a_proposal(shared_server: Server, curator: V1Client) -> None:
    person, decider = sign_in(shared_server, "contributor"), sign_in(shared_server, "curator")
    for name in ("first wish", "second wish"):
        person.open("/propose/concept")
        person.press("Propose", {"name": name, "summary": f"I need the {name}."})
    queue = curator.send("GET", "proposals?state=open").json["items"]
    ids: dict[str, Any] = {item["change"]["name"]: item["id"] for item in queue if "wish" in item["change"]["name"]}
    assert "I need the first wish." in decider.open(f"/review/{ids['first wish']}")
    decider.press("Accept", {"reason": "A good one.", "name": "first wish, fulfilled"})
    decider.open(f"/review/{ids['second wish']}")
    decider.press("Reject", {"reason": "One is enough."})
    body = extract_text(person.open("/notifications"))
    for text in ("accepted your proposal with changes", "A good one.", "rejected your proposal", "One is enough."):
        assert text in body
    assert '2<span class="unseen"> new notifications' in person.body


def test_notifications_are_read_over_the_api_with_a_token(shared_server: Server, curator: V1Client) -> None:
    contributor = V1Client(shared_server, "contributor")
    proposal = contributor.send("POST", "concept", {"name": "by a program"}).json
    curator.send("POST", f"proposals/{proposal['id']}/reject", {"reason": "No\u0085 programs."})
    token = {"Authorization": f"Bearer {contributor.token}"}
    assert [text for _, text in read_feed(shared_server, "/notifications.atom", **token)] == []
    curator.send("POST", f"proposals/{proposal['id']}/reject", {"reason": "No programs."})
    assert [text for _, text in read_feed(shared_server, "/notifications.atom", **token)] == ["No programs."]
    assert shared_server.get("/notifications.atom").headers["location"].startswith("/sign-in")


def test_the_feed_lists_changes_of_a_record_and_of_an_account(shared_server: Server, curator: V1Client) -> None:
    record, other = curator.create(name="fed"), V1Client(shared_server, "curator").create(name="fed by another")
    curator.send("PATCH", f"{build_path(record)}?summary=a+%3Ctypo%3E", {"name": "feed"}, If_Match='"1"')
    of_record = read_feed(shared_server, f"/changes.atom?record={record['id']}")
    assert of_record == [("feed (concept) was changed", "a <typo>"), ("fed (concept) was added", "Version 1.")]
    person = curator.send("GET", "me").json["id"]
    titles = [title for title, _ in read_feed(shared_server, f"/changes.atom?person={person}")]
    assert "feed (concept) was changed" in titles
    assert "fed by another (concept) was added" not in titles
    everything = [title for title, _ in read_feed(shared_server, "/changes.atom?vocabulary=main")]
    assert f"{other['name']} (concept) was added" in everything
    assert shared_server.get("/changes.atom?record=trm_missing").status == 404
    etag = shared_server.get(f"/changes.atom?record={record['id']}").headers["etag"]
    assert shared_server.get(f"/changes.atom?record={record['id']}", If_None_Match=etag).status in (200, 304)


def test_a_new_record_can_be_created_with_relations(shared_server: Server, curator: V1Client) -> None:
    parent, whole = curator.create(name="the parent of a new one"), curator.create(name="the whole of a new one")

    def is_found() -> bool:
        return bool(curator.send("GET", "search?q=the+parent+of+a+new+one").json["hits"])

    wait_until(is_found)
    person = sign_in(shared_server, "curator")
    person.open("/propose/concept")
    rows = {
        "relations.0.type": "KINDOF",
        "relations.0.target": "The parent of a NEW one",
        "relations.1.type": "PARTOF",
        "relations.1.target": f"the whole [{whole['id']}]",
    }
    wrong = person.press("Publish", {"name": "a related one", **rows, "relations.2.target": "nothing such"}, 422)
    assert "Nothing such was not found" in wrong
    assert "The parent of a NEW one" in wrong
    person.press("Publish", {"name": "a related one", **rows, "relations.2.target": "", "summary": "it was missing"})
    created = curator.send("GET", "concept?name=a+related+one").json["items"][0]
    assert created["relations"] == {"KINDOF": [parent["id"]], "PARTOF": [whole["id"]]}
    assert "it was missing" in extract_text(person.open(f"/id/{created['id']}/history"))


def test_edits_on_pages_have_a_summary(shared_server: Server, curator: V1Client) -> None:
    record, survivor = curator.create(name="summed up"), curator.create(name="sum of others")
    person = sign_in(shared_server, "curator")
    person.open(f"/edit/{record['id']}")
    person.press("Publish", {"name": "summed up again", "summary": "clearer"})
    person.open(f"/edit/{record['id']}/relations")
    mapping = {"act": "map", "mapping": "exactMatch", "outside": "DOID:1", "version": "2", "summary": "same there"}
    person.send(f"/edit/{record['id']}/relations", mapping)
    person.open(f"/merge/{record['id']}?into={survivor['id']}")
    person.press("Merge", {"summary": "the same"})
    person.open(f"/retire/{survivor['id']}")
    person.press("Retire", {"summary": "not needed"}, 410)
    versions = curator.send("GET", build_path(survivor, "history")).json["items"]
    assert [item["summary"] for item in versions] == ["not needed", "the same", ""]
    merged = curator.server.get("/api/v1/changes?since=0&limit=1000").json["items"]
    summaries = [item["summary"] for item in merged if item["id"] == record["id"]]
    assert summaries == ["", "clearer", "same there", "the same"]
