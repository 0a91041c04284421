"""Permissions of every route, tested without a token and in every role."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import unquote, unquote_plus, urlencode

import pytest

from lexarium.domain.account import Role
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.services.access.accounts import add_account, update_account
from lexarium.services.access.permissions import REQUIRED_ROLE, Permission
from lexarium.services.access.tokens import create_token
from lexarium.store.database import Database
from lexarium.web.pages import routes
from lexarium.web.pages.page import PageRoute
from lexarium.web.site import SIGN_IN_PATH
from tests.support.databases import DatabaseUrlFactory
from tests.support.route_list import METHODS, RoutePattern, list_routes
from tests.support.server import HttpResponse, Server

# Allowed without an account; allowed with an account of any role.
READ, SIGNED_IN = "read", "known"
COMMENT, PROPOSE, PUBLISH, ADMINISTER = Permission
# Permission of each method of each route. Page routes declare theirs.
REQUIRED_PERMISSIONS: dict[str, dict[str, str | Permission]] = {
    "/api": {"GET": READ},
    "/api/": {"GET": READ},
    "/api/v-alpha": {"GET": READ},
    "/api/v-alpha/": {"GET": READ},
    "/api/v-alpha/{collection}": {"GET": READ, "POST": PROPOSE},
    "/api/v-alpha/search": {"GET": READ},
    "/api/v1": {"GET": READ},
    "/api/v1/annotate": {"POST": READ},
    "/api/v1/batch": {"POST": PUBLISH},
    "/api/v1/changes": {"GET": READ},
    "/api/v1/export": {"GET": READ},
    "/api/v1/me": {"GET": SIGNED_IN},
    "/api/v1/proposals": {"GET": SIGNED_IN, "POST": PROPOSE},
    "/api/v1/proposals/{id}": {"GET": SIGNED_IN},
    "/api/v1/proposals/{id}/accept": {"POST": PUBLISH},
    "/api/v1/proposals/{id}/reject": {"POST": PUBLISH},
    "/api/v1/proposals/{id}/withdraw": {"POST": PROPOSE},
    "/api/v1/records/{id}": {"GET": READ},
    "/api/v1/releases": {"GET": READ, "POST": PUBLISH},
    "/api/v1/releases/{name}": {"GET": READ},
    "/api/v1/releases/{name}/files/{format}": {"GET": READ},
    "/api/v1/search": {"GET": READ},
    "/api/v1/sign-in": {"POST": READ},
    "/api/v1/suggest": {"GET": READ},
    "/api/v1/tokens": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "/api/v1/tokens/{id}": {"DELETE": SIGNED_IN},
    "/api/v1/users": {"GET": ADMINISTER, "POST": ADMINISTER},
    "/api/v1/users/{id}": {"GET": ADMINISTER, "PATCH": ADMINISTER, "DELETE": ADMINISTER},
    "/api/v1/webhooks": {"GET": ADMINISTER, "POST": ADMINISTER},
    "/api/v1/webhooks/{id}": {"GET": ADMINISTER, "PATCH": ADMINISTER, "DELETE": ADMINISTER},
    "/api/v1/webhooks/{id}/deliveries": {"GET": ADMINISTER},
    **{f"/api/v1/webhooks/{{id}}/{action}": {"POST": ADMINISTER} for action in ("disable", "enable", "rotate", "test")},
    "/api/v1/{collection}": {"GET": READ, "POST": PROPOSE},
    "/api/v1/{collection}/{id}": {"GET": READ, "PUT": PROPOSE, "PATCH": PROPOSE, "DELETE": PROPOSE},
    "/api/v1/{collection}/{id}/ancestors": {"GET": READ},
    "/api/v1/{collection}/{id}/comments": {"GET": READ, "POST": COMMENT},
    "/api/v1/{collection}/{id}/comments/{thread}/close": {"POST": PUBLISH},
    "/api/v1/{collection}/{id}/comments/{thread}/reopen": {"POST": PUBLISH},
    "/api/v1/{collection}/{id}/comments/{thread}/replies": {"POST": COMMENT},
    "/api/v1/{collection}/{id}/descendants": {"GET": READ},
    "/api/v1/{collection}/{id}/diff": {"GET": READ},
    "/api/v1/{collection}/{id}/history": {"GET": READ},
    "/api/v1/{collection}/{id}/history/{version}": {"GET": READ},
    "/api/v1/{collection}/{id}/merge": {"POST": PUBLISH},
    "/api/v1/{collection}/{id}/relations": {"GET": READ, "PUT": PUBLISH, "DELETE": PUBLISH},
    "/api/v1/{collection}/{id}/revert": {"POST": PUBLISH},
    "/api/v1/records": {"GET": READ},
    "/api/v1/vocabularies": {"GET": READ, "POST": ADMINISTER},
    "/api/v1/vocabularies/{slug}/conformance": {"GET": PROPOSE},
    "/api/v1/vocabularies/{slug}/restore": {"POST": ADMINISTER},
    "/api/v1/vocabularies/{vocabulary}": {"GET": READ, "PATCH": ADMINISTER, "DELETE": ADMINISTER},
    "/api/v1/vocabularies/{vocabulary}/schema": {"GET": READ, "PUT": ADMINISTER},
    "/docs": {"GET": READ},
    "/healthz": {"GET": READ},
    "/id/{id:path}": {"GET": READ},
    "/id/{id}/history": {"GET": READ},
    "/metrics": {"GET": READ},
    "/openapi.json": {"GET": READ},
    "/readyz": {"GET": READ},
    "/reconcile": {"GET": READ, "POST": READ},
    "/reconcile/": {"GET": READ, "POST": READ},
    **{
        f"/reconcile/{kind}/{item_type}": {"GET": READ}
        for kind in ("suggest", "flyout")
        for item_type in ("entity", "property", "type")
    },
    "/reconcile/preview": {"GET": READ},
    "/reconcile/properties": {"GET": READ},
    "/static/{path}": {"GET": READ},
    "/{collection}": {"GET": READ},
    "/{collection}/id/{id:path}": {"GET": READ},
}
# Every route of the default vocabulary also exists for each other one.
for _path, _methods in list(REQUIRED_PERMISSIONS.items()):
    if _path.startswith("/api/v1/{collection}/{id}"):
        _part = _path.removeprefix("/api/v1/{collection}/{id}")
        REQUIRED_PERMISSIONS[f"/api/v1/vocabularies/{{vocabulary}}/records/{{id}}{_part}"] = _methods
        REQUIRED_PERMISSIONS[f"/api/v1/vocabularies/{{vocabulary}}{_part or '/records'}"] = _methods
    elif _path.startswith(("/api/v1/{collection}", "/api/v1/releases")):
        _part = _path.removeprefix("/api/v1").replace("/{collection}", "/collections/{collection}")
        REQUIRED_PERMISSIONS[f"/api/v1/vocabularies/{{vocabulary}}{_part}"] = _methods
    elif _path.startswith("/reconcile"):
        REQUIRED_PERMISSIONS[f"/vocabularies/{{vocabulary}}{_path}"] = _methods
# Routes that redirect every method.
MISSING_PATHS = {
    "/api/v-alpha/{collection}/",
    "/api/v-alpha/search/",
    "/api/v-alpha/{rest:path}",
    "/api/{rest:path}",
}
SIGN_IN_PATHS = {SIGN_IN_PATH, "/sign-out"}
# HEAD behaves like GET, and OPTIONS only lists methods.
UNTESTED_METHODS = {"HEAD", "OPTIONS"}
# Routes of vocabularies that are not about a record.
UNQUERIED = {"collections", "releases", "schema"}
COOKIE = "lexarium_session"
REQUIRED_RANK: dict[str | Permission, int] = {
    READ: 0,
    SIGNED_IN: 1,
    **{permission: role.rank + 1 for permission, role in REQUIRED_ROLE.items()},
}
ROLE_RANKS = {"nobody": 0, **{str(role): role.rank + 1 for role in Role}}


def test_each_role_has_the_permissions_of_the_roles_below_it() -> None:
    assert REQUIRED_RANK == {READ: 0, SIGNED_IN: 1, COMMENT: 2, PROPOSE: 3, PUBLISH: 4, ADMINISTER: 5}


def generalize_path(path: str) -> str:
    """Replace the collection in a path by a placeholder."""
    return re.sub(rf"(^|/)({'|'.join(MAIN_COLLECTIONS)})(?=/|$)", r"\1{collection}", path)


def list_declared_permissions() -> dict[str, dict[str, str | Permission]]:
    """Return the permissions that pages and forms declare."""
    permissions: dict[str, dict[str, str | Permission]] = {}
    for page_route in routes.PAGE_ROUTES:
        method = "GET" if isinstance(page_route, PageRoute) else "POST"
        permissions.setdefault(page_route.path, {})[method] = page_route.permission or READ
    return permissions


@dataclass(frozen=True)
class RoleClient:
    server: Server
    tokens: dict[str, str]
    ids: dict[str, str]

    def send(self, role: str, method: str, route: RoutePattern) -> HttpResponse:
        collection = next((name for name in MAIN_COLLECTIONS if f"/{name}/" in f"{route.path}/"), "concept")
        parts = {
            "id": self.ids[collection],
            "collection": collection,
            "version": "1",
            "name": "x",
            "vocabulary": "main",
            "slug": "main",
        }
        target = route.fill_path(**parts, kind="concept", rest="x", path="style.css")
        headers = {"If-Match": '"99"', "Content-Type": "application/json"}
        if role in self.tokens:
            headers |= {"Authorization": f"Bearer {self.tokens[role]}", "Cookie": f"{COOKIE}={self.tokens[role]}"}
        if route.path.startswith("/api/v1/vocabularies/{vocabulary}/") and "{id}" not in route.path:
            target = f"{target}?id={self.ids[collection]}" if route.path.split("/")[5] not in UNQUERIED else target
        return self.server.request(method, target, headers, None if method == "GET" else "{}")


@pytest.fixture(scope="module")
def role_client(sample_url: DatabaseUrlFactory) -> Iterator[RoleClient]:
    rates = {"LEXARIUM_WRITE_RATE": "100000", "LEXARIUM_SIGN_IN_RATE": "100000", "LEXARIUM_COMMENT_RATE": "100000"}
    with Server(sample_url("sqlite"), **rates) as server:
        tokens = {str(role): server.create_token(role) for role in Role}
        ids = {name: server.get(f"/api/v1/{name}?limit=1").json["items"][0]["id"] for name in MAIN_COLLECTIONS}
        yield RoleClient(server, tokens, ids)


@pytest.fixture(scope="module")
def all_routes(role_client: RoleClient) -> list[RoutePattern]:
    return list_routes(role_client.server.url)


def test_the_permission_table_lists_exactly_the_existing_routes(all_routes: list[RoutePattern]) -> None:
    table = REQUIRED_PERMISSIONS | list_declared_permissions()
    paths = {generalize_path(route.path) for route in all_routes}
    assert paths == set(table) | MISSING_PATHS
    for route in all_routes:
        if route.methods < set(METHODS):
            assert route.methods - UNTESTED_METHODS <= table[generalize_path(route.path)].keys(), route.path


# The roles next to the required one, and all.
@pytest.mark.parametrize(
    "is_complete",
    [pytest.param(False, marks=pytest.mark.short), pytest.param(True, marks=pytest.mark.full)],
    ids=["short", "complete"],
)
def test_every_route_responds_to_each_role_as_the_permission_table_says(
    role_client: RoleClient, all_routes: list[RoutePattern], *, is_complete: bool
) -> None:
    table = REQUIRED_PERMISSIONS | list_declared_permissions()
    for route in all_routes:
        allowed = table.get(generalize_path(route.path), {})
        for method in sorted(route.methods - UNTESTED_METHODS):
            if method not in allowed:
                assert role_client.send("admin", method, route).status in (308, 404, 405), (method, route.path)
                continue
            if method == "POST" and route.path in SIGN_IN_PATHS:
                continue  # a failed sign-in gets 401, and signing out ends the session: both are open to everyone
            due = REQUIRED_RANK[allowed[method]]
            for role, rank in ROLE_RANKS.items():
                if not is_complete and rank not in (due - 1, due):
                    continue
                response = role_client.send(role, method, route)
                to_sign_in = response.status == 303 and response.headers["location"].startswith("/sign-in")
                refusal_status = 401 if response.status == 401 or to_sign_in else 403 if response.status == 403 else 0
                expected = 0 if rank >= due else 401 if rank == 0 else 403
                assert refusal_status == expected, (method, route.path, role, response.status)
                assert response.status < 500 or route.path == "/readyz", (method, route.path, role)


SECRETS = (b"hidden-plants", b"Hidden plants", b"Secret fern", b"fern:1", b"gone-plants", b"Gone plants", b"Lost moss")
# Parameters that refer to a record of the private or the removed vocabulary.
JSON_BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"vocabulary": "{}", "collection": "concept", "record": "fern:1", "change": {"name": "x"}},
    {"collection": "concept", "change": {"name": "x"}},
    {"vocabulary": "{}", "role": "curator"},
    {"name": "x", "id": "fern:1", "relations": {"broader": ["fern:1"]}},
    {"into": "fern:1"},
    {"relation": "related", "target": "fern:1"},
    {"vocabularies": ["{}"], "url": "https://example.org/"},
    {"text": "A secret fern grows beside lost moss."},
)
BATCH = '{"op": "create", "vocabulary": "{}", "collection": "concept", "record": {"name": "x"}}'
FORM = {
    "vocabulary": "{}",
    "slug": "{}",
    "id": "fern:1",
    "name": "x",
    "target": "fern:1",
    "outside": "fern:1",
    "into": "fern:1",
    "relation": "related",
    "act": "add",
    "version": "1",
    "text": "Secret",
    "seq": "1",
    "queries": '{"q0": {"query": "secret fern"}, "q1": {"query": "lost moss"}}',
    "extend": '{"ids": ["fern:1", "hidden-plants:fern:1", "gone-plants:fern:1"], "properties": [{"id": "name"}]}',
}
# POST requests that change nothing.
READING_PATHS = ("/api/v1/annotate", "/annotate", "/vocabularies/{vocabulary}/reconcile")
V1_QUERIES = (
    "",
    "?prefix=secr",
    "?q=secret",
    "?q=lost",
    "?id=fern:1",
    "?iri=fern:1",
    "?vocabulary={}",
    "?format=json",
    "?removed=true",
)
PAGE_QUERIES = ("", "?vocabulary={}", "?vocabulary={}&id=fern:1", "?q=fern&prefix=fer")


@dataclass(frozen=True)
class SecretRequest:
    """A request about the private or the removed vocabulary."""

    method: str
    target: str
    route: RoutePattern
    body: str = ""
    media_type: str = "application/json"


@pytest.fixture(scope="module")
def secret_tokens(role_client: RoleClient) -> dict[str, str]:
    """Create a private, a removed and a public vocabulary; return tokens, one of an admin of only the public one."""
    server, admin = role_client.server, role_client.tokens["admin"]
    for slug, title, name in (
        ("hidden-plants", "Hidden plants", "Secret fern"),
        ("gone-plants", "Gone plants", "Lost moss"),
        ("open-plants", "Open plants", "Plain grass"),
    ):
        vocabulary = {"slug": slug, "title": title, "schema": "skos", "private": slug.startswith("hidden")}
        assert server.post_json("/api/v1/vocabularies", vocabulary, admin).status == 201
        concepts = f"/api/v1/vocabularies/{slug}/collections/concept"
        record_id = "grass:1" if slug == "open-plants" else "fern:1"
        assert server.post_json(concepts, {"id": record_id, "name": name}, admin).status == 201
        comments = f"/api/v1/vocabularies/{slug}/records/{record_id}/comments"
        assert server.post_json(comments, {"text": f"About {name}"}, admin).status == 201
        assert server.post_json(f"/api/v1/vocabularies/{slug}/releases", {"name": f"{slug}-1"}, admin).status == 201
    server.send_write(admin, "DELETE", "vocabularies/gone-plants")
    return {**role_client.tokens, "elsewhere": create_token_in_vocabulary(server, "open-plants")}


# A request to each route, and a part of all.
@pytest.mark.parametrize(
    ("role", "step"),
    [
        pytest.param("elsewhere", 20, marks=pytest.mark.short),
        pytest.param("elsewhere", 1, marks=pytest.mark.full),
        *(pytest.param(role, 4, marks=pytest.mark.full) for role in ("nobody", "none")),
    ],
)
def test_private_and_removed_vocabularies_appear_in_no_response_without_permission(
    role_client: RoleClient, secret_tokens: dict[str, str], all_routes: list[RoutePattern], role: str, step: int
) -> None:
    requests = list(iter_secret_requests(all_routes))
    sampled = {request.route.path: request for request in requests}.values()
    for request in [*sampled, *requests[::step]]:
        path = request.route.path
        response = require_no_secret(role_client.server, request, role, secret_tokens.get(role))
        assert response.status not in (200, 300, 308) or not is_about_vocabulary(path), (request, role)


@pytest.mark.full
def test_private_and_removed_vocabularies_are_visible_to_an_admin(
    role_client: RoleClient, secret_tokens: dict[str, str], all_routes: list[RoutePattern]
) -> None:
    seen: list[str] = []
    for request in iter_secret_requests(all_routes):
        is_reading = request.method == "GET" or request.route.path in READING_PATHS
        if is_reading and request.route.path != "/api/v1/export":
            response = send_secret_request(role_client.server, request, secret_tokens["admin"])
            seen += [request.route.path] if find_secrets(request, response) else []
    # Otherwise the routes that show it were not requested properly.
    assert len(seen) > 40
    assert {"/api/v1/search", "/api/v1/suggest", "/search", *READING_PATHS} <= set(seen)


@pytest.mark.full
def test_a_private_default_vocabulary_appears_in_no_response_without_permission(
    role_client: RoleClient, secret_tokens: dict[str, str], all_routes: list[RoutePattern]
) -> None:
    server, admin = role_client.server, secret_tokens["admin"]
    server.send_write(admin, "PATCH", "vocabularies/hidden-plants", {"default": True})
    try:
        for request in iter_secret_requests(all_routes):
            if "?" not in request.target and "-plants" not in request.target:
                for role in ("nobody", "elsewhere"):
                    require_no_secret(server, request, role, secret_tokens.get(role))
    finally:
        server.send_write(admin, "PATCH", "vocabularies/main", {"default": True})


def require_no_secret(server: Server, request: SecretRequest, role: str, token: str | None) -> HttpResponse:
    response = send_secret_request(server, request, token)
    assert response.status < 500 or request.route.path == "/readyz", (request, role)
    assert response.status != 429, (request, role)
    assert not find_secrets(request, response), (request, role, response)
    return response


def find_secrets(request: SecretRequest, response: HttpResponse) -> list[bytes]:
    """Return the content of the private and the removed vocabulary in a response that was not in its request."""
    sent = f"{unquote(request.target)} {unquote_plus(request.body)}".encode()
    received = response.body + repr(dict(response.headers)).encode()
    return [text for text in SECRETS if text in received and text not in sent]


def create_token_in_vocabulary(server: Server, slug: str) -> str:
    """Return a token of an account that is an admin of one vocabulary only."""
    database = Database(server.url)
    account = add_account(database, "elsewhere", Role.NONE)
    database.run_write(partial(update_account, account_id=account.id, role=Role.ADMIN, vocabulary=slug))
    _, secret = create_token(database, account.name)
    database.close()
    return secret


def send_secret_request(server: Server, request: SecretRequest, token: str | None) -> HttpResponse:
    headers = {"If-Match": '"99"', "Content-Type": request.media_type}
    if not is_v1(request.route.path):
        headers |= {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    if token is not None:
        headers |= {"Authorization": f"Bearer {token}", "Cookie": f"{COOKIE}={token}"}
    return server.request(request.method, request.target, headers, request.body or None)


def iter_secret_requests(routes: list[RoutePattern]) -> Iterator[SecretRequest]:
    """Yield requests to every route for content of the private and the removed vocabulary."""
    for route, slug in product(routes, ("hidden-plants", "gone-plants")):
        parts = {"id": "fern:1", "version": "1", "name": f"{slug}-1", "vocabulary": slug, "slug": slug}
        path = route.fill_path(**parts, collection="concept", kind="undefined", rest="x", path="x")
        for query in V1_QUERIES if is_v1(route.path) else PAGE_QUERIES:
            target = path + query.format(slug)
            if "GET" in route.methods:
                yield SecretRequest("GET", target, route)
            for method in sorted(route.methods & {"POST", "PUT", "PATCH", "DELETE"}):
                if route.path in SIGN_IN_PATHS:
                    continue  # signing out would end the session
                if not is_v1(route.path):
                    body = urlencode({name: value.replace("{}", slug) for name, value in FORM.items()})
                    yield SecretRequest(method, target, route, body, "application/x-www-form-urlencoded")
                elif route.path == "/api/v1/batch":
                    yield SecretRequest(method, target, route, BATCH.replace("{}", slug), "application/x-ndjson")
                elif query in ("", "?id=fern:1"):
                    for content in JSON_BODIES if method != "DELETE" else JSON_BODIES[:1]:
                        body = json.dumps(content).replace('"{}"', f'"{slug}"')
                        yield SecretRequest(method, target, route, body)


def is_v1(path: str) -> bool:
    return path.startswith(("/api/v1", "/openapi"))


def is_about_vocabulary(path: str) -> bool:
    return "{vocabulary}" in path or "{slug}" in path
