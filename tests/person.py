"""Someone whose browser has no scripts: it keeps a cookie, opens pages, fills in forms, and goes where it is sent."""

import re
import uuid
from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from lexarium.domain.accounts import Role
from lexarium.service.access import add_account
from lexarium.service.passwords import set_password
from lexarium.store.database import Database
from tests.server import Answer, Server

PASSWORD = "correct horse battery"
_READS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
_SENDS = {**_READS, "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


class Person:
    """One browser before one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        self.path = ""
        self.status = 0
        self.answer = Answer(0, {}, b"")

    @property
    def body(self) -> str:
        """The page that is open."""
        return self.answer.body.decode()

    def open(self, path: str, status: int = 200) -> str:
        """Open a page, wherever that leads."""
        self._took("GET", path, _READS, None)
        return self._followed(status)

    def send(self, path: str, fields: Mapping[str, str], status: int = 200, **headers: str) -> str:
        """Send a form, and go where that leads."""
        own = {**_SENDS, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._took("POST", path, own, urlencode(fields))
        return self._followed(status)

    def press(self, label: str, fields: Mapping[str, str] | None = None, status: int = 200) -> str:
        """Fill in the form of the open page that has a button with this label, and press that."""
        form = next(form for form in forms(self.body) if any(each[0] == label for each in form.buttons))
        _, name, value = next(each for each in form.buttons if each[0] == label)
        unknown = set(fields or {}) - set(form.fields) - set(form.choices)
        assert not unknown, f"there is no {unknown} in {sorted(form.fields)}"
        sent = {**form.fields, **(fields or {}), **({name: value} if name else {})}
        if form.method == "post":
            return self.send(form.action or self.path, sent, status)
        return self.open(f"{form.action or self.path.partition('?')[0]}?{urlencode(sent)}", status)

    def sign_in(self, role: str, path: str = "/") -> str:
        """Sign in with a new account; its name."""
        name = account(self.server, role)
        self.send("/sign-in", {"name": name, "password": PASSWORD, "next": path})
        assert self.cookies, self.body
        return name

    def _took(self, method: str, path: str, headers: Mapping[str, str], body: str | None) -> None:
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        self.path = path
        self.answer = self.server.request(method, path, {**headers, **(cookie if self.cookies else {})}, body)
        for name, morsel in SimpleCookie(self.answer.headers.get("set-cookie", "")).items():
            self.cookies.pop(name, None)
            if morsel.value:
                self.cookies[name] = morsel.value

    def _followed(self, status: int) -> str:
        if self.answer.status in (303, 308) and self.answer.status != status:
            return self.open(self.answer.headers["location"], status)
        assert self.answer.status == status, f"{self.answer.status} at {self.path}: {text(self.body)}"
        return self.body


class _Form:
    def __init__(self, action: str, method: str) -> None:
        self.action, self.method = action, method
        self.fields: dict[str, str] = {}
        self.choices: set[str] = set()
        """The names of boxes and radio buttons, which are sent only if they are chosen."""
        self.buttons: list[tuple[str, str, str]] = []
        """What each says, its name and its value."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._within: _Form | None = None
        self._text: list[str] | None = None
        self._own: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._within = _Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._within)
        if self._within is None:
            return
        if tag == "input" and "name" in given:
            self._input(self._within, given)
        elif tag == "select":
            self._own = given
            self._within.fields.pop(given["name"], None)
        elif tag == "option" and ("selected" in given or self._own["name"] not in self._within.fields):
            self._within.fields[self._own["name"]] = given["value"]
        elif tag in ("textarea", "button"):
            self._own, self._text = given, []

    def _input(self, form: _Form, given: Mapping[str, str]) -> None:
        if given.get("type") in ("checkbox", "radio"):
            form.choices.add(given["name"])
            if "checked" not in given:
                return
        form.fields[given["name"]] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._within = None
        if self._within is None or self._text is None or tag not in ("textarea", "button"):
            return
        text = "".join(self._text)
        if tag == "textarea":
            # As browsers do: one line break after the tag is no part of the text, and each is sent as two characters.
            self._within.fields[self._own["name"]] = text.removeprefix("\n").replace("\n", "\r\n")
        elif self._own.get("type") != "button":
            own = self._own
            self._within.buttons.append((" ".join(text.split()), own.get("name", ""), own.get("value", "")))
        self._text = None


def forms(body: str) -> list[_Form]:
    """The forms of a page, filled in as it has them."""
    reader = _Reader()
    reader.feed(body)
    return reader.forms


def account(server: Server, role: str) -> str:
    """A new account with the password; its name."""
    database = Database(server.url)
    name = add_account(database, f"{role} {uuid.uuid4().hex[:8]}", Role(role)).name
    set_password(database, name, PASSWORD)
    database.close()
    return name


def text(body: str) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())
