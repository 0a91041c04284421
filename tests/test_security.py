"""What someone who means harm may send, and what must not come of it."""

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

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Unauthenticated
from lexarium.service import passwords
from lexarium.service.checking import check
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.web.limits import SignIns
from lexarium.web.pages.session import COOKIE
from tests.databases import NewUrl
from tests.person import forms
from tests.routes import every_address
from tests.server import Answer, Server, run
from tests.waiting import DEADLINE

MEAN = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><a href=javascript:alert(3)>&lt;{{7*7}}"
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(1)")
PASSWORD = "correct horse battery staple"


# Markup


class _Elements(HTMLParser):
    """The elements of a page, and what their attributes hold."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def harmless(page: str) -> bool:
    """Whether nothing on a page was made by what a record says."""
    found = _Elements()
    found.feed(page)
    handlers = [name for name, _ in found.attributes if name.startswith("on")]
    run = [value for _, value in found.attributes if value.strip().lower().startswith(("javascript:", "data:"))]
    return (
        not handlers and not run and "<img src=x" not in page and "<script>" not in page and "<a href=java" not in page
    )


def hostile(path: Path) -> list[Path]:
    """A catalogue whose records say something mean in every field that holds text, and in their relations."""
    files = []
    for name, collection in COLLECTIONS.items():
        own = collection.prefixes[-1]
        records = []
        for number in (1, 2):
            record: dict[str, Any] = {
                field: f"{MEAN} {field}" if info.annotation is str else 1
                for field, info in collection.record.model_fields.items()
            }
            records.append(record | {"id": f"{own}_{MEAN}{number}", "name": f"{MEAN} name"})
        if "id_concept_class" in records[0]:
            records[0]["id_concept_class"] = f"ctp_{MEAN}1"
        if name == "concept":
            parent = {"relationship": "KINDOF", "direction": "parent", "id": f"trm_{MEAN}2", "name": MEAN}
            records = [{**record, "type": name, "relationships": []} for record in records]
            records[0]["relationships"] = [parent]
        file = path / f"{name}.json"
        file.write_text(json.dumps(records))
        files.append(file)
    return files


@dataclass(frozen=True)
class Hostile:
    server: Server
    ids: dict[str, str]
    cookie: str
    """Of who is signed in as an admin with a mean name."""
    parts: dict[str, dict[str, str]]
    """What to put into addresses that begin so, and are about no record."""


@pytest.fixture(scope="module")
def mean(new_url: NewUrl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    url = new_url("sqlite")
    imported = run("import", "--database", url, *hostile(tmp_path_factory.mktemp("mean")))
    assert imported.returncode == 0, imported.stderr
    variables = {f"LEXARIUM_{name}": MEAN for name in ("TITLE", "PUBLISHER", "LICENCE")}
    with Server(url, **variables) as server:
        token = server.token("admin")
        admin = server.post_json("/api/v1/users", {"name": MEAN, "role": "admin"}, token)
        assert admin.status == 201
        ids = {name: server.get(f"/api/v1/{name}").json["items"][0]["id"] for name in COLLECTIONS}
        lent = server.post_json("/api/v1/tokens", {"account": MEAN, "label": MEAN}, token).json
        own, cookie = lent["token"], f"{COOKIE}={lent['token']}"
        draft = {"name": MEAN, "definition_text": MEAN, "aliases": [{"text": MEAN}], "sources": [MEAN, "javascript:x"]}
        made = server.post_json("/api/v1/concept", draft, own)
        assert made.status == 201, made.body
        proposal = {"collection": "concept", "record": made.json["id"], "change": {"name": f"{MEAN} two"}}
        proposed = server.post_json("/api/v1/proposals", proposal, own)
        assert proposed.status == 202
        assert server.post_json("/api/v1/releases", {"name": "2026.1", "note": MEAN}, own).status == 201
        # Nothing is sent there: there are no such changes.
        wish = {"url": f"https://93.184.215.14/?{MEAN}".replace(" ", ""), "collections": ["contrast"]}
        hook = server.post_json("/api/v1/webhooks", wish, own)
        assert hook.status == 201, hook.body
        parts = {
            "/admin/people": {"id": admin.json["id"]},
            "/admin/tokens": {"id": lent["id"]},
            "/account/tokens": {"id": lent["id"]},
            "/admin/webhooks": {"id": hook.json["id"]},
            "/review": {"id": proposed.json["id"]},
            "/proposals": {"id": proposed.json["id"]},
            "/import": {"ticket": sent_to_import(server, cookie)},
        }
        yield Hostile(server, {**ids, "made": made.json["id"]}, cookie, parts)


def sent_to_import(server: Server, cookie: str) -> str:
    """The ticket of a mean file with a mean name that waits to be imported."""
    file = json.dumps([{"id": f"trm_{MEAN}3", "name": MEAN}])
    name = MEAN.replace('"', "%22")
    form = f'--b\r\nContent-Disposition: form-data; name="files"; filename="{name}.json"\r\n\r\n{file}\r\n--b--\r\n'
    headers = {"Cookie": cookie, "Content-Type": "multipart/form-data; boundary=b"}
    sent = server.request("POST", "/import", headers, form)
    assert sent.status == 303, sent.body
    return sent.headers["location"].rpartition("/")[2]


def about_no_record(mean: Hostile, path: str) -> dict[str, str]:
    """What to put into an address that is about something else than a record."""
    return next((parts for begin, parts in mean.parts.items() if path.startswith(begin)), {})


def pages(mean: Hostile) -> Iterator[tuple[str, str]]:
    """Every page, about every record where it is about one, and asked for something mean where it takes a query.

    Each as its address, and as the application has that.
    """
    parts = {"version": "1", "name": "x", "rest": "x", "path": "style.css"}
    for address in every_address(mean.server.url):
        if "GET" not in address.methods or address.path.startswith(("/api/v1", "/static")):
            continue
        for collection, identifier in mean.ids.items():
            for kind in ("undefined", "repeated", quote(MEAN, safe="")):
                own = {"id": quote(identifier, safe=""), **parts, **about_no_record(mean, address.path)}
                of = collection if collection in COLLECTIONS else "concept"
                yield address.filled(collection=of, kind=kind, **own), address.path
        yield address.filled(id=quote(MEAN, safe=""), collection=quote(MEAN, safe=""), kind="x", **parts), address.path
    into = f"into={quote(mean.ids['concept'])}"
    for query in (
        f"q={quote(MEAN)}",
        f"id={quote(mean.ids['concept'])}",
        f"from={quote(MEAN)}&class={quote(MEAN)}",
        into,
    ):
        for path in ("/search", "/browse/concept", "/reconcile/preview", "/reconcile/flyout/entity", "/changes"):
            yield f"{path}?{query}", path
        for path in ("/admin/people", "/admin/tokens", "/review", "/proposals", f"/merge/{mean.ids['made']}"):
            yield f"{path}?{query}", path


@pytest.mark.parametrize("signed_in", [False, True])
def test_what_a_record_says_is_markup_on_no_page(mean: Hostile, *, signed_in: bool) -> None:
    shown, seen, paths = 0, set(), set()
    who = {"Cookie": mean.cookie} if signed_in else {}
    for target, path in dict.fromkeys(pages(mean)):
        answer = mean.server.get(target, Accept="text/html", **who)
        assert answer.status < 500, target
        paths.add(path)
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert "default-src 'none'" in answer.headers["content-security-policy"], target
            assert answer.headers["x-content-type-options"] == "nosniff", target
            assert harmless(answer.body.decode()), target
            shown += b"&lt;script&gt;alert(2)" in answer.body
            seen |= {path} if answer.status == 200 else set()
        elif "flyout" in target and answer.status == 200:
            assert harmless(answer.json["html"]), target
    assert shown >= (60 if signed_in else 15)  # else the pages that say it were not asked
    if signed_in:
        assert {path for path in paths if path.startswith(OFFICES)} - seen == set()


OFFICES = ("/edit", "/merge", "/retire", "/propose", "/review", "/import", "/admin", "/account", "/id", "/browse")
"""Where pages are that were all to be seen."""


def test_what_a_form_is_sent_is_markup_on_no_page(mean: Hostile) -> None:
    """As it comes back, where a form is refused. Left out are those that end the session, or send something away."""
    back = 0
    for target, path in forms_of(mean):
        if path == "/sign-out" or path.endswith(("/erase", "/revoke", "/test")):
            continue
        shown = mean.server.get(target, Accept="text/html", Cookie=mean.cookie)
        fields = {name: MEAN for form in forms(shown.body.decode(errors="replace")) for name in form.fields}
        body = urlencode({"name": MEAN, "reason": MEAN, "version": MEAN, **fields})
        headers = {"Accept": "text/html", "Cookie": mean.cookie, "Content-Type": "application/x-www-form-urlencoded"}
        answer = mean.server.request("POST", target, headers, body)
        assert answer.status < 500, target
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert harmless(answer.body.decode()), target
            back += b"&lt;script&gt;alert(2)" in answer.body
    assert back >= 10


# Other sites


def forms_of(mean: Hostile) -> Iterator[tuple[str, str]]:
    """Where every form of a page is sent, about something that is there, and as the application has that."""
    record = {"id": quote(mean.ids["made"], safe=""), "collection": "concept"}
    for address in every_address(mean.server.url):
        if "POST" in address.methods and not address.path.startswith(("/api", "/reconcile")):
            yield address.filled(**{**record, **about_no_record(mean, address.path)}), address.path


@pytest.mark.parametrize(
    "sign", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_no_form_is_taken_from_a_page_of_another_site(mean: Hostile, sign: dict[str, str]) -> None:
    before = mean.server.get("/api/v1").json["revision"]
    sent = list(forms_of(mean))
    assert len(sent) >= 30
    for target, _ in sent:
        for kind, body in (
            ("application/x-www-form-urlencoded", "name=x"),
            ("multipart/form-data; boundary=b", "--b--"),
        ):
            headers = {"Cookie": mean.cookie, "Content-Type": kind, "Accept": "text/html", **sign}
            assert mean.server.request("POST", target, headers, body).status == 403, target
    assert mean.server.get("/api/v1").json["revision"] == before
    assert mean.server.get("/account", Cookie=mean.cookie).status == 200  # and so the session was not ended


def test_what_is_no_page_is_never_taken_for_one(mean: Hostile) -> None:
    for target in ("/api/v-alpha/concept", "/api/v1/concept", "/api/v1/export?format=csv", "/openapi.json"):
        kind = mean.server.get(target, Accept="text/html").headers["content-type"]
        assert not kind.startswith("text/html"), target


# Spreadsheets


def test_no_cell_of_a_table_that_is_served_is_run_by_a_spreadsheet(new_url: NewUrl) -> None:
    with Server(new_url("sqlite")) as server:
        token = server.token("curator")
        for formula in FORMULAS:
            name = formula.replace("\r", "\n")  # a carriage return in a name is not taken
            draft = {"name": name, "definition_text": name, "aliases": [{"text": name}], "sources": [name]}
            made = server.post_json("/api/v1/concept", draft, token)
            assert made.status == 201, (formula, made.body)
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


def test_neither_token_nor_password_is_ever_logged(new_url: NewUrl) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        token = server.token("admin")
        me = server.get("/api/v1/me", Authorization=f"Bearer {token}").json
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        server.request("PATCH", f"/api/v1/users/{me['id']}", headers, json.dumps({"password": PASSWORD}))
        server.post_json("/api/v1/sign-in", {"name": me["name"], "password": PASSWORD})
        signed = server.post_json("/api/v1/sign-in", {"name": me["name"], "password": PASSWORD}).json["token"]
        wrong = "lex_of-someone-who-guesses"
        for secret in (token, signed, wrong):
            server.get("/api/v1/me", Authorization=f"Bearer {secret}")
            server.get("/api/v1/me", Authorization=f"Basic {secret}")
            server.get(f"/?token={secret}", Cookie=f"lexarium_session={secret}")
            server.get(f"/api/v1/concept?access_token={secret}&q={secret}")
            server.get(f"/nothing?password={PASSWORD.replace(' ', '+')}", Referer=f"http://x/?token={secret}")
            server.post_json("/api/v1/concept", {"name": 1, "token": secret}, secret)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("DROP TABLE token")  # so that looking for one is a mistake of the server's own
        broken = server.get("/api/v1/me", Authorization=f"Bearer {wrong}")
        assert broken.status in (500, 503)
        for secret in (token, signed, wrong, PASSWORD, "Traceback", "SELECT"):
            assert secret.encode() not in broken.body
        log = server.stop()
    assert "no such table" in log
    for secret in (token, signed, wrong, PASSWORD, PASSWORD.replace(" ", "+")):
        assert secret not in log


def test_a_password_takes_as_long_to_refuse_where_there_is_no_such_account(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens need no such care: they are looked up by a hash that whoever guesses cannot steer."""
    looked_at: list[str] = []
    verified = passwords._verified
    monkeypatch.setattr(passwords, "_verified", lambda *given: looked_at.append(given[0]) or verified(*given))  # type: ignore[func-returns-value]
    for name in ("nobody", "\x00"):
        with pytest.raises(Unauthenticated):
            passwords.sign_in(database, name, PASSWORD)
    assert [digest.startswith("$argon2id$") for digest in looked_at] == [True, True]


