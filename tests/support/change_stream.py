"""Read the event stream of changes."""

import json
from http.client import HTTPConnection
from typing import Any

from tests.support.server import Server


class ChangeStream:
    """Event stream of changes, read by a thread until closed."""

    def __init__(self, server: Server, path: str = "/api/v1/changes", **headers: str) -> None:
        self._connection: HTTPConnection = server.connect()
        all_headers = {"Accept": "text/event-stream"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self._connection.request("GET", path, headers=all_headers)
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        assert self._response.headers["content-type"].startswith("text/event-stream")
        assert self._response.readline().startswith(b"retry:")

    def read_events(self, number: int) -> list[dict[str, Any]]:
        """Read a number of events and check their ids; fail at the connection's timeout."""
        changes: list[dict[str, Any]] = []
        event: dict[str, str] = {}
        while len(changes) < number:
            line = self._response.readline()
            assert line, "the stream ended"
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif "data" in event:
                assert event["event"] == "change"
                change: dict[str, Any] = json.loads(event["data"])
                self.last_id = event["id"]
                assert int(self.last_id.partition("-")[0]) == change["seq"]
                changes.append(change)
                event = {}
        return changes

    def read_rest(self) -> bytes:
        """Read until the stream ends properly."""
        return self._response.read()

    def close(self) -> None:
        self._response.close()
        self._connection.close()
