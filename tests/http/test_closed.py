"""Closed catalogue: no route shows anything without a token."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lexarium.web.middleware.access_gate import PUBLIC_PATHS
from tests.support.browserless_client import PASSWORD, BrowserlessClient
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.route_list import METHODS, list_routes
from tests.support.server import HttpResponse, Server

# Name of a record: a response that contains it has read the catalogue.
SECRET = "Unspoken aptitude"
STATIC_PREFIX = "/static/"
# Parameters for routes that show little without them.
QUERIES = {
    "/api/v-alpha/concept": ("?id={id}", "?name=Unspoken%20aptitude", "?format=json"),
    "/api/v-alpha/search": ("?q=unspoken",),
    "/api/v1/search": ("?q=unspoken",),
    "/api/v1/suggest": ("?prefix=unsp",),
    "/api/v1/export": ("?format=jsonl",),
    "/reconcile": ('?queries={{"a":{{"query":"Unspoken"}}}}'.replace('"', "%22"),),
    "/reconcile/preview": ("?id={id}",),
    "/reconcile/suggest/entity": ("?prefix=unsp",),
    "/reconcile/flyout/entity": ("?id={id}",),
    "/search": ("?q=unspoken",),
    "/id/{id:path}": ("?format=json", "?format=turtle", "?format=jsonld", "?format=html"),
}


@dataclass(frozen=True)
class ClosedSite:
    server: Server
    token: str
    # All paths, with a record id where they take one.
    targets: list[str]

    def send(self, method: str, target: str, token: str | None = None, **headers: str) -> HttpResponse:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.server.request(method, target, headers, "{}" if method in ("POST", "PUT", "PATCH") else None)


@pytest.fixture(scope="module", params=ENGINES)
def closed_site(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[ClosedSite]:
    with Server(new_url(request.param), LEXARIUM_READ="token") as server:
        token = server.create_token("admin")
        record = server.post_json("/api/v1/concept", {"name": SECRET}, token).json["id"]
        server.post_json("/api/v1/releases", {"name": "2026.1"}, token)
        parts = {
            "id": record,
            "version": "1",
            "name": "2026.1",
            "collection": "concept",
            "kind": "concept",
            "upload": "x",
        }
        targets = [
            route.fill_path(**parts, rest="x", path="style.css") + query.format(id=record)
            for route in list_routes(server.url)
            for query in ("", *QUERIES.get(route.path, ()))
        ]
        yield ClosedSite(
            server,
            token,
            [target for target in targets if target not in PUBLIC_PATHS and not target.startswith(STATIC_PREFIX)],
        )


def test_every_path_with_a_test_query_exists(closed_site: ClosedSite) -> None:
    assert set(QUERIES) <= {route.path for route in list_routes(closed_site.server.url)}


def test_nothing_can_be_read_without_a_token_even_after_it_was_cached(closed_site: ClosedSite) -> None:
    checked_count = 0
    requests: list[tuple[str, str, str | None]] = [(method, "*/*", None) for method in METHODS]
    requests += [("GET", "text/html", None), ("GET", "*/*", "lex_unheard-of")]
    for target in closed_site.targets:
        etag = "*"
        for accept in ("text/html", "*/*"):
            allowed = closed_site.send("GET", target, closed_site.token, Accept=accept)
            assert allowed.status != 401, target
            assert allowed.headers["cache-control"].startswith("private, "), target
            assert "access-control-allow-origin" not in allowed.headers, target
            checked_count += SECRET.encode() in allowed.body
            etag = allowed.headers.get("etag", "*")
        for method, accept, token in requests:
            response = closed_site.send(method, target, token, **{"If-None-Match": etag, "Accept": accept})
            if accept == "text/html" and not target.startswith("/api"):
                assert response.headers["location"].startswith("/sign-in?next="), target
            else:
                assert response.status == 401, (method, target)
                assert "www-authenticate" in response.headers
            assert response.headers["cache-control"].startswith("private, ")
            assert SECRET.encode() not in response.body
    assert checked_count >= 40  # otherwise the paths that show it were not requested properly


def test_a_form_submitted_after_the_session_expired_is_kept_until_sign_in(closed_site: ClosedSite) -> None:
    visitor = BrowserlessClient(closed_site.server)
    name = visitor.sign_in("curator")
    visitor.open("/propose/concept")
    visitor.cookies["lexarium_session"] = "ended"
    visitor.press("Publish", {"name": "written in time", "definition_text": "At length."}, 401)
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert "written in time" in visitor.press("Submit")
    assert visitor.response.headers["cache-control"] == "private, no-store"
    visitor.cookies.clear()
    assert "written in time" not in visitor.send(
        "/propose/concept", {"name": "written in time"}, 403, Origin="http://x"
    )
    visitor.send("/import", {}, 303, Content_Type="multipart/form-data; boundary=x")
    assert visitor.response.headers["location"] == "/sign-in?next=%2Fimport"


def test_an_unknown_path_is_rejected_like_any_other(closed_site: ClosedSite) -> None:
    for target in ("/nothing", "/api/v1/nothing", "/statics", "/healthz/", "//healthz", "/static", "/api/v1/sign-in/"):
        assert closed_site.send("GET", target).status == 401, target
        assert closed_site.send("GET", target, closed_site.token).status in (404, 405), target


def test_the_health_probes_stay_public_and_reveal_nothing(closed_site: ClosedSite) -> None:
    for path in ("/healthz", "/readyz"):
        assert closed_site.send("GET", path).json == {"status": "ok"}
    assert closed_site.send("GET", "/static/style.css").status == 200


def test_a_password_can_be_exchanged_for_a_token_in_a_closed_catalogue(closed_site: ClosedSite) -> None:
    user = closed_site.server.post_json("/api/v1/users", {"name": "Ada", "role": "contributor"}, closed_site.token).json
    headers = {"Authorization": f"Bearer {closed_site.token}", "Content-Type": "application/json"}
    password = '{"password": "correct horse battery"}'
    assert closed_site.server.request("PATCH", f"/api/v1/users/{user['id']}", headers, password).status == 200
    signed = closed_site.server.post_json("/api/v1/sign-in", {"name": "Ada", "password": "correct horse battery"})
    assert SECRET in closed_site.send("GET", "/api/v-alpha/concept", signed.json["token"]).body.decode()


def test_a_revoked_token_can_neither_read_nor_receive_events(closed_site: ClosedSite) -> None:
    new_token = closed_site.server.post_json("/api/v1/tokens", {"role": "contributor"}, closed_site.token).json
    lent = new_token["token"]
    listening = closed_site.server.connect()
    listening.request(
        "GET", "/api/v1/changes", headers={"Authorization": f"Bearer {lent}", "Accept": "text/event-stream"}
    )
    stream = listening.getresponse()
    assert stream.readline() == b"retry: 1000\n"
    assert stream.readline() == b"\n"
    assert closed_site.send("GET", "/api/v-alpha/concept", lent).status == 200
    closed_site.server.post_json("/api/v1/task", {"name": "Heard of"}, closed_site.token)
    assert stream.readline().startswith(b"id: ")
    assert closed_site.send("DELETE", f"/api/v1/tokens/{new_token['id']}", closed_site.token).status == 204
    assert closed_site.send("GET", "/api/v-alpha/concept", lent).status == 401
    closed_site.server.post_json("/api/v1/task", {"name": "Never heard of"}, closed_site.token)
    remaining = stream.read()
    listening.close()
    assert b"Heard of" in remaining
    assert b"Never heard of" not in remaining


def test_responses_of_an_open_catalogue_allow_shared_caches_and_cross_origin_reads(shared_server: Server) -> None:
    response = shared_server.get("/api/v-alpha/concept")
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["access-control-allow-origin"] == "*"