# Elsewhere


def local(location: str) -> bool:
    """Whether an address leads to this very site."""
    parts = urlsplit(location)
    return location[:1] == "/" and location[1:2] not in ("/", "\\") and not parts.scheme and not parts.netloc


def test_a_name_that_is_typed_is_counted_and_not_kept() -> None:
    limits = SignIns(100)
    tracemalloc.start()
    for number in range(50):
        limits.take(f"{number}" * 100_000, "127.0.0.1")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000


@pytest.mark.full
def test_nobody_is_ever_led_to_another_site(mean: Hostile) -> None:
    evil = "evil.example"
    followed = 0
    for prefix in ("", "/", f"//{evil}", f"/%2f{evil}", f"/%5c{evil}", f"/{evil}/%2e%2e"):
        for address in every_address(mean.server.url):
            parts = dict.fromkeys(("id", "name", "rest", "path", "kind", "collection"), quote(f"//{evil}/", safe=""))
            target = prefix + address.filled(**parts, version="1") + f"?next=//{evil}&id=//{evil}&url=http://{evil}/"
            for method in ("GET", "POST"):
                answer = mean.server.request(method, target, {"X-Forwarded-Host": evil, "Accept": "text/html"})
                if "location" in answer.headers:
                    followed += 1
                    assert local(answer.headers["location"]), (method, target, answer.headers["location"])
    assert followed >= 10


