"""Proposals over HTTP on both engines: content, ownership, conflicts."""

from typing import Any

import pytest

from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


@pytest.fixture(scope="module")
def contributor(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "contributor")


def get_own_id(client: V1Client) -> str:
    identifier: str = client.send("GET", "me").json["id"]
    return identifier


def expect_proposal(response: HttpResponse) -> dict[str, Any]:
    assert response.status == 202, response.body
    proposal: dict[str, Any] = response.json
    return proposal


def accept(curator: V1Client, proposal: dict[str, Any], **body: Any) -> HttpResponse:
    return curator.send("POST", f"proposals/{proposal['id']}/accept", body)


WRITABLE = ("name", "definition_text", "id_concept_class", "aliases", "sources", "relations")


def test_a_proposal_contains_only_its_changes(curator: V1Client, contributor: V1Client) -> None:
    other = curator.create(name="other")
    record = curator.create(name="One", definition_text="Old.", aliases=[{"text": "a"}], sources=["s"])
    draft = {name: record[name] for name in WRITABLE}
    put = expect_proposal(
        contributor.send("PUT", build_path(record), {**draft, "name": "Two"}, If_Match=get_etag(record))
    )
    assert put["change"] == {"name": "Two"}
    repeating = {"name": "One", "sources": ["t"], "aliases": record["aliases"]}
    patch = expect_proposal(contributor.send("PATCH", build_path(record), repeating, If_Match=get_etag(record)))
    assert patch["change"] == {"sources": ["t"]}
    curator.patch(record, definition_text="New.", relations={"KINDOF": [other["id"]]}, aliases=[])
    accept(curator, put)
    accepted = accept(curator, patch).json
    assert [accepted[name] for name in WRITABLE] == ["Two", "New.", "", [], ["t"], {"KINDOF": [other["id"]]}]


def test_a_proposal_without_changes_is_rejected(curator: V1Client, contributor: V1Client) -> None:
    record = curator.create(name="One", relations={"exactMatch": ["B:1", "A:1"]})
    draft = {name: record[name] for name in WRITABLE}
    same = {**draft, "relations": {"exactMatch": ["B:1", "A:1"], "KINDOF": []}}
    for method, body in (("PUT", draft), ("PUT", same), ("PATCH", {"name": "One"}), ("PATCH", {})):
        rejected = contributor.send(method, build_path(record), body, If_Match=get_etag(record))
        assert rejected.status == 422
        assert "No changes" in rejected.json["detail"]
    body = {"collection": "concept", "record": record["id"], "change": {"name": "One"}}
    assert curator.send("POST", "proposals", body).status == 422


def test_an_accepted_proposal_is_attributed_to_its_author(curator: V1Client, contributor: V1Client) -> None:
    author, decider = get_own_id(contributor), get_own_id(curator)
    creation = expect_proposal(contributor.send("POST", "concept", {"name": "New", "definition_text": "Mine."}))
    record = accept(curator, creation).json
    assert (record["id_user"], record["def_id_user"], record["updated_by"]) == (author, author, decider)
    edit = expect_proposal(
        contributor.send("PATCH", build_path(record), {"definition_text": "Better."}, If_Match=get_etag(record))
    )
    edited = accept(curator, edit).json
    assert (edited["def_id_user"], edited["def_id"] != record["def_id"]) == (author, True)
    renamed = curator.patch(edited, name="Newer")
    history = curator.send("GET", build_path(record, "history")).json["items"]
    origins = [(change["actor"], change["proposal"], change["proposed_by"]) for change in history]
    assert origins == [(decider, None, None), (decider, edit["id"], author), (decider, creation["id"], author)]
    fed = [change for change in curator.send("GET", "changes?limit=1000").json["items"] if change["id"] == record["id"]]
    assert [(change["proposal"], change["proposed_by"]) for change in fed] == [
        change[1:] for change in reversed(origins)
    ]
    proposals = [contributor.send("GET", f"proposals/{change['id']}").json for change in (creation, edit)]
    assert [(change["record"], change["version"]) for change in proposals] == [(record["id"], 1), (record["id"], 2)]
    assert renamed["id_user"] == author


def test_a_definition_written_by_the_curator_is_attributed_to_the_curator(
    curator: V1Client, contributor: V1Client
) -> None:
    author, decider = get_own_id(contributor), get_own_id(curator)
    creation = expect_proposal(contributor.send("POST", "task", {"name": "New", "definition_text": "Mine."}))
    record = accept(curator, creation, change={"definition_text": "Ours."}).json
    assert (record["name"], record["id_user"], record["def_id_user"]) == ("New", author, decider)
    edit = expect_proposal(
        contributor.send("PATCH", build_path(record), {"definition_text": "Again."}, If_Match=get_etag(record))
    )
    edited = accept(curator, edit, change={"definition_text": "Still ours."}).json
    assert (edited["definition_text"], edited["def_id_user"]) == ("Still ours.", decider)


