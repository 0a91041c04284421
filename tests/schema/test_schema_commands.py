"""`lexarium schema check`, `show` and `apply`."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import build_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.linkml import BUILTIN_NAMES, read_builtin_source
from lexarium.services.maintenance.database_check import check_database
from lexarium.store import change_log, records, revisions
from lexarium.store.change_log import RecordWrite
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import run_cli

ANIMALS = Path(__file__).parent / "animals.yaml"


def test_check_lists_the_collections_of_a_valid_schema() -> None:
    result = run_cli("schema", "check", ANIMALS)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{ANIMALS} is a valid schema with 4 collections: animal, pet, dog, person.\n"
    report = json.loads(run_cli("schema", "check", ANIMALS, "--json").stdout)
    assert report == {
        "file": str(ANIMALS),
        "valid": True,
        "collections": ["animal", "pet", "dog", "person"],
        "problems": [],
        "warnings": [],
    }


def test_check_lists_every_problem_with_its_line_and_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    slots = "".join(f"      slot_{number}: {{range: Nothing}}\n" for number in range(30))
    text = ANIMALS.read_text()
    path.write_text(text.replace("    slots: [keeps]\n", f"    slots: [keeps]\n    attributes:\n{slots}    rank: 1\n"))
    result = run_cli("schema", "check", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"30 problems in {path}:" in result.stderr
    assert "1 warning:" in result.stderr
    first_line = text.partition("    slots: [keeps]\n")[0].count("\n") + 3
    for number in range(30):
        assert f"• line {first_line + number}: `range` of the slot `slot_{number}`" in result.stderr
    result = run_cli("schema", "check", path, "--json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert not report["valid"]
    assert [problem["line"] for problem in report["problems"]] == list(range(first_line, first_line + 30))
    assert report["warnings"][0]["line"] == first_line + 30


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: \xff", "line 2: Invalid UTF-8."),
        (b"", "line 1: The file is empty."),
        (b"\xef\xbb\xbf", "line 1: The file is empty."),
        ("é".encode() * 2**20, "line 1: The schema has more than 1,048,576 bytes."),
    ],
)
def test_check_rejects_a_file_that_is_not_a_schema(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "no-schema.yaml"
    path.write_bytes(content)
    result = run_cli("schema", "check", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr


def test_check_reports_a_missing_file(tmp_path: Path) -> None:
    result = run_cli("schema", "check", tmp_path / "absent.yaml")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: Cannot read {tmp_path / 'absent.yaml'}: No such file or directory.")


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_show_prints_a_builtin_schema_that_check_accepts(name: str, tmp_path: Path) -> None:
    result = run_cli("schema", "show", name)
    assert result.stdout == read_builtin_source(name)
    path = tmp_path / "shown.yaml"
    path.write_text(result.stdout)
    assert run_cli("schema", "check", path).returncode == 0
    jsonschema_rs.Draft202012Validator(json.loads(run_cli("schema", "show", name, "--json").stdout))


def test_show_without_a_name_lists_the_builtin_schemas() -> None:
    lines = run_cli("schema", "show").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(BUILTIN_NAMES)
    entries = json.loads(run_cli("schema", "show", "--json").stdout)
    assert [entry["name"] for entry in entries] == list(BUILTIN_NAMES)
    assert entries[1]["collections"] == ["concept", "concept_scheme", "collection", "ordered_collection"]


def test_show_lists_the_builtin_schemas_if_the_name_is_unknown() -> None:
    result = run_cli("schema", "show", "mesh")
    assert (result.returncode, result.stdout) == (1, "")
    assert "Built-in schema 'mesh' not found; available: cognitive-atlas, skos, obo." in result.stderr


@pytest.mark.parametrize("arguments", [["check"], ["check", "a", "b"], ["show", "--xml"], ["nonsense"]])
def test_wrong_usage_gets_exit_code_2(arguments: list[str]) -> None:
    assert run_cli("schema", *arguments).returncode == 2


FIRST_SCHEMA = """
id: https://example.org/zoo
name: zoo
prefixes:
  ex: https://example.org/zoo/
  linkml: https://w3id.org/linkml/
  skos: http://www.w3.org/2004/02/skos/core#
default_prefix: ex
default_range: string
imports: [linkml:types]
classes:
  Animal:
    slots: [id, name, nickname, size, eats]
slots:
  id: {identifier: true}
  name: {slot_uri: "skos:prefLabel", multivalued: true}
  nickname: {}
  size: {}
  eats: {range: uriorcurie, multivalued: true}
