"""A closed catalogue: who has no token reads nothing, at no address that the application has."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lexarium.web.gate import OPEN
from tests.databases import ENGINES, NewUrl
from tests.person import PASSWORD, Person
from tests.routes import METHODS, every_address
from tests.server import Answer, Server

SECRET = "Unspoken aptitude"
"""The name of a record; where it is told, something has been read."""
FILES = "/static/"
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
"""What is asked of addresses that tell little of a catalogue unless something is asked."""


@dataclass(frozen=True)
class Closed:
    server: Server
    token: str
    targets: list[str]
    """Every address, with a record's id where it takes one."""

    def send(self, method: str, target: str, token: str | None = None, **headers: str) -> Answer:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.server.request(method, target, headers, "{}" if method in ("POST", "PUT", "PATCH") else None)


@pytest.fixture(scope="module", params=ENGINES)
def closed(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Closed]:
    with Server(new_url(request.param), LEXARIUM_READ="token") as server:
        token = server.token("admin")
        record = server.post_json("/api/v1/concept", {"name": SECRET}, token).json["id"]
        server.post_json("/api/v1/releases", {"name": "2026.1"}, token)
        parts = {
            "id": record,
            "version": "1",
            "name": "2026.1",
            "collection": "concept",
            "kind": "concept",
            "ticket": "x",
        }
        targets = [
            address.filled(**parts, rest="x", path="style.css") + query.format(id=record)
            for address in every_address(server.url)
            for query in ("", *QUERIES.get(address.path, ()))
        ]
        yield Closed(server, token, [each for each in targets if each not in OPEN and not each.startswith(FILES)])


def test_every_address_that_a_query_was_thought_of_for_is_there(closed: Closed) -> None:
    assert set(QUERIES) <= {address.path for address in every_address(closed.server.url)}


def test_nothing_is_read_without_a_token_also_after_it_was_read_with_one(closed: Closed) -> None:
    told = 0
    asked: list[tuple[str, str, str | None]] = [(method, "*/*", None) for method in METHODS]
    asked += [("GET", "text/html", None), ("GET", "*/*", "lex_unheard-of")]
    for target in closed.targets:
        etag = "*"
        for accept in ("text/html", "*/*"):
            known = closed.send("GET", target, closed.token, Accept=accept)
            assert known.status != 401, target
            assert known.headers["cache-control"].startswith("private, "), target
            assert "access-control-allow-origin" not in known.headers, target
            told += SECRET.encode() in known.body
            etag = known.headers.get("etag", "*")
        for method, accept, token in asked:
            refused = closed.send(method, target, token, **{"If-None-Match": etag, "Accept": accept})
            if accept == "text/html" and not target.startswith("/api"):
                assert refused.headers["location"].startswith("/sign-in?next="), target
            else:
                assert refused.status == 401, (method, target)
                assert "www-authenticate" in refused.headers
            assert refused.headers["cache-control"].startswith("private, ")
            assert SECRET.encode() not in refused.body
    assert told >= 40  # else the addresses that tell it were not asked as they must be


def test_a_form_that_is_sent_too_late_is_kept_until_someone_has_signed_in(closed: Closed) -> None:
    visitor = Person(closed.server)
    name = visitor.sign_in("curator")
    visitor.open("/propose/concept")
    visitor.cookies["lexarium_session"] = "ended"
    visitor.press("Publish", {"name": "written in time", "definition_text": "At length."}, 401)
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert "written in time" in visitor.press("Send it now")
    assert visitor.answer.headers["cache-control"] == "private, no-store"
    visitor.cookies.clear()
    assert "written in time" not in visitor.send(
        "/propose/concept", {"name": "written in time"}, 403, Origin="http://x"
    )
    visitor.send("/import", {}, 303, Content_Type="multipart/form-data; boundary=x")
    assert visitor.answer.headers["location"] == "/sign-in?next=%2Fimport"


def test_an_address_that_is_not_there_is_refused_as_any_other(closed: Closed) -> None:
    for target in ("/nothing", "/api/v1/nothing", "/statics", "/healthz/", "//healthz", "/static", "/api/v1/sign-in/"):
        assert closed.send("GET", target).status == 401, target
        assert closed.send("GET", target, closed.token).status in (404, 405), target


def test_the_probes_stay_open_and_tell_nothing(closed: Closed) -> None:
    for path in ("/healthz", "/readyz"):
        assert closed.send("GET", path).json == {"status": "ok"}
    assert closed.send("GET", "/static/style.css").status == 200


def test_who_has_a_password_gets_a_token_in_a_closed_catalogue_too(closed: Closed) -> None:
    made = closed.server.post_json("/api/v1/users", {"name": "Ada", "role": "contributor"}, closed.token).json
    headers = {"Authorization": f"Bearer {closed.token}", "Content-Type": "application/json"}
    password = '{"password": "correct horse battery"}'
    assert closed.server.request("PATCH", f"/api/v1/users/{made['id']}", headers, password).status == 200
    signed = closed.server.post_json("/api/v1/sign-in", {"name": "Ada", "password": "correct horse battery"})
    assert SECRET in closed.send("GET", "/api/v-alpha/concept", signed.json["token"]).body.decode()


def test_a_token_that_is_revoked_reads_no_more_nor_hears_of_changes(closed: Closed) -> None:
    made = closed.server.post_json("/api/v1/tokens", {"role": "contributor"}, closed.token).json
    lent = made["token"]
    listening = closed.server.connect()
    listening.request(
        "GET", "/api/v1/changes", headers={"Authorization": f"Bearer {lent}", "Accept": "text/event-stream"}
    )
    stream = listening.getresponse()
    assert stream.readline() == b"retry: 1000\n"
    assert stream.readline() == b"\n"
    assert closed.send("GET", "/api/v-alpha/concept", lent).status == 200
    closed.server.post_json("/api/v1/task", {"name": "Heard of"}, closed.token)
    assert stream.readline().startswith(b"id: ")
    assert closed.send("DELETE", f"/api/v1/tokens/{made['id']}", closed.token).status == 204
    assert closed.send("GET", "/api/v-alpha/concept", lent).status == 401
    closed.server.post_json("/api/v1/task", {"name": "Never heard of"}, closed.token)
    rest = stream.read()
    listening.close()
    assert b"Heard of" in rest
    assert b"Never heard of" not in rest


def test_an_open_catalogue_lets_any_cache_and_any_page_have_it(shared_server: Server) -> None:
    answer = shared_server.get("/api/v-alpha/concept")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["access-control-allow-origin"] == "*"
