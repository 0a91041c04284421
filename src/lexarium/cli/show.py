"""`lexarium show`"""

from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import out
from lexarium.domain.collections import COLLECTIONS
from lexarium.service.reading import reading

app = typer.Typer(add_completion=False)


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="The identifier of a record, of any collection.")],
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Show one record with its relations."""
    with reading(opened(database, reading=True)) as now:
        stored = now.any(id)
        shape = now.shape(COLLECTIONS[stored.collection], stored)
    if json_output:
        print(shape.decode())
        return
    table = Table("field", "value", show_header=False, box=None, pad_edge=False)
    for name, value in orjson.loads(shape).items():
        table.add_row(Text(name, "bold"), Text(_text(value)))
    out.print(table)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join("  ".join(str(part) for part in entry.values()) for entry in value)
    return str(value)
