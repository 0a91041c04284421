"""`lexarium show`"""

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, VocabulariesOption, open_database, open_scope
from lexarium.cli.support.terminal import print_table
from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.services.record_serializer import serialize_record
from lexarium.services.records.lookup import get_record
from lexarium.services.search.properties import Entity, load_entities
from lexarium.services.vocabularies.access import find_record_id


def run(
    id: Annotated[str, typer.Argument(metavar="ID", help="ID, IRI or alternative ID of a record.")],
    vocabulary: VocabulariesOption = None,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Show one record of any vocabulary with its relations."""
    store = open_database(database, must_exist=True)
    scope = open_scope(store, vocabulary)
    with store.read() as snapshot:
        try:
            record_id = find_record_id(snapshot, id, scope)
        except NotFound as error:
            raise NotFound(f"{error} Use `lexarium search` to find records by name.") from None
        entity = load_entities(snapshot, [record_id], with_related=True)[record_id]
        content = serialize_record(get_record(snapshot, record_id).change)
    if json_output:
        print(orjson.dumps(content).decode())
        return
    table = Table("field", "value", show_header=False, box=None, pad_edge=False)
    for name, value in _iter_rows(entity, content):
        table.add_row(Text(name, "bold"), Text(value))
    print_table(table)


def _iter_rows(entity: Entity, content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the labels and values to print: names of related records, and fields that are not empty."""
    record = entity.record
    yield "vocabulary", record.collection.vocabulary
    yield "collection", ", ".join(item.local_name for item in (record.collection, *record.further_collections))
    yield "state", f"{record.state}, see {get_local_id(record.replaced_by)}" if record.replaced_by else record.state
    if entity.class_name:
        yield "class", entity.class_name
    for name, value in content.items():
        text = _format_value(value)
        if _is_shown_already(name, value, content):
            continue
        if text and name not in ("vocabulary", "collection", "state", "replaced_by", "relations"):
            yield name, text
    lines = []
    for related in entity.related:
        relation_type = RELATION_TYPES[related.type_name]
        label = relation_type.label if related.side == "source" else relation_type.inverse_label
        lines.append(f"{label}  {get_local_id(related.id)}  {related.name or ''}".rstrip())
    if lines:
        yield "relations", "\n".join(lines)


def _is_shown_already(name: str, value: Any, content: dict[str, Any]) -> bool:
    """Return whether a value is that of `name` or `definition`, in one language or under another key."""
    if name in ("names", "definitions"):
        return len(value) == 1 and value[0]["text"] == content[name.removesuffix("s")]
    return name == "definition_text" and value == content["definition"]


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        texts = {name: _format_value(item) for name, item in value.items()}
        return "\n".join(f"{name}  {text}" for name, text in texts.items() if text)
    if isinstance(value, list):
        return "\n".join(
            "  ".join(map(_format_value, item.values())) if isinstance(item, dict) else str(item) for item in value
        )
    return str(value)
