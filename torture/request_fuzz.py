"""Send random requests to every route; check that no response is a 5xx, undocumented, or shows what is private.

Run it from the repository's root as `python -m torture.request_fuzz --requests N`. It stops at the first such
response, prints the request, and exits with 1.
"""

import json
import random
import re
import socket
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.route_list import METHODS, RoutePattern, list_routes
from tests.support.server import Server
from torture.form_fuzz import FormFuzzer, list_form_paths
from torture.mutations import TOKENS, mutate

_UNLIMITED = {
    "LEXARIUM_WRITE_RATE": "1000000",
    "LEXARIUM_WRITE_BURST": "1000000",
    "LEXARIUM_SIGN_IN_RATE": "1000000",
    "LEXARIUM_COMMENT_RATE": "1000000",
    "LEXARIUM_WEBHOOKS_PRIVATE": "yes",
}
_TIMEOUT_SECONDS = 120
# Attempts to get a form accepted, or rejected, at least once.
_FORM_ATTEMPTS = 40
# Time to read from an event stream, which never ends.
_STREAM_SECONDS = 0.1
_EVENTS = re.compile(rb"(?:(?:id|event|data|retry)?:[^\n]*\n|\n)*[^\n]*")
_TEXTS = (
    *("memory", "", " ", "0", "-1", "1", "2026.1", "trm_x", "*", "%", "a" * 3_000, "\u202e", "🧠", "\x00", "é"),
    "json",
)
_BODIES: tuple[object, ...] = (
    {"name": "x", "definition_text": "d", "aliases": [{"text": "y", "lang": "en", "scope": "exact"}]},
    {"name": "x", "relations": {"KINDOF": ["trm_606958d85e21c"]}, "id_concept_class": "ctp_memory"},
    {"collection": "concept", "record": "trm_606958d85e21c", "change": {"name": "y"}},
    {"relation": "KINDOF", "target": "trm_606958d85e21c"},
    {"text": "Working memory and attention."},
    {"url": "https://example.org/", "collections": ["concept"], "actions": ["create"]},
    {"name": "somebody", "role": "contributor"},
    {"name": "2026.2", "note": "n"},
    {"version": 1},
    {"into": "trm_606958d85e21c"},
    {"op": "create", "collection": "concept", "record": {"name": "x"}},
    {"q0": {"query": "memory", "type": "concept", "limit": 3, "properties": [{"pid": "class", "v": "x"}]}},
    {"ids": ["trm_606958d85e21c"], "properties": [{"id": "class"}]},
    [],
    "x",
    1e308,
    None,
)
_CONTENT_TYPES = (
    *("application/json", "application/x-ndjson", "text/plain", "application/x-www-form-urlencoded", "x/y", ""),
    "multipart/form-data; boundary=b",
)
_ACCEPT_HEADERS = (
    "*/*",
    "text/html",
    "application/json",
    "text/turtle;q=0.5",
    "x",
    "text/html;q=x",
    "application/ld+json",
    "text/event-stream",
    "",
)
_RAW_REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
    b"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n{}\r\n0\r\n\r\n",
    b'GET /api/v-alpha/concept HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nIf-None-Match: "\r\n\r\n',
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://x/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
# Content of a private vocabulary, which no request contains.
_PRIVATE_SLUG, _PRIVATE_ID = "hidden", "fern:1"
_PRIVATE_TITLE, _PRIVATE_NAME, _PRIVATE_NOTE = "Zqplants", "Zqfern", "Zqnote"
_PRIVATE_TEXTS = tuple(text.encode() for text in (_PRIVATE_TITLE, _PRIVATE_NAME, _PRIVATE_NOTE))
_CLIENT_ERROR = 400
_SERVER_ERROR = 500


class ContractViolation(Exception):
    """Response that violates the contract."""


