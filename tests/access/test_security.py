"""Malicious input: markup, cross-site requests, formulas, secrets, redirects, header injection, erasure."""

import csv
import io
import json
import socket
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import psycopg
import pytest
from argon2 import PasswordHasher

from lexarium.domain.errors import Unauthenticated
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.services.access import authentication
from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.web.http.rate_limits import SignInLimiter
from lexarium.web.http.session import COOKIE
from tests.support.browserless_client import parse_forms
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS
from tests.support.route_list import list_routes
from tests.support.server import HttpResponse, Server, run_cli

HOSTILE_TEXT = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><a href=javascript:alert(3)>&lt;{{7*7}}"
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(1)")
PASSWORD = "correct horse battery staple"


# Markup


class _ElementParser(HTMLParser):
    """Collect the elements of a page and the values of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def is_harmless(page: str) -> bool:
    """Return whether no element of a page comes from the content of a record."""
    parser = _ElementParser()
    parser.feed(page)
    handlers = [name for name, _ in parser.attributes if name.startswith("on")]
    script_values = [
        value for _, value in parser.attributes if value.strip().lower().startswith(("javascript:", "data:"))
    ]
    return (
        not handlers
        and not script_values
        and "<img src=x" not in page
        and "<script>" not in page
        and "<a href=java" not in page
    )


def write_hostile_files(path: Path) -> list[Path]:
    """Write import files with hostile text in every text field and in relations."""
    files = []
    for name, collection in MAIN_COLLECTIONS.items():
        prefix = collection.id_prefixes[-1]
        records = []
        # Ids in two collections would be one record.
        for number in (3, 4) if name == "disambiguation" else (1, 2):
            record: dict[str, Any] = {
                field: f"{HOSTILE_TEXT} {field}" if field_type is str else 1
                for field, field_type in collection.field_types.items()
                if field in (collection.valpha_field_names or collection.fields) and field != "type"
            }
            records.append(record | {"id": f"{prefix}_{HOSTILE_TEXT}{number}", "name": f"{HOSTILE_TEXT} name"})
        if "id_concept_class" in records[0]:
            records[0]["id_concept_class"] = f"ctp_{HOSTILE_TEXT}1"
        if name == "concept":
            parent = {
                "relationship": "KINDOF",
                "direction": "parent",
                "id": f"trm_{HOSTILE_TEXT}2",
                "name": HOSTILE_TEXT,
            }
            records = [{**record, "type": name, "relationships": []} for record in records]
            records[0]["relationships"] = [parent]
        file = path / f"{name}.json"
        file.write_text(json.dumps(records))
        files.append(file)
    return files


@dataclass(frozen=True)
class HostileCatalogue:
    server: Server
    ids: dict[str, str]
    # Session of an admin with a hostile name.
    cookie: str
    # Path parameters of routes that are not about a record, by path prefix.
    parts: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def hostile_catalogue(
    new_url: DatabaseUrlFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HostileCatalogue]:
    url = new_url("sqlite")
    result = run_cli("import", "--database", url, *write_hostile_files(tmp_path_factory.mktemp("mean")))
    assert result.returncode == 0, result.stderr
    variables = {f"LEXARIUM_{name}": HOSTILE_TEXT for name in ("TITLE", "PUBLISHER", "LICENCE")}
    with Server(url, **variables) as server:
        token = server.create_token("admin")
        admin = server.post_json("/api/v1/users", {"name": HOSTILE_TEXT, "role": "admin"}, token)
        assert admin.status == 201
        ids = {name: server.get(f"/api/v1/{name}").json["items"][0]["id"] for name in MAIN_COLLECTIONS}
        token_response = server.post_json(
            "/api/v1/tokens", {"account": HOSTILE_TEXT, "label": HOSTILE_TEXT}, token
        ).json
        own_token, cookie = token_response["token"], f"{COOKIE}={token_response['token']}"
        draft = {
            "name": HOSTILE_TEXT,
            "definition_text": HOSTILE_TEXT,
            "aliases": [{"text": HOSTILE_TEXT}],
            "sources": [HOSTILE_TEXT, "javascript:x"],
        }
        concept_response = server.post_json("/api/v1/concept", draft, own_token)
        assert concept_response.status == 201, concept_response.body
        proposal = {
            "collection": "concept",
            "record": concept_response.json["id"],
            "change": {"name": f"{HOSTILE_TEXT} two"},
        }
        proposal_response = server.post_json("/api/v1/proposals", proposal, own_token)
        assert proposal_response.status == 202
        assert server.post_json("/api/v1/releases", {"name": "2026.1", "note": HOSTILE_TEXT}, own_token).status == 201
        # The webhook sends nothing: there are no such changes.
        webhook_draft = {"url": f"https://93.184.215.14/?{HOSTILE_TEXT}".replace(" ", ""), "collections": ["contrast"]}
        webhook_response = server.post_json("/api/v1/webhooks", webhook_draft, own_token)
        assert webhook_response.status == 201, webhook_response.body
        parts = {
            "/admin/people": {"id": admin.json["id"]},
            "/admin/tokens": {"id": token_response["id"]},
            "/account/tokens": {"id": token_response["id"]},
            "/admin/webhooks": {"id": webhook_response.json["id"]},
            "/review": {"id": proposal_response.json["id"]},
            "/proposals": {"id": proposal_response.json["id"]},
            "/import": {"upload": upload_hostile_file(server, cookie)},
        }
        yield HostileCatalogue(server, {**ids, "made": concept_response.json["id"]}, cookie, parts)


def upload_hostile_file(server: Server, cookie: str) -> str:
    """Upload a hostile file with a hostile name and return its upload id."""
    file = json.dumps([{"id": f"trm_{HOSTILE_TEXT}3", "name": HOSTILE_TEXT}])
    name = HOSTILE_TEXT.replace('"', "%22")
    form = f'--b\r\nContent-Disposition: form-data; name="files"; filename="{name}.json"\r\n\r\n{file}\r\n--b--\r\n'
    headers = {"Cookie": cookie, "Content-Type": "multipart/form-data; boundary=b"}
    response = server.request("POST", "/import", headers, form)
    assert response.status == 303, response.body
    return response.headers["location"].rpartition("/")[2]


def get_path_parts(hostile_catalogue: HostileCatalogue, path: str) -> dict[str, str]:
    """Return the path parameters of a route that is not about a record."""
    return next((parts for prefix, parts in hostile_catalogue.parts.items() if path.startswith(prefix)), {})


def iter_pages(hostile_catalogue: HostileCatalogue) -> Iterator[tuple[str, str]]:
    """Yield every page, for every record where it shows one, with hostile query parameters.

    Each is yielded as its path and as the pattern of its route.
    """
    parts = {"version": "1", "name": "x", "rest": "x", "path": "style.css", "slug": "main", "vocabulary": "main"}
    for route in list_routes(hostile_catalogue.server.url):
        if "GET" not in route.methods or route.path.startswith(("/api/v1", "/static")):
            continue
        for collection, identifier in hostile_catalogue.ids.items():
            for kind in ("undefined", "repeated", quote(HOSTILE_TEXT, safe="")):
                route_parts = {
                    "id": quote(identifier, safe=""),
                    **parts,
                    **get_path_parts(hostile_catalogue, route.path),
                }
                route_collection = collection if collection in MAIN_COLLECTIONS else "concept"
                yield route.fill_path(collection=route_collection, kind=kind, **route_parts), route.path
        yield (
            route.fill_path(
                id=quote(HOSTILE_TEXT, safe=""), collection=quote(HOSTILE_TEXT, safe=""), kind="x", **parts
            ),
            route.path,
        )
    merge_query = f"into={quote(hostile_catalogue.ids['concept'])}"
    for query in (
        f"q={quote(HOSTILE_TEXT)}",
        f"id={quote(hostile_catalogue.ids['concept'])}",
        f"from={quote(HOSTILE_TEXT)}&class={quote(HOSTILE_TEXT)}",
        merge_query,
    ):
        for path in ("/search", "/browse/concept", "/reconcile/preview", "/reconcile/flyout/entity", "/changes"):
            yield f"{path}?{query}", path
        for path in ("/edit", "/merge", "/retire"):
            yield f"{path}?id={quote(hostile_catalogue.ids['made'])}&{query}", path
        for path in (
            "/admin/people",
            "/admin/tokens",
            "/review",
            "/proposals",
            f"/merge/{hostile_catalogue.ids['made']}",
        ):
            yield f"{path}?{query}", path


@pytest.mark.parametrize("signed_in", [pytest.param(False, marks=pytest.mark.full), True])
def test_record_content_is_escaped_on_every_page(hostile_catalogue: HostileCatalogue, *, signed_in: bool) -> None:
    shown_count, seen_paths, paths = 0, set(), set()
    headers = {"Cookie": hostile_catalogue.cookie} if signed_in else {}
    targets = dict.fromkeys(iter_pages(hostile_catalogue))
    for target, path in targets if signed_in else list(targets)[::2]:
        response = hostile_catalogue.server.get(target, Accept="text/html", **headers)
        assert response.status < 500, target
        paths.add(path)
        if response.headers.get("content-type", "").startswith("text/html"):
            assert "default-src 'none'" in response.headers["content-security-policy"], target
            assert response.headers["x-content-type-options"] == "nosniff", target
            assert is_harmless(response.body.decode()), target
            shown_count += b"&lt;script&gt;alert(2)" in response.body
            seen_paths |= {path} if response.status == 200 else set()
        elif "flyout" in target and response.status == 200:
            assert is_harmless(response.json["html"]), target
    assert shown_count >= (60 if signed_in else 15)  # otherwise the pages that show it were not requested
    if signed_in:
        assert {path for path in paths if path.startswith(CHECKED_PREFIXES)} - seen_paths == set()


# Path prefixes of pages, all of which must have been shown.
CHECKED_PREFIXES = (
    "/edit",
    "/merge",
    "/retire",
    "/propose",
    "/review",
    "/import",
    "/admin",
    "/account",
    "/id",
    "/browse",
)


def test_form_input_is_escaped_on_every_page(hostile_catalogue: HostileCatalogue) -> None:
    """Check the pages of rejected forms. Forms that end the session or send something away are left out."""
    echoed_count = 0
    for target, path in iter_forms(hostile_catalogue):
        if path == "/sign-out" or path.endswith(("/erase", "/revoke", "/test")):
            continue
        page_response = hostile_catalogue.server.get(target, Accept="text/html", Cookie=hostile_catalogue.cookie)
        fields = {
            name: HOSTILE_TEXT
            for form in parse_forms(page_response.body.decode(errors="replace"))
            for name in form.fields
        }
        body = urlencode({"name": HOSTILE_TEXT, "reason": HOSTILE_TEXT, "version": HOSTILE_TEXT, **fields})
        headers = {
            "Accept": "text/html",
            "Cookie": hostile_catalogue.cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        response = hostile_catalogue.server.request("POST", target, headers, body)
        assert response.status < 500, target
        if response.headers.get("content-type", "").startswith("text/html"):
            assert is_harmless(response.body.decode()), target
            echoed_count += b"&lt;script&gt;alert(2)" in response.body
    assert echoed_count >= 10


# Cross-site requests


def iter_forms(hostile_catalogue: HostileCatalogue) -> Iterator[tuple[str, str]]:
    """Yield the target of every form, for existing records, and the pattern of its route."""
    record = {"id": quote(hostile_catalogue.ids["made"], safe=""), "collection": "concept", "slug": "main"}
    for route in list_routes(hostile_catalogue.server.url):
        if "POST" in route.methods and not route.path.startswith("/api") and "/reconcile" not in route.path:
            yield route.fill_path(**{**record, **get_path_parts(hostile_catalogue, route.path)}), route.path


@pytest.mark.parametrize(
    "sign", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_cross_site_form_posts_are_rejected(hostile_catalogue: HostileCatalogue, sign: dict[str, str]) -> None:
    before = hostile_catalogue.server.get("/api/v1").json["revision"]
    form_targets = list(iter_forms(hostile_catalogue))
    assert len(form_targets) >= 30
    for target, _ in form_targets:
        for kind, body in (
            ("application/x-www-form-urlencoded", "name=x"),
            ("multipart/form-data; boundary=b", "--b--"),
        ):
            headers = {"Cookie": hostile_catalogue.cookie, "Content-Type": kind, "Accept": "text/html", **sign}
            assert hostile_catalogue.server.request("POST", target, headers, body).status == 403, target
    assert hostile_catalogue.server.get("/api/v1").json["revision"] == before
    assert (
        hostile_catalogue.server.get("/account", Cookie=hostile_catalogue.cookie).status == 200
    )  # so the session did not end


def test_api_responses_are_never_served_as_html(hostile_catalogue: HostileCatalogue) -> None:
    for target in ("/api/v-alpha/concept", "/api/v1/concept", "/api/v1/export?format=csv", "/openapi.json"):
        kind = hostile_catalogue.server.get(target, Accept="text/html").headers["content-type"]
        assert not kind.startswith("text/html"), target


# Spreadsheets


def test_cells_of_served_tables_are_not_executed_as_formulas(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite")) as server:
        token = server.create_token("curator")
        for formula in FORMULAS:
            name = formula.replace("\r", "\n")  # a name may not contain a carriage return
            draft = {"name": name, "definition_text": name, "aliases": [{"text": name}], "sources": [name]}
            response = server.post_json("/api/v1/concept", draft, token)
            assert response.status == 201, (formula, response.body)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        text = quote("=1+1 and =HYPERLINK(1) and @SUM(A1)")
        annotated = server.request("POST", "/annotate", form, f"text={text}&format=csv")
        assert annotated.headers["content-type"].startswith("text/csv")
        tables = [annotated, *(server.get(f"/api/v1/export?format={kind}") for kind in ("csv", "tsv"))]
        for table, delimiter in zip(tables, (",", ",", "\t"), strict=True):
            rows = list(csv.reader(io.StringIO(table.body.decode(), newline=""), delimiter=delimiter))
            assert len(rows) > 1
            for row in rows:
                for cell in row:
                    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


# Secrets


def test_tokens_and_passwords_are_never_logged(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        token = server.create_token("admin")
        me = server.get("/api/v1/me", Authorization=f"Bearer {token}").json
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        server.request("PATCH", f"/api/v1/users/{me['id']}", headers, json.dumps({"password": PASSWORD}))
        server.post_json("/api/v1/sign-in", {"name": me["name"], "password": PASSWORD})
        signed = server.post_json("/api/v1/sign-in", {"name": me["name"], "password": PASSWORD}).json["token"]
        wrong_token = "lex_of-someone-who-guesses"
        for secret in (token, signed, wrong_token):
            server.get("/api/v1/me", Authorization=f"Bearer {secret}")
            server.get("/api/v1/me", Authorization=f"Basic {secret}")
            server.get(f"/?token={secret}", Cookie=f"lexarium_session={secret}")
            server.get(f"/api/v1/concept?access_token={secret}&q={secret}")
            server.get(f"/nothing?password={PASSWORD.replace(' ', '+')}", Referer=f"http://x/?token={secret}")
            server.post_json("/api/v1/concept", {"name": 1, "token": secret}, secret)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("DROP TABLE token")  # so that looking up a token is an internal error
        error_response = server.get("/api/v1/me", Authorization=f"Bearer {wrong_token}")
        assert error_response.status in (500, 503)
        for secret in (token, signed, wrong_token, PASSWORD, "Traceback", "SELECT"):
            assert secret.encode() not in error_response.body
        log = server.stop()
    assert "no such table" in log
    for secret in (token, signed, wrong_token, PASSWORD, PASSWORD.replace(" ", "+")):
        assert secret not in log


def test_sign_in_checks_a_password_hash_even_if_the_account_does_not_exist(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens need no such care: they are looked up by a hash, which an attacker cannot choose."""
    checked_hashes: list[str] = []
    verify = PasswordHasher.verify

    def record_check(hasher: PasswordHasher, password_hash: str, password: str) -> bool:
        checked_hashes.append(password_hash)
        return verify(hasher, password_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", record_check)
    for name in ("nobody", "\x00"):
        with pytest.raises(Unauthenticated):
            authentication.sign_in(database, name, PASSWORD)
    assert [digest.startswith("$argon2id$") for digest in checked_hashes] == [True, True]


# Redirects and requests to other hosts


def is_local(location: str) -> bool:
    """Return whether a redirect stays on this site."""
    parts = urlsplit(location)
    return location[:1] == "/" and location[1:2] not in ("/", "\\") and not parts.scheme and not parts.netloc


def test_failed_sign_ins_are_counted_without_storing_the_typed_name() -> None:
    limits = SignInLimiter(100)
    tracemalloc.start()
    for number in range(50):
        limits.acquire(f"{number}" * 100_000, "127.0.0.1")
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 100_000


@pytest.mark.full
def test_no_response_redirects_to_another_site(hostile_catalogue: HostileCatalogue) -> None:
    evil = "evil.example"
    followed = 0
    for prefix in ("", "/", f"//{evil}", f"/%2f{evil}", f"/%5c{evil}", f"/{evil}/%2e%2e"):
        for route in list_routes(hostile_catalogue.server.url):
            parts = dict.fromkeys(("id", "name", "rest", "path", "kind", "collection"), quote(f"//{evil}/", safe=""))
            target = prefix + route.fill_path(**parts, version="1") + f"?next=//{evil}&id=//{evil}&url=http://{evil}/"
            for method in ("GET", "POST"):
                response = hostile_catalogue.server.request(
                    method, target, {"X-Forwarded-Host": evil, "Accept": "text/html"}
                )
                if "location" in response.headers:
                    followed += 1
                    assert is_local(response.headers["location"]), (method, target, response.headers["location"])
    assert followed >= 10


class _RedirectHandler(BaseHTTPRequestHandler):
    """Server that redirects to an address only the caller can reach."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.2:{self.server.server_port}{self.path}")  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def test_a_mirror_does_not_follow_redirects_to_other_hosts(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _RedirectHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            server_url = f"http://127.0.0.1:{server.server_port}"
            led = run_cli("mirror", server_url, "--database", f"sqlite:///{tmp_path}/a.db")
        finally:
            server.shutdown()
            thread.join()
    assert led.returncode != 0
    assert "which is not followed" in led.stderr
    for server_url in (
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://user:word@127.0.0.1/",
        "http://127.0.0.1:0/",
    ):
        result = run_cli("mirror", server_url, "--database", f"sqlite:///{tmp_path}/a.db")
        assert result.returncode != 0
        assert "is not a URL such as" in result.stderr


@pytest.mark.parametrize(
    "webhook_url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fd00::1]/",
        "file:///etc/passwd",
        "http://example.org@127.0.0.1/",
    ],
)
def test_webhook_urls_on_internal_networks_are_rejected(hostile_catalogue: HostileCatalogue, webhook_url: str) -> None:
    response = hostile_catalogue.server.post_json(
        "/api/v1/webhooks", {"url": webhook_url}, hostile_catalogue.server.create_token("admin")
    )
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == ["/url"]


# Header injection and path traversal

LINE_BREAKS = ("%0d%0aX-Injected:%20yes", "%0aX-Injected:%20yes", "%0d", "%e2%80%a8", "%c2%85", "%00", "%1b[31m", "%ff")


@pytest.mark.parametrize(
    ("kind", "line_breaks"),
    [
        pytest.param("json", LINE_BREAKS[:1], marks=pytest.mark.short),
        *(pytest.param(kind, LINE_BREAKS, marks=pytest.mark.full) for kind in ("json", "text")),
    ],
    ids=["short", "json", "text"],
)
def test_line_breaks_in_requests_do_not_reach_headers_or_the_log(
    new_url: DatabaseUrlFactory, kind: str, line_breaks: tuple[str, ...]
) -> None:
    with Server(new_url("sqlite"), LEXARIUM_LOG=kind, LEXARIUM_LOG_REQUESTS="yes") as server:
        server.drain_log()
        token = server.create_token("admin")
        for route in list_routes(server.url):
            for line_break in line_breaks if "{" in route.path else line_breaks[:2]:
                parts = dict.fromkeys(
                    ("id", "name", "version", "rest", "path", "kind", "collection", "upload"), line_break
                )
                target = f"{route.fill_path(**parts)}?" + "&".join(
                    f"{name}={line_break}" for name in ("q", "id", "prefix", "release")
                )
                for method in sorted(route.methods & {"GET", "POST", "DELETE"}):
                    headers = {"Authorization": f"Bearer {token}", "Accept": "text/html", "If-Match": "*"}
                    if route.path != "/sign-out":  # it would end the session
                        headers["Cookie"] = f"{COOKIE}={token}"
                    response = server.request(method, target, headers)
                    assert response.status < 500, (method, target)
                    assert "x-injected" not in response.headers, (method, target)
        release_response = server.post_json("/api/v1/releases", {"name": 'r";\r\nX-Injected: yes', "note": ""}, token)
        assert release_response.status == 422
        for raw in (b"X-A: b\rX-Injected: yes", b"X-A: b\x00", b"X-A\n: b", b"X-Request-ID: a\nX-Injected: yes"):
            assert b"x-injected" not in get_response_head(server, raw).lower()
        log = server.stop()
    for line in log.splitlines():
        assert not line.lower().startswith("x-injected"), line
        assert line.isprintable(), line
        assert kind == "text" or json.loads(line)


def get_response_head(server: Server, header: bytes) -> bytes:
    """Return the head of the response to a request with a raw header line."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_SECONDS) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n\r\n")
        response = b""
        while chunk := connection.recv(65_536):
            response += chunk
    assert response.startswith(b"HTTP/1.1 ")
    head = response.partition(b"\r\n\r\n")[0]
    return b"".join(line for line in head.splitlines() if not line.lower().startswith(b"x-request-id: a\\n"))


