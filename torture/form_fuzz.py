"""Fill in page forms, as signed-in users, with valid and invalid input."""

import gzip
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from lexarium.domain.account import Origin
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.text.timestamps import now_ms
from lexarium.formats.parsed import ParsedRecord
from lexarium.services.access.tokens import create_token
from lexarium.services.transfer.field_import.importer import import_records
from lexarium.store.database import Database
from lexarium.web.http.session import COOKIE
from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account, parse_forms
from tests.support.route_list import RoutePattern
from tests.support.server import Server
from torture.import_fuzz import OWL_SAMPLE
from torture.mutations import mutate

# The same forms for records whose id has a slash, and buttons without fields.
_OTHER_FORMS = {
    *("/edit", "/relations", "/retire", "/merge", "/revert", "/comments"),
    *(f"/admin/vocabularies/{{slug}}/{name}" for name in ("default", "valpha", "remove", "restore")),
}
# Nothing listens there.
_WEBHOOK_URL = "http://127.0.0.1:9/"
_MAX_WEBHOOKS = 5
_DAY_MS = 86_400_000
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_CONTENT_TYPES = ("text/plain", "application/json", "multipart/form-data", "multipart/form-data; boundary=", "")
_BOUNDARY = "----x"
_FILE_FIELD = "files"
_FILES = {
    "concept.json": b'[{"id": "trm_one", "name": "one"}, {"id": "trm_two", "name": "two"}]',
    "terms.csv": b"id,name,definition\ntrm_three,three,Three of them.\n",
    "terms.tsv": b"id\tname\taliases\ntrm_four\tfour\tIV | quattuor\n",
    "terms.jsonl": b'{"collection": "concept", "record": {"id": "trm_five", "name": "five"}}\n',
    "pets.obo": b"format-version: 1.2\n\n[Term]\nid: PET:1\nname: dog\n\n[Term]\nid: PET:2\nname: pup\nis_a: PET:1\n",
    "pets.ttl": b"@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n<http://x/1> a s:Concept ; s:prefLabel 'cat' .",
    "pets.owl": OWL_SAMPLE,
    "concept.json.gz": gzip.compress(b'[{"id": "trm_one", "name": "one"}]'),
}
# Pages that contain forms with another path.
_PAGE_BY_FORM = {
    "/sign-out": "/",
    "/changes/undo": "/changes?{id}",
    "/preview/{collection}": "/propose/{collection}",
    "/merge/{id}": "/merge/{id}?into={other}",
    "/revert/{id}": "/id/{id}/history",
    "/notifications/read": "/notifications",
    "/proposals/{id}/withdraw": "/proposals",
    "/review/{id}/accept": "/review/{id}",
    "/review/{id}/reject": "/review/{id}",
    "/review/{id}/undo": "/review/{id}",
    "/import/{upload}/preview": "/import/{upload}",
    "/import/{upload}/discard": "/import/{upload}",
    "/admin/vocabularies/{slug}/schema": "/admin/vocabularies/{slug}",
    "/admin/people/{id}/role": "/admin/people/{id}",
    "/admin/people/{id}/vocabulary": "/admin/people/{id}",
    "/admin/people/{id}/password": "/admin/people/{id}",
    "/account/tokens": "/account",
    "/account/password": "/account",
    "/admin/webhooks/{id}/enable": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/disable": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/rotate": "/admin/webhooks/{id}",
    "/admin/webhooks/{id}/test": "/admin/webhooks/{id}",
}