"""
SECOND_SCHEMA = (
    FIRST_SCHEMA.replace('name: {slot_uri: "skos:prefLabel", multivalued: true}', "name: {slot_uri: ex:label}")
    .replace("nickname: {}", "nickname: {annotations: {lexarium_role: name}}")
    .replace("size: {}", "size: {range: Size, required: true}")
    .replace("eats: {range: uriorcurie, multivalued: true}", "eats: {range: Animal, multivalued: true}")
    + "enums:\n  Size:\n    permissible_values: [small, large]\n"
)


@pytest.fixture
def zoo_url(new_url: DatabaseUrlFactory, tmp_path: Path) -> str:
    """URL of a catalogue with a vocabulary of three animals."""
    url = new_url("sqlite")
    path = tmp_path / "first.yaml"
    path.write_text(FIRST_SCHEMA)
    add = ("vocabulary", "add", "zoo", "--schema", path, "--title", "Zoo")
    assert run_cli(*add, "--database", url).returncode == 0
    database = open_database(url)
    animal = COLLECTIONS["zoo/animal"]
    rows = [("zoo:1", "lion", "Leo", "large"), ("zoo:2", "mouse", "", "tiny"), ("zoo:3", "ant", "", "")]
    animals = [
        build_record(animal, {"id": key, "name": name, "nickname": nickname, "size": size})
        for key, name, nickname, size in rows
    ]
    with database.write() as transaction:
        writes = [RecordWrite(record, 1, Action.CREATE) for record in animals]
        change_log.save_records(transaction, writes, actor=SYSTEM_USER_ID, at=1)
    database.close()
    return url


def test_applying_a_schema_changes_how_records_are_shown(zoo_url: str, tmp_path: Path) -> None:
    path = tmp_path / "second.yaml"
    path.write_text(SECOND_SCHEMA)
    result = run_cli("schema", "apply", path, "--vocabulary", "zoo", "--database", zoo_url)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Applied the schema zoo to zoo, with 1 collection: animal.\n"
    assert "2 values of zoo do not conform to it:" in result.stderr
    assert "zoo:2: size: tiny is not one of small, large." in result.stderr
    assert "zoo:3: size is required." in result.stderr
    assert run_cli("schema", "show", "zoo", "--database", zoo_url).stdout == SECOND_SCHEMA
    database = open_database(zoo_url)
    with database.read() as snapshot:
        names = records.find_names(snapshot, ["zoo\x1fzoo:1", "zoo\x1fzoo:2"])
        assert names == {"zoo\x1fzoo:1": "Leo", "zoo\x1fzoo:2": ""}
        assert revisions.find_version(snapshot, "zoo\x1fzoo:1", 2) is None
    assert check_database(database).problems == []
    database.close()


def test_an_invalid_schema_is_not_applied(zoo_url: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(FIRST_SCHEMA + "".join(f"  slot_{number}: {{range: Nothing}}\n" for number in range(30)))
    result = run_cli("schema", "apply", path, "--vocabulary", "zoo", "--database", zoo_url)
    assert (result.returncode, result.stdout) == (1, "")
    for number in range(30):
        assert f"`slot_{number}`" in result.stderr
    path.write_text(FIRST_SCHEMA.replace("Animal:", "Beast:"))
    result = run_cli("schema", "apply", path, "--vocabulary", "zoo", "--database", zoo_url)
    assert result.returncode == 1
    assert "Animal has 3 records, but the new schema has no such class" in " ".join(result.stderr.split())
    result = run_cli("schema", "apply", path, "--vocabulary", "park", "--database", zoo_url)
    assert result.returncode == 1
    assert "Vocabulary 'park' not found; available: main, zoo." in " ".join(result.stderr.split())
    assert run_cli("schema", "show", "zoo", "--database", zoo_url).stdout == FIRST_SCHEMA


def test_a_large_schema_is_loaded(new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    head = FIRST_SCHEMA.partition("classes:")[0] + "slots:\n  id: {identifier: true}\nclasses:\n"
    slots = [f"      slot_{number}: {{range: Class{number}, multivalued: true}}\n" for number in range(10)]
    classes = [f"  Class{number}:\n    slots: [id]\n    attributes:\n{''.join(slots)}" for number in range(200)]
    path = tmp_path / "large.yaml"
    path.write_text(head + "".join(classes))
    add = ("vocabulary", "add", "large", "--schema", path, "--title", "Large")
    url = new_url("sqlite")
    assert run_cli(*add, "--database", url).returncode == 0
    shown = json.loads(run_cli("vocabulary", "show", "large", "--json", "--database", url).stdout)
    assert len(shown["collections"]) == 200
