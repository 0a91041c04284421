"""`lexarium show`"""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import print_table
from lexarium.domain.errors import NotFound
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.timestamps import format_timestamp
from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.search.properties import Entity, load_entities

_TIMESTAMP_FIELDS = ("creation_time", "last_updated")


def run(
    id: Annotated[str, typer.Argument(metavar="ID", help="The identifier of a record, of any collection.")],
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Show one record with its relations."""
    store = open_database(database, must_exist=True)
    with open_valpha_reader(store) as reader:
        try:
            record_row = reader.get_row(id)
        except NotFound as error:
            raise NotFound(f"{error} `lexarium search` finds records by name.") from None
        body = reader.render(COLLECTIONS[record_row.collection], record_row)
    if json_output:
        print(body.decode())
        return
    with store.read() as snapshot:
        entity = load_entities(snapshot, [id], with_related=False)[id]
    table = Table("field", "value", show_header=False, box=None, pad_edge=False)
    for name, value in _iter_rows(entity, orjson.loads(body)):
        table.add_row(Text(name, "bold"), Text(value))
    print_table(table)


def _iter_rows(entity: Entity, fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels and values for people: names and dates instead of numbers."""
    record = entity.record
    yield "collection", ", ".join(item.name for item in (record.collection, *record.further_collections))
    yield "state", f"{record.state}, see {record.replaced_by}" if record.replaced_by else record.state
    for name, value in fields.items():
        if name == "id_concept_class" and value:
            yield "class", f"{entity.class_name} ({value})" if entity.class_name else str(value)
        elif name in _TIMESTAMP_FIELDS and isinstance(value, int):
            yield name, format_timestamp(value)
        elif name != "type":
            yield name, _format_value(value)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join("  ".join(str(part) for part in entry.values()) for entry in value)
    return str(value)
