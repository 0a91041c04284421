"""The OpenAPI document matches the server: every response to any request is documented."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
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

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS
from tests.support.server import HttpResponse, Server

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MAX_URL_CHARS = 60_000
JSON = "application/json"
# Path parameters that identify an item.
ID_PARAMETERS = {"id", "name"}


@schemathesis.serializer("application/x-ndjson")
def serialize_ndjson(context: object, value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@dataclass
class ApiServer:
    """Server of a small catalogue, with its OpenAPI document."""

    server: Server
    token: str
    document: dict[str, Any]
    # Ids of existing items, by the first part of their path.
    ids: dict[str, list[str]]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON, "If-Match": '"1"'}
        response = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert response.status < 300, response.body
        return response.json


@pytest.fixture(scope="module", params=ENGINES)
def api(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[ApiServer]:
    url = new_url(request.param)
    with Server(url) as server:
        new_api = ApiServer(
            server, server.create_token("admin"), forbid_undocumented(server.get("/openapi.json").json), {}
        )
        for collection in ("concept", "disorder"):
            record_ids = [new_api.send("POST", f"/{collection}", {"name": f"{collection} {n}"})["id"] for n in range(6)]
            new_api.send("DELETE", f"/{collection}/{record_ids[4]}")
            new_api.send("POST", f"/{collection}/{record_ids[5]}/merge", {"into": record_ids[0]})
            new_api.ids[collection] = record_ids
        new_api.ids["records"] = new_api.ids["concept"] + new_api.ids["disorder"]
        proposal = {"collection": "concept", "change": {"name": "Proposed"}}
        new_api.ids["proposals"] = [new_api.send("POST", "/proposals", proposal)["id"] for _ in range(3)]
        new_api.ids["releases"] = [new_api.send("POST", "/releases", {"name": "2026.1"})["name"]]
        yield new_api
    database = Database(url)
    assert check_database(database).problems == []
    database.close()


def forbid_undocumented(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document made strict: objects have no fields that it does not declare."""

    def close_objects(node: Any) -> Any:
        if isinstance(node, list):
            return [close_objects(child) for child in node]
        if not isinstance(node, dict):
            return node
        inner = {
            key: close_objects(value) if key != "example" else value
            for key, value in node.items()
            if key != "default" or (isinstance(value, dict) and "description" in value)  # a field of this name
        }
        if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
            inner["additionalProperties"] = False
        return inner

    strict_document: dict[str, Any] = close_objects(document)
    return strict_document


def iter_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def get_media(document: dict[str, Any], body_or_response: dict[str, Any]) -> dict[str, Any]:
    """Return the media types of a request body or response."""
    name = body_or_response.get("$ref", "").rpartition("/")[2]
    content: dict[str, Any] = (document["components"]["responses"][name] if name else body_or_response).get(
        "content", {}
    )
    return content


def validate(document: dict[str, Any], schema: dict[str, Any], value: object) -> None:
    jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def list_modes(operation: Any) -> list[GenerationMode]:
    """Return the modes of generation: invalid requests only where an operation has a body or parameters."""
    if operation.body or any(True for _ in operation.iter_parameters()):
        return list(GenerationMode)
    return [GenerationMode.POSITIVE]


