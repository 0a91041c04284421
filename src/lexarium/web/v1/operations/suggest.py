"""Suggest completions of a prefix."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.client.models import Suggestions
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.search.record_search import MAX_QUERY_CHARS
from lexarium.services.serializers import serialize_suggestion
from lexarium.web.v1.operation import Operation, Parameters, RequestContext, check_names, returns, split_commas
from lexarium.web.v1.responses import json_response

_MAX_SUGGESTIONS = 50


class SuggestParameters(Parameters):
    """Parameters of suggestions."""

    prefix: str = Field(max_length=MAX_QUERY_CHARS, description="What was typed so far.")
    collection: Annotated[tuple[str, ...], BeforeValidator(split_commas), check_names(COLLECTIONS, allow_none=True)] = (
        Field((), description="Only these, separated by commas; left out: all.")
    )
    limit: int = Field(
        10, ge=1, le=_MAX_SUGGESTIONS, description=f"How many at most: 10, or from 1 to {_MAX_SUGGESTIONS}."
    )


async def suggest(context: RequestContext, query: SuggestParameters) -> Response:
    record_search = context.services.record_search
    suggestions = await run_in_threadpool(
        record_search.suggest, query.prefix, query.collection, query.limit, record_search.get_position()
    )
    return json_response({"suggestions": [serialize_suggestion(suggestion) for suggestion in suggestions]})


# fmt: off
OPERATIONS = (
    Operation("GET", "/suggest", "suggest", "The few best completions of what someone types",
              suggest, returns(Suggestions), SuggestParameters, cacheable=False),
)
# fmt: on
