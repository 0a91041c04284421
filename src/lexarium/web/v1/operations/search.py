"""Search records; suggest completions of a prefix."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.client.models import SearchResults, Suggestions
from lexarium.domain.record import RecordState
from lexarium.formats.tables.cells import format_csv
from lexarium.services.search.record_search import MAX_DEPTH, MAX_DOWNLOADED, MAX_QUERY_CHARS, SearchQuery
from lexarium.services.serializers import list_hit_rows, serialize_search_result, serialize_suggestion
from lexarium.services.vocabularies.access import resolve_collections
from lexarium.web.http.languages import get_languages, vary_by_language
from lexarium.web.http.negotiation import choose_format
from lexarium.web.v1.operation import (
    JSON,
    VOCABULARIES_TEXT,
    LangParam,
    NamesParam,
    Operation,
    Parameters,
    RequestContext,
    Success,
    returns,
    split_names,
    split_unique,
)
from lexarium.web.v1.responses import OrjsonResponse, json_response


def _split_required(values: list[str]) -> tuple[str, ...]:
    if names := split_unique(values):
        return names
    raise ValueError("must have at least one.")


CollectionsParam = Annotated[tuple[str, ...], BeforeValidator(_split_required)]
"""Names of collections in their vocabularies, separated by commas or repeated."""
DEFAULT_COLLECTIONS_TEXT = "default: all except auxiliary ones."
_StatesParam = Annotated[tuple[str, ...], split_names(RecordState)]
_LANGUAGE_TEXT = "Show names in this language and rank its matches first within a tier (default: from Accept-Language)."


_PAGE_SIZE = 10
_MEDIA_TYPES = {"json": JSON, "csv": "text/csv"}


class _SuggestParameters(Parameters):
    prefix: str = Field(max_length=MAX_QUERY_CHARS, description="Prefix to complete.")
    collection: NamesParam = Field((), description="Collections, comma-separated (default: all).")
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)
    lang: LangParam = Field(None, description=_LANGUAGE_TEXT)
    limit: int = Field(10, ge=1, le=50, description="Maximum number of results (1 to 50, default 10).")


class _SearchParameters(Parameters):
    q: str = Field(
        max_length=MAX_QUERY_CHARS,
        description='Words or their beginnings, `"phrases"`, an ID or a CURIE.',
        examples=["working memory"],
    )
    collection: CollectionsParam = Field(
        (), description=f"Collections, comma-separated or repeated; {DEFAULT_COLLECTIONS_TEXT}"
    )
    vocabulary: NamesParam = Field((), description=VOCABULARIES_TEXT)
    class_: str | None = Field(None, alias="class", max_length=500, description="Filter by class: its ID or name.")
    language: NamesParam = Field(
        (), description="Languages of names and aliases, such as `de`, comma-separated or repeated (default: any)."
    )
    state: _StatesParam = Field((), description="States, comma-separated or repeated (default: published).")
    lang: LangParam = Field(None, description=_LANGUAGE_TEXT)
    limit: int | None = Field(
        None, ge=1, le=100, description=f"Maximum number of results (default: 10; with `format`, {MAX_DOWNLOADED:,})."
    )
    offset: int = Field(0, ge=0, le=MAX_DEPTH, description="Results to skip.")
    explain: bool = Field(False, description="Explain scores.")
    format: Literal["json", "csv"] | None = Field(
        None, description="Format to download all hits in (default: a page of JSON, or CSV if `Accept` prefers it)."
    )


async def suggest(context: RequestContext, query: _SuggestParameters) -> OrjsonResponse:
    """Suggest completions"""
    record_search = context.site.record_search
    position = record_search.get_position()  # which makes vocabularies known
    scope = context.get_scope(query.vocabulary)
    collections = resolve_collections(scope, query.collection)
    languages = get_languages(context.request)
    suggestions = await run_in_threadpool(
        record_search.suggest, query.prefix, collections, query.limit, position, scope, languages
    )
    content = {"suggestions": [serialize_suggestion(suggestion) for suggestion in suggestions]}
    return json_response(content, **vary_by_language(context.request))


async def search(context: RequestContext, query: _SearchParameters) -> Response:
    """Search records

    Hits are ranked in tiers: exact ID, exact name, folded name, alias, initials of a name, names that begin with the
    query, all words in the name, in aliases, in definition and notes. Folding ignores case, accents, punctuation,
    hyphens and British and American spelling. Typos are tolerated if no name or alias has all words, but not in numbers
    and single letters. If no record has all words, `partial` is true: the hits have some of the words, best matches
    first, and `nearest` has similar names. `highlight` has the parts of `matched.text` that match, in code points.

    Names, aliases and definitions are searched in all languages; `matched.language` is that of the text. `collection`
    means the collections of that name in every vocabulary.

    With `format`, or as CSV, the answer is a file of all hits, the best first, up to 10,000. In CSV, what a spreadsheet
    would run as a formula begins with an apostrophe.
    """
    record_search = context.site.record_search
    position = record_search.get_position()  # which makes vocabularies known
    scope = context.get_scope(query.vocabulary)
    search_query = SearchQuery(
        text=query.q,
        collections=resolve_collections(scope, query.collection),
        class_ref=query.class_,
        states=tuple(RecordState(name) for name in query.state) or (RecordState.PUBLISHED,),
        limit=query.limit or _PAGE_SIZE,
        offset=query.offset,
        explain=query.explain,
        scope=scope,
        languages=get_languages(context.request),
        label_languages=query.language,
    )
    chosen_format = query.format or choose_format(context.request, _MEDIA_TYPES, {"vary": "Accept"})
    headers = vary_by_language(context.request)
    headers["vary"] = ", ".join(filter(None, ["Accept", headers.get("vary")]))
    is_download = query.format is not None or chosen_format == "csv"
    if is_download:
        headers["content-disposition"] = f'attachment; filename="search-results.{chosen_format}"'

    def run() -> Response:
        find = record_search.search_all if is_download and query.limit is None else record_search.search
        result = find(search_query, position)
        if chosen_format == "json":
            return json_response(serialize_search_result(result), **headers)
        table = format_csv(list_hit_rows(result)).encode()
        return Response(table, headers={"cache-control": "no-cache", **headers}, media_type=_MEDIA_TYPES["csv"])

    return await run_in_threadpool(run)


_RESULTS = {200: Success({JSON: SearchResults, _MEDIA_TYPES["csv"]: "SearchTable"}, ("Content-Disposition",))}
OPERATIONS = (
    Operation("GET", "/suggest", suggest, returns(Suggestions), cacheable=False),
    Operation("GET", "/search", search, _RESULTS, errors=(406,)),
)
