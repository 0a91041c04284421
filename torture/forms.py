"""The forms of pages, filled in as a browser would by people who are signed in, rightly or not."""

import gzip
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from lexarium.domain.accounts import Origin
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.stamps import now
from lexarium.exchange.incoming import Incoming
from lexarium.service.access import create_token
from lexarium.service.importing import import_records
from lexarium.store.database import Database
from lexarium.web.pages.session import COOKIE
from tests.person import PASSWORD, Person, account, forms
from tests.routes import Address
from tests.server import Server
from torture.files import OWL
from torture.mutations import mutated

_PROGRAMS = ("/api", "/reconcile")
"""Where nothing is a page."""
_HOOK = "http://127.0.0.1:9/"
"""Where nobody listens."""
_MOST_HOOKS = 5
_DAY_MS = 86_400_000
_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_KINDS = ("text/plain", "application/json", "multipart/form-data", "multipart/form-data; boundary=", "")
_BOUNDARY = "----x"
_FILE = "files"
"""The field that files are sent in."""
_FILES = {
    "concept.json": b'[{"id": "trm_one", "name": "one"}, {"id": "trm_two", "name": "two"}]',
    "terms.csv": b"id,name,definition\ntrm_three,three,Three of them.\n",
    "terms.tsv": b"id\tname\taliases\ntrm_four\tfour\tIV | quattuor\n",
    "terms.jsonl": b'{"collection": "concept", "record": {"id": "trm_five", "name": "five"}}\n',
    "pets.obo": b"format-version: 1.2\n\n[Term]\nid: PET:1\nname: dog\n\n[Term]\nid: PET:2\nname: pup\nis_a: PET:1\n",
    "pets.ttl": b"@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n<http://x/1> a s:Concept ; s:prefLabel 'cat' .",
    "pets.owl": OWL,
    "concept.json.gz": gzip.compress(b'[{"id": "trm_one", "name": "one"}]'),
}
_SHOWN = {
    "/sign-out": "/",
    "/changes/undo": "/changes?{id}",
    "/preview/{collection}": "/propose/{collection}",
    "/merge/{id}": "/merge/{id}?into={other}",
    "/revert/{id}": "/id/{id}/history",
    "/proposals/{id}/withdraw": "/proposals",
    "/review/{id}/accept": "/review/{id}",
    "/review/{id}/reject": "/review/{id}",
    "/review/{id}/undo": "/review/{id}",
    "/import/{ticket}/look": "/import/{ticket}",
    "/import/{ticket}/discard": "/import/{ticket}",
    "/admin/people/{id}/role": "/admin/people/{id}",
    "/admin/people/{id}/password": "/admin/people/{id}",
    "/account/tokens": "/account",
    "/account/password": "/account",
    "/admin/webhooks/{id}/enable": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/disable": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/rotate": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/test": "/admin/webhooks/{id}",
}
"""The pages on which forms stand that are not shown at their own address."""


