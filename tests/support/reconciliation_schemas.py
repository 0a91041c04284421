"""JSON schemas of the reconciliation specification."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

FOLDER = Path(__file__).parents[2] / ".." / "shared" / "reconciliation-0.2"


class SpecificationSchemas:
    """JSON schemas of the specification."""

    def __init__(self, folder: Path) -> None:
        self._schemas = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        # The schema refers to OpenAPI's security schemes on another host; they are not needed here.
        self._schemas["manifest"]["properties"].pop("authentication")
        self._registry = jsonschema_rs.Registry(
            [(schema["$id"], schema) for schema in self._schemas.values()], draft=jsonschema_rs.Draft202012
        )

    def check(self, name: str, value: object) -> None:
        validator = jsonschema_rs.validator_for(self._schemas[name], registry=self._registry)
        assert [error.message for error in validator.iter_errors(value)] == []


def load_schemas() -> SpecificationSchemas:
    """Load the schemas, or skip the test where there are none."""
    if not FOLDER.is_dir():
        pytest.skip("no schemas of the specification: they are looked for in ../shared/reconciliation-0.2")
    return SpecificationSchemas(FOLDER)
