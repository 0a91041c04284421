"""The OpenAPI document, held against the server: whatever is sent, what comes back is what it says."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
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
from tests.databases import ENGINES, NewUrl
from tests.server import Answer, Server
from tests.waiting import DEADLINE

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
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
        there = Api(server, server.token("admin"), strict(server.get("/openapi.json").json), {})
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


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """The document, taken at its word: an object has no field, and an operation no answer, that it does not name."""

    def closed(node: Any) -> Any:
        if isinstance(node, list):
            return [closed(each) for each in node]
        if not isinstance(node, dict):
            return node
        inner = {key: closed(value) if key != "example" else value for key, value in node.items() if key != "default"}
        if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
            inner["additionalProperties"] = False
        return inner

    taken: dict[str, Any] = closed(document)
    return taken


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def media_of(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """What a body or an answer may hold, by content type."""
    name = told.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = (document["components"]["responses"][name] if name else told).get("content", {})
    return found


def validate(document: dict[str, Any], schema: dict[str, Any], value: object) -> None:
    jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


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


@pytest.mark.parametrize("runs", [1, pytest.param(8, marks=pytest.mark.full)])
def test_whatever_is_sent_the_answer_is_one_that_the_document_tells(api: Api, runs: int) -> None:
    document = tried(api.document)
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == sum(map(len, document["paths"].values()))
    seen = set[int]()
    contributor = api.server.token("contributor")
    for operation in operations:
        known = api.ids.get(operation.path.split("/")[3] if operation.path.count("/") > 2 else "", [])

        @settings(
            max_examples=runs, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
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
            response = case.call(base_url=api.base, headers=headers, timeout=DEADLINE)
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


def test_the_document_tells_everything_of_every_operation(api: Api) -> None:
    whole = api.server.get("/openapi.json").json
    tags = {tag["name"] for tag in whole["tags"] if tag["description"]}
    names = [operation["operationId"] for _, _, operation in operations_of(whole)]
    assert len(set(names)) == len(names)
    for method, path, operation in operations_of(whole):
        where = f"{method} {path}"
        assert set(operation["tags"]) <= tags, where
        assert operation["summary"], where
        assert all(each["description"] for each in operation.get("parameters", [])), where
        assert operation["responses"]["default"], where
        told = [operation.get("requestBody", {}), *operation["responses"].values()]
        for kind, media in [item for each in told for item in media_of(whole, each).items()]:
            assert media["schema"], f"{where}: {kind}"
            validate(api.document, media["schema"], media["example"])
    assert {path for path in whole["paths"] if path.startswith("/api/v-alpha/")} == {
        f"/api/v-alpha/{name}" for name in ("concept", "task", "disorder", "search")
    }
    assert "HTTPValidationError" not in json.dumps(whole)


def test_an_operation_tells_only_the_errors_that_it_can_give(api: Api) -> None:
    for method, path, operation in operations_of(api.document):
        told, where = set(operation["responses"]), f"{method} {path}"
        guarded = operation["security"] == [{"token": []}]
        assert guarded == ("401" in told and not path.endswith("/sign-in")), where
        assert ("415" in told) == ("requestBody" in operation), where
        versioned = any(each["name"] == "If-Match" for each in operation.get("parameters", []))
        assert versioned == ("428" in told) == ("412" in told), where
        writes = method in ("POST", "PUT", "PATCH", "DELETE") and not path.endswith("/annotate")
        assert ("429" in told) == writes, where
    assert set(api.document["paths"]["/api/v1"]["get"]["responses"]) == {"200", "304", "422"}


class Page(HTMLParser):
    """The parts of a page that matter here: what each `details` shows, by its id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown: dict[str, str] = {}
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag == "details":
            self._in = named["id"]
            self.shown[self._in] = ""
        self.anchors |= {named["id"]} if "id" in named else set()
        self.links |= {named["href"].removeprefix("#")} if named.get("href", "").startswith("#") else set()

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == "details" else self._in

    def handle_data(self, data: str) -> None:
        if self._in:
            self.shown[self._in] += data


def test_the_page_shows_all_that_the_document_tells(api: Api) -> None:
    answer = api.server.get("/docs")
    page = Page(answer.body.decode())
    assert page.links <= page.anchors
    for method, path, operation in operations_of(api.server.get("/openapi.json").json):
        shown = page.shown[operation["operationId"]]
        told = [method, path, "curl ", *(each["name"] for each in operation.get("parameters", []))]
        for content in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media in content.get("content", {}).values():
                example = media["example"]
                told.append(example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False))
        told += [status for status in operation["responses"] if status != "default"]
        assert [each for each in told if each not in shown] == [], f"{method} {path}"
        for media in operation.get("requestBody", {}).get("content", {}).values():
            fields = api.document["components"]["schemas"][media["schema"]["$ref"].rpartition("/")[2]].get(
                "properties", {}
            )
            assert all(name in shown for name in fields)
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert api.server.get("/static/reference.js").status == 200


