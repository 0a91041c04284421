"""Sending whatever can be sent to every address: no fault of the server, and no answer of another form than is told.

Run it from the repository's root as `python -m torture.inputs --requests N`. It stops at the first answer that is a 5xx
or that nothing documents, prints the request, and ends with 1.
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

from lexarium.domain.collections import COLLECTIONS
from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.routes import METHODS, Address, every_address
from tests.server import Server
from torture.forms import Forms, paths_of
from torture.mutations import TOKENS, mutated

_UNLIMITED = {
    "LEXARIUM_WRITE_RATE": "1000000",
    "LEXARIUM_WRITE_BURST": "1000000",
    "LEXARIUM_SIGN_IN_RATE": "1000000",
    "LEXARIUM_WEBHOOKS_PRIVATE": "yes",
}
_SECONDS = 120
_TRIES = 40
"""How often a form is sent that should be taken, or refused, at least once."""
_LIVE_SECONDS = 0.1
"""How long a live stream is read, which has no end."""
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
_KINDS = (
    *("application/json", "application/x-ndjson", "text/plain", "application/x-www-form-urlencoded", "x/y", ""),
    "multipart/form-data; boundary=b",
)
_ACCEPTED = (
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
_RAW = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
    b"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n{}\r\n0\r\n\r\n",
    b'GET /api/v-alpha/concept HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nIf-None-Match: "\r\n\r\n',
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://x/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
_REFUSED = 400
_FAULT = 500


class Wrong(Exception):
    """An answer that must not be."""


@dataclass
class Inputs:
    """A server of the sample catalogue, and what has been sent to it."""

    server: Server
    chance: random.Random
    addresses: list[Address]
    ids: list[str]
    tokens: list[str]
    documented: list[tuple[re.Pattern[str], dict[str, Any]]]
    forms: Forms = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    _connection: HTTPConnection | None = None

    def __post_init__(self) -> None:
        self.forms = Forms(self.server, self.chance, paths_of(self.addresses), self._text)

    def one(self) -> None:
        """Send one request of any kind. Raises `Wrong`."""
        kind = self.chance.random()
        if kind < 0.05:
            self._raw()
        elif kind < 0.06:
            self._live()
        elif kind < 0.25:
            self._form()
        else:
            self._request()

    def finish(self) -> None:
        """See to it that every form of a page was taken, and was refused. Raises `Wrong`."""
        for _ in range(_TRIES):
            for path in self.forms.untried():
                self._form(path)
        for path, told in self.forms.untried().items():
            raise Wrong(f"the form at {path} was never {told}")

    def _form(self, path: str | None = None) -> None:
        """Send the next form of a page, or that of a path."""
        filled = self.forms.next(path)
        status = self._asked("forms", "POST", filled.target, filled.headers, filled.body)
        self.forms.answered(filled.path, status)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self) -> None:
        address = self.chance.choice(self.addresses)
        method = self.chance.choice([*sorted(address.methods), *METHODS[:4]])
        target = self._target(address)
        headers, body = self._headers(), self._body() if method in ("POST", "PUT", "PATCH") else None
        self._asked(_area(address.path), method, target, headers, body)

    def _asked(self, area: str, method: str, target: str, headers: dict[str, str], body: bytes | None) -> int:
        """Send a request: the status of its answer. Raises `Wrong`."""
        said = f"{method} {target} {headers} {body!r}"
        try:
            status, told, content = self._sent(method, target, headers, body)
        except (OSError, HTTPException) as error:
            raise Wrong(f"no answer ({type(error).__name__}: {error}) to {said}") from None
        self.counts[f"{area} {status // 100}xx"] += 1
        why = self._wrong(method, target, status, told, content)
        if why:
            raise Wrong(f"{status} {why} to {said}: {content[:500]!r}")
        return status

    def _live(self) -> None:
        """Follow the changes for a moment, from anywhere on."""
        last = self.chance.choice(["0", "1", "1-x", self._text()])
        since = self.chance.choice(["", "?since=0", f"?since={quote(self._text(), safe='')}"])
        headers = {"Accept": "text/event-stream", "Last-Event-ID": quote(last)}
        self._asked("live", "GET", f"/api/v1/changes{since}", headers, None)

    def _sent(self, method: str, target: str, headers: dict[str, str], body: bytes | None) -> tuple[int, str, bytes]:
        for fresh in (False, True):
            if self._connection is None or fresh:
                self.close()
                self._connection = HTTPConnection("127.0.0.1", self.server.port, timeout=_SECONDS)
            try:
                self._connection.request(method, target, body, headers)
                response: HTTPResponse = self._connection.getresponse()
                kind = response.headers.get("content-type", "")
                live = kind.startswith("text/event-stream")
                return response.status, kind, self._begun(response) if live else response.read()
            except ConnectionError:  # the server may close what is idle
                if fresh:
                    raise
        raise AssertionError

    def _begun(self, response: HTTPResponse) -> bytes:
        """What a live stream says in its first moments; then it is left."""
        assert self._connection is not None
        content = b""
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_LIVE_SECONDS)
        with suppress(TimeoutError):
            content = response.read1()
        self.close()
        return content

    def _wrong(self, method: str, target: str, status: int, kind: str, content: bytes) -> str:
        """What is wrong with an answer; nothing where it is as it should be."""
        if status >= _FAULT:
            return "is a fault"
        if status >= _REFUSED and method != "HEAD":
            if kind.startswith("application/problem+json"):
                if json.loads(content)["status"] != status:
                    return "is not the status that its body tells"
            elif not kind.startswith("text/html") or target.startswith("/api"):
                return f"comes as {kind}"
        if kind.startswith("text/event-stream") and not _EVENTS.fullmatch(content):
            return "is no stream of events"
        path = target.partition("?")[0]
        for pattern, operations in self.documented:
            operation = operations.get(method.lower())
            if operation is not None and pattern.fullmatch(path):
                return "" if {str(status), "default"} & operation["responses"].keys() else "is documented nowhere"
        return ""

    def _target(self, address: Address) -> str:
        parts = ("id", "name", "version", "rest", "path", "kind", "collection")
        path = address.filled(**{part: self._part(part) for part in parts})
        names = ("q", "id", "name", "prefix", "limit", "cursor", "since", "sort", "fields", "state", "class", "release")
        more = ("as_of", "format", "collection", "queries", "extend", "offset", "from", "to", "contrast_id", "ids", "x")
        given = self.chance.sample(names + more, self.chance.choice([0, 0, 1, 2, 5]))
        query = "&".join(f"{name}={quote(self._text(), safe='')}" for name in given)
        return f"{path}?{query}" if query else path

    def _part(self, part: str) -> str:
        if part == "collection" and self.chance.random() < 0.7:
            return self.chance.choice(list(COLLECTIONS))
        if part == "version" and self.chance.random() < 0.5:
            return "1"
        if part in ("id", "name") and self.chance.random() < 0.5:
            return self.chance.choice(self.ids)
        return quote(self._text(), safe="") or "x"

    def _text(self) -> str:
        kind = self.chance.random()
        if kind < 0.5:
            return self.chance.choice([*_TEXTS, *self.ids])
        if kind < 0.7:
            return json.dumps(self.chance.choice(_BODIES))
        return mutated(self.chance.choice(_TEXTS).encode(), self.chance)[:2_000].decode("latin-1")

    def _headers(self) -> dict[str, str]:
        encodings = ["", "gzip", "zstd", "*", "x;q=y"]
        headers = {"Accept": self.chance.choice(_ACCEPTED), "Accept-Encoding": self.chance.choice(encodings)}
        if self.chance.random() < 0.7:
            headers["Authorization"] = f"Bearer {self.chance.choice(self.tokens)}"
        if self.chance.random() < 0.3:
            headers["Cookie"] = self.forms.cookie()
        for name, values in {
            "Content-Type": _KINDS,
            "If-Match": ("*", '"1"', '"', "W/", "x" * 100),
            "If-None-Match": ("*", '"1"', '"', ","),
            "Idempotency-Key": ("k", "", "x" * 201),
            "Last-Event-ID": ("1", "x", "-1"),
            "X-Request-ID": ("a", "a b", "é"),
            "Origin": ("null", "http://x", "::"),
            "X-Forwarded-For": ("1.2.3.4", "x", ","),
        }.items():
            if self.chance.random() < 0.4:
                headers[name] = self.chance.choice(values)
        return headers

    def _body(self) -> bytes:
        body = json.dumps(self.chance.choice(_BODIES)).encode()
        kind = self.chance.random()
        if kind < 0.5:
            return body
        return mutated(body, self.chance) if kind < 0.9 else self.chance.choice(TOKENS) * self.chance.randint(0, 50)

    def _raw(self) -> None:
        """Bytes that are no HTTP, or nearly: some answer of HTTP, or none, and the connection's end."""
        data = mutated(self.chance.choice(_RAW), self.chance)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=_SECONDS) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while piece := connection.recv(65_536):
                    answer += piece
            except ConnectionError:
                pass
            except TimeoutError:
                raise Wrong(f"no end to {data!r}") from None
        if answer and not re.match(rb"HTTP/1\.[01] [1-4]\d\d ", answer):
            raise Wrong(f"{answer[:200]!r} to {data!r}")
        self.counts[f"malformed HTTP {'answered' if answer else 'cut off'}"] += 1