@dataclass
class RequestFuzzer:
    """Send random requests to a server of the sample and check the responses."""

    server: Server
    rng: random.Random
    routes: list[RoutePattern]
    ids: list[str]
    tokens: list[str]
    # Those that may not read the private vocabulary.
    public_tokens: list[str]
    documented_operations: list[tuple[re.Pattern[str], dict[str, Any]]]
    forms: FormFuzzer = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    _connection: HTTPConnection | None = None

    def __post_init__(self) -> None:
        self.forms = FormFuzzer(self.server, self.rng, list_form_paths(self.routes), self._pick_text)

    def send_random(self) -> None:
        """Send one random request; raise `ContractViolation`."""
        kind = self.rng.random()
        if kind < 0.05:
            self._send_raw()
        elif kind < 0.06:
            self._send_event_stream()
        elif kind < 0.25:
            self._send_form()
        else:
            self._send_request()

    def check_form_coverage(self) -> None:
        """Get every form accepted and rejected at least once; raise `ContractViolation`."""
        for _ in range(_FORM_ATTEMPTS):
            for path in self.forms.list_untested():
                self._send_form(path)
        for path, outcome in self.forms.list_untested().items():
            raise ContractViolation(f"the form at {path} was never {outcome}")

    def _send_form(self, path: str | None = None) -> None:
        """Submit the next form, or the form with a path."""
        form_request = self.forms.build_next(path)
        status = self._send_checked("forms", "POST", form_request.target, form_request.headers, form_request.body)
        self.forms.record_response(form_request.path, status)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send_request(self) -> None:
        route = self.rng.choice(self.routes)
        method = self.rng.choice([*sorted(route.methods), *METHODS[:4]])
        target = self._build_target(route)
        headers, body = self._build_headers(), self._build_body() if method in ("POST", "PUT", "PATCH") else None
        self._send_checked(_get_area(route.path), method, target, headers, body)

    def _send_checked(self, area: str, method: str, target: str, headers: dict[str, str], body: bytes | None) -> int:
        """Send a request and return its status; raise `ContractViolation`."""
        request_text = f"{method} {target} {headers} {body!r}"
        try:
            status, content_type, content = self._send(method, target, headers, body)
        except (OSError, HTTPException) as error:
            raise ContractViolation(f"no response ({type(error).__name__}: {error}) to {request_text}") from None
        self.counts[f"{area} {status // 100}xx"] += 1
        violation = self._find_violation(method, target, status, content_type, content)
        if not violation and not self._may_read_all(headers) and self._shows_private(content):
            violation = "shows a private vocabulary"
        if violation:
            raise ContractViolation(f"{status} {violation} to {request_text}: {content[:500]!r}")
        return status

    def _may_read_all(self, headers: dict[str, str]) -> bool:
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        return "Cookie" in headers or (bool(token) and token not in self.public_tokens)

    def _shows_private(self, content: bytes) -> bool:
        """Return whether content has texts of the private vocabulary, and no request has published it."""
        is_shown = any(text in content for text in _PRIVATE_TEXTS)
        return is_shown and self.server.get(f"/api/v1/vocabularies/{_PRIVATE_SLUG}").status == 404

    def _send_event_stream(self) -> None:
        """Read the change stream for a moment, from a random position."""
        last_event_id = self.rng.choice(["0", "1", "1-x", self._pick_text()])
        since = self.rng.choice(["", "?since=0", f"?since={quote(self._pick_text(), safe='')}"])
        headers = {"Accept": "text/event-stream", "Last-Event-ID": quote(last_event_id)}
        self._send_checked("live", "GET", f"/api/v1/changes{since}", headers, None)

    def _send(self, method: str, target: str, headers: dict[str, str], body: bytes | None) -> tuple[int, str, bytes]:
        for is_retry in (False, True):
            if self._connection is None or is_retry:
                self.close()
                self._connection = HTTPConnection("127.0.0.1", self.server.port, timeout=_TIMEOUT_SECONDS)
            try:
                self._connection.request(method, target, body, headers)
                response: HTTPResponse = self._connection.getresponse()
                content_type = response.headers.get("content-type", "")
                is_stream = content_type.startswith("text/event-stream")
                return (
                    response.status,
                    content_type,
                    self._read_stream_start(response) if is_stream else response.read(),
                )
            except ConnectionError:  # the server may close an idle connection
                if is_retry:
                    raise
        raise AssertionError

    def _read_stream_start(self, response: HTTPResponse) -> bytes:
        """Read the first moments of an event stream, then close it."""
        assert self._connection is not None
        content = b""
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_STREAM_SECONDS)
        with suppress(TimeoutError):
            content = response.read1()
        self.close()
        return content

    def _find_violation(self, method: str, target: str, status: int, content_type: str, content: bytes) -> str:
        """Return how a response violates the contract; empty if it does not."""
        if status >= _SERVER_ERROR:
            return "is a server error"
        if status >= _CLIENT_ERROR and method != "HEAD":
            if content_type.startswith("application/problem+json"):
                if json.loads(content)["status"] != status:
                    return "differs from the status in its body"
            elif not content_type.startswith("text/html") or target.startswith("/api"):
                return f"has the content type {content_type}"
        if content_type.startswith("text/event-stream") and not _EVENTS.fullmatch(content):
            return "is not an event stream"
        path = target.partition("?")[0]
        for pattern, operations in self.documented_operations:
            operation = operations.get(method.lower())
            if operation is not None and pattern.fullmatch(path):
                return "" if {str(status), "default"} & operation["responses"].keys() else "is not documented"
        return ""

    def _build_target(self, route: RoutePattern) -> str:
        parts = ("id", "name", "version", "rest", "path", "kind", "collection", "vocabulary", "slug")
        path = route.fill_path(**{part: self._pick_part(part) for part in parts})
        names = ("q", "id", "name", "prefix", "limit", "cursor", "since", "sort", "fields", "state", "class", "release")
        more_names = (
            "as_of",
            "format",
            "collection",
            "queries",
            "extend",
            "offset",
            "from",
            "to",
            "contrast_id",
            "ids",
            "x",
        )
        parameters = self.rng.sample(names + more_names, self.rng.choice([0, 0, 1, 2, 5]))
        query = "&".join(f"{name}={quote(self._pick_text(), safe='')}" for name in parameters)
        return f"{path}?{query}" if query else path

    def _pick_part(self, part: str) -> str:
        if part == "collection" and self.rng.random() < 0.7:
            return self.rng.choice(list(MAIN_COLLECTIONS))
        if part in ("vocabulary", "slug") and self.rng.random() < 0.7:
            return self.rng.choice(("main", "settings", _PRIVATE_SLUG))
        if part == "version" and self.rng.random() < 0.5:
            return "1"
        if part in ("id", "name") and self.rng.random() < 0.5:
            return self.rng.choice(self.ids)
        return quote(self._pick_text(), safe="") or "x"

    def _pick_text(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return self.rng.choice([*_TEXTS, *self.ids])
        if kind < 0.7:
            return json.dumps(self.rng.choice(_BODIES))
        return mutate(self.rng.choice(_TEXTS).encode(), self.rng)[:2_000].decode("latin-1")

    def _build_headers(self) -> dict[str, str]:
        encodings = ["", "gzip", "zstd", "*", "x;q=y"]
        headers = {"Accept": self.rng.choice(_ACCEPT_HEADERS), "Accept-Encoding": self.rng.choice(encodings)}
        if self.rng.random() < 0.7:
            headers["Authorization"] = f"Bearer {self.rng.choice(self.tokens)}"
        if self.rng.random() < 0.3:
            headers["Cookie"] = self.forms.get_cookie()
        for name, values in {
            "Content-Type": _CONTENT_TYPES,
            "If-Match": ("*", '"1"', '"', "W/", "x" * 100),
            "If-None-Match": ("*", '"1"', '"', ","),
            "Idempotency-Key": ("k", "", "x" * 201),
            "Last-Event-ID": ("1", "x", "-1"),
            "X-Request-ID": ("a", "a b", "é"),
            "Origin": ("null", "http://x", "::"),
            "X-Forwarded-For": ("1.2.3.4", "x", ","),
        }.items():
            if self.rng.random() < 0.4:
                headers[name] = self.rng.choice(values)
        return headers

    def _build_body(self) -> bytes:
        body = json.dumps(self.rng.choice(_BODIES)).encode()
        kind = self.rng.random()
        if kind < 0.5:
            return body
        return mutate(body, self.rng) if kind < 0.9 else self.rng.choice(TOKENS) * self.rng.randint(0, 50)

    def _send_raw(self) -> None:
        """Send bytes that are not quite HTTP; the response must be HTTP or empty, and the connection must close."""
        data = mutate(self.rng.choice(_RAW_REQUESTS), self.rng)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=_TIMEOUT_SECONDS) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            response = b""
            try:
                while chunk := connection.recv(65_536):
                    response += chunk
            except ConnectionError:
                pass
            except TimeoutError:
                raise ContractViolation(f"the connection stays open after {data!r}") from None
        if response and not re.match(rb"HTTP/1\.[01] [1-4]\d\d ", response):
            raise ContractViolation(f"{response[:200]!r} to {data!r}")
        self.counts[f"malformed HTTP {'answered' if response else 'closed'}"] += 1


