"""Search records; suggest completions of a prefix."""

from contextlib import suppress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from lexarium.client.models import SearchResults, Suggestions
from lexarium.domain.errors import Unauthenticated
from lexarium.domain.record import RecordState
from lexarium.domain.text.languages import canonicalize_tag, parse_accept_language
from lexarium.services.search.record_search import MAX_DEPTH, MAX_QUERY_CHARS, SearchQuery
from lexarium.services.serializers import serialize_search_result, serialize_suggestion
from lexarium.services.vocabularies.access import ReadScope, get_read_scope, resolve_collections
from lexarium.web.http.write_requests import authenticate_request
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, returns, split_commas, split_names
from lexarium.web.v1.responses import OrjsonResponse, json_response


def _split_unique(values: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(split_commas(values)))


def _split_required(values: list[str]) -> tuple[str, ...]:
    if names := _split_unique(values):
        return names
    raise ValueError("should name at least one.")


CollectionsParam = Annotated[tuple[str, ...], BeforeValidator(_split_required)]
"""Names of collections in their vocabularies, separated by commas or repeated."""
VocabulariesParam = Annotated[tuple[str, ...], BeforeValidator(_split_unique)]
"""Slugs of vocabularies, separated by commas or repeated."""
DEFAULT_COLLECTIONS_TEXT = "left out: all but auxiliary ones."
VOCABULARIES_TEXT = "Only of these vocabularies, separated by commas or given each; left out: all you may read."
_StatesParam = Annotated[tuple[str, ...], split_names(RecordState)]
_AnyCollectionsParam = Annotated[tuple[str, ...], BeforeValidator(_split_unique)]
_LANGUAGE_TEXT = (
    "Show names in this language, and within a tier first what matches in it; left out: that of Accept-Language."
)


class _SuggestParameters(Parameters):
    prefix: str = Field(max_length=MAX_QUERY_CHARS, description="What was typed so far.")
    collection: _AnyCollectionsParam = Field((), description="Only these, separated by commas; left out: all.")
    vocabulary: VocabulariesParam = Field((), description=VOCABULARIES_TEXT)
    lang: str | None = Field(None, max_length=100, description=_LANGUAGE_TEXT)
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
    vocabulary: VocabulariesParam = Field((), description=VOCABULARIES_TEXT)
    class_: str | None = Field(
        None, alias="class", max_length=500, description="Only of this class: its id or its name."
    )
    state: _StatesParam = Field((), description="Only in these states, likewise; left out: published.")
    lang: str | None = Field(None, max_length=100, description=_LANGUAGE_TEXT)
    limit: int = Field(10, ge=1, le=100, description="How many at most.")
    offset: int = Field(0, ge=0, le=MAX_DEPTH, description="How many of the best to leave out.")
    explain: bool = Field(False, description="Say how each score came about.")


async def find_scope(context: RequestContext, chosen: tuple[str, ...]) -> ReadScope:
    """Return the vocabularies that a request is about; raise NotFound. Reading needs no token."""
    caller = None
    if "authorization" in context.request.headers:
        with suppress(Unauthenticated):
            caller = await authenticate_request(context.request, context.site.authenticator)
    return get_read_scope(caller, chosen)


def _list_languages(context: RequestContext, tag: str | None) -> tuple[str, ...]:
    """Return the languages of a reader, best first; raise InvalidInput."""
    if tag:
        return (canonicalize_tag(tag),)
    return parse_accept_language(context.request.headers.get("accept-language"))


async def suggest(context: RequestContext, query: _SuggestParameters) -> dict[str, Any]:
    """The few best completions of what someone types"""
    record_search = context.site.record_search
    position = record_search.get_position()  # which makes vocabularies known
    scope = await find_scope(context, query.vocabulary)
    collections = resolve_collections(scope, query.collection)
    languages = _list_languages(context, query.lang)
    suggestions = await run_in_threadpool(
        record_search.suggest, query.prefix, collections, query.limit, position, scope, languages
    )
    return {"suggestions": [serialize_suggestion(suggestion) for suggestion in suggestions]}


async def search(context: RequestContext, query: _SearchParameters) -> OrjsonResponse:
    """Find records by name, alias, definition or identifier

    Hits come in tiers: the identifier, the name, the name folded, an alias, names that begin so, all words in the
    name, in aliases, in the definition. Folding ignores case, accents, punctuation, hyphens and British and American
    spelling. Typing mistakes are allowed for where no name or alias has all words. `highlight` tells, in code points,
    the parts of `matched.text` that were asked for.

    Names, aliases and definitions are searched in all languages; `matched.language` is that of the text. `collection`
    means the collections of that name in every vocabulary.
    """
    record_search = context.site.record_search
    position = record_search.get_position()  # which makes vocabularies known
    scope = await find_scope(context, query.vocabulary)
    search_query = SearchQuery(
        text=query.q,
        collections=resolve_collections(scope, query.collection),
        class_ref=query.class_,
        states=tuple(RecordState(name) for name in query.state) or (RecordState.PUBLISHED,),
        limit=query.limit,
        offset=query.offset,
        explain=query.explain,
        scope=scope,
        languages=_list_languages(context, query.lang),
    )
    return await run_in_threadpool(
        lambda: json_response(
            serialize_search_result(record_search.search(search_query, position)), vary="Accept-Language"
        )
    )


OPERATIONS = (
    Operation("GET", "/suggest", suggest, returns(Suggestions), cacheable=False),
    Operation("GET", "/search", search, returns(SearchResults)),
)
