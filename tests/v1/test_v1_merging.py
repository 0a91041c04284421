"""Merging and reverting over HTTP on both engines."""

import time
from pathlib import Path
from typing import Any

import pytest

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.imports import build_kind_of, build_term, import_json
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


def merge(curator: V1Client, merged_id: str, survivor_id: str) -> HttpResponse:
    record = get_record(curator, merged_id)
    response = curator.send("POST", build_path(record, "merge"), {"into": survivor_id}, If_Match=get_etag(record))
    assert response.status == 200, response.body
    return response


def revert_merge(curator: V1Client, record: dict[str, Any]) -> HttpResponse:
    """Revert a merged record to its last version before the merge."""
    newest = curator.send("GET", build_path(record, "history")).json["items"][0]
    return curator.send("POST", build_path(record, "revert"), {"version": record["version"]}, If_Match=get_etag(newest))


def get_record(curator: V1Client, identifier: str) -> dict[str, Any]:
    record: dict[str, Any] = curator.send("GET", f"records/{identifier}").json
    return record


def get_content(curator: V1Client, *identifiers: str) -> list[dict[str, Any]]:
    """Return the editable fields of records."""
    field_names = ("name", "definition_text", "alias", "aliases", "id_concept_class", "relations", "state")
    return [
        {name: record.get(name) for name in field_names}
        for record in (get_record(curator, record_id) for record_id in identifiers)
    ]


def test_reverting_a_merge_after_an_import_keeps_imported_content(
    shared_server: Server, curator: V1Client, tmp_path: Path
) -> None:
    merged, survivor = curator.create(name="gone"), curator.create(name="kept")
    merge(curator, merged["id"], survivor["id"])
    database = Database(shared_server.url)
    imported_fields = {key: value for key, value in merged.items() if key in build_term("x")}
    import_json(
        database, tmp_path, "concept.json", [imported_fields | {"definition_text": "Imported."}, build_term("brought")]
    )
    database.close()
    before = get_content(curator, "trm_brought")
    response = revert_merge(curator, merged)
    assert (response.status, response.json["name"], response.json["state"]) == (200, "gone", "published")
    assert get_record(curator, survivor["id"])["aliases"] == []
    assert get_content(curator, "trm_brought") == before


def test_a_survivor_without_a_definition_takes_over_that_of_the_merged_record_until_the_merge_is_reverted(
    curator: V1Client,
) -> None:
    merged = curator.create(name="defined", definition_text="A meaning.")
    bare, other = curator.create(name="bare", definition_text=""), curator.create(name="other", definition_text="Own.")
    merge(curator, merged["id"], bare["id"])
    assert get_record(curator, bare["id"])["definition"] == "A meaning."
    assert revert_merge(curator, merged).json["definition"] == "A meaning."
    assert get_record(curator, bare["id"])["definition"] == ""
    merge(curator, merged["id"], other["id"])
    assert get_record(curator, other["id"])["definition"] == "Own."


def test_a_reverted_merge_restores_what_v_alpha_says_of_the_definition_and_aliases(curator: V1Client) -> None:
    aliases = [{"text": "twice"}, {"text": "twice"}]
    merged = curator.create(name="gone again", definition_text="A meaning.")
    bare = curator.create(name="kept again", definition_text="", aliases=aliases)
    merge(curator, merged["id"], bare["id"])
    assert get_record(curator, bare["id"])["def_id"] != bare["def_id"]
    assert revert_merge(curator, merged).status == 200
    reverted = get_record(curator, bare["id"])
    for name in ("alias", "def_id", "def_id_user", "def_event_stamp"):
        assert reverted[name] == bare[name]


def test_a_definition_that_a_survivor_takes_over_keeps_its_author_and_time(
    shared_server: Server, curator: V1Client
) -> None:
    author = V1Client(shared_server, "curator")
    merged = author.create(name="written by another", definition_text="A meaning.")
    bare = curator.create(name="without a text", definition_text="")
    defined = curator.create(name="with its own text", definition_text="Own.")
    assert merged["def_id_user"] != bare["def_id_user"] == defined["def_id_user"]
    time.sleep(1)  # times of definitions have seconds
    merge(curator, merged["id"], bare["id"])
    [shown] = [item for item in shared_server.get("/api/v-alpha/concept").json if item["id"] == bare["id"]]
    for name in ("def_id_user", "def_event_stamp"):
        assert get_record(curator, bare["id"])[name] == shown[name] == merged[name]
    assert shown["def_id"] not in (merged["def_id"], bare["def_id"])
    assert revert_merge(curator, merged).status == 200
    merge(curator, merged["id"], defined["id"])
    for name in ("def_id", "def_id_user", "def_event_stamp"):
        assert get_record(curator, bare["id"])[name] == bare[name]
        assert get_record(curator, defined["id"])[name] == defined[name]