def _area(path: str) -> str:
    for begin, area in {"/api/v-alpha": "v-alpha", "/api/v1": "v1", "/reconcile": "reconcile"}.items():
        if path.startswith(begin):
            return area
    return "pages"


@contextmanager
def made(chance: random.Random) -> Iterator[Inputs]:
    """A server of the sample catalogue; once it has ended, its catalogue must agree with itself and its log be calm."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        url = f"sqlite:///{folder}/catalogue.db"
        with Server(url, "--sample", **_UNLIMITED) as server:
            server.listen()
            tokens = [*map(server.token, ("contributor", "curator", "admin")), "none"]
            document = server.get("/openapi.json").json
            documented = [
                (re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))), operations)
                for path, operations in document["paths"].items()
            ]
            ids = [each["id"] for name in COLLECTIONS for each in server.get(f"/api/v1/{name}?limit=5").json["items"]]
            addresses = [each for each in every_address(url) if "static" not in each.path]
            inputs = Inputs(server, chance, addresses, [quote(each, safe="") for each in ids], tokens, documented)
            yield inputs
            inputs.close()
            grown = Path(f"/proc/{server.pid}/status").read_text()
            log = server.stop()
        faults = [line for line in log.splitlines() if '"level":"error"' in line or "Traceback" in line]
        if faults:
            raise Wrong(f"the log tells of a fault: {faults[0][:2_000]}")
        database = Database(url)
        problems = check(database).problems
        database.close()
        if problems:
            raise Wrong(f"the catalogue does not agree with itself: {problems[0]}")
        print(f"the server had at most {int(grown.partition('VmHWM:')[2].split()[0]) // 1024} MiB")


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.inputs", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, help="how many are sent (100,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which it ends at the latest")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    until = time.monotonic() + options.seconds
    sent = 0
    try:
        with made(random.Random(options.seed)) as inputs:
            while sent < options.requests and time.monotonic() < until:
                inputs.one()
                sent += 1
            inputs.finish()
            for told, count in sorted(inputs.counts.items()):
                print(f"{told}: {count:,}")
    except Wrong as wrong:
        print(f"After {sent:,} requests: {wrong}")
        return 1
    print(f"{sent:,} requests, every answer as it is told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
