"""Values that do not conform to the schema of a vocabulary: over HTTP, on its page and by the command."""

import json

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
