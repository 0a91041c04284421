"""What every page has: the look, its headers, how it is declared, how a form is taken and how a mistake is told.

A page is a function of the site and a request, in a table of its module; `addresses` gathers the tables. It is run in
a thread, so it may read the database as it likes, and raise any error of the domain.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, cast

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from lexarium import __version__
from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import StoreError, Unauthenticated, Unready
from lexarium.service.access import LEAST_ROLE, Caller, Callers, Deed
from lexarium.service.annotating import Annotating
from lexarium.service.classes import Classes
from lexarium.service.finding import Finder
from lexarium.service.proposals import waiting
from lexarium.service.statistics import Statistics
from lexarium.service.uploads import Uploads
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.answers import Answers
from lexarium.web.bodies import read_fields
from lexarium.web.encodings import IDENTITY, chosen, encoded
from lexarium.web.limits import Limits
from lexarium.web.pages import session, wording
from lexarium.web.pages.session import caller_of
from lexarium.web.problems import Explained, HttpProblem, explained, respond

_FOLDER = Path(__file__).parents[1]
STATIC = _FOLDER / "static"
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
}
_FOR_PROGRAMS = "/api"
"""Below this every error is JSON, whatever a client accepts."""
_COUNTED = 1_000
"""How far those are counted that wait, on every page."""
_YEAR = 31_536_000
SIGN_IN = "/sign-in"


@cache
def templates() -> Environment:
    """The templates, with the words that pages are made of."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "day": wording.day,
        "done": wording.done,
        "label": wording.label,
        "minute": wording.minute,
        "month": wording.month,
        "number": wording.number,
        "paragraphs": wording.paragraphs,
        "path": wording.path_of,
        "plural": wording.plural,
        "singular": wording.singular,
        "stamp": wording.stamp,
    }
    environment.globals |= {
        "collections": COLLECTIONS,
        "several": wording.several,
        "static": static_address,
        "software": f"Lexarium {__version__}",
        "with_query": wording.with_query,
    }
    return environment


@cache
def static_address(name: str) -> str:
    """Where a file of ours is served, under a name that changes with it, so that it may be kept for good."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Visitor:
    """Someone who is signed in, as the top of every page knows them."""

    caller: Caller
    waiting: int
    """How many proposals wait for them to be decided, counted no further than is told."""

    @property
    def waiting_told(self) -> str:
        """How many wait, in few characters."""
        return str(self.waiting) if self.waiting < _COUNTED else f"{_COUNTED - 1}+"

    @property
    def name(self) -> str:
        """What they are called."""
        return self.caller.account.name

    @property
    def publishes(self) -> bool:
        """Whether they may publish."""
        return self.caller.may(Deed.PUBLISH)

    @property
    def administers(self) -> bool:
        """Whether they may administer."""
        return self.caller.may(Deed.ADMINISTER)


@dataclass(frozen=True)
class Site:
    """The parts of one catalogue that pages are made of."""

    database: Database
    finder: Finder
    annotating: Annotating
    statistics: Statistics
    classes: Classes
    limits: Limits
    about: About
    callers: Callers
    answers: Answers
    uploads: Uploads
    settings: Settings

    def render(
        self,
        request: Request,
        template: str,
        told: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """A page, with who is signed in at its top. It takes some milliseconds: to be called in a thread."""
        visitor = self._visitor(request)
        own = {"visitor": visitor, "asked_for": address_of(request), **told}
        private = {} if visitor is None else {"cache-control": "private, no-store"}
        body = self.body(template, own, request.url.path, base_of(request))
        response = self.send(request, body, status, {**(headers or {}), **private})
        if visitor is None and getattr(request.state, "caller", self) is None:
            session.end(request, response)
        return response

    def _visitor(self, request: Request) -> Visitor | None:
        try:
            caller = caller_of(self, request)
            if caller is None:
                return None
            if not caller.may(Deed.PUBLISH):
                return Visitor(caller, 0)
            with self.database.read() as snapshot:
                return Visitor(caller, waiting(snapshot, _COUNTED))
        except StoreError:  # A page that can be shown without knowing who asks is shown.
            return None

    def body(self, template: str, told: Mapping[str, Any], here: str, base: str) -> bytes:
        """What a page at an address holds; `base` is where the site is, as whoever asks knows it."""
        context = {"about": self.about, "here": here, "base": base, "q": "", "visitor": None, "asked_for": here}
        return templates().get_template(template).render({**context, **told}).encode(errors="replace")

    def send(
        self, request: Request, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A page as an answer, compressed for whoever accepts it."""
        own = {**SECURITY_HEADERS, "cache-control": "no-cache", "vary": "Accept-Encoding", **(headers or {})}
        encoding = chosen(request.headers.get("accept-encoding", "").encode("latin-1"))
        if encoding != IDENTITY:
            own["content-encoding"] = encoding
        return Response(encoded(encoding, body), status, own, media_type="text/html")

    def handle_error(self, request: Request, error: Exception) -> Response:
        """The framework's handler for every error that reached it: a page for whoever reads pages."""
        return self.error_page(request, error) if wants_page(request) else respond(error)

    def error_page(self, request: Request, error: Exception) -> Response:
        """What went wrong, as a page."""
        told = explained(error)
        return self.render(request, "error.html", {"error": told}, told.status, _sendable(told))


def _sendable(told: Explained) -> dict[str, str]:
    return {name.lower(): value for name, value in told.headers.items()}


def address_of(request: Request) -> str:
    """What was asked for, with its parameters, as a path on this site."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def base_of(request: Request) -> str:
    """Where the site is, as whoever asks knows it."""
    return str(request.base_url).rstrip("/")


def wants_page(request: Request) -> bool:
    """Whether a request is a person's, who reads pages."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(_FOR_PROGRAMS)


