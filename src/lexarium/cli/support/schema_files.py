"""Schemas that commands read: built-in ones, and files."""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.domain.errors import InvalidSchema, LexariumError, LineProblem
from lexarium.domain.schema.linkml import BUILTIN_NAMES, MAX_SCHEMA_BYTES

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
    """Return the text of a file, up to just over the maximum size of a schema; raise LexariumError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        raise LexariumError(f"Cannot read {path}: {error.strerror or error}.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(content) > MAX_SCHEMA_BYTES:  # It may be cut within a character.
            return content.decode("utf-8-sig", errors="replace")
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidSchema([LineProblem(line, "Invalid UTF-8.")]) from None