TRAVERSAL_PATHS = (
    "../settings.py",
    "..%2fsettings.py",
    "%2e%2e/settings.py",
    "%2e%2e%2fsettings.py",
    "..%5csettings.py",
    "....//settings.py",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "..;/settings.py",
    "%00/../../settings.py",
    "x/../../settings.py",
    "../../../../../../../../etc/passwd",
)


@pytest.mark.parametrize(
    "traversals",
    [pytest.param(TRAVERSAL_PATHS[:2], marks=pytest.mark.short), pytest.param(TRAVERSAL_PATHS, marks=pytest.mark.full)],
    ids=["short", "all"],
)
def test_path_traversal_is_rejected_on_every_route(
    hostile_catalogue: HostileCatalogue, traversals: tuple[str, ...]
) -> None:
    for route in list_routes(hostile_catalogue.server.url):
        if "{" not in route.path:
            continue
        for traversal in traversals:
            target = route.fill_path(
                **dict.fromkeys(("id", "name", "rest", "path", "kind", "collection", "version"), traversal)
            )
            response = hostile_catalogue.server.get(target)
            assert response.status in (303, 400, 401, 404, 405, 406, 410, 422), (target, response.status)
            assert b"root:" not in response.body
            assert b"import " not in response.body


def test_filenames_of_downloads_are_sanitized(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_TITLE='../../etc/"x"; filename=y\u202e') as server:
        token = server.create_token("admin")
        for name in ("../up", 'a"b', "a;b", "a/b", "2026.1"):
            server.post_json("/api/v1/releases", {"name": name, "note": ""}, token)
            response = server.get(f"/api/v1/export?format=csv&release={quote(name, safe='')}")
            if response.status == 200:
                disposition = response.headers["content-disposition"]
                file = disposition.removeprefix('attachment; filename="').removesuffix('"')
                assert not set(file) & set('/\\";\u202e'), disposition
                assert not file.startswith("."), disposition