class _Astray(BaseHTTPRequestHandler):
    """A server that sends whoever asks to where only its caller can reach."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.2:{self.server.server_port}{self.path}")  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_a_mirror_goes_to_no_other_host_than_the_one_that_was_named(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Astray) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            led = run("mirror", address, "--database", f"sqlite:///{tmp_path}/a.db")
        finally:
            server.shutdown()
            thread.join()
    assert led.returncode != 0
    assert "which is not followed" in led.stderr
    for address in ("file:///etc/passwd", "gopher://127.0.0.1/", "http://user:word@127.0.0.1/", "http://127.0.0.1:0/"):
        refused = run("mirror", address, "--database", f"sqlite:///{tmp_path}/a.db")
        assert refused.returncode != 0
        assert "is not an address like" in refused.stderr


@pytest.mark.parametrize(
    "address",
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
def test_a_webhook_is_sent_to_no_place_that_only_the_server_can_reach(mean: Hostile, address: str) -> None:
    made = mean.server.post_json("/api/v1/webhooks", {"url": address}, mean.server.token("admin"))
    assert made.status == 422
    assert [error["pointer"] for error in made.json["errors"]] == ["/url"]


# Lines and paths

BREAKS = ("%0d%0aX-Injected:%20yes", "%0aX-Injected:%20yes", "%0d", "%e2%80%a8", "%c2%85", "%00", "%1b[31m", "%ff")


@pytest.mark.parametrize("kind", ["json", pytest.param("text", marks=pytest.mark.full)])
def test_no_line_break_that_is_sent_becomes_one_in_a_header_or_in_the_log(new_url: NewUrl, kind: str) -> None:
    with Server(new_url("sqlite"), LEXARIUM_LOG=kind, LEXARIUM_LOG_REQUESTS="yes") as server:
        server.listen()
        token = server.token("admin")
        for address in every_address(server.url):
            for broken in BREAKS[:2] if "{" not in address.path else BREAKS:
                parts = dict.fromkeys(("id", "name", "version", "rest", "path", "kind", "collection", "ticket"), broken)
                target = f"{address.filled(**parts)}?q={broken}&id={broken}&prefix={broken}&release={broken}"
                for method in sorted(address.methods & {"GET", "POST", "DELETE"}):
                    headers = {"Authorization": f"Bearer {token}", "Accept": "text/html", "If-Match": "*"}
                    if address.path != "/sign-out":  # which would end the session
                        headers["Cookie"] = f"{COOKIE}={token}"
                    answer = server.request(method, target, headers)
                    assert answer.status < 500, (method, target)
                    assert "x-injected" not in answer.headers, (method, target)
        named = server.post_json("/api/v1/releases", {"name": 'r";\r\nX-Injected: yes', "note": ""}, token)
        assert named.status == 422
        for raw in (b"X-A: b\rX-Injected: yes", b"X-A: b\x00", b"X-A\n: b", b"X-Request-ID: a\nX-Injected: yes"):
            assert b"x-injected" not in told(server, raw).lower()
        log = server.stop()
    for line in log.splitlines():
        assert not line.lower().startswith("x-injected"), line
        assert line.isprintable(), line
        assert kind == "text" or json.loads(line)


def told(server: Server, header: bytes) -> bytes:
    """What a server answers to a request with a header line of one's own making."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n\r\n")
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 ")
    head = answer.partition(b"\r\n\r\n")[0]
    return b"".join(line for line in head.splitlines() if not line.lower().startswith(b"x-request-id: a\\n"))


