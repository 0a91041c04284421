"""The OpenAPI document, held against the server: whatever is sent, what comes back is what it says."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.conftest import ENGINES, NewUrl
from tests.server import Server

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
RUNS = 8
"""Requests an operation."""
LEFT_OUT = ("/task", "/contrast", "/concept_class")
"""Collections whose addresses are made by the same code as those that are tried."""
LONGEST_ADDRESS = 60_000
JSON = "application/json"
PLACES = {"id", "name"}
"""What an address calls the thing it is of."""


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@dataclass
class Api:
    """A small catalogue on a server, and what it says of itself."""

    server: Server
    token: str
    document: dict[str, Any]
    ids: dict[str, list[str]]
    """Things that are there, by the first part of their address."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON, "If-Match": '"1"'}
        answer = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert answer.status < 300, answer.body
        return answer.json


@pytest.fixture(scope="module", params=ENGINES)
def api(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Api]:
    url = new_url(request.param)
    with Server(url) as server:
        there = Api(server, server.token("admin"), server.get("/openapi.json").json, {})
        for collection in ("concept", "disorder"):
            made = [there.send("POST", f"/{collection}", {"name": f"{collection} {n}"})["id"] for n in range(6)]
            there.send("DELETE", f"/{collection}/{made[4]}")
            there.send("POST", f"/{collection}/{made[5]}/merge", {"into": made[0]})
            there.ids[collection] = made
        there.ids["records"] = there.ids["concept"] + there.ids["disorder"]
        proposal = {"collection": "concept", "change": {"name": "Proposed"}}
        there.ids["proposals"] = [there.send("POST", "/proposals", proposal)["id"] for _ in range(3)]
        there.ids["releases"] = [there.send("POST", "/releases", {"name": "2026.1"})["name"]]
        yield there
    database = Database(url)
    assert check(database).problems == []
    database.close()


def tried(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the addresses that are tried alone."""
    paths = {
        path: operations
        for path, operations in document["paths"].items()
        if not path.removeprefix("/api/v1").startswith(LEFT_OUT)
    }
    return {**document, "paths": paths}


def modes_of(operation: Any) -> list[GenerationMode]:
    """What is as the document says, and, where it says anything, what is not."""
    if operation.body or any(True for _ in operation.iter_parameters()):
        return list(GenerationMode)
    return [GenerationMode.POSITIVE]


def test_whatever_is_sent_the_answer_is_one_that_the_document_tells(api: Api) -> None:
    document = tried(api.document)
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == sum(map(len, document["paths"].values()))
    seen = set[int]()
    contributor = api.server.token("contributor")
    for operation in operations:
        known = api.ids.get(operation.path.split("/")[3] if operation.path.count("/") > 2 else "", [])

        @settings(
            max_examples=RUNS, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(
            case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes_of(operation)]),
            identifier=st.sampled_from([None, *known]),
            version=st.sampled_from([None, "1", '"1"', '"2"', "*"]),
            token=st.sampled_from([api.token, api.token, contributor, "none"]),
        )
        def answered(case: Any, identifier: str | None, version: str | None, token: str) -> None:
            if identifier is not None:
                case.path_parameters = {
                    **case.path_parameters,
                    **dict.fromkeys(PLACES & {*case.path_parameters}, identifier),
                }
            headers = {"Authorization": f"Bearer {token}"}
            if version is not None:
                headers |= {"If-Match": version, "If-None-Match": version}
            response = case.call(base_url=api.base, headers=headers, timeout=30)
            # A longer address is refused before it comes to the application.
            assume(len(response.request.url or "") < LONGEST_ADDRESS)
            case.validate_response(response, checks=CHECKS)
            seen.add(response.status_code)

        answered()
    assert {200, 401, 404, 422} <= seen


def test_the_document_tells_what_contributors_and_caches_are_answered(api: Api) -> None:
    paths = api.document["paths"]
    for collection in ("concept", "disorder"):
        listed, one = paths[f"/api/v1/{collection}"], paths[f"/api/v1/{collection}/{{id}}"]
        for operation in (listed["post"], one["put"], one["patch"]):
            assert "202" in operation["responses"]
        assert "304" in one["get"]["responses"]
    assert list(paths["/api/v1/batch"]["post"]["responses"]["200"]["content"]) == ["application/x-ndjson"]