def _get_area(path: str) -> str:
    for prefix, area in {"/api/v-alpha": "v-alpha", "/api/v1": "v1", "/reconcile": "reconcile"}.items():
        if path.startswith(prefix):
            return area
    return "pages"


def _create_private_vocabulary(server: Server, token: str) -> None:
    vocabulary = {"slug": _PRIVATE_SLUG, "title": _PRIVATE_TITLE, "schema": "skos", "private": True}
    server.send_write(token, "POST", "vocabularies", vocabulary)
    path = f"vocabularies/{_PRIVATE_SLUG}"
    record = {"id": _PRIVATE_ID, "name": _PRIVATE_NAME, "definition": _PRIVATE_NOTE}
    server.send_write(token, "POST", f"{path}/collections/concept", record)
    server.send_write(token, "POST", f"{path}/records/{_PRIVATE_ID}/comments", {"text": _PRIVATE_NOTE})
    server.send_write(token, "POST", f"{path}/releases", {"name": "first", "note": _PRIVATE_NOTE})


@contextmanager
def create_fuzzer(rng: random.Random) -> Iterator[RequestFuzzer]:
    """Create a fuzzer with a server of the sample; check its catalogue and log at the end."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        url = f"sqlite:///{folder}/catalogue.db"
        with Server(url, "--sample", **_UNLIMITED) as server:
            server.drain_log()
            public_tokens = [server.create_token("none"), "none"]
            tokens = [*map(server.create_token, ("contributor", "curator", "admin")), *public_tokens]
            _create_private_vocabulary(server, tokens[2])
            document = server.get("/openapi.json").json
            documented_operations = [
                (re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))), operations)
                for path, operations in document["paths"].items()
            ]
            ids = [
                item["id"] for name in MAIN_COLLECTIONS for item in server.get(f"/api/v1/{name}?limit=5").json["items"]
            ]
            routes = [item for item in list_routes(url) if "static" not in item.path]
            quoted_ids = [quote(item, safe="") for item in (*ids, _PRIVATE_ID)]
            fuzzer = RequestFuzzer(server, rng, routes, quoted_ids, tokens, public_tokens, documented_operations)
            yield fuzzer
            fuzzer.close()
            process_status = Path(f"/proc/{server.pid}/status").read_text()
            log = server.stop()
        error_lines = [line for line in log.splitlines() if '"level":"error"' in line or "Traceback" in line]
        if error_lines:
            raise ContractViolation(f"the log has an error: {error_lines[0][:2_000]}")
        database = Database(url)
        problems = check_database(database).problems
        database.close()
        if problems:
            raise ContractViolation(f"the check of the catalogue failed: {problems[0]}")
        print(f"peak memory of the server: {int(process_status.partition('VmHWM:')[2].split()[0]) // 1024} MiB")


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.request_fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, help="number of requests (100,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum duration (unlimited)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    deadline = time.monotonic() + options.seconds
    sent_count = 0
    try:
        with create_fuzzer(random.Random(options.seed)) as fuzzer:
            while sent_count < options.requests and time.monotonic() < deadline:
                fuzzer.send_random()
                sent_count += 1
            fuzzer.check_form_coverage()
            for label, count in sorted(fuzzer.counts.items()):
                print(f"{label}: {count:,}")
    except ContractViolation as violation:
        print(f"After {sent_count:,} requests: {violation}")
        return 1
    print(f"{sent_count:,} requests, no violations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
