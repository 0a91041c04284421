"""Wait for the annotator, which reads all labels when it is first used."""

import asyncio

from lexarium.search.annotator import Annotator
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.web.http.problems import HTTPProblem

_WAIT_SECONDS = 10


async def get_annotator(annotator_cache: AnnotatorCache) -> Annotator:
    """Return the annotator with the current names; raise a 503 if it is not ready soon. Wait without a thread."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            return await asyncio.wrap_future(annotator_cache.get_current())
    except TimeoutError:
        detail = "Term names are still loading after a restart; try again in a few seconds."
        raise HTTPProblem(503, detail, {"Retry-After": str(_WAIT_SECONDS)}) from None
