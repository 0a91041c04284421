"""Schemas have the same meaning as in linkml-runtime."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.schema import linkml
from lexarium.domain.schema.linkml import BUILTIN_NAMES, load_schema
from lexarium.domain.schema.model import SchemaClass, Slot
from lexarium.domain.schema.predicates import expand_predicate
from tests.support.requirements import skip_or_fail

# It has its own environment because a package that it needs installs a plug-in of pytest.
PYTHON = Path(__file__).parents[2] / ".venv-linkml" / "bin" / "python"
BUILTIN = Path(linkml.__file__).parent / "builtin"
SCHEMAS = [*(BUILTIN / f"{name}.yaml" for name in BUILTIN_NAMES), Path(__file__).parent / "animals.yaml"]

INDUCE = """
import json, sys
from linkml_runtime.utils.formatutils import underscore
from linkml_runtime.utils.schemaview import SchemaView

view = SchemaView(sys.argv[1])
classes = {}
for name, definition in view.all_classes().items():
    slots = {}
    for slot in view.class_induced_slots(name):
        values = [
            [value.text, value.description or ""] for value in view.get_enum(slot.range).permissible_values.values()
        ] if slot.range in view.all_enums() else []
        slots[underscore(slot.name)] = {
            "uri": view.get_uri(slot, expand=True), "range": slot.range, "title": slot.title,
            "description": (slot.description or "").strip(), "multivalued": bool(slot.multivalued),
            "required": bool(slot.required), "identifier": bool(slot.identifier), "pattern": slot.pattern,
            "inverse": slot.inverse, "symmetric": bool(slot.symmetric), "enum_values": values,
            "order": int(slot.annotations["lexarium_order"].value) if "lexarium_order" in slot.annotations else None,
        }
    classes[name] = {
        "uri": view.get_uri(name, expand=True), "abstract": bool(definition.abstract or definition.mixin),
        "ancestors": view.class_ancestors(name, reflexive=False), "tree_root": bool(definition.tree_root),
        "description": (definition.description or "").strip(), "slots": slots,
    }
print(json.dumps(classes))
"""


def describe_slot(slot: Slot, expected: dict[str, Any]) -> dict[str, Any]:
    return {
        "uri": expand_predicate(slot.predicate),
        "range": slot.range,
        "title": None if expected["title"] is None and slot.label == slot.name.replace("_", " ") else slot.label,
        "description": slot.description,
        "multivalued": slot.multivalued,
        "required": slot.required,
        "identifier": slot.identifier,
        "pattern": slot.pattern,
        "inverse": slot.inverse,
        "symmetric": slot.symmetric,
        "enum_values": [list(value) for value in slot.enum_values],
        "order": None if expected["order"] is None and slot.order == Slot("", "").order else slot.order,
    }


def describe_class(schema_class: SchemaClass, expected: dict[str, Any]) -> dict[str, Any]:
    assert set(schema_class.slots) == set(expected["slots"]), schema_class.name
    return {
        "uri": expand_predicate(schema_class.uri),
        "abstract": schema_class.abstract,
        "ancestors": list(schema_class.ancestors),
        "tree_root": schema_class.tree_root,
        "description": schema_class.description,
        "slots": {name: describe_slot(schema_class.slots[name], slot) for name, slot in expected["slots"].items()},
    }


@pytest.mark.full
@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_every_class_has_the_slots_that_linkml_induces(path: Path) -> None:
    if not PYTHON.exists():
        skip_or_fail("no linkml-runtime (make .venv-linkml/ready)")
    command = [str(PYTHON), "-c", INDUCE, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    expected = json.loads(result.stdout)
    schema = load_schema(path.read_text())
    assert list(schema.classes) == list(expected)
    for name, schema_class in schema.classes.items():
        assert describe_class(schema_class, expected[name]) == expected[name]
