"""Client of the v1 interface that measures response times."""

import json
import time
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.http_client import HOST

# Hit limit of each round: a different one, so that no response is cached.
HIT_LIMITS = (10, 11, 12)


class ApiClient:
    """Connection that sends one request after another."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=60)

    def reconnect(self) -> None:
        self._connection.close()

    def get(self, path: str) -> tuple[float, Any]:
        """Return the response time in milliseconds and the JSON body."""
        start = time.perf_counter()
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        body = response.read()
        milliseconds = (time.perf_counter() - start) * 1e3
        if response.status != 200:
            raise UnexpectedResponse(f"{path[:200]} returned {response.status}: {body[:200]!r}")
        return milliseconds, json.loads(body)

    def search(self, text: str, limit: int = HIT_LIMITS[0]) -> tuple[float, Any]:
        return self.get(f"/api/v1/search?q={quote(text)}&limit={limit}")

    def suggest(self, text: str, limit: int) -> tuple[float, Any]:
        return self.get(f"/api/v1/suggest?prefix={quote(text)}&limit={limit}")

    def annotate(self, text: str) -> tuple[float, Any]:
        """Return the seconds and the mentions in a text; None while labels are being loaded."""
        start = time.perf_counter()
        self._connection.request("POST", "/api/v1/annotate", text.encode(), {"Content-Type": "text/plain"})
        response = self._connection.getresponse()
        body = response.read()
        seconds = time.perf_counter() - start
        if response.status not in (200, 503):
            raise UnexpectedResponse(f"Annotating a text returned {response.status}: {body[:200]!r}")
        return seconds, json.loads(body)["annotations"] if response.status == 200 else None

    def post(self, path: str, body: object, token: str) -> None:
        """Create a record; it must be accepted."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        response = self._connection.getresponse()
        reply = response.read()
        if response.status != 201:
            raise UnexpectedResponse(f"{path} returned {response.status}: {reply[:200]!r}")