@pytest.mark.parametrize("runs", [pytest.param(1, marks=pytest.mark.short), pytest.param(2, marks=pytest.mark.full)])
def test_every_response_to_generated_requests_is_documented(api: ApiServer, runs: int) -> None:
    document = api.document
    schema = schemathesis.openapi.from_dict(document)
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) == sum(map(len, document["paths"].values()))
    seen_statuses = set[int]()
    contributor = api.server.create_token("contributor")
    for operation in operations:
        segment = operation.path.split("/")[3] if operation.path.count("/") > 2 else ""
        known_ids = api.ids.get("records" if segment == "{collection}" else segment, [])

        @settings(
            max_examples=runs, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(
            case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in list_modes(operation)]),
            identifier=st.sampled_from([None, *known_ids]),
            collection=st.sampled_from(["concept", "disorder", "citation", None]),
            version=st.sampled_from([None, "1", '"1"', '"2"', "*"]),
            token=st.sampled_from([api.token, api.token, contributor, "none"]),
        )
        def check_response(
            case: Any, identifier: str | None, collection: str | None, version: str | None, token: str
        ) -> None:
            if collection is not None and "collection" in case.path_parameters:
                case.path_parameters = {**case.path_parameters, "collection": collection}
            if identifier is not None:
                case.path_parameters = {
                    **case.path_parameters,
                    **dict.fromkeys(ID_PARAMETERS & {*case.path_parameters}, identifier),
                }
            headers = {"Authorization": f"Bearer {token}"}
            if version is not None:
                headers |= {"If-Match": version, "If-None-Match": version}
            response = case.call(base_url=api.base_url, headers=headers, timeout=DEADLINE_SECONDS)
            # A longer URL is rejected before it reaches the application.
            assume(len(response.request.url or "") < MAX_URL_CHARS)
            case.validate_response(response, checks=CHECKS)
            seen_statuses.add(response.status_code)

        check_response()
    assert {200, 401, 404, 422} <= seen_statuses


def test_responses_to_contributors_and_caches_are_documented(api: ApiServer) -> None:
    paths = api.document["paths"]
    collection_path, record_path = paths["/api/v1/{collection}"], paths["/api/v1/{collection}/{id}"]
    for operation in (collection_path["post"], record_path["put"], record_path["patch"]):
        assert "202" in operation["responses"]
    assert "304" in record_path["get"]["responses"]
    assert list(paths["/api/v1/batch"]["post"]["responses"]["200"]["content"]) == ["application/x-ndjson"]


def test_every_operation_is_fully_documented(api: ApiServer) -> None:
    document = api.server.get("/openapi.json").json
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    names = [operation["operationId"] for _, _, operation in iter_operations(document)]
    assert len(set(names)) == len(names)
    for method, path, operation in iter_operations(document):
        where = f"{method} {path}"
        assert set(operation["tags"]) <= tags, where
        assert operation["summary"], where
        assert all(parameter["description"] for parameter in operation.get("parameters", [])), where
        assert operation["responses"]["default"], where
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for kind, media in [item for parameter in bodies for item in get_media(document, parameter).items()]:
            assert media["schema"], f"{where}: {kind}"
            validate(api.document, media["schema"], media["example"])
    assert {path for path in document["paths"] if path.startswith("/api/v-alpha/")} == {
        f"/api/v-alpha/{name}" for name in ("concept", "task", "disorder", "search")
    }
    assert "HTTPValidationError" not in json.dumps(document)


def test_an_operation_documents_only_errors_that_it_can_return(api: ApiServer) -> None:
    for method, path, operation in iter_operations(api.document):
        statuses, where = set(operation["responses"]), f"{method} {path}"
        assert "401" in statuses or path.startswith("/api/v-alpha/"), where
        assert ("415" in statuses) == ("requestBody" in operation), where
        versioned = any(parameter["name"] == "If-Match" for parameter in operation.get("parameters", []))
        assert versioned == ("428" in statuses) == ("412" in statuses), where
        writes = method in ("POST", "PUT", "PATCH", "DELETE") and not path.endswith("/annotate")
        assert ("429" in statuses) == writes, where
    assert set(api.document["paths"]["/api/v1"]["get"]["responses"]) == {"200", "304", "401", "422"}


