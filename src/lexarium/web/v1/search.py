"""Searching the catalogue."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.domain.errors import Invalid, LexariumError, Problem
from lexarium.service.finding import DEEPEST, LONGEST_QUERY, Asked, Finder
from lexarium.service.views import found_view
from lexarium.web.problems import respond
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import FinderOf, SeenOf, parameters_of, read_parameters
from lexarium.web.v1.schemas import answered

router = APIRouter(tags=["search"])


@router.get("/search", summary="Find records by name, alias, definition or identifier", responses=answered("Found"))
def search(
    finder: FinderOf,
    position: SeenOf,
    q: Annotated[
        str,
        Query(
            max_length=LONGEST_QUERY,
            description='Words or their beginnings, `"phrases"`, an identifier or a CURIE.',
            examples=["working memory"],
        ),
    ],
    collection: Annotated[
        list[str] | None,
        Query(description=f"Only these, separated by commas or given each; left out: {', '.join(SEARCHED)}."),
    ] = None,
    class_: Annotated[
        str | None, Query(alias="class", max_length=500, description="Only of this class: its id or its name.")
    ] = None,
    state: Annotated[
        list[str] | None, Query(description="Only in these states, likewise; left out: published.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    offset: Annotated[int, Query(ge=0, le=DEEPEST)] = 0,
    explain: Annotated[bool, Query(description="Say how each score came about.")] = False,
) -> Response:
    """Hits come in tiers: the identifier, the name, the name folded, an alias, names that begin so, all words in the
    name, in an alias, in the definition. Folding ignores case, accents, punctuation, hyphens and British and American
    spelling. Typing mistakes are allowed for where no name or alias has all words. `highlight` tells, in code points,
    the parts of `matched.text` that were asked for.
    """  # noqa: D205
    asked = Asked(
        text=q,
        collections=() if collection is None else _named("collection", collection, list(COLLECTIONS)),
        class_=class_,
        states=tuple(State(each) for each in _named("state", state or [State.PUBLISHED], list(State))),
        limit=limit,
        offset=offset,
        explain=explain,
    )
    return answers.read(found_view(finder.search(asked, position)))


def swift_route() -> Route:
    """The same without FastAPI's help."""
    (route,) = (each for each in router.routes if isinstance(each, APIRoute))
    queried = parameters_of(route)

    async def answer(request: Request) -> Response:
        finder: Finder = request.app.state.finder
        try:
            values = read_parameters(request, queried)
            return await run_in_threadpool(search, finder, finder.seen(), **values)
        except LexariumError as error:
            return respond(error)

    return Route(f"{answers.PATH}{route.path}", answer)


def _named(parameter: str, given: list[str], known: list[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in ",".join(given).split(",") if name.strip()))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise Invalid("This cannot be looked for.", [Problem(parameter, f"should be among {', '.join(known)}.")])
    return names
