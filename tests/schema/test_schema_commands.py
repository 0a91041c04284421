"""`lexarium schema check` and `lexarium schema show`."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from lexarium.domain.schema.linkml import BUILTIN_NAMES, read_builtin_source
from tests.support.server import run_cli

ANIMALS = Path(__file__).parent / "animals.yaml"


def test_check_names_the_collections_of_a_valid_schema() -> None:
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
        (b"a: 1\nb: \xff", "line 2: This is not UTF-8 text."),
        (b"", "line 1: The file is empty."),
        (b"\xef\xbb\xbf", "line 1: The file is empty."),
        ("é".encode() * 2**20, "line 1: The schema has more than 1,048,576 bytes."),
    ],
)
def test_check_refuses_a_file_that_is_no_schema(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "no-schema.yaml"
    path.write_bytes(content)
    result = run_cli("schema", "check", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr


def test_check_says_that_a_file_is_missing(tmp_path: Path) -> None:
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


def test_show_names_the_builtin_schemas_if_there_is_none_of_a_name() -> None:
    result = run_cli("schema", "show", "mesh")
    assert (result.returncode, result.stdout) == (1, "")
    assert "There is no built-in schema 'mesh'. There are cognitive-atlas, skos, obo." in result.stderr


@pytest.mark.parametrize("arguments", [["check"], ["check", "a", "b"], ["show", "--xml"], ["nonsense"]])
def test_wrong_usage_gets_exit_code_2(arguments: list[str]) -> None:
    assert run_cli("schema", *arguments).returncode == 2