class DocsPage(HTMLParser):
    """Text of each `details` element of a page by its id, with the anchors and links of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.details: dict[str, str] = {}
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self._current_id = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "details" and "id" in attributes:
            self._current_id = attributes["id"]
            self.details[self._current_id] = ""
        self.anchors |= {attributes["id"]} if "id" in attributes else set()
        self.links |= {attributes["href"].removeprefix("#")} if attributes.get("href", "").startswith("#") else set()

    def handle_endtag(self, tag: str) -> None:
        self._current_id = "" if tag == "details" else self._current_id

    def handle_data(self, data: str) -> None:
        if self._current_id:
            self.details[self._current_id] += data


def test_the_page_shows_the_complete_document(api: ApiServer) -> None:
    response = api.server.get("/docs")
    page = DocsPage(response.body.decode())
    assert page.links <= page.anchors
    for method, path, operation in iter_operations(api.server.get("/openapi.json").json):
        details = page.details[operation["operationId"]]
        expected_texts = [
            method,
            path,
            "curl ",
            *(expected_text["name"] for expected_text in operation.get("parameters", [])),
        ]
        for content in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media in content.get("content", {}).values():
                example = media["example"]
                expected_texts.append(
                    example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
                )
        expected_texts += [status for status in operation["responses"] if status != "default"]
        assert [expected_text for expected_text in expected_texts if expected_text not in details] == [], (
            f"{method} {path}"
        )
        for media in operation.get("requestBody", {}).get("content", {}).values():
            fields = api.document["components"]["schemas"][media["schema"]["$ref"].rpartition("/")[2]].get(
                "properties", {}
            )
            assert all(name in details for name in fields)
    assert "script-src 'self';" in response.headers["content-security-policy"]
    assert api.server.get("/static/reference.js").status == 200


@pytest.mark.parametrize(
    "operation",
    [
        "create_record",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("patch_record", "batch", "valpha_create_task")),
    ],
)
def test_a_command_copied_from_the_page_works(operation: str, sample_url: DatabaseUrlFactory) -> None:
    with Server(sample_url("sqlite")) as server:
        details = DocsPage(server.get("/docs").body.decode()).details[operation]
        command = re.search(r"curl .*?'(?=\n\s*(?:\n|[A-Z]))", details, re.DOTALL)
        assert command
        script = command.group().replace("curl ", "curl -sS --fail-with-body ", 1)
        environment = {"TOKEN": server.create_token("curator"), "PATH": os.environ["PATH"]}
        completed = subprocess.run(
            ["bash", "-euc", script], env=environment, capture_output=True, text=True, check=False
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        assert json.loads(completed.stdout.splitlines()[0])["id"]


COMMENTS_PATH = "/api/v1/{collection}/{id}/comments"
OPERATION_ORDER = (
    "POST batch", "POST users", "POST vocabularies", "POST releases", "POST", "PATCH", "PUT {id}", "PUT", "GET",
    "OPTIONS", "DELETE", "DELETE {id}", "POST revert", "POST merge",
)  # fmt: skip


class SampleServer:
    """Server of the sample catalogue, which runs the example of every operation."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.token = server.create_token("admin")
        self.document = forbid_undocumented(server.get("/openapi.json").json)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        all_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        payload = body if isinstance(body, str) or body is None else json.dumps(body)
        return self.server.request(method, path, all_headers, payload)

    def list_operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return operations in an order in which they work: creating ones first, deleting ones last."""

        def get_sort_key(item: tuple[str, str, dict[str, Any]]) -> tuple[int, bool]:
            method, path, _ = item
            names = (f"{method} {path.removeprefix('/api/v1/')}", f"{method} {path.rpartition('/')[2]}", method)
            return next(OPERATION_ORDER.index(name) for name in names if name in OPERATION_ORDER), "{id}" in path

        return sorted(iter_operations(self.document), key=get_sort_key)

    def run_example(self, method: str, path: str, operation: dict[str, Any]) -> None:
        """Send the example of an operation; the response must be a success and match the document."""
        examples = {
            parameter["name"]: parameter["example"]
            for parameter in operation.get("parameters", [])
            if "example" in parameter
        }
        target = re.sub(r"{(\w+)}", lambda placeholder: str(examples[placeholder.group(1)]), path)
        target = self.create_target(path, target)
        required_names = [
            parameter["name"]
            for parameter in operation.get("parameters", [])
            if parameter["in"] == "query" and parameter.get("required")
        ]
        query = urlencode({name: examples[name] for name in required_names})
        content_type, body = self.build_body(operation)
        version = self.get_version_tag(target) if "If-Match" in examples else ""
        response = self.send(
            method, f"{target}?{query}" if query else target, body, Content_Type=content_type, If_Match=version
        )
        assert response.status < 300, f"{method} {target}: {response.body!r}"
        content = get_media(self.document, operation["responses"][str(response.status)])
        if not content:
            assert response.body == b""
            return
        schema = content[response.headers["content-type"]]["schema"]
        validate(
            self.document, schema, response.json if response.headers["content-type"] == JSON else response.body.decode()
        )

    def build_body(self, operation: dict[str, Any]) -> tuple[str, Any]:
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return JSON, None
        content_type, media = next(iter(content.items()))
        example = media["example"]
        if "url" in example:
            example = {**example, "url": "http://127.0.0.1:9/hook"}  # the host of the example does not resolve here
        return content_type, example

    def get_example(self, path: str) -> Any:
        return self.document["paths"][path]["post"]["requestBody"]["content"][JSON]["example"]

    def create_target(self, path: str, target: str) -> str:
        """Return the path for an example, after creating the item if the example cannot know its id."""
        drafts = {
            "/api/v1/proposals/{id}": {**self.get_example("/api/v1/proposals"), "change": {"name": str(uuid.uuid4())}},
            "/api/v1/users/{id}": {"name": str(uuid.uuid4()), "role": "curator"},
            "/api/v1/tokens/{id}": {},
            "/api/v1/webhooks/{id}": {"url": "http://127.0.0.1:9/"},
        }
        for start, body in drafts.items():
            if path.startswith(start):
                response = self.send("POST", start.removesuffix("/{id}"), body)
                assert response.status < 300, response.body
                return path.replace("{id}", response.json["id"])
        if "{thread}" in path:
            record_target = target.partition("/comments")[0]
            thread = self.send("POST", f"{record_target}/comments", self.get_example(COMMENTS_PATH)).json
            target = target.replace("cmt_2b6d0f4a8c1e3975", thread["id"])
            if path.endswith("/reopen"):
                assert self.send("POST", target.replace("/reopen", "/close"), {}).status == 200
        if path.endswith("/restore"):
            body = {"slug": "old", "title": "Old", "schema": "skos"}
            assert self.send("POST", "/api/v1/vocabularies", body).status == 201
            assert self.send("DELETE", "/api/v1/vocabularies/old", If_Match="*").status == 200
            return "/api/v1/vocabularies/old/restore"
        return target

    def get_version_tag(self, target: str) -> str:
        parts = target.split("/")
        if "/vocabularies/" in target and "/records/" not in target:
            return self.server.get("/".join(parts[:5])).headers["etag"]
        history = self.server.get("/".join(parts[: 7 if "/vocabularies/" in target else 5]) + "/history").json
        return f'"{history["items"][0]["version"]}"'


def test_every_operation_succeeds_with_its_example(sample_url: DatabaseUrlFactory) -> None:
    variables = {"LEXARIUM_WEBHOOKS_PRIVATE": "yes", "LEXARIUM_COMMENT_RATE": "1000"}
    with Server(sample_url("sqlite"), **variables) as server:
        sample = SampleServer(server)
        for method, path, operation in sample.list_operations():
            if path.endswith("/sign-in"):
                accounts = sample.send("GET", "/api/v1/users").json["items"]
                ada = next(account["id"] for account in accounts if account["name"] == "Ada")
                password = operation["requestBody"]["content"][JSON]["example"]["password"]
                assert sample.send("PATCH", f"/api/v1/users/{ada}", {"password": password}).status == 200
            sample.run_example(method, path, operation)
