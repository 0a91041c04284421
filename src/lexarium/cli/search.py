"""`lexarium search`"""

import os
from typing import Annotated

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import CollectionOption, DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out
from lexarium.service.finding import Asked, Finder, Hit
from lexarium.service.indexing import Indexer
from lexarium.service.views import found_view
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, "phrases", an identifier or a CURIE.')],
    collection: CollectionOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits to show.")] = 10,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Find records by name, alias, definition or identifier."""
    store = opened(database, reading=True)
    indexer = Indexer(store, Settings.read(os.environ).index)
    indexer.catch_up()
    asked = Asked(query, (collection.name,) if collection else (), limit=limit)
    found = Finder(store, indexer).search(asked)
    indexer.stop()
    if json_output:
        print(orjson.dumps(found_view(found)).decode())
        return
    table = Table("id", "name", "collection", "matched", box=None, pad_edge=False)
    for hit in found.hits:
        table.add_row(hit.id, Text(hit.name, "bold"), hit.collection, _matched(hit))
    if found.hits:
        out.print(table)
    if found.did_you_mean:
        err.print(f"Did you mean {found.did_you_mean!r}?", markup=False)
    err.print(f"{found.total:,} found.")


def _matched(hit: Hit) -> Text:
    text = Text(" ".join(hit.text.split("\n")))
    for span in hit.highlight:
        text.stylize("underline", span.start, span.end)
    return Text.assemble((f"{hit.field} ", "dim"), text)