def test_resolving_a_conflict_keeps_the_rest_of_the_proposal(curator: V1Client, contributor: V1Client) -> None:
    record = curator.create(name="One", sources=["s"])
    change = {"name": "Two", "definition_text": "Mine.", "sources": ["t"]}
    edit = expect_proposal(contributor.send("PATCH", build_path(record), change, If_Match=get_etag(record)))
    curator.patch(record, name="Three", sources=["u"])
    assert [conflict["field"] for conflict in accept(curator, edit).json["conflicts"]] == ["name", "sources"]
    half = accept(curator, edit, change={"name": "Four"})
    assert (half.status, [conflict["field"] for conflict in half.json["conflicts"]]) == (409, ["sources"])
    accepted = accept(curator, edit, change={"name": "Four", "sources": ["t", "u"]}).json
    assert [accepted[name] for name in change] == ["Four", "Mine.", ["t", "u"]]


def test_a_proposal_for_a_merged_or_retired_record_shows_its_state_and_can_only_be_rejected(
    curator: V1Client, contributor: V1Client
) -> None:
    merged, retired, survivor = (curator.create(name=name) for name in ("merged", "retired", "kept"))
    edits = [
        expect_proposal(contributor.send("PATCH", build_path(record), {"name": "New"}, If_Match=get_etag(record)))
        for record in (merged, retired, retired)
    ]
    curator.send("POST", build_path(merged, "merge"), {"into": survivor["id"]}, If_Match=get_etag(merged))
    curator.send("DELETE", build_path(retired), If_Match=get_etag(retired))
    for edit, state, replaced_by in (edits[0], "merged", survivor["id"]), (edits[1], "retired", None):
        states = {"base": "published", "current": state, "proposed": "published"}
        conflict = {"field": "state", **states, "replaced_by": replaced_by}
        assert contributor.send("GET", f"proposals/{edit['id']}").json["conflicts"] == [conflict]
        for body in ({}, {"change": {"name": "Other"}}):
            rejected = accept(curator, edit, **body)
            assert (rejected.status, rejected.json["conflicts"]) == (409, [conflict])
            assert state in rejected.json["detail"]
    assert survivor["id"] in accept(curator, edits[0]).json["detail"]
    assert curator.send("POST", f"proposals/{edits[0]['id']}/reject", {"reason": "Gone."}).status == 200
    assert contributor.send("POST", f"proposals/{edits[1]['id']}/withdraw").status == 200
    curator.send("POST", build_path(retired, "revert"), {"version": 1}, If_Match='"2"')
    assert accept(curator, edits[2]).json["name"] == "New"


def test_a_delete_by_a_contributor_proposes_to_retire(curator: V1Client, contributor: V1Client) -> None:
    one, two, replacement, other = (curator.create(name=name) for name in ("one", "two", "stand-in", "other"))
    first = expect_proposal(
        contributor.send("DELETE", f"{build_path(one)}?replaced_by={replacement['id']}", If_Match=get_etag(one))
    )
    assert first["change"] == {"state": "retired", "replaced_by": replacement["id"]}
    assert curator.send("GET", build_path(one)).status == 200
    assert contributor.send("DELETE", f"{build_path(one)}?replaced_by=trm_none", If_Match=get_etag(one)).status == 422
    assert contributor.send("DELETE", build_path(one), If_Match='"7"').status == 412
    retired = accept(curator, first)
    assert (retired.status, retired.json["state"], retired.json["replaced_by"]) == (200, "retired", replacement["id"])
    assert curator.send("GET", build_path(one)).status == 410
    body = {"collection": "concept", "record": two["id"], "change": {"state": "retired"}}
    second = expect_proposal(contributor.send("POST", "proposals", body))
    for invalid_change in (
        {"state": "merged"},
        {"state": "retired", "name": "x"},
        {"state": "retired", "replaced_by": 5},
    ):
        assert contributor.send("POST", "proposals", {**body, "change": invalid_change}).status == 422
    assert accept(curator, second, change={"name": "x"}).status == 422
    curator.patch(two, name="changed since")
    assert accept(curator, second, change={"replaced_by": other["id"]}).json["replaced_by"] == other["id"]
    second_proposal = expect_proposal(contributor.send("DELETE", build_path(other), If_Match=get_etag(other)))
    curator.send("DELETE", build_path(other), If_Match=get_etag(other))
    assert accept(curator, second_proposal).status == 409
