"""JSON Schema of classes, checked with an independent validator."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from lexarium.domain.schema.json_schema import to_json_schema
from lexarium.domain.schema.linkml import BUILTIN_NAMES, load_builtin_schema, load_schema

ANIMALS = load_schema((Path(__file__).parent / "animals.yaml").read_text())
DOG: dict[str, Any] = {
    "id": "ex:rex",
    "name": "Rex",
    "note": ["A good dog."],
    "since": "2020-01-31",
    "diet": "meat",
    "size": 60,
    "parent": ["ex:fido"],
    "collar": [{"note": "red", "colour": ["#ff0000"]}],
}


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_the_schema_of_a_vocabulary_and_of_every_class_is_valid(name: str) -> None:
    schema = load_builtin_schema(name)
    for class_name in (None, *schema.collections):
        jsonschema_rs.Draft202012Validator(to_json_schema(schema, class_name))


def find_errors(class_name: str, document: dict[str, Any]) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator(to_json_schema(ANIMALS, class_name), validate_formats=True)
    return [error.message for error in validator.iter_errors(document)]


def test_a_record_of_the_class_is_accepted() -> None:
    assert find_errors("Dog", DOG) == []
    assert find_errors("dog", DOG) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "rex"}, "does not match"),
        ({"diet": "stones"}, '"plants"'),
        ({"size": "tall"}, "integer"),
        ({"parent": "ex:fido"}, "array"),
        ({"since": "yesterday"}, "date"),
        ({"wings": 2}, "wings"),
        ({"collar": [{"note": "red"}]}, "colour"),
        ({"id": None}, "string"),
    ],
)
def test_an_invalid_value_is_rejected(change: dict[str, Any], message: str) -> None:
    errors = find_errors("Dog", DOG | change)
    assert any(message in error for error in errors), errors


def test_a_record_without_a_required_slot_is_rejected() -> None:
    assert find_errors("Dog", {key: value for key, value in DOG.items() if key != "since"})


def test_a_container_holds_records_of_a_class_and_its_descendants() -> None:
    zoo = {"@type": "Zoo", "animals": [DOG, {"id": "ex:leo", "note": "A lion."}], "people": []}
    assert find_errors("Zoo", zoo) == []
    assert find_errors("Zoo", {"animals": [{"id": "ex:leo"}]})


def test_the_schema_of_all_classes_accepts_a_record_of_any_class() -> None:
    validator = jsonschema_rs.Draft202012Validator(to_json_schema(ANIMALS))
    assert validator.is_valid(DOG)
    assert validator.is_valid({"id": "ex:ada", "note": "A person."})
    assert not validator.is_valid({"wings": 2})


def test_an_unknown_class_is_rejected() -> None:
    with pytest.raises(KeyError):
        to_json_schema(ANIMALS, "Unicorn")


def test_the_real_catalogue_is_valid_by_the_schema(real_catalogue: Path) -> None:
    document = orjson.loads((real_catalogue / "concept.json").read_bytes())
    schema = load_builtin_schema("cognitive-atlas")
    validator = jsonschema_rs.Draft202012Validator(to_json_schema(schema, "concept"))
    assert all(validator.is_valid(record) for record in document)
