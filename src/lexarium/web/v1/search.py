"""Searching the catalogue, however it is asked; `lexarium.web.v1.plain_search` answers what is asked plainly."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from lexarium.domain.schema.collections import DEFAULT_SEARCH_COLLECTIONS
from lexarium.services.search.record_search import MAX_DEPTH, MAX_QUERY_CHARS, SearchQuery
from lexarium.web.v1.plain_search import LONGEST_CLASS, MOST, collections_of, found, states_of
from lexarium.web.v1.requests import FinderOf, SeenOf
from lexarium.web.v1.schemas import answered

router = APIRouter(tags=["search"])


@router.get("/search", summary="Find records by name, alias, definition or identifier", responses=answered("Found"))
def search(
    finder: FinderOf,
    position: SeenOf,
    q: Annotated[
        str,
        Query(
            max_length=MAX_QUERY_CHARS,
            description='Words or their beginnings, `"phrases"`, an identifier or a CURIE.',
            examples=["working memory"],
        ),
    ],
    collection: Annotated[
        list[str] | None,
        Query(
            description=(
                f"Only these, separated by commas or given each; left out: {', '.join(DEFAULT_SEARCH_COLLECTIONS)}."
            )
        ),
    ] = None,
    class_: Annotated[
        str | None,
        Query(alias="class", max_length=LONGEST_CLASS, description="Only of this class: its id or its name."),
    ] = None,
    state: Annotated[
        list[str] | None, Query(description="Only in these states, likewise; left out: published.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 10,
    offset: Annotated[int, Query(ge=0, le=MAX_DEPTH)] = 0,
    explain: Annotated[bool, Query(description="Say how each score came about.")] = False,
) -> Response:
    """Hits come in tiers: the identifier, the name, the name folded, an alias, names that begin so, all words in the
    name, in aliases, in the definition. Folding ignores case, accents, punctuation, hyphens and British and American
    spelling. Typing mistakes are allowed for where no name or alias has all words. `highlight` tells, in code points,
    the parts of `matched.text` that were asked for.
    """  # noqa: D205
    asked = SearchQuery(
        text=q,
        collections=collections_of(collection or []),
        class_ref=class_,
        states=states_of(state or []),
        limit=limit,
        offset=offset,
        explain=explain,
    )
    return found(finder, asked, position)
