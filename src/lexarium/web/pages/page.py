"""Pages and forms: their requests, and their routes with the permission they require.

A page is a function of a `Page`, declared in `ROUTES` of its module. It runs in a thread, so it may read the database,
and may raise any domain error.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import IndexNotReady, InvalidInput, NotFound, StoreError, Unauthenticated
from lexarium.domain.identifiers import split_id
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.languages import find_tag_problem, format_tag, parse_accept_language
from lexarium.services.access.permissions import REQUIRED_ROLE, Caller, Permission
from lexarium.services.vocabularies.access import (
    AmbiguousId,
    ReadScope,
    find_collection,
    find_record_id,
)
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import read_fields
from lexarium.web.http.uploads import UploadedForm, read_upload
from lexarium.web.pages.form_fields import FORM_ERRORS, FormValues, to_field_errors
from lexarium.web.site import NO_STORE, SIGN_IN_PATH, Site, accepts_html, get_path_and_query, get_request_scope
from lexarium.web.template_filters import add_query

# Statuses of requests that may succeed when sent again later.
_RETRYABLE_STATUSES = (429, 503)

ArgumentsP = ParamSpec("ArgumentsP")
ResultT = TypeVar("ResultT")


@dataclass
class Page:
    """A request for a page: with the fields of a form that was sent, and the errors to show it again with."""

    site: Site
    request: Request
    fields: FormValues = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id in the path, or else in the query; raise NotFound."""
        given = self.request.path_params.get("id") or self.query.get("id") or self.query.get("iri")
        if not given:
            raise NotFound("Invalid record URL.")
        return str(given)

    @cached_property
    def scope(self) -> ReadScope:
        """The vocabularies that the page is about; raise NotFound. This reads the database: use it in a thread."""
        with self.read() as snapshot:
            self.site.database.follow_vocabularies(snapshot)
        return self.choose_scope()

    def choose_scope(self) -> ReadScope:
        """Return the same among the vocabularies that are registered now; raise NotFound."""
        chosen = [slug for slug in self.query.getlist("vocabulary") if slug]
        return get_request_scope(self.request, self.site.get_caller(self.request), chosen)

    @property
    def scope_is_chosen(self) -> bool:
        """Return whether the request names vocabularies."""
        return any(self.query.getlist("vocabulary"))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that the visitor wants, best first: that of `lang`, then those of the browser."""
        chosen = [format_tag(tag) for tag in (self.query.get("lang"),) if tag and find_tag_problem(tag) is None]
        return (*chosen, *parse_accept_language(self.request.headers.get("accept-language")))

    @property
    def collection(self) -> Collection:
        """The collection that the path names; raise NotFound."""
        name = self.request.path_params["collection"]
        try:
            return find_collection(self.scope, name)
        except InvalidInput as error:
            known = " ".join(problem.detail.replace("must be one of", "Available:") for problem in error.problems)
            raise NotFound(f"{error} {known}") from None

    def find_record(self, snapshot: Snapshot) -> str:
        """Return the record that the id in the path or in the query means; raise NotFound or AmbiguousId.

        Paths of forms and histories that name no vocabulary are those of the main one, if several have the id.
        """
        try:
            return find_record_id(snapshot, self.id, self.scope)
        except AmbiguousId as error:
            if self.id in error.record_ids:
                return self.id
            raise

    def require(self, permission: Permission, record_id: str) -> None:
        """Raise a 403 unless the caller may do something in the vocabulary of a record."""
        self.require_in(permission, split_id(record_id)[0])

    def require_in(self, permission: Permission, vocabulary: str) -> None:
        """Raise a 403 unless the caller may do something in a vocabulary."""
        _require_permission(self.caller, permission, vocabulary)

    @property
    def query(self) -> QueryParams:
        """The parameters of the URL."""
        return self.request.query_params

    @property
    def caller(self) -> Caller:
        """The signed-in caller; raise Unauthenticated. This reads the database: use it in a thread."""
        caller = self.site.get_caller(self.request)
        if caller is None:
            raise Unauthenticated("Sign in first.")
        return caller

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a read transaction."""
        return self.site.database.read()

    def write(
        self,
        function: Callable[Concatenate[Transaction, ArgumentsP], ResultT],
        *args: ArgumentsP.args,
        **kwargs: ArgumentsP.kwargs,
    ) -> ResultT:
        """Call a function with a write transaction and the arguments; return its result after the commit."""
        return self.site.database.run_write(lambda transaction: function(transaction, *args, **kwargs))

    def render(
        self,
        template: str,
        context: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        error_status: int = 422,
    ) -> Response:
        """Render the page, with `error_status` if it shows errors."""
        page_context = {"form_values": self.fields, "errors": self.errors, "query": self.query, **context}
        # If a page used the languages of the request, it depends on them.
        vary = {"vary": "Accept-Language, Accept-Encoding"} if "languages" in vars(self) else {}
        shown_status = error_status if self.errors else status
        return self.site.render(self.request, template, page_context, shown_status, {**vary, **(headers or {})})


PageHandler = Callable[[Page], Response]


