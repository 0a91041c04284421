"""Search records; suggest completions of a prefix."""

from typing import Annotated, Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from lexarium.client.models import SearchResults, Suggestions
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.search.record_search import MAX_DEPTH, MAX_QUERY_CHARS, SearchQuery
from lexarium.services.serializers import serialize_search_result, serialize_suggestion
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns, split_names
from lexarium.web.v1.responses import OrjsonResponse, json_response

CollectionsParam = Annotated[tuple[str, ...], split_names(COLLECTIONS)]
"""Names of collections, separated by commas or repeated."""
DEFAULT_COLLECTIONS_TEXT = f"left out: {', '.join(COLLECTIONS.searched)}."
_StatesParam = Annotated[tuple[str, ...], split_names(RecordState)]
_AnyCollectionsParam = Annotated[tuple[str, ...], split_names(COLLECTIONS, allow_none=True)]


class _SuggestParameters(Parameters):
    prefix: str = Field(max_length=MAX_QUERY_CHARS, description="What was typed so far.")
    collection: _AnyCollectionsParam = Field((), description="Only these, separated by commas; left out: all.")
    limit: int = Field(10, ge=1, le=50, description="How many at most: 10, or from 1 to 50.")


class _SearchParameters(Parameters):
    q: str = Field(
        max_length=MAX_QUERY_CHARS,
        description='Words or their beginnings, `"phrases"`, an identifier or a CURIE.',
        examples=["working memory"],
    )
    collection: CollectionsParam = Field(
        (), description=f"Only these, separated by commas or given each; {DEFAULT_COLLECTIONS_TEXT}"
    )
    class_: str | None = Field(
        None, alias="class", max_length=500, description="Only of this class: its id or its name."
    )
    state: _StatesParam = Field((), description="Only in these states, likewise; left out: published.")
    limit: int = Field(10, ge=1, le=100, description="How many at most.")
    offset: int = Field(0, ge=0, le=MAX_DEPTH, description="How many of the best to leave out.")
    explain: bool = Field(False, description="Say how each score came about.")


async def suggest(context: RequestContext, query: _SuggestParameters) -> dict[str, Any]:
    """The few best completions of what someone types"""
    record_search = context.site.record_search
    suggestions = await run_in_threadpool(
        record_search.suggest, query.prefix, query.collection, query.limit, record_search.get_position()
    )
    return {"suggestions": [serialize_suggestion(suggestion) for suggestion in suggestions]}


async def search(context: RequestContext, query: _SearchParameters) -> OrjsonResponse:
    """Find records by name, alias, definition or identifier

    Hits come in tiers: the identifier, the name, the name folded, an alias, names that begin so, all words in the
    name, in aliases, in the definition. Folding ignores case, accents, punctuation, hyphens and British and American
    spelling. Typing mistakes are allowed for where no name or alias has all words. `highlight` tells, in code points,
    the parts of `matched.text` that were asked for.
    """
    record_search = context.site.record_search
    search_query = SearchQuery(
        text=query.q,
        collections=query.collection,
        class_ref=query.class_,
        states=tuple(RecordState(name) for name in query.state) or (RecordState.PUBLISHED,),
        limit=query.limit,
        offset=query.offset,
        explain=query.explain,
    )
    position = record_search.get_position()
    return await run_in_threadpool(
        lambda: json_response(serialize_search_result(record_search.search(search_query, position)))
    )


OPERATIONS = (
    Operation("GET", "/suggest", suggest, returns(Suggestions), cacheable=False),
    Operation("GET", "/search", search, returns(SearchResults)),
)
