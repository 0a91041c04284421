"""Further relation lists of one v-alpha record, and the collections of the schema that v-alpha does not list."""

from typing import Any

import pytest

from lexarium.domain.schema.collections import COLLECTIONS
from tests.support.server import Server
from tests.support.v1_client import V1Client, build_path


@pytest.fixture
def curator(server: Server) -> V1Client:
    return V1Client(server, "curator")


def read(client: V1Client, record: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = client.server.get(f"/api/v-alpha/{record['collection']}?id={record['id']}").json
    return answer


def to_entry(record: dict[str, Any]) -> dict[str, str]:
    return {"id": record["id"], "name": record["name"]}


@pytest.mark.parametrize(
    ("collection", "keys"),
    [
        ("concept", "citations contrasts conceptclasses"),
        ("task", "conditions indicators external_datasets implementations citation batteries disorders"),
        ("disorder", "citations"),
    ],
)
def test_the_further_lists_are_always_present_and_last(curator: V1Client, collection: str, keys: str) -> None:
    answer = read(curator, curator.create(collection, name="alone"))
    further = keys.split()
    assert list(answer)[-len(further) :] == further
    assert all(answer[key] == [] for key in further)


def test_a_concept_lists_its_citations_contrasts_and_classes(curator: V1Client) -> None:
    citation, contrast, concept_class = (
        curator.create(name, name=f"a {name}") for name in ("citation", "contrast", "concept_class")
    )
    relations = {
        "HASCITATION": [citation["id"]],
        "MEASUREDBY": [contrast["id"]],
        "CLASSIFIEDUNDER": [concept_class["id"]],
    }
    answer = read(curator, curator.create(name="memory", relations=relations))
    assert answer["citations"] == [to_entry(citation)]
    assert answer["contrasts"] == [to_entry(contrast)]
    assert answer["conceptclasses"] == [to_entry(concept_class)]
    assert answer["relationships"] == []


def test_a_task_lists_all_related_records(curator: V1Client) -> None:
    relation_types = {
        "conditions": ("condition", "HASCONDITION"),
        "indicators": ("indicator", "HASINDICATOR"),
        "external_datasets": ("external_dataset", "HASEXTERNALDATASET"),
        "implementations": ("implementation", "HASIMPLEMENTATION"),
        "citation": ("citation", "HASCITATION"),
        "batteries": ("battery", "INBATTERY"),
    }
    others = {key: curator.create(collection, name=f"b {key}") for key, (collection, _) in relation_types.items()}
    relations = {relation: [others[key]["id"]] for key, (_, relation) in relation_types.items()}
    answer = read(curator, curator.create("task", name="n-back", relations=relations))
    assert {key: answer[key] for key in others} == {key: [to_entry(other)] for key, other in others.items()}


def test_a_task_lists_the_disorders_in_which_its_contrasts_differ_once_each(curator: V1Client) -> None:
    disorder = curator.create("disorder", name="dyslexia")
    contrasts = [
        curator.create("contrast", name=name, relations={"HASDIFFERENCE": [disorder["id"]]}) for name in ("one", "two")
    ]
    task = curator.create("task", name="reading", relations={"HASCONTRAST": [item["id"] for item in contrasts]})
    assert read(curator, task)["disorders"] == [to_entry(disorder)]
    assert read(curator, task)["contrasts"] == [to_entry(contrast) for contrast in contrasts]
    by_name = curator.server.get("/api/v-alpha/task?name=reading").json
    assert by_name == read(curator, task)


def test_a_cached_task_is_updated_with_its_contrasts_and_their_disorders(curator: V1Client) -> None:
    disorder = curator.create("disorder", name="dyslexia")
    contrast = curator.create("contrast", name="one")
    task = curator.create("task", name="reading", relations={"HASCONTRAST": [contrast["id"]]})
    assert read(curator, task)["disorders"] == []
    contrast = curator.patch(contrast, relations={"HASDIFFERENCE": [disorder["id"]]})
    assert read(curator, task)["disorders"] == [to_entry(disorder)]
    renamed = curator.patch(disorder, name="developmental dyslexia")
    assert read(curator, task)["disorders"] == [to_entry(renamed)]
    curator.patch(contrast, relations={"HASDIFFERENCE": None})
    assert read(curator, task)["disorders"] == []


def test_a_record_of_any_class_is_created_read_and_listed_by_v1(curator: V1Client) -> None:
    for name, collection in COLLECTIONS.items():
        others = [field for field in collection.editable_fields if field not in collection.core_fields]
        created = curator.create(name, name=f"a {name}", fields={others[0]: "7"})
        assert created["collection"] == name
        assert created["fields"][others[0]] == "7"
        patched = curator.patch(created, fields={others[0]: None}, name=f"the {name}")
        assert (patched["name"], patched["fields"][others[0]]) == (f"the {name}", "")
        assert [item["id"] for item in curator.send("GET", name).json["items"]] == [created["id"]]
        assert curator.send("GET", build_path(created)).json == patched


def test_a_put_without_fields_keeps_the_existing_ones(curator: V1Client) -> None:
    created = curator.create("citation", name="A paper", fields={"citation_authors": "N. N."})
    replaced = curator.send("PUT", build_path(created), {"name": "Another paper"}, If_Match='"1"').json
    assert (replaced["name"], replaced["fields"]["citation_authors"]) == ("Another paper", "N. N.")
    emptied = curator.send("PUT", build_path(created), {"name": "Another paper", "fields": {}}, If_Match='"2"').json
    assert emptied["fields"]["citation_authors"] == ""


def test_an_invalid_further_field_is_reported_with_its_pointer(curator: V1Client) -> None:
    response = curator.send("POST", "citation", {"name": "A paper", "fields": {"doi": 7, "citation_authors": "\x00"}})
    assert response.status == 422
    assert {error["pointer"] for error in response.json["errors"]} == {"/fields/doi", "/fields/citation_authors"}
    unknown = curator.send("POST", "citation", {"name": "A paper", "fields": {"nonsense": "x"}})
    assert [error["pointer"] for error in unknown.json["errors"]] == ["/fields/nonsense"]
    misplaced = curator.send("POST", "battery", {"name": "B", "collection": "x"})
    assert [error["pointer"] for error in misplaced.json["errors"]] == ["/collection"]


def test_a_field_may_have_the_name_of_a_standard_key(curator: V1Client) -> None:
    battery = curator.create("battery", name="A battery", fields={"collection": "tests"})
    assert (battery["collection"], battery["fields"]["collection"]) == ("battery", "tests")
    patched = curator.patch(battery, collection="battery", name="The battery")
    assert patched["fields"]["collection"] == "tests"
    sent_back = curator.send("PUT", build_path(patched), patched, If_Match='"2"').json
    assert (sent_back["version"], sent_back["fields"]["collection"]) == (2, "tests")


def test_a_task_lists_no_disorder_of_a_retired_contrast(curator: V1Client) -> None:
    disorder = curator.create("disorder", name="dyslexia")
    contrast = curator.create("contrast", name="one", relations={"HASDIFFERENCE": [disorder["id"]]})
    task = curator.create("task", name="reading", relations={"HASCONTRAST": [contrast["id"]]})
    assert curator.send("DELETE", build_path(contrast), If_Match='"1"').status == 200
    assert (read(curator, task)["contrasts"], read(curator, task)["disorders"]) == ([], [])
