"""The services that endpoints and pages use, and responses rendered from templates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.errors import StoreError, Unauthenticated
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.notifications import count_unread
from lexarium.services.curation.proposals import count_open
from lexarium.services.records.class_colors import ClassCache, ColoredClass
from lexarium.services.records.statistics import StatisticsCache
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.transfer.uploads import UploadManager
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.services.vocabularies.head_records import list_vocabularies
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.web.http import session
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_body
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import describe_error, problem_response
from lexarium.web.http.response_cache import ResponseCache

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
}
NO_STORE = {"cache-control": "no-store"}
# Below this path every error is JSON, whatever a client accepts.
_API_PREFIX = "/api"
# Open proposals and notifications are counted on every page, so only up to these numbers.
_MAX_PENDING_COUNT = 1_000
_MAX_UNREAD_COUNT = 100
SIGN_IN_PATH = "/sign-in"


@dataclass(frozen=True)
class SignedInUser:
    """The signed-in user, and for curators the number of open proposals, as shown in the page header."""

    name: str
    # In the vocabulary of the page, or else in any.
    can_publish: bool
    can_propose: bool
    # In any vocabulary.
    can_review: bool
    # In all of them.
    can_administer: bool
    pending_count: int = 0
    unread_count: int = 0

    @property
    def unread_badge(self) -> str:
        """The number of unread notifications, or "99+"."""
        return str(self.unread_count) if self.unread_count < _MAX_UNREAD_COUNT else f"{_MAX_UNREAD_COUNT - 1}+"

    @property
    def pending_badge(self) -> str:
        """The number of open proposals, or "999+"."""
        return str(self.pending_count) if self.pending_count < _MAX_PENDING_COUNT else f"{_MAX_PENDING_COUNT - 1}+"


@dataclass(frozen=True)
class Site:
    """The services that endpoints and pages use, and the means to render pages."""

    database: Database
    record_search: RecordSearch
    annotator_cache: AnnotatorCache
    statistics_cache: StatisticsCache
    class_cache: ClassCache
    limits: Limits
    authenticator: Authenticator
    response_cache: ResponseCache
    uploads: UploadManager
    settings: Settings

    def get_base(self, request: Request) -> str:
        """Return where the IRIs begin of records whose vocabulary has no base: that of the main one, or the address."""
        main = VOCABULARIES[MAIN_VOCABULARY]
        return main.base if main.has_base else f"{get_base_url(request)}/"

    def get_caller(self, request: Request) -> Caller | None:
        """Return the signed-in caller, or None. This reads the database: call it in a thread."""
        authorization = session.get_authorization(request)
        if hasattr(request.state, "caller_error"):
            raise request.state.caller_error
        if not hasattr(request.state, "caller"):
            if authorization is None:
                return None
            try:
                request.state.caller = self.authenticator.authenticate(authorization)
            except Unauthenticated:
                request.state.caller = None
            except StoreError as error:
                request.state.caller_error = error  # The error page must not wait as long again.
                raise
        caller: Caller | None = request.state.caller
        return caller

    def list_classes(self, snapshot: Snapshot, collection: str = CONCEPT_CLASS.name) -> list[ColoredClass]:
        """Return the published classes of a collection of classes, by name."""
        classes = [item for item in self.class_cache.get(snapshot).values() if item.collection == collection]
        return sorted(classes, key=lambda item: item.name.casefold())

    def sort_vocabularies(self, slugs: Iterable[str]) -> list[Vocabulary]:
        """Return vocabularies, the default one first, then by title."""
        chosen = set(slugs)
        return [item for item in list_vocabularies() if item.slug in chosen]

    def render(
        self,
        request: Request,
        template: str,
        context: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Render a page with the signed-in user in its header. This takes milliseconds: call it in a thread."""
        user = self._load_user(request, context.get("permission_slug"))
        readable = self._list_readable(request)
        page_context = {
            "user": user,
            "current_url": get_path_and_query(request),
            "readable": readable,
            "has_several": len(readable) > 1,
            # The default one may be private.
            "vocabulary": readable[0] if readable else Vocabulary(),
            "chosen_vocabulary": _find_chosen(request, readable),
            "collection_choices": _list_collection_choices(readable),
            **context,
        }
        private_headers = {} if user is None else {"cache-control": "private, no-store"}
        body = self.render_body(template, page_context, request.url.path, get_base_url(request))
        response = self._to_response(request, body, status, {**(headers or {}), **private_headers})
        if user is None and getattr(request.state, "caller", self) is None:
            session.clear_session_cookie(request, response)
        return response

    def _load_user(self, request: Request, slug: str | None) -> SignedInUser | None:
        try:
            caller = self.get_caller(request)
            if caller is None:
                return None
            publish, propose = Permission.PUBLISH, Permission.PROPOSE
            can_review = caller.has_permission_anywhere(publish)
            user = SignedInUser(
                caller.account.name,
                can_publish=can_review if slug is None else caller.has_permission(publish, slug),
                can_propose=caller.has_permission_anywhere(propose)
                if slug is None
                else caller.has_permission(propose, slug),
                can_review=can_review,
                can_administer=caller.has_permission(Permission.ADMINISTER),
            )
            with self.database.read() as snapshot:
                return replace(
                    user,
                    pending_count=count_open(snapshot, _MAX_PENDING_COUNT, caller) if can_review else 0,
                    unread_count=count_unread(snapshot, caller, _MAX_UNREAD_COUNT),
                )
        except StoreError:  # The page itself may not need the database.
            return None

    def _list_readable(self, request: Request) -> list[Vocabulary]:
        """Return the vocabularies that a visitor may read, the default one first, then by title."""
        try:
            readable = get_read_scope(self.get_caller(request)).slugs
        except StoreError:
            readable = get_read_scope(None).slugs
        return self.sort_vocabularies(readable)

    def render_body(self, template: str, context: Mapping[str, Any], current_path: str, base_url: str) -> bytes:
        """Render a template; `base_url` is the site's address as the client knows it."""
        from lexarium.web.template_environment import get_templates  # noqa: PLC0415 - takes long to load

        defaults = {
            "vocabulary": Vocabulary(),
            "current_path": current_path,
            "base_url": base_url,
            "q": "",
            "user": None,
            "current_url": current_path,
            "readable": (),
            "has_several": False,
            "chosen_vocabulary": None,
            "collection_choices": (),
            "discovery": None,
        }
        return get_templates().get_template(template).render({**defaults, **context}).encode(errors="replace")

    def _to_response(self, request: Request, body: bytes, status: int, headers: Mapping[str, str]) -> Response:
        response_headers = {**SECURITY_HEADERS, "cache-control": "no-cache", "vary": "Accept-Encoding", **headers}
        encoding = choose_encoding(request.headers.get("accept-encoding", "").encode("latin-1"))
        if encoding != IDENTITY:
            response_headers["content-encoding"] = encoding
        return Response(encode_body(encoding, body), status, response_headers, media_type="text/html")

    def handle_error(self, request: Request, error: Exception) -> Response:
        """Respond to an error with a page, or with a problem document if the client does not accept HTML."""
        return self.error_page(request, error) if accepts_html(request) else problem_response(error)

    def error_page(
        self,
        request: Request,
        error: Exception,
        template: str = "error.html",
        context: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Render an error, with its status and headers."""
        description = describe_error(error)
        # Lower case, so that a header replaces the default of the same name.
        error_headers = {name.lower(): value for name, value in description.headers.items()} | dict(headers or {})
        return self.render(
            request, template, {"error": description, **(context or {})}, description.status, error_headers
        )


def _find_chosen(request: Request, readable: Iterable[Vocabulary]) -> str | None:
    """Return the vocabulary that a request names, if it names one only."""
    chosen = [slug for slug in request.query_params.getlist("vocabulary") if slug]
    return chosen[0] if len(chosen) == 1 and chosen[0] in [item.slug for item in readable] else None


def _list_collection_choices(readable: Iterable[Vocabulary]) -> list[tuple[str, str]]:
    """Return the collections of vocabularies to choose from: names there, and nouns for several records."""
    choices: dict[str, str] = {}
    for vocabulary in readable:
        for name in COLLECTIONS.list_names(vocabulary.slug):
            choices.setdefault(COLLECTIONS[name].local_name, COLLECTIONS[name].plural)
    return list(choices.items())


def get_path_and_query(request: Request) -> str:
    """Return the requested path with its query."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def get_request_scope(request: Request, caller: Caller | None, chosen: Sequence[str] = ()) -> ReadScope:
    """Return the vocabularies that a caller may read, or those of them that are chosen; raise NotFound.

    IRIs that begin with the requested address are found in them.
    """
    return replace(get_read_scope(caller, chosen), address=f"{get_base_url(request)}/")


def get_base_url(request: Request) -> str:
    """Return the site's address as the client knows it."""
    return str(request.base_url).rstrip("/")


def accepts_html(request: Request) -> bool:
    """Return whether errors of this request should be pages."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(_API_PREFIX)
