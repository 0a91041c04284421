"""Use pages and forms over HTTP, without a browser."""

import re
import uuid
from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.passwords import set_password
from lexarium.store.database import Database
from tests.support.server import HttpResponse, Server

PASSWORD = "correct horse battery"
_PAGE_HEADERS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
_FORM_HEADERS = {**_PAGE_HEADERS, "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


class BrowserlessClient:
    """Client that keeps cookies, submits forms and follows redirects."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        self.path = ""
        self.status = 0
        self.response = HttpResponse(0, {}, b"")

    @property
    def body(self) -> str:
        """Body of the open page."""
        return self.response.body.decode()

    def open(self, path: str, status: int = 200) -> str:
        """Open a page and follow redirects; return its body."""
        self._send_request("GET", path, _PAGE_HEADERS, None)
        return self._follow_redirects(status)

    def send(self, path: str, fields: Mapping[str, str], status: int = 200, **headers: str) -> str:
        """Submit form fields and follow redirects; return the body."""
        all_headers = {**_FORM_HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._send_request("POST", path, all_headers, urlencode(fields))
        return self._follow_redirects(status)

    def press(self, label: str, fields: Mapping[str, str] | None = None, status: int = 200) -> str:
        """Fill in the form that has a button with this label, and press the button."""
        form = next(form for form in parse_forms(self.body) if any(button[0] == label for button in form.buttons))
        _, name, value = next(button for button in form.buttons if button[0] == label)
        unknown = set(fields or {}) - set(form.fields) - set(form.choices)
        assert not unknown, f"there is no {unknown} in {sorted(form.fields)}"
        form_data = {**form.fields, **(fields or {}), **({name: value} if name else {})}
        if form.method == "post":
            return self.send(form.action or self.path, form_data, status)
        return self.open(f"{form.action or self.path.partition('?')[0]}?{urlencode(form_data)}", status)

    def sign_in(self, role: str, path: str = "/") -> str:
        """Sign in with a new account and return its name."""
        name = create_account(self.server, role)
        self.send("/sign-in", {"name": name, "password": PASSWORD, "next": path})
        assert self.cookies, self.body
        return name

    def _send_request(self, method: str, path: str, headers: Mapping[str, str], body: str | None) -> None:
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        self.path = path
        self.response = self.server.request(method, path, {**headers, **(cookie if self.cookies else {})}, body)
        for name, morsel in SimpleCookie(self.response.headers.get("set-cookie", "")).items():
            self.cookies.pop(name, None)
            if morsel.value:
                self.cookies[name] = morsel.value

    def _follow_redirects(self, status: int) -> str:
        if self.response.status in (303, 308) and self.response.status != status:
            return self.open(self.response.headers["location"], status)
        assert self.response.status == status, f"{self.response.status} at {self.path}: {strip_tags(self.body)}"
        return self.body


class _Form:
    def __init__(self, action: str, method: str) -> None:
        self.action, self.method = action, method
        self.fields: dict[str, str] = {}
        # Names of checkboxes and radio buttons, which are sent only if checked.
        self.choices: set[str] = set()
        # Label, name and value of each button.
        self.buttons: list[tuple[str, str, str]] = []


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._form: _Form | None = None
        self._text: list[str] | None = None
        self._attributes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = _Form(attributes.get("action", ""), attributes.get("method", "get").lower())
            self.forms.append(self._form)
        if self._form is None:
            return
        if tag == "input" and "name" in attributes:
            self._add_input(self._form, attributes)
        elif tag == "select":
            self._attributes = attributes
            self._form.fields.pop(attributes["name"], None)
        elif tag == "option" and ("selected" in attributes or self._attributes["name"] not in self._form.fields):
            self._form.fields[self._attributes["name"]] = attributes["value"]
        elif tag in ("textarea", "button"):
            self._attributes, self._text = attributes, []

    def _add_input(self, form: _Form, attributes: Mapping[str, str]) -> None:
        if attributes.get("type") in ("checkbox", "radio"):
            form.choices.add(attributes["name"])
            if "checked" not in attributes:
                return
        value = attributes.get("value", "")
        # Like browsers: only hidden fields keep their line breaks.
        form.fields[attributes["name"]] = value if attributes.get("type") == "hidden" else value.replace("\n", "")

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        if self._form is None or self._text is None or tag not in ("textarea", "button"):
            return
        text = "".join(self._text)
        if tag == "textarea":
            # Like browsers: drop one line break after the tag, and send each other one as CRLF.
            self._form.fields[self._attributes["name"]] = text.removeprefix("\n").replace("\n", "\r\n")
        elif self._attributes.get("type") != "button":
            attributes = self._attributes
            self._form.buttons.append((" ".join(text.split()), attributes.get("name", ""), attributes.get("value", "")))
        self._text = None


def parse_forms(body: str) -> list[_Form]:
    """Return the forms of a page with their current values."""
    reader = _FormParser()
    reader.feed(body.replace("\r\n", "\n").replace("\r", "\n"))  # like browsers
    return reader.forms


def create_account(server: Server, role: str) -> str:
    """Create an account with `PASSWORD` and return its name."""
    database = Database(server.url)
    name = add_account(database, f"{role} {uuid.uuid4().hex[:8]}", Role(role)).name
    set_password(database, name, PASSWORD)
    database.close()
    return name


def strip_tags(body: str) -> str:
    """Return the text of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())


def extract_text(body: str) -> str:
    """Return the text of a page's main part, with a space for each tag."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body.partition("<main")[2])).split())
