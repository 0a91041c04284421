"""Review pages: queue, proposal, decisions and undo."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from tests.support.browserless_client import BrowserlessClient, extract_text
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.server import Server

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module", params=ENGINES)
def curation_server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url(request.param), LEXARIUM_SIGN_IN_RATE="1000") as running:
        yield running


@pytest.fixture
def curator(curation_server: Server) -> BrowserlessClient:
    person = BrowserlessClient(curation_server)
    person.sign_in("curator")
    return person


def create_concept(server: Server, **draft: object) -> str:
    """Create a concept and return its id."""
    return str(server.send_write(server.create_token("curator"), "POST", "concept", draft)["id"])


def create_task(server: Server) -> str:
    """Create a task and return its id."""
    return str(server.send_write(server.create_token("curator"), "POST", "task", {"name": "a task"})["id"])


def create_proposal(server: Server, method: str, path: str, body: object = None) -> str:
    """Create a proposal by a new contributor and return its id."""
    return str(server.send_write(server.create_token("contributor"), method, path, body)["id"])


def get_concept(server: Server, identifier: str) -> Any:
    return server.get(f"/api/v1/concept/{identifier}").json


def get_proposal(server: Server, identifier: str) -> Any:
    return server.get(f"/api/v1/proposals/{identifier}", Authorization=f"Bearer {server.create_token('curator')}").json


def test_only_curators_can_review(curation_server: Server) -> None:
    stranger, contributor = BrowserlessClient(curation_server), BrowserlessClient(curation_server)
    contributor.sign_in("contributor")
    proposal = create_proposal(curation_server, "POST", "concept", {"name": "for curators only"})
    for path in ("/review", f"/review/{proposal}"):
        stranger.open(path)
        assert stranger.path.startswith("/sign-in?next=")
        contributor.open(path, 403)
    contributor.send(f"/review/{proposal}/accept", {}, 403)
    contributor.send(f"/review/{proposal}/reject", {"reason": "x"}, 403)
    assert get_proposal(curation_server, proposal)["state"] == "open"


def test_the_queue_is_filtered_and_paginated(curator: BrowserlessClient) -> None:
    server = curator.server
    token = server.create_token("contributor")
    author = server.get("/api/v1/me", Authorization=f"Bearer {token}").json["id"]
    names = [f"queued {number:02}" for number in range(53)]
    for name in names:
        server.send_write(token, "POST", "task", {"name": name})
    for order, expected in (("", names), ("newest", names[::-1])):
        path, listed = f"/review?collection=task&author={author}&order={order}", list[str]()
        while path:
            body = curator.open(path)
            listed += re.findall(r'<a href="/review/prp_[^"]*">(.*?)</a>', body)
            following = re.search(r'rel="next" href="([^"]+)"', body)
            path = unescape(following.group(1)) if following else ""
        assert listed == expected
    assert "No matching proposals." in curator.open(f"/review?collection=disorder&author={author}")
    curator.open("/review?author=%00&from=x&order=nonsense&decided=%00")


def test_the_queue_links_to_the_records_of_its_proposals(curator: BrowserlessClient) -> None:
    concept = create_concept(curator.server, name="a linked concept")
    create_proposal(curator.server, "PATCH", f"concept/{concept}", {"name": "a renamed concept"})
    item = curator.open("/review?order=newest").partition("a linked concept")[2].partition("</li>")[0]
    assert f'href="/id/{concept}">View record' in item


def test_only_authors_of_visible_proposals_are_named(curator: BrowserlessClient) -> None:
    def find_name(token: str) -> tuple[str, str]:
        account = curator.server.get("/api/v1/me", Authorization=f"Bearer {token}").json
        return account["id"], account["name"]

    author_token, other_token = (curator.server.create_token("contributor") for _ in range(2))
    proposal = curator.server.send_write(author_token, "POST", "concept", {"name": "by a named author"})
    author_id, author = find_name(author_token)
    other_id, other = find_name(other_token)
    assert author in curator.open(f"/review?author={author_id}")
    curator.send(f"/review/{proposal['id']}/reject", {"reason": "x"})
    assert f"selected>{author}<" in curator.open(f"/review?author={author_id}")
    assert other not in curator.open(f"/review?author={other_id}")


def test_accepting_a_new_record_leads_to_the_next_proposal_and_can_be_undone(curator: BrowserlessClient) -> None:
    server = curator.server
    first = create_proposal(server, "POST", "contrast", {"name": "one after"})
    second = create_proposal(server, "POST", "contrast", {"name": "the other"})
    curator.open(f"/review/{first}?collection=contrast")
    assert "one after a new contrast" in extract_text(curator.body)
    curator.press("Accept")
    assert curator.path.startswith(f"/review/{second}?")
    assert "Accepted: one after ." in extract_text(curator.body)
    accepted = get_proposal(server, first)
    assert accepted["state"] == "accepted"
    curator.press("Undo")
    assert "Undone" in curator.body
    assert server.get(f"/api/v1/contrast/{accepted['record']}").status == 410
    assert ">Undo<" not in curator.body
    assert "was changed since" in curator.send(f"/review/{first}/undo", {}, 422)


def test_an_edit_is_shown_as_a_word_diff_edited_in_place_and_undone(curator: BrowserlessClient) -> None:
    server = curator.server
    term = create_concept(server, name="edited in place", definition_text="It is red.")
    change = {"definition_text": "It is green.", "aliases": [{"text": "eip", "lang": "es", "scope": "narrow"}]}
    proposal = create_proposal(server, "PATCH", f"concept/{term}", change)
    body = curator.open(f"/review/{proposal}")
    assert "It is <del>red</del>." in body
    assert "It is <ins>green</ins>." in body
    assert "eip | es | narrow" in body
    curator.press("Accept", {"definition_text": "It is blue.", "aliases": "eip | es | nonsense"}, 422)
    assert 'id="aliases-wrong"' in curator.body
    assert "It is blue." in curator.body
    curator.press("Accept", {"aliases": "eip\r\nother | pt-BR"})
    accepted = get_concept(server, term)
    assert accepted["definition_text"] == "It is blue."
    assert [(alias["text"], alias["lang"]) for alias in accepted["aliases"]] == [("eip", "en"), ("other", "pt-BR")]
    assert get_proposal(server, proposal)["version"] == 2
    curator.press("Undo")
    assert get_concept(server, term)["definition_text"] == "It is red."
    assert get_concept(server, term)["aliases"] == []


def test_unchanged_list_entries_are_shown_on_both_sides(curator: BrowserlessClient) -> None:
    server, parent = curator.server, create_concept(curator.server, name="a parent")
    aliases = [{"text": "kept name"}, {"text": "old name"}]
    term = create_concept(server, name="has names", aliases=aliases, sources=["A book"], relations={"KINDOF": [parent]})
    new_aliases = [{"text": "kept name"}, {"text": "new name"}]
    change = {"aliases": new_aliases, "sources": ["A book", "A paper"], "relations": {"PARTOF": [parent]}}
    proposal = create_proposal(server, "PATCH", f"concept/{term}", change)
    page_text = extract_text(curator.open(f"/review/{proposal}"))
    assert "Current kept name old name Proposed kept name new name" in page_text
    assert "Current A book Proposed A book A paper" in page_text
    assert "Current kind of a parent Proposed kind of a parent part of a parent" in page_text
    curator.press("Accept")
    assert "kept name" not in extract_text(curator.open(f"/id/{term}/history")), "a history has only what came and went"


def test_an_undone_acceptance_is_shown_as_undone(curator: BrowserlessClient) -> None:
    server, author = curator.server, BrowserlessClient(curator.server)
    author.sign_in("contributor")
    term = create_concept(server, name="to and fro", definition_text="Before.")
    author.open(f"/edit/{term}")
    author.press("Propose", {"definition_text": "After."})
    edit = re.findall(r'<li id="(prp_[^"]+)"', author.body)[0]
    creation = create_proposal(server, "POST", "concept", {"name": "for a moment"})
    retirement = create_proposal(server, "DELETE", f"task/{create_task(server)}")
    for proposal in (edit, creation, retirement):
        curator.open(f"/review/{proposal}")
        curator.press("Accept")
        assert "That was undone" not in curator.open(f"/review/{proposal}")
        curator.press("Undo")
        assert re.search(
            r"It was accepted by curator \w+ on .* That was undone by curator \w+ on", extract_text(curator.body)
        )
    assert re.search(r"accepted by curator \w+\s?; undone .* by curator", extract_text(author.open("/proposals")))
    curator.open(f"/edit/{term}")
    curator.press("Publish", {"definition_text": "Later."})
    assert "That was undone" in curator.open(f"/review/{edit}"), "whatever comes after"


def test_an_unedited_proposal_is_accepted_unchanged(curator: BrowserlessClient) -> None:
    server = curator.server
    target = create_concept(server, name="a target")
    term = create_concept(server, name="left alone", definition_text="Line one.\nLine two.")
    change = {"sources": ["a | b"], "aliases": [{"text": "x|y"}], "relations": {"KINDOF": [target]}}
    proposal = create_proposal(server, "PATCH", f"concept/{term}", change)
    curator.open(f"/review/{proposal}")
    assert "kind of a target" in extract_text(curator.body)
    curator.press("Accept")
    accepted = get_concept(server, term)
    assert accepted["sources"] == ["a | b"]
    assert accepted["aliases"] == [{"text": "x|y", "lang": "en", "scope": "exact"}]
    assert accepted["relations"] == {"KINDOF": [target]}
    assert accepted["definition_text"] == "Line one.\nLine two."


def test_a_class_retired_meanwhile_is_reported_and_not_dropped(curator: BrowserlessClient) -> None:
    server, token = curator.server, curator.server.create_token("curator")
    group = server.send_write(token, "POST", "concept_class", {"name": "a class to be gone"})["id"]
    term = create_concept(server, name="classed")
    proposals = [
        create_proposal(server, "POST", "concept", {"name": "classed anew", "id_concept_class": group}),
        create_proposal(server, "PATCH", f"concept/{term}", {"id_concept_class": group}),
    ]
    server.send_write(token, "DELETE", f"concept_class/{group}")
    for proposal in proposals:
        curator.open(f"/review/{proposal}")
        curator.press("Accept", status=422)
        assert 'id="id_concept_class-wrong"' in curator.body
        assert get_proposal(server, proposal)["state"] == "open"
        curator.send(f"/review/{proposal}/accept", {"version": "1"}, 422)
        curator.open(f"/review/{proposal}")
        curator.press("Accept", {"id_concept_class": ""})
        assert get_proposal(server, proposal)["state"] == "accepted"


@pytest.mark.parametrize(
    ("choice", "expected"), [("ours", "It is theirs."), ("theirs", "It is proposed."), ("mine", "It is mine.")]
)
def test_conflicting_fields_are_resolved_by_a_choice(curator: BrowserlessClient, choice: str, expected: str) -> None:
    server = curator.server
    term = create_concept(server, name=f"moved {choice}", definition_text="It was.")
    proposal = create_proposal(
        server, "PATCH", f"concept/{term}", {"definition_text": "It is proposed.", "sources": ["s"]}
    )
    server.send_write(server.create_token("curator"), "PATCH", f"concept/{term}", {"definition_text": "It is theirs."})
    body = curator.open(f"/review/{proposal}")
    assert "Conflicting changes" in body
    assert "<del>was</del><ins>is theirs</ins>" in body
    curator.press("Accept", {"definition_text": "It is mine."}, 422)
    assert "Resolve this conflict." in curator.body
    assert "It is mine." in curator.body
    curator.press("Accept", {"choice-definition_text": choice})
    assert get_concept(server, term)["definition_text"] == expected
    assert get_concept(server, term)["sources"] == ["s"]


def test_changes_since_the_review_page_was_opened_are_shown_before_anything_is_written(
    curator: BrowserlessClient,
) -> None:
    server = curator.server
    term = create_concept(server, name="moving", definition_text="one")
    proposal = create_proposal(server, "PATCH", f"concept/{term}", {"definition_text": "two"})
    curator.open(f"/review/{proposal}")
    server.send_write(server.create_token("curator"), "PATCH", f"concept/{term}", {"name": "moving on"})
    curator.press("Accept", status=422)
    assert "is at version 2" in curator.body
    assert get_concept(server, term)["definition_text"] == "one"
    curator.press("Accept")
    assert get_concept(server, term)["definition_text"] == "two"
    assert get_concept(server, term)["name"] == "moving on"


def test_a_retirement_is_accepted_with_another_replacement_and_undone(curator: BrowserlessClient) -> None:
    server = curator.server
    term, successor = create_concept(server, name="to be retired"), create_concept(server, name="successor")
    proposal = create_proposal(server, "DELETE", f"concept/{term}")
    curator.open(f"/review/{proposal}")
    assert "to be retired" in extract_text(curator.body)
    curator.press("Accept", {"replaced_by": "trm_nowhere"}, 422)
    assert "Must be another published record." in curator.body
    curator.press("Accept", {"replaced_by": successor})
    assert server.get(f"/api/v1/concept/{term}").json["replaced_by"] == successor
    curator.press("Undo")
    assert get_concept(server, term)["state"] == "published"


def test_a_proposal_for_a_retired_record_can_only_be_rejected(curator: BrowserlessClient) -> None:
    server = curator.server
    term = create_concept(server, name="gone meanwhile")
    proposal = create_proposal(server, "PATCH", f"concept/{term}", {"name": "too late"})
    server.send_write(server.create_token("curator"), "DELETE", f"concept/{term}")
    body = curator.open(f"/review/{proposal}")
    assert "The record is retired now." in extract_text(body)
    assert ">Accept<" not in body
    curator.press("Reject", {"reason": "It is retired."})
    assert get_proposal(server, proposal)["reason"] == "It is retired."


def test_a_rejection_requires_a_reason_that_the_author_sees(curator: BrowserlessClient) -> None:
    server = curator.server
    proposal = create_proposal(server, "POST", "concept", {"name": "turned down"})
    curator.open(f"/review/{proposal}")
    curator.press("Reject", {"reason": "  "}, 422)
    assert 'id="reason-wrong"' in curator.body
    curator.press("Reject", {"reason": f"Because {HOSTILE}"})
    assert "Rejected: turned down ." in extract_text(curator.body)
    assert HOSTILE not in curator.open(f"/review/{proposal}")
    assert f"Because {HOSTILE}" in unescape(curator.body)
    curator.send(f"/review/{proposal}/accept", {}, 422)
    assert "is already rejected" in curator.body


def test_similar_names_are_listed(curator: BrowserlessClient) -> None:
    server = curator.server
    similar = create_concept(server, name="cognitive dissonance")
    proposal = create_proposal(server, "POST", "concept", {"name": "Cognitive-Dissonance"})
    body = curator.open(f"/review/{proposal}")
    assert "Similar names" in body
    assert f'href="/id/{similar}"' in body


def test_records_with_similar_names_can_be_merged_from_the_queue(curator: BrowserlessClient) -> None:
    server = curator.server
    one, other = sorted([create_concept(server, name="namesake"), create_concept(server, name="Namesake")])
    body = curator.open("/review")
    assert f'href="/merge/{other}?into={one}"' in body
    names = {identifier: get_concept(server, identifier)["name"] for identifier in (one, other)}
    for identifier, name in names.items():
        assert f'<a href="/id/{identifier}">{name}</a>' in body
    assert f"{names[one]} {one} concept none {names[other]} {other} concept none Merge" in extract_text(body)
    for kind in ("undefined", "placeholder", "repeated", "apart"):
        assert f'href="/statistics/gaps/{kind}"' in body
    assert 'href="/browse/disorder?flagged=1"' in body


def test_hostile_text_is_escaped(curator: BrowserlessClient) -> None:
    server = curator.server
    draft = {"name": HOSTILE, "definition_text": HOSTILE, "aliases": [{"text": HOSTILE}], "sources": [HOSTILE]}
    proposal = create_proposal(server, "POST", "concept", draft)
    for path in ("/review?order=newest", f"/review/{proposal}"):
        assert HOSTILE not in curator.open(path)
        assert HOSTILE in unescape(curator.body)
    curator.press("Accept")
    assert HOSTILE not in curator.body
    assert get_concept(server, get_proposal(server, proposal)["record"])["name"] == HOSTILE


def test_an_unknown_proposal_gets_a_404(curator: BrowserlessClient) -> None:
    curator.open("/review/prp_nothing", 404)
    curator.send("/review/prp_nothing/reject", {"reason": "x"}, 404)