class FormRequest(NamedTuple):
    """Request that submits a form."""

    # Path pattern of the form.
    path: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FormFuzzer:
    """Submit every form of a server's pages in turn."""

    server: Server
    rng: random.Random
    paths: list[str]
    generate_text: Callable[[], str]
    # Number of accepted and of rejected submissions, by form.
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    _clients: dict[str, BrowserlessClient] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _turn: int = 0

    def build_next(self, path: str | None = None) -> FormRequest:
        """Build a valid or invalid submission of the next form, or of the form with a path."""
        self._turn += 1
        self._drop_expired_sessions()
        path = path or self.paths[self._turn % len(self.paths)]
        return self._build_valid(path) if self.rng.random() < 0.5 else self._build_invalid(path)

    def record_response(self, path: str, status: int) -> None:
        """Record the response to a submission."""
        self.outcomes[path, status < 400] += 1
        if path == "/account/password" and status < 400:
            self._clients.clear()
            self._names.clear()

    def list_untested(self) -> dict[str, str]:
        """Return the forms that were never accepted or never rejected, with which of the two."""
        labels = {True: "taken", False: "refused"}
        return {
            path: labels[is_accepted]
            for path in self.paths
            for is_accepted in labels
            if not self.outcomes[path, is_accepted]
        }

    def get_cookie(self) -> str:
        """Return the cookie of a session, which may have ended."""
        return _format_cookies(self._get_client("admin"))

    def _build_valid(self, path: str) -> FormRequest:
        target, fields = self._load_fields(path)
        content_type, body = self._encode(path, fields)
        return FormRequest(path, target, self._build_headers(content_type), body)

    def _build_invalid(self, path: str) -> FormRequest:
        target, fields = self._load_fields(path)
        if self.rng.random() < 0.3:
            parts = dict.fromkeys(("id", "upload", "collection"), quote(self.generate_text(), safe="") or "x")
            target = RoutePattern(path, frozenset()).fill_path(**parts)
        content_type, body = self._encode(path, self._corrupt_fields(fields))
        headers = self._build_headers(content_type, self.rng.choice(["admin", "curator", "contributor"]))
        if self.rng.random() < 0.3:
            body = mutate(body, self.rng)
        if self.rng.random() < 0.2:
            headers["Content-Type"] = self.rng.choice(_CONTENT_TYPES)
        if self.rng.random() < 0.2:
            headers["Origin"] = self.rng.choice(["null", "https://evil.example", "::"])
        if self.rng.random() < 0.1:
            headers["Cookie"] = f"{COOKIE}={quote(self.generate_text())}"
        return FormRequest(path, target, headers, body)

    def _build_headers(self, content_type: str, role: str = "admin") -> dict[str, str]:
        own_headers = {"Content-Type": content_type, "Cookie": _format_cookies(self._get_client(role))}
        return {"Accept": "text/html", "Sec-Fetch-Site": "same-origin", **own_headers}

    def _load_fields(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the target of a form and its fields, with plausible input."""
        places = {"collection": self.rng.choice(list(MAIN_COLLECTIONS)), "vocabulary": "main", "slug": "main"}
        parts = {**places, **self._create_subject(path)}
        address, page = (template.format_map(parts) for template in (path, _PAGE_BY_FORM.get(path, path)))
        # A signed-in user does not see the sign-in form.
        client = BrowserlessClient(self.server) if path == "/sign-in" else self._get_client("admin")
        page_forms = parse_forms(client.open(page))
        matching_forms = [
            form for form in page_forms if form.method == "post" and form.action.partition("?")[0] == address
        ]
        same_page_forms = [
            form for form in page_forms if form.method == "post" and form.action.partition("?")[0] == page
        ]
        assert matching_forms or same_page_forms, f"{page} has no form that is sent to {address}"
        form = self.rng.choice(matching_forms or same_page_forms)
        typed_values = {
            "name": uuid.uuid4().hex,
            "slug": f"v{uuid.uuid4().hex}",
            "title": "A vocabulary",
            "account": self._get_name("admin"),
            "password": PASSWORD,
            "old_password": PASSWORD,
            "text": "Working memory and attention.",
            "reason": "no",
            "label": "a label",
            "url": _WEBHOOK_URL,
            "outside": "MESH:D008570",
            "q": "memory",
            "days": "1",
        }
        if path == "/sign-in":
            typed_values["name"] = self._get_name("admin")
        fields = {
            name: value or typed_values.get(name, "") for name, value in form.fields.items() if name != _FILE_FIELD
        }
        _, name, value = self.rng.choice(form.buttons)
        return address, {**fields, **({name: value} if name else {})}

    def _corrupt_fields(self, fields: dict[str, str]) -> dict[str, str]:
        """Remove, replace and add fields at random."""
        for _ in range(self.rng.randint(1, 4)):
            name = self.rng.choice([*fields, "version", "act", "kept", "next", self.generate_text()])
            if self.rng.random() < 0.2:
                fields.pop(name, None)
            else:
                fields[name] = self.generate_text()
        return fields

    def _encode(self, path: str, fields: Mapping[str, str]) -> tuple[str, bytes]:
        """Encode the fields as one of the two form media types, with files where the form takes them."""
        files = self._pick_files() if path == "/import" else {}
        if files or self.rng.random() < 0.4:
            return f"{_MULTIPART}; boundary={_BOUNDARY}", _encode_multipart(fields, files)
        return _URLENCODED, urlencode(fields, errors="replace").encode()

    def _pick_files(self) -> dict[str, bytes]:
        """Return some files, a few of them corrupted."""
        names = self.rng.sample(sorted(_FILES), self.rng.choice([1, 1, 1, 2, 4]))
        is_corrupted = self.rng.random() < 0.5
        return {name: mutate(_FILES[name], self.rng) if is_corrupted else _FILES[name] for name in names}

    def _drop_expired_sessions(self) -> None:
        """Forget sessions that a form has ended."""
        for role, client in list(self._clients.items()):
            if self.server.get("/account", Cookie=_format_cookies(client), Accept="text/html").status != 200:
                del self._clients[role]

    def _get_client(self, role: str) -> BrowserlessClient:
        """Return a signed-in client with a role, its session created without hashing a password, which takes long."""
        if role not in self._clients:
            name = self._names[role] = self._names.get(role) or create_account(self.server, role)
            self._clients[role] = BrowserlessClient(self.server)
            self._clients[role].cookies[COOKIE] = self._create_token(name, Origin.SIGN_IN, now_ms() + _DAY_MS)[1]
        return self._clients[role]

    def _get_name(self, role: str) -> str:
        self._get_client(role)
        return self._names[role]

    def _create_subject(self, path: str) -> dict[str, str]:
        """Create the subject of a form in a state that the form applies to; return its path parameters."""
        for prefix, create in {
            "/revert": self._create_edited_record,
            "/merge": self._create_record,
            "/retire": self._create_record,
            "/edit": self._create_record,
            "/id/": self._create_record,
            "/notifications/": self._create_notification,
            "/proposals": self._create_proposal,
            "/review/{id}/undo": self._create_accepted_proposal,
            "/review": self._create_proposal,
            "/import/": self._upload_file,
            "/changes/undo": self._import_record,
            "/admin/vocabularies/": self._create_vocabulary,
            "/admin/people/": self._create_account,
            "/admin/tokens/": self._create_token_id,
            "/account/tokens/": self._create_token_id,
            "/admin/webhooks/{id}/enable": self._create_paused_webhook,
            "/admin/webhooks/{id}/disable": self._create_active_webhook,
            "/admin/webhooks/": self._get_webhook,
        }.items():
            if path.startswith(prefix):
                subject_id = create()
                other = {"other": self._create_record()} if prefix == "/merge" else {}
                return {"id": subject_id, "upload": subject_id, "slug": subject_id, **other}
        return {}

    def _create_vocabulary(self) -> str:
        slug = f"v{uuid.uuid4().hex}"
        self._send_v1("POST", "vocabularies", {"slug": slug, "title": slug, "schema": "skos"})
        return slug

    def _create_record(self) -> str:
        return self._create("concept", {"name": uuid.uuid4().hex})

    def _create_edited_record(self) -> str:
        record = self._create_record()
        self._send_v1("PATCH", f"concept/{record}", {"definition_text": "Other."})
        return record

    def _create_proposal(self) -> str:
        change = {"collection": "concept", "record": self._create_record(), "change": {"definition_text": "Better."}}
        return self._create("proposals", change)

    def _create_accepted_proposal(self) -> str:
        proposal = self._create_proposal()
        self._send_v1("POST", f"proposals/{proposal}/accept", {})
        return proposal

    def _create_notification(self) -> str:
        """Reply as a curator to a comment of the administrator."""
        path = f"concept/{self._create_record()}/comments"
        thread = self._create(path, {"text": "Is this right?"})
        self._send_v1("POST", f"{path}/{thread}/replies", {"text": "Yes."}, "curator")
        return thread

    def _create_account(self) -> str:
        return self._create("users", {"name": uuid.uuid4().hex, "role": "curator"})

    def _create_token_id(self) -> str:
        return self._create_token(self._get_name("admin"), Origin.COMMAND_LINE)[0]

    def _create_token(self, name: str, origin: Origin, expires: int | None = None) -> tuple[str, str]:
        """Create a token and return its id and secret."""
        database = Database(self.server.url)
        token, secret = create_token(database, name, expires_at=expires, origin=origin)
        database.close()
        return token.id, secret

    def _get_webhook(self) -> str:
        webhook_ids: list[str] = [webhook_id["id"] for webhook_id in self._send_v1("GET", "webhooks", None)["items"]]
        for webhook_id in webhook_ids[_MAX_WEBHOOKS:]:
            self._send_v1("DELETE", f"webhooks/{webhook_id}", None)
        return webhook_ids[0] if webhook_ids else self._create("webhooks", {"url": _WEBHOOK_URL})

    def _create_paused_webhook(self) -> str:
        webhook_id = self._get_webhook()
        self._send_v1("POST", f"webhooks/{webhook_id}/disable", {})
        return webhook_id

    def _create_active_webhook(self) -> str:
        webhook_id = self._get_webhook()
        self._send_v1("POST", f"webhooks/{webhook_id}/enable", {})
        return webhook_id

    def _upload_file(self) -> str:
        headers = self._build_headers(f"{_MULTIPART}; boundary={_BOUNDARY}")
        content = json.dumps([{"id": f"trm_{uuid.uuid4().hex}", "name": "new"}]).encode()
        body = _encode_multipart({"format": "", "collection": ""}, {"concept.json": content})
        response = self.server.request("POST", "/import", headers, body)
        assert response.status == 303, response.body
        return response.headers["location"].rpartition("/")[2]

    def _import_record(self) -> str:
        """Import a record and return the query parameters of that change."""
        database = Database(self.server.url)
        fields = {"id": f"trm_{uuid.uuid4().hex}", "name": "imported"}
        report = import_records(database, "here", [ParsedRecord(1, "concept", fields=fields)])
        database.close()
        return f"since={report.base_revision}&until={report.last_revision}"

    def _create(self, path: str, item: object) -> str:
        """Create an item and return its id."""
        identifier: str = self._send_v1("POST", path, item)["id"]
        return identifier

    def _send_v1(self, method: str, path: str, body: object, role: str = "admin") -> Any:
        (secret,) = self._get_client(role).cookies.values()
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "If-Match": "*"}
        payload = None if body is None else json.dumps(body)
        response = self.server.request(method, f"/api/v1/{path}", headers, payload)
        assert response.status < 300, (method, path, response.body)
        return response.json if response.body else None


def list_form_paths(routes: list[RoutePattern]) -> list[str]:
    """Return the paths that forms are sent to."""
    paths = [route.path for route in routes if "POST" in route.methods and "/reconcile" not in route.path]
    return [path for path in paths if not path.startswith("/api") and path not in _OTHER_FORMS]


def _format_cookies(client: BrowserlessClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def _encode_multipart(fields: Mapping[str, str], files: Mapping[str, bytes]) -> bytes:
    parts = [f'name="{name}"\r\n\r\n{value}'.encode(errors="replace") for name, value in fields.items()]
    parts += [f'name="{_FILE_FIELD}"; filename="{name}"\r\n\r\n'.encode() + content for name, content in files.items()]
    begin = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    return b"".join(begin + part + b"\r\n" for part in parts) + f"--{_BOUNDARY}--\r\n".encode()
