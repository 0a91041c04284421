"""Values that do not conform to the schema of a vocabulary: over HTTP, on its page and by the command."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.vocabularies.head_records import create_vocabulary
from lexarium.store.database import Database
from tests.support.server import Server, run_cli
from tests.support.v1_client import V1Client

PATH = "/vocabularies/main/conformance"


def test_contributors_see_values_that_do_not_conform(server: Server) -> None:
    curator, contributor = V1Client(server, "curator"), V1Client(server, "contributor")
    for _ in range(2):
        record = curator.create(name="memory")
    report = contributor.send("GET", PATH[1:]).json
    assert (report["vocabulary"], report["records"], report["total"]) == ("main", 2, 1)
    [group] = [item for item in report["items"] if item["total"]]
    assert group["kind"] == "repeated_name"
    assert group["examples"][0]["path"] == f"/edit/{group['examples'][0]['id']}?vocabulary=main"
    assert record["id"].startswith("trm_")
    assert server.get(f"/api/v1{PATH}").status == 401
    assert contributor.send("GET", "vocabularies/nothing/conformance").status == 404
    assert server.get(PATH).status == 303


def test_the_command_lists_values_that_do_not_conform(database: Database, url: str) -> None:
    account = add_account(database, "Ada", Role.ADMIN)
    with database.write() as transaction:
        create_vocabulary(transaction, account.id, "uat", {"schema": "skos"})
    result = run_cli("check", "--vocabulary", "uat", "--json", "--database", url)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["conformance"]["records"] == 0
    assert "0 records of uat: all conform." in run_cli("check", "--vocabulary", "uat", "--database", url).stdout
    wrong = run_cli("check", "--vocabulary", "nothing", "--database", url)
    assert (wrong.returncode, "Vocabulary 'nothing' not found" in wrong.stderr) == (1, True)


READINGS = """
id: https://example.org/readings
name: readings
prefixes: {linkml: "https://w3id.org/linkml/", ex: "https://example.org/readings/"}
default_prefix: ex
imports: [linkml:types]
classes:
  Reading:
    attributes:
      id: {identifier: true}
      value: {range: integer}
"""


def test_a_record_of_a_class_without_names_needs_none(server: Server) -> None:
    admin = V1Client(server, "admin")
    vocabulary = {"slug": "readings", "title": "Readings", "schema": READINGS}
    assert admin.send("POST", "vocabularies", vocabulary).status == 201
    record = {"id": "r1", "fields": {"value": 7}}
    assert admin.send("POST", "vocabularies/readings/collections/reading", record).status == 201
    report = admin.send("GET", "vocabularies/readings/conformance").json
    assert (report["records"], report["total"]) == (1, 0)


PLANTS = """
id: https://example.org/plants
name: plants
prefixes:
  linkml: https://w3id.org/linkml/
  ex: https://example.org/plants/
  skos: http://www.w3.org/2004/02/skos/core#
default_prefix: ex
imports: [linkml:types]
classes:
  Plant:
    attributes:
      id: {identifier: true}
      name: {slot_uri: skos:prefLabel}
      definition: {slot_uri: skos:definition}
      height: {range: integer}
      born: {range: date}
      weight: {range: float}
      edible: {range: boolean}
      code: {pattern: "[A-Z]+"}
      rank: {range: Rank, required: true}
      parent: {slot_uri: skos:broader, range: Plant, multivalued: true}
      planted_in: {range: Garden}
  Garden:
    attributes:
      id: {identifier: true}
      name: {slot_uri: skos:prefLabel}
enums:
  Rank: {permissible_values: {tree: {}, herb: {}}}
"""
BASE = "https://plants.example/"
PLANT_RECORDS: dict[str, dict[str, Any]] = {
    "p:1": {"skos:prefLabel": "Oak", "ex:rank": "tree", "skos:broader": {"ref": "p:2"}},
    "p:2": {"skos:prefLabel": "Tree", "ex:rank": "tree", "skos:broader": {"ref": "p:1"}},
    "p:3": {"skos:prefLabel": "Fir", "ex:rank": "bush", "skos:broader": [{"ref": "p:9"}, {"ref": f"{BASE}9"}]},
    "p:4": {"skos:prefLabel": "Fern", "ex:rank": "herb"},
    "p:5": {"skos:prefLabel": "fern", "skos:broader": {"ref": "p:7"}, "ex:code": "abc"},
    "p:6": {"ex:rank": "herb", "skos:broader": {"ref": "p:7"}, "ex:planted_in": {"ref": "p:7"}},
    "p:7": {"skos:prefLabel": "Herb", "ex:rank": ["herb", "tree"], "ex:height": "high", "ex:edible": "maybe"},
    "p:8": {"skos:prefLabel": "Moss", "ex:rank": "herb", "skos:broader": {"ref": "p:7"}, "ex:weight": "light"},
}


def test_each_kind_of_problem_is_counted_and_links_to_its_form(database: Database, url: str, tmp_path: Path) -> None:
    account = add_account(database, "Ada", Role.ADMIN)
    with database.write() as transaction:
        create_vocabulary(transaction, account.id, "plants", {"schema": PLANTS, "base": BASE})
    lines = [{"lexarium": "jsonl", "format": 2, "vocabulary": "plants"}] + [
        {"collection": "plant", "id": record_id, "statements": statements}
        for record_id, statements in PLANT_RECORDS.items()
    ]
    path = tmp_path / "plants.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)).replace("ex:", "https://example.org/plants/"))
    imported = run_cli("import", path, "--vocabulary", "plants", "--database", url)
    assert imported.returncode == 0, imported.stderr
    report = json.loads(run_cli("check", "--vocabulary", "plants", "--json", "--database", url).stdout)["conformance"]
    found = {
        kind: sorted((item["id"], item["detail"]) for item in group["examples"])
        for kind, group in report["groups"].items()
        if group["total"]
    }
    [(first, path_of_cycle)] = found.pop("cycle")  # It may begin anywhere.
    assert set(path_of_cycle.split(" → ")) == {"p:1", "p:2"}
    assert found == {
        "missing_name": [("p:6", "This plant has no name.")],
        "orphan": [("p:4", "This plant has neither a parent nor a child.")],
        "missing_target": [("p:3", f"parent: {BASE}9 does not exist."), ("p:3", "parent: p:9 does not exist.")],
        "repeated_name": [("p:4", "2 records have this name.")],
        "invalid_value": [
            ("p:3", "rank: bush is not one of tree, herb."),
            ("p:5", "code: abc does not match [A-Z]+."),
            ("p:5", "rank is required."),
            ("p:6", "planted in: p:7 is plant, not garden."),
            ("p:7", "edible: maybe is not true or false."),
            ("p:7", "height: high is not a whole number."),
            ("p:7", "rank has 2 values, but must have one."),
            ("p:8", "weight: light is not a number."),
        ],
    }
    [cycle] = report["groups"]["cycle"]["examples"]
    assert cycle["path"] == f"/edit/{quote(first, safe='')}?vocabulary=plants"