def test_a_survivor_does_not_take_over_a_translation_as_its_definition(curator: V1Client) -> None:
    translations = [{"text": "Eine Bedeutung.", "lang": "de"}]
    merged = curator.create(name="translated", definition_text="", definitions=translations)
    bare = curator.create(name="untranslated", definition_text="")
    merge(curator, merged["id"], bare["id"])
    assert (get_record(curator, bare["id"])["definition"], get_record(curator, bare["id"])["definitions"]) == ("", [])


def test_a_merge_that_gave_a_definition_is_reverted_after_a_later_one_that_would_have_given_another(
    curator: V1Client,
) -> None:
    first, second = (curator.create(name=name, definition_text=f"{name}.") for name in ("first given", "second given"))
    bare = curator.create(name="without any", definition_text="")
    merge(curator, first["id"], bare["id"])
    merge(curator, second["id"], bare["id"])
    refused = revert_merge(curator, first)
    assert (refused.status, refused.json["undo_first"]) == (409, second["id"])
    for merged in (second, first):
        assert revert_merge(curator, merged).status == 200
    assert get_record(curator, bare["id"])["definition"] == ""


def test_successive_merges_are_reverted_in_reverse_order(curator: V1Client) -> None:
    first, second, third = (curator.create(name=name) for name in ("one", "two", "three"))
    pointing = curator.create(name="pointing", relations={"PARTOF": [first["id"]]})
    record_ids = [record["id"] for record in (first, second, third, pointing)]
    before = get_content(curator, *record_ids)
    merge(curator, first["id"], second["id"])
    survivor = get_record(curator, second["id"])
    merge(curator, second["id"], third["id"])
    rejected = revert_merge(curator, first)
    assert (rejected.status, rejected.json["undo_first"]) == (409, second["id"])
    assert second["id"] in rejected.json["detail"]
    assert revert_merge(curator, survivor).status == 200
    assert get_record(curator, pointing["id"])["relations"] == {"PARTOF": [second["id"]]}
    assert revert_merge(curator, first).status == 200
    assert get_content(curator, *record_ids) == before


def test_records_that_referred_to_the_merged_one_must_be_reverted_first(curator: V1Client) -> None:
    first, second, other = (curator.create(name=name) for name in ("one", "two", "other"))
    pointing = curator.create(name="pointing", relations={"PARTOF": [first["id"]]})
    merge(curator, first["id"], second["id"])
    redirected = get_record(curator, pointing["id"])
    merge(curator, pointing["id"], other["id"])
    assert revert_merge(curator, first).json["undo_first"] == pointing["id"]
    assert revert_merge(curator, redirected).status == 200
    assert revert_merge(curator, first).status == 200
    assert get_record(curator, pointing["id"])["relations"] == {"PARTOF": [first["id"]]}


def test_merges_into_one_record_are_reverted_in_any_order_unless_both_added_the_same_content(curator: V1Client) -> None:
    survivor, first, second, same_name = (curator.create(name=name) for name in ("kept", "one", "two", "ONE"))
    before = get_content(curator, survivor["id"], first["id"], second["id"], same_name["id"])
    for record in (first, second, same_name):
        merge(curator, record["id"], survivor["id"])
    assert [alias["text"] for alias in get_record(curator, survivor["id"])["aliases"]] == ["one", "two"]
    rejected = revert_merge(curator, first)
    assert (rejected.status, rejected.json["undo_first"]) == (409, same_name["id"])
    for record in (second, same_name, first):
        assert revert_merge(curator, record).status == 200
    assert get_content(curator, survivor["id"], first["id"], second["id"], same_name["id"]) == before


def test_a_source_added_by_two_merges_is_kept_until_both_are_reverted(curator: V1Client) -> None:
    survivor = curator.create(name="kept")
    first, second = (curator.create(name=name, sources=["Both."]) for name in ("one", "two"))
    before = get_content(curator, survivor["id"], first["id"], second["id"])
    for record in (first, second):
        merge(curator, record["id"], survivor["id"])
    rejected = revert_merge(curator, first)
    assert (rejected.status, rejected.json["undo_first"]) == (409, second["id"])
    assert revert_merge(curator, second).status == 200
    assert get_record(curator, survivor["id"])["sources"] == ["Both."]
    assert revert_merge(curator, first).status == 200
    assert get_content(curator, survivor["id"], first["id"], second["id"]) == before