@pytest.mark.parametrize("operation", ["concept_create_record", "concept_patch_record", "batch", "valpha_create_task"])
def test_a_command_of_the_page_can_be_run_as_it_stands(operation: str, tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/sample.db", "--sample") as server:
        shown = Page(server.get("/docs").body.decode()).shown[operation]
        command = re.search(r"curl .*?'(?=\n\s*(?:\n|[A-Z]))", shown, re.DOTALL)
        assert command
        script = command.group().replace("curl ", "curl -sS --fail-with-body ", 1)
        environment = {"TOKEN": server.token("curator"), "PATH": os.environ["PATH"]}
        done = subprocess.run(["bash", "-euc", script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout.splitlines()[0])["id"]


ORDER = (
    "POST batch", "POST users", "POST releases", "POST", "PATCH", "PUT {id}", "PUT", "GET", "OPTIONS", "DELETE",
    "DELETE {id}", "POST revert", "POST merge",
)  # fmt: skip


class Sample:
    """The sample catalogue on a server; every operation is done as its example says."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.token = server.token("admin")
        self.document = strict(server.get("/openapi.json").json)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        named = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        given = body if isinstance(body, str) or body is None else json.dumps(body)
        return self.server.request(method, path, named, given)

    def ordered(self) -> list[tuple[str, str, dict[str, Any]]]:
        """What makes things first, what takes them away last."""

        def turn(item: tuple[str, str, dict[str, Any]]) -> tuple[int, bool]:
            method, path, _ = item
            names = (f"{method} {path.removeprefix('/api/v1/')}", f"{method} {path.rpartition('/')[2]}", method)
            return next(ORDER.index(name) for name in names if name in ORDER), "{id}" in path

        return sorted(operations_of(self.document), key=turn)

    def do(self, method: str, path: str, operation: dict[str, Any]) -> None:
        """Send an operation's example; what comes back must be a success, and as the document says."""
        given = {each["name"]: each["example"] for each in operation.get("parameters", []) if "example" in each}
        target = re.sub(r"{(\w+)}", lambda found: str(given[found.group(1)]), path)
        target = self.place(path, target)
        wanted = [
            each["name"] for each in operation.get("parameters", []) if each["in"] == "query" and each.get("required")
        ]
        query = urlencode({name: given[name] for name in wanted})
        kind, body = self.body(operation)
        version = self.version(target) if "If-Match" in given else ""
        answer = self.send(method, f"{target}?{query}" if query else target, body, Content_Type=kind, If_Match=version)
        assert answer.status < 300, f"{method} {target}: {answer.body!r}"
        content = media_of(self.document, operation["responses"][str(answer.status)])
        if not content:
            assert answer.body == b""
            return
        schema = content[answer.headers["content-type"]]["schema"]
        validate(self.document, schema, answer.json if answer.headers["content-type"] == JSON else answer.body.decode())

    def body(self, operation: dict[str, Any]) -> tuple[str, Any]:
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return JSON, None
        kind, media = next(iter(content.items()))
        example = media["example"]
        if "url" in example:
            example = {**example, "url": "http://127.0.0.1:9/hook"}  # the example's host cannot be looked up here
        return kind, example

    def example(self, path: str) -> Any:
        return self.document["paths"][path]["post"]["requestBody"]["content"][JSON]["example"]

    def place(self, path: str, target: str) -> str:
        """Where a thing is that an example can only name: it is made for it."""
        new = {
            "/api/v1/proposals/{id}": {**self.example("/api/v1/proposals"), "change": {"name": str(uuid.uuid4())}},
            "/api/v1/users/{id}": {"name": str(uuid.uuid4()), "role": "curator"},
            "/api/v1/tokens/{id}": {},
            "/api/v1/webhooks/{id}": {"url": "http://127.0.0.1:9/"},
        }
        for start, body in new.items():
            if path.startswith(start):
                made = self.send("POST", start.removesuffix("/{id}"), body)
                assert made.status < 300, made.body
                return path.replace("{id}", made.json["id"])
        return target

    def version(self, target: str) -> str:
        history = self.server.get("/".join(target.split("/")[:5]) + "/history").json
        return f'"{history["items"][0]["version"]}"'


def test_every_operation_does_what_its_example_says(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/sample.db", "--sample", LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        sample = Sample(server)
        for method, path, operation in sample.ordered():
            if path.endswith("/sign-in"):
                accounts = sample.send("GET", "/api/v1/users").json["items"]
                ada = next(each["id"] for each in accounts if each["name"] == "Ada")
                password = operation["requestBody"]["content"][JSON]["example"]["password"]
                assert sample.send("PATCH", f"/api/v1/users/{ada}", {"password": password}).status == 200
            sample.do(method, path, operation)