class Filled(NamedTuple):
    """A form that is to be sent."""

    path: str
    """Which form."""
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Forms:
    """Every form of a server's pages, one after the other."""

    server: Server
    chance: random.Random
    paths: list[str]
    text: Callable[[], str]
    """Any text at all."""
    answers: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """How often each form was taken, and how often refused."""
    _people: dict[str, Person] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _turn: int = 0

    def next(self, path: str | None = None) -> Filled:
        """The next form, or that of a path: rightly filled in, or not."""
        self._turn += 1
        self._be_signed_in()
        path = path or self.paths[self._turn % len(self.paths)]
        return self._right(path) if self.chance.random() < 0.5 else self._wrong(path)

    def answered(self, path: str, status: int) -> None:
        """Note what was answered to a form."""
        self.answers[path, status < 400] += 1
        if path == "/account/password" and status < 400:
            self._people.clear()
            self._names.clear()

    def untried(self) -> dict[str, str]:
        """The forms that were never taken, or never refused, and which of the two."""
        told = {True: "taken", False: "refused"}
        return {path: told[way] for path in self.paths for way in told if not self.answers[path, way]}

    def cookie(self) -> str:
        """The cookie of someone who is signed in, or was."""
        return _cookies(self._person("admin"))

    def _right(self, path: str) -> Filled:
        target, fields = self._fields(path)
        kind, body = self._encoded(path, fields)
        return Filled(path, target, self._headers(kind), body)

    def _wrong(self, path: str) -> Filled:
        target, fields = self._fields(path)
        if self.chance.random() < 0.3:
            parts = dict.fromkeys(("id", "ticket", "collection"), quote(self.text(), safe="") or "x")
            target = Address(path, frozenset()).filled(**parts)
        kind, body = self._encoded(path, self._spoilt(fields))
        headers = self._headers(kind, self.chance.choice(["admin", "curator", "contributor"]))
        if self.chance.random() < 0.3:
            body = mutated(body, self.chance)
        if self.chance.random() < 0.2:
            headers["Content-Type"] = self.chance.choice(_KINDS)
        if self.chance.random() < 0.2:
            headers["Origin"] = self.chance.choice(["null", "https://evil.example", "::"])
        if self.chance.random() < 0.1:
            headers["Cookie"] = f"{COOKIE}={quote(self.text())}"
        return Filled(path, target, headers, body)

    def _headers(self, kind: str, role: str = "admin") -> dict[str, str]:
        own = {"Content-Type": kind, "Cookie": _cookies(self._person(role))}
        return {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", **own}

    def _fields(self, path: str) -> tuple[str, dict[str, str]]:
        """Where a form is sent, and its fields as its page has them, with what a person would write into them."""
        parts = {"collection": self.chance.choice(list(COLLECTIONS)), **self._made(path)}
        address, page = (each.format_map(parts) for each in (path, _SHOWN.get(path, path)))
        # Whoever is signed in is not asked to sign in.
        reader = Person(self.server) if path == "/sign-in" else self._person("admin")
        found = forms(reader.open(page))
        there = [form for form in found if form.method == "post" and form.action.partition("?")[0] == address]
        shown = [form for form in found if form.method == "post" and form.action.partition("?")[0] == page]
        assert there or shown, f"{page} has no form that is sent to {address}"
        form = self.chance.choice(there or shown)
        written = {
            "name": uuid.uuid4().hex,
            "account": self._name("admin"),
            "password": PASSWORD,
            "old_password": PASSWORD,
            "text": "Working memory and attention.",
            "reason": "no",
            "label": "a label",
            "url": _HOOK,
            "outside": "MESH:D008570",
            "q": "memory",
            "days": "1",
        }
        if path == "/sign-in":
            written["name"] = self._name("admin")
        fields = {name: value or written.get(name, "") for name, value in form.fields.items() if name != _FILE}
        _, name, value = self.chance.choice(form.buttons)
        return address, {**fields, **({name: value} if name else {})}

    def _spoilt(self, fields: dict[str, str]) -> dict[str, str]:
        """The same fields, some of them gone, some saying anything at all, some that nobody asked for."""
        for _ in range(self.chance.randint(1, 4)):
            name = self.chance.choice([*fields, "version", "act", "kept", "next", self.text()])
            if self.chance.random() < 0.2:
                fields.pop(name, None)
            else:
                fields[name] = self.text()
        return fields

    def _encoded(self, path: str, fields: Mapping[str, str]) -> tuple[str, bytes]:
        """The kind of a body, and the body: as one of the two kinds that forms have, with files where some are due."""
        files = self._files() if path == "/import" else {}
        if files or self.chance.random() < 0.4:
            return f"{_MULTIPART}; boundary={_BOUNDARY}", _multipart(fields, files)
        return _FORM, urlencode(fields, errors="replace").encode()

    def _files(self) -> dict[str, bytes]:
        """One or several files, some of them spoilt."""
        some = self.chance.sample(sorted(_FILES), self.chance.choice([1, 1, 1, 2, 4]))
        spoilt = self.chance.random() < 0.5
        return {name: mutated(_FILES[name], self.chance) if spoilt else _FILES[name] for name in some}

    def _be_signed_in(self) -> None:
        """Forget who is not signed in any more: forms end sessions, and then there is a new one."""
        for role, person in list(self._people.items()):
            if self.server.get("/account", Cookie=_cookies(person), Accept="text/html").status != 200:
                del self._people[role]

    def _person(self, role: str) -> Person:
        """Someone of this role, with a session like one that was had for a password, which takes longer."""
        if role not in self._people:
            name = self._names[role] = self._names.get(role) or account(self.server, role)
            self._people[role] = Person(self.server)
            self._people[role].cookies[COOKIE] = self._token_of(name, Origin.SIGN_IN, now() + _DAY_MS)[1]
        return self._people[role]

    def _name(self, role: str) -> str:
        """What they are called."""
        self._person(role)
        return self._names[role]

    def _made(self, path: str) -> dict[str, str]:
        """What a form is about, made anew, so that it is there and such that the form may be sent."""
        for begin, make in {
            "/revert": self._edited,
            "/merge": self._record,
            "/retire": self._record,
            "/edit": self._record,
            "/proposals": self._proposal,
            "/review/{id}/undo": self._accepted,
            "/review": self._proposal,
            "/import/": self._upload,
            "/changes/undo": self._imported,
            "/admin/people/": self._account,
            "/admin/tokens/": self._token,
            "/account/tokens/": self._token,
            "/admin/webhooks/{id}/enable": self._paused,
            "/admin/webhooks/{id}/disable": self._going,
            "/admin/webhooks/": self._webhook,
        }.items():
            if path.startswith(begin):
                made = make()
                other = {"other": self._record()} if begin == "/merge" else {}
                return {"id": made, "ticket": made, **other}
        return {}

    def _record(self) -> str:
        return self._id_of("concept", {"name": uuid.uuid4().hex})

    def _edited(self) -> str:
        record = self._record()
        self._v1("PATCH", f"concept/{record}", {"definition_text": "Other."})
        return record

    def _proposal(self) -> str:
        change = {"collection": "concept", "record": self._record(), "change": {"definition_text": "Better."}}
        return self._id_of("proposals", change)

    def _accepted(self) -> str:
        proposal = self._proposal()
        self._v1("POST", f"proposals/{proposal}/accept", {})
        return proposal

    def _account(self) -> str:
        return self._id_of("users", {"name": uuid.uuid4().hex, "role": "curator"})

    def _token(self) -> str:
        return self._token_of(self._name("admin"), Origin.COMMAND_LINE)[0]

    def _token_of(self, name: str, origin: Origin, expires: int | None = None) -> tuple[str, str]:
        """Have a token made: its id, and its secret."""
        database = Database(self.server.url)
        token, secret = create_token(database, name, expires=expires, origin=origin)
        database.close()
        return token.id, secret

    def _webhook(self) -> str:
        hooks: list[str] = [each["id"] for each in self._v1("GET", "webhooks", None)["items"]]
        for each in hooks[_MOST_HOOKS:]:
            self._v1("DELETE", f"webhooks/{each}", None)
        return hooks[0] if hooks else self._id_of("webhooks", {"url": _HOOK})

    def _paused(self) -> str:
        hook = self._webhook()
        self._v1("POST", f"webhooks/{hook}/disable", {})
        return hook

    def _going(self) -> str:
        hook = self._webhook()
        self._v1("POST", f"webhooks/{hook}/enable", {})
        return hook

    def _upload(self) -> str:
        headers = self._headers(f"{_MULTIPART}; boundary={_BOUNDARY}")
        new = json.dumps([{"id": f"trm_{uuid.uuid4().hex}", "name": "new"}]).encode()
        body = _multipart({"format": "", "collection": ""}, {"concept.json": new})
        sent = self.server.request("POST", "/import", headers, body)
        assert sent.status == 303, sent.body
        return sent.headers["location"].rpartition("/")[2]

    def _imported(self) -> str:
        """Have a record imported: which change that was, as an address asks for it."""
        database = Database(self.server.url)
        fields = {"id": f"trm_{uuid.uuid4().hex}", "name": "imported"}
        report = import_records(database, "here", [Incoming(1, "concept", fields=fields)])
        database.close()
        return f"since={report.revision}&until={report.until}"

    def _id_of(self, path: str, new: object) -> str:
        """Have something made: its id."""
        identifier: str = self._v1("POST", path, new)["id"]
        return identifier

    def _v1(self, method: str, path: str, body: object) -> Any:
        (secret,) = self._person("admin").cookies.values()
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "If-Match": "*"}
        sent = None if body is None else json.dumps(body)
        answer = self.server.request(method, f"/api/v1/{path}", headers, sent)
        assert answer.status < 300, (method, path, answer.body)
        return answer.json if answer.body else None


def paths_of(addresses: list[Address]) -> list[str]:
    """Where the forms of pages are sent."""
    return [each.path for each in addresses if "POST" in each.methods and not each.path.startswith(_PROGRAMS)]


def _cookies(person: Person) -> str:
    return "; ".join(f"{name}={value}" for name, value in person.cookies.items())


def _multipart(fields: Mapping[str, str], files: Mapping[str, bytes]) -> bytes:
    parts = [f'name="{name}"\r\n\r\n{value}'.encode(errors="replace") for name, value in fields.items()]
    parts += [f'name="{_FILE}"; filename="{name}"\r\n\r\n'.encode() + content for name, content in files.items()]
    begin = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    return b"".join(begin + part + b"\r\n" for part in parts) + f"--{_BOUNDARY}--\r\n".encode()