@dataclass(frozen=True)
class PageRoute:
    """A page and the permission to see it. A visitor without a session is sent to sign in.

    The handler runs in a thread, unless it is a coroutine function.
    """

    path: str
    handler: Callable[[Page], Response | Awaitable[Response]]
    permission: Permission | None = None
    # Whether programs may send a token instead of the cookie of a session.
    accepts_token: bool = False

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        def start(request: Request) -> Response | Awaitable[Response]:
            if self.accepts_token and "authorization" in request.headers:
                request.state.caller = site.authenticator.authenticate(request.headers["authorization"])
            if self.permission is not None:
                caller = site.get_caller(request)
                if caller is None:
                    return redirect_to_sign_in(request)
                _require_permission(caller, self.permission)
            return self.handler(Page(site, request))

        async def endpoint(request: Request) -> Response:
            response = await run_in_threadpool(start, request)
            return response if isinstance(response, Response) else await response

        return Route(self.path, endpoint)


@dataclass(frozen=True)
class FormRoute:
    """The target of a form and the permission to send it. With a permission, it counts as a write of the caller.

    The handler runs in a thread, unless it is a coroutine function. If it raises one of `FORM_ERRORS`, `form_page`
    shows the form again; an error that concerns no field is shown at `error_field`.
    """

    path: str
    handler: Callable[[Page], Response | Awaitable[Response]]
    permission: Permission | None = None
    form_page: PageHandler | None = None
    error_field: str = ""

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        async def endpoint(request: Request) -> Response:
            require_same_origin(request)
            fields, _ = await read_fields(request, site.limits)
            try:
                return await self._run_handler(Page(site, request, fields))
            except (HTTPProblem, StoreError, IndexNotReady) as error:
                is_rejected = isinstance(error, HTTPProblem) and error.status not in _RETRYABLE_STATUSES
                if is_rejected or not _can_resubmit(fields) or not accepts_html(request):
                    raise
                context = {"next": get_path_and_query(request), "fields": fields}
                return await run_in_threadpool(site.error_page, request, error, "resubmit_form.html", context, NO_STORE)

        return Route(self.path, endpoint, methods=["POST"])

    async def _run_handler(self, page: Page) -> Response:
        if self.permission is not None and not await authorize_write(page, self.permission):
            return await run_in_threadpool(_render_sign_in, page)
        try:
            if iscoroutinefunction(self.handler):
                return cast(Response, await self.handler(page))
            return cast(Response, await run_in_threadpool(self.handler, page))
        except FORM_ERRORS as error:
            if self.form_page is None:
                raise
            page.errors = to_field_errors(error, self.error_field)
        return await run_in_threadpool(self.form_page, page)


@dataclass(frozen=True)
class UploadRoute:
    """Target of a form with files; the body is read only after the permission is checked."""

    path: str
    handler: Callable[[Page, UploadedForm], Response]
    permission: Permission

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        async def endpoint(request: Request) -> Response:
            page = Page(site, request)
            require_same_origin(request)
            if not await authorize_write(page, self.permission):
                return redirect_to_sign_in(request)
            async with read_upload(request, site.limits) as uploaded:
                return await run_in_threadpool(self.handler, page, uploaded)

        return Route(self.path, endpoint, methods=["POST"])


def redirect(path: str, **parameters: object) -> Response:
    """Redirect after a form to a path with these query parameters."""
    return RedirectResponse(add_query(path, **parameters), 303)


def redirect_to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, which leads back to this one."""
    return RedirectResponse(add_query(SIGN_IN_PATH, next=get_path_and_query(request)), 303, NO_STORE)


async def authorize_write(page: Page, permission: Permission) -> bool:
    """Check permission and write rate; return False if nobody is signed in."""
    caller = await run_in_threadpool(page.site.get_caller, page.request)
    if caller is None:
        return False
    _require_permission(caller, permission)
    page.site.limits.write_limiter.acquire(caller.token_id)
    return True


async def handle_expired_session(site: Site, request: Request) -> Response:
    """Respond to a form of a visitor whose session has ended with a sign-in page that keeps the input."""
    require_same_origin(request)
    fields, _ = await read_fields(request, site.limits)
    return await run_in_threadpool(_render_sign_in, Page(site, request, fields))


def _render_sign_in(page: Page) -> Response:
    if _can_resubmit(page.fields):
        context = {"next": get_path_and_query(page.request), "saved_form": orjson.dumps(dict(page.fields)).decode()}
    else:
        context = {"next": page.request.url.path.rpartition("/")[0]}
    error = Unauthenticated("Your session has expired.")
    return page.site.error_page(page.request, error, "sign_in.html", context, NO_STORE)


def _can_resubmit(fields: FormValues) -> bool:
    # No page may contain a password.
    return not any("password" in name for name in fields)


def _require_permission(caller: Caller, permission: Permission, vocabulary: str | None = None) -> None:
    """Raise a 403 unless the caller may do something in a vocabulary, or else in any; administration is of all."""
    if vocabulary is not None or permission is Permission.ADMINISTER:
        is_allowed = caller.has_permission(permission, vocabulary)
    else:
        is_allowed = caller.has_permission_anywhere(permission)
    if not is_allowed:
        role = caller.role if vocabulary is None else caller.get_role(vocabulary)
        reason = f"This page requires the role {REQUIRED_ROLE[permission]}; your role is {role}."
        raise HTTPProblem(403, f"{reason} Ask an administrator.")


def require_same_origin(request: Request) -> None:
    """Raise a 403 for a form sent by a page of another origin; browsers always send the origin."""
    origin = request.headers.get("origin")
    is_same_site = request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    if not is_same_site or (origin is not None and origin.partition("://")[2] != request.headers.get("host")):
        raise HTTPProblem(403, "Cross-site form rejected. Open the form on this site and submit it again.")
