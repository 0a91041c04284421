"""What every page has: the look, its headers, how it is declared, how a form is taken and how a mistake is told.

A page is a function of the site and a request, in a table of its module; `addresses` gathers the tables. It is run in
a thread, so it may read the database as it likes, and raise any error of the domain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from lexarium import __version__
from lexarium.domain.errors import StoreError
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.proposals import count_open
from lexarium.services.records.class_colors import ClassCache
from lexarium.services.records.statistics import StatisticsCache
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.transfer.uploads import UploadManager
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_body
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import ErrorDescription, describe_error, problem_response
from lexarium.web.http.response_cache import ResponseCache
from lexarium.web.http.static_files import WEB_FOLDER, static_url
from lexarium.web.pages import filters, session
from lexarium.web.pages.session import get_caller

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
}
_API_PREFIX = "/api"
"""Below this every error is JSON, whatever a client accepts."""
_MAX_PENDING_COUNT = 1_000
"""How far those are counted that wait, on every page."""
SIGN_IN_PATH = "/sign-in"


@cache
def get_templates() -> Environment:
    """The templates, with the words that pages are made of."""
    environment = Environment(
        loader=FileSystemLoader(WEB_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "day": filters.format_date,
        "done": filters.action_label,
        "label": filters.field_label,
        "minute": filters.format_datetime,
        "month": filters.format_month,
        "number": filters.format_number,
        "paragraphs": filters.split_paragraphs,
        "path": filters.record_path,
        "plural": filters.to_plural,
        "singular": filters.to_singular,
        "stamp": filters.format_iso,
    }
    environment.globals |= {
        "collections": COLLECTIONS,
        "several": filters.format_count,
        "static": static_url,
        "software": f"Lexarium {__version__}",
        "with_query": filters.add_query,
    }
    return environment


@dataclass(frozen=True)
class SignedInUser:
    """Someone who is signed in, as the top of every page knows them."""

    caller: Caller
    pending_count: int
    """How many proposals wait for them to be decided, counted no further than is told."""

    @property
    def pending_badge(self) -> str:
        """How many wait, in few characters."""
        return str(self.pending_count) if self.pending_count < _MAX_PENDING_COUNT else f"{_MAX_PENDING_COUNT - 1}+"

    @property
    def name(self) -> str:
        """What they are called."""
        return self.caller.account.name

    @property
    def can_publish(self) -> bool:
        """Whether they may publish."""
        return self.caller.has_permission(Permission.PUBLISH)

    @property
    def can_administer(self) -> bool:
        """Whether they may administer."""
        return self.caller.has_permission(Permission.ADMINISTER)


@dataclass(frozen=True)
class Site:
    """The parts of one catalogue that pages are made of."""

    database: Database
    record_search: RecordSearch
    annotator_cache: AnnotatorCache
    statistics_cache: StatisticsCache
    class_cache: ClassCache
    limits: Limits
    vocabulary: Vocabulary
    authenticator: Authenticator
    response_cache: ResponseCache
    uploads: UploadManager
    settings: Settings

    def render(
        self,
        request: Request,
        template: str,
        context: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """A page, with who is signed in at its top. It takes some milliseconds: to be called in a thread."""
        user = self._load_user(request)
        page_context = {"visitor": user, "asked_for": get_path_and_query(request), **context}
        private_headers = {} if user is None else {"cache-control": "private, no-store"}
        body = self.render_body(template, page_context, request.url.path, get_base_url(request))
        response = self.to_response(request, body, status, {**(headers or {}), **private_headers})
        if user is None and getattr(request.state, "caller", self) is None:
            session.clear_session_cookie(request, response)
        return response

    def _load_user(self, request: Request) -> SignedInUser | None:
        try:
            caller = get_caller(self, request)
            if caller is None:
                return None
            if not caller.has_permission(Permission.PUBLISH):
                return SignedInUser(caller, 0)
            with self.database.read() as snapshot:
                return SignedInUser(caller, count_open(snapshot, _MAX_PENDING_COUNT))
        except StoreError:  # A page that can be shown without knowing who asks is shown.
            return None

    def render_body(self, template: str, context: Mapping[str, Any], current_path: str, base_url: str) -> bytes:
        """What a page at an address holds; `base` is where the site is, as whoever asks knows it."""
        defaults = {
            "about": self.vocabulary,
            "here": current_path,
            "base": base_url,
            "q": "",
            "visitor": None,
            "asked_for": current_path,
        }
        return get_templates().get_template(template).render({**defaults, **context}).encode(errors="replace")

    def to_response(
        self, request: Request, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A page as an answer, compressed for whoever accepts it."""
        response_headers = {
            **SECURITY_HEADERS,
            "cache-control": "no-cache",
            "vary": "Accept-Encoding",
            **(headers or {}),
        }
        encoding = choose_encoding(request.headers.get("accept-encoding", "").encode("latin-1"))
        if encoding != IDENTITY:
            response_headers["content-encoding"] = encoding
        return Response(encode_body(encoding, body), status, response_headers, media_type="text/html")

    def handle_error(self, request: Request, error: Exception) -> Response:
        """The framework's handler for every error that reached it: a page for whoever reads pages."""
        return self.error_page(request, error) if accepts_html(request) else problem_response(error)

    def error_page(self, request: Request, error: Exception) -> Response:
        """What went wrong, as a page."""
        description = describe_error(error)
        return self.render(
            request, "error.html", {"error": description}, description.status, lower_header_names(description)
        )


def lower_header_names(description: ErrorDescription) -> dict[str, str]:
    """Return the headers of an error, with lower-case names as ASGI requires."""
    return {name.lower(): value for name, value in description.headers.items()}


def get_path_and_query(request: Request) -> str:
    """What was asked for, with its parameters, as a path on this site."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def get_base_url(request: Request) -> str:
    """Where the site is, as whoever asks knows it."""
    return str(request.base_url).rstrip("/")


def accepts_html(request: Request) -> bool:
    """Whether a request is a person's, who reads pages."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(_API_PREFIX)