WAYS_UP = (
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


def test_no_address_leads_out_of_its_folder(mean: Hostile) -> None:
    for address in every_address(mean.server.url):
        if "{" not in address.path:
            continue
        for way in WAYS_UP:
            target = address.filled(
                **dict.fromkeys(("id", "name", "rest", "path", "kind", "collection", "version"), way)
            )
            answer = mean.server.get(target)
            assert answer.status in (303, 400, 401, 404, 405, 406, 410, 422), (target, answer.status)
            assert b"root:" not in answer.body
            assert b"import " not in answer.body


def test_the_name_of_a_file_that_is_served_is_a_plain_name(new_url: NewUrl) -> None:
    with Server(new_url("sqlite"), LEXARIUM_TITLE='../../etc/"x"; filename=y\u202e') as server:
        token = server.token("admin")
        for name in ("../up", 'a"b', "a;b", "a/b", "2026.1"):
            server.post_json("/api/v1/releases", {"name": name, "note": ""}, token)
            answer = server.get(f"/api/v1/export?format=csv&release={quote(name, safe='')}")
            if answer.status == 200:
                disposition = answer.headers["content-disposition"]
                file = disposition.removeprefix('attachment; filename="').removesuffix('"')
                assert not set(file) & set('/\\";\u202e'), disposition
                assert not file.startswith("."), disposition


# Erasure


def everything(url: str) -> bytes:
    """All that a database keeps: every byte of its files, or every value of its tables."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        return b"".join(each.read_bytes() for each in file.parent.rglob("*") if each.is_file())
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return b"".join(repr(connection.execute(f'SELECT * FROM "{table}"').fetchall()).encode() for (table,) in tables)


def test_of_a_person_who_is_erased_nothing_is_left_and_the_log_still_checks(url: str) -> None:
    name = "Ermintrude Q. Vavasour"
    with Server(url) as server:
        admin = server.token("admin")

        def send(method: str, path: str, body: object, token: str, **headers: str) -> Answer:
            sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "If-Match": "*", **headers}
            return server.request(method, f"/api/v1/{path}", sent, json.dumps(body))

        person = send("POST", "users", {"name": name, "role": "curator"}, admin, **{"Idempotency-Key": "one"}).json[
            "id"
        ]
        assert send("PATCH", f"users/{person}", {"password": PASSWORD}, admin).status == 200
        own = send("POST", "tokens", {"account": name, "label": f"of {name}"}, admin).json["token"]
        assert server.post_json("/api/v1/sign-in", {"name": name, "password": PASSWORD}).status == 200
        record = send("POST", "concept", {"name": "left behind"}, own, **{"Idempotency-Key": "two"}).json["id"]
        send("PATCH", f"concept/{record}", {"definition_text": "By someone."}, own)
        send("POST", "proposals", {"collection": "concept", "record": record, "change": {"name": "other"}}, own)
        send("POST", "releases", {"name": "2026.1", "note": ""}, own)
        assert name.encode() in everything(url)
        assert send("DELETE", f"users/{person}", {}, admin).status == 204
        for path in ("/", "/changes", f"/id/{record}", f"/id/{record}/history", "/statistics?by=contributor"):
            assert name.encode() not in server.get(path, Accept="text/html").body
        for path in ("changes", "concept", f"concept/{record}/history", "proposals", "releases", "tokens", "users"):
            answer = send("GET", path, None, admin)
            assert answer.status == 200
            assert name.encode() not in answer.body
        log = server.stop()
    assert name.encode() not in everything(url)
    assert name not in log
    again = open_database(url)
    assert check(again).problems == []
    again.close()
    assert run("check", "--database", url).returncode == 0