def test_a_record_is_restored_only_after_the_records_it_refers_to(curator: V1Client) -> None:
    top, other, survivor = (curator.create(name=name) for name in ("top", "other", "kept"))
    merged = curator.create(name="gone", relations={"KINDOF": [top["id"]]})
    curator.patch(survivor, relations={"KINDOF": [top["id"]]})
    merge(curator, merged["id"], survivor["id"])
    merge(curator, top["id"], other["id"])
    assert revert_merge(curator, merged).json["undo_first"] == top["id"]
    assert revert_merge(curator, top).status == 200
    assert revert_merge(curator, merged).json["relations"] == {"KINDOF": [top["id"]]}


def test_imported_records_are_merged_and_reverted_without_leftovers(
    shared_server: Server, curator: V1Client, tmp_path: Path
) -> None:
    database = Database(shared_server.url)
    records = [
        build_term("nameless", name=" "),
        build_term("loop", relationships=[build_kind_of("loop")]),
        build_term("rest", alias="a;b ;c"),
    ]
    import_json(database, tmp_path, "concept.json", records)
    merge_target = curator.create(name="kept", aliases=[{"text": "Caf\u00e9"}])
    accented = curator.create(name="cafe\u0301")
    before = get_content(curator, merge_target["id"], "trm_rest")
    for record_id in ("trm_nameless", "trm_loop", accented["id"]):
        merge(curator, record_id, merge_target["id"])
    survivor = get_record(curator, merge_target["id"])
    assert [alias["text"] for alias in survivor["aliases"]] == ["Café", "loop"]
    assert survivor["relations"] == {}
    reverted = curator.send("POST", "concept/trm_loop/revert", {"version": 1}, If_Match='"2"')
    assert (reverted.status, reverted.json["relations"]) == (200, {})
    merge(curator, curator.create(name="more")["id"], "trm_rest")
    newest = curator.send("GET", "concept?state=merged&sort=-updated&limit=1").json["items"][0]
    assert revert_merge(curator, {**newest, "version": 1}).status == 200
    assert get_content(curator, "trm_rest") == before[1:]
    assert check_database(database).problems == []
    database.close()


def test_merging_a_class_moves_its_members_and_reverting_moves_them_back(
    shared_server: Server, curator: V1Client
) -> None:
    merged, survivor = (curator.create("concept_class", name=name) for name in ("gone", "kept"))
    concept = curator.create(name="member", id_concept_class=merged["id"])
    task = curator.create("task", name="member", id_concept_class=merged["id"])
    moved_on = curator.create(name="moves on", id_concept_class=merged["id"])
    retired = curator.create(name="retired", id_concept_class=merged["id"])
    curator.send("DELETE", build_path(retired), If_Match=get_etag(retired))
    merge(curator, merged["id"], survivor["id"])
    assert get_record(curator, concept["id"])["id_concept_class"] == survivor["id"]
    assert shared_server.get(f"/api/v1/task?class={survivor['id']}").json["items"][0]["id"] == task["id"]
    assert shared_server.get(f"/api/v1/{build_path(task)}/history").json["items"][0]["action"] == "merge"
    curator.patch(get_record(curator, moved_on["id"]), id_concept_class="")
    assert revert_merge(curator, merged).status == 200
    for record, label in ((concept, merged["id"]), (task, merged["id"]), (moved_on, "")):
        assert get_record(curator, record["id"])["id_concept_class"] == label
    reverted = revert_merge(curator, retired)
    assert (reverted.json["state"], reverted.json["id_concept_class"]) == ("published", merged["id"])


def test_a_revert_refers_to_the_survivors_of_records_merged_since(curator: V1Client) -> None:
    parent, survivor, itself, retired = (curator.create(name=name) for name in ("parent", "survivor", "it", "retired"))
    label, kept_label = (curator.create("concept_class", name=name) for name in ("label", "kept"))
    relations = {"KINDOF": [parent["id"], retired["id"]], "PARTOF": [itself["id"]]}
    record = curator.create(name="first", relations=relations, id_concept_class=label["id"])
    second = curator.patch(record, name="second", relations=None, id_concept_class="")
    curator.send("DELETE", build_path(retired), If_Match=get_etag(retired))
    merge(curator, itself["id"], record["id"])
    merge(curator, parent["id"], survivor["id"])
    merge(curator, label["id"], kept_label["id"])
    response = curator.send("POST", build_path(record, "revert"), {"version": 1}, If_Match=f'"{second["version"] + 1}"')
    assert response.status == 200
    # A retired record returns with its relations, which retiring keeps.
    assert response.json["relations"] == {"KINDOF": sorted([survivor["id"], retired["id"]])}
    assert response.json["id_concept_class"] == kept_label["id"]
