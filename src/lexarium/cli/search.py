"""`lexarium search`"""

from typing import Annotated

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import (
    CollectionsOption,
    DatabaseOption,
    JsonOption,
    VocabulariesOption,
    open_database,
    open_scope,
)
from lexarium.cli.support.terminal import err, out, print_table
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.languages import canonicalize_tag
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordHit, RecordSearch, SearchQuery
from lexarium.services.serializers import serialize_search_result
from lexarium.services.vocabularies.access import resolve_collections
from lexarium.settings import Settings


def run(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help='Words, "phrases", an ID or a CURIE.')],
    collection: CollectionsOption = None,
    vocabulary: VocabulariesOption = None,
    lang: Annotated[
        str, typer.Option(metavar="TAG", help="Show names in this language and rank its matches first.")
    ] = "",
    state: Annotated[
        list[RecordState] | None,
        typer.Option(help="Only records in this state; repeatable. [default: published]"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of hits.")] = 10,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Search records by name, alias, definition or ID."""
    store = open_database(database, must_exist=True)
    indexer = Indexer(store, Settings.from_environment().index)
    indexer.catch_up()
    scope = open_scope(store, vocabulary)
    search_query = SearchQuery(
        " ".join(query),
        resolve_collections(scope, collection or ()),
        states=tuple(state or (RecordState.PUBLISHED,)),
        limit=limit,
        scope=scope,
        languages=(canonicalize_tag(lang),) if lang else (),
    )
    result = RecordSearch(store, indexer).search(search_query)
    indexer.stop()
    if json_output:
        print(orjson.dumps(serialize_search_result(result)).decode())
        return
    if result.is_partial and result.hits:
        err.print("No record matches all words. These match some of them, best matches first.")
    if result.hits:
        print_table(_build_table(result.hits, show_vocabulary=len(VOCABULARIES) > 1))
    if result.did_you_mean:
        err.print(f"Did you mean {result.did_you_mean!r}?")
    if result.nearest:
        err.print(f"Similar names: {', '.join(hit.name for hit in result.nearest)}")
    err.print(f"{result.total:,} found.")


def _build_table(hits: list[RecordHit], *, show_vocabulary: bool) -> Table:
    columns = ("id", "name", "vocabulary", "collection") if show_vocabulary else ("id", "name", "collection")
    table = Table(*columns, box=None, pad_edge=False)
    # One line per hit on a terminal; elsewhere nothing is cut off.
    table.add_column("matched", no_wrap=True, overflow="ellipsis" if out.is_terminal else "fold")
    for hit in hits:
        vocabulary = [hit.vocabulary] if show_vocabulary else []
        collection = COLLECTIONS[hit.collection].local_name
        table.add_row(hit.local_id, _format_name(hit), *vocabulary, collection, _format_match(hit))
    return table


def _format_name(hit: RecordHit) -> Text:
    name = Text(" ".join(hit.name.split()), "bold")
    for span in hit.highlight if hit.field == "name" and hit.name == name.plain else ():
        name.stylize("underline", span.start, span.end)
    if hit.state == RecordState.PUBLISHED:
        return name
    replacement = f", see {get_local_id(hit.replaced_by)}" if hit.replaced_by else ""
    return name.append(f" ({hit.state}{replacement})", "not bold yellow")


def _format_match(hit: RecordHit) -> Text:
    if hit.field == "name":
        return Text()
    text = Text(hit.text.replace("\n", " "))
    for span in hit.highlight:
        text.stylize("underline", span.start, span.end)
    return Text.assemble((f"{hit.field} ", "dim"), text)
