"""Proposals over HTTP on both engines: what is kept of them, whose it is, and what stands in their way."""

from typing import Any

import pytest

from tests.server import Answer, Server
from tests.test_v1 import Client, match, path


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> Client:
    return Client(shared_server, "curator")


@pytest.fixture(scope="module")
def contributor(shared_server: Server) -> Client:
    return Client(shared_server, "contributor")


def own_id(client: Client) -> str:
    identifier: str = client.send("GET", "me").json["id"]
    return identifier


def proposed(answer: Answer) -> dict[str, Any]:
    assert answer.status == 202, answer.body
    proposal: dict[str, Any] = answer.json
    return proposal


def accept(curator: Client, proposal: dict[str, Any], **body: Any) -> Answer:
    return curator.send("POST", f"proposals/{proposal['id']}/accept", body)


WRITABLE = ("name", "definition_text", "id_concept_class", "aliases", "sources", "relations")


def test_a_proposal_holds_only_what_it_changes(curator: Client, contributor: Client) -> None:
    other = curator.create(name="other")
    record = curator.create(name="One", definition_text="Old.", aliases=[{"text": "a"}], sources=["s"])
    whole = {name: record[name] for name in WRITABLE}
    put = proposed(contributor.send("PUT", path(record), {**whole, "name": "Two"}, If_Match=match(record)))
    assert put["change"] == {"name": "Two"}
    repeating = {"name": "One", "sources": ["t"], "aliases": record["aliases"]}
    patch = proposed(contributor.send("PATCH", path(record), repeating, If_Match=match(record)))
    assert patch["change"] == {"sources": ["t"]}
    curator.patch(record, definition_text="New.", relations={"KINDOF": [other["id"]]}, aliases=[])
    accept(curator, put)
    accepted = accept(curator, patch).json
    assert [accepted[name] for name in WRITABLE] == ["Two", "New.", "", [], ["t"], {"KINDOF": [other["id"]]}]


def test_a_proposal_that_changes_nothing_is_refused(curator: Client, contributor: Client) -> None:
    record = curator.create(name="One", relations={"exactMatch": ["B:1", "A:1"]})
    whole = {name: record[name] for name in WRITABLE}
    same = {**whole, "relations": {"exactMatch": ["B:1", "A:1"], "KINDOF": []}}
    for method, body in (("PUT", whole), ("PUT", same), ("PATCH", {"name": "One"}), ("PATCH", {})):
        refused = contributor.send(method, path(record), body, If_Match=match(record))
        assert refused.status == 422
        assert "nothing" in refused.json["detail"]
    body = {"collection": "concept", "record": record["id"], "change": {"name": "One"}}
    assert curator.send("POST", "proposals", body).status == 422


def test_what_is_accepted_is_its_proposers(curator: Client, contributor: Client) -> None:
    author, decider = own_id(contributor), own_id(curator)
    new = proposed(contributor.send("POST", "concept", {"name": "New", "definition_text": "Mine."}))
    record = accept(curator, new).json
    assert (record["id_user"], record["def_id_user"], record["updated_by"]) == (author, author, decider)
    edit = proposed(contributor.send("PATCH", path(record), {"definition_text": "Better."}, If_Match=match(record)))
    edited = accept(curator, edit).json
    assert (edited["def_id_user"], edited["def_id"] != record["def_id"]) == (author, True)
    plain = curator.patch(edited, name="Newer")
    history = curator.send("GET", path(record, "history")).json["items"]
    told = [(each["actor"], each["proposal"], each["proposed_by"]) for each in history]
    assert told == [(decider, None, None), (decider, edit["id"], author), (decider, new["id"], author)]
    fed = [each for each in curator.send("GET", "changes?limit=1000").json["items"] if each["id"] == record["id"]]
    assert [(each["proposal"], each["proposed_by"]) for each in fed] == [each[1:] for each in reversed(told)]
    seen = [contributor.send("GET", f"proposals/{each['id']}").json for each in (new, edit)]
    assert [(each["record"], each["version"]) for each in seen] == [(record["id"], 1), (record["id"], 2)]
    assert plain["id_user"] == author


