"""Client of v1 with a token."""

import json
from typing import Any

from tests.support.server import HttpResponse, Server


class V1Client:
    """Client of v1 with a token."""

    def __init__(self, server: Server, role: str) -> None:
        self.server = server
        self.token = server.create_token(role)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        all_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        all_headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            all_headers.setdefault("Content-Type", "application/json")
        return self.server.request(method, f"/api/v1/{path}", all_headers, None if body is None else json.dumps(body))

    def create(self, collection: str = "concept", **fields: Any) -> dict[str, Any]:
        response = self.send("POST", collection, fields)
        assert response.status == 201, response.body
        record: dict[str, Any] = response.json
        record.pop("warnings", None)  # of similar names
        return record

    def patch(self, record: dict[str, Any], **fields: Any) -> dict[str, Any]:
        response = self.send("PATCH", build_path(record), fields, If_Match=f'"{record["version"]}"')
        assert response.status == 200, response.body
        updated: dict[str, Any] = response.json
        return updated


def build_path(record: dict[str, Any], *segments: str) -> str:
    return "/".join([record["collection"], record["id"], *segments])


def get_etag(record: dict[str, Any]) -> str:
    return f'"{record["version"]}"'


def send_batch(client: V1Client, *lines: object) -> HttpResponse:
    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {client.token}"}
    return client.server.request("POST", "/api/v1/batch", headers, "\n".join(json.dumps(line) for line in lines))
