"""Schemas that commands read: built-in ones, and files."""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.domain.errors import LexariumError
from lexarium.domain.schema.linkml import BUILTIN_NAMES, MAX_SCHEMA_BYTES, decode_schema

SchemaSourceOption = Annotated[
    str, typer.Option("--schema", metavar="NAME|FILE", help=f"{', '.join(BUILTIN_NAMES)}, or a LinkML file.")
]


def read_schema_source(name: str) -> str:
    """Return the name of a built-in schema, or the text of a file; raise LexariumError."""
    if name in BUILTIN_NAMES:
        return name
    path = Path(name)
    if not path.exists():
        raise LexariumError(f"File {name} not found. Built-in schemas: {', '.join(BUILTIN_NAMES)}.")
    return read_schema_file(path)


def read_schema_file(path: Path) -> str:
    """Return the text of a file; raise LexariumError."""
    try:
        with path.open("rb") as file:
            return decode_schema(file.read(MAX_SCHEMA_BYTES + 1))
    except OSError as error:
        raise LexariumError(f"Cannot read {path}: {error.strerror or error}.") from None
