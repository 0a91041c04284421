"""Merging and its way back, over HTTP on both engines: what moves, what falls away, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.server import Answer, Server
from tests.test_import import imported, kind_of, term
from tests.test_v1 import Client, match, path


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> Client:
    return Client(shared_server, "curator")


def merge(curator: Client, gone: str, into: str) -> Answer:
    record = look(curator, gone)
    answer = curator.send("POST", path(record, "merge"), {"into": into}, If_Match=match(record))
    assert answer.status == 200, answer.body
    return answer


def take_back(curator: Client, record: dict[str, Any]) -> Answer:
    """Revert a record that was merged to what it was when it was last read."""
    newest = curator.send("GET", path(record, "history")).json["items"][0]
    return curator.send("POST", path(record, "revert"), {"version": record["version"]}, If_Match=match(newest))


def look(curator: Client, identifier: str) -> dict[str, Any]:
    found: dict[str, Any] = curator.send("GET", f"records/{identifier}").json
    return found


def content(curator: Client, *identifiers: str) -> list[dict[str, Any]]:
    """What people wrote of these records."""
    kept = ("name", "definition_text", "alias", "aliases", "id_concept_class", "relations", "state")
    return [{name: record.get(name) for name in kept} for record in (look(curator, each) for each in identifiers)]


def test_taking_a_merge_back_after_an_import_leaves_what_was_imported(
    shared_server: Server, curator: Client, tmp_path: Path
) -> None:
    gone, kept = curator.create(name="gone"), curator.create(name="kept")
    merge(curator, gone["id"], kept["id"])
    database = Database(shared_server.url)
    told = {key: value for key, value in gone.items() if key in term("x")}
    imported(database, tmp_path, "concept.json", [told | {"definition_text": "Imported."}, term("brought")])
    database.close()
    before = content(curator, "trm_brought")
    answer = take_back(curator, gone)
    assert (answer.status, answer.json["name"], answer.json["state"]) == (200, "gone", "published")
    assert look(curator, kept["id"])["aliases"] == []
    assert content(curator, "trm_brought") == before


def test_merges_that_follow_one_another_are_taken_back_the_last_first(curator: Client) -> None:
    one, two, three = (curator.create(name=name) for name in ("one", "two", "three"))
    pointing = curator.create(name="pointing", relations={"PARTOF": [one["id"]]})
    everyone = [each["id"] for each in (one, two, three, pointing)]
    before = content(curator, *everyone)
    merge(curator, one["id"], two["id"])
    survivor = look(curator, two["id"])
    merge(curator, two["id"], three["id"])
    refused = take_back(curator, one)
    assert (refused.status, refused.json["undo_first"]) == (409, two["id"])
    assert two["id"] in refused.json["detail"]
    assert take_back(curator, survivor).status == 200
    assert look(curator, pointing["id"])["relations"] == {"PARTOF": [two["id"]]}
    assert take_back(curator, one).status == 200
    assert content(curator, *everyone) == before


def test_a_record_that_named_the_merged_one_must_be_back_first(curator: Client) -> None:
    one, two, other = (curator.create(name=name) for name in ("one", "two", "other"))
    pointing = curator.create(name="pointing", relations={"PARTOF": [one["id"]]})
    merge(curator, one["id"], two["id"])
    turned = look(curator, pointing["id"])
    merge(curator, pointing["id"], other["id"])
    assert take_back(curator, one).json["undo_first"] == pointing["id"]
    assert take_back(curator, turned).status == 200
    assert take_back(curator, one).status == 200
    assert look(curator, pointing["id"])["relations"] == {"PARTOF": [one["id"]]}


def test_merges_into_one_record_are_taken_back_in_any_order_unless_both_brought_the_same(curator: Client) -> None:
    kept, one, two, alike = (curator.create(name=name) for name in ("kept", "one", "two", "ONE"))
    before = content(curator, kept["id"], one["id"], two["id"], alike["id"])
    for each in (one, two, alike):
        merge(curator, each["id"], kept["id"])
    assert [alias["text"] for alias in look(curator, kept["id"])["aliases"]] == ["one", "two"]
    refused = take_back(curator, one)
    assert (refused.status, refused.json["undo_first"]) == (409, alike["id"])
    for each in (two, alike, one):
        assert take_back(curator, each).status == 200
    assert content(curator, kept["id"], one["id"], two["id"], alike["id"]) == before


def test_a_record_comes_back_only_after_those_that_it_names(curator: Client) -> None:
    top, other, kept = (curator.create(name=name) for name in ("top", "other", "kept"))
    gone = curator.create(name="gone", relations={"KINDOF": [top["id"]]})
    curator.patch(kept, relations={"KINDOF": [top["id"]]})
    merge(curator, gone["id"], kept["id"])
    merge(curator, top["id"], other["id"])
    assert take_back(curator, gone).json["undo_first"] == top["id"]
    assert take_back(curator, top).status == 200
    assert take_back(curator, gone).json["relations"] == {"KINDOF": [top["id"]]}


def test_what_was_imported_merges_without_leftovers(shared_server: Server, curator: Client, tmp_path: Path) -> None:
    database = Database(shared_server.url)
    records = [term("nameless", name=" "), term("loop", relationships=[kind_of("loop")]), term("rest", alias="a;b ;c")]
    imported(database, tmp_path, "concept.json", records)
    kept = curator.create(name="kept", aliases=[{"text": "Caf\u00e9"}])
    accented = curator.create(name="cafe\u0301")
    before = content(curator, kept["id"], "trm_rest")
    for each in ("trm_nameless", "trm_loop", accented["id"]):
        merge(curator, each, kept["id"])
    survivor = look(curator, kept["id"])
    assert [alias["text"] for alias in survivor["aliases"]] == ["Café", "loop"]
    assert survivor["relations"] == {}
    back = curator.send("POST", "concept/trm_loop/revert", {"version": 1}, If_Match='"2"')
    assert (back.status, back.json["relations"]) == (200, {})
    merge(curator, curator.create(name="more")["id"], "trm_rest")
    more = curator.send("GET", "concept?state=merged&sort=-updated&limit=1").json["items"][0]
    assert take_back(curator, {**more, "version": 1}).status == 200
    assert content(curator, "trm_rest") == before[1:]
    assert check(database).problems == []
    database.close()


def test_merging_a_class_takes_its_members_along_and_back(shared_server: Server, curator: Client) -> None:
    gone, kept = (curator.create("concept_class", name=name) for name in ("gone", "kept"))
    concept = curator.create(name="member", id_concept_class=gone["id"])
    task = curator.create("task", name="member", id_concept_class=gone["id"])
    moved_on = curator.create(name="moves on", id_concept_class=gone["id"])
    retired = curator.create(name="retired", id_concept_class=gone["id"])
    curator.send("DELETE", path(retired), If_Match=match(retired))
    merge(curator, gone["id"], kept["id"])
    assert look(curator, concept["id"])["id_concept_class"] == kept["id"]
    assert shared_server.get(f"/api/v1/task?class={kept['id']}").json["items"][0]["id"] == task["id"]
    assert shared_server.get(f"/api/v1/{path(task)}/history").json["items"][0]["action"] == "merge"
    curator.patch(look(curator, moved_on["id"]), id_concept_class="")
    assert take_back(curator, gone).status == 200
    for record, label in ((concept, gone["id"]), (task, gone["id"]), (moved_on, "")):
        assert look(curator, record["id"])["id_concept_class"] == label
    back = take_back(curator, retired)
    assert (back.json["state"], back.json["id_concept_class"]) == ("published", gone["id"])


def test_a_revert_names_the_survivor_of_what_was_merged_since(curator: Client) -> None:
    parent, survivor, itself, retired = (curator.create(name=name) for name in ("parent", "survivor", "it", "retired"))
    label, kept_label = (curator.create("concept_class", name=name) for name in ("label", "kept"))
    relations = {"KINDOF": [parent["id"], retired["id"]], "PARTOF": [itself["id"]]}
    record = curator.create(name="first", relations=relations, id_concept_class=label["id"])
    second = curator.patch(record, name="second", relations=None, id_concept_class="")
    curator.send("DELETE", path(retired), If_Match=match(retired))
    merge(curator, itself["id"], record["id"])
    merge(curator, parent["id"], survivor["id"])
    merge(curator, label["id"], kept_label["id"])
    answer = curator.send("POST", path(record, "revert"), {"version": 1}, If_Match=f'"{second["version"] + 1}"')
    assert answer.status == 200
    # What is retired comes back with its relations: they are kept, as they are where nothing was reverted.
    assert answer.json["relations"] == {"KINDOF": sorted([survivor["id"], retired["id"]])}
    assert answer.json["id_concept_class"] == kept_label["id"]