def sent_to_sign_in(request: Request) -> Response:
    """Where someone signs in, and comes back from."""
    return RedirectResponse(wording.with_query(SIGN_IN, next=address_of(request)), 303, _UNKEPT)


@dataclass(frozen=True)
class Page:
    """A page, and where it is."""

    path: str
    answer: Callable[[Site, Request], Response]
    deed: Deed | None = None
    """What one must be allowed to see it: whoever is not signed in is sent to do so first."""

    def route(self, site: Site) -> Route:
        """It as the framework has it."""

        def endpoint(request: Request) -> Response:
            if self.deed is not None:
                caller = caller_of(site, request)
                if caller is None:
                    return sent_to_sign_in(request)
                _refuse(caller, self.deed)
            return self.answer(site, request)

        return Route(self.path, endpoint)


@dataclass(frozen=True)
class Form:
    """What answers a form that was sent, and where. Its fields are read, within the limits, and come from this site."""

    path: str
    answer: Callable[[Site, Request, Mapping[str, Any]], Response | Awaitable[Response]]
    """Run in a thread, unless it is a coroutine function: that one has something to wait for."""
    deed: Deed | None = None
    """What one must be allowed to send it; it counts as a write of theirs."""

    def route(self, site: Site) -> Route:
        """It as the framework has it."""

        async def endpoint(request: Request) -> Response:
            refuse_foreign(request)
            fields, _ = await read_fields(request, site.limits)
            try:
                return await self._answered(site, request, fields)
            except (HttpProblem, StoreError, Unready) as error:
                refused = isinstance(error, HttpProblem) and error.status not in _LATER
                if refused or not _keepable(fields) or not wants_page(request):
                    raise
                return await run_in_threadpool(_send_later, site, request, fields, error)

        return Route(self.path, endpoint, methods=["POST"])

    async def _answered(self, site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
        if self.deed is not None and not await admitted(site, request, self.deed):
            return await run_in_threadpool(_sign_in_first, site, request, fields)
        if iscoroutinefunction(self.answer):
            waited: Response = await self.answer(site, request, fields)
            return waited
        return await run_in_threadpool(cast(_Plain, self.answer), site, request, fields)


_LATER = (429, 503)
"""What HTTP calls it where the same form, sent a little later, may be taken."""
_UNKEPT = {"cache-control": "no-store"}


async def admitted(site: Site, request: Request, deed: Deed) -> bool:
    """Whether whoever sends a form is signed in; then it counts as a write of theirs. Raises where they may not."""
    caller = await run_in_threadpool(caller_of, site, request)
    if caller is None:
        return False
    _refuse(caller, deed)
    site.limits.writes.take(caller.token)
    return True


async def form_kept(site: Site, request: Request) -> Response:
    """The answer to a form of someone who is not signed in any more: what they wrote is there for after that."""
    refuse_foreign(request)
    fields, _ = await read_fields(request, site.limits)
    return await run_in_threadpool(_sign_in_first, site, request, fields)


def _sign_in_first(site: Site, request: Request, fields: Mapping[str, Any]) -> Response:
    """What someone gets who sent a form and is not signed in any more: nothing that they wrote is lost.

    But for a form with a password, which no page may show: that is to be filled in again, where it stands.
    """
    wrong = explained(Unauthenticated("You are not signed in any more."))
    if _keepable(fields):
        told = {"next": address_of(request), "kept": orjson.dumps(dict(fields)).decode(), "wrong": wrong.detail}
    else:
        told = {"next": request.url.path.rpartition("/")[0], "wrong": wrong.detail}
    return site.render(request, "sign_in.html", told, wrong.status, {**_sendable(wrong), **_UNKEPT})


def _send_later(site: Site, request: Request, fields: Mapping[str, Any], error: Exception) -> Response:
    """What someone gets whose form cannot be taken at this moment: nothing that they wrote is lost."""
    wrong = explained(error)
    told = {"next": address_of(request), "fields": fields, "wrong": wrong}
    return site.render(request, "send_again.html", told, wrong.status, {**_sendable(wrong), **_UNKEPT})


def _keepable(fields: Mapping[str, Any]) -> bool:
    """Whether a page may hold what was sent: none may hold a password."""
    return not any("password" in name for name in fields)


def _refuse(caller: Caller, deed: Deed) -> None:
    """Raise a 403, in kind words, where a role does not allow it."""
    if not caller.may(deed):
        what = f"This is for people with the role {LEAST_ROLE[deed]}, and you have the role {caller.role}."
        raise HttpProblem(403, f"{what} Whoever keeps this catalogue can give you another.")


_Plain = Callable[[Site, Request, Mapping[str, Any]], Response]


def refuse_foreign(request: Request) -> None:
    """Raise a 403 for a form that a page of another origin sent. Every browser says where a form comes from."""
    origin = request.headers.get("origin")
    host = request.headers.get("host")
    if request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none") and (
        origin is None or origin.partition("://")[2] == host
    ):
        return
    raise HttpProblem(403, "This form was sent from a page of another site. Open it here, and send it again.")


class _Files(StaticFiles):
    """Our files: kept for good under the name that tells their content, asked for again under any other."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        scope: Scope = next(each for each in (*arguments, *options.values()) if isinstance(each, dict))
        versioned = isinstance(response, FileResponse) and scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = f"public, max-age={_YEAR}, immutable" if versioned else "no-cache"
        return response


def static_files() -> BaseRoute:
    """Where the files of ours are that pages load."""
    return Mount("/static", _Files(directory=STATIC), name="static")