def test_a_definition_that_the_curator_wrote_is_the_curators(curator: Client, contributor: Client) -> None:
    author, decider = own_id(contributor), own_id(curator)
    new = proposed(contributor.send("POST", "task", {"name": "New", "definition_text": "Mine."}))
    record = accept(curator, new, change={"definition_text": "Ours."}).json
    assert (record["name"], record["id_user"], record["def_id_user"]) == ("New", author, decider)
    edit = proposed(contributor.send("PATCH", path(record), {"definition_text": "Again."}, If_Match=match(record)))
    edited = accept(curator, edit, change={"definition_text": "Still ours."}).json
    assert (edited["definition_text"], edited["def_id_user"]) == ("Still ours.", decider)


def test_settling_a_conflict_keeps_the_rest_of_the_proposal(curator: Client, contributor: Client) -> None:
    record = curator.create(name="One", sources=["s"])
    change = {"name": "Two", "definition_text": "Mine.", "sources": ["t"]}
    edit = proposed(contributor.send("PATCH", path(record), change, If_Match=match(record)))
    curator.patch(record, name="Three", sources=["u"])
    assert [each["field"] for each in accept(curator, edit).json["conflicts"]] == ["name", "sources"]
    half = accept(curator, edit, change={"name": "Four"})
    assert (half.status, [each["field"] for each in half.json["conflicts"]]) == (409, ["sources"])
    settled = accept(curator, edit, change={"name": "Four", "sources": ["t", "u"]}).json
    assert [settled[name] for name in change] == ["Four", "Mine.", ["t", "u"]]


def test_a_proposal_on_a_record_that_is_gone_shows_it_and_can_only_be_turned_down(
    curator: Client, contributor: Client
) -> None:
    merged, retired, kept = (curator.create(name=name) for name in ("merged", "retired", "kept"))
    edits = [
        proposed(contributor.send("PATCH", path(each), {"name": "New"}, If_Match=match(each)))
        for each in (merged, retired, retired)
    ]
    curator.send("POST", path(merged, "merge"), {"into": kept["id"]}, If_Match=match(merged))
    curator.send("DELETE", path(retired), If_Match=match(retired))
    for edit, state, replaced_by in (edits[0], "merged", kept["id"]), (edits[1], "retired", None):
        states = {"base": "published", "current": state, "proposed": "published"}
        conflict = {"field": "state", **states, "replaced_by": replaced_by}
        assert contributor.send("GET", f"proposals/{edit['id']}").json["conflicts"] == [conflict]
        for body in ({}, {"change": {"name": "Other"}}):
            refused = accept(curator, edit, **body)
            assert (refused.status, refused.json["conflicts"]) == (409, [conflict])
            assert state in refused.json["detail"]
    assert kept["id"] in accept(curator, edits[0]).json["detail"]
    assert curator.send("POST", f"proposals/{edits[0]['id']}/reject", {"reason": "Gone."}).status == 200
    assert contributor.send("POST", f"proposals/{edits[1]['id']}/withdraw").status == 200
    curator.send("POST", path(retired, "revert"), {"version": 1}, If_Match='"2"')
    assert accept(curator, edits[2]).json["name"] == "New"


def test_a_contributors_delete_proposes_to_retire(curator: Client, contributor: Client) -> None:
    one, two, stand_in, other = (curator.create(name=name) for name in ("one", "two", "stand-in", "other"))
    first = proposed(contributor.send("DELETE", f"{path(one)}?replaced_by={stand_in['id']}", If_Match=match(one)))
    assert first["change"] == {"state": "retired", "replaced_by": stand_in["id"]}
    assert curator.send("GET", path(one)).status == 200
    assert contributor.send("DELETE", f"{path(one)}?replaced_by=trm_none", If_Match=match(one)).status == 422
    assert contributor.send("DELETE", path(one), If_Match='"7"').status == 412
    retired = accept(curator, first)
    assert (retired.status, retired.json["state"], retired.json["replaced_by"]) == (200, "retired", stand_in["id"])
    assert curator.send("GET", path(one)).status == 410
    body = {"collection": "concept", "record": two["id"], "change": {"state": "retired"}}
    second = proposed(contributor.send("POST", "proposals", body))
    for wrong in ({"state": "merged"}, {"state": "retired", "name": "x"}, {"state": "retired", "replaced_by": 5}):
        assert contributor.send("POST", "proposals", {**body, "change": wrong}).status == 422
    assert accept(curator, second, change={"name": "x"}).status == 422
    curator.patch(two, name="changed since")
    assert accept(curator, second, change={"replaced_by": other["id"]}).json["replaced_by"] == other["id"]
    again = proposed(contributor.send("DELETE", path(other), If_Match=match(other)))
    curator.send("DELETE", path(other), If_Match=match(other))
    assert accept(curator, again).status == 409
