"""`lexarium show`"""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import print_table
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import NotFound
from lexarium.domain.stamps import text_of
from lexarium.service.properties import Entity, entities
from lexarium.service.reading import reading

app = typer.Typer(add_completion=False)

_MOMENTS = ("creation_time", "last_updated")


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="The identifier of a record, of any collection.")],
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Show one record with its relations."""
    store = opened(database, reading=True)
    with reading(store) as now:
        try:
            stored = now.any(id)
        except NotFound as error:
            raise NotFound(f"{error} `lexarium search` finds records by name.") from None
        shape = now.shape(COLLECTIONS[stored.collection], stored)
    if json_output:
        print(shape.decode())
        return
    with store.read() as snapshot:
        entity = entities(snapshot, [id], related=False)[id]
    table = Table("field", "value", show_header=False, box=None, pad_edge=False)
    for name, value in _rows(entity, orjson.loads(shape)):
        table.add_row(Text(name, "bold"), Text(value))
    print_table(table)


def _rows(entity: Entity, shape: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is told of a record, for people: names and dates instead of numbers."""
    whole = entity.whole
    yield "collection", whole.collection.name
    yield "state", f"{whole.state}, see {whole.replaced_by}" if whole.replaced_by else whole.state
    for name, value in shape.items():
        if name == "id_concept_class" and value:
            yield "class", f"{entity.class_name} ({value})" if entity.class_name else str(value)
        elif name in _MOMENTS and isinstance(value, int):
            yield name, text_of(value)
        elif name != "type":
            yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join("  ".join(str(part) for part in entry.values()) for entry in value)
    return str(value)