# Erasure


def read_all_data(url: str) -> bytes:
    """Return everything a database stores: the bytes of its files, or all values of its tables."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        return b"".join(path.read_bytes() for path in file.parent.rglob("*") if path.is_file())
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return b"".join(repr(connection.execute(f'SELECT * FROM "{table}"').fetchall()).encode() for (table,) in tables)


def test_erasing_an_account_removes_all_personal_data_and_keeps_the_log_valid(url: str) -> None:
    name = "Ermintrude Q. Vavasour"
    with Server(url) as server:
        admin = server.create_token("admin")

        def send(method: str, path: str, body: object, token: str, **headers: str) -> HttpResponse:
            all_headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "If-Match": "*",
                **headers,
            }
            return server.request(method, f"/api/v1/{path}", all_headers, json.dumps(body))

        person = send("POST", "users", {"name": name, "role": "curator"}, admin, **{"Idempotency-Key": "one"}).json[
            "id"
        ]
        assert send("PATCH", f"users/{person}", {"password": PASSWORD}, admin).status == 200
        own_token = send("POST", "tokens", {"account": name, "label": f"of {name}"}, admin).json["token"]
        assert server.post_json("/api/v1/sign-in", {"name": name, "password": PASSWORD}).status == 200
        record = send("POST", "concept", {"name": "left behind"}, own_token, **{"Idempotency-Key": "two"}).json["id"]
        send("PATCH", f"concept/{record}", {"definition_text": "By someone."}, own_token)
        send("POST", "proposals", {"collection": "concept", "record": record, "change": {"name": "other"}}, own_token)
        send("POST", "releases", {"name": "2026.1", "note": ""}, own_token)
        for file in server.get("/api/v1/releases/2026.1").json["files"]:
            assert name.encode() not in server.get(file["url"]).body  # so that it can stay
        assert name.encode() in read_all_data(url)
        assert send("DELETE", f"users/{person}", {}, admin).status == 204
        for path in ("/", "/changes", f"/id/{record}", f"/id/{record}/history", "/statistics?by=contributor"):
            assert name.encode() not in server.get(path, Accept="text/html").body
        for path in ("changes", "concept", f"concept/{record}/history", "proposals", "releases", "tokens", "users"):
            response = send("GET", path, None, admin)
            assert response.status == 200
            assert name.encode() not in response.body
        log = server.stop()
    assert name.encode() not in read_all_data(url)
    assert name not in log
    database = open_database(url)
    assert check_database(database).problems == []
    database.close()
    assert run_cli("check", "--database", url).returncode == 0
