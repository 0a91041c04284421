"""`lexarium search`"""

import os
from typing import Annotated

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import CollectionsOption, DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out, print_table
from lexarium.domain.changes import State
from lexarium.service.finding import Asked, Finder, Hit
from lexarium.service.indexing import Indexer
from lexarium.service.views import found_view
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help='Words, "phrases", an identifier or a CURIE.')],
    collection: CollectionsOption = None,
    state: Annotated[
        list[State] | None, typer.Option(help="Only in this state; may be given several times. [default: published]")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits to show.")] = 10,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Find records by name, alias, definition or identifier."""
    store = opened(database, reading=True)
    indexer = Indexer(store, Settings.of(os.environ).index)
    indexer.catch_up()
    collections = tuple(each.name for each in collection or ())
    asked = Asked(" ".join(query), collections, states=tuple(state or (State.PUBLISHED,)), limit=limit)
    found = Finder(store, indexer).search(asked)
    indexer.stop()
    if json_output:
        print(orjson.dumps(found_view(found)).decode())
        return
    if found.hits:
        print_table(_table(found.hits))
    if found.did_you_mean:
        err.print(f"Did you mean {found.did_you_mean!r}?", markup=False)
    err.print(f"{found.total:,} found.")


def _table(hits: list[Hit]) -> Table:
    table = Table("id", "name", "collection", box=None, pad_edge=False)
    # On a terminal a line a hit; elsewhere nothing is cut off.
    table.add_column("matched", no_wrap=True, overflow="ellipsis" if out.is_terminal else "fold")
    for hit in hits:
        table.add_row(hit.id, _name(hit), hit.collection, _matched(hit))
    return table


def _name(hit: Hit) -> Text:
    name = Text(" ".join(hit.name.split()), "bold")
    for span in hit.highlight if hit.field == "name" and hit.name == name.plain else ():
        name.stylize("underline", span.start, span.end)
    if hit.state == State.PUBLISHED:
        return name
    return name.append(f" ({hit.state}{f', see {hit.replaced_by}' if hit.replaced_by else ''})", "not bold yellow")


def _matched(hit: Hit) -> Text:
    """What matched, where that is not the name."""
    if hit.field == "name":
        return Text()
    text = Text(hit.text.replace("\n", " "))
    for span in hit.highlight:
        text.stylize("underline", span.start, span.end)
    return Text.assemble((f"{hit.field} ", "dim"), text)
