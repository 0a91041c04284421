"""Permissions of every route, tested without a token and in every role."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from lexarium.domain.account import Role
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.services.access.permissions import REQUIRED_ROLE, Permission
from lexarium.web.pages import routes
from lexarium.web.pages.page import PageRoute
from lexarium.web.pages.site import SIGN_IN_PATH
from tests.support.databases import DatabaseUrlFactory
from tests.support.route_list import METHODS, RoutePattern, list_routes
from tests.support.server import HttpResponse, Server

# Allowed without an account; allowed with an account of any role.
READ, SIGNED_IN = "read", "known"
PROPOSE, PUBLISH, ADMINISTER = Permission.PROPOSE, Permission.PUBLISH, Permission.ADMINISTER
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
    "/vocabulary": {"GET": READ},
    "/{collection}": {"GET": READ},
    "/{collection}/id/{id:path}": {"GET": READ},
}
# What there is for the default vocabulary, there is for every other.
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
# Of vocabularies, what is not about a record.
UNQUERIED = {"collections", "releases", "schema"}
COOKIE = "lexarium_session"
REQUIRED_RANK: dict[str | Permission, int] = {
    READ: 0,
    SIGNED_IN: 1,
    **{permission: role.rank + 1 for permission, role in REQUIRED_ROLE.items()},
}
ROLE_RANKS = {"nobody": 0, **{str(role): role.rank + 1 for role in Role}}


def test_the_roles_are_one_above_the_other() -> None:
    assert REQUIRED_RANK == {READ: 0, SIGNED_IN: 1, PROPOSE: 3, PUBLISH: 4, ADMINISTER: 5}


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
def role_client(new_url: DatabaseUrlFactory) -> Iterator[RoleClient]:
    with Server(new_url("sqlite"), "--sample") as server:
        tokens = {str(role): server.create_token(role) for role in Role}
        ids = {name: server.get(f"/api/v1/{name}?limit=1").json["items"][0]["id"] for name in MAIN_COLLECTIONS}
        yield RoleClient(server, tokens, ids)


@pytest.fixture(scope="module")
def all_routes(role_client: RoleClient) -> list[RoutePattern]:
    return list_routes(role_client.server.url)


def test_every_address_stands_in_the_table_and_every_row_is_an_address(all_routes: list[RoutePattern]) -> None:
    table = REQUIRED_PERMISSIONS | list_declared_permissions()
    paths = {generalize_path(route.path) for route in all_routes}
    assert paths == set(table) | MISSING_PATHS
    for route in all_routes:
        if route.methods < set(METHODS):
            assert route.methods - UNTESTED_METHODS <= table[generalize_path(route.path)].keys(), route.path


def test_every_address_answers_each_role_as_the_table_says(
    role_client: RoleClient, all_routes: list[RoutePattern]
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
            for role, rank in ROLE_RANKS.items():
                response = role_client.send(role, method, route)
                to_sign_in = response.status == 303 and response.headers["location"].startswith("/sign-in")
                refusal_status = 401 if response.status == 401 or to_sign_in else 403 if response.status == 403 else 0
                due = REQUIRED_RANK[allowed[method]]
                expected = 0 if rank >= due else 401 if rank == 0 else 403
                assert refusal_status == expected, (method, route.path, role, response.status)
                assert response.status < 500 or route.path == "/readyz", (method, route.path, role)


SECRETS = (b"hidden-plants", b"Hidden plants", b"Secret fern", b"fern:1", b"gone-plants", b"Gone plants", b"Lost moss")


def test_a_private_and_a_removed_vocabulary_show_in_no_response_to_who_may_not_read_them(
    role_client: RoleClient, all_routes: list[RoutePattern]
) -> None:
    server, admin = role_client.server, role_client.tokens["admin"]
    for slug, title, name in (
        ("hidden-plants", "Hidden plants", "Secret fern"),
        ("gone-plants", "Gone plants", "Lost moss"),
    ):
        vocabulary = {"slug": slug, "title": title, "schema": "skos", "private": slug.startswith("hidden")}
        assert server.post_json("/api/v1/vocabularies", vocabulary, admin).status == 201
        concepts = f"/api/v1/vocabularies/{slug}/collections/concept"
        assert server.post_json(concepts, {"id": "fern:1", "name": name}, admin).status == 201
        assert server.post_json(f"/api/v1/vocabularies/{slug}/releases", {"name": f"{slug}-1"}, admin).status == 201
    headers = {"Authorization": f"Bearer {admin}", "If-Match": "*"}
    assert server.request("DELETE", "/api/v1/vocabularies/gone-plants", headers).status == 200
    seen = 0
    for method, target, route in iter_secret_requests(all_routes):
        for role in ("nobody", "none", "admin"):
            if role == "admin" and (method != "GET" or route.path == "/api/v1/export"):
                continue
            token = {"Authorization": f"Bearer {role_client.tokens[role]}"} if role != "nobody" else {}
            sent = {**token, "If-Match": '"99"', "Content-Type": "application/json"}
            response = server.request(method, target, sent, None if method == "GET" else "{}")
            assert response.status < 500 or role == "admin", (method, target, role)
            leaked = [text for text in SECRETS if text in response.body and text not in target.encode()]
            if role == "admin":
                seen += bool(leaked)
            else:
                assert not leaked, (method, target, role, response.body)
                assert response.status not in (200, 300, 308) or not is_about_vocabulary(route.path)
    assert seen > 20  # otherwise the routes that show it were not requested properly


def iter_secret_requests(routes: list[RoutePattern]) -> Iterator[tuple[str, str, RoutePattern]]:
    """Yield requests for what is in the private and the removed vocabulary, on every route of v1."""
    queries = ("", "?id=fern:1", "?iri=fern:1", "?vocabulary={}", "?format=json", "?removed=true")
    for route in routes:
        # Search and pages have tests of their own.
        if not route.path.startswith(("/api/v1", "/id/", "/openapi")) or route.path in SEARCHES:
            continue
        for slug, query in product(("hidden-plants", "gone-plants"), queries):
            parts = {"id": "fern:1", "version": "1", "name": f"{slug}-1", "vocabulary": slug, "slug": slug}
            target = route.fill_path(**parts, collection="concept", rest="x", path="x") + query.format(slug)
            yield from ((method, target, route) for method in ("GET", "POST", "PATCH") if method in route.methods)


SEARCHES = {"/api/v1/search", "/api/v1/suggest", "/api/v1/annotate"}


def is_about_vocabulary(path: str) -> bool:
    return "{vocabulary}" in path or "{slug}" in path
