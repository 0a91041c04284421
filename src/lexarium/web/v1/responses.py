"""JSON responses of v1."""

from typing import Any

import orjson
from starlette.responses import Response

from lexarium.services.idempotency import WriteResponse

V1_PATH = "/api/v1"


class OrjsonResponse(Response):
    """JSON, serialized by orjson."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


def json_response(content: Any, **headers: str) -> OrjsonResponse:
    """Return the response to a read, which a cache must revalidate."""
    return OrjsonResponse(content, headers={"cache-control": "no-cache", **headers})


def to_response(result: Any) -> Response:
    """Convert the result of a handler to a response: a 204 for None."""
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=204)
    if not isinstance(result, WriteResponse):
        return json_response(result)
    headers = {"location": result.location, "etag": result.etag}
    return OrjsonResponse(result.content, result.status, {name: value for name, value in headers.items() if value})
